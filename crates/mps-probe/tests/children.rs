//! What remains of a child that is gone. Each test needs a process of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use mps_probe::children_peak_resident;

const MIB: u64 = 1 << 20;

/// Names the child's job; unset in the parent.
const TOUCH_MIB: &str = "MPS_PROBE_TEST_TOUCH_MIB";

/// The job of the child: touch memory, then be killed by its own signal before it can report anything.
#[test]
fn child_touches_memory_and_is_killed() {
    let Ok(mib) = std::env::var(TOUCH_MIB) else {
        return;
    };
    let touched = std::hint::black_box(vec![1u8; mib.parse::<usize>().unwrap() << 20]);
    let pid = i32::try_from(std::process::id()).unwrap();
    // SAFETY: sends a signal to this very process.
    unsafe { libc_kill(pid, 9) };
    drop(touched);
}

unsafe extern "C" {
    #[link_name = "kill"]
    fn libc_kill(pid: i32, signal: i32) -> i32;
}

fn run_child(mib: u64) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_touches_memory_and_is_killed"])
        .env(TOUCH_MIB, mib.to_string())
        .output()
        .unwrap()
        .status;
    assert!(!status.success(), "the child was to be killed");
}

#[test]
fn the_peak_of_a_killed_child_is_known_and_is_a_maximum_over_children() {
    run_child(96);
    let large = children_peak_resident().bytes().unwrap();
    assert!((96 * MIB..160 * MIB).contains(&large), "{large}");
    run_child(8);
    assert_eq!(
        children_peak_resident().bytes(),
        Some(large),
        "a smaller child does not lower it"
    );
}
