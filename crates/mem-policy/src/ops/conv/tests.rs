use burn::tensor::module::conv2d;
use burn::tensor::{Device, Distribution};

use super::*;

fn drawn<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), device)
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_to_vec().unwrap()
}

fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-4, "they differ by {worst}");
}

/// Output and both gradients of `conv`, for a loss that weighs every output differently.
fn trained(conv: impl Fn(Tensor<4>, Tensor<4>) -> Tensor<4>, x: &Tensor<4>, weight: &Tensor<4>) -> [Vec<f32>; 3] {
    let (x, weight) = (x.clone().require_grad(), weight.clone().require_grad());
    let y = conv(x.clone(), weight.clone());
    let gradients = (y.clone() * y.clone()).sum().backward();
    [values(y), values(x.grad(&gradients).unwrap()), values(weight.grad(&gradients).unwrap())]
}

#[test]
fn outputs_and_gradients_are_those_of_burns_convolution() {
    let device = Device::flex().autodiff();
    let x = drawn([5, 3, 9, 8], &device);
    let weight = drawn([4, 3, 3, 2], &device);
    for options in [
        ConvOptions::new([1, 1], [0, 0], [1, 1], 1),
        ConvOptions::new([2, 1], [1, 1], [1, 1], 1),
        ConvOptions::new([2, 3], [2, 0], [2, 1], 1),
    ] {
        let expected = trained(|x, w| conv2d(x, w, None, options.clone()), &x, &weight);
        // One sample, two samples, and the whole batch at a time.
        for workspace in [1, 2 * 8 * 8 * 18 * 4, u64::MAX] {
            let got = trained(|x, w| conv2d_by_matmul(x, w, options.clone(), workspace), &x, &weight);
            for (got, expected) in got.iter().zip(&expected) {
                close(got, expected);
            }
        }
    }
}

#[test]
fn without_a_graph_the_same_comes_out() {
    let device = Device::flex();
    let (x, weight) = (drawn([3, 2, 5, 5], &device), drawn([4, 2, 3, 3], &device));
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
    let y = conv2d_by_matmul(x.clone(), weight.clone(), options.clone(), 1);
    assert_eq!(y.dims(), [3, 4, 3, 3]);
    close(&values(y), &values(conv2d(x, weight, None, options)));
}

#[test]
fn the_batch_is_cut_into_equal_parts_that_fit() {
    let device = Device::flex();
    let parts = |batch: usize, workspace: usize| {
        let x = Tensor::<4>::zeros([batch, 2, 5, 5], &device).try_into_primitive::<burn::backend::Flex>().unwrap();
        let weight = Tensor::<4>::zeros([4, 2, 3, 3], &device).try_into_primitive::<burn::backend::Flex>().unwrap();
        let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
        let chunks = chunks::<burn::backend::Flex>(&x, &weight, &options, workspace);
        chunks.iter().map(ExactSizeIterator::len).collect::<Vec<_>>()
    };
    // A sample's patches take 3 x 3 x 18 x 4 = 648 bytes.
    assert_eq!(parts(8, 5 * 648), [4, 4]);
    assert_eq!(parts(8, 8 * 648), [8]);
    assert_eq!(parts(3, 0), [1, 1, 1]);
    assert_eq!(parts(7, 3 * 648 + 647), [3, 3, 1]);
}

#[test]
#[should_panic(expected = "no groups")]
fn groups_are_refused() {
    let device = Device::flex();
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 2);
    let _ = conv2d_by_matmul(drawn([1, 2, 4, 4], &device), drawn([2, 1, 3, 3], &device), options, 1);
}
