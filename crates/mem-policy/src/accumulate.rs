//! Gradient accumulation that keeps the objective.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// The gradient of a window of micro-batches: the mean over all their samples.
///
/// Each micro-batch brings the gradient of *its* mean loss. The gradient of the whole window's mean loss is their mean
/// weighted by samples, so a last, smaller micro-batch counts for what it holds. Burn's `GradientsAccumulator` sums
/// instead, which multiplies the learning rate by the number of micro-batches.
///
/// Holds one set of gradients besides the one being added. With a single micro-batch in a window nothing is computed:
/// the gradients come out bit for bit as they went in.
///
/// # Example
///
/// ```no_run
/// use burn::optim::GradientsParams;
/// use mem_policy::accumulate::MeanGradients;
/// # fn model() -> burn::nn::Linear { unimplemented!() }
/// # fn backward(_: &burn::nn::Linear) -> GradientsParams { unimplemented!() }
///
/// let model = model();
/// let mut window = MeanGradients::new();
/// for samples in [16, 16, 8] {
///     window.add(&model, backward(&model), samples);
/// }
/// let of_all_40_samples: GradientsParams = window.take(&model);
/// ```
#[derive(Debug, Default)]
pub struct MeanGradients {
    sum: GradientsParams,
    // Samples of the first micro-batch; weights are relative to it, so that equal micro-batches need no product.
    unit: usize,
    samples: usize,
    micro_batches: usize,
}

impl MeanGradients {
    /// An empty window.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Micro-batches in the window so far.
    #[must_use]
    pub fn micro_batches(&self) -> usize {
        self.micro_batches
    }

    /// Adds the gradients of a micro-batch's mean loss over `samples` samples. A micro-batch without samples adds
    /// nothing.
    pub fn add<M: Module>(&mut self, model: &M, gradients: GradientsParams, samples: usize) {
        if samples == 0 {
            return;
        }
        self.micro_batches += 1;
        self.samples += samples;
        if self.micro_batches == 1 {
            self.unit = samples;
            self.sum = gradients;
            return;
        }
        let weight = ratio(samples, self.unit);
        model.visit(&mut Add { sum: &mut self.sum, gradients, weight });
    }

    /// The window's gradient; the window is empty afterwards.
    pub fn take<M: Module>(&mut self, model: &M) -> GradientsParams {
        let Self { mut sum, unit, samples, micro_batches } = std::mem::take(self);
        if micro_batches > 1 {
            model.visit(&mut Scale { gradients: &mut sum, factor: ratio(unit, samples) });
        }
        sum
    }
}

#[expect(clippy::cast_precision_loss, reason = "batch sizes are far below 2^52")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

struct Add<'a> {
    sum: &'a mut GradientsParams,
    gradients: GradientsParams,
    weight: f64,
}

impl ModuleVisitor for Add<'_> {
    #[expect(clippy::float_cmp, reason = "exactly 1 when the micro-batches are equal")]
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return };
        let gradient = if self.weight == 1.0 { gradient } else { gradient * self.weight };
        let sum = match self.sum.remove::<D>(param.id) {
            Some(sum) => sum + gradient,
            None => gradient,
        };
        self.sum.register::<D>(param.id, sum);
    }
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register::<D>(param.id, gradient * self.factor);
        }
    }
}

#[cfg(test)]
mod tests;
