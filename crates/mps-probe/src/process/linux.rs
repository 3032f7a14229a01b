//! `/proc/self/status`.

use crate::{Counter, Measurement, Quality};

const STATUS: &str = "/proc/self/status";

pub(super) fn read() -> Vec<Measurement> {
    let status = std::fs::read_to_string(STATUS).map_err(|error| format!("{STATUS}: {error}"));
    let field = |name: &str| status.as_deref().map_err(Clone::clone).and_then(|text| kib_field(text, name));
    let resident = Measurement::from_result(
        Counter::ProcessResident,
        Quality::Estimate,
        "VmRSS of /proc/self/status",
        field("VmRSS"),
    );
    let peak = Measurement::from_result(
        Counter::ProcessResidentPeak,
        Quality::HighWater,
        "VmHWM of /proc/self/status",
        field("VmHWM"),
    );
    [resident, peak].into_iter().chain(super::no_footprint()).collect()
}

/// The value of a line such as `VmRSS:      1752 kB`, in bytes.
fn kib_field(status: &str, name: &str) -> Result<u64, String> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .ok_or_else(|| format!("{STATUS} has no field {name}"))?;
    line.trim()
        .strip_suffix("kB")
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| format!("{STATUS} has a {name} that is no number of kB: {:?}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_kibibytes_and_what_is_wrong_is_named() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1752 kB\nVmOdd:\t 12 pages\nVmRSSExtra:\t 1 kB\n";
        assert_eq!(kib_field(status, "VmRSS"), Ok(1752 * 1024));
        assert_eq!(kib_field(status, "VmHWM"), Ok(2 << 20));
        assert_eq!(kib_field(status, "VmLib").unwrap_err(), "/proc/self/status has no field VmLib");
        assert!(kib_field(status, "VmOdd").unwrap_err().contains("12 pages"));
    }
}
