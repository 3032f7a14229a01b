//! Models that the strategy owns, and training by segments, against Burn's own learner.

use burn::optim::AdamConfig;
use burn::optim::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::train::checkpoint::KeepLastNCheckpoints;

use super::*;
use crate::Precision;
use crate::policies::{FusedOptimizer, MixedPrecision, SegmentCheckpointing, UpdateInPlace};
use crate::precision::like;
use crate::segment::{Activations, Segmented};

impl Segmented for Regression {
    fn segments(&self) -> usize {
        2
    }

    fn forward_segment(&self, index: usize, input: Activations) -> Activations {
        match index {
            0 => (input.only::<2>() * 1.0).into(),
            _ => {
                let x = input.only::<2>();
                let weight = like(self.linear.weight.val(), &x);
                x.matmul(weight).into()
            }
        }
    }
}

impl SegmentedStep for Regression {
    fn enter(&self, batch: &Pairs) -> Activations {
        batch.x.clone().into()
    }

    fn leave(&self, output: Activations, batch: Pairs) -> (Tensor<1>, RegressionOutput) {
        let y = output.only::<2>();
        let loss = MseLoss::new().forward(y.clone(), batch.y.clone(), Reduction::Mean);
        (loss.clone(), RegressionOutput::new(loss, y, batch.y))
    }
}

fn strategy(policies: PolicySet) -> Arc<PolicyStrategy> {
    let mut environment = Environment::cpu();
    environment.precisions.push(Precision::F16);
    let mut plan = policies.plan(&Baseline::new(4), &environment).unwrap();
    let strategy = PolicyStrategy::segmented(&Device::flex(), &mut plan, policies);
    plan.ensure_applied().unwrap();
    Arc::new(strategy)
}

fn training(directory: &std::path::Path, epochs: usize) -> SupervisedTraining<Regression> {
    SupervisedTraining::new(directory, loader(10, 4), loader(4, 4))
        .metrics((LossMetric::new(),))
        .with_application_logger(None)
        .num_epochs(epochs)
}

fn schedule() -> ModuleLrScheduler {
    LinearLrSchedulerConfig::new(0.1, 0.01, 12).init().unwrap()
}

/// Two epochs with Adam and a schedule that changes in every step.
fn weights_of(policies: PolicySet) -> Vec<f32> {
    let directory = tempfile::tempdir().unwrap();
    let strategy = strategy(policies);
    let learner = strategy.learner(model(), AdamConfig::new().init(), schedule());
    let result = training(directory.path(), 2).with_training_strategy(strategy.segmented_strategy()).launch(learner);
    assert!(strategy.outcome().1.is_none());
    assert!(result.error.is_none() && result.interrupted.is_none());
    weights(&result.model)
}

fn burns_own() -> Vec<f32> {
    let directory = tempfile::tempdir().unwrap();
    let learner = Learner::new(model(), AdamConfig::new().init(), schedule());
    weights(&training(directory.path(), 2).launch(learner).model)
}

#[test]
fn exact_policies_train_burns_weights_bit_for_bit() {
    let expected = burns_own();
    assert_ne!(expected, weights(&model()));
    let sets = [
        PolicySet::new(),
        PolicySet::new().with(UpdateInPlace::default()),
        PolicySet::new().with(SegmentCheckpointing::default()),
        PolicySet::new().with(SegmentCheckpointing::default()).with(UpdateInPlace::default()),
        PolicySet::new().with(FusedOptimizer::default()),
        PolicySet::new().with(SegmentCheckpointing::default()).with(FusedOptimizer::default()),
    ];
    for policies in sets {
        let name = format!("{policies:?}");
        assert_eq!(weights_of(policies), expected, "{name}");
    }
}

#[test]
fn mixed_precision_trains_close_to_32_bits_and_notes_its_scale() {
    let directory = tempfile::tempdir().unwrap();
    let policy = MixedPrecision { loss_scale: 1024.0, ..MixedPrecision::default() };
    let strategy = strategy(PolicySet::new().with(policy));
    let learner = strategy.learner(model(), AdamConfig::new().init(), schedule());
    let result = training(directory.path(), 2).with_training_strategy(strategy.segmented_strategy()).launch(learner);
    let (events, error) = strategy.outcome();
    assert!(error.is_none(), "{error:?}");
    let worst = weights(&result.model).iter().zip(burns_own()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst > 0.0 && worst < 0.01, "{worst}");
    assert_eq!(events.len(), 2, "one note an epoch");
    assert!(events[1].message.contains("loss scale 1024, 0 steps skipped"), "{}", events[1].message);
}

#[test]
fn a_scale_that_overflows_is_found_by_skipping_steps() {
    let directory = tempfile::tempdir().unwrap();
    let policy = MixedPrecision { loss_scale: 2.0_f64.powi(20), ..MixedPrecision::default() };
    let strategy = strategy(PolicySet::new().with(policy));
    let learner = strategy.learner(model(), SgdConfig::new().init(), 0.1);
    let result = training(directory.path(), 2).with_training_strategy(strategy.segmented_strategy()).launch(learner);
    let (events, _) = strategy.outcome();
    assert!(weights(&result.model).iter().all(|w| w.is_finite()));
    assert_ne!(weights(&result.model), weights(&model()), "the later steps are applied");
    assert!(!events[1].message.contains(" 0 steps skipped"), "{}", events[1].message);
}

#[test]
fn a_run_in_place_resumes_with_its_optimizer_and_its_schedule() {
    let expected = weights_of(PolicySet::new().with(UpdateInPlace::default()));
    let directory = tempfile::tempdir().unwrap();
    let run = |epochs, checkpoint: Option<usize>| {
        let strategy = strategy(PolicySet::new().with(UpdateInPlace::default()));
        let learner = strategy.learner(model(), AdamConfig::new().init(), schedule());
        let training = training(directory.path(), epochs)
            .with_default_checkpointers()
            .with_checkpointing_strategy(KeepLastNCheckpoints::new(3))
            .with_training_strategy(strategy.segmented_strategy());
        let training = match checkpoint {
            Some(epoch) => training.checkpoint(epoch),
            None => training,
        };
        weights(&training.launch(learner).model)
    };
    let half = run(1, None);
    assert_ne!(half, expected);
    assert_eq!(run(2, Some(1)), expected);
}

#[test]
fn a_learner_that_the_strategy_did_not_build_cannot_be_updated_in_place() {
    let strategy = strategy(PolicySet::new().with(UpdateInPlace::default()));
    let directory = tempfile::tempdir().unwrap();
    let learner = Learner::new(model(), SgdConfig::new().init(), 0.1);
    let result = training(directory.path(), 1).with_training_strategy(strategy.segmented_strategy()).launch(learner);
    assert_eq!(weights(&result.model), weights(&model()));
    let error = strategy.outcome().1.unwrap().to_string();
    assert!(error.contains("PolicyStrategy::learner"), "{error}");
}

#[test]
fn a_program_without_segments_says_that_it_does_not_checkpoint_them() {
    let policies = PolicySet::new().with(SegmentCheckpointing::default());
    let mut plan = policies.plan(&Baseline::new(4), &Environment::cpu()).unwrap();
    let _ = PolicyStrategy::new(&Device::flex(), &mut plan, policies);
    let errors = plan.ensure_applied().unwrap_err();
    assert_eq!(errors, [PolicyError::Unapplied { field: "segments", policy: "segment-checkpointing" }]);
}

#[test]
fn groups_that_do_not_fit_the_model_end_the_run_with_the_value() {
    let policies = PolicySet::new().with(SegmentCheckpointing { groups: Some(3), ..SegmentCheckpointing::default() });
    let strategy = strategy(policies);
    let directory = tempfile::tempdir().unwrap();
    let learner = strategy.learner(model(), SgdConfig::new().init(), 0.1);
    let _ = training(directory.path(), 1).with_training_strategy(strategy.segmented_strategy()).launch(learner);
    let error = strategy.outcome().1.unwrap().to_string();
    assert!(error.contains("`segment-checkpointing`") && error.contains("3 groups of 2 segments"), "{error}");
}
