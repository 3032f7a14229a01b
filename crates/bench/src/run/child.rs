//! The doors of this module: what each kind of child process does.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mem_policy::Precision;
use tempfile::NamedTempFile;

use super::device::{DeviceError, OpenDevice};
use super::spec::{DeviceChoice, EnvironmentReport, ErrorKind, RunError, RunResult, RunSpec};
use super::train::{self, kind_of_message};

/// Does the run that `spec` describes. What there is of a result is written to `result_path` at each epoch's end and
/// when the run is over, replacing what was there in one move.
#[must_use]
pub fn child_main(spec: RunSpec, result_path: &Path) -> ExitCode {
    let started = Instant::now();
    let last: Arc<Mutex<Option<RunResult>>> = Arc::default();
    let keep: train::Keep = {
        let (last, path) = (Arc::clone(&last), result_path.to_owned());
        Arc::new(move |result| {
            if let Err(error) = write(result, &path) {
                complain(&format!("error: cannot write {}: {error}", path.display()));
            }
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.clone());
        })
    };
    let panicked = catch_panics();
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| train::run(&spec, started, &keep)));
    let error = match ended {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => RunError::from(&error),
        Err(_) => {
            let message = panicked.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let message = message.unwrap_or_else(|| "a panic without a message".to_owned());
            // What a panic says may be that memory ran out; otherwise it is a panic, whatever it is about.
            let kind = match kind_of_message(&message) {
                ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
                _ => ErrorKind::Panic,
            };
            RunError { kind, message }
        }
    };
    complain(&format!("error: {}", error.message));
    // Before the device, the data and the network are known there is no result to put an error in: the parent has what
    // was printed.
    let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut result) = last {
        result.complete = false;
        result.error = Some(error);
        if let Err(error) = write(&result, result_path) {
            complain(&format!("error: cannot write {}: {error}", result_path.display()));
        }
    }
    ExitCode::FAILURE
}

/// Prints a [`EnvironmentReport`] as one line of JSON.
#[must_use]
pub fn environment_main(device: DeviceChoice) -> ExitCode {
    with_device(device, |open| {
        let report = EnvironmentReport { device: open.info(Precision::F32), environment: open.environment };
        say(&format!("{}\n", serde_json::to_string(&report)?))?;
        Ok(())
    })
}

/// Prints what `device` is and the memory counters of device, process and system.
#[must_use]
pub fn probe(device: DeviceChoice) -> ExitCode {
    with_device(device, |open| {
        let info = open.info(Precision::F32);
        let precisions: Vec<String> = open.environment.precisions.iter().map(ToString::to_string).collect();
        let mut text = format!(
            "device      {} ({}, {})\ndriver      {}\ncomputes in {}\n",
            info.name,
            info.backend,
            info.compiler,
            info.driver.as_deref().unwrap_or("none"),
            precisions.join(", ")
        );
        if let Some(limits) = open.facts.limits {
            text.push_str(&format!(
                "limits      largest buffer {}\n            largest binding {}\n            workgroups per dimension {}\n",
                bytesize::ByteSize(limits.max_buffer_size_bytes),
                bytesize::ByteSize(limits.max_storage_buffer_binding_size_bytes),
                limits.max_compute_workgroups_per_dimension
            ));
        }
        text.push_str(&format!("\n{}\n", open.probes.read().table()));
        say(&text)?;
        Ok(())
    })
}

/// Prints to standard output; whoever has stopped listening is no error.
fn say(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

fn with_device(choice: DeviceChoice, act: impl FnOnce(OpenDevice) -> anyhow::Result<()>) -> ExitCode {
    let panicked = catch_panics();
    let opened = std::panic::catch_unwind(|| OpenDevice::open(choice, None));
    let result = match opened {
        Ok(Ok(open)) => act(open),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            let message = panicked.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let message = message.unwrap_or_else(|| "a panic without a message".to_owned());
            Err(DeviceError::Open("usable", message).into())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            if error.is::<DeviceError>() { ExitCode::from(NO_DEVICE) } else { ExitCode::from(CANNOT_WRITE) }
        }
    }
}

/// The exit code of a child that cannot open its device; as for bad input.
const NO_DEVICE: u8 = 2;
/// The exit code of a child that cannot print.
const CANNOT_WRITE: u8 = 3;

/// A line on standard error, if that can be written.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Keeps the message of the first panic on any thread: a driver's thread often panics before ours does, and says why.
fn catch_panics() -> Arc<Mutex<Option<String>>> {
    let first: Arc<Mutex<Option<String>>> = Arc::default();
    let (kept, before) = (Arc::clone(&first), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".to_owned());
        let place = info.location().map(|place| format!(" (at {}:{})", place.file(), place.line())).unwrap_or_default();
        kept.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(format!("{text}{place}"));
        before(info);
    }));
    first
}

/// Writes a result so that a reader sees the old one or the new one, whole.
fn write(result: &RunResult, path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, result)?;
    file.flush()?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
