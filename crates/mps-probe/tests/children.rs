//! What remains of a child that is gone.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use mps_probe::children_peak_resident;

const MIB: u64 = 1 << 20;

/// How much the child touches, in MiB.
const TOUCH_MIB: &str = "MPS_PROBE_TEST_TOUCH_MIB";

#[test]
#[ignore = "the child's half of the test below, which starts it"]
fn child_touches_memory_and_is_killed() {
    let mib: usize = std::env::var(TOUCH_MIB).unwrap().parse().unwrap();
    let touched = std::hint::black_box(vec![1u8; mib << 20]);
    // SAFETY: sends this very process a signal.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    drop(touched);
}

fn run_child(mib: u64) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child_touches_memory_and_is_killed"])
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
    assert_eq!(children_peak_resident().bytes(), Some(large), "a smaller child does not lower it");
    #[cfg(target_os = "linux")]
    check_that_a_child_starts_with_its_parents_pages();
}

/// After the others, as its result hides theirs: the maximum is over all children of the process.
#[cfg(target_os = "linux")]
fn check_that_a_child_starts_with_its_parents_pages() {
    let touched = std::hint::black_box(vec![1u8; 256 << 20]);
    assert!(Command::new("true").status().unwrap().success());
    drop(touched);
    let tiny_child = children_peak_resident().bytes().unwrap();
    assert!(tiny_child >= 256 * MIB, "{tiny_child}");
}
