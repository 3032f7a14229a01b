//! Ctrl-C, as a flag that loops look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants the experiment to end.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that nothing sets but [`set`](Self::set).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that Ctrl-C sets, and the signals that ask a program to end (`SIGTERM`, `SIGHUP`).
    ///
    /// # Errors
    ///
    /// What the system says, or that a handler is there already.
    pub fn on_ctrl_c() -> Result<Self, ctrlc::Error> {
        let interrupt = Self::new();
        let flag = interrupt.clone();
        ctrlc::set_handler(move || flag.set())?;
        Ok(interrupt)
    }

    /// Asks for the end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
