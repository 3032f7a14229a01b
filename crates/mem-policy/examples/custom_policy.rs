//! A policy of your own: 20 lines, and it composes with the built-in ones.

use mem_policy::{
    Baseline, Environment, Fidelity, MemoryPolicy, PolicyError, PolicySet, PolicySpec, Stage, TrainPlan,
    policies::GradientAccumulation,
};

/// Caps the batch at what fits a device with little memory.
#[derive(Debug)]
struct SmallDeviceBatch {
    samples_per_gib: usize,
}

impl MemoryPolicy for SmallDeviceBatch {
    fn spec(&self) -> &'static PolicySpec {
        const SPEC: PolicySpec = PolicySpec::new(
            "small-device-batch",
            "Batch by device size",
            "keeps fewer activations alive on devices with a small memory budget",
            Stage::Data,
            Fidelity::DifferentRun,
        );
        &SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let Some(budget) = plan.environment().memory_budget else { return Ok(()) };
        let cap = usize::try_from(budget >> 30).unwrap_or(usize::MAX).saturating_mul(self.samples_per_gib).max(4);
        let batch = (*plan.batch_size.get()).min(cap);
        plan.batch_size.set(self.spec().id, batch)
    }
}

fn main() -> Result<(), String> {
    let mut laptop = Environment::cpu();
    laptop.memory_budget = Some(8 << 30);
    let policies =
        PolicySet::new().with(SmallDeviceBatch { samples_per_gib: 4 }).with(GradientAccumulation { steps: 4 });
    let plan = policies.plan(&Baseline::new(64), &laptop).map_err(|errors| format!("{errors:?}"))?;
    println!("{} samples per step, in micro-batches of {}", plan.batch_size.get(), plan.micro_batch());
    assert_eq!((*plan.batch_size.get(), plan.micro_batch()), (32, 8));
    Ok(())
}
