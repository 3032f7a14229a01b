//! Burn's supervised training, run by a plan.

mod epoch;
mod observer;

pub use observer::{Mark, NoObserver, StepObserver};

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;
use burn::train::{
    EventProcessorTraining, Learner, LearnerEvent, LearnerModel, SupervisedLearningStrategy,
    SupervisedTrainingEventProcessor, TrainLoader, TrainingComponents, TrainingStrategy, ValidLoader,
};

use crate::config::PolicySet;
use crate::context::{MemorySource, NoMemorySource, PolicyEvent, StepCx, Verdict};
use crate::error::PolicyError;
use crate::plan::TrainPlan;
use epoch::{TrainEpoch, run_validation};

/// Trains on one device by a [`TrainPlan`], calling its policies back.
///
/// Give it to Burn's `SupervisedTraining` with [`strategy`](Self::strategy); metrics, renderers, checkpointers and early
/// stopping work as with Burn's own single-device strategy, and without policies the steps are the same. It applies the
/// plan's `accumulation` and `gradient_checkpointing`. What it cannot honour it does not ignore: a
/// `grads_accumulation` set on the builder as well is an error (use the policy), and `gradient_checkpointing` set on the
/// builder has no effect on any custom strategy, so use that policy too.
///
/// A policy's error ends the run through the learner's interrupter; [`outcome`](Self::outcome) has it.
pub struct PolicyStrategy {
    device: Device,
    accumulation: usize,
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
    /// A strategy that trains on `device`, with autodiff or without, by `plan`.
    #[must_use]
    pub fn new(device: &Device, plan: &mut TrainPlan, policies: PolicySet) -> Self {
        let mut device = device.clone().autodiff();
        if plan.gradient_checkpointing.apply() {
            device = device.gradient_checkpointing();
        }
        Self {
            device,
            accumulation: plan.accumulation.apply().max(1),
            memory: Arc::new(NoMemorySource),
            observer: Arc::new(NoObserver),
            state: Mutex::new(RunState { policies, ..RunState::default() }),
        }
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

    /// This strategy as Burn's trainer takes it. Keep a clone of the `Arc` to read [`outcome`](Self::outcome).
    #[must_use]
    pub fn strategy<M: LearnerModel>(self: &Arc<Self>) -> TrainingStrategy<M> {
        TrainingStrategy::Custom(Arc::new(Shared(Arc::clone(self))))
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

/// What Burn's trainer holds: it takes a trait object of its own.
struct Shared(Arc<PolicyStrategy>);

impl<M: LearnerModel> SupervisedLearningStrategy<M> for Shared {
    fn fit(
        &self,
        components: TrainingComponents<M>,
        mut learner: Learner<M>,
        train: TrainLoader<M>,
        valid: ValidLoader<M>,
        starting_epoch: usize,
    ) -> (M, SupervisedTrainingEventProcessor<M>) {
        let strategy = &*self.0;
        let TrainingComponents {
            num_epochs,
            mut checkpointer,
            grad_accumulation,
            interrupter,
            mut early_stopping,
            event_processor: mut events,
            event_store,
            ..
        } = components;
        if let Err(error) = strategy.accept(grad_accumulation, &learner.model().devices()) {
            interrupter.stop(Some(&error.to_string()));
            strategy.state().error = Some(error);
            return (learner.model(), events);
        }
        let train = train.to_device(&strategy.device);
        let valid = valid.to_device(&strategy.device.clone().without_autodiff());
        let (train_items, valid_items) = (train.num_items(), valid.num_items());
        learner.fork(&strategy.device);
        let mut epoch_loop = TrainEpoch::new(strategy);

        for epoch in starting_epoch..=num_epochs {
            let split = |items| LearnerEvent::StartSplit { epoch_number: epoch, total_items: items };
            strategy.observer.mark(Mark::EpochStart { epoch });
            interrupter.fail_on_error(events.process_train(split(train_items)));
            epoch_loop.run(&mut learner, &*train, epoch, &mut events, &interrupter);
            interrupter.fail_on_error(events.process_train(LearnerEvent::EndSplit(epoch)));
            strategy.observer.mark(Mark::TrainEnd { epoch });
            if interrupter.should_stop() {
                break;
            }

            interrupter.fail_on_error(
                events.process_valid(LearnerEvent::StartSplit { epoch_number: epoch, total_items: valid_items }),
            );
            run_validation(&learner, &*valid, &mut events, &interrupter);
            interrupter.fail_on_error(events.process_valid(LearnerEvent::EndSplit(epoch)));
            interrupter.fail_on_error(events.process_train(LearnerEvent::EndEpoch(epoch)));
            // The observer, the checkpointer and early stopping read the epoch's metrics.
            interrupter.fail_on_error(events.flush());
            strategy.observer.epoch_end(epoch, &event_store);

            match strategy.after_epoch(epoch, epoch_loop.step()) {
                None => interrupter.stop(Some("a memory policy failed")),
                Some(Verdict::Stop(reason)) => interrupter.stop(Some(&reason)),
                Some(Verdict::Continue) => {}
            }
            if interrupter.should_stop() {
                break;
            }
            if let Some(checkpointer) = &mut checkpointer {
                checkpointer.checkpoint(&learner, epoch, &event_store);
            }
            if let Some(early_stopping) = &mut early_stopping
                && early_stopping.should_stop(epoch, &event_store)
            {
                break;
            }
        }
        (learner.model(), events)
    }
}

#[cfg(test)]
mod tests;
