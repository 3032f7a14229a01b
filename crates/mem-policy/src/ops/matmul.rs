//! A matrix product that no other operation is fused into, and that is split where its result is small.

use std::ops::RangeInclusive;

use burn::backend::autodiff::{
    NodeId,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::ops::FloatTensorOps;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn::tensor::{Shape, Tensor};
use burn_cubecl::CubeBackend;

/// `lhs rhs` for `[rows, inner]` and `[inner, columns]`, kept out of fusion in the forward pass, and on a GPU split along
/// `inner` where the result is small.
///
/// Burn's kernels give each part of the result to one workgroup, which goes through all of `inner`. With few rows and many
/// `inner` a handful of workgroups does everything: 8 x 32,256 by 32,256 x 512 in 32-bit floats takes 4.7 ms on an H200
/// (Vulkan) by the fastest of them. So there the product becomes a batch of products of parts of `inner`, whose results are
/// summed, known as split-k; of the sum in another order only the rounding differs. With 16-bit floats each part's result is
/// rounded to 16 bits before the sum. The parts' results together take 8 MiB at most.
///
/// # Panics
///
/// If the shapes do not fit, or on a backend that the [module](crate::ops) does not name.
#[must_use]
pub fn matmul_unfused(lhs: Tensor<2>, rhs: Tensor<2>) -> Tensor<2> {
    assert_eq!(lhs.dims()[1], rhs.dims()[0], "the inner dimensions of a matrix product");
    Tensor::from_dispatch(Dispatch::unfused_matmul(lhs.into_dispatch(), rhs.into_dispatch()))
}

/// The backends that [`matmul_unfused`] runs on.
#[backend_extension(Cube, Flex, Autodiff, Fusion)]
pub trait UnfusedMatmul: Backend {
    /// See [`matmul_unfused`].
    #[fusion(dtype = lhs, shape = product_shape(lhs, rhs))]
    fn unfused_matmul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;
}

fn product_shape(lhs: &Shape, rhs: &Shape) -> Shape {
    Shape::new([lhs[0], rhs[1]])
}

impl UnfusedMatmul for CubeBackend {
    fn unfused_matmul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        let (lhs_shape, rhs_shape) = (lhs.shape(), rhs.shape());
        let [rows, inner, columns] = [lhs_shape[0], lhs_shape[1], rhs_shape[1]];
        let parts = parts(rows, inner, columns);
        if parts < 2 {
            return Self::float_matmul(lhs, rhs);
        }
        let lhs = Self::float_reshape(lhs, Shape::new([rows, parts, inner / parts]));
        let rhs = Self::float_reshape(rhs, Shape::new([parts, inner / parts, columns]));
        let products = Self::float_matmul(Self::float_swap_dims(lhs, 0, 1), rhs);
        Self::float_reshape(Self::float_sum_dim(products, 0), Shape::new([rows, columns]))
    }
}

/// Into how many equal parts `inner` is split; 1 where the result is large enough to keep a GPU busy, or `inner` has no
/// divisor that would do.
fn parts(rows: usize, inner: usize, columns: usize) -> usize {
    /// Below this many elements of the result, too few workgroups have work.
    const SMALL_RESULT: usize = 1 << 16;
    /// Shorter parts are not worth their sum.
    const PART: usize = 256;
    /// Fewer parts do not pay for the kernel that sums them, more do not make it faster.
    const PARTS: RangeInclusive<usize> = 8..=128;
    /// What the parts' results may have together.
    const ELEMENTS: usize = 1 << 21;

    let result = rows.saturating_mul(columns);
    if result == 0 || result > SMALL_RESULT {
        return 1;
    }
    let most = (inner / PART).min(*PARTS.end()).min(ELEMENTS / result);
    (*PARTS.start()..=most).rev().find(|&parts| inner.is_multiple_of(parts)).unwrap_or(1)
}

impl UnfusedMatmul for burn::backend::Flex {
    fn unfused_matmul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(lhs, rhs)
    }
}

impl<B: UnfusedMatmul, C: CheckpointStrategy> UnfusedMatmul for Autodiff<B, C> {
    fn unfused_matmul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Product;

        impl<B: UnfusedMatmul> Backward<B, 2> for Product {
            // An operand is kept only if the other one's gradient is wanted.
            type State = (Option<NodeId>, Option<NodeId>);

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let [of_lhs, of_rhs] = ops.parents;
                let grad = grads.consume::<B>(&ops.node);
                let (lhs, rhs) = ops.state;
                let lhs = lhs.map(|lhs| checkpointer.retrieve_node_output::<FloatTensor<B>>(lhs));
                let rhs = rhs.map(|rhs| checkpointer.retrieve_node_output::<FloatTensor<B>>(rhs));
                if let (Some(node), Some(rhs)) = (of_lhs, rhs) {
                    let gradient = B::float_matmul(grad.clone(), B::float_swap_dims(rhs, 0, 1));
                    grads.register::<B>(node.id, gradient);
                }
                if let (Some(node), Some(lhs)) = (of_rhs, lhs) {
                    let gradient = B::float_matmul(B::float_swap_dims(lhs, 0, 1), grad);
                    grads.register::<B>(node.id, gradient);
                }
            }
        }

        let tracked = [lhs.is_tracked(), rhs.is_tracked()];
        match Product.prepare::<C>([lhs.node(), rhs.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let kept = (tracked[1].then(|| prep.checkpoint(&lhs)), tracked[0].then(|| prep.checkpoint(&rhs)));
                prep.finish(kept, B::unfused_matmul(lhs.into_primitive(), rhs.into_primitive()))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::unfused_matmul(lhs.into_primitive(), rhs.into_primitive())),
        }
    }
}

#[cfg(test)]
mod tests;
