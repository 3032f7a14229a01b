//! Checks that are no tests, and the generated pages.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::Build;
use crate::bench;
use crate::command::{cargo, root, status};

/// Cheapest first; stops at the first that fails.
pub(crate) fn run() -> Result<ExitCode> {
    step("format", cargo(&["fmt", "--all"]).args(["--", "--check"]))?;
    step("lints", cargo(&["clippy", "--workspace", "--all-targets"]).args(["--", "-D", "warnings"]))?;
    step("documentation", cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    eprintln!("check: generated pages");
    let (path, text) = policies_page()?;
    let there = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(there == text, "{} is out of date: run `cargo xtask generate`", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the generated pages.
pub(crate) fn generate() -> Result<ExitCode> {
    let (path, text) = policies_page()?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn step(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("check: {what}");
    let ended = status(command)?;
    ensure!(ended.success(), "the check of the {what} failed");
    Ok(())
}

/// The page of the policies, from the registry.
fn policies_page() -> Result<(PathBuf, String)> {
    let plain = Build { release: false, features: Vec::new() };
    let output = bench::command(&plain)
        .args(["--", "policies", "--markdown"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start bench")?;
    ensure!(output.status.success(), "`policies --markdown` failed");
    Ok((root().join("docs/policies.md"), String::from_utf8(output.stdout)?))
}
