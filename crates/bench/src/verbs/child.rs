//! The child side of the protocol, up to the door of [`crate::run`].

use std::io::Read;
use std::process::ExitCode;

use crate::cli::{Failure, RunArgs};
use crate::run;
use crate::run::spec::RunSpec;

/// Reads the specification and does the run.
///
/// # Errors
///
/// [`Failure::Input`] if the specification cannot be read. How the run ends is in the result and in the exit code.
pub fn run_child(args: &RunArgs) -> Result<ExitCode, Failure> {
    let problem = |error: &dyn std::fmt::Display| Failure::input(args.spec.display().to_string(), error);
    let bytes = std::fs::read(&args.spec).map_err(|error| problem(&error))?;
    let spec: RunSpec = serde_json::from_slice(&bytes).map_err(|error| problem(&error))?;
    if args.parent_pipe {
        end_with_parent();
    }
    Ok(run::child_main(spec, &args.result))
}

/// Ends this process when its standard input closes: nobody is left to read its result.
fn end_with_parent() {
    std::thread::spawn(|| {
        // The parent never writes; whatever ends the read, a byte, the end or an error, the parent is gone.
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(i32::from(crate::cli::INTERRUPTED));
    });
}
