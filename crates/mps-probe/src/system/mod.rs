//! The machine's memory, and the container's share of it.

#[cfg(any(test, target_os = "linux"))]
mod cgroup;

use sysinfo::{MemoryRefreshKind, System};

use crate::{Counter, Measurement, Probe, Quality};

/// Reads the machine's memory (total, available, in use, swap in use) and, on Linux, the control group's limit and use.
///
/// The limit is the smallest among the process's control group and its ancestors (`memory.max` of version 2,
/// `memory.limit_in_bytes` of version 1): in a container that, not the machine's memory, is what gets a process killed.
/// The group's use is without `inactive_file`, the file cache that the kernel drops before it kills.
///
/// # What it does not see
///
/// * Who uses the memory: the figures are of the whole machine, or of all processes of the group.
/// * Limits set in other ways, such as `ulimit -v` or a batch system's own watcher.
/// * Control groups that are not mounted inside a container: then the limit is absent although there may be one.
/// * The memory of a discrete GPU. On unified memory the GPU's buffers are part of what is in use.
/// * "Available" is the kernel's estimate of what could be given without swapping.
///
/// # How it perturbs
///
/// Linux: reads `/proc/meminfo` and about ten small files, in all some hundreds of microseconds. Touches no device.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemProbe;

impl Probe for SystemProbe {
    fn id(&self) -> &'static str {
        "system"
    }

    fn read(&self) -> Vec<Measurement> {
        let mut all = machine();
        all.extend(group());
        all
    }
}

fn machine() -> Vec<Measurement> {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::everything());
    let (total, available) = (system.total_memory(), system.available_memory());
    let counters = [
        (Counter::SystemTotal, total, "sysinfo total_memory", Quality::Limit),
        (Counter::SystemAvailable, available, "sysinfo available_memory", Quality::Estimate),
        (
            Counter::SystemInUse,
            total.saturating_sub(available),
            "sysinfo total_memory - available_memory",
            Quality::Estimate,
        ),
        (Counter::SystemSwapInUse, system.used_swap(), "sysinfo used_swap", Quality::Exact),
    ];
    let read = |(counter, bytes, source, quality)| match total {
        // sysinfo leaves zeros where it could not read.
        0 => Measurement::absent(counter, "sysinfo could not read the memory of this system"),
        _ => Measurement::present(counter, bytes, source, quality),
    };
    counters.into_iter().map(read).collect()
}

#[cfg(target_os = "linux")]
fn group() -> [Measurement; 2] {
    cgroup::read(std::path::Path::new("/"))
}

#[cfg(not(target_os = "linux"))]
fn group() -> [Measurement; 2] {
    [Counter::CgroupLimit, Counter::CgroupInUse]
        .map(|counter| Measurement::absent(counter, "control groups exist on Linux only"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProbeSet;

    #[test]
    fn the_system_has_memory_and_its_parts_add_up() {
        let snapshot = ProbeSet::new().with(SystemProbe).read();
        let bytes = |counter| snapshot.bytes(counter).unwrap();
        assert!(bytes(Counter::SystemTotal) > 64 << 20);
        assert_eq!(bytes(Counter::SystemAvailable) + bytes(Counter::SystemInUse), bytes(Counter::SystemTotal));
    }

    #[test]
    fn the_control_group_is_reported_even_if_it_has_no_limit() {
        let all = SystemProbe.read();
        for counter in [Counter::CgroupLimit, Counter::CgroupInUse] {
            let of_group = all.iter().find(|m| m.counter() == counter).unwrap();
            assert_ne!(of_group.bytes(), Some(0), "{of_group}");
        }
    }
}
