//! Who wants to know what happens when during training.

use burn::train::metric::store::EventStoreClient;

/// A moment of training. Marks arrive on the training thread, in this order within a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// An epoch begins.
    EpochStart {
        /// The epoch, from 1.
        epoch: usize,
    },
    /// The trainer asks for a batch.
    StepStart {
        /// The micro-batch, from 1 over the whole run.
        step: usize,
    },
    /// The batch is there.
    DataReady,
    /// The forward pass is done, if the model says so with [`phase::forward_done`](crate::phase::forward_done).
    ForwardDone,
    /// The backward pass of a group of segments is done: its gradients are alive, and so are the activations of the
    /// groups before it. Only in segmented training.
    SegmentDone {
        /// The group, counted from 0 at the input.
        group: usize,
    },
    /// The backward pass is done: all gradients are alive, unless they were applied in it.
    BackwardDone,
    /// The optimizer stepped. Absent for a micro-batch that was only accumulated.
    UpdateDone,
    /// The step is over. On a GPU its work may still be running.
    StepEnd {
        /// Samples in it.
        samples: usize,
    },
    /// The epoch's training is over, validation begins.
    TrainEnd {
        /// The epoch, from 1.
        epoch: usize,
    },
}

/// Is told what happens when. Every method does nothing by default.
pub trait StepObserver: Send + Sync {
    /// A moment of training.
    fn mark(&self, mark: Mark) {
        let _ = mark;
    }

    /// An epoch is over, validation included, and its metrics are in `metrics`.
    fn epoch_end(&self, epoch: usize, metrics: &EventStoreClient) {
        let _ = (epoch, metrics);
    }
}

/// Wants to know nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl StepObserver for NoObserver {}
