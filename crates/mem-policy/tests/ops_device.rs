//! The operations of `mem_policy::ops` on whatever adapter the machine has, software ones included, against Burn's own on
//! the CPU.
//!
//! Without an adapter the test is skipped and says so; with `MPS_PROBE_REQUIRE_DEVICE` set, that is a failure.
#![cfg(feature = "ops")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Distribution, Tensor};
use mem_policy::ops::{conv2d_by_matmul, matmul_unfused, supported};

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

fn close(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    let worst = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-3, "they differ by {worst}");
}

/// Result and gradients of `operation` on `device`.
fn trained<const D: usize>(
    operation: impl Fn(Tensor<D>, Tensor<D>) -> Tensor<D>,
    [a, b]: [Tensor<D>; 2],
    device: &Device,
) -> [Vec<f32>; 3] {
    let device = device.clone().autodiff();
    let (a, b) = (a.to_device(&device).require_grad(), b.to_device(&device).require_grad());
    let y = operation(a.clone(), b.clone());
    let gradients = (y.clone() * y.clone()).sum().backward();
    [values(y), values(a.grad(&gradients).unwrap()), values(b.grad(&gradients).unwrap())]
}

#[test]
fn results_and_gradients_on_the_device_are_burns_on_the_cpu_to_rounding() {
    let Some(device) = common::open("operations") else {
        return;
    };
    let cpu = Device::flex();
    let host = cpu.clone().autodiff();
    let drawn = |shape: [usize; 4]| Tensor::<4>::random(shape, Distribution::Uniform(-1.0, 1.0), &host);
    let operands = [drawn([3, 4, 8, 7]), drawn([5, 4, 3, 3])];
    assert!(supported(&Tensor::<1>::zeros([1], &device)) && supported(&operands[0]));
    for options in [ConvOptions::new([1, 1], [0, 0], [1, 1], 1), ConvOptions::new([2, 1], [1, 1], [1, 1], 1)] {
        let expected = trained(|x, w| conv2d(x, w, None, options.clone()), operands.clone(), &cpu);
        // A sample at a time, and all at once.
        for workspace in [1, u64::MAX] {
            let convolve = |x, w| conv2d_by_matmul(x, w, options.clone(), workspace);
            for (got, expected) in trained(convolve, operands.clone(), &device).iter().zip(&expected) {
                close(got, expected);
            }
        }
    }
    let drawn = |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Uniform(-1.0, 1.0), &host);
    // Whole, and split along the inner dimension.
    for inner in [40, 16 * 256] {
        let operands = [drawn([3, inner]), drawn([inner, 9])];
        let expected = trained(Tensor::matmul, operands.clone(), &cpu);
        // What follows in the same queue reads the result, as fused operations would.
        for (got, expected) in trained(|a, b| matmul_unfused(a, b) + 0.0, operands, &device).iter().zip(&expected) {
            close(got, expected);
        }
    }
}
