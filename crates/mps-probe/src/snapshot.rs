//! All readings at one moment, and the largest over several moments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{Absent, Counter, Measurement, Quality, Reading};

/// What one probe said about one counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Measured {
    /// The [`Probe::id`](crate::Probe::id) of who said it.
    pub probe: Cow<'static, str>,
    /// What it said.
    #[serde(flatten)]
    pub measurement: Measurement,
}

/// All readings of a [`ProbeSet`](crate::ProbeSet) at (nearly) one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Nanoseconds on the monotonic clock since the first snapshot of this process.
    /// Comparable within a process only.
    pub at_ns: u64,
    /// Nanoseconds that reading took, from the first probe to the last.
    pub took_ns: u64,
    /// The readings, in reading order.
    pub measurements: Vec<Measured>,
}

impl Snapshot {
    pub(crate) fn starting_at(now: Instant) -> Self {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        let epoch = *EPOCH.get_or_init(|| now);
        Self { at_ns: nanos(now.saturating_duration_since(epoch)), took_ns: 0, measurements: Vec::new() }
    }

    pub(crate) fn extend(&mut self, probe: &'static str, measurements: Vec<Measurement>) {
        self.measurements
            .extend(measurements.into_iter().map(|measurement| Measured { probe: probe.into(), measurement }));
    }

    pub(crate) fn finish(&mut self, took: Duration) {
        self.took_ns = nanos(took);
    }

    /// What is known about `counter`: the first value if any probe has one, else the first reason, else that no probe
    /// reads it.
    pub fn get(&self, counter: Counter) -> Measurement {
        let of_counter = || self.measurements.iter().map(|m| &m.measurement).filter(|m| m.counter() == counter);
        of_counter()
            .find(|m| m.reading().is_some())
            .or_else(|| of_counter().next())
            .cloned()
            .unwrap_or_else(|| Measurement::absent(counter, "no probe of this set reads it"))
    }

    /// The value of `counter` in bytes, if any probe has one.
    pub fn bytes(&self, counter: Counter) -> Option<u64> {
        self.get(counter).bytes()
    }

    /// The values that are present, in bytes, without sources: a compact form for a series of samples.
    pub fn bytes_by_counter(&self) -> BTreeMap<Counter, u64> {
        let mut map = BTreeMap::new();
        for reading in self.readings() {
            map.entry(reading.counter).or_insert(reading.bytes);
        }
        map
    }

    /// The readings that are present.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> + '_ {
        self.measurements.iter().filter_map(|m| m.measurement.reading())
    }

    /// The counters that could not be read.
    pub fn absent(&self) -> impl Iterator<Item = &Absent> + '_ {
        self.measurements.iter().filter_map(|m| match &m.measurement {
            Measurement::Absent(absent) => Some(absent),
            Measurement::Present(_) => None,
        })
    }
}

/// The largest value of each counter over several snapshots.
///
/// A peak between two snapshots is missed, so a result has [`Quality::SampledPeak`], unless every sample already was a
/// high-water mark, a limit or a bound, whose quality is kept.
///
/// ```
/// use mps_probe::{ProbeSet, SampledPeaks, Counter};
///
/// let probes = ProbeSet::host();
/// let mut peaks = SampledPeaks::new();
/// for _ in 0..3 {
///     peaks.observe(&probes.read());
/// }
/// assert_eq!(peaks.samples(), 3);
/// println!("{}", peaks.peak(Counter::ProcessResident));
/// ```
#[derive(Debug, Clone, Default)]
pub struct SampledPeaks {
    samples: u64,
    peaks: BTreeMap<Counter, Reading>,
    absent: BTreeMap<Counter, Absent>,
}

impl SampledPeaks {
    /// No samples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one snapshot into account.
    pub fn observe(&mut self, snapshot: &Snapshot) {
        self.samples += 1;
        for Measured { measurement, .. } in &snapshot.measurements {
            match measurement {
                Measurement::Present(reading) => self.raise(reading),
                Measurement::Absent(absent) => {
                    self.absent.insert(absent.counter, absent.clone());
                }
            }
        }
    }

    fn raise(&mut self, reading: &Reading) {
        let mut candidate = reading.clone();
        candidate.quality = match reading.quality {
            Quality::Exact | Quality::Estimate | Quality::SampledPeak => Quality::SampledPeak,
            kept @ (Quality::HighWater | Quality::UpperBound | Quality::Limit) => kept,
        };
        self.peaks
            .entry(reading.counter)
            .and_modify(|peak| {
                if peak.bytes < candidate.bytes {
                    *peak = candidate.clone();
                }
            })
            .or_insert(candidate);
    }

    /// How many snapshots were taken into account.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The largest value of `counter`, or why none was ever read.
    pub fn peak(&self, counter: Counter) -> Measurement {
        if let Some(reading) = self.peaks.get(&counter) {
            return reading.clone().into();
        }
        match self.absent.get(&counter) {
            Some(absent) => absent.clone().into(),
            None => Measurement::absent(counter, "it was never sampled"),
        }
    }

    /// Every counter that was seen, present or not, in the order of [`Counter::ALL`].
    pub fn all(&self) -> impl Iterator<Item = Measurement> + '_ {
        let seen = |counter: &Counter| self.peaks.contains_key(counter) || self.absent.contains_key(counter);
        Counter::ALL.into_iter().filter(seen).map(|counter| self.peak(counter))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FakeProbe, ProbeSet};

    fn in_use(bytes: u64) -> Measurement {
        Measurement::present(Counter::PoolInUse, bytes, "script", Quality::Exact)
    }

    #[test]
    fn snapshots_of_a_process_are_ordered_in_time() {
        let set = ProbeSet::new().with(FakeProbe::new("fake").then([in_use(1)]));
        let (first, second) = (set.read(), set.read());
        assert!(first.at_ns + first.took_ns <= second.at_ns, "{first:?} {second:?}");
    }

    #[test]
    fn a_value_is_preferred_to_an_earlier_absence() {
        let set = ProbeSet::new()
            .with(FakeProbe::new("without").then([Measurement::absent(Counter::PoolInUse, "no pools")]))
            .with(FakeProbe::new("with").then([in_use(7)]));
        assert_eq!(set.read().bytes(Counter::PoolInUse), Some(7));
    }

    #[test]
    fn a_counter_nobody_reads_is_absent_with_a_reason() {
        let snapshot = ProbeSet::new().read();
        let Measurement::Absent(absent) = snapshot.get(Counter::HeapPeak) else { panic!("{snapshot:?}") };
        assert_eq!(absent.why, "no probe of this set reads it");
    }

    #[test]
    fn a_snapshot_survives_json_with_flat_rows() {
        let set = ProbeSet::new()
            .with(FakeProbe::new("fake").then([in_use(5), Measurement::absent(Counter::HeapPeak, "not installed")]));
        let snapshot = set.read();
        let json = serde_json::to_value(&snapshot).unwrap();
        assert_eq!(json["measurements"][0]["probe"], "fake");
        assert_eq!(json["measurements"][0]["bytes"], 5);
        assert_eq!(serde_json::from_value::<Snapshot>(json).unwrap(), snapshot);
        assert_eq!(serde_json::to_string(&snapshot.bytes_by_counter()).unwrap(), r#"{"pool_in_use":5}"#);
    }

    #[test]
    fn a_sampled_peak_says_so_and_a_high_water_mark_stays_one() {
        let mark = |bytes| Measurement::present(Counter::HeapPeak, bytes, "script", Quality::HighWater);
        let set = ProbeSet::new().with(
            FakeProbe::new("fake")
                .then([in_use(10), mark(50)])
                .then([in_use(30), mark(60)])
                .then([in_use(20), mark(60)]),
        );
        let mut peaks = SampledPeaks::new();
        for _ in 0..3 {
            peaks.observe(&set.read());
        }
        let summary: Vec<_> =
            peaks.all().filter_map(|m| m.reading().map(|r| (r.counter, r.bytes, r.quality))).collect();
        assert_eq!(
            summary,
            [(Counter::HeapPeak, 60, Quality::HighWater), (Counter::PoolInUse, 30, Quality::SampledPeak)]
        );
        assert_eq!(peaks.peak(Counter::DeviceInUse).bytes(), None);
    }
}
