//! Processes on Unix: groups, signals, and the kernel's account of a process that ended.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// How a process ended.
pub(super) struct Exit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) peak_resident_bytes: Option<u64>,
}

/// Makes the child the leader of a process group of its own.
pub(super) fn lead_group(command: &mut Command) {
    command.process_group(0);
}

/// Ends the child and its group.
pub(super) fn kill(child: &mut Child) -> io::Result<()> {
    kill_group(pid(child)?)
}

/// How the child ended, or `None` if it runs. What is left of its group is ended too.
pub(super) fn poll(child: &mut Child) -> io::Result<Option<Exit>> {
    let pid = pid(child)?;
    // SAFETY: all-zero bytes are a valid `siginfo_t`, which is plain data.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` outlives the call, and `pid` is a child that was not waited for, so its id is not another's.
    if unsafe { libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut info, flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `waitid` succeeded, so `info` describes a child, or has the zero it was given if none changed state.
    if unsafe { info.si_pid() } == 0 {
        return Ok(None);
    }
    // The child is over but not yet waited for: no other process or group can have its id.
    kill_group(pid)?;
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid `rusage`, which is plain data.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers outlive the call. `Child` is not asked to wait afterwards.
    if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } != pid {
        return Err(io::Error::last_os_error());
    }
    let status = ExitStatus::from_raw(status);
    Ok(Some(Exit {
        code: status.code(),
        signal: status.signal(),
        peak_resident_bytes: u64::try_from(usage.ru_maxrss).ok().map(|peak| peak * UNIT_OF_MAXRSS),
    }))
}

/// Bytes in a unit of `ru_maxrss`.
const UNIT_OF_MAXRSS: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };

fn pid(child: &Child) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(child.id()).map_err(io::Error::other)
}

fn kill_group(pid: libc::pid_t) -> io::Result<()> {
    // SAFETY: `kill` takes no pointers; the group is led by a child that was not waited for.
    if unsafe { libc::kill(-pid, libc::SIGKILL) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Nobody is left in the group, or (macOS) only those who ended already.
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::EPERM) => Ok(()),
        _ => Err(error),
    }
}
