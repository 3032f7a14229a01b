//! What is left of a child that is gone.

#[cfg(unix)]
use crate::Quality;
use crate::{Counter, Measurement};

/// The largest peak resident set among the children that this process has waited for, also of children that were killed.
///
/// From `getrusage(RUSAGE_CHILDREN)`, which is what remains of a child that an out-of-memory killer ended before it
/// could report.
///
/// * It is one maximum over *all* children so far, and over the grandchildren they waited for: it cannot be reset. To
///   attribute it to one child, compare it before and after: if it did not rise, the child stayed at or below it.
/// * A child counts once it was waited for ([`std::process::Child::wait`] does that), not while it runs.
/// * On Linux a child's peak starts with the pages of the parent that spawned it, so it is never below what the parent
///   had resident at that moment. A launcher should stay small.
///
/// Absent before the first child was waited for, and on systems without `getrusage`. Costs one system call.
///
/// ```
/// let before = mps_probe::children_peak_resident();
/// println!("{before}");
/// ```
pub fn children_peak_resident() -> Measurement {
    #[cfg(unix)]
    return match super::max_resident(libc::RUSAGE_CHILDREN) {
        Ok(bytes) => Measurement::present(
            Counter::ChildrenResidentPeak,
            bytes,
            "ru_maxrss of getrusage(RUSAGE_CHILDREN)",
            Quality::HighWater,
        ),
        Err(why) => {
            Measurement::absent(Counter::ChildrenResidentPeak, format!("no child has been waited for yet ({why})"))
        }
    };
    #[cfg(not(unix))]
    Measurement::absent(Counter::ChildrenResidentPeak, "getrusage exists on Unix only")
}
