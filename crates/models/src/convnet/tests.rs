use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Int, Tensor};
use burn::train::TrainStep;
use mem_policy::ModelScale;

use super::*;
use crate::DeviceLimits;

fn small() -> ConvNetConfig {
    ConvNetConfig { input: [3, 14, 13], widths: vec![4, 6], hidden: 5, classes: 3, ..ConvNetConfig::default() }
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

#[cfg(feature = "ops")]
#[test]
fn convolutions_by_matrix_multiplication_train_the_same_network() {
    let device = Device::flex().autodiff();
    let config = ConvNetConfig { input: [3, 16, 16], widths: vec![16, 8], hidden: 4, classes: 3, ..small() };
    let images = Tensor::<4>::random([3, 3, 16, 16], Distribution::Uniform(-1.0, 1.0), &device);
    let values = |x: Tensor<1>| x.into_data().try_to_vec::<f32>().unwrap();
    let run = |conv_workspace| {
        device.seed(7);
        let network = ConvNetConfig { conv_workspace, ..config.clone() }.init(&device).unwrap();
        assert_eq!(network.blocks[1].workspace, conv_workspace);
        let images = images.clone().require_grad();
        let logits = network.forward(images.clone());
        let gradients = (logits.clone() * logits.clone()).sum().backward();
        [values(logits.flatten(0, 1)), values(images.grad(&gradients).unwrap().flatten(0, 3))]
    };
    // The second block has 16 input channels: a sample's patches take 11 x 11 x 144 x 4 bytes.
    for (expected, got) in run(None).iter().zip(run(Some(11 * 11 * 144 * 4))) {
        let worst = expected.iter().zip(&got).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "they differ by {worst}");
    }
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

mod segments {
    use burn::module::{ModuleVisitor, Param};
    use burn::tensor::FloatDType;
    use mem_policy::segment::{Activations, SegmentPlan, Segmented, SegmentedBackward, SegmentedStep};

    use super::*;

    fn values(model: &ConvNet, gradients: &GradientsParams) -> Vec<f32> {
        struct Values<'a>(&'a GradientsParams, Vec<f32>);
        impl ModuleVisitor for Values<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(gradient) = self.0.get::<D>(param.id) {
                    self.1.extend(gradient.into_data().try_to_vec::<f32>().unwrap());
                }
            }
        }
        let mut values = Values(gradients, Vec::new());
        model.visit(&mut values);
        values.1
    }

    fn drawn(config: &ConvNetConfig, device: &Device) -> ConvNet {
        device.seed(9);
        let model = config.init(device).unwrap();
        // Parameters are drawn when they are first read.
        let _ = model.valid();
        model
    }

    fn images(config: &ConvNetConfig, device: &Device) -> ClassificationBatch {
        device.seed(10);
        batch(config, 6, device)
    }

    /// Gradients by segments, handed over group by group.
    fn by_segments(model: ConvNet, plan: SegmentPlan, batch: ClassificationBatch) -> Vec<f32> {
        let mut all = GradientsParams::new();
        let input = model.enter(&batch);
        let (model, ()) = SegmentedBackward::new(plan).run(
            model,
            input,
            |model, output| (model.leave(output, batch).0, ()),
            |model, gradients| {
                struct Move<'a>(GradientsParams, &'a mut GradientsParams);
                impl ModuleVisitor for Move<'_> {
                    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                        if let Some(gradient) = self.0.remove::<D>(param.id) {
                            self.1.register::<D>(param.id, gradient);
                        }
                    }
                }
                model.visit(&mut Move(gradients, &mut all));
                model
            },
        );
        values(&model, &all)
    }

    #[test]
    fn in_one_piece_the_gradients_are_those_of_the_plain_step_bit_for_bit() {
        let device = Device::flex().autodiff();
        let config = small();
        let plain = {
            let model = drawn(&config, &device);
            let output = TrainStep::step(&model, images(&config, &device));
            values(&model, &output.grads)
        };
        let model = drawn(&config, &device);
        assert_eq!(model.segments(), 3 * 2 + 3);
        for plan in [SegmentPlan::each(&model), SegmentPlan::at(&model, &[3, 6]).unwrap()] {
            let segments = by_segments(drawn(&config, &device), plan, images(&config, &device));
            assert_eq!(segments, plain);
        }
    }

    #[test]
    fn in_shards_the_gradients_are_the_same_to_rounding() {
        let device = Device::flex().autodiff();
        let config = small();
        let plain = {
            let model = drawn(&config, &device);
            let output = TrainStep::step(&model, images(&config, &device));
            values(&model, &output.grads)
        };
        for (shards, shard_axis, segments) in
            [(3, mem_policy::shard::ShardAxis::Input, 11), (1, mem_policy::shard::ShardAxis::Output, 9)]
        {
            let config = ConvNetConfig { shards, shard_axis, ..config.clone() };
            let model = drawn(&config, &device);
            assert_eq!(model.segments(), segments);
            let plan = SegmentPlan::each(&model);
            let sharded = by_segments(drawn(&config, &device), plan, images(&config, &device));
            assert_eq!(sharded.len(), plain.len());
            let worst = sharded.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-6, "{worst}");
        }
    }

    #[test]
    fn shards_are_handed_over_one_at_a_time_however_segments_are_grouped() {
        let device = Device::flex().autodiff();
        let config = ConvNetConfig { shards: 3, ..small() };
        let model = drawn(&config, &device);
        let costs = model.costs(&model.enter(&images(&config, &device))).unwrap();
        let all = costs.iter().map(|cost| cost.graph_bytes).sum::<u64>();
        for plan in [
            SegmentPlan::at(&model, &[3, 6]).unwrap(),
            SegmentPlan::at(&model, &[3]).unwrap(),
            SegmentPlan::each(&model),
            SegmentPlan::within_budget(&costs, all * 8 / 10).unwrap(),
        ] {
            // Segments 7 to 9 are the shards.
            for shard in 7..10 {
                assert!(plan.groups().iter().any(|group| group.segments == (shard..shard + 1)), "{plan:?}");
            }
        }
    }

    #[test]
    fn convolutions_on_slices_of_the_batch_give_the_gradients_of_the_whole() {
        let device = Device::flex().autodiff();
        let config = small();
        let model = drawn(&config, &device);
        let whole = by_segments(drawn(&config, &device), SegmentPlan::each(&model), images(&config, &device));
        let plan = SegmentPlan::each(&model).sliced(&model, &(0..1), 3, false).unwrap();
        let plan = plan.sliced(&model, &(2..3), 2, false).unwrap();
        let sliced = by_segments(model, plan, images(&config, &device));
        let worst = whole.iter().zip(&sliced).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-6, "{worst}");
    }

    #[test]
    fn in_16_bits_the_network_computes_in_16_and_its_gradients_are_in_32() {
        let device = Device::flex().autodiff();
        let config = ConvNetConfig { shards: 2, ..small() };
        let model = drawn(&config, &device);
        let input: Activations = model.enter(&images(&config, &device)).cast(FloatDType::F16);
        let output = (0..model.segments()).fold(input, |x, index| model.forward_segment(index, x));
        let logits = output.only::<2>();
        assert_eq!(logits.dtype().size(), 2);
        let exact = model.forward(images(&config, &device).images);
        let worst: f32 = (logits.clone().cast(FloatDType::F32) - exact).abs().max().into_scalar();
        assert!(worst > 0.0 && worst < 0.02, "{worst}");
        let output = ConvNet::judge(logits, images(&config, &device).targets);
        let gradients = GradientsParams::from_grads(output.loss.backward(), &model);
        assert_eq!(gradients.len(), 2 * 3 + 2 + 1);
        assert!(values(&model, &gradients).iter().all(|g| g.is_finite()));
    }

    #[test]
    fn costs_are_known_for_every_segment_and_a_budget_groups_by_them() {
        let device = Device::flex();
        let config = ConvNetConfig { shards: 3, ..small() };
        let model = config.init(&device).unwrap();
        let input = model.enter(&images(&config, &device));
        let costs = model.costs(&input).unwrap();
        assert_eq!(costs.len(), model.segments());
        // What the next segment takes is what the one before hands on.
        let mut x = input;
        for (index, cost) in costs.iter().enumerate() {
            assert_eq!(x.bytes(), cost.input_bytes, "segment {index}");
            x = model.forward_segment(index, x);
        }
        let all: u64 = costs.iter().map(|cost| cost.graph_bytes).sum();
        let kept = SegmentPlan::within_budget(&costs, all).unwrap();
        assert!(kept.groups().iter().all(|group| group.keep));
        let tight = SegmentPlan::within_budget(&costs, all * 7 / 10).unwrap();
        assert!(tight.groups().iter().any(|group| !group.keep));
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
    assert_eq!(limits.exceeded_by(huge, huge, 4).map(|passed| passed.what), Some("bytes in one buffer"));
}
