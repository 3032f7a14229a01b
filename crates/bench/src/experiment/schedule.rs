//! Which run when.

use data::SetId;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use super::arms::Arm;
use crate::config::Experiment;
use crate::record::Record;

/// One run to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its record's id.
    pub id: String,
    /// The place in the schedule, from 1.
    pub position: usize,
    /// The data set.
    pub set: SetId,
    /// The arm.
    pub arm: Arm,
    /// From 1.
    pub repeat: usize,
    /// The seed of the run: all arms of one repeat have the same weights and the same order of the data.
    pub seed: u64,
}

/// The runs of an experiment, in order.
///
/// Every repeat runs every arm on every data set, in an order of its own: whatever drifts while the experiment runs
/// (temperature, other programs) meets all arms alike. The order follows from the seed alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The runs.
    pub entries: Vec<Entry>,
}

impl Schedule {
    /// The schedule of `experiment` with `arms`. An unsupported arm is there once for each data set.
    #[must_use]
    pub fn new(experiment: &Experiment, arms: &[Arm]) -> Self {
        let mut entries = Vec::new();
        // A generator whose numbers are part of its specification, so that a seed means the same order in years.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(experiment.seed);
        for repeat in 1..=experiment.repeats {
            let mut turns: Vec<(SetId, &Arm)> = experiment
                .dataset
                .iter()
                .flat_map(|set| arms.iter().map(|arm| (*set, arm)))
                .filter(|(_, arm)| repeat == 1 || arm.unsupported.is_none())
                .collect();
            turns.shuffle(&mut rng);
            for (set, arm) in turns {
                entries.push(Entry {
                    id: Record::id_of(set, &arm.id, repeat),
                    position: entries.len() + 1,
                    set,
                    arm: arm.clone(),
                    repeat,
                    seed: experiment.seed.wrapping_add(repeat as u64 - 1),
                });
            }
        }
        Self { entries }
    }
}
