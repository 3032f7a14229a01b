//! Starting cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};

/// The workspace's root folder.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Cargo, on this workspace, in the current folder: relative paths in arguments are the caller's.
pub(crate) fn cargo(verb: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(verb).arg("--manifest-path").arg(root().join("Cargo.toml"));
    command
}

/// Runs to the end.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Runs to the end and passes the exit code on: it is part of the interface.
pub(crate) fn code(command: &mut Command) -> Result<ExitCode> {
    let status = status(command)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}
