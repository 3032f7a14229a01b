//! How much may be used, and which share of it is.

use serde::{Deserialize, Serialize};

use crate::{Counter, Measurement, Quality, Reading, Snapshot};

/// No budget can be told from the readings at hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// None of the counters that could give the budget, or the use, has a value.
    #[error("no {what} is known: {}; add a probe that reads one of them", reasons.join("; "))]
    Unknown {
        /// `budget` or `use`.
        what: &'static str,
        /// Each counter that was tried, and why it is absent.
        reasons: Vec<String>,
    },
    /// A source says that nothing may be used, so no share of it can be computed.
    #[error("{counter} is zero bytes according to {from}; check the driver or the limit")]
    Zero {
        /// The counter.
        counter: Counter,
        /// The reading's source.
        from: String,
    },
}

/// A limit and what counts against it, each with its counter and source.
///
/// ```
/// use mps_probe::{Budget, ProbeSet};
///
/// let budget = Budget::of(&ProbeSet::host().read())?;
/// assert!(budget.usage_share() > 0.0);
/// println!("{:.0} % of {}", 100.0 * budget.usage_share(), budget.limit);
/// # Ok::<(), mps_probe::BudgetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Budget {
    /// How much there is.
    pub limit: Reading,
    /// How much of it is used.
    pub used: Reading,
}

impl Budget {
    /// A budget from two readings.
    ///
    /// # Errors
    ///
    /// [`BudgetError::Zero`] if the limit is zero bytes.
    pub fn new(limit: Reading, used: Reading) -> Result<Self, BudgetError> {
        if limit.bytes == 0 {
            return Err(BudgetError::Zero { counter: limit.counter, from: limit.source.into_owned() });
        }
        Ok(Self { limit, used })
    }

    /// The device's budget if it has one ([`of_device`](Self::of_device)), else the host's ([`of_host`](Self::of_host)).
    ///
    /// # Errors
    ///
    /// The host's error if neither is known.
    pub fn of(snapshot: &Snapshot) -> Result<Self, BudgetError> {
        Self::of_device(snapshot).or_else(|_| Self::of_host(snapshot))
    }

    /// The device's budget against what the process uses of the device.
    ///
    /// The use is [`Counter::DeviceInUse`], or, where the graphics API does not tell it, [`Counter::PoolReserved`]:
    /// then memory that did not come from Burn's pools is missing.
    ///
    /// # Errors
    ///
    /// [`BudgetError::Unknown`] if either is absent, [`BudgetError::Zero`] for a budget of zero bytes.
    pub fn of_device(snapshot: &Snapshot) -> Result<Self, BudgetError> {
        let limit = first(snapshot, "budget", &[Counter::DeviceBudget])?;
        let used = first(snapshot, "use", &[Counter::DeviceInUse, Counter::PoolReserved])?;
        Self::new(limit, used)
    }

    /// The host's budget: the tighter of the control group's limit and the system's memory.
    ///
    /// Against a control group's limit counts what the group uses, because exceeding it gets a process of the group
    /// killed; against the system's memory counts everything that is not available, other processes included, because
    /// beyond it the system swaps. Where that is unknown, the process's own footprint or resident set is taken.
    ///
    /// # Errors
    ///
    /// [`BudgetError::Unknown`] if no limit or no use is known, [`BudgetError::Zero`] for a limit of zero bytes.
    pub fn of_host(snapshot: &Snapshot) -> Result<Self, BudgetError> {
        let total = first(snapshot, "budget", &[Counter::SystemTotal]);
        let group = first(snapshot, "budget", &[Counter::CgroupLimit]);
        let limit = match (total, group) {
            (Ok(total), Ok(group)) if group.bytes < total.bytes => group,
            (Ok(total), _) => total,
            (Err(_), Ok(group)) => group,
            (Err(_), Err(_)) => first(snapshot, "budget", &[Counter::SystemTotal, Counter::CgroupLimit])?,
        };
        let shared = match limit.counter {
            Counter::CgroupLimit => Counter::CgroupInUse,
            _ => Counter::SystemInUse,
        };
        let used = first(snapshot, "use", &[shared, Counter::ProcessFootprint, Counter::ProcessResident])?;
        Self::new(limit, used)
    }

    /// Used divided by limit. More than 1 if the limit is exceeded.
    pub fn usage_share(&self) -> f64 {
        self.used.bytes as f64 / self.limit.bytes as f64
    }

    /// Bytes left until the limit; 0 if it is exceeded.
    pub fn free_bytes(&self) -> u64 {
        self.limit.bytes.saturating_sub(self.used.bytes)
    }

    /// `share` of the limit in bytes, rounded down; a negative or undefined share gives 0.
    pub fn bytes_at(&self, share: f64) -> u64 {
        (self.limit.bytes as f64 * share) as u64
    }

    /// Whether the limit is one that the source calls an estimate, as Vulkan's budget is.
    pub fn is_estimate(&self) -> bool {
        self.limit.quality == Quality::Estimate
    }
}

/// The first of `counters` that has a value.
fn first(snapshot: &Snapshot, what: &'static str, counters: &[Counter]) -> Result<Reading, BudgetError> {
    let mut reasons = Vec::new();
    for &counter in counters {
        match snapshot.get(counter) {
            Measurement::Present(reading) => return Ok(reading),
            Measurement::Absent(absent) => reasons.push(absent.to_string()),
        }
    }
    Err(BudgetError::Unknown { what, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FakeProbe, ProbeSet};

    const GIB: u64 = 1 << 30;

    fn snapshot(readings: &[(Counter, u64)]) -> Snapshot {
        let script: Vec<_> = readings
            .iter()
            .map(|&(counter, bytes)| Measurement::present(counter, bytes, "script", Quality::Exact))
            .collect();
        ProbeSet::new().with(FakeProbe::new("fake").then(script)).read()
    }

    /// Which counters are chosen, and the share they give.
    fn check(readings: &[(Counter, u64)], limit: Counter, used: Counter, share: f64) {
        let budget = Budget::of(&snapshot(readings)).unwrap();
        assert_eq!((budget.limit.counter, budget.used.counter), (limit, used), "{readings:?}");
        assert!((budget.usage_share() - share).abs() < 1e-12, "{budget:?}");
    }

    #[test]
    fn the_budget_comes_from_the_device_before_the_host_and_from_the_tighter_host_limit() {
        use Counter::{
            CgroupInUse, CgroupLimit, DeviceBudget, DeviceInUse, PoolReserved, ProcessResident, SystemInUse,
            SystemTotal,
        };
        let host = [(SystemTotal, 16 * GIB), (SystemInUse, 4 * GIB)];
        check(&host, SystemTotal, SystemInUse, 0.25);
        let device = [host[0], host[1], (DeviceBudget, 8 * GIB), (DeviceInUse, 4 * GIB)];
        check(&device, DeviceBudget, DeviceInUse, 0.5);
        let no_device_use = [host[0], host[1], (DeviceBudget, 8 * GIB), (PoolReserved, 2 * GIB)];
        check(&no_device_use, DeviceBudget, PoolReserved, 0.25);
        let container = [host[0], host[1], (CgroupLimit, 2 * GIB), (CgroupInUse, GIB)];
        check(&container, CgroupLimit, CgroupInUse, 0.5);
        let loose_container = [host[0], host[1], (CgroupLimit, 64 * GIB), (CgroupInUse, GIB)];
        check(&loose_container, SystemTotal, SystemInUse, 0.25);
        let only_process = [(SystemTotal, 16 * GIB), (ProcessResident, GIB)];
        check(&only_process, SystemTotal, ProcessResident, 0.0625);
        let only_budget = [host[0], host[1], (DeviceBudget, 8 * GIB)];
        check(&only_budget, SystemTotal, SystemInUse, 0.25);
    }

    #[test]
    fn an_exceeded_budget_has_a_share_above_one_and_nothing_free() {
        let budget = Budget::of(&snapshot(&[(Counter::DeviceBudget, 100), (Counter::DeviceInUse, 130)])).unwrap();
        assert!(budget.usage_share() > 1.29);
        assert_eq!((budget.free_bytes(), budget.bytes_at(0.5), budget.bytes_at(-1.0)), (0, 50, 0));
    }

    #[test]
    fn a_missing_or_zero_limit_is_an_error_that_names_the_counter() {
        let error = Budget::of(&snapshot(&[])).unwrap_err().to_string();
        assert!(error.contains("system_total") && error.contains("cgroup_limit"), "{error}");
        let zero = Budget::of_device(&snapshot(&[(Counter::DeviceBudget, 0), (Counter::DeviceInUse, 0)])).unwrap_err();
        assert_eq!(zero, BudgetError::Zero { counter: Counter::DeviceBudget, from: "script".into() });
    }
}
