//! Marks inside a training step that only the model can set.
//!
//! A trainer sees the start and the end of `TrainStep::step`, but not where the forward pass ends, which is where the
//! most activations are alive. A model that calls [`forward_done`] there lets whoever listens read memory at that
//! moment. Without a listener the call costs a thread-local read.
//!
//! ```
//! use mem_policy::phase;
//!
//! let mut count = 0;
//! phase::listen(|| count += 1, || {
//!     // ... the forward pass ...
//!     phase::forward_done();
//!     // ... the backward pass ...
//! });
//! assert_eq!(count, 1);
//! phase::forward_done(); // nobody listens
//! assert_eq!(count, 1);
//! ```

use std::cell::Cell;
use std::ptr::NonNull;

type Listener<'a> = dyn FnMut() + 'a;

thread_local! {
    static LISTENER: Cell<Option<NonNull<Listener<'static>>>> = const { Cell::new(None) };
}

/// Says that the forward pass of the present step is done and its backward pass has not begun.
pub fn forward_done() {
    // Taken out while it runs, so that a listener that runs a model of its own does not call itself.
    if let Some(mut listener) = LISTENER.take() {
        // SAFETY: `listen` put the pointer there and takes it out, also on unwinding, before the closure it points to
        // ends; only this thread sees it, and it is not in the cell while it is borrowed here.
        unsafe { listener.as_mut()() };
        LISTENER.set(Some(listener));
    }
}

/// Runs `step`; `listener` is called wherever it calls [`forward_done`] on this thread.
pub fn listen<R>(mut listener: impl FnMut(), step: impl FnOnce() -> R) -> R {
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
