//! Asks a child about the device: this process never opens one.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use clap::ValueEnum;

use crate::cli::Failure;
use crate::run::spec::{DeviceChoice, EnvironmentReport};

/// What a child finds when it opens `device`.
///
/// # Errors
///
/// [`Failure::Input`] if the device is not there, [`Failure::Internal`] if the child cannot be started or understood.
pub fn ask_environment(device: DeviceChoice) -> Result<EnvironmentReport, Failure> {
    let output = child("__environment", device)?.stderr(Stdio::piped()).output().context("cannot start a child")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let reason = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given");
        let reason = reason.trim().trim_start_matches("error: ");
        return Err(Failure::input("device", format!("{} cannot be used: {reason}", name(device))));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    parse(&stdout).with_context(|| format!("a child answered with `{}`", stdout.trim())).map_err(Failure::from)
}

/// The last line that is an answer: a driver may have printed others.
fn parse(stdout: &str) -> anyhow::Result<EnvironmentReport> {
    let line = stdout.lines().rev().find(|line| line.trim_start().starts_with('{')).unwrap_or_default();
    Ok(serde_json::from_str(line)?)
}

/// Prints the memory of `device`, from a child.
///
/// # Errors
///
/// [`Failure::Internal`] if the child cannot be started.
pub fn probe(device: DeviceChoice) -> Result<ExitCode, Failure> {
    let status = child("__probe", device)?.stdin(Stdio::null()).status().context("cannot start a child")?;
    Ok(match status.code() {
        Some(0) => ExitCode::SUCCESS,
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::from(1),
    })
}

fn child(verb: &str, device: DeviceChoice) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.arg(verb).arg("--device").arg(name(device)).stdin(Stdio::null());
    Ok(command)
}

fn name(device: DeviceChoice) -> String {
    device.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
