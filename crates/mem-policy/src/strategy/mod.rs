//! Burn's supervised training, run by a plan.

mod epoch;
mod fit;
mod observer;
mod resume;
mod step;
mod trainee;

pub use observer::{Mark, NoObserver, StepObserver};

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::optim::ModuleOptimizer;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::tensor::Device;
use burn::train::{Learner, LearnerModel, TrainingStrategy};

use crate::config::PolicySet;
use crate::context::{EventKind, MemorySource, NoMemorySource, PolicyEvent, StepCx, Verdict};
use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::segment::SegmentedStep;
use fit::Shared;
use step::{Plain, SegmentSettings, Segments, not_owned};
use trainee::Optimization;

/// Trains on one device by a [`TrainPlan`], calling its policies back.
///
/// Give it to Burn's `SupervisedTraining` with [`strategy`](Self::strategy); metrics, renderers, checkpointers and early
/// stopping work as with Burn's own single-device strategy, and without policies the steps are the same. It applies the
/// plan's `accumulation`, `gradient_checkpointing` and `update_in_place`, and for a model that can be cut into segments
/// ([`PolicyStrategy::segmented`]) all that needs them. What it cannot honour it does not ignore: a `grads_accumulation`
/// set on the builder as well is an error (use the policy), and `gradient_checkpointing` set on the builder has no effect
/// on any custom strategy, so use that policy too.
///
/// # In place
///
/// Burn's `Learner` updates a clone of the model, so that every updated parameter exists twice until the step ends. When
/// the plan says `update_in_place`, the strategy owns the model and nobody holds a second copy; for that it needs the
/// optimizer and the schedule, so build the learner by [`PolicyStrategy::learner`].
///
/// A policy's error ends the run through the learner's interrupter; [`outcome`](Self::outcome) has it.
pub struct PolicyStrategy {
    device: Device,
    accumulation: usize,
    in_place: bool,
    segments: Option<SegmentSettings>,
    seed: u64,
    optimization: Mutex<Option<Optimization>>,
    memory: Arc<dyn MemorySource>,
    observer: Arc<dyn StepObserver>,
    state: Mutex<RunState>,
}

/// What a run leaves besides the trained model.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RunState {
    /// The policies.
    pub policies: PolicySet,
    /// What they noted.
    pub events: Vec<PolicyEvent>,
    /// The error that ended the run.
    pub error: Option<PolicyError>,
}

impl PolicyStrategy {
    /// A strategy that trains on `device`, with autodiff or without, by `plan`. The plan's fields that need a model in
    /// segments are left unapplied, which [`TrainPlan::ensure_applied`] reports.
    #[must_use]
    pub fn new(device: &Device, plan: &mut TrainPlan, policies: PolicySet) -> Self {
        let mut device = device.clone().autodiff();
        if plan.gradient_checkpointing.apply() {
            device = device.gradient_checkpointing();
        }
        Self {
            device,
            accumulation: plan.accumulation.apply().max(1),
            in_place: plan.update_in_place.apply(),
            segments: None,
            seed: 0,
            optimization: Mutex::new(None),
            memory: Arc::new(NoMemorySource),
            observer: Arc::new(NoObserver),
            state: Mutex::new(RunState { policies, ..RunState::default() }),
        }
    }

    /// The same for a model that can be cut into segments. Take [`segmented_strategy`](Self::segmented_strategy) of it.
    #[must_use]
    pub fn segmented(device: &Device, plan: &mut TrainPlan, policies: PolicySet) -> Self {
        let segments = plan.is_segmented();
        let settings = SegmentSettings::apply(plan);
        Self { segments: segments.then_some(settings), ..Self::new(device, plan, policies) }
    }

    /// The same, with the random masks of recomputed segments derived from `seed`.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same, reading memory from `memory`.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<dyn MemorySource>) -> Self {
        self.memory = memory;
        self
    }

    /// The same, telling `observer` what happens when.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn StepObserver>) -> Self {
        self.observer = observer;
        self
    }

    /// The device with autodiff that the model trains on; build the model on it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A learner for this strategy. With a plan that says `update_in_place` the strategy keeps the optimizer and the
    /// schedule, and the learner gets copies.
    #[must_use]
    pub fn learner<M: LearnerModel>(
        &self,
        model: M,
        optimizer: ModuleOptimizer,
        scheduler: impl Into<ModuleLrScheduler>,
    ) -> Learner<M> {
        let scheduler = scheduler.into();
        if self.in_place {
            let optimization = Optimization { optimizer: optimizer.clone(), scheduler: scheduler.clone() };
            *self.optimization.lock().unwrap_or_else(PoisonError::into_inner) = Some(optimization);
        }
        Learner::new(model, optimizer, scheduler)
    }

    /// This strategy as Burn's trainer takes it. Keep a clone of the `Arc` to read [`outcome`](Self::outcome).
    #[must_use]
    pub fn strategy<M: LearnerModel>(self: &Arc<Self>) -> TrainingStrategy<M> {
        TrainingStrategy::Custom(Arc::new(Shared { strategy: Arc::clone(self), stepper: Box::new(Plain) }))
    }

    /// The same for a model that can be cut into segments. Made from a plan that asks for none of it, this is
    /// [`strategy`](Self::strategy).
    #[must_use]
    pub fn segmented_strategy<M: LearnerModel + SegmentedStep>(self: &Arc<Self>) -> TrainingStrategy<M> {
        match &self.segments {
            None => self.strategy(),
            Some(settings) => TrainingStrategy::Custom(Arc::new(Shared {
                strategy: Arc::clone(self),
                stepper: Box::new(Segments::new(settings.clone(), self.seed)),
            })),
        }
    }

    /// What the policies noted and the error that ended the run, taken out.
    #[must_use]
    pub fn outcome(&self) -> (Vec<PolicyEvent>, Option<PolicyError>) {
        let mut state = self.state();
        (std::mem::take(&mut state.events), state.error.take())
    }

    /// Refuses what would silently not happen.
    fn accept(&self, grad_accumulation: Option<usize>, model: &[Device]) -> Result<(), PolicyError> {
        if let Some(steps) = grad_accumulation {
            return Err(PolicyError::Unplannable {
                policy: "gradient-accumulation",
                why: format!("the builder's grads_accumulation({steps}) sums gradients; use the policy instead"),
            });
        }
        // Moving a tensor keeps its autodiff settings. Without autodiff there would be no gradients, and operations on
        // tensors of different settings panic.
        let wanted = self.device.gradient_checkpointing_strategy();
        if model.iter().all(|device| device.gradient_checkpointing_strategy() == wanted) {
            return Ok(());
        }
        Err(PolicyError::Unplannable {
            policy: "gradient-checkpointing",
            why: "the model was built on a device without autodiff or with another checkpointing setting; build it on \
                  `PolicyStrategy::device()`"
                .to_owned(),
        })
    }

    /// Runs the policies' `after_backward`. Whether to go on.
    fn after_backward(&self, epoch: usize, step: usize) -> bool {
        self.call(epoch, step, |policies, cx| policies.after_backward(cx)).is_some()
    }

    /// Runs the policies' `after_epoch`. `None` after an error.
    fn after_epoch(&self, epoch: usize, step: usize) -> Option<Verdict> {
        self.call(epoch, step, |policies, cx| policies.after_epoch(cx))
    }

    fn call<R>(
        &self,
        epoch: usize,
        step: usize,
        callback: impl FnOnce(&mut PolicySet, &mut StepCx<'_>) -> Result<R, PolicyError>,
    ) -> Option<R> {
        let mut state = self.state();
        let RunState { policies, events, error } = &mut *state;
        let device = self.device.clone().without_autodiff();
        let mut cx = StepCx::new(&device, epoch, step, &*self.memory, events);
        match callback(policies, &mut cx) {
            Ok(said) => Some(said),
            Err(found) => {
                tracing::error!(epoch, step, "{found}");
                *error = Some(found);
                None
            }
        }
    }

    /// The optimizer and the schedule for a model that this strategy owns; `None` if Burn's learner owns it.
    fn optimization(&self) -> Result<Option<Optimization>, PolicyError> {
        let kept = self.optimization.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (self.in_place, kept) {
            (false, _) => Ok(None),
            (true, Some(optimization)) => Ok(Some(optimization)),
            (true, None) => Err(not_owned()),
        }
    }

    /// Notes an event of `policy` that no policy's callback can know.
    fn note(&self, policy: &str, epoch: usize, step: usize, message: String) {
        self.state().events.push(PolicyEvent {
            policy: policy.to_owned(),
            epoch,
            step,
            kind: EventKind::Reading,
            message,
            usage: None,
        });
    }

    fn fail(&self, error: PolicyError) -> String {
        let message = error.to_string();
        tracing::error!("{message}");
        self.state().error = Some(error);
        message
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        // A panicking policy leaves nothing half-written here that a reader would mistake.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PolicyStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyStrategy")
            .field("device", &self.device)
            .field("accumulation", &self.accumulation)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
