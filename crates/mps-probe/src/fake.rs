//! A probe that says what it is told.

use std::sync::{Mutex, PoisonError};

use crate::{Measurement, Probe};

/// A probe with scripted readings, for tests that need no device.
///
/// Each [`read`](Probe::read) gives the next scripted answer; the last one repeats. Without a script it reads nothing.
///
/// ```
/// use mps_probe::{Counter, FakeProbe, Measurement, Probe, Quality};
///
/// let used = |bytes| [Measurement::present(Counter::DeviceInUse, bytes, "script", Quality::Exact)];
/// let probe = FakeProbe::new("device").then(used(10)).then(used(20));
/// let seen: Vec<_> = (0..3).map(|_| probe.read()[0].bytes()).collect();
/// assert_eq!(seen, [Some(10), Some(20), Some(20)]);
/// ```
#[derive(Debug)]
pub struct FakeProbe {
    id: &'static str,
    script: Vec<Vec<Measurement>>,
    reads: Mutex<usize>,
}

impl FakeProbe {
    /// A probe called `id` that reads nothing.
    pub fn new(id: &'static str) -> Self {
        Self { id, script: Vec::new(), reads: Mutex::new(0) }
    }

    /// The probe with one more answer at the end of its script.
    #[must_use]
    pub fn then(mut self, answer: impl Into<Vec<Measurement>>) -> Self {
        self.script.push(answer.into());
        self
    }

    /// How often it was read.
    pub fn reads(&self) -> usize {
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe for FakeProbe {
    fn id(&self) -> &'static str {
        self.id
    }

    fn read(&self) -> Vec<Measurement> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.script.get(*reads).or(self.script.last()).cloned().unwrap_or_default();
        *reads += 1;
        answer
    }
}
