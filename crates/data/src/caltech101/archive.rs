//! The published `tar.gz`: into memory, or unpacked once.

use super::{FOLDER, is_image};
use crate::error::DataError;
use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tar::{Archive as Tar, Entry};

type Inflated = GzDecoder<BufReader<File>>;

/// The compressed images of an archive, one after the other in one allocation.
pub(super) struct Archive {
    /// Sorted by name.
    entries: Vec<(String, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Archive {
    /// Reads every image of the classes, in one pass.
    pub(super) fn read(path: &Path) -> Result<Self, DataError> {
        let (mut entries, mut bytes) = (Vec::new(), Vec::new());
        for_each_image(path, |name, entry| {
            let start = bytes.len();
            entry.read_to_end(&mut bytes)?;
            entries.push((name, start..bytes.len()));
            Ok(())
        })?;
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        bytes.shrink_to_fit();
        Ok(Self { entries, bytes })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.entries[index].0
    }

    pub(super) fn bytes(&self, index: usize) -> &[u8] {
        &self.bytes[self.entries[index].1.clone()]
    }
}

/// Unpacks the images of the classes into `<into>/101_ObjectCategories`, unless that folder is there already, and
/// returns it. It appears under its name only when it is whole, so an interrupted run leaves nothing to trust.
pub(super) fn unpack(path: &Path, into: &Path) -> Result<PathBuf, DataError> {
    let target = into.join(FOLDER);
    if target.is_dir() {
        return Ok(target);
    }
    // Named by process, so that two runs do not write into each other's folder.
    let partial = into.join(format!("{FOLDER}.part-{}", std::process::id()));
    let result = unpack_to(path, &partial).and_then(|()| match fs::rename(&partial, &target) {
        // Another run was faster; its folder is as good.
        Err(_) if target.is_dir() => Ok(()),
        other => other.map_err(DataError::io(&target)),
    });
    // Left only after a failure, or after another run won.
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(DataError::io(&partial))?;
    }
    result.map(|()| target)
}

fn unpack_to(path: &Path, partial: &Path) -> Result<(), DataError> {
    fs::create_dir_all(partial).map_err(DataError::io(partial))?;
    let mut jpeg = Vec::new();
    let mut failed = None;
    let outcome = for_each_image(path, |name, entry| {
        // In two steps: a failure to read is the archive's, a failure to write is not.
        jpeg.clear();
        entry.read_to_end(&mut jpeg)?;
        let file = partial.join(name);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, &jpeg));
        written.inspect_err(|_| failed = Some(file))
    });
    match (outcome, failed) {
        (Err(DataError::Archive { source, .. }), Some(file)) => Err(DataError::Io { path: file, source }),
        (outcome, _) => outcome,
    }
}

/// Calls `with` for each image of the classes as `class/file`, in the archive's order.
fn for_each_image(
    path: &Path,
    mut with: impl FnMut(String, &mut Entry<'_, Inflated>) -> std::io::Result<()>,
) -> Result<(), DataError> {
    let damaged = |source| DataError::Archive { path: path.to_owned(), source };
    let file = File::open(path).map_err(DataError::io(path))?;
    let mut tar = Tar::new(GzDecoder::new(BufReader::new(file)));
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = class_and_file(&entry.path().map_err(damaged)?);
        if let Some(name) = name.filter(|name| is_image(name)) {
            with(name, &mut entry).map_err(damaged)?;
        }
    }
    // A tar ends before its gzip does; only gzip's checksum at the very end shows that nothing was lost.
    std::io::copy(&mut tar.into_inner(), &mut std::io::sink()).map_err(damaged)?;
    Ok(())
}

/// The last two components, if both are plain names: nothing in an archive chooses where a file is written.
pub(super) fn class_and_file(path: &Path) -> Option<String> {
    let mut names = path.components().rev().map(|part| match part {
        std::path::Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let (file, class) = (names.next()??, names.next()??);
    Some(format!("{class}/{file}"))
}
