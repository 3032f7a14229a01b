use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Tensor};

use super::MeanGradients;

const FEATURES: usize = 7;

fn gradients(model: &Linear, x: Tensor<2>) -> GradientsParams {
    let loss = model.forward(x).powf_scalar(2.0).mean();
    GradientsParams::from_grads(loss.backward(), model)
}

fn weight_gradient(gradients: &GradientsParams, model: &Linear) -> Vec<f32> {
    gradients.get::<2>(model.weight.id).unwrap().into_data().try_to_vec::<f32>().unwrap()
}

/// The largest difference between the accumulated gradient of `parts` and the gradient of all samples at once.
fn difference(parts: &[usize]) -> f32 {
    let device = Device::flex().autodiff();
    device.seed(1);
    let model = LinearConfig::new(FEATURES, 5).init(&device);
    let samples = parts.iter().sum();
    let x = Tensor::<2>::random([samples, FEATURES], Distribution::Default, &device);
    let whole = weight_gradient(&gradients(&model, x.clone()), &model);

    let mut window = MeanGradients::new();
    let mut start = 0;
    for part in parts {
        window.add(&model, gradients(&model, x.clone().narrow(0, start, *part)), *part);
        start += part;
    }
    assert_eq!(window.micro_batches(), parts.len());
    let mean = weight_gradient(&window.take(&model), &model);
    assert_eq!(window.micro_batches(), 0, "the window is empty after taking");
    assert!(whole.iter().any(|g| g.abs() > 1e-3), "a gradient that can differ");
    whole.iter().zip(&mean).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn k_micro_batches_give_the_gradient_of_the_big_batch() {
    for parts in [vec![8, 8], vec![4; 4], vec![1; 16]] {
        let difference = difference(&parts);
        assert!(difference < 1e-5, "{parts:?}: {difference}");
    }
}

#[test]
fn a_smaller_last_micro_batch_counts_for_its_samples() {
    for parts in [vec![8, 8, 3], vec![5, 1], vec![2, 7, 4]] {
        let difference = difference(&parts);
        assert!(difference < 1e-5, "{parts:?}: {difference}");
    }
}

#[test]
#[expect(clippy::float_cmp, reason = "bit for bit is the claim")]
fn a_single_micro_batch_passes_bit_for_bit() {
    assert_eq!(difference(&[16]), 0.0);
}
