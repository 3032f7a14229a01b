//! Appends records, each of them safe on the disk before the next run starts.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Contents, Record, RecordError, read};

/// Where lines go. A file in earnest; anything else in tests.
pub trait Sink {
    /// Appends `line`, which ends in a newline, and returns when it is safe.
    ///
    /// # Errors
    ///
    /// What the system says; nothing of `line` should remain then.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;
}

/// A file opened for appending.
#[derive(Debug)]
pub struct FileSink {
    file: File,
}

impl FileSink {
    /// Opens `path`, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().append(true).create(true).open(path)? })
    }
}

impl Sink for FileSink {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Half a line would be tolerated on reading, but a clean file needs no tolerance. If this fails too,
            // there is nothing left to do, and the first error is the one to report.
            let _ = self.file.set_len(before);
        }
        written
    }
}

/// The records of one experiment, open for appending.
#[derive(Debug)]
pub struct RecordLog<S> {
    path: PathBuf,
    sink: S,
    kept: usize,
}

impl RecordLog<FileSink> {
    /// Starts a new file.
    ///
    /// # Errors
    ///
    /// [`RecordError::Open`].
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let sink = FileSink::open(path).map_err(|source| RecordError::Open { path: path.to_owned(), source })?;
        Ok(Self::new(path, sink, 0))
    }

    /// Opens the file of an earlier run: reads what it holds and cuts off a last line that was not finished.
    ///
    /// # Errors
    ///
    /// What [`read`] returns, and [`RecordError::Open`] if the file cannot be repaired or appended to.
    pub fn resume(path: &Path) -> Result<(Self, Contents), RecordError> {
        let contents = read(path)?;
        let open_error = |source| RecordError::Open { path: path.to_owned(), source };
        if let Some(truncated) = &contents.truncated {
            let file = OpenOptions::new().write(true).open(path).map_err(open_error)?;
            file.set_len(truncated.offset).and_then(|()| file.sync_data()).map_err(open_error)?;
        }
        let sink = FileSink::open(path).map_err(open_error)?;
        Ok((Self::new(path, sink, contents.records.len()), contents))
    }
}

impl<S: Sink> RecordLog<S> {
    /// A log of `kept` records so far; `path` is for messages.
    pub fn new(path: &Path, sink: S, kept: usize) -> Self {
        Self { path: path.to_owned(), sink, kept }
    }

    /// Appends one record and returns when it is safe.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], which says how many records are kept, or [`RecordError::Encode`].
    pub fn append(&mut self, record: &Record) -> Result<(), RecordError> {
        let mut line =
            serde_json::to_vec(record).map_err(|source| RecordError::Encode { id: record.id.clone(), source })?;
        line.push(b'\n');
        self.sink.append(&line).map_err(|source| RecordError::Write {
            path: self.path.clone(),
            kept: self.kept,
            source,
        })?;
        self.kept += 1;
        Ok(())
    }

    /// How many records are safe.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept
    }
}
