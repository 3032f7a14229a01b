//! How Burn's trainer runs the strategy.

use std::sync::Arc;

use burn::train::{
    EventProcessorTraining, Learner, LearnerEvent, LearnerModel, SupervisedLearningStrategy,
    SupervisedTrainingEventProcessor, TrainLoader, TrainingComponents, ValidLoader,
};

use super::epoch::{TrainEpoch, run_validation};
use super::step::Stepper;
use super::trainee::Trainee;
use super::{Mark, PolicyStrategy, resume};
use crate::context::Verdict;

/// What Burn's trainer holds: it takes a trait object of its own.
pub(super) struct Shared<M> {
    pub(super) strategy: Arc<PolicyStrategy>,
    pub(super) stepper: Box<dyn Stepper<M>>,
}

impl<M: LearnerModel> SupervisedLearningStrategy<M> for Shared<M> {
    fn fit(
        &self,
        components: TrainingComponents<M>,
        learner: Learner<M>,
        train: TrainLoader<M>,
        valid: ValidLoader<M>,
        starting_epoch: usize,
    ) -> (M, SupervisedTrainingEventProcessor<M>) {
        let strategy = &*self.strategy;
        let TrainingComponents {
            num_epochs,
            checkpoint,
            mut checkpointer,
            grad_accumulation,
            interrupter,
            mut early_stopping,
            event_processor: mut events,
            event_store,
            ..
        } = components;
        let accepted =
            strategy.accept(grad_accumulation, &learner.model().devices()).and_then(|()| strategy.optimization());
        let optimization = match accepted {
            Ok(optimization) => optimization,
            Err(error) => {
                interrupter.stop(Some(&strategy.fail(error)));
                return (learner.model(), events);
            }
        };
        let mut trainee = match optimization {
            None => Trainee::Learner(Box::new(learner)),
            Some(optimization) => {
                let optimization = match checkpoint {
                    Some(_) => resume::restore(&learner, &event_store, optimization),
                    None => optimization,
                };
                let model = learner.model();
                // From here on nobody else holds the parameters.
                drop(learner);
                Trainee::own(model, optimization)
            }
        };
        let train = train.to_device(&strategy.device);
        let valid = valid.to_device(&strategy.device.clone().without_autodiff());
        let (train_items, valid_items) = (train.num_items(), valid.num_items());
        trainee.fork(&strategy.device);
        let mut epoch_loop = TrainEpoch::new(strategy, &*self.stepper);

        for epoch in starting_epoch..=num_epochs {
            let split = |items| LearnerEvent::StartSplit { epoch_number: epoch, total_items: items };
            strategy.observer.mark(Mark::EpochStart { epoch });
            interrupter.fail_on_error(events.process_train(split(train_items)));
            epoch_loop.run(&mut trainee, &*train, epoch, &mut events, &interrupter);
            interrupter.fail_on_error(events.process_train(LearnerEvent::EndSplit(epoch)));
            strategy.observer.mark(Mark::TrainEnd { epoch });
            if interrupter.should_stop() {
                break;
            }

            interrupter.fail_on_error(
                events.process_valid(LearnerEvent::StartSplit { epoch_number: epoch, total_items: valid_items }),
            );
            run_validation(&trainee, &*valid, &mut events, &interrupter);
            interrupter.fail_on_error(events.process_valid(LearnerEvent::EndSplit(epoch)));
            interrupter.fail_on_error(events.process_train(LearnerEvent::EndEpoch(epoch)));
            // The observer, the checkpointer and early stopping read the epoch's metrics.
            interrupter.fail_on_error(events.flush());
            strategy.observer.epoch_end(epoch, &event_store);

            if let Some(scaler) = self.stepper.scaler() {
                let message = format!(
                    "loss scale {}, {} steps skipped and {} in part for gradients that are not finite",
                    scaler.current(),
                    scaler.skipped(),
                    scaler.partly_skipped()
                );
                strategy.note("mixed-precision", epoch, epoch_loop.step(), message);
            }
            match strategy.after_epoch(epoch, epoch_loop.step()) {
                None => interrupter.stop(Some("a memory policy failed")),
                Some(Verdict::Stop(reason)) => interrupter.stop(Some(&reason)),
                Some(Verdict::Continue) => {}
            }
            if interrupter.should_stop() {
                break;
            }
            if let Some(checkpointer) = &mut checkpointer {
                trainee.with_learner(|learner| checkpointer.checkpoint(learner, epoch, &event_store));
            }
            if let Some(early_stopping) = &mut early_stopping
                && early_stopping.should_stop(epoch, &event_store)
            {
                break;
            }
        }
        (trainee.into_model(), events)
    }
}
