//! Convolution as one matrix multiplication.

use burn::backend::autodiff::{
    NodeId,
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension, tensor::FloatTensor};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Shape, Slice, Tensor};
use burn_cubecl::CubeBackend;

/// A 2-dimensional convolution without bias, as a matrix multiplication of the input's patches ("im2col") by the weight.
///
/// `x` has shape `[batch, channels_in, height, width]`, `weight` `[channels_out, channels_in, kernel_height,
/// kernel_width]`; the result has shape `[batch, channels_out, height_out, width_out]` and equals
/// [`conv2d`](burn::tensor::module::conv2d) to rounding. Stride, symmetric padding and dilation are allowed, groups are not.
///
/// The patches repeat each pixel once for every place of the kernel, so they are made for as many samples at a time as fit
/// into `workspace` bytes, at least one. They are not kept for the backward pass, which is Burn's own, run on as many samples
/// at a time.
///
/// **When it pays:** where Burn has no fast kernel for the forward convolution. In Burn 0.22.1 those need matrix units for
/// the dtype; Vulkan has none for 32-bit floats, and what remains multiplies pixel by pixel.
///
/// # Panics
///
/// If `groups` is not 1, if padding is asymmetric, if shapes do not fit, or on a backend that the
/// [module](crate::ops) does not name.
#[must_use]
pub fn conv2d_by_matmul(x: Tensor<4>, weight: Tensor<4>, options: ConvOptions<2>, workspace: u64) -> Tensor<4> {
    assert_eq!(options.groups, 1, "a convolution by matrix multiplication has no groups");
    assert!(!options.is_asymmetric(), "padding must be the same on both sides");
    let workspace = usize::try_from(workspace).unwrap_or(usize::MAX);
    Tensor::from_dispatch(Dispatch::matmul_conv2d(x.into_dispatch(), weight.into_dispatch(), options, workspace))
}

/// The backends that [`conv2d_by_matmul`] runs on.
#[backend_extension(Cube, Flex, Autodiff, Fusion)]
pub trait MatmulConv: Backend {
    /// See [`conv2d_by_matmul`].
    #[fusion(default)]
    fn matmul_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        options: ConvOptions<2>,
        workspace: usize,
    ) -> FloatTensor<Self> {
        forward::<Self>(x, weight, &options, workspace)
    }
}

impl MatmulConv for CubeBackend {}
impl MatmulConv for burn::backend::Flex {}

impl<B: MatmulConv, C: CheckpointStrategy> MatmulConv for Autodiff<B, C> {
    fn matmul_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        options: ConvOptions<2>,
        workspace: usize,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Conv;

        impl<B: MatmulConv> Backward<B, 2> for Conv {
            type State = (NodeId, NodeId, ConvOptions<2>, usize);

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let [of_x, of_weight] = ops.parents;
                let grad = grads.consume::<B>(&ops.node);
                let (x, weight, options, workspace) = ops.state;
                let x = checkpointer.retrieve_node_output::<FloatTensor<B>>(x);
                let weight = checkpointer.retrieve_node_output::<FloatTensor<B>>(weight);
                let chunks = chunks::<B>(&x, &weight, &options, workspace);
                if let Some(node) = of_weight {
                    grads.register::<B>(node.id, weight_gradient::<B>(&x, &weight, &grad, &options, &chunks));
                }
                if let Some(node) = of_x {
                    grads.register::<B>(node.id, input_gradient::<B>(x, weight, grad, &options, &chunks));
                }
            }
        }

        match Conv.prepare::<C>([x.node(), weight.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&x), prep.checkpoint(&weight), options.clone(), workspace);
                let y = B::matmul_conv2d(x.into_primitive(), weight.into_primitive(), options, workspace);
                prep.finish(state, y)
            }
            OpsKind::UnTracked(prep) => {
                prep.finish(B::matmul_conv2d(x.into_primitive(), weight.into_primitive(), options, workspace))
            }
        }
    }
}

/// Output height and width.
fn output_size(input: [usize; 2], kernel: [usize; 2], options: &ConvOptions<2>) -> [usize; 2] {
    let padding = options.padding_begin();
    std::array::from_fn(|i| {
        let reach = options.dilation[i] * (kernel[i] - 1) + 1;
        assert!(input[i] + 2 * padding[i] >= reach, "the kernel is larger than the padded input");
        (input[i] + 2 * padding[i] - reach) / options.stride[i] + 1
    })
}

/// The batch in equal parts (the last may be smaller) whose patches fit into `workspace` bytes.
fn chunks<B: Backend>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    options: &ConvOptions<2>,
    workspace: usize,
) -> Vec<std::ops::Range<usize>> {
    let [batch, channels, height, width] = x.shape().dims();
    let [_, _, kh, kw] = weight.shape().dims();
    let [ho, wo] = output_size([height, width], [kh, kw], options);
    let sample = ho * wo * kh * kw * channels * x.dtype().size();
    let most = (workspace / sample.max(1)).clamp(1, batch.max(1));
    let parts = batch.div_ceil(most).max(1);
    let size = batch.div_ceil(parts).max(1);
    (0..batch).step_by(size).map(|start| start..batch.min(start + size)).collect()
}

fn ranges<const D: usize>(ranges: [std::ops::Range<usize>; D]) -> [Slice; D] {
    ranges.map(Slice::from)
}

fn samples<B: Backend>(x: &FloatTensor<B>, part: &std::ops::Range<usize>) -> FloatTensor<B> {
    let [batch, a, b, c] = x.shape().dims();
    if *part == (0..batch) { x.clone() } else { B::float_slice(x.clone(), &ranges([part.clone(), 0..a, 0..b, 0..c])) }
}

fn forward<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    options: &ConvOptions<2>,
    workspace: usize,
) -> FloatTensor<B> {
    let (device, dtype) = (x.device(), x.dtype().into());
    let [batch, channels, height, width] = x.shape().dims();
    let [outputs, of, kh, kw] = weight.shape().dims();
    assert_eq!(channels, of, "the weight is for another number of input channels");
    let [ho, wo] = output_size([height, width], [kh, kw], options);
    let chunks = chunks::<B>(&x, &weight, options, workspace);
    // [kh, kw, channels, outputs], as patches are laid out.
    let weight = B::float_permute(weight, &[2, 3, 1, 0]);
    let weight = B::float_reshape(weight, Shape::new([kh * kw * channels, outputs]));
    let x = padded::<B>(B::float_permute(x, &[0, 2, 3, 1]), options);
    let multiply = |part: &std::ops::Range<usize>| {
        let patches = patches::<B>(samples::<B>(&x, part), [kh, kw], [ho, wo], options);
        let patches = B::float_reshape(patches, Shape::new([part.len() * ho * wo, kh * kw * channels]));
        B::float_reshape(B::float_matmul(patches, weight.clone()), Shape::new([part.len(), ho, wo, outputs]))
    };
    let y = match chunks.as_slice() {
        [whole] => multiply(whole),
        chunks => {
            chunks.iter().fold(B::float_empty(Shape::new([batch, ho, wo, outputs]), &device, dtype), |y, part| {
                B::float_slice_assign(y, &ranges([part.clone(), 0..ho, 0..wo, 0..outputs]), multiply(part))
            })
        }
    };
    B::float_permute(y, &[0, 3, 1, 2])
}

/// `[batch, height, width, channels]` with zeros around.
fn padded<B: Backend>(x: FloatTensor<B>, options: &ConvOptions<2>) -> FloatTensor<B> {
    let [top, left] = options.padding_begin();
    if top == 0 && left == 0 {
        return x;
    }
    let [batch, height, width, channels] = x.shape().dims();
    let shape = Shape::new([batch, height + 2 * top, width + 2 * left, channels]);
    let zeros = B::float_zeros(shape, &x.device(), x.dtype().into());
    B::float_slice_assign(zeros, &ranges([0..batch, top..top + height, left..left + width, 0..channels]), x)
}

/// The patches of `[batch, height, width, channels]`: `[batch, ho, wo, kh * kw * channels]`.
fn patches<B: Backend>(
    x: FloatTensor<B>,
    [kh, kw]: [usize; 2],
    [ho, wo]: [usize; 2],
    options: &ConvOptions<2>,
) -> FloatTensor<B> {
    let [batch, _, _, channels] = x.shape().dims();
    let all = Shape::new([batch, ho, wo, kh * kw * channels]);
    let mut patches = B::float_empty(all, &x.device(), x.dtype().into());
    for (place, (i, j)) in (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j))).enumerate() {
        let along = |axis: usize, offset: usize, size: usize| {
            let (start, step) = (offset * options.dilation[axis], options.stride[axis]);
            Slice::new(start as isize, Some((start + (size - 1) * step + 1) as isize), step as isize)
        };
        let read = [Slice::from(0..batch), along(0, i, ho), along(1, j, wo), Slice::from(0..channels)];
        let write = ranges([0..batch, 0..ho, 0..wo, place * channels..(place + 1) * channels]);
        patches = B::float_slice_assign(patches, &write, B::float_slice(x.clone(), &read));
    }
    patches
}

fn weight_gradient<B: Backend>(
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    grad: &FloatTensor<B>,
    options: &ConvOptions<2>,
    chunks: &[std::ops::Range<usize>],
) -> FloatTensor<B> {
    let of = |part: &std::ops::Range<usize>| {
        let (x, grad) = (samples::<B>(x, part), samples::<B>(grad, part));
        B::conv2d_weight_backward(x, weight.clone(), grad, options.clone())
    };
    let mut parts = chunks.iter().map(of);
    let first = parts.next();
    parts.fold(first, |sum, part| sum.map(|sum| B::float_add(sum, part))).unwrap_or_else(|| {
        // A batch without samples.
        B::float_zeros(weight.shape(), &weight.device(), weight.dtype().into())
    })
}

fn input_gradient<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    grad: FloatTensor<B>,
    options: &ConvOptions<2>,
    chunks: &[std::ops::Range<usize>],
) -> FloatTensor<B> {
    let [batch, channels, height, width] = x.shape().dims();
    let of = |part: &std::ops::Range<usize>| {
        let (x, grad) = (samples::<B>(&x, part), samples::<B>(&grad, part));
        B::conv2d_x_backward(x, weight.clone(), grad, options.clone())
    };
    if let [whole] = chunks {
        return of(whole);
    }
    // Channels last, as the parts are in memory.
    let empty = B::float_empty(Shape::new([batch, height, width, channels]), &x.device(), x.dtype().into());
    let all = chunks.iter().fold(empty, |all, part| {
        let place = ranges([part.clone(), 0..height, 0..width, 0..channels]);
        B::float_slice_assign(all, &place, B::float_permute(of(part), &[0, 2, 3, 1]))
    });
    B::float_permute(all, &[0, 3, 1, 2])
}

#[cfg(test)]
mod tests;
