//! The folder an experiment writes, and nothing outside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::run::spec::{DeviceInfo, EnvironmentReport};

/// The folder of one experiment.
///
/// | file | |
/// |---|---|
/// | `experiment.toml` | every setting, as `--config` reads them |
/// | `host.json` | the commands that ran and the device they found |
/// | `records.jsonl` | one record a line |
/// | `summary.json`, `report.md`, `report.html`, `figure.svg`, `figure.png` | derived, see [`crate::report`] |
/// | `scratch/` | what passes between parent and child; a run that completed leaves nothing there |
#[derive(Debug, Clone)]
pub struct Output {
    dir: PathBuf,
}

/// Who ran an experiment, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The command lines: the first one, and one for each time the experiment was resumed.
    pub commands: Vec<String>,
    /// When the first one started.
    pub started_at: Timestamp,
    /// What the device is.
    #[serde(flatten)]
    pub found: EnvironmentReport,
}

impl Host {
    /// How `self` differs from what is found now, for people. Empty if it is the same device and software.
    #[must_use]
    pub fn differences(&self, now: &EnvironmentReport) -> Vec<mem_policy::Problem> {
        let DeviceInfo { name, backend, driver, compiler, autotune, dtype, burn, profile, os } = &self.found.device;
        let other = &now.device;
        let none = || "none".to_owned();
        [
            ("device", name.clone(), other.name.clone()),
            ("backend", backend.clone(), other.backend.clone()),
            ("driver", driver.clone().unwrap_or_else(none), other.driver.clone().unwrap_or_else(none)),
            ("compiler", compiler.clone(), other.compiler.clone()),
            ("autotune", autotune.to_string(), other.autotune.to_string()),
            ("dtype", dtype.clone(), other.dtype.clone()),
            ("burn", burn.clone(), other.burn.clone()),
            ("profile", profile.clone(), other.profile.clone()),
            ("os", os.clone(), other.os.clone()),
        ]
        .into_iter()
        .filter(|(_, recorded, found)| recorded != found)
        .map(|(key, recorded, found)| {
            mem_policy::Problem::new(
                format!("host.{key}"),
                format!("{found} is here, but the records were made with {recorded}"),
            )
        })
        .collect()
    }
}

/// Why a file of the output folder cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// It cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process is at work in the folder.
    #[error(
        "another process is writing {} (it holds {}): wait until it has ended, or choose another folder",
        path.display(), LOCK
    )]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The file that the process at work in a folder holds locked.
const LOCK: &str = ".lock";

/// Keeps other processes from writing a folder, until it is dropped or the process ends, however that happens.
#[derive(Debug)]
pub struct Lock {
    _file: fs::File,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Whoever opened the file before sees that it is unlocked; whether it is there does not matter.
        let _ = fs::remove_file(&self.path);
    }
}

impl Output {
    /// The folder `dir`, made if it is not there.
    ///
    /// # Errors
    ///
    /// [`OutputError::Write`].
    pub fn create(dir: &Path) -> Result<Self, OutputError> {
        fs::create_dir_all(dir).map_err(|source| OutputError::Write { path: dir.to_owned(), source })?;
        Ok(Self::open(dir))
    }

    /// The folder `dir`, which is there.
    #[must_use]
    pub fn open(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Locks the folder for this process.
    ///
    /// # Errors
    ///
    /// [`OutputError::Busy`] if another process has it, [`OutputError::Write`].
    pub fn lock(&self) -> Result<Lock, OutputError> {
        let path = self.dir.join(LOCK);
        let write = |source| OutputError::Write { path: path.clone(), source };
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(write)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file, path }),
            Err(fs::TryLockError::WouldBlock) => Err(OutputError::Busy { path: self.dir.clone() }),
            Err(fs::TryLockError::Error(source)) => Err(write(source)),
        }
    }

    /// The file of the records.
    #[must_use]
    pub fn records(&self) -> PathBuf {
        self.dir.join("records.jsonl")
    }

    /// The file of the settings.
    #[must_use]
    pub fn experiment(&self) -> PathBuf {
        self.dir.join("experiment.toml")
    }

    fn host(&self) -> PathBuf {
        self.dir.join("host.json")
    }

    /// Writes the file `name`, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`OutputError::Write`].
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.dir.join(name);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
            io::Write::write_all(&mut file, contents)?;
            file.as_file().sync_data()?;
            readable_by_others(file.as_file())?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| OutputError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Writes who runs the experiment.
    ///
    /// # Errors
    ///
    /// [`OutputError::Write`].
    pub fn write_host(&self, host: &Host) -> Result<(), OutputError> {
        let path = self.host();
        let json = serde_json::to_vec_pretty(host)
            .map_err(|error| OutputError::Write { path, source: io::Error::from(error) })?;
        self.write("host.json", &json).map(drop)
    }

    /// Reads who ran the experiment.
    ///
    /// # Errors
    ///
    /// [`OutputError::Read`].
    pub fn read_host(&self) -> Result<Host, OutputError> {
        let path = self.host();
        let read = || -> io::Result<Host> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
        read().map_err(|source| OutputError::Read { path: path.clone(), source })
    }

    /// An empty folder for the run `id`.
    ///
    /// # Errors
    ///
    /// [`OutputError::Write`].
    pub fn fresh_scratch(&self, id: &str) -> Result<PathBuf, OutputError> {
        let path = self.dir.join("scratch").join(id.replace(['/', '+'], "-"));
        let fresh = || -> io::Result<()> {
            if path.exists() {
                fs::remove_dir_all(&path)?;
            }
            fs::create_dir_all(path.join("run"))
        };
        fresh().map_err(|source| OutputError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Removes the folder of a run that needs no looking into, and the folder of such folders when it is empty.
    pub fn drop_scratch(&self, folder: &Path) {
        if let Err(error) = fs::remove_dir_all(folder) {
            tracing::warn!("cannot remove {}: {error}", folder.display());
        }
        // Fails while other runs left something there, which is meant.
        let _ = fs::remove_dir(self.dir.join("scratch"));
    }
}

/// A temporary file is for its owner alone; a report is not.
#[cfg(unix)]
fn readable_by_others(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_file: &fs::File) -> io::Result<()> {
    Ok(())
}
