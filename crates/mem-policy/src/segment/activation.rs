//! What flows between segments: float tensors whose rank is known at run time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burn::tensor::{DType, Device, FloatDType, Gradients, Tensor, TensorData};

/// Numbers activations, so that one that a segment hands on untouched is recognised.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A float tensor of rank 1 to 6 whose rank is known at run time.
///
/// A segment that does not need an activation hands it on as it is, without unwrapping it: its gradient then passes by
/// the segment without being touched, which costs neither memory nor time.
#[derive(Debug, Clone)]
pub struct Activation {
    tag: u64,
    /// Whether it is the start of a graph, as [`Self::leaf`] makes it.
    leaf: bool,
    /// Shared, because a group keeps a clone of everything that it only hands on.
    tensor: Arc<Ranked>,
}

#[derive(Debug, Clone)]
enum Ranked {
    R1(Tensor<1>),
    R2(Tensor<2>),
    R3(Tensor<3>),
    R4(Tensor<4>),
    R5(Tensor<5>),
    R6(Tensor<6>),
}

/// Runs the same expression for a tensor of any rank.
macro_rules! each_rank {
    ($ranked:expr, $x:ident => $body:expr) => {
        match $ranked {
            Ranked::R1($x) => $body,
            Ranked::R2($x) => $body,
            Ranked::R3($x) => $body,
            Ranked::R4($x) => $body,
            Ranked::R5($x) => $body,
            Ranked::R6($x) => $body,
        }
    };
}

/// Maps a tensor of any rank to one of the same rank.
macro_rules! map_rank {
    ($ranked:expr, $x:ident => $body:expr) => {
        match $ranked {
            Ranked::R1($x) => Ranked::R1($body),
            Ranked::R2($x) => Ranked::R2($body),
            Ranked::R3($x) => Ranked::R3($body),
            Ranked::R4($x) => Ranked::R4($body),
            Ranked::R5($x) => Ranked::R5($body),
            Ranked::R6($x) => Ranked::R6($body),
        }
    };
}

/// Pairs two tensors of the same rank; `$none` if the ranks differ.
macro_rules! zip_rank {
    ($a:expr, $b:expr, ($x:ident, $y:ident) => $body:expr, $none:expr) => {
        match ($a, $b) {
            (Ranked::R1($x), Ranked::R1($y)) => $body,
            (Ranked::R2($x), Ranked::R2($y)) => $body,
            (Ranked::R3($x), Ranked::R3($y)) => $body,
            (Ranked::R4($x), Ranked::R4($y)) => $body,
            (Ranked::R5($x), Ranked::R5($y)) => $body,
            (Ranked::R6($x), Ranked::R6($y)) => $body,
            _ => $none,
        }
    };
}

macro_rules! from_tensor {
    ($($rank:literal => $variant:ident),+) => {$(
        impl From<Tensor<$rank>> for Activation {
            fn from(tensor: Tensor<$rank>) -> Self {
                Self::fresh(Ranked::$variant(tensor))
            }
        }

        impl From<Activation> for Tensor<$rank> {
            /// # Panics
            ///
            /// If the activation has another rank: the segments of a model do not fit each other.
            #[track_caller]
            fn from(activation: Activation) -> Self {
                match activation.into_ranked() {
                    Ranked::$variant(tensor) => tensor,
                    other => panic!(
                        "a segment expects a tensor of rank {}, and the one before it handed on rank {}",
                        $rank,
                        other.rank(),
                    ),
                }
            }
        }
    )+};
}

from_tensor!(1 => R1, 2 => R2, 3 => R3, 4 => R4, 5 => R5, 6 => R6);

impl Ranked {
    fn rank(&self) -> usize {
        each_rank!(self, x => x.dims().len())
    }
}

impl Activation {
    fn fresh(tensor: Ranked) -> Self {
        Self::tagged(NEXT.fetch_add(1, Ordering::Relaxed), tensor)
    }

    fn tagged(tag: u64, tensor: Ranked) -> Self {
        Self { tag, leaf: false, tensor: Arc::new(tensor) }
    }

    fn into_ranked(self) -> Ranked {
        Arc::unwrap_or_clone(self.tensor)
    }

    fn to_ranked(&self) -> Ranked {
        Ranked::clone(&self.tensor)
    }

    /// The shape.
    #[must_use]
    pub fn dims(&self) -> Vec<usize> {
        each_rank!(&*self.tensor, x => x.dims().to_vec())
    }

    /// Bytes that the elements take: elements times the dtype's size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        each_rank!(&*self.tensor, x => x.dims().iter().map(|n| *n as u64).product::<u64>() * x.dtype().size() as u64)
    }

    /// The device, with or without autodiff.
    #[must_use]
    pub fn device(&self) -> Device {
        each_rank!(&*self.tensor, x => x.device())
    }

    /// A number that its clones have too, and no other activation.
    pub(super) fn tag(&self) -> u64 {
        self.tag
    }

    /// The same values without autodiff, under the same tag.
    pub(super) fn plain(&self) -> Self {
        Self::tagged(self.tag, map_rank!(self.to_ranked(), x => x.inner()))
    }

    /// The same as [`plain`](Self::plain), but for the start of a graph, which stays one.
    ///
    /// Every start of a graph is an entry of Burn's autodiff runtime, and every backward pass walks through all entries
    /// there are. If each of `n` groups made `n` of its own for what it only hands on, a step would take `n³`.
    pub(super) fn plain_unless_leaf(&self) -> Self {
        if self.leaf { self.clone() } else { self.plain() }
    }

    /// The same values as the start of a graph on `device`, under the same tag. Its gradient is kept if `tracked`. What
    /// is one already stays the very same.
    pub(super) fn leaf(&self, device: &Device, tracked: bool) -> Self {
        if self.leaf && tracked {
            return self.clone();
        }
        let tensor = map_rank!(self.to_ranked(), x => {
            let x = Tensor::from_inner(x.inner());
            let x = match device.gradient_checkpointing_strategy() {
                Some(strategy) => x.with_gradient_checkpointing_strategy(strategy),
                None => x,
            };
            if tracked { x.require_grad() } else { x }
        });
        Self { tag: self.tag, leaf: tracked, tensor: Arc::new(tensor) }
    }

    /// Rows `start..start + length` of the first dimension, under a tag of its own.
    pub(super) fn rows(&self, start: usize, length: usize) -> Self {
        let whole = if self.leaf { self.plain() } else { self.clone() };
        Self::fresh(map_rank!(whole.into_ranked(), x => x.narrow(0, start, length)))
    }

    /// The values in another dtype, as an operation that autodiff knows.
    pub(crate) fn cast(self, dtype: FloatDType) -> Self {
        if each_rank!(&*self.tensor, x => x.dtype() == DType::from(dtype)) {
            return self;
        }
        Self::fresh(map_rank!(self.into_ranked(), x => x.cast(dtype)))
    }

    /// Gradient of this leaf, taken out of `gradients`.
    pub(super) fn take_gradient(&self, gradients: &mut Gradients) -> Option<Self> {
        let tensor = match &*self.tensor {
            Ranked::R1(x) => Ranked::R1(x.grad_remove(gradients)?),
            Ranked::R2(x) => Ranked::R2(x.grad_remove(gradients)?),
            Ranked::R3(x) => Ranked::R3(x.grad_remove(gradients)?),
            Ranked::R4(x) => Ranked::R4(x.grad_remove(gradients)?),
            Ranked::R5(x) => Ranked::R5(x.grad_remove(gradients)?),
            Ranked::R6(x) => Ranked::R6(x.grad_remove(gradients)?),
        };
        Some(Self::tagged(self.tag, tensor))
    }

    /// Sum of two gradients of the same activation.
    pub(super) fn plus(self, other: Self) -> Self {
        let tag = self.tag;
        let tensor = match (self.into_ranked(), other.into_ranked()) {
            (Ranked::R1(a), Ranked::R1(b)) => Ranked::R1(a + b),
            (Ranked::R2(a), Ranked::R2(b)) => Ranked::R2(a + b),
            (Ranked::R3(a), Ranked::R3(b)) => Ranked::R3(a + b),
            (Ranked::R4(a), Ranked::R4(b)) => Ranked::R4(a + b),
            (Ranked::R5(a), Ranked::R5(b)) => Ranked::R5(a + b),
            (Ranked::R6(a), Ranked::R6(b)) => Ranked::R6(a + b),
            // Both are gradients of one tensor.
            (a, _) => a,
        };
        Self::tagged(tag, tensor)
    }

    /// The scalar whose gradient with respect to this activation is `gradient`: the sum of their products.
    pub(super) fn weighted_sum(&self, gradient: &Self) -> Option<Tensor<1>> {
        zip_rank!(
            self.to_ranked(),
            gradient.to_ranked(),
            (x, g) => x.is_tracked().then(|| {
                let g = Tensor::from_inner(g.inner());
                let g = match x.gradient_checkpointing_strategy() {
                    Some(strategy) => g.with_gradient_checkpointing_strategy(strategy),
                    None => g,
                };
                (x * g).sum()
            }),
            None
        )
    }

    /// Joins slices along the first dimension, under the tag of `whole`.
    pub(super) fn join(whole: &Self, slices: Vec<Self>) -> Self {
        macro_rules! join {
            ($($variant:ident),+) => {
                match &*whole.tensor {
                    $(Ranked::$variant(_) => Ranked::$variant(Tensor::cat(
                        slices
                            .into_iter()
                            .filter_map(|slice| match slice.into_ranked() {
                                Ranked::$variant(x) => Some(x),
                                _ => None,
                            })
                            .collect(),
                        0,
                    )),)+
                }
            };
        }
        Self::tagged(whole.tag, join!(R1, R2, R3, R4, R5, R6))
    }
}

/// The activations between two segments, in an order that the model decides.
#[derive(Debug, Clone, Default)]
pub struct Activations(Vec<Activation>);

impl Activations {
    /// These activations.
    #[must_use]
    pub fn new(activations: Vec<Activation>) -> Self {
        Self(activations)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the last one out.
    pub fn pop(&mut self) -> Option<Activation> {
        self.0.pop()
    }

    /// Puts one at the end.
    pub fn push(&mut self, activation: impl Into<Activation>) {
        self.0.push(activation.into());
    }

    /// The only activation there is, as a tensor of rank `D`.
    ///
    /// # Panics
    ///
    /// If there is not exactly one, or if it has another rank: the segments of a model do not fit each other.
    #[must_use]
    #[track_caller]
    pub fn only<const D: usize>(mut self) -> Tensor<D>
    where
        Tensor<D>: From<Activation>,
    {
        match (self.0.pop(), self.0.len()) {
            (Some(activation), 0) => activation.into(),
            (last, before) => {
                panic!("a segment expects one activation, and got {}", before + usize::from(last.is_some()))
            }
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Activation> {
        self.0.iter()
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(Activation::bytes).sum()
    }

    /// All of them in another dtype.
    #[must_use]
    pub fn cast(self, dtype: FloatDType) -> Self {
        Self(self.0.into_iter().map(|activation| activation.cast(dtype)).collect())
    }

    pub(super) fn map(&self, f: impl Fn(&Activation) -> Activation) -> Self {
        Self(self.0.iter().map(f).collect())
    }
}

impl FromIterator<Activation> for Activations {
    fn from_iter<I: IntoIterator<Item = Activation>>(activations: I) -> Self {
        Self(activations.into_iter().collect())
    }
}

impl IntoIterator for Activations {
    type Item = Activation;
    type IntoIter = std::vec::IntoIter<Activation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<const D: usize> From<Tensor<D>> for Activations
where
    Activation: From<Tensor<D>>,
{
    fn from(tensor: Tensor<D>) -> Self {
        Self(vec![tensor.into()])
    }
}

/// An activation in host memory.
#[derive(Debug)]
pub(crate) struct HostActivation {
    tag: u64,
    rank: usize,
    data: TensorData,
}

impl HostActivation {
    /// Reads the values off the device; waits for them.
    pub(crate) fn read(activation: Activation) -> Self {
        let (rank, tag) = (activation.tensor.rank(), activation.tag);
        Self { tag, rank, data: each_rank!(activation.into_ranked(), x => x.inner().into_data()) }
    }

    /// Writes the values to `device`, without autodiff.
    pub(crate) fn write(self, device: &Device) -> Activation {
        let Self { tag, rank, data } = self;
        let device = &device.clone().without_autodiff();
        let options = (device, data.dtype());
        let tensor = match rank {
            1 => Ranked::R1(Tensor::from_data(data, options)),
            2 => Ranked::R2(Tensor::from_data(data, options)),
            3 => Ranked::R3(Tensor::from_data(data, options)),
            4 => Ranked::R4(Tensor::from_data(data, options)),
            5 => Ranked::R5(Tensor::from_data(data, options)),
            _ => Ranked::R6(Tensor::from_data(data, options)),
        };
        Activation::tagged(tag, tensor)
    }
}
