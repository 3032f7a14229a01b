use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, FloatDType, Tensor};

use super::*;

fn model(device: &Device) -> Linear {
    device.seed(2);
    let model = LinearConfig::new(6, 3).init(device);
    let _ = model.weight.val();
    model
}

fn gradients(model: &Linear, scaler: &LossScaler, factor: f64) -> GradientsParams {
    let device = model.devices()[0].clone();
    device.seed(4);
    let x = Tensor::<2>::random([5, 6], Distribution::Default, &device);
    let loss = model.forward(x).square().mean() * factor;
    GradientsParams::from_grads(scaler.scale(loss).backward(), model)
}

fn weight(gradients: &GradientsParams, model: &Linear) -> Vec<f32> {
    gradients.get::<2>(model.weight.id).unwrap().into_data().try_to_vec().unwrap()
}

#[test]
fn a_power_of_two_as_scale_changes_no_bit_of_the_gradients() {
    let device = Device::flex().autodiff();
    let model = model(&device);
    let one = LossScaler::new(LossScalerConfig { initial: 1.0, ..LossScalerConfig::default() });
    let expected = weight(&gradients(&model, &one, 1.0), &model);
    let mut scaler = LossScaler::new(LossScalerConfig::default());
    let scaled = gradients(&model, &scaler, 1.0);
    let unscaled = scaler.unscale(&model, scaled).unwrap();
    assert_eq!(weight(&unscaled, &model), expected);
}

#[test]
fn the_scale_grows_after_good_steps_and_shrinks_after_a_bad_one_that_is_skipped() {
    let device = Device::flex().autodiff();
    let model = model(&device);
    let config = LossScalerConfig { initial: 8.0, interval: 2, ..LossScalerConfig::default() };
    let mut scaler = LossScaler::new(config);
    let mut step = |factor: f64| {
        let gradients = gradients(&model, &scaler, factor);
        let applied = scaler.unscale(&model, gradients).is_some();
        scaler.step_done();
        (applied, scaler.current(), scaler.skipped())
    };
    assert_eq!(step(1.0), (true, 8.0, 0));
    assert_eq!(step(1.0), (true, 16.0, 0));
    assert_eq!(step(f64::INFINITY), (false, 8.0, 1));
    assert_eq!(step(f64::NAN), (false, 4.0, 2));
    assert_eq!(step(1.0), (true, 4.0, 2));
    assert_eq!(step(1.0), (true, 8.0, 2));
}

#[test]
fn a_step_that_was_applied_in_part_is_counted_apart() {
    let device = Device::flex().autodiff();
    let model = model(&device);
    let mut scaler = LossScaler::new(LossScalerConfig::default());
    let (good, bad) = (gradients(&model, &scaler, 1.0), gradients(&model, &scaler, f64::INFINITY));
    assert!(scaler.unscale(&model, good).is_some());
    assert!(scaler.unscale(&model, bad).is_none());
    scaler.step_done();
    assert_eq!((scaler.skipped(), scaler.partly_skipped()), (0, 1));
}

#[test]
fn a_weight_follows_its_input_and_its_gradient_stays_in_32_bits() {
    let device = Device::flex().autodiff();
    let model = model(&device);
    let x = Tensor::<2>::ones([2, 6], &device).cast(FloatDType::F16);
    let y = x.clone().matmul(like(model.weight.val(), &x));
    assert_eq!(y.dtype(), x.dtype());
    let loss = in_default_dtype(y).square().mean();
    let gradients = GradientsParams::from_grads(loss.backward(), &model);
    let gradient = gradients.get::<2>(model.weight.id).unwrap();
    assert_eq!(gradient.dtype(), model.weight.val().dtype());
}
