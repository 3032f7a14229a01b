//! Dynamic loss scaling.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{FloatDType, Tensor};
use serde::{Deserialize, Serialize};

/// How a [`LossScaler`] moves. The defaults are those of `torch.amp.GradScaler`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossScalerConfig {
    /// The first scale.
    pub initial: f64,
    /// Factor on the scale after `interval` good steps.
    pub growth: f64,
    /// Factor on the scale after a step whose gradients are not finite.
    pub backoff: f64,
    /// Good steps in a row before the scale grows.
    pub interval: usize,
}

impl Default for LossScalerConfig {
    fn default() -> Self {
        Self { initial: 65_536.0, growth: 2.0, backoff: 0.5, interval: 2000 }
    }
}

/// Scales the loss so that gradients do not vanish in 16 bits, and finds the scale by itself: it grows while all is
/// well, and shrinks when a gradient overflows; the step is then skipped.
///
/// # Example
///
/// ```
/// use burn::nn::{Linear, LinearConfig};
/// use burn::optim::{GradientsParams, SgdConfig};
/// use burn::tensor::{Device, Tensor};
/// use mem_policy::precision::{LossScaler, LossScalerConfig};
///
/// let device = Device::flex().autodiff();
/// let mut model: Linear = LinearConfig::new(4, 1).init(&device);
/// let mut optimizer = SgdConfig::new().init();
/// let mut scaler = LossScaler::new(LossScalerConfig::default());
///
/// let loss = model.forward(Tensor::<2>::ones([8, 4], &device)).square().mean();
/// let gradients = GradientsParams::from_grads(scaler.scale(loss).backward(), &model);
/// if let Some(gradients) = scaler.unscale(&model, gradients) {
///     model = optimizer.step(0.1, model, gradients);
/// }
/// scaler.step_done();
/// assert_eq!(scaler.skipped(), 0);
/// ```
#[derive(Debug, Clone)]
pub struct LossScaler {
    config: LossScalerConfig,
    scale: f64,
    good: usize,
    found_bad: bool,
    applied: bool,
    skipped: usize,
    partly_skipped: usize,
}

impl LossScaler {
    /// A scaler at its first scale.
    #[must_use]
    pub fn new(config: LossScalerConfig) -> Self {
        Self { config, scale: config.initial, good: 0, found_bad: false, applied: false, skipped: 0, partly_skipped: 0 }
    }

    /// The present scale.
    #[must_use]
    pub fn current(&self) -> f64 {
        self.scale
    }

    /// Steps whose gradients were not applied at all.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Steps of which some gradients were applied before others, further down, were found not to be finite. That only
    /// happens when gradients are applied inside the backward pass.
    #[must_use]
    pub fn partly_skipped(&self) -> usize {
        self.partly_skipped
    }

    /// The loss to go backward from.
    #[must_use]
    pub fn scale(&self, loss: Tensor<1>) -> Tensor<1> {
        loss * self.scale
    }

    /// The gradients of `model` without the scale, in 32 bits; `None` if one of them is not finite.
    ///
    /// Reads one number back from the device, which waits for the backward pass.
    #[must_use]
    pub fn unscale<M: Module>(&mut self, model: &M, gradients: GradientsParams) -> Option<GradientsParams> {
        let mut unscale = Unscale { gradients, factor: 1.0 / self.scale, finite: None };
        model.visit(&mut unscale);
        // Zero times a number is zero, and times infinity or NaN it is NaN.
        let finite = unscale.finite.is_none_or(|sum| sum.into_scalar::<f32>() == 0.0);
        if finite {
            self.applied = true;
            Some(unscale.gradients)
        } else {
            self.found_bad = true;
            None
        }
    }

    /// Says that all gradients of a step went through [`unscale`](Self::unscale): moves the scale.
    pub fn step_done(&mut self) {
        let (bad, applied) = (std::mem::take(&mut self.found_bad), std::mem::take(&mut self.applied));
        if bad {
            self.scale = (self.scale * self.config.backoff).max(f64::MIN_POSITIVE);
            self.good = 0;
            if applied {
                self.partly_skipped += 1;
            } else {
                self.skipped += 1;
            }
        } else {
            self.good += 1;
            if self.good >= self.config.interval {
                self.good = 0;
                // Beyond 2^127 the scaled loss itself is infinite in 32 bits.
                self.scale = (self.scale * self.config.growth).min(2.0_f64.powi(127));
            }
        }
    }
}

struct Unscale {
    gradients: GradientsParams,
    factor: f64,
    finite: Option<Tensor<1>>,
}

impl ModuleVisitor for Unscale {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return };
        let gradient = gradient.cast(FloatDType::F32) * self.factor;
        let zero = (gradient.clone() * 0.0).sum();
        self.finite = Some(match self.finite.take() {
            Some(sum) => sum + zero,
            None => zero,
        });
        self.gradients.register::<D>(param.id, gradient);
    }
}
