//! `proc_pid_rusage` and `getrusage`.

use std::mem::MaybeUninit;

use crate::{Counter, Measurement, Quality};

pub(super) fn read() -> Vec<Measurement> {
    let usage = usage();
    let field = |value: fn(&libc::rusage_info_v4) -> u64| usage.as_ref().map(value).map_err(Clone::clone);
    vec![
        Measurement::from_result(
            Counter::ProcessResident,
            Quality::Exact,
            "ri_resident_size of proc_pid_rusage",
            field(|usage| usage.ri_resident_size),
        ),
        Measurement::from_result(
            Counter::ProcessResidentPeak,
            Quality::HighWater,
            "ru_maxrss of getrusage(RUSAGE_SELF)",
            super::max_resident(libc::RUSAGE_SELF),
        ),
        Measurement::from_result(
            Counter::ProcessFootprint,
            Quality::Exact,
            "ri_phys_footprint of proc_pid_rusage",
            field(|usage| usage.ri_phys_footprint),
        ),
        Measurement::from_result(
            Counter::ProcessFootprintPeak,
            Quality::HighWater,
            "ri_lifetime_max_phys_footprint of proc_pid_rusage",
            field(|usage| usage.ri_lifetime_max_phys_footprint),
        ),
    ]
}

fn usage() -> Result<libc::rusage_info_v4, String> {
    let mut usage = MaybeUninit::<libc::rusage_info_v4>::zeroed();
    // SAFETY: `getpid` cannot fail and touches no memory.
    let pid = unsafe { libc::getpid() };
    // SAFETY: flavour V4 writes one `rusage_info_v4`, and `usage` is a valid place for it that lives through the call.
    let status = unsafe { libc::proc_pid_rusage(pid, libc::RUSAGE_INFO_V4, usage.as_mut_ptr().cast()) };
    if status != 0 {
        return Err(format!("proc_pid_rusage failed: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: plain integers, all initialised with zeros before the call.
    Ok(unsafe { usage.assume_init() })
}
