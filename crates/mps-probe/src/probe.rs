//! Who reads, and a set of them.

use std::fmt;
use std::time::Instant;

use crate::{Measurement, Snapshot};

/// Something that can read memory counters. It measures; it does not print.
///
/// A probe that cannot read a counter it is responsible for returns it as absent, with the reason, instead of leaving it
/// out. Reading never fails as a whole and never panics.
///
/// ```
/// use mps_probe::{Counter, Measurement, Probe, Quality};
///
/// /// Reads the size of one file as if it were device memory.
/// #[derive(Debug)]
/// struct FileProbe(std::path::PathBuf);
///
/// impl Probe for FileProbe {
///     fn id(&self) -> &'static str {
///         "file"
///     }
///
///     fn read(&self) -> Vec<Measurement> {
///         vec![match std::fs::metadata(&self.0) {
///             Ok(meta) => Measurement::present(Counter::DeviceInUse, meta.len(), "stat", Quality::Exact),
///             Err(error) => Measurement::absent(Counter::DeviceInUse, format!("{}: {error}", self.0.display())),
///         }]
///     }
/// }
///
/// let missing = FileProbe("/no/such/file".into()).read();
/// assert_eq!(missing[0].bytes(), None);
/// ```
pub trait Probe: fmt::Debug + Send + Sync {
    /// A short name, unique in a [`ProbeSet`].
    fn id(&self) -> &'static str;

    /// Reads every counter of this probe once, now.
    fn read(&self) -> Vec<Measurement>;
}

const _: fn(&dyn Probe) = |_| {};

/// Probes that are read together, in the order they were added.
#[derive(Debug, Default)]
pub struct ProbeSet {
    probes: Vec<Box<dyn Probe>>,
}

impl ProbeSet {
    /// No probes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The probes that every machine has: [`ProcessProbe`](crate::ProcessProbe) and
    /// [`SystemProbe`](crate::SystemProbe).
    pub fn host() -> Self {
        Self::new().with(crate::ProcessProbe).with(crate::SystemProbe)
    }

    /// The set with one more probe.
    #[must_use]
    pub fn with(mut self, probe: impl Probe + 'static) -> Self {
        self.push(Box::new(probe));
        self
    }

    /// Adds a probe.
    pub fn push(&mut self, probe: Box<dyn Probe>) {
        self.probes.push(probe);
    }

    /// The ids of the probes, in reading order.
    pub fn ids(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.probes.iter().map(|probe| probe.id())
    }

    /// Reads every probe once, one after the other on this thread.
    ///
    /// The readings are close in time but not simultaneous; [`Snapshot::took_ns`] says how far they can be apart.
    pub fn read(&self) -> Snapshot {
        let start = Instant::now();
        let mut snapshot = Snapshot::starting_at(start);
        for probe in &self.probes {
            snapshot.extend(probe.id(), probe.read());
        }
        snapshot.finish(start.elapsed());
        snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, FakeProbe, Quality};

    #[test]
    fn a_set_reads_its_probes_in_order_and_names_them() {
        let reading = |bytes| Measurement::present(Counter::PoolInUse, bytes, "script", Quality::Exact);
        let set = ProbeSet::new()
            .with(FakeProbe::new("first").then([reading(1)]))
            .with(FakeProbe::new("second").then([reading(2)]));
        assert_eq!(set.ids().collect::<Vec<_>>(), ["first", "second"]);
        let snapshot = set.read();
        let seen: Vec<_> = snapshot.measurements.iter().map(|m| (m.probe.as_ref(), m.measurement.bytes())).collect();
        assert_eq!(seen, [("first", Some(1)), ("second", Some(2))]);
    }
}
