//! The real launcher.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::system::{self, Exit};
use super::{Ended, LaunchError, Launcher, Observation};
use crate::experiment::{Interrupt, OomCounter};
use crate::run::spec::{RunResult, RunSpec};

/// How long to sleep between two looks at a child. The end of a run is seen this late at most.
const POLL: Duration = Duration::from_millis(10);

/// How much of a child's output is kept.
const TAIL_BYTES: u64 = 8 * 1024;

/// Starts a program with `__run --spec FILE --result FILE --parent-pipe`.
///
/// The child leads a process group of its own, so that ending it ends what it started, and so that Ctrl-C in a
/// terminal reaches this program alone, which then ends the child. Its standard input is a pipe that closes when this
/// program is gone, however it went.
#[derive(Debug, Clone)]
pub struct ProcessLauncher {
    program: PathBuf,
    arguments: Vec<OsString>,
    oom: OomCounter,
}

impl ProcessLauncher {
    /// Starts this very program.
    ///
    /// # Errors
    ///
    /// If the system does not say where it is.
    pub fn current() -> io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?, [], OomCounter::of_system()))
    }

    /// Starts `program` with `arguments` before the ones of the protocol; `oom` is looked at when a child is killed.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>, oom: OomCounter) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().collect(), oom }
    }
}

impl Launcher for ProcessLauncher {
    fn launch(
        &mut self,
        spec: &RunSpec,
        folder: &Path,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Observation, LaunchError> {
        let (spec_file, result_file) = (folder.join("spec.json"), folder.join("result.json"));
        let output_file = folder.join("output.log");
        let write_error = |path: &Path| {
            let path = path.to_owned();
            move |source| LaunchError::Write { path, source }
        };
        let run_error = |source| LaunchError::Run { program: self.program.clone(), source };

        let json = serde_json::to_vec_pretty(spec).map_err(io::Error::from).map_err(write_error(&spec_file))?;
        std::fs::write(&spec_file, json).map_err(write_error(&spec_file))?;
        let output = File::create(&output_file).map_err(write_error(&output_file))?;
        let errors = output.try_clone().map_err(write_error(&output_file))?;

        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg("__run")
            .arg("--spec")
            .arg(&spec_file)
            .arg("--result")
            .arg(&result_file)
            .arg("--parent-pipe")
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors);
        system::lead_group(&mut command);

        let kills_before = self.oom.read();
        let started = Instant::now();
        let mut child = command.spawn().map_err(run_error)?;
        let mut ended_here = None;
        let exit = loop {
            if let Some(exit) = system::poll(&mut child).map_err(run_error)? {
                break exit;
            }
            if ended_here.is_none() {
                if interrupt.is_set() {
                    ended_here = Some(Ended::Interrupted);
                } else if started.elapsed() >= timeout {
                    ended_here = Some(Ended::TimedOut { after_s: timeout.as_secs() });
                }
                if ended_here.is_some() {
                    system::kill(&mut child).map_err(run_error)?;
                }
            }
            std::thread::sleep(POLL);
        };
        let Exit { code, signal, peak_resident_bytes } = exit;
        let ended = match (ended_here, signal) {
            (Some(ended), _) => ended,
            (None, Some(signal)) => Ended::Signalled(signal),
            (None, None) => Ended::Exited(code.unwrap_or_default()),
        };
        Ok(Observation {
            ended,
            result: read_result(&result_file),
            output_tail: tail(&output_file).unwrap_or_default(),
            wall_s: started.elapsed().as_secs_f64(),
            peak_resident_bytes,
            oom_evidence: self.oom.evidence(&kills_before),
        })
    }
}

/// What the child wrote, if it wrote anything whole.
fn read_result(path: &Path) -> Option<RunResult> {
    let bytes = std::fs::read(path).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(result) => Some(result),
        Err(error) => {
            tracing::warn!("{} is not a result: {error}", path.display());
            None
        }
    }
}

/// The last [`TAIL_BYTES`] of a file, from the start of a line.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let skipped = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match text.split_once('\n') {
        Some((_, whole_lines)) if skipped > 0 => whole_lines.to_owned(),
        _ => text.into_owned(),
    })
}
