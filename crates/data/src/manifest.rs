//! `datasets/manifest.toml`: what ships, where the full sets come from, and the checksums of both.

use crate::checksum::Checksum;
use crate::error::DataError;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The sets, and where they come from.
    pub sets: Vec<SetEntry>,
}

/// One set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetEntry {
    /// The name, as in [`SetId::name`](crate::SetId::name).
    pub name: String,
    /// Whom to credit.
    pub attribution: String,
    /// The licence of the data, as an SPDX identifier.
    pub licence: String,
    /// Where the set is described.
    pub home: String,
    /// The files that ship.
    pub sample: Vec<SampleFile>,
    /// The files of the full set.
    pub full: Vec<FullFile>,
}

/// A file of the sample.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleFile {
    /// The path below the data folder.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
    /// The checksum of the file as it is.
    pub checksum: Checksum,
}

/// A file of a full set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullFile {
    /// The path below the data folder.
    pub path: PathBuf,
    /// Where the download lies, most preferred first.
    pub urls: Vec<String>,
    /// The publisher's checksum of the download.
    pub checksum: Checksum,
    /// The download's size in bytes, where the publisher states it.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// For a zip archive: the name of the file in it, in whatever folder, that becomes [`path`](Self::path).
    #[serde(default)]
    pub unzip: Option<String>,
    /// The SHA-256 of what is inside the gzip file, which stays the same when a file is compressed again.
    #[serde(default)]
    pub content: Option<Checksum>,
}

impl Manifest {
    /// The manifest that ships with this version.
    ///
    /// # Errors
    ///
    /// [`DataError::Manifest`] if it does not parse, which the tests rule out.
    pub fn shipped() -> Result<Self, DataError> {
        Self::parse(include_str!("../../../datasets/manifest.toml"))
    }

    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// [`DataError::Manifest`] with the place of the mistake.
    pub fn parse(text: &str) -> Result<Self, DataError> {
        toml::from_str(text).map_err(|error| DataError::Manifest(error.to_string()))
    }

    /// The entry of a set.
    ///
    /// # Errors
    ///
    /// [`DataError::Manifest`] if it has none.
    pub fn set(&self, name: &str) -> Result<&SetEntry, DataError> {
        self.sets
            .iter()
            .find(|set| set.name == name)
            .ok_or_else(|| DataError::Manifest(format!("it has no set {name:?}")))
    }
}

impl FullFile {
    /// Whether a file is this one: the download itself or, where [`content`](Self::content) is known, another
    /// compression of the same content.
    ///
    /// # Errors
    ///
    /// [`DataError::Io`] if the file cannot be read.
    pub fn matches(&self, path: &Path) -> Result<bool, DataError> {
        if self.unzip.is_none() {
            let found = self.checksum.same_kind_of_file(path).map_err(DataError::io(path))?;
            if found == self.checksum {
                return Ok(true);
            }
        }
        let Some(content) = &self.content else {
            return Ok(false);
        };
        let file = File::open(path).map_err(DataError::io(path))?;
        // Data that does not decompress is not this file's.
        Ok(content.same_kind_of(MultiGzDecoder::new(file)).is_ok_and(|found| found == *content))
    }
}
