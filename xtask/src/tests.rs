//! All tests.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::TestArgs;
use crate::command::{cargo, code, status};

/// Runs unit and integration tests with cargo-nextest, a process per test (the device's settings are per process), or
/// with cargo's own runner where it is missing; then the examples in the documentation.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    let mut tests = if has_nextest() {
        cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        eprintln!(
            "cargo-nextest is not installed: running `cargo test`, where tests share a process; \
             `cargo install cargo-nextest --locked` brings it"
        );
        let mut tests = cargo(&["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"]);
        // Burn's default dtypes and pool layouts are set once per process.
        tests.env("RUST_TEST_THREADS", "1");
        tests
    };
    tests.args(&args.arguments);
    give_vulkan_a_runtime_folder(&mut tests)?;
    let ran = status(&mut tests)?;
    if !ran.success() || !args.arguments.is_empty() {
        return Ok(if ran.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    code(&mut cargo(&["test", "--workspace", "--doc"]))
}

fn has_nextest() -> bool {
    let mut probe = Command::new("cargo");
    probe.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Mesa's software Vulkan wants `XDG_RUNTIME_DIR`, which a session without a login does not have.
fn give_vulkan_a_runtime_folder(command: &mut Command) -> Result<()> {
    if cfg!(target_os = "linux") && std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        let folder = std::env::temp_dir().join("xtask-runtime");
        std::fs::create_dir_all(&folder)?;
        command.env("XDG_RUNTIME_DIR", folder);
    }
    Ok(())
}
