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
    /// How the arm's peak came about: sampled if it was so in any run.
    pub arm_how: PeakKind,
    /// How the baseline's peak came about.
    pub baseline_how: PeakKind,
    /// The change. `None` if there is nothing to compare.
    pub change: Option<Change>,
    /// Why there is nothing to compare.
    pub why_not: Option<String>,
}

impl MemoryChange {
    /// The change of `counter` over `pairs` of results, arm first. `None` if no baseline read it.
    #[must_use]
    pub fn of(counter: &str, pairs: &[(&RunResult, &RunResult)]) -> Option<Self> {
        let source = pairs.iter().find_map(|(_, baseline)| reading(baseline, counter).ok())?.source.to_owned();
        let (mut arm_how, mut baseline_how) = (PeakKind::Exact, PeakKind::Exact);
        let mut sides = Vec::new();
        let mut why_not = None;
        for (arm, baseline) in pairs {
            match (reading(arm, counter), reading(baseline, counter)) {
                (Ok(arm), Ok(baseline)) if arm.source == baseline.source => {
                    sides.push(Side { arm: arm.bytes, baseline: baseline.bytes });
                    arm_how = looser(arm_how, arm.how);
                    baseline_how = looser(baseline_how, baseline.how);
                }
                (Ok(arm), Ok(baseline)) => {
                    let (arm, baseline) = (arm.source, baseline.source);
                    why_not = Some(format!("{counter} was read from {arm}, and for the baseline from {baseline}"));
                }
                (Err(why), _) | (_, Err(why)) => why_not = Some(why),
            }
        }
        let change = if why_not.is_none() { Change::of(Unit::Bytes, &sides) } else { None };
        Some(Self { counter: counter.to_owned(), source, arm_how, baseline_how, change, why_not })
    }

    /// What a reader should know if one side's peak is exact and the other's is not.
    #[must_use]
    pub fn caution(&self) -> Option<&'static str> {
        match (self.arm_how, self.baseline_how) {
            (PeakKind::Sampled, PeakKind::Exact) => {
                Some("its peak is sampled and may be higher; the baseline's is exact")
            }
            (PeakKind::Exact, PeakKind::Sampled) => Some("the baseline's peak is sampled and may be higher"),
            _ => None,
        }
    }
}

fn looser(a: PeakKind, b: PeakKind) -> PeakKind {
    if a == PeakKind::Exact { b } else { a }
}

struct Reading<'a> {
    bytes: f64,
    how: PeakKind,
    source: &'a str,
}

/// A counter's peak, or why it is not there.
#[expect(clippy::cast_precision_loss, reason = "sizes of memory are far below 2^52 bytes")]
fn reading<'a>(result: &'a RunResult, counter: &str) -> Result<Reading<'a>, String> {
    match result.peaks.get(counter) {
        Some(PeakReading::Read { bytes, how, source }) => Ok(Reading { bytes: *bytes as f64, how: *how, source }),
        Some(PeakReading::Absent { why }) => Err(why.clone()),
        None => Err(format!("{counter} was not recorded")),
    }
}
