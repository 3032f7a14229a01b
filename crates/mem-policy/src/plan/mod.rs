//! The plan: what a training run will do, as plain data.

mod slot;
mod values;

pub use slot::{PlanLine, Slot};
pub use values::{
    ComputePlan, LoaderPlan, ModelScale, OptimizerPlan, PoolLayout, PoolReuse, Precision, Sampling, Segmenting,
    ShardPlan, SlicePlan, SubsetPlan, SubsetSize, TuningLevel, TuningPlan,
};

use slot::AnySlot;

use crate::environment::Environment;
use crate::error::PolicyError;
use crate::policy::MemoryPolicy;

/// What a run does without any policy; the plan's defaults.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Baseline {
    /// Samples per optimizer step.
    pub batch_size: usize,
    /// How batches reach the device.
    pub loader: LoaderPlan,
}

impl Baseline {
    /// A baseline of `batch_size` samples per optimizer step, loaded in the training thread.
    #[must_use]
    pub fn new(batch_size: usize) -> Self {
        Self { batch_size, loader: LoaderPlan::default() }
    }
}

/// What a training run will do. Policies write it, mechanisms apply it.
///
/// Every field remembers the policy that set it; two policies that set it differently are a conflict, reported while
/// planning. A field that was set and that no mechanism applied is an error too ([`TrainPlan::ensure_applied`]): a plan
/// never says more than what happens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrainPlan {
    /// Samples per optimizer step, accumulation included.
    pub batch_size: Slot<usize>,
    /// Micro-batches per optimizer step.
    pub accumulation: Slot<usize>,
    /// The float dtype of parameters, inputs and computation.
    pub precision: Slot<Precision>,
    /// Burn's own gradient checkpointing.
    pub gradient_checkpointing: Slot<bool>,
    /// How much of the network is built.
    pub model_scale: Slot<ModelScale>,
    /// How batches reach the device.
    pub loader: Slot<LoaderPlan>,
    /// Which part of the data is used. `None` is all.
    pub subset: Slot<Option<SubsetPlan>>,
    /// The page layout of Burn's wgpu memory pools. `None` is the runtime's own choice.
    pub pool_layout: Slot<Option<PoolLayout>>,
    /// Which allocations get pages of their exact size. `None` is the runtime's own choice.
    pub pool_reuse: Slot<Option<PoolReuse>>,
    /// Choosing kernels in a process of its own. `None` leaves it to the run.
    pub tuning: Slot<Option<TuningPlan>>,
    /// Activation checkpointing by segments. `None` keeps all activations.
    pub segments: Slot<Option<Segmenting>>,
    /// Whether gradients are applied inside the backward pass, a group of segments at a time.
    pub update_in_backward: Slot<bool>,
    /// Whether the trainer owns the model and updates its parameters in place.
    pub update_in_place: Slot<bool>,
    /// How large linear layers are cut. `None` builds them in one piece.
    pub linear_shards: Slot<Option<ShardPlan>>,
    /// Bytes of the workspace in which convolutions are computed by matrix multiplication. `None` leaves them to Burn.
    pub conv_workspace: Slot<Option<u64>>,
    /// Segments that are run on slices of the batch. `None` runs all on the whole batch.
    pub slices: Slot<Option<SlicePlan>>,
    /// Whether what flows between segments waits in host memory.
    pub offload: Slot<bool>,
    /// 16-bit computation with 32-bit master weights.
    pub compute: Slot<Option<ComputePlan>>,
    /// The optimizer. `None` is the trainer's own choice.
    pub optimizer: Slot<Option<OptimizerPlan>>,
    environment: Environment,
}

impl TrainPlan {
    /// The plan of a run without policies.
    #[must_use]
    pub fn new(baseline: &Baseline, environment: &Environment) -> Self {
        Self {
            batch_size: Slot::new("batch_size", baseline.batch_size),
            accumulation: Slot::new("accumulation", 1),
            precision: Slot::new("precision", Precision::F32),
            gradient_checkpointing: Slot::new("gradient_checkpointing", false),
            model_scale: Slot::new("model_scale", ModelScale::default()),
            loader: Slot::new("loader", baseline.loader),
            subset: Slot::new("subset", None),
            pool_layout: Slot::new("pool_layout", None),
            pool_reuse: Slot::new("pool_reuse", None),
            tuning: Slot::new("tuning", None),
            segments: Slot::new("segments", None),
            update_in_backward: Slot::new("update_in_backward", false),
            update_in_place: Slot::new("update_in_place", false),
            linear_shards: Slot::new("linear_shards", None),
            conv_workspace: Slot::new("conv_workspace", None),
            slices: Slot::new("slices", None),
            offload: Slot::new("offload", false),
            compute: Slot::new("compute", None),
            optimizer: Slot::new("optimizer", None),
            environment: environment.clone(),
        }
    }

    /// Plans a run: asks every policy in order, then checks what only the whole plan can show.
    ///
    /// # Errors
    ///
    /// All errors of all policies, and of the whole plan, together.
    pub fn build<'a>(
        baseline: &Baseline,
        environment: &Environment,
        policies: impl IntoIterator<Item = &'a dyn MemoryPolicy>,
    ) -> Result<Self, Vec<PolicyError>> {
        let mut plan = Self::new(baseline, environment);
        let mut errors: Vec<PolicyError> =
            policies.into_iter().filter_map(|policy| policy.plan(&mut plan).err()).collect();
        errors.extend(plan.check().err());
        if errors.is_empty() { Ok(plan) } else { Err(errors) }
    }

    /// The machine this plan is for.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Samples per forward pass: the batch divided by the accumulation steps.
    #[must_use]
    pub fn micro_batch(&self) -> usize {
        self.batch_size.get() / self.accumulation.get().max(&1)
    }

    /// Whether any field asks for training by segments.
    #[must_use]
    pub fn is_segmented(&self) -> bool {
        self.segments.get().is_some()
            || *self.update_in_backward.get()
            || self.slices.get().is_some()
            || *self.offload.get()
            || self.compute.get().is_some()
    }

    fn check(&self) -> Result<(), PolicyError> {
        let (batch, steps) = (*self.batch_size.get(), *self.accumulation.get());
        let by = self.accumulation.set_by().or(self.batch_size.set_by()).unwrap_or("baseline");
        if batch == 0 || steps == 0 {
            return Err(PolicyError::Unplannable {
                policy: by,
                why: format!("a batch of {batch} samples in {steps} steps holds nothing; both must be at least 1"),
            });
        }
        if steps > 1
            && let Some(policy) = self.update_in_backward.set_by().filter(|_| *self.update_in_backward.get())
        {
            return Err(PolicyError::Unplannable {
                policy,
                why: format!(
                    "gradients are applied and freed inside each backward pass, so those of {steps} micro-batches cannot \
                     be added up (`{by}`); leave one of them out, or use `segment-slices`, which runs slices of the batch \
                     through a segment and adds up their gradients there"
                ),
            });
        }
        if batch % steps != 0 {
            return Err(PolicyError::Unplannable {
                policy: by,
                why: format!(
                    "a batch of {batch} samples cannot be split into {steps} equal micro-batches; \
                     use a batch size that {steps} divides"
                ),
            });
        }
        Ok(())
    }

    /// Every field with its value and author.
    #[must_use]
    pub fn lines(&self) -> Vec<PlanLine> {
        self.slots().iter().map(|slot| slot.line()).collect()
    }

    /// Checks that every field a policy set was applied by a mechanism.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unapplied`] for each field that was not.
    pub fn ensure_applied(&self) -> Result<(), Vec<PolicyError>> {
        let errors: Vec<_> = self.slots().iter().filter_map(|slot| slot.unapplied()).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn slots(&self) -> [&dyn AnySlot; 19] {
        // Without `..`, so that a new field cannot be forgotten here.
        let Self {
            batch_size,
            accumulation,
            precision,
            gradient_checkpointing,
            model_scale,
            loader,
            subset,
            pool_layout,
            pool_reuse,
            tuning,
            segments,
            update_in_backward,
            update_in_place,
            linear_shards,
            conv_workspace,
            slices,
            offload,
            compute,
            optimizer,
            environment: _,
        } = self;
        [
            batch_size,
            accumulation,
            precision,
            gradient_checkpointing,
            model_scale,
            loader,
            subset,
            pool_layout,
            pool_reuse,
            tuning,
            segments,
            update_in_backward,
            update_in_place,
            linear_shards,
            conv_workspace,
            slices,
            offload,
            compute,
            optimizer,
        ]
    }
}

#[cfg(test)]
mod tests;
