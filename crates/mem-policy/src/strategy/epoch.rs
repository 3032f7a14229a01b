//! The training loop.

use burn::data::dataloader::DataLoader;
use burn::train::{
    EventProcessorTraining, InferenceStep, Interrupter, Learner, LearnerEvent, LearnerModel,
    SupervisedTrainingEventProcessor, TrainStep, TrainingItem,
};

use super::PolicyStrategy;
use super::observer::Mark;
use crate::accumulate::MeanGradients;
use crate::phase;

/// Runs training epochs; counts micro-batches over all of them.
pub(super) struct TrainEpoch<'a> {
    strategy: &'a PolicyStrategy,
    step: usize,
}

impl<'a> TrainEpoch<'a> {
    pub(super) fn new(strategy: &'a PolicyStrategy) -> Self {
        Self { strategy, step: 0 }
    }

    /// The last micro-batch, from 1 over the whole run.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    pub(super) fn run<M: LearnerModel>(
        &mut self,
        learner: &mut Learner<M>,
        loader: &dyn DataLoader<<M as TrainStep>::Input>,
        epoch: usize,
        events: &mut SupervisedTrainingEventProcessor<M>,
        interrupter: &Interrupter,
    ) {
        let observer = &*self.strategy.observer;
        let mut batches = loader.iter();
        let mut window = MeanGradients::new();
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

            let output = phase::listen(|| observer.mark(Mark::ForwardDone), || learner.train_step(batch));
            observer.mark(Mark::BackwardDone);
            if !self.strategy.after_backward(epoch, self.step) {
                interrupter.stop(Some("a memory policy failed"));
                break;
            }
            if self.strategy.accumulation == 1 {
                learner.lr_step();
                learner.optimizer_step(output.grads);
                observer.mark(Mark::UpdateDone);
            } else {
                let model = learner.model();
                window.add(&model, output.grads, samples);
                if window.micro_batches() == self.strategy.accumulation || progress.is_completed() {
                    let gradients = window.take(&model);
                    drop(model);
                    learner.lr_step();
                    learner.optimizer_step(gradients);
                    observer.mark(Mark::UpdateDone);
                }
            }
            let item = TrainingItem::new(output.item, progress, Some(iteration), Some(learner.lr_current()));
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
    learner: &Learner<M>,
    loader: &dyn DataLoader<<M as InferenceStep>::Input>,
    events: &mut SupervisedTrainingEventProcessor<M>,
    interrupter: &Interrupter,
) {
    let model = learner.model().valid();
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
