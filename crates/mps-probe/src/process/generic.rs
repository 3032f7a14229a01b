//! Systems without a reader of their own.

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

use crate::{Counter, Measurement, Quality};

pub(super) fn read() -> Vec<Measurement> {
    let resident =
        Measurement::from_result(Counter::ProcessResident, Quality::Estimate, "sysinfo Process::memory", resident());
    [resident, peak()].into_iter().chain(super::no_footprint()).collect()
}

fn resident() -> Result<u64, String> {
    let pid = sysinfo::get_current_pid().map_err(|error| format!("the process has no id: {error}"))?;
    let mut system = System::new();
    let kind = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
    match system.process(pid).map(sysinfo::Process::memory) {
        Some(0) | None => Err("sysinfo does not report the memory of a process on this system".into()),
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(unix)]
fn peak() -> Measurement {
    Measurement::from_result(
        Counter::ProcessResidentPeak,
        Quality::HighWater,
        "ru_maxrss of getrusage(RUSAGE_SELF)",
        super::max_resident(libc::RUSAGE_SELF),
    )
}

#[cfg(not(unix))]
fn peak() -> Measurement {
    Measurement::absent(Counter::ProcessResidentPeak, "no peak of the resident set is read on this system")
}
