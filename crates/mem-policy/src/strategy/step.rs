//! The forward and backward pass of a step: as the model does it, or segment by segment.

use std::sync::{Mutex, PoisonError};

use burn::optim::GradientsParams;
use burn::tensor::{FloatDType, Tensor};
use burn::train::{LearnerModel, TrainStep};

use super::trainee::Trainee;
use crate::error::PolicyError;
use crate::offload::Offload;
use crate::plan::{ComputePlan, Segmenting, SlicePlan, TrainPlan};
use crate::precision::LossScaler;
use crate::segment::{Activations, SegmentPlan, SegmentedBackward, SegmentedStep};

/// What a step gives: the output, and the gradients unless they are applied already, or must not be.
pub(super) struct Stepped<T> {
    pub(super) output: T,
    pub(super) gradients: Option<GradientsParams>,
}

/// Runs forward and backward passes of one model.
pub(super) trait Stepper<M: LearnerModel>: Send + Sync {
    fn step(
        &self,
        trainee: &mut Trainee<M>,
        batch: <M as TrainStep>::Input,
    ) -> Result<Stepped<<M as TrainStep>::Output>, PolicyError>;

    /// How the loss is scaled, and what came of it, if it is.
    fn scaler(&self) -> Option<LossScaler> {
        None
    }
}

/// As the model's `TrainStep` does it.
pub(super) struct Plain;

impl<M: LearnerModel> Stepper<M> for Plain {
    fn step(
        &self,
        trainee: &mut Trainee<M>,
        batch: <M as TrainStep>::Input,
    ) -> Result<Stepped<<M as TrainStep>::Output>, PolicyError> {
        let output = trainee.with_model(|model| TrainStep::step(model, batch));
        Ok(Stepped { output: output.item, gradients: Some(output.grads) })
    }
}

/// What a plan says about training by segments.
#[derive(Debug, Clone, Default)]
pub(super) struct SegmentSettings {
    segments: Option<Segmenting>,
    by: &'static str,
    slices: Option<SlicePlan>,
    offload: bool,
    compute: Option<ComputePlan>,
    pub(super) update_in_backward: bool,
}

impl SegmentSettings {
    /// Applies the plan's fields.
    pub(super) fn apply(plan: &mut TrainPlan) -> Self {
        Self {
            by: plan.segments.set_by().unwrap_or("segment-checkpointing"),
            segments: plan.segments.apply(),
            slices: plan.slices.apply(),
            offload: plan.offload.apply(),
            compute: plan.compute.apply(),
            update_in_backward: plan.update_in_backward.apply(),
        }
    }

    fn plan<M: SegmentedStep>(&self, model: &M, input: &Activations) -> Result<SegmentPlan, PolicyError> {
        let refused = |policy, why: String| PolicyError::Unplannable { policy, why };
        let grouped = match &self.segments {
            Some(Segmenting::Each) => Ok(SegmentPlan::each(model)),
            Some(Segmenting::Groups(groups)) => SegmentPlan::groups_of(model, *groups),
            Some(Segmenting::Cuts(cuts)) => SegmentPlan::at(model, cuts),
            Some(Segmenting::Budget(bytes)) => {
                let costs = model.costs(input).ok_or_else(|| {
                    refused(self.by, "the model does not know what its segments take; choose `groups`".to_owned())
                })?;
                return SegmentPlan::within_budget(&costs, *bytes).map_err(|e| refused(self.by, e.to_string()));
            }
            // Only a group that is run again can wait on the host.
            None if self.offload => Ok(SegmentPlan::each(model)),
            None => Ok(SegmentPlan::each(model).keeping_all()),
        };
        let plan = grouped.map_err(|error| refused(self.by, error.to_string()))?;
        let Some(slices) = self.slices else { return Ok(plan) };
        let SlicePlan { slices, first, last, batch_norm_per_slice } = slices;
        let fits = |index: &usize| {
            model.independent_samples(*index) || (batch_norm_per_slice && model.recomputing_saves(*index))
        };
        let end = match last {
            Some(last) => last + 1,
            None => first + (first..model.segments()).take_while(fits).count(),
        };
        if end <= first || end > model.segments() {
            return Err(refused(
                "segment-slices",
                format!(
                    "segments {first} to {} of {} cannot be sliced; use `first` and `last` of segments that treat \
                     samples independently, or allow `batch-norm-per-slice`",
                    end.saturating_sub(1),
                    model.segments()
                ),
            ));
        }
        plan.sliced(model, &(first..end), slices, batch_norm_per_slice)
            .map_err(|error| refused("segment-slices", error.to_string()))
    }
}

/// Segment by segment.
pub(super) struct Segments {
    settings: SegmentSettings,
    seed: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Made at the first step, when the model and a batch are there.
    backward: Option<SegmentedBackward>,
    scaler: Option<LossScaler>,
}

impl Segments {
    pub(super) fn new(settings: SegmentSettings, seed: u64) -> Self {
        let scaler = settings.compute.and_then(|compute| compute.scaler).map(LossScaler::new);
        Self { settings, seed, state: Mutex::new(State { backward: None, scaler }) }
    }

    /// The dtype in which activations enter the model, whose own is `default`.
    fn entering(&self, default: FloatDType) -> FloatDType {
        match self.settings.compute {
            Some(ComputePlan { dtype, compute: true, .. }) => dtype.dtype(),
            _ => default,
        }
    }
}

impl<M: LearnerModel + SegmentedStep> Stepper<M> for Segments {
    fn step(
        &self,
        trainee: &mut Trainee<M>,
        batch: <M as TrainStep>::Input,
    ) -> Result<Stepped<<M as TrainStep>::Output>, PolicyError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { backward, scaler } = &mut *state;
        let mut input = trainee.with_model(|model| model.enter(&batch));
        let default = trainee.with_model(|model| model.devices().first().cloned().unwrap_or_default());
        let default = default.settings().float_dtype;
        if self.settings.compute.is_some() {
            input = input.cast(self.entering(default));
        }
        let backward = match backward {
            Some(backward) => backward,
            None => {
                let plan = trainee.with_model(|model| self.settings.plan(model, &input))?;
                tracing::debug!(groups = plan.groups().len(), "training by segments");
                let made = SegmentedBackward::new(plan).with_seed(self.seed);
                let made = if self.settings.offload { made.with_offload(Offload::new()) } else { made };
                backward.insert(made)
            }
        };
        let scale = scaler.as_ref().map(LossScaler::current);
        let cast_back = self.settings.compute.is_some();
        let leave = |model: &M, output: Activations| {
            let output = if cast_back { output.cast(default) } else { output };
            let (loss, item): (Tensor<1>, _) = model.leave(output, batch);
            (scale.map_or_else(|| loss.clone(), |scale| loss.clone() * scale), item)
        };
        let stepped = if self.settings.update_in_backward {
            let output = trainee.updating(|model, apply| {
                backward.run(model, input, leave, |model, gradients| match scaler.as_mut() {
                    None => apply(model, gradients),
                    Some(scaler) => match scaler.unscale(&model, gradients) {
                        Some(gradients) => apply(model, gradients),
                        None => model,
                    },
                })
            });
            let output = output.ok_or_else(not_owned)?;
            Stepped { output, gradients: None }
        } else {
            let mut all = GradientsParams::new();
            let (model, output) = backward.run(trainee.model(), input, leave, |model, gradients| {
                all = crate::segment::add_gradients(&model, std::mem::take(&mut all), gradients);
                model
            });
            let gradients = match scaler.as_mut() {
                None => Some(all),
                Some(scaler) => scaler.unscale(&model, all),
            };
            Stepped { output, gradients }
        };
        if let Some(scaler) = scaler {
            scaler.step_done();
        }
        Ok(stepped)
    }

    fn scaler(&self) -> Option<LossScaler> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).scaler.clone()
    }
}

/// Why a model cannot be updated while Burn's learner holds it.
pub(super) fn not_owned() -> PolicyError {
    PolicyError::Unplannable {
        policy: "update-in-place",
        why: "Burn's learner holds the model and does not let go of it; build the learner by \
              `PolicyStrategy::learner`, which lets the strategy own the model"
            .to_owned(),
    }
}
