//! Building and starting `bench`.

use std::ffi::OsStr;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::Build;
use crate::command::{cargo, code};

/// Builds `bench` if needed and runs `verb` in it.
pub(crate) fn start(build: &Build, verb: &str, arguments: &[String]) -> Result<ExitCode> {
    code(command(build).arg("--").arg(verb).args(arguments.iter().map(OsStr::new)))
}

/// `cargo run` of `bench`, with its progress: the first build takes minutes.
pub(crate) fn command(build: &Build) -> Command {
    let mut command = cargo(&["run", "--package", "bench", "--bin", "bench"]);
    if build.release {
        command.arg("--release");
    }
    let mut features = build.features.clone();
    if cfg!(target_os = "macos") && !features.iter().any(|feature| feature == "metal") {
        features.push("metal".to_owned());
    }
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    command.env("MEM_POLICY_BUILD", said(build));
    command
}

/// The options as they were given before the verb, for the record of the command.
fn said(build: &Build) -> String {
    let release = build.release.then(|| "--release".to_owned());
    let features = (!build.features.is_empty()).then(|| format!("--features {}", build.features.join(",")));
    release.into_iter().chain(features).collect::<Vec<_>>().join(" ")
}
