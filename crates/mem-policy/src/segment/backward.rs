//! The forward and backward pass, group by group.

use std::collections::HashMap;
use std::ops::Range;

use burn::optim::GradientsParams;
use burn::tensor::{Device, Gradients, Tensor};

use super::Segmented;
use super::activation::{Activation, Activations};
use super::copies::{self, Statistics};
use super::plan::{Group, SegmentPlan};
use crate::offload::{Offload, Offloaded};
use crate::phase;

/// Runs steps of a [`Segmented`] model by a [`SegmentPlan`].
#[derive(Debug, Clone)]
pub struct SegmentedBackward {
    plan: SegmentPlan,
    offload: Option<Offload>,
    seed: u64,
    steps: u64,
}

/// What the forward pass leaves of a group.
enum Stored {
    /// Only its input, to run it again.
    Input(StoredInput),
    /// Its graph.
    Graph { input: Activations, output: Activations },
}

/// A group's input, on the device or in host memory.
enum StoredInput {
    Here(Activations),
    Offloaded(Offloaded),
}

/// Gradients that have arrived at a boundary between groups, in the order of its activations.
type Arrived = Vec<Option<Activation>>;

impl SegmentedBackward {
    /// Steps by `plan`.
    #[must_use]
    pub fn new(plan: SegmentPlan) -> Self {
        Self { plan, offload: None, seed: 0, steps: 0 }
    }

    /// The same, with the generator's seeds derived from `seed`. If a group is run twice, the device's random generator
    /// is seeded before each run of each segment, so that dropout repeats its mask; the masks depend on `seed`, the
    /// step's number, the segment and the slice.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same, keeping the groups' inputs in host memory until they are needed again.
    #[must_use]
    pub fn with_offload(mut self, offload: Offload) -> Self {
        self.offload = Some(offload);
        self
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &SegmentPlan {
        &self.plan
    }

    /// One forward and backward pass.
    ///
    /// `loss` makes the loss, shape `[1]`, and whatever else is wanted, from the last segment's output. `update` is called
    /// for each group, last to first, with the model and the gradients of the group's parameters, as soon as there are
    /// any; it hands the model back, updated or not. The model comes by value so that an optimizer can update it in
    /// place: whoever keeps a clone of it keeps a second copy of every updated parameter.
    ///
    /// The first segment's input gets no gradient.
    ///
    /// # Panics
    ///
    /// If the plan is not for this model, if its segments do not fit each other, or if the model is not on an autodiff
    /// device.
    pub fn run<M: Segmented, T>(
        &mut self,
        model: M,
        input: Activations,
        loss: impl FnOnce(&M, Activations) -> (Tensor<1>, T),
        mut update: impl FnMut(M, GradientsParams) -> M,
    ) -> (M, T) {
        let groups = self.plan.groups().to_vec();
        assert_eq!(
            groups.last().map(|group| group.segments.end),
            Some(model.segments()),
            "the segment plan is for a model with another number of segments"
        );
        self.steps = self.steps.wrapping_add(1);
        let device = model.devices().first().cloned().unwrap_or_default();
        let (mut stored, mut x) = self.forward(&model, &device, &groups, input);
        let last = groups.len() - 1;
        let (output, arrived, gradients) = {
            let group = &groups[last];
            let input = x.map(|a| a.leaf(&device, last > 0));
            drop(std::mem::take(&mut x));
            let y = self.run_group(&model, &device, group.segments.clone(), 0, input.clone());
            let (loss, output) = loss(&model, y);
            phase::forward_done();
            let mut gradients = loss.backward();
            drop(loss);
            let arrived: Arrived = input.iter().map(|a| a.take_gradient(&mut gradients)).collect();
            (output, arrived, GradientsParams::from_module(&mut gradients, &model))
        };
        let mut arrived = arrived;
        let mut model = hand_over(last, &device, model, gradients, &mut update);
        while let Some(kept) = stored.pop() {
            let group = &groups[stored.len()];
            if let Some(Stored::Input(StoredInput::Offloaded(next))) = stored.last() {
                next.prefetch(&device);
            }
            let tracked = !stored.is_empty();
            let gradients;
            (model, gradients, arrived) = self.backward_group(model, &device, group, kept, arrived, tracked);
            model = hand_over(stored.len(), &device, model, gradients, &mut update);
        }
        (model, output)
    }

    /// Runs all groups but the last one. Returns what they leave, and the last one's input.
    fn forward<M: Segmented>(
        &self,
        model: &M,
        device: &Device,
        groups: &[Group],
        input: Activations,
    ) -> (Vec<Stored>, Activations) {
        let mut x = input.map(Activation::plain);
        drop(input);
        let mut stored = Vec::with_capacity(groups.len());
        let earlier = &groups[..groups.len() - 1];
        let copy = earlier.iter().any(|group| !group.keep).then(|| copies::untracked(model));
        let plain = device.clone().without_autodiff().autodiff();
        for (index, group) in earlier.iter().enumerate() {
            match &copy {
                Some(copy) if !group.keep => {
                    let y = self.run_without_graph(copy, &plain, group, &x);
                    let input = std::mem::replace(&mut x, y);
                    stored.push(Stored::Input(match &self.offload {
                        Some(offload) => StoredInput::Offloaded(offload.store(input)),
                        None => StoredInput::Here(input),
                    }));
                }
                _ => {
                    let input = x.map(|a| a.leaf(device, index > 0));
                    let output = self.run_group(model, device, group.segments.clone(), 0, input.clone());
                    x = output.map(Activation::plain_unless_leaf);
                    stored.push(Stored::Graph { input, output });
                }
            }
        }
        (stored, x)
    }

    fn run_without_graph<M: Segmented>(
        &self,
        copy: &M,
        device: &Device,
        group: &Group,
        x: &Activations,
    ) -> Activations {
        let parts = slices(x, group.slices);
        if parts.len() < 2 {
            let input = x.map(|a| a.leaf(device, false));
            return self.run_group(copy, device, group.segments.clone(), 0, input).map(Activation::plain);
        }
        let outputs: Vec<Activations> = parts
            .iter()
            .enumerate()
            .map(|(index, part)| {
                let input = x.map(|a| a.rows(part.start, part.len()).leaf(device, false));
                self.run_group(copy, device, group.segments.clone(), index, input).map(Activation::plain)
            })
            .collect();
        join_all(outputs)
    }

    fn run_group<M: Segmented>(
        &self,
        model: &M,
        device: &Device,
        segments: Range<usize>,
        slice: usize,
        input: Activations,
    ) -> Activations {
        let twice = self.plan.groups().iter().any(|group| !group.keep);
        segments.fold(input, |x, index| {
            if twice {
                device.seed(mix(&[self.seed, self.steps, index as u64, slice as u64]));
            }
            model.forward_segment(index, x)
        })
    }

    /// Takes one group backward. Returns its parameters' gradients and those of its input.
    fn backward_group<M: Segmented>(
        &self,
        model: M,
        device: &Device,
        group: &Group,
        kept: Stored,
        arrived: Arrived,
        tracked: bool,
    ) -> (M, GradientsParams, Arrived) {
        let (input, output) = match kept {
            Stored::Graph { input, output } => (input, output),
            Stored::Input(input) => {
                let x = match input {
                    StoredInput::Here(x) => x,
                    StoredInput::Offloaded(x) => x.fetch(device),
                };
                let parts = slices(&x, group.slices);
                if parts.len() > 1 {
                    return self.backward_slices(model, device, group, &x, &parts, &arrived, tracked);
                }
                let input = x.map(|a| a.leaf(device, tracked));
                drop(x);
                let output = self.run_group(&model, device, group.segments.clone(), 0, input.clone());
                (input, output)
            }
        };
        let (mut gradients, arrived) = pull_back(&input, output, &arrived);
        let gradients = gradients
            .as_mut()
            .map_or_else(GradientsParams::new, |gradients| GradientsParams::from_module(gradients, &model));
        (model, gradients, arrived)
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one group's backward pass")]
    fn backward_slices<M: Segmented>(
        &self,
        model: M,
        device: &Device,
        group: &Group,
        x: &Activations,
        parts: &[Range<usize>],
        arrived: &Arrived,
        tracked: bool,
    ) -> (M, GradientsParams, Arrived) {
        let mut sum = GradientsParams::new();
        let mut statistics = Statistics::default();
        let mut of_inputs: Vec<Vec<Activation>> = vec![Vec::new(); x.len()];
        for (index, part) in parts.iter().enumerate() {
            let copy = copies::tracked(&model, device);
            let input = x.map(|a| a.rows(part.start, part.len()).leaf(device, tracked));
            let output = self.run_group(&copy, device, group.segments.clone(), index, input.clone());
            let of_slice: Arrived = arrived
                .iter()
                .map(|gradient| gradient.as_ref().map(|gradient| gradient.rows(part.start, part.len())))
                .collect();
            let (gradients, of_slice) = pull_back(&input, output, &of_slice);
            for (slices, gradient) in of_inputs.iter_mut().zip(of_slice) {
                slices.extend(gradient);
            }
            let Some(mut gradients) = gradients else { continue };
            let more = GradientsParams::from_module(&mut gradients, &copy);
            drop(gradients);
            #[expect(clippy::cast_precision_loss, reason = "batch sizes are far below 2^52")]
            statistics.add(&copy, part.len() as f64);
            sum = copies::add_gradients(&copy, sum, more);
        }
        let model = statistics.commit(model);
        let joined = x
            .iter()
            .zip(of_inputs)
            .map(|(a, slices)| (slices.len() == parts.len()).then(|| Activation::join(a, slices)))
            .collect();
        (model, sum, joined)
    }
}

fn hand_over<M>(
    group: usize,
    device: &Device,
    model: M,
    gradients: GradientsParams,
    update: &mut impl FnMut(M, GradientsParams) -> M,
) -> M {
    phase::segment_done(group);
    let model = if gradients.is_empty() { model } else { update(model, gradients) };
    // A backend that fuses operations queues them. What a group's gradients take is free again only when the queue has
    // been worked off, and it must be before the next group's gradients are made. This does not wait for the device.
    if let Err(error) = device.flush() {
        tracing::warn!("the device did not take the work of group {group}: {error}");
    }
    model
}

/// Takes the gradients that arrive at `output` back to `input` and to the parameters between. An activation that the
/// group handed on untouched gets its gradient without a computation.
fn pull_back(input: &Activations, output: Activations, arrived: &[Option<Activation>]) -> (Option<Gradients>, Arrived) {
    assert_eq!(output.len(), arrived.len(), "a segment hands on as many activations every time it is run");
    let mut untouched: HashMap<u64, Option<Activation>> = HashMap::with_capacity(input.len());
    untouched.extend(input.iter().map(|x| (x.tag(), None)));
    let mut made = Vec::new();
    for (y, gradient) in output.iter().zip(arrived) {
        match (untouched.get_mut(&y.tag()), gradient) {
            // Handed on more than once, it gets the sum.
            (Some(passed), Some(gradient)) => {
                let sum = passed.take().map_or_else(|| gradient.clone(), |before| before.plus(gradient.clone()));
                *passed = Some(sum);
            }
            (None, Some(gradient)) => made.extend(y.weighted_sum(gradient)),
            (_, None) => {}
        }
    }
    let passed: Arrived = input.iter().map(|x| untouched.remove(&x.tag()).flatten()).collect();
    let seed = made.into_iter().reduce(|a, b| a + b);
    drop(output);
    let Some(seed) = seed else { return (None, passed) };
    let mut gradients = seed.backward();
    drop(seed);
    let arrived = input
        .iter()
        .zip(passed)
        .map(|(x, passed)| match (x.take_gradient(&mut gradients), passed) {
            (Some(used), Some(passed)) => Some(used.plus(passed)),
            (used, passed) => used.or(passed),
        })
        .collect();
    (Some(gradients), arrived)
}

/// Rows of each slice: as equal as possible, none empty.
fn slices(x: &Activations, slices: usize) -> Vec<Range<usize>> {
    let rows = x.iter().filter_map(|a| a.dims().first().copied()).min().unwrap_or(1);
    let slices = slices.clamp(1, rows.max(1));
    (0..slices).map(|i| (i * rows / slices)..((i + 1) * rows / slices)).collect()
}

fn join_all(outputs: Vec<Activations>) -> Activations {
    let mut places: Vec<Vec<Activation>> = Vec::new();
    for output in outputs {
        for (place, activation) in output.into_iter().enumerate() {
            match places.get_mut(place) {
                Some(slices) => slices.push(activation),
                None => places.push(vec![activation]),
            }
        }
    }
    places
        .into_iter()
        .filter_map(|slices| slices.first().cloned().map(|first| Activation::join(&first, slices)))
        .collect()
}

/// Mixes numbers into a seed (the finaliser of `SplitMix64`).
fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9E37_79B9_7F4A_7C15, |seed, part| {
        let mut z = (seed ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}
