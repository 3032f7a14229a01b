//! Caltech101: a folder of JPEGs for each class, extracted or as the `tar.gz` that Caltech publishes.
//!
//! `F.-F. Li, M. Andreeto, M. Ranzato, P. Perona: Caltech 101. CaltechDATA, doi:10.22002/D1.20086.`
//! The folder `BACKGROUND_Google` is dropped, the other names are sorted by byte and numbered from 0, like torchvision
//! does it: 101 classes, 8,677 images, some of them grey.
//!
//! # Folder, archive in memory, or archive unpacked
//!
//! A gzip stream cannot be read from its middle, so an archive's images must go somewhere once:
//!
//! | source | costs at opening | costs while training |
//! |---|---|---|
//! | extracted folder | a listing | one small file read an image |
//! | `tar.gz` | inflating it (about a second) | its compressed JPEGs in memory, 130 MB for the full set |
//! | `tar.gz` with an unpack folder | inflating and writing it, the first time only | as an extracted folder |
//!
//! A folder that was extracted next to the archive is preferred to the archive. The archive's JPEGs in memory are the
//! default for an archive, since they leave nothing on the disk; where the process's own memory is what is measured,
//! extract the archive or name an unpack folder. Either way an image is decoded only when a batch needs it.

mod archive;

use crate::checksum::Checksum;
use crate::dataset::Source;
use crate::error::DataError;
use crate::pixels;
use crate::sample::ImageShape;
use archive::Archive;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Classes, without the background.
pub const CLASSES: usize = 101;
/// The folder of images that show none of the classes.
pub const BACKGROUND: &str = "BACKGROUND_Google";
/// The name of the folder of folders, and of the archive without its `.tar.gz`.
pub const FOLDER: &str = "101_ObjectCategories";

/// The photographs, sorted by class and then by file name. [`open`](crate::open) splits them; this is the set as it is.
pub struct Photos {
    root: PathBuf,
    class_names: Vec<String>,
    labels: Vec<usize>,
    store: Store,
}

enum Store {
    /// File names below the root.
    Folder(Vec<String>),
    /// Compressed images in memory.
    Memory(Archive),
}

impl fmt::Debug for Photos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Photos")
            .field("root", &self.root)
            .field("classes", &self.class_names.len())
            .field("photographs", &self.labels.len())
            .field("in_memory", &matches!(self.store, Store::Memory(_)))
            .finish()
    }
}

impl Photos {
    /// Finds the set in `dir`: `caltech101/101_ObjectCategories/` or the archive of that name. An archive is unpacked
    /// below `unpack_dir`, if that is given. Any number of classes is accepted.
    ///
    /// # Errors
    ///
    /// [`DataError::NotFound`] with the accepted paths, and [`DataError::Io`] or [`DataError::Archive`] with the path
    /// of what cannot be read.
    pub fn open(dir: &Path, unpack_dir: Option<&Path>) -> Result<Self, DataError> {
        let base = dir.join("caltech101");
        let folder = base.join(FOLDER);
        if folder.is_dir() {
            return Self::from_folder(&folder);
        }
        let archive = base.join(format!("{FOLDER}.tar.gz"));
        if !archive.is_file() {
            return Err(DataError::NotFound { set: "caltech101", dir: dir.to_owned(), tried: vec![folder, archive] });
        }
        match unpack_dir {
            Some(unpack_dir) => Self::from_folder(&archive::unpack(&archive, unpack_dir)?),
            None => Self::from_archive(&archive),
        }
    }

    /// Lists a folder of class folders; any number of classes.
    pub(crate) fn from_folder(root: &Path) -> Result<Self, DataError> {
        let mut names = Vec::new();
        for class in list(root)? {
            let folder = root.join(&class);
            if !folder.is_dir() {
                continue;
            }
            for file in list(&folder)? {
                names.push(format!("{class}/{file}"));
            }
        }
        names.retain(|name| is_image(name));
        names.sort_unstable();
        let (class_names, labels) = number(names.iter().map(String::as_str));
        Ok(Self { root: root.to_owned(), class_names, labels, store: Store::Folder(names) })
    }

    /// Reads an archive's compressed images into memory; any number of classes.
    pub(crate) fn from_archive(path: &Path) -> Result<Self, DataError> {
        let archive = Archive::read(path)?;
        let (class_names, labels) = number(archive.names());
        Ok(Self { root: path.to_owned(), class_names, labels, store: Store::Memory(archive) })
    }

    /// Requires the 101 classes of the real set.
    pub(crate) fn complete(self) -> Result<Self, DataError> {
        if self.class_names.len() == CLASSES {
            return Ok(self);
        }
        Err(DataError::Classes { path: self.root, found: self.class_names.len(), expected: CLASSES })
    }

    /// The classes' names, by label.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// The class of each photograph.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// `class/file` of a photograph.
    ///
    /// # Panics
    ///
    /// If there is no photograph `index`.
    pub fn name(&self, index: usize) -> &str {
        match &self.store {
            Store::Folder(names) => &names[index],
            Store::Memory(archive) => archive.name(index),
        }
    }

    /// The JPEG file of a photograph.
    ///
    /// # Errors
    ///
    /// [`DataError::Io`] with the path, if it lies in a folder and cannot be read.
    ///
    /// # Panics
    ///
    /// If there is no photograph `index`.
    pub fn jpeg(&self, index: usize) -> Result<Cow<'_, [u8]>, DataError> {
        match &self.store {
            Store::Memory(archive) => Ok(Cow::Borrowed(archive.bytes(index))),
            Store::Folder(names) => {
                let path = self.root.join(&names[index]);
                fs::read(&path).map(Cow::Owned).map_err(DataError::io(&path))
            }
        }
    }

    /// The pixels of a photograph, as CHW bytes of `shape`.
    ///
    /// # Errors
    ///
    /// [`DataError::Io`] or [`DataError::Image`] with the path.
    ///
    /// # Panics
    ///
    /// If there is no photograph `index`.
    pub fn pixels(&self, index: usize, shape: ImageShape) -> Result<Vec<u8>, DataError> {
        pixels::from_jpeg(&self.jpeg(index)?, shape)
            .map_err(|problem| DataError::Image { path: self.describe(index), problem })
    }

    /// The SHA-256 over the whole set, whichever way it is packed: of each photograph's name, a zero byte, its length
    /// as a 64-bit little-endian number, and its bytes.
    ///
    /// # Errors
    ///
    /// [`DataError::Io`] with the path of what cannot be read.
    pub fn content(&self) -> Result<Checksum, DataError> {
        let mut sum = Sha256::new();
        for index in 0..self.labels.len() {
            let jpeg = self.jpeg(index)?;
            sum.update(self.name(index));
            sum.update([0]);
            sum.update((jpeg.len() as u64).to_le_bytes());
            sum.update(&jpeg);
        }
        Ok(Checksum::of_sha256(sum))
    }
}

impl Source for Photos {
    fn labels(&self) -> &[usize] {
        &self.labels
    }

    fn decode(&self, index: usize, shape: ImageShape) -> Result<Vec<u8>, DataError> {
        self.pixels(index, shape)
    }

    fn describe(&self, index: usize) -> PathBuf {
        self.root.join(self.name(index))
    }

    fn worth_caching(&self, _shape: ImageShape) -> bool {
        true
    }
}

/// Whether `class/file` is an image of one of the classes: a `.jpg`, not hidden (macOS puts `._image_0001.jpg` beside
/// `image_0001.jpg` on foreign disks), and not background.
fn is_image(name: &str) -> bool {
    let Some((class, file)) = name.split_once('/') else {
        return false;
    };
    let extension = Path::new(file).extension().and_then(|ext| ext.to_str());
    class != BACKGROUND
        && !class.starts_with('.')
        && !file.starts_with('.')
        && extension.is_some_and(|ext| ext.eq_ignore_ascii_case("jpg") || ext.eq_ignore_ascii_case("jpeg"))
}

/// Numbers the classes of sorted `class/file` names.
fn number<'a>(names: impl Iterator<Item = &'a str> + Clone) -> (Vec<String>, Vec<usize>) {
    let class = |name: &'a str| name.split_once('/').map_or(name, |(class, _)| class);
    let mut numbers: BTreeMap<&str, usize> = names.clone().map(|name| (class(name), 0)).collect();
    for (number, value) in numbers.values_mut().enumerate() {
        *value = number;
    }
    let labels = names.map(|name| numbers[class(name)]).collect();
    (numbers.into_keys().map(str::to_owned).collect(), labels)
}

/// The names in a folder. A name that is not UTF-8 cannot be one of the set's and is left out.
fn list(folder: &Path) -> Result<Vec<String>, DataError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(DataError::io(folder))? {
        let entry = entry.map_err(DataError::io(folder))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
