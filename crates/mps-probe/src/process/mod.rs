//! The process's own memory, and its children's.

mod children;
#[cfg(any(test, not(any(target_os = "linux", target_os = "macos"))))]
mod generic;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

pub use children::children_peak_resident;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use generic as imp;
#[cfg(target_os = "linux")]
use linux as imp;
#[cfg(target_os = "macos")]
use macos as imp;

use crate::{Measurement, Probe};

/// Reads the process's resident set and its peak, and on macOS its physical footprint and that one's peak.
///
/// | | resident | peak resident | footprint, and its peak |
/// |---|---|---|---|
/// | Linux | `VmRSS` of `/proc/self/status` | `VmHWM` | absent |
/// | macOS | `ri_resident_size` of `proc_pid_rusage` | `ru_maxrss` of `getrusage` | `ri_phys_footprint`, `ri_lifetime_max_phys_footprint` |
/// | others | `sysinfo` | `getrusage` on Unix, else absent | absent |
///
/// # What it does not see
///
/// * The memory of a discrete GPU. On unified memory the GPU's buffers count as resident only while they are mapped and
///   touched; macOS's footprint includes them.
/// * Pages that were swapped out or compressed are not resident: under memory pressure the resident set *shrinks*. The
///   footprint includes compressed pages.
/// * Pages shared with other processes (libraries, page cache of mapped files) count in full.
/// * The peaks are monotone for the process's lifetime: they include start-up, and cannot tell one step from another.
///   To compare two configurations, run each in a process of its own.
/// * Linux updates `VmRSS` lazily: each thread may hold back up to some tens of pages.
///
/// # How it perturbs
///
/// Linux: opening and reading a file of about 1.5 kB, which costs tens of microseconds and a few kilobytes of heap for
/// the moment. macOS: two system calls, no heap. Touches no device.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessProbe;

impl Probe for ProcessProbe {
    fn id(&self) -> &'static str {
        "process"
    }

    fn read(&self) -> Vec<Measurement> {
        imp::read()
    }
}

#[cfg(not(target_os = "macos"))]
fn no_footprint() -> [Measurement; 2] {
    use crate::Counter::{ProcessFootprint, ProcessFootprintPeak};
    [ProcessFootprint, ProcessFootprintPeak]
        .map(|counter| Measurement::absent(counter, "phys_footprint exists on macOS only"))
}

/// `ru_maxrss` in bytes, of the process itself or of the children it has waited for.
#[cfg(unix)]
fn max_resident(who: libc::c_int) -> Result<u64, String> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for one `rusage`, which lives through the call.
    if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
        return Err(format!("getrusage failed: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: `rusage` is plain integers, all of them initialised with zeros before the call.
    let usage = unsafe { usage.assume_init() };
    // macOS counts bytes here, every other system kibibytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    match u64::try_from(usage.ru_maxrss) {
        Ok(0) | Err(_) => Err(format!("getrusage gives a ru_maxrss of {}", usage.ru_maxrss)),
        Ok(amount) => Ok(amount * unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, ProbeSet};

    const MIB: u64 = 1 << 20;

    #[test]
    fn resident_memory_and_its_peak_follow_touched_pages() {
        let probes = ProbeSet::new().with(ProcessProbe);
        let before = probes.read();
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        let during = probes.read();
        drop(touched);
        let after = probes.read();
        let bytes = |snapshot: &crate::Snapshot, counter| snapshot.bytes(counter).unwrap();
        let grown = bytes(&during, Counter::ProcessResident) - bytes(&before, Counter::ProcessResident);
        assert!((60 * MIB..80 * MIB).contains(&grown), "{grown}");
        let peak = bytes(&after, Counter::ProcessResidentPeak);
        assert!(peak + MIB >= bytes(&during, Counter::ProcessResident), "{after:?}");
        assert!(bytes(&after, Counter::ProcessResident) + 60 * MIB < peak + MIB, "{after:?}");
    }

    #[test]
    fn the_portable_reading_agrees_with_the_system_specific_one() {
        let resident = |all: Vec<Measurement>| {
            all.iter().find(|m| m.counter() == Counter::ProcessResident).and_then(Measurement::bytes).unwrap()
        };
        let (portable, specific) = (resident(generic::read()), resident(imp::read()));
        assert!(portable.abs_diff(specific) < 4 * MIB, "{portable} {specific}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn getrusage_and_the_status_file_agree_on_the_peak() {
        let status = ProbeSet::new().with(ProcessProbe).read().bytes(Counter::ProcessResidentPeak).unwrap();
        let usage = max_resident(libc::RUSAGE_SELF).unwrap();
        // `ru_maxrss` also remembers the program that was replaced by exec.
        assert!(usage + MIB >= status, "{usage} {status}");
    }
}
