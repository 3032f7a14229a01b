//! The norm of all gradients, when they do not exist at once.

use burn::module::{ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use super::activation::Activations;
use super::backward::SegmentedBackward;
use super::{Segmented, copies};

impl SegmentedBackward {
    /// The 2-norm over the gradients of all parameters together, shape `[1]`, in 32 bits and without autodiff.
    ///
    /// Clipping by this global norm needs it before the first update. With updates inside the backward pass, no moment has
    /// all gradients, so this is a forward and a backward pass of its own that keeps one number of each gradient; clip by
    /// scaling the loss of the real pass, which scales every gradient:
    ///
    /// ```
    /// # use burn::tensor::Tensor;
    /// # fn clipped(loss: Tensor<1>, norm: Tensor<1>, device: &burn::tensor::Device) -> Tensor<1> {
    /// let most = 1.0;
    /// let factor = (norm.recip() * most).clamp_max(1.0);
    /// loss * factor.to_device(device).autodiff()
    /// # }
    /// ```
    ///
    /// It costs as much time again. The model's running statistics stay as they are. Dropout draws the masks of the
    /// [`run`](Self::run) that comes next, if the plan runs any group again; otherwise masks are not repeated.
    pub fn gradient_norm<M: Segmented>(
        &self,
        model: &M,
        input: Activations,
        loss: impl FnOnce(&M, Activations) -> Tensor<1>,
    ) -> Tensor<1> {
        let device = model.devices().first().cloned().unwrap_or_default();
        let mut squares = Squares { gradients: GradientsParams::new(), sum: None };
        let copy = copies::tracked(model, &device);
        self.clone().run(
            copy,
            input,
            |model, output| (loss(model, output), ()),
            |model, gradients| {
                squares.gradients = gradients;
                model.visit(&mut squares);
                model
            },
        );
        squares.sum.unwrap_or_else(|| Tensor::zeros([1], &device.without_autodiff())).sqrt()
    }
}

struct Squares {
    gradients: GradientsParams,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for Squares {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return };
        let square = gradient.cast(burn::tensor::FloatDType::F32).square().sum();
        self.sum = Some(match self.sum.take() {
            Some(sum) => sum + square,
            None => square,
        });
    }
}
