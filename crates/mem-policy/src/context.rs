//! What the callbacks of a policy see, and what they may say.

use std::fmt;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

/// How much memory is in use, of how much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// Bytes in use.
    pub used_bytes: u64,
    /// The counter `used_bytes` was read from, with its unit of account: `metal currentAllocatedSize`.
    pub used_counter: String,
    /// Bytes one should not exceed. `None` if nothing says so.
    pub total_bytes: Option<u64>,
    /// Where `total_bytes` comes from.
    pub total_counter: Option<String>,
}

impl MemoryUsage {
    /// A reading of `used_bytes` from `used_counter`.
    pub fn new(used_bytes: u64, used_counter: impl Into<String>) -> Self {
        Self { used_bytes, used_counter: used_counter.into(), total_bytes: None, total_counter: None }
    }

    /// The same with a total.
    #[must_use]
    pub fn of(mut self, total_bytes: u64, total_counter: impl Into<String>) -> Self {
        self.total_bytes = Some(total_bytes);
        self.total_counter = Some(total_counter.into());
        self
    }

    /// The share in use, from 0 (1 is the total). `None` without a total.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of bytes needs no more than 52 bits")]
    pub fn share(&self) -> Option<f64> {
        let total = self.total_bytes.filter(|total| *total > 0)?;
        Some(self.used_bytes as f64 / total as f64)
    }
}

/// Reads how much memory is in use. A program gives the trainer one; a probe can be absent.
pub trait MemorySource: Send + Sync {
    /// The present usage, or `None` if nothing can be read.
    fn usage(&self) -> Option<MemoryUsage>;
}

/// A source that reads nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemorySource;

impl MemorySource for NoMemorySource {
    fn usage(&self) -> Option<MemoryUsage> {
        None
    }
}

/// Something a policy noticed or did, for logs and records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PolicyEvent {
    /// The policy's id.
    pub policy: String,
    /// The epoch, from 1; 0 for what belongs to the run as a whole.
    pub epoch: usize,
    /// The micro-batch, from 1 over the whole run; 0 for what belongs to the run as a whole.
    pub step: usize,
    /// What kind of event.
    pub kind: EventKind,
    /// For people.
    pub message: String,
    /// The reading behind it, if there was one.
    pub usage: Option<MemoryUsage>,
}

impl PolicyEvent {
    /// An event of `policy` that belongs to no step: epoch and step are 0.
    pub fn new(policy: impl Into<String>, kind: EventKind, message: impl Into<String>) -> Self {
        Self { policy: policy.into(), epoch: 0, step: 0, kind, message: message.into(), usage: None }
    }
}

/// The kind of a [`PolicyEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A reading.
    Reading,
    /// Something to look at.
    Warning,
    /// Unused memory was given back to the driver.
    Cleanup,
    /// The run was ended.
    Stop,
}

/// What [`MemoryPolicy::after_backward`](crate::MemoryPolicy::after_backward) sees.
#[non_exhaustive]
pub struct StepCx<'a> {
    /// The device that trains, without its autodiff association.
    pub device: &'a Device,
    /// The epoch, from 1.
    pub epoch: usize,
    /// The micro-batch, from 1 over the whole run.
    pub step: usize,
    /// Reads memory in use.
    pub memory: &'a dyn MemorySource,
    /// Where to note what happened.
    pub events: &'a mut Vec<PolicyEvent>,
}

impl<'a> StepCx<'a> {
    /// A context; the trainer makes it, and so may a training loop of your own.
    pub fn new(
        device: &'a Device,
        epoch: usize,
        step: usize,
        memory: &'a dyn MemorySource,
        events: &'a mut Vec<PolicyEvent>,
    ) -> Self {
        Self { device, epoch, step, memory, events }
    }

    /// Notes an event of `policy` at this step.
    pub fn note(&mut self, policy: &str, kind: EventKind, message: impl Into<String>, usage: Option<MemoryUsage>) {
        self.events.push(PolicyEvent {
            policy: policy.to_owned(),
            epoch: self.epoch,
            step: self.step,
            kind,
            message: message.into(),
            usage,
        });
    }
}

impl fmt::Debug for StepCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCx")
            .field("device", self.device)
            .field("epoch", &self.epoch)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

/// What [`MemoryPolicy::after_epoch`](crate::MemoryPolicy::after_epoch) sees: the same as after a step, where `step` is
/// the epoch's last.
pub type EpochCx<'a> = StepCx<'a>;

/// What a policy says at the end of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// End training here, without an error, for this reason.
    Stop(String),
}
