//! Activation checkpointing by segments.
//!
//! A model that can be cut into segments ([`Segmented`]) is run forward without a graph, keeping only what flows between
//! groups of segments. Then, last group to first, one group is run again with a graph, its backward pass is taken from
//! the gradient that arrives at its output, and its parameters' gradients are handed over at once. So the activations
//! *inside* the groups never exist together, and an optimizer that applies a group's gradients when they come
//! ([`SegmentedBackward::run`]'s `update`) never holds more than one group's gradients.
//!
//! The gradients are those of the plain backward pass: the same operations run on the same values. Batch norm's running
//! statistics move once, because the run without a graph moves a copy of them; dropout repeats its mask, because the
//! device's generator is seeded alike before both runs of a segment.
//!
//! Technique: Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016; applying gradients inside the backward
//! pass: Lv et al., *Full Parameter Fine-tuning for Large Language Models with Limited Resources*, 2023 (LOMO).
//!
//! # Example
//!
//! A loop of your own, with the optimizer's update inside the backward pass:
//!
//! ```
//! use burn::nn::{Linear, LinearConfig};
//! use burn::module::Module;
//! use burn::optim::SgdConfig;
//! use burn::tensor::{Device, Distribution, Tensor};
//! use mem_policy::segment::{Activations, Segmented, SegmentPlan, SegmentedBackward};
//!
//! #[derive(Module, Debug)]
//! struct Mlp { layers: Vec<Linear> }
//!
//! impl Segmented for Mlp {
//!     fn segments(&self) -> usize { self.layers.len() }
//!     fn forward_segment(&self, index: usize, input: Activations) -> Activations {
//!         self.layers[index].forward(input.only::<2>()).tanh().into()
//!     }
//! }
//!
//! let device = Device::flex().autodiff();
//! let mut model = Mlp { layers: (0..3).map(|_| LinearConfig::new(8, 8).init(&device)).collect() };
//! let mut optimizer = SgdConfig::new().init();
//! let mut backward = SegmentedBackward::new(SegmentPlan::each(&model));
//! let mut last = f32::INFINITY;
//! for _ in 0..3 {
//!     let x = Tensor::<2>::ones([4, 8], &device);
//!     let (trained, loss) = backward.run(
//!         model,
//!         x.into(),
//!         |_, output| { let loss = output.only::<2>().square().mean(); (loss.clone(), loss) },
//!         |model, gradients| optimizer.step(0.1, model, gradients),
//!     );
//!     model = trained;
//!     let loss: f32 = loss.into_scalar();
//!     assert!(loss < last);
//!     last = loss;
//! }
//! # let _ = Distribution::Default;
//! ```

mod activation;
mod backward;
mod budget;
mod copies;
mod norm;
mod plan;

pub(crate) use activation::HostActivation;
pub use activation::{Activation, Activations};
pub use backward::SegmentedBackward;
pub use budget::{BudgetTooSmall, SegmentCost};
pub(crate) use copies::add_gradients;
pub use plan::{Group, PlanError, SegmentPlan};

use burn::module::Module;
use burn::tensor::Tensor;
use burn::train::TrainStep;

/// A model that can be cut into segments, to be run one after the other.
///
/// `forward_segment(n - 1, .. forward_segment(1, forward_segment(0, input)))` is the forward pass. A segment may take
/// and hand on several activations; one that it does not need it hands on untouched.
pub trait Segmented: Module {
    /// How many segments there are, at least one.
    fn segments(&self) -> usize;

    /// Runs segment `index`, counted from 0. It must depend on nothing but the model's parameters, `input` and the
    /// device's random generator.
    fn forward_segment(&self, index: usize, input: Activations) -> Activations;

    /// Whether running segment `index` again saves memory. `false` for a segment whose graph holds nothing but its input
    /// and its parameters, a linear layer for instance: running that twice costs time and saves nothing.
    fn recomputing_saves(&self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// What each segment takes when `input` enters the first one, for [`SegmentPlan::within_budget`]. `None` if the model
    /// does not know.
    fn costs(&self, input: &Activations) -> Option<Vec<SegmentCost>> {
        let _ = input;
        None
    }

    /// Whether segment `index` treats samples independently of each other, so that slices of the batch give the sum of
    /// the same gradients. Batch norm does not.
    fn independent_samples(&self, index: usize) -> bool {
        let _ = index;
        false
    }
}

/// A [`Segmented`] model that Burn's trainer can step: how a batch enters the first segment, and what the last one's
/// output gives.
pub trait SegmentedStep: Segmented + TrainStep {
    /// The first segment's input.
    ///
    /// The trainer casts it to the dtype it computes in; layers follow it there
    /// ([`precision::like`](crate::precision::like)).
    fn enter(&self, batch: &Self::Input) -> Activations;

    /// The loss to minimise, shape `[1]`, and the step's output, from the last segment's output, which the trainer casts
    /// back to the device's default float dtype.
    fn leave(&self, output: Activations, batch: Self::Input) -> (Tensor<1>, Self::Output);
}

#[cfg(test)]
mod tests;
