//! What an experiment says, for people: a table, pages and a figure, all made from one [`Summary`].

mod figure;
mod format;
mod pages;
mod png;
mod tables;
mod terminal;
mod view;

use std::path::PathBuf;

use crate::experiment::{Output, OutputError};
use crate::stats::Summary;

pub use figure::svg;
pub use pages::{html, markdown};
pub use png::png;
pub use terminal::terminal;

/// Why a report cannot be made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The summary has no JSON form.
    #[error("the summary cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A page cannot be rendered.
    #[error("a page cannot be rendered: {0}")]
    Page(#[from] minijinja::Error),
    /// The figure cannot be drawn.
    #[error("the figure cannot be drawn: {0}")]
    Figure(String),
}

/// Writes `summary.json`, `figure.svg`, `figure.png`, `report.md` and `report.html` into `output`, and returns their
/// paths.
///
/// # Errors
///
/// [`ReportError`]; what was written before stays.
pub fn export(summary: &Summary, output: &Output) -> Result<Vec<PathBuf>, ReportError> {
    let mut written = vec![output.write("summary.json", &serde_json::to_vec_pretty(summary)?)?];
    let figure = svg(summary)?;
    written.push(output.write("figure.svg", figure.as_bytes())?);
    written.push(output.write("figure.png", &png(&figure)?)?);
    written.push(output.write("report.md", markdown(summary)?.as_bytes())?);
    written.push(output.write("report.html", html(summary, &figure)?.as_bytes())?);
    Ok(written)
}

#[cfg(test)]
mod tests;
