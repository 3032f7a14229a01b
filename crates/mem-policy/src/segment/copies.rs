//! Copies of a model that share its parameters but not its running statistics.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use std::collections::HashMap;

/// A copy for a run without a graph: in training mode, tracking nothing, with running statistics of its own. It shares the
/// parameters' memory; drop it before they are updated.
pub(super) fn untracked<M: Module>(model: &M) -> M {
    model.valid().train().no_grad()
}

/// The same, tracking gradients, with the checkpointing strategy of `device`.
pub(super) fn tracked<M: Module>(model: &M, device: &Device) -> M {
    model.valid().train().map(&mut OnDevice(device))
}

struct OnDevice<'a>(&'a Device);

impl ModuleMapper for OnDevice<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.0.gradient_checkpointing_strategy() {
            Some(strategy) => param.map(|x| x.with_gradient_checkpointing_strategy(strategy)),
            None => param,
        }
    }
}

/// The weighted mean of the running statistics of several copies.
#[derive(Default)]
pub(super) struct Statistics {
    sums: HashMap<ParamId, Tensor<1>>,
    weight: f64,
}

impl Statistics {
    /// Adds those of `copy`, which has seen a share of `weight`.
    pub(super) fn add<M: Module>(&mut self, copy: &M, weight: f64) {
        self.weight += weight;
        // The validation snapshot has taken in the last update.
        copy.valid().visit(&mut Collect { statistics: self, weight });
    }

    /// Puts the mean into `model`.
    pub(super) fn commit<M: Module>(self, model: M) -> M {
        // Takes in an update that is still pending, so that it does not come on top later.
        drop(model.valid());
        model.map(&mut Commit(&self))
    }
}

/// Whether a visited value is a buffer, like batch norm's running statistics, and no parameter. A frozen vector looks
/// like one; it does not change, so averaging and putting it back leaves it as it is.
fn is_buffer<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    D == 1 && !param.clone().train().is_require_grad()
}

struct Collect<'a> {
    statistics: &'a mut Statistics,
    weight: f64,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if is_buffer(param) {
            let value = param.val().inner().reshape([-1]) * self.weight;
            let sums = &mut self.statistics.sums;
            let sum = match sums.remove(&param.id) {
                Some(sum) => sum + value,
                None => value,
            };
            sums.insert(param.id, sum);
        }
    }
}

struct Commit<'a>(&'a Statistics);

impl ModuleMapper for Commit<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !is_buffer(&param) {
            return param;
        }
        let Some(sum) = self.0.sums.get(&param.id) else { return param };
        let mean = sum.clone() / self.0.weight;
        param.map(|old| {
            let mean = mean.reshape(old.shape());
            match old.gradient_checkpointing_strategy() {
                Some(strategy) => Tensor::from_inner(mean).with_gradient_checkpointing_strategy(strategy),
                None => mean,
            }
        })
    }
}

/// Adds the gradients of `module` in `more` to those in `sum`.
pub(crate) fn add_gradients<M: Module>(module: &M, sum: GradientsParams, more: GradientsParams) -> GradientsParams {
    let mut add = Add { sum, more };
    module.visit(&mut add);
    add.sum
}

struct Add {
    sum: GradientsParams,
    more: GradientsParams,
}

impl ModuleVisitor for Add {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(more) = self.more.remove::<D>(param.id) else { return };
        let sum = match self.sum.remove::<D>(param.id) {
            Some(sum) => sum + more,
            None => more,
        };
        self.sum.register::<D>(param.id, sum);
    }
}
