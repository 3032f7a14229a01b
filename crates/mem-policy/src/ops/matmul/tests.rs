use burn::tensor::{Device, Distribution};

use super::*;

fn values(x: Tensor<2>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

/// The product, and the gradients of a loss that weighs its elements differently, of the operands that are `tracked`.
fn trained(
    multiply: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2>,
    operands: &[Tensor<2>; 2],
    tracked: [bool; 2],
) -> Vec<Option<Vec<f32>>> {
    let [lhs, rhs] = operands.clone().map(|x| x.clone());
    let lhs = if tracked[0] { lhs.require_grad() } else { lhs };
    let rhs = if tracked[1] { rhs.require_grad() } else { rhs };
    let y = multiply(lhs.clone(), rhs.clone());
    let gradients = (y.clone() * y.clone()).sum().backward();
    vec![Some(values(y)), lhs.grad(&gradients).map(values), rhs.grad(&gradients).map(values)]
}

#[test]
fn product_and_gradients_are_those_of_matmul_bit_for_bit() {
    let device = Device::flex().autodiff();
    let drawn = |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Uniform(-1.0, 1.0), &device);
    let operands = [drawn([3, 17]), drawn([17, 5])];
    for tracked in [[true, true], [true, false], [false, true]] {
        let expected = trained(Tensor::matmul, &operands, tracked);
        assert_eq!(trained(matmul_unfused, &operands, tracked), expected);
        assert_eq!([expected[1].is_some(), expected[2].is_some()], tracked);
    }
}

#[test]
#[should_panic(expected = "inner dimensions")]
fn shapes_that_do_not_fit_are_refused() {
    let device = Device::flex();
    let _ = matmul_unfused(Tensor::zeros([2, 3], &device), Tensor::zeros([4, 2], &device));
}

#[test]
fn only_small_results_of_long_sums_are_split_into_equal_parts() {
    for ([rows, inner, columns], expected) in [
        ([8, 32_256, 512], 126),  // a shard of the mission's network
        ([8, 512, 101], 1),       // too short
        ([8, 32_257, 512], 1),    // a prime
        ([4096, 32_256, 512], 1), // enough of a result
        ([128, 32_256, 512], 32), // 8 MiB in 32-bit floats
        ([0, 32_256, 512], 1),
    ] {
        assert_eq!(parts(rows, inner, columns), expected, "{rows} x {inner} by {inner} x {columns}");
    }
}
