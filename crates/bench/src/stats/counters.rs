//! Memory counters: which one decides, and that only the same ones are compared.

use mem_policy::Backend;
use serde::{Deserialize, Serialize};

use super::{Change, Side, Unit};
use crate::run::spec::{PeakKind, PeakReading, RunResult};

/// The pool's exact high-water mark.
const POOL: &str = "pool.reserved";
/// Every allocation of the process, exactly.
const HEAP: &str = "heap.in_use";

/// The counter that decides about a policy: what Burn's pool reserved where there is a pool; on the CPU, where there is
/// none, what the process allocated. `None` if neither can be read.
#[must_use]
pub fn primary_counter(baseline: &RunResult) -> Option<&'static str> {
    let read = |key| matches!(baseline.peaks.get(key), Some(PeakReading::Read { .. }));
    if read(POOL) {
        Some(POOL)
    } else if baseline.environment.backend == Backend::Cpu && read(HEAP) {
        Some(HEAP)
    } else {
        None
    }
}

/// The peak of one counter of an arm against the baseline's peak of the same counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// The counter, on both sides: `pool.reserved`.
    pub counter: String,
    /// Where it is read, on both sides.
    pub source: String,
    /// How its peak came about, on both sides.
    pub how: PeakKind,
    /// The change. `None` if there is nothing to compare.
    pub change: Option<Change>,
    /// Why there is nothing to compare.
    pub why_not: Option<String>,
}

impl MemoryChange {
    /// The change of `counter` over `pairs` of results, arm first. `None` if no baseline read it.
    #[must_use]
    pub fn of(counter: &str, pairs: &[(&RunResult, &RunResult)]) -> Option<Self> {
        let (source, how) = pairs.iter().find_map(|(_, baseline)| identity(baseline.peaks.get(counter)?))?;
        let mut sides = Vec::new();
        let mut why_not = None;
        for (arm, baseline) in pairs {
            match (reading(arm, counter), reading(baseline, counter)) {
                (Ok(arm), Ok(baseline)) if arm.1 == baseline.1 => {
                    sides.push(Side { arm: arm.0, baseline: baseline.0 });
                }
                (Ok((_, arm)), Ok((_, baseline))) => {
                    why_not = Some(format!("the counters differ: {arm} against {baseline}"));
                }
                (Err(why), _) | (_, Err(why)) => why_not = Some(why),
            }
        }
        let change = if why_not.is_none() { Change::of(Unit::Bytes, &sides) } else { None };
        Some(Self { counter: counter.to_owned(), source: source.to_owned(), how, change, why_not })
    }
}

fn identity(reading: &PeakReading) -> Option<(&str, PeakKind)> {
    match reading {
        PeakReading::Read { source, how, .. } => Some((source, *how)),
        PeakReading::Absent { .. } => None,
    }
}

/// A counter's value in bytes and its identity, or why it is not there.
#[expect(clippy::cast_precision_loss, reason = "sizes of memory are far below 2^52 bytes")]
fn reading(result: &RunResult, counter: &str) -> Result<(f64, String), String> {
    match result.peaks.get(counter) {
        Some(PeakReading::Read { bytes, how, source }) => {
            let how = match how {
                PeakKind::Exact => "exact",
                PeakKind::Sampled => "sampled",
            };
            Ok((*bytes as f64, format!("{counter} from {source} ({how})")))
        }
        Some(PeakReading::Absent { why }) => Err(why.clone()),
        None => Err(format!("{counter} was not recorded")),
    }
}
