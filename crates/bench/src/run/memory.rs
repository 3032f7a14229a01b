//! The probes of a run and the peaks of their counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use mem_policy::{MemorySource, MemoryUsage};
use mps_probe::{Budget, Counter, Measurement, ProbeSet, Quality, SampledPeaks, Snapshot};

use super::spec::{PeakKind, PeakReading};

/// What a policy reads: the device's budget, or the host's on a CPU.
pub(super) struct Source(pub(super) Arc<ProbeSet>);

impl MemorySource for Source {
    fn usage(&self) -> Option<MemoryUsage> {
        let Budget { limit, used, .. } = Budget::of(&self.0.read()).ok()?;
        let named = |reading: &mps_probe::Reading| format!("{} ({})", reading.counter.id(), reading.source);
        Some(MemoryUsage::new(used.bytes, named(&used)).of(limit.bytes, named(&limit)))
    }
}

/// The peaks a record keeps: its key, the counter that is read, and whether the counter keeps its own peak.
const PEAKS: [(&str, Counter); 9] = [
    ("heap.in_use", Counter::HeapPeak),
    ("pool.in_use", Counter::PoolInUse),
    ("pool.padding", Counter::PoolPadding),
    ("pool.pages", Counter::PoolPagesPeak),
    ("process.resident", Counter::ProcessResidentPeak),
    ("process.footprint", Counter::ProcessFootprintPeak),
    ("device.in_use", Counter::DeviceInUse),
    ("wgpu.reserved", Counter::WgpuReserved),
    ("pool.reserved", Counter::PoolReserved),
];

/// Keeps the largest values.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    samples: SampledPeaks,
}

impl Peaks {
    pub(super) fn observe(&mut self, snapshot: &Snapshot) {
        self.samples.observe(snapshot);
    }

    /// The peaks so far. `pools_only_grew`: nothing was given back to the driver, so what is reserved now is the most
    /// that ever was.
    pub(super) fn readings(&self, pools_only_grew: bool) -> BTreeMap<String, PeakReading> {
        PEAKS
            .into_iter()
            .map(|(key, counter)| {
                let exact = counter == Counter::PoolReserved && pools_only_grew;
                (key.to_owned(), reading(&self.samples.peak(counter), exact))
            })
            .collect()
    }
}

fn reading(peak: &Measurement, exact: bool) -> PeakReading {
    match peak {
        Measurement::Present(reading) => PeakReading::Read {
            bytes: reading.bytes,
            how: if exact || reading.quality == Quality::HighWater { PeakKind::Exact } else { PeakKind::Sampled },
            source: reading.source.to_string(),
        },
        Measurement::Absent(absent) => PeakReading::Absent { why: absent.why.to_string() },
    }
}
