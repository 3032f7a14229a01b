//! The training loop.

use burn::data::dataloader::DataLoader;
use burn::module::Module;
use burn::train::{
    EventProcessorTraining, InferenceStep, Interrupter, LearnerEvent, LearnerModel, SupervisedTrainingEventProcessor,
    TrainStep, TrainingItem,
};

use super::PolicyStrategy;
use super::observer::Mark;
use super::step::Stepper;
use super::trainee::Trainee;
use crate::accumulate::MeanGradients;
use crate::phase::{self, Phase};

/// Runs training epochs; counts micro-batches over all of them.
pub(super) struct TrainEpoch<'a, M> {
    strategy: &'a PolicyStrategy,
    stepper: &'a dyn Stepper<M>,
    step: usize,
}

impl<'a, M: LearnerModel> TrainEpoch<'a, M> {
    pub(super) fn new(strategy: &'a PolicyStrategy, stepper: &'a dyn Stepper<M>) -> Self {
        Self { strategy, stepper, step: 0 }
    }

    /// The last micro-batch, from 1 over the whole run.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    pub(super) fn run(
        &mut self,
        trainee: &mut Trainee<M>,
        loader: &dyn DataLoader<<M as TrainStep>::Input>,
        epoch: usize,
        events: &mut SupervisedTrainingEventProcessor<M>,
        interrupter: &Interrupter,
    ) {
        let observer = &*self.strategy.observer;
        let mut batches = loader.iter();
        let in_backward = self.strategy.segments.as_ref().is_some_and(|settings| settings.update_in_backward);
        let mut window = MeanGradients::new();
        // Micro-batches of the window, those whose gradients were not finite included.
        let mut in_window = 0;
        let mut iteration = 0;
        let mut samples_before = 0;
        loop {
            observer.mark(Mark::StepStart { step: self.step + 1 });
            let batch = match batches.next() {
                None => break,
                Some(Ok(batch)) => batch,
                Some(Err(error)) => {
                    interrupter.fail(error);
                    break;
                }
            };
            observer.mark(Mark::DataReady);
            self.step += 1;
            iteration += 1;
            let progress = batches.progress();
            let samples = progress.items_processed.saturating_sub(samples_before);
            samples_before = progress.items_processed;

            if in_backward {
                trainee.rate_step();
            }
            let told = |phase| match phase {
                Phase::ForwardDone => observer.mark(Mark::ForwardDone),
                Phase::SegmentDone { group } => observer.mark(Mark::SegmentDone { group }),
            };
            let stepped = match phase::listen(told, || self.stepper.step(trainee, batch)) {
                Ok(stepped) => stepped,
                Err(error) => {
                    interrupter.stop(Some(&self.strategy.fail(error)));
                    break;
                }
            };
            observer.mark(Mark::BackwardDone);
            if !self.strategy.after_backward(epoch, self.step) {
                interrupter.stop(Some("a memory policy failed"));
                break;
            }
            if in_backward {
                observer.mark(Mark::UpdateDone);
            } else if self.strategy.accumulation == 1 {
                trainee.rate_step();
                if let Some(gradients) = stepped.gradients {
                    trainee.update(gradients);
                }
                observer.mark(Mark::UpdateDone);
            } else {
                in_window += 1;
                let model = trainee.model();
                if let Some(gradients) = stepped.gradients {
                    window.add(&model, gradients, samples);
                }
                if in_window == self.strategy.accumulation || progress.is_completed() {
                    in_window = 0;
                    trainee.rate_step();
                    if window.micro_batches() > 0 {
                        let gradients = window.take(&model);
                        drop(model);
                        trainee.update(gradients);
                    }
                    observer.mark(Mark::UpdateDone);
                }
            }
            let item = TrainingItem::new(stepped.output, progress, Some(iteration), Some(trainee.rate()));
            interrupter.fail_on_error(events.process_train(LearnerEvent::ProcessedItem(item)));
            observer.mark(Mark::StepEnd { samples });
            if interrupter.should_stop() {
                break;
            }
        }
    }
}

/// One pass over the validation set.
pub(super) fn run_validation<M: LearnerModel>(
    trainee: &Trainee<M>,
    loader: &dyn DataLoader<<M as InferenceStep>::Input>,
    events: &mut SupervisedTrainingEventProcessor<M>,
    interrupter: &Interrupter,
) {
    let model = trainee.with_model(Module::valid);
    let mut batches = loader.iter();
    let mut iteration = 0;
    while let Some(batch) = batches.next() {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                interrupter.fail(error);
                break;
            }
        };
        iteration += 1;
        let progress = batches.progress();
        let output = InferenceStep::step(&model, batch);
        let item = TrainingItem::new(output, progress, Some(iteration), None);
        interrupter.fail_on_error(events.process_valid(LearnerEvent::ProcessedItem(item)));
        if interrupter.should_stop() {
            break;
        }
    }
}
