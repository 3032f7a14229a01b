//! Downloading the full sets (feature `fetch`).
//!
//! Each file is downloaded to `<name>.part` beside its place and gets its name only when its checksum is right, so a
//! killed download leaves nothing that could be taken for data, and the next one goes on where it stopped (HTTP `Range`).
//! A connection that breaks is tried again after a pause that doubles; a source that stays away, or sends the wrong
//! bytes, gives way to the next one.
//!
//! ```no_run
//! use data::fetch::{Event, Fetch};
//! use data::{SetId, manifest::Manifest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let manifest = Manifest::shipped()?;
//! Fetch::new(&manifest, SetId::Mnist, "my-data")?.run(&mut |event| {
//!     if let Event::Progress { path, done, total } = event {
//!         println!("{}: {done} of {total:?} bytes", path.display());
//!     }
//! })?;
//! # Ok(())
//! # }
//! ```

mod download;
mod unzip;

use crate::caltech101::Photos;
use crate::checksum::Checksum;
use crate::config::SetId;
use crate::error::DataError;
use crate::manifest::{FullFile, Manifest};
use backon::ExponentialBuilder;
use download::Downloader;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// What a download is doing.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The file is in place already and right; nothing is downloaded.
    Present {
        /// The file.
        path: &'a Path,
    },
    /// A source is asked for the file, or for the rest of it.
    Started {
        /// The file that will be there in the end.
        path: &'a Path,
        /// The source.
        url: &'a str,
        /// Bytes that an earlier attempt left.
        resumed_from: u64,
    },
    /// More bytes have arrived.
    Progress {
        /// The file.
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in all, if the source says so.
        total: Option<u64>,
    },
    /// An attempt failed; another follows.
    Retrying {
        /// The file.
        path: &'a Path,
        /// Why.
        error: &'a FetchError,
        /// After which pause.
        pause: Duration,
    },
    /// The checksum is computed.
    Verifying {
        /// The file.
        path: &'a Path,
    },
    /// The file is in place.
    Done {
        /// The file.
        path: &'a Path,
    },
}

/// Why a download failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The set is not one that can be downloaded.
    #[error("{0} is not downloaded: it needs no files")]
    NothingToFetch(SetId),
    /// The manifest is wrong, or a file that is there already cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file could not be written or read.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason, like a full disk.
        source: std::io::Error,
    },
    /// The server answered, but not with the file.
    #[error("{url} answered HTTP {status}")]
    Status {
        /// The source.
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// There was no answer, or the connection broke.
    #[error("{url} cannot be reached or broke off: {reason}")]
    Connection {
        /// The source.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The bytes that arrived are not the published ones. They are deleted.
    #[error("{url} sent {found}, expected {expected}: the file was altered or damaged on its way")]
    Checksum {
        /// The source.
        url: String,
        /// The checksum of what arrived.
        found: Checksum,
        /// The published checksum.
        expected: Checksum,
    },
    /// A file of that name is there, and is not the set's.
    #[error("{} is there already, but is not the published file: delete it or choose another folder", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
    },
    /// A downloaded zip archive does not hold the expected file.
    #[error("{} holds no readable {wanted}: {reason}", path.display())]
    Zip {
        /// The archive.
        path: PathBuf,
        /// The name of the file in it.
        wanted: String,
        /// What was found instead.
        reason: String,
    },
    /// No source delivered the file.
    #[error("no source has {}: {}", path.display(), failed(failures))]
    NoSource {
        /// The file.
        path: PathBuf,
        /// Each source's failure, in order.
        failures: Vec<FetchError>,
    },
}

fn failed(failures: &[FetchError]) -> String {
    let all: Vec<_> = failures.iter().map(ToString::to_string).collect();
    all.join("; ")
}

impl FetchError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Whether the same request may succeed later.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Connection { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        }
    }

    /// Whether another source may do better.
    fn is_the_sources(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::Status { .. } | Self::Checksum { .. })
    }
}

/// A download of one set.
#[derive(Debug)]
pub struct Fetch {
    dir: PathBuf,
    files: Vec<FullFile>,
    retry: ExponentialBuilder,
}

impl Fetch {
    /// The full `set`, as `manifest` describes it, below `dir`, which is created if it is not there.
    ///
    /// # Errors
    ///
    /// [`FetchError::NothingToFetch`] for synthetic data, [`FetchError::Data`] if the manifest lacks the set.
    pub fn new(manifest: &Manifest, set: SetId, dir: impl Into<PathBuf>) -> Result<Self, FetchError> {
        if set == SetId::Synthetic {
            return Err(FetchError::NothingToFetch(set));
        }
        Ok(Self::files(manifest.set(set.name())?.full.clone(), dir))
    }

    /// Any files, below `dir`.
    pub fn files(files: Vec<FullFile>, dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            files,
            retry: ExponentialBuilder::new()
                .with_min_delay(Duration::from_secs(1))
                .with_max_delay(Duration::from_secs(30))
                .with_max_times(3),
        }
    }

    /// How often, and after which pauses, a broken download is resumed: `times` for each source, the first after
    /// `first_pause`, each pause twice the one before, 30 seconds at most. 3 times from 1 second on by default.
    #[must_use]
    pub fn with_retries(mut self, times: usize, first_pause: Duration) -> Self {
        self.retry = self.retry.with_max_times(times).with_min_delay(first_pause);
        self
    }

    /// Downloads what is not there yet, and returns the paths of all files of the set.
    ///
    /// # Errors
    ///
    /// [`FetchError`], at the first file that cannot be had. What was downloaded of it stays, to be resumed.
    pub fn run(&self, on_event: &mut dyn FnMut(Event<'_>)) -> Result<Vec<PathBuf>, FetchError> {
        let downloader = Downloader::new(self.retry);
        self.files.iter().map(|file| self.fetch(file, &downloader, on_event)).collect()
    }

    fn fetch(
        &self,
        file: &FullFile,
        downloader: &Downloader,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<PathBuf, FetchError> {
        let path = self.dir.join(&file.path);
        if path.exists() {
            on_event(Event::Verifying { path: &path });
            if !is_complete(file, &path)? {
                return Err(FetchError::Differs { path });
            }
            on_event(Event::Present { path: &path });
            return Ok(path);
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FetchError::io(folder))?;
        }
        match &file.unzip {
            None => downloader.download(file, &path, on_event)?,
            Some(wanted) => {
                let zip = path.with_file_name(format!("{wanted}.zip"));
                // A zip that is there under its full name was verified: an earlier run was killed while unpacking.
                if !zip.exists() {
                    downloader.download(file, &zip, on_event)?;
                }
                unzip::extract(&zip, wanted, &path)?;
                fs::remove_file(&zip).map_err(FetchError::io(&zip))?;
            }
        }
        on_event(Event::Done { path: &path });
        Ok(path)
    }
}

/// Whether the file at `path` needs no download. The file inside a zip has no published checksum of its own; it is
/// complete if it has every class, which reading it to its end (and gzip's own checksum) shows.
fn is_complete(file: &FullFile, path: &Path) -> Result<bool, FetchError> {
    if file.matches(path)? {
        return Ok(true);
    }
    Ok(file.unzip.is_some() && Photos::from_archive(path).and_then(Photos::complete).is_ok())
}

/// The name of a file that is not complete yet.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}
