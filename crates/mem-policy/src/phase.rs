//! Marks inside a training step that only the model can set.
//!
//! A trainer sees the start and the end of `TrainStep::step`, but not where the forward pass ends, which is where the
//! most activations are alive. A model that calls [`forward_done`] there lets whoever listens read memory at that
//! moment; [`SegmentedBackward`](crate::segment::SegmentedBackward) calls it by itself, and [`segment_done`] besides.
//! Without a listener a call costs a thread-local read.
//!
//! ```
//! use mem_policy::phase::{self, Phase};
//!
//! let mut seen = Vec::new();
//! phase::listen(|phase| seen.push(phase), || {
//!     // ... the forward pass ...
//!     phase::forward_done();
//!     // ... the backward pass ...
//! });
//! phase::forward_done(); // nobody listens
//! assert_eq!(seen, [Phase::ForwardDone]);
//! ```

use std::cell::Cell;
use std::ptr::NonNull;

/// A moment inside a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The forward pass is done and the backward pass has not begun.
    ForwardDone,
    /// The backward pass of a group of segments is done, and its gradients are about to be handed over.
    SegmentDone {
        /// The group, counted from 0 at the input.
        group: usize,
    },
}

type Listener<'a> = dyn FnMut(Phase) + 'a;

thread_local! {
    static LISTENER: Cell<Option<NonNull<Listener<'static>>>> = const { Cell::new(None) };
}

/// Says that the forward pass of the present step is done and its backward pass has not begun.
pub fn forward_done() {
    tell(Phase::ForwardDone);
}

/// Says that the backward pass of group `group` of a segmented model is done and its gradients are all there.
pub fn segment_done(group: usize) {
    tell(Phase::SegmentDone { group });
}

fn tell(phase: Phase) {
    // Taken out while it runs, so that a listener that runs a model of its own does not call itself.
    if let Some(mut listener) = LISTENER.take() {
        // SAFETY: `listen` put the pointer there and takes it out, also on unwinding, before the closure it points to
        // ends; only this thread sees it, and it is not in the cell while it is borrowed here.
        unsafe { listener.as_mut()(phase) };
        LISTENER.set(Some(listener));
    }
}

/// Runs `step`; `listener` is called wherever it calls [`forward_done`] or [`segment_done`] on this thread.
pub fn listen<R>(mut listener: impl FnMut(Phase), step: impl FnOnce() -> R) -> R {
    struct Restore(Option<NonNull<Listener<'static>>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LISTENER.set(self.0);
        }
    }
    let listener: NonNull<Listener<'_>> = NonNull::from(&mut listener as &mut Listener<'_>);
    // SAFETY: only the lifetime changes. `Restore` takes the pointer out of the cell before `listener` is dropped:
    // it is declared after it, and it runs on unwinding as well.
    let listener: NonNull<Listener<'static>> = unsafe { std::mem::transmute(listener) };
    let _restore = Restore(LISTENER.replace(Some(listener)));
    step()
}
