//! What `pool-slack` holds, on whatever adapter the machine has, software ones included.
//!
//! Without an adapter the test is skipped and says so; with `MPS_PROBE_REQUIRE_DEVICE` set, that is a failure.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

/// The records of one run of the baseline and one of the policy.
fn measured(folder: &std::path::Path) -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["experiment", "--dataset", "synthetic", "--device", "wgpu", "--image-size", "20", "--widths", "16,32"])
        .args(["--hidden", "256", "--batch-size", "4", "--max-train", "16", "--max-test", "4", "--epochs", "1"])
        .args(["--repeats", "1", "--warmup-steps", "1", "--sample-every", "2", "--no-progress"])
        .args(["--always", "shard-linear,fused-optimizer,segment-checkpointing", "--policies", "pool-slack"])
        .args(["--set", "shard-linear.shards=4", "--out"])
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = std::fs::read_to_string(folder.join("records.jsonl")).unwrap();
    records.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn idle_memory_is_given_back_and_less_is_reserved() {
    let probe = Command::new(env!("CARGO_BIN_EXE_bench")).args(["probe", "--device", "wgpu"]).output().unwrap();
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr);
        assert!(std::env::var_os("MPS_PROBE_REQUIRE_DEVICE").is_none(), "a device is required: {why}");
        eprintln!("skipped: no adapter: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let records = measured(&folder.path().join("out"));
    let of = |arm: &str| records.iter().find(|record| record["arm"] == arm).unwrap();
    let reserved = |arm: &str| of(arm)["result"]["peaks"]["pool.reserved"]["bytes"].as_u64().unwrap();
    let (without, with) = (reserved("baseline"), reserved("pool-slack"));
    assert!(with < without * 8 / 10, "{with} and {without} bytes");
    // In a steady step everything that lies idle can go: pages have the size of what lay in them.
    let last = of("pool-slack")["result"]["events"].as_array().unwrap().last().unwrap()["message"].as_str().unwrap();
    let (given, idle) =
        last.strip_prefix("gave ").and_then(|rest| rest.split_once(" idle")).unwrap().0.split_once(" of ").unwrap();
    assert_eq!(given, idle, "{last}");
}
