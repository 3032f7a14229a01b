//! Who holds the model, the optimizer and the learning rate.

use burn::optim::lr_scheduler::module_lr_scheduler::{ModuleLearningRate, ModuleLrScheduler};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Device;
use burn::train::{Learner, LearnerModel};

/// A model in training.
pub(super) enum Trainee<M: LearnerModel> {
    /// Burn's learner holds it. It updates a clone, so every updated parameter exists twice until the step ends.
    Learner(Box<Learner<M>>),
    /// We hold it, alone, and update it in place.
    Own(Box<Own<M>>),
}

/// A model that nobody else holds.
pub(super) struct Own<M> {
    /// `None` only while a step has it.
    model: Option<M>,
    optimizer: ModuleOptimizer,
    scheduler: ModuleLrScheduler,
    rate: ModuleLearningRate,
}

/// The optimizer and the schedule for a model that the strategy owns.
#[derive(Clone)]
pub(super) struct Optimization {
    pub(super) optimizer: ModuleOptimizer,
    pub(super) scheduler: ModuleLrScheduler,
}

impl<M: LearnerModel> Trainee<M> {
    pub(super) fn own(model: M, optimization: Optimization) -> Self {
        let Optimization { optimizer, scheduler } = optimization;
        Self::Own(Box::new(Own { model: Some(model), optimizer, scheduler, rate: 0.0.into() }))
    }

    /// Prepares the model for training on `device`.
    pub(super) fn fork(&mut self, device: &Device) {
        match self {
            Self::Learner(learner) => learner.fork(device),
            Self::Own(own) => own.model = own.model.take().map(|model| model.fork(device)),
        }
    }

    /// A clone of the model: as long as it lives, updates cannot be in place.
    pub(super) fn model(&self) -> M {
        match self {
            Self::Learner(learner) => learner.model(),
            Self::Own(own) => own.model().clone(),
        }
    }

    pub(super) fn with_model<R>(&self, f: impl FnOnce(&M) -> R) -> R {
        match self {
            Self::Learner(learner) => f(&learner.model()),
            Self::Own(own) => f(own.model()),
        }
    }

    pub(super) fn rate_step(&mut self) {
        match self {
            Self::Learner(learner) => learner.lr_step(),
            Self::Own(own) => own.rate = own.scheduler.step(),
        }
    }

    pub(super) fn rate(&self) -> ModuleLearningRate {
        match self {
            Self::Learner(learner) => learner.lr_current(),
            Self::Own(own) => own.rate.clone(),
        }
    }

    /// Applies gradients.
    pub(super) fn update(&mut self, gradients: GradientsParams) {
        match self {
            Self::Learner(learner) => learner.optimizer_step(gradients),
            Self::Own(own) => {
                let Own { model, optimizer, rate, .. } = &mut **own;
                *model = model.take().map(|model| model.optimize(optimizer, rate.clone(), gradients));
            }
        }
    }

    /// Runs `f`, which gets the model and may apply gradients to it at any time. `None` if Burn's learner holds the
    /// model: it does not let go of it.
    pub(super) fn updating<R>(
        &mut self,
        f: impl FnOnce(M, &mut dyn FnMut(M, GradientsParams) -> M) -> (M, R),
    ) -> Option<R> {
        let Self::Own(own) = self else { return None };
        let Own { model, optimizer, rate, .. } = &mut **own;
        let (updated, result) =
            f(model.take()?, &mut |model, gradients| model.optimize(optimizer, rate.clone(), gradients));
        *model = Some(updated);
        Some(result)
    }

    /// A learner for what Burn wants one for: saving a checkpoint.
    pub(super) fn with_learner<R>(&self, f: impl FnOnce(&Learner<M>) -> R) -> R {
        match self {
            Self::Learner(learner) => f(learner),
            Self::Own(own) => f(&Learner::new(own.model().clone(), own.optimizer.clone(), own.scheduler.clone())),
        }
    }

    pub(super) fn into_model(self) -> M {
        match self {
            Self::Learner(learner) => learner.model(),
            Self::Own(own) => own.into_model(),
        }
    }
}

impl<M> Own<M> {
    #[expect(clippy::expect_used, reason = "only a step that panicked leaves the place empty")]
    fn model(&self) -> &M {
        self.model.as_ref().expect("the model is here between steps")
    }

    #[expect(clippy::expect_used, reason = "only a step that panicked leaves the place empty")]
    fn into_model(self) -> M {
        self.model.expect("the model is here between steps")
    }
}
