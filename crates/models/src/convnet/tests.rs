use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Int, Tensor};
use burn::train::TrainStep;
use mem_policy::ModelScale;

use super::*;
use crate::DeviceLimits;

fn small() -> ConvNetConfig {
    ConvNetConfig { input: [3, 14, 13], widths: vec![4, 6], hidden: 5, classes: 3 }
}

fn batch(config: &ConvNetConfig, n: usize, device: &Device) -> ClassificationBatch {
    let [c, h, w] = config.input;
    let classes: Vec<i64> = (0..n).map(|i| (i % config.classes) as i64).collect();
    ClassificationBatch {
        images: Tensor::random([n, c, h, w], Distribution::Normal(0.0, 1.0), device),
        targets: Tensor::<1, Int>::from_data(classes.as_slice(), device),
    }
}

#[test]
fn the_default_network_has_1_851_291_712_parameters() {
    let summary = ConvNetConfig::default().summary().unwrap();
    assert_eq!(summary.parameters(), 1_851_291_712);
    insta::assert_snapshot!(summary);
}

#[test]
fn the_table_agrees_with_the_network_that_is_built() {
    for config in [small(), ConvNetConfig { widths: vec![2], ..small() }, ConvNetConfig { classes: 101, ..small() }] {
        let device = Device::flex();
        let model = config.init(&device).unwrap();
        let summary = config.summary().unwrap();
        // Burn counts the running mean and variance of batch norm too.
        let running: usize = config.widths.iter().map(|width| 2 * width).sum();
        assert_eq!((model.num_params() - running) as u64, summary.parameters(), "{config:?}");
        let logits = model.forward(batch(&config, 2, &device).images);
        assert_eq!(logits.dims(), [2, config.classes]);
    }
}

#[test]
fn predictions_are_probabilities() {
    let (config, device) = (small(), Device::flex());
    let model = config.init(&device).unwrap();
    let sums: Vec<f32> = model.predict(batch(&config, 4, &device).images).sum_dim(1).into_data().try_to_vec().unwrap();
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{sums:?}");
}

#[test]
fn a_step_gives_every_parameter_a_gradient_and_a_finite_loss() {
    let (config, device) = (small(), Device::flex().autodiff());
    let model = config.init(&device).unwrap();
    let output = TrainStep::step(&model, batch(&config, 6, &device));
    let loss: f32 = output.item.loss.into_scalar();
    assert!(loss.is_finite() && loss > 0.0, "{loss}");
    // Two blocks with a kernel, a gain and an offset each, and two linear layers.
    let grads: GradientsParams = output.grads;
    assert_eq!(grads.len(), 2 * 3 + 2);
}

#[test]
fn only_the_first_block_rectifies() {
    // Past the first block an output may be negative: all-positive outputs would mean a second ReLU.
    let (config, device) = (small(), Device::flex());
    let model = config.init(&device).unwrap();
    let first = model.forward_block(0, batch(&config, 4, &device).images);
    let second = model.forward_block(1, first.clone());
    let least = |x: Tensor<4>| -> f32 { x.min().into_scalar() };
    assert!(least(first) >= 0.0);
    assert!(least(second) < 0.0);
}

#[test]
fn scaling_keeps_at_least_one_unit_and_the_first_blocks() {
    let full = ConvNetConfig::default();
    let cases = [
        (ModelScale { width: 0.25, depth: None, hidden: 0.25 }, vec![16, 32, 64, 128], 128),
        (ModelScale { width: 1.0, depth: Some(2), hidden: 1.0 }, vec![64, 128], 512),
        (ModelScale { width: 0.001, depth: Some(9), hidden: 0.001 }, vec![1, 1, 1, 1], 1),
    ];
    for (scale, widths, hidden) in cases {
        let scaled = full.scaled(&scale);
        assert_eq!((scaled.widths, scaled.hidden), (widths, hidden), "{scale:?}");
    }
}

#[test]
fn a_device_that_cannot_train_the_big_layer_is_named_with_its_limit() {
    let webgpu = DeviceLimits { workgroups_per_dimension: Some(65_535), ..DeviceLimits::none() };
    let error = ConvNetConfig::default().check_trainable(&webgpu, 4).unwrap_err().to_string();
    assert!(error.contains("Linear(3612672, 512)"), "{error}");
    assert!(error.contains("112896 workgroups") && error.contains("65535"), "{error}");

    let small_buffers = DeviceLimits { binding_bytes: Some(1 << 27), ..DeviceLimits::none() };
    let error = ConvNetConfig::default().check_trainable(&small_buffers, 4).unwrap_err().to_string();
    assert!(error.contains("storage binding") && error.contains("134217728"), "{error}");

    small().check_trainable(&webgpu, 4).unwrap();
    ConvNetConfig::default().check_trainable(&DeviceLimits::none(), 4).unwrap();
}

#[test]
fn a_network_that_makes_no_sense_is_refused_with_the_value() {
    let cases = [
        (ConvNetConfig { hidden: 0, ..small() }, "`hidden` is 0"),
        (ConvNetConfig { widths: vec![4, 0], ..small() }, "the width of block 2 is 0"),
        (ConvNetConfig { widths: vec![], ..small() }, "number of blocks is 0"),
        (ConvNetConfig { input: [3, 3, 9], ..small() }, "3x9 input is used up by block 1 of 2"),
        (ConvNetConfig { input: [3, 5, 5], ..small() }, "5x5 input is used up by block 2 of 2"),
    ];
    for (config, expected) in cases {
        let error = config.init(&Device::flex()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn sizes_that_overflow_are_refused_by_name_and_never_panic() {
    let huge = usize::MAX;
    let cases = [
        (ConvNetConfig { hidden: huge, ..small() }, "linear 1"),
        (ConvNetConfig { classes: huge, ..small() }, "linear 2"),
        (ConvNetConfig { widths: vec![4, huge], ..small() }, "block 2"),
        (ConvNetConfig { widths: vec![huge / 2, 4], ..small() }, "block 1"),
        (ConvNetConfig { input: [huge, 14, 13], ..small() }, "block 1"),
        (ConvNetConfig { input: [3, huge, huge], ..small() }, "block 1"),
    ];
    for (config, layer) in cases {
        let error = config.summary().unwrap_err().to_string();
        assert!(error.contains(layer) && error.contains("use a smaller"), "{error}");
        assert_eq!(config.init(&Device::flex()).unwrap_err().to_string(), error);
        // A device without limits has nothing to say; one with limits names a layer.
        let _ = config.check_trainable(&DeviceLimits::none(), 4);
    }
    let limits = DeviceLimits { buffer_bytes: Some(1 << 30), ..DeviceLimits::none() };
    let error = limits.check_linear(huge, huge, 4).unwrap_err().to_string();
    assert!(error.contains("bytes in one buffer"), "{error}");
}
