//! Reads records back.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::{FORMAT_VERSION, Outcome, Record, RecordError};

/// What a file of records holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// In the order in which they were written.
    pub records: Vec<Record>,
    /// A last line that was not finished when its writer was killed.
    pub truncated: Option<Truncated>,
}

impl Contents {
    /// The last record of each id; one that completed counts before any that did not.
    #[must_use]
    pub fn latest(&self) -> BTreeMap<&str, &Record> {
        let mut latest: BTreeMap<&str, &Record> = BTreeMap::new();
        for record in &self.records {
            let completed = |record: &Record| record.outcome == Outcome::Completed;
            match latest.get(record.id.as_str()) {
                Some(before) if completed(before) && !completed(record) => {}
                _ => {
                    latest.insert(&record.id, record);
                }
            }
        }
        latest
    }
}

/// A last line that was not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The line, from 1.
    pub line: usize,
    /// Where it starts, in bytes from the start of the file.
    pub offset: u64,
}

/// Reads `path`.
///
/// A last line without its newline is what a writer leaves that was killed: it is reported in
/// [`Contents::truncated`], and its run is run again on resume.
///
/// # Errors
///
/// [`RecordError::Open`] if the file cannot be read, [`RecordError::Version`] or [`RecordError::Malformed`] with the
/// line otherwise.
pub fn read(path: &Path) -> Result<Contents, RecordError> {
    let bytes = std::fs::read(path).map_err(|source| RecordError::Open { path: path.to_owned(), source })?;
    parse(path, &bytes)
}

#[derive(Deserialize)]
struct Version {
    format_version: u64,
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Contents, RecordError> {
    let mut contents = Contents::default();
    let mut offset = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        if !line.ends_with(b"\n") {
            contents.truncated = Some(Truncated { line: number, offset });
            break;
        }
        offset += line.len() as u64;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let malformed = |source| RecordError::Malformed { path: path.to_owned(), line: number, source };
        let version: Version = serde_json::from_slice(line).map_err(malformed)?;
        if version.format_version > u64::from(FORMAT_VERSION) {
            return Err(RecordError::Version { path: path.to_owned(), line: number, found: version.format_version });
        }
        contents.records.push(serde_json::from_slice(line).map_err(malformed)?);
    }
    Ok(contents)
}
