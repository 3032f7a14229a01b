//! How a verb fails, and with which exit code.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use mem_policy::Problem;

use crate::experiment::{ExperimentError, OutputError};
use crate::record::RecordError;
use crate::report::ReportError;

/// The exit code of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// The exit code of an experiment with a data set of which no baseline completed.
pub const NOTHING_TO_COMPARE: u8 = 4;

/// Why a verb failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The input is bad, and nothing ran.
    Input(Vec<Problem>),
    /// The output cannot be written.
    Output(anyhow::Error),
    /// Anything else.
    Internal(anyhow::Error),
}

impl Failure {
    /// One problem with the input.
    pub fn input(place: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Input(vec![Problem::new(place, message.to_string())])
    }

    /// The exit code, as `--help` lists them.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Internal(_) => 1,
            Self::Input(_) => 2,
            Self::Output(_) => 3,
        }
    }

    /// Prints the reason to standard error.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        // If nobody can read it, the exit code still says it.
        let _ = write!(std::io::stderr(), "{self}");
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(problems) => {
                writeln!(f, "error: {} problem(s) with the input; nothing was run", problems.len())?;
                problems.iter().try_for_each(|problem| writeln!(f, "  - {problem}"))
            }
            Self::Output(error) | Self::Internal(error) => writeln!(f, "error: {}", chain(error)),
        }
    }
}

/// An error and its causes, but for those that the error itself spells out.
fn chain(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        match text.as_str() {
            "" => cause,
            said if said.contains(&cause) => text,
            said => format!("{said}: {cause}"),
        }
    })
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Input(problems)
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Busy { .. } => Self::input("out", error),
            error => Self::Output(error.into()),
        }
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        if error.is_output() { Self::Output(error.into()) } else { Self::Internal(error.into()) }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Write { .. } => Self::Output(error.into()),
            RecordError::Open { .. } | RecordError::Malformed { .. } | RecordError::Version { .. } => {
                Self::input("records", error)
            }
            RecordError::Encode { .. } => Self::Internal(error.into()),
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Output(error) => error.into(),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}
