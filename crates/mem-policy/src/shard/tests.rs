use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Tensor};

use super::*;

const INPUTS: usize = 37;
const OUTPUTS: usize = 6;

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.inner().into_data().try_to_vec().unwrap()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// A whole layer, and the same one in shards.
fn pair(shards: usize, axis: ShardAxis, device: &Device) -> (Linear, ShardedLinear) {
    device.seed(1);
    let whole = LinearConfig::new(INPUTS, OUTPUTS).init(device);
    let sharded = ShardedLinearConfig::new(INPUTS, OUTPUTS).with_shards(shards).with_axis(axis).init(device);
    let record = whole.clone().into_record();
    (whole, OnePiece::new(sharded, &Device::flex()).load_record(record).into_inner())
}

#[test]
fn outputs_and_gradients_are_those_of_the_whole_layer() {
    let device = Device::flex().autodiff();
    for (shards, axis) in [(1, ShardAxis::Input), (4, ShardAxis::Input), (37, ShardAxis::Input), (4, ShardAxis::Output)]
    {
        let (whole, sharded) = pair(shards, axis, &device);
        assert_eq!(sharded.shards(), shards);
        let x = Tensor::<3>::random([2, 5, INPUTS], Distribution::Default, &device).require_grad();
        let x2 = x.clone().detach().require_grad();
        let (y, y2) = (whole.forward(x.clone()), sharded.forward(x2.clone()));
        assert!(worst(&values(y.clone()), &values(y2.clone())) < 1e-5, "{shards} {axis:?}");
        let (mut g, mut g2) = (y.square().mean().backward(), y2.square().mean().backward());
        let of_input = worst(&values(x.grad_remove(&mut g).unwrap()), &values(x2.grad_remove(&mut g2).unwrap()));
        assert!(of_input < 1e-6, "{of_input}");
        let g = GradientsParams::from_grads(g, &whole);
        let g2 = GradientsParams::from_grads(g2, &sharded);
        let bias =
            |g: &GradientsParams, b: &Option<Param<Tensor<1>>>| values(g.get::<1>(b.as_ref().unwrap().id).unwrap());
        assert!(worst(&bias(&g, &whole.bias), &bias(&g2, &sharded.bias)) < 1e-6);
        let (list, along) = match axis {
            ShardAxis::Input => (&sharded.input_shards, 0),
            ShardAxis::Output => (&sharded.output_shards, 1),
        };
        let joined = Tensor::cat(list.iter().map(|w| g2.get::<2>(w.id).unwrap()).collect(), along);
        assert!(worst(&values(g.get::<2>(whole.weight.id).unwrap()), &values(joined)) < 1e-5);
    }
}

#[test]
fn the_same_seed_draws_the_weights_of_the_whole_layer() {
    // On the CPU numbers are drawn in order, and shards along the input are the weight's rows in order.
    let device = Device::flex();
    device.seed(7);
    let whole = values(LinearConfig::new(INPUTS, OUTPUTS).with_bias(false).init(&device).weight.val());
    device.seed(7);
    let sharded = ShardedLinearConfig::new(INPUTS, OUTPUTS).with_bias(false).with_shards(5).init(&device);
    let joined: Vec<f32> = sharded.input_shards.iter().flat_map(|w| values(w.val())).collect();
    assert_eq!(whole, joined);
}

#[test]
fn weights_are_drawn_by_the_fan_of_the_whole_layer() {
    let device = Device::flex();
    let bound = 1.0 / (INPUTS as f32).sqrt();
    for axis in [ShardAxis::Input, ShardAxis::Output] {
        let layer = ShardedLinearConfig::new(INPUTS, OUTPUTS).with_shards(6).with_axis(axis).init(&device);
        let all: Vec<f32> =
            layer.input_shards.iter().chain(&layer.output_shards).flat_map(|w| values(w.val())).collect();
        let largest = all.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        assert!(largest <= bound && largest > 0.9 * bound, "{largest} and {bound}");
    }
}

#[test]
fn records_interchange_with_the_whole_layer_and_with_other_shards() {
    #[derive(Module, Debug)]
    struct Whole {
        first: Linear,
        second: Linear,
    }
    #[derive(Module, Debug)]
    struct Sharded {
        first: ShardedLinear,
        second: Linear,
    }
    let device = Device::flex();
    let whole = Whole { first: LinearConfig::new(9, 4).init(&device), second: LinearConfig::new(4, 2).init(&device) };
    let empty = |shards, axis| Sharded {
        first: ShardedLinearConfig::new(9, 4).with_shards(shards).with_axis(axis).init(&device),
        second: LinearConfig::new(4, 2).init(&device),
    };
    let into = |model: Sharded, record| OnePiece::new(model, &device).load_record(record).into_inner();
    let out_of = |model: Sharded| OnePiece::new(model, &device).into_record();
    let three = into(empty(3, ShardAxis::Input), whole.clone().into_record());
    let two = into(empty(2, ShardAxis::Output), out_of(three));
    let bytes = out_of(two).into_bytes().unwrap();
    let back = Whole { first: LinearConfig::new(9, 4).init(&device), second: LinearConfig::new(4, 2).init(&device) }
        .load_record(burn::store::ModuleRecord::from_bytes(bytes).unwrap());
    assert_eq!(values(back.first.weight.val()), values(whole.first.weight.val()));
    assert_eq!(values(back.first.bias.unwrap().val()), values(whole.first.bias.unwrap().val()));
    assert_eq!(values(back.second.weight.val()), values(whole.second.weight.val()));
}

#[test]
fn a_record_of_another_size_is_refused() {
    let device = Device::flex();
    let record = LinearConfig::new(8, 4).init(&device).into_record();
    let sharded = ShardedLinearConfig::new(9, 4).with_shards(3).init(&device);
    let error = OnePiece::new(sharded, &device).try_load_record(record).unwrap_err().to_string();
    assert!(error.contains("weight") && error.contains("shape mismatch"), "{error}");
}

#[test]
fn the_least_number_of_shards_that_passes_no_limit_is_chosen() {
    let h200 = DeviceLimits {
        workgroups_per_dimension: Some(65_535),
        buffer_bytes: Some(4 << 30),
        binding_bytes: Some(2 << 30),
    };
    let software = DeviceLimits { binding_bytes: Some(128 << 20), ..h200 };
    let big = ShardedLinearConfig::new(3_612_672, 512);
    // 7,398,752,256 bytes: 3.4 times 2 GiB.
    assert_eq!(big.clone().for_device(&h200, 4, None).shards, 4);
    assert_eq!(big.clone().for_device(&h200, 2, None).shards, 2);
    assert_eq!(big.clone().for_device(&h200, 4, Some(256 << 20)).shards, 28);
    assert_eq!(big.clone().for_device(&software, 4, None).shards, 56);
    assert_eq!(big.clone().with_axis(ShardAxis::Output).for_device(&software, 4, None).shards, 512);
    assert_eq!(big.for_device(&DeviceLimits::none(), 4, None).shards, 1);
    assert_eq!(ShardedLinearConfig::new(100, 10).for_device(&h200, 4, None).shards, 1);
}

#[test]
fn sizes_whose_product_passes_64_bits_are_no_overflow() {
    let limits = DeviceLimits { buffer_bytes: Some(1 << 30), ..DeviceLimits::none() };
    assert!(limits.exceeded_by(usize::MAX, usize::MAX, 4).is_some());
}
