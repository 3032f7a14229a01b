//! From records to the files people read.

use std::path::Path;

use crate::cli::{Failure, ReportArgs};
use crate::experiment::Output;
use crate::record::{self, Contents};
use crate::report;
use crate::stats::{Summary, summarise};

/// Reads the records of `output`, derives the summary and writes all reports.
///
/// # Errors
///
/// [`Failure::Input`] if the folder is not an experiment's, [`Failure::Output`] if a file cannot be written.
pub fn export_all(output: &Output) -> Result<Summary, Failure> {
    let contents = record::read(&output.records())?;
    let host = output.read_host().map_err(|error| Failure::input("host.json", error))?;
    let experiment = read_table(&output.experiment())?;
    let summary = summarise(&contents.records, &host, &experiment, notes(&contents));
    report::export(&summary, output)?;
    Ok(summary)
}

/// `report DIR`.
///
/// # Errors
///
/// See [`export_all`].
pub fn rewrite(args: &ReportArgs) -> Result<Summary, Failure> {
    export_all(&Output::open(&args.dir))
}

fn notes(contents: &Contents) -> Vec<String> {
    let cut = contents.truncated.as_ref().map(|cut| {
        format!("line {} of the records was cut off while it was written; its run counts as not done", cut.line)
    });
    cut.into_iter().collect()
}

fn read_table(path: &Path) -> Result<toml::Table, Failure> {
    let problem = |error: &dyn std::fmt::Display| Failure::input(path.display().to_string(), error);
    let text = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
    text.parse().map_err(|error: toml::de::Error| problem(&error))
}
