//! Processes where there are no groups, signals and accounts.

use std::io;
use std::process::{Child, Command};

/// How a process ended.
pub(super) struct Exit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) peak_resident_bytes: Option<u64>,
}

pub(super) fn lead_group(_command: &mut Command) {}

/// Ends the child.
pub(super) fn kill(child: &mut Child) -> io::Result<()> {
    child.kill()
}

/// How the child ended, or `None` if it runs.
pub(super) fn poll(child: &mut Child) -> io::Result<Option<Exit>> {
    let exit = child.try_wait()?;
    Ok(exit.map(|status| Exit { code: status.code(), signal: None, peak_resident_bytes: None }))
}
