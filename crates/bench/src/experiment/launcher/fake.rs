//! Plays runs from a list.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use super::{LaunchError, Launcher, Observation};
use crate::experiment::Interrupt;
use crate::run::spec::RunSpec;

/// A launcher that starts nothing: it answers with what a function makes of each specification.
pub struct FakeLauncher<F> {
    answer: F,
    /// The specifications it was given.
    pub seen: VecDeque<RunSpec>,
}

impl<F: FnMut(&RunSpec, &Interrupt) -> Observation> FakeLauncher<F> {
    /// A launcher that answers with `answer`.
    pub fn new(answer: F) -> Self {
        Self { answer, seen: VecDeque::new() }
    }
}

impl<F: FnMut(&RunSpec, &Interrupt) -> Observation> Launcher for FakeLauncher<F> {
    fn launch(
        &mut self,
        spec: &RunSpec,
        _folder: &Path,
        _timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Observation, LaunchError> {
        self.seen.push_back(spec.clone());
        Ok((self.answer)(spec, interrupt))
    }
}
