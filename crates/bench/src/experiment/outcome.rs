//! From what was seen of a child to its outcome.

use crate::experiment::launcher::{Ended, Observation};
use crate::record::Outcome;
use crate::run::spec::{ErrorKind, RunError};

#[cfg(unix)]
const SIGKILL: i32 = libc::SIGKILL;
#[cfg(not(unix))]
const SIGKILL: i32 = 9;

/// What the outcome of a child is. What the child says of itself counts first, then how the process ended.
#[must_use]
pub fn judge(seen: &Observation) -> Outcome {
    match seen.ended {
        Ended::Interrupted => return Outcome::Interrupted,
        Ended::TimedOut { after_s } => return Outcome::TimedOut { after_s },
        Ended::Exited(_) | Ended::Signalled(_) => {}
    }
    if let Some(result) = &seen.result {
        if let Some(error) = &result.error {
            return of_error(error);
        }
        if result.complete {
            return Outcome::Completed;
        }
    }
    let tail = seen.output_tail.as_str();
    if let Some(why) = memory_words(tail) {
        return Outcome::OutOfMemory { why };
    }
    match seen.ended {
        Ended::Signalled(SIGKILL) => Outcome::OutOfMemory {
            why: match &seen.oom_evidence {
                Some(evidence) => format!("killed (signal {SIGKILL}) by the system: {evidence}"),
                None => format!("killed (signal {SIGKILL}), probably out of memory"),
            },
        },
        Ended::Signalled(signal) => match panic_message(tail) {
            Some(message) => Outcome::Panicked { message },
            None => Outcome::Killed { signal },
        },
        Ended::Exited(code) => match panic_message(tail) {
            Some(message) => Outcome::Panicked { message },
            None => Outcome::Failed { message: exit_message(code, tail) },
        },
        Ended::TimedOut { .. } | Ended::Interrupted => Outcome::Interrupted,
    }
}

fn of_error(error: &RunError) -> Outcome {
    let message = error.message.clone();
    match error.kind {
        ErrorKind::OutOfMemory => Outcome::OutOfMemory { why: message },
        ErrorKind::Policy => Outcome::Stopped { message },
        ErrorKind::Unsupported => Outcome::Unsupported { why: message },
        ErrorKind::Panic => match memory_words(&message) {
            Some(why) => Outcome::OutOfMemory { why },
            None => Outcome::Panicked { message },
        },
        ErrorKind::Data | ErrorKind::Device | ErrorKind::Other => Outcome::Failed { message },
    }
}

/// The line in which a driver, a runtime or Rust's allocator says that memory ran out.
fn memory_words(text: &str) -> Option<String> {
    // Rust's allocation failure, Vulkan's and Direct3D's error names, and the word everybody else uses.
    const WORDS: [&str; 5] =
        ["memory allocation of ", "out of memory", "outofmemory", "out_of_device_memory", "out_of_host_memory"];
    text.lines()
        .find(|line| {
            let line = line.to_lowercase();
            WORDS.iter().any(|word| line.contains(word))
        })
        .map(|line| line.trim().to_owned())
}

/// The message of the last panic in a program's output: what follows the line `thread '..' panicked at file:line:`.
fn panic_message(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at"));
    let place = lines.next()?;
    let at = place.split_once("panicked at").map_or("", |(_, at)| at).trim().trim_end_matches(':');
    let message: Vec<&str> = lines
        .take_while(|line| !line.starts_with("note: ") && !line.starts_with("stack backtrace"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Some(if message.is_empty() { format!("at {at}") } else { format!("{} (at {at})", message.join(" ")) })
}

fn exit_message(code: i32, tail: &str) -> String {
    let last = tail.lines().rev().find(|line| !line.trim().is_empty());
    match (code, last) {
        (0, _) => "the process ended before its last epoch and did not say why".to_owned(),
        (code, Some(line)) => match line.trim().strip_prefix("error: ") {
            // The child's own words say more than its exit code.
            Some(said) => said.to_owned(),
            None => format!("exit code {code}: {}", line.trim()),
        },
        (code, None) => format!("exit code {code}, without a message"),
    }
}
