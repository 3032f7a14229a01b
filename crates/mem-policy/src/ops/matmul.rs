//! A matrix product that no other operation is fused into.

use burn::backend::autodiff::{
    NodeId,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::ops::FloatTensorOps;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::{Shape, Tensor};
use burn_cubecl::CubeBackend;

/// `lhs rhs` for `[rows, inner]` and `[inner, columns]`, kept out of fusion in the forward pass.
///
/// Burn's fusion makes the operations that follow a matrix product part of it. In Burn 0.22.1 the products it can do that
/// to do not include the ones that are fast for few rows and many `inner`: for 8 x 112,896 by 112,896 x 512 in 32-bit floats
/// on an H200 (Vulkan), autotune measured 18.6 ms for the best of them and 0.86 ms for the best of all.
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
        Self::float_matmul(lhs, rhs)
    }
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
