//! One file out of a zip archive.

use super::{FetchError, partial};
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;
use zip::ZipArchive;

/// Extracts the file that is called `wanted`, in whatever folder, to `target`. The target appears only when it is
/// whole; the archive's own checksum (CRC-32) is verified on the way.
pub(super) fn extract(archive: &Path, wanted: &str, target: &Path) -> Result<(), FetchError> {
    let refused = |reason: String| FetchError::Zip { path: archive.to_owned(), wanted: wanted.to_owned(), reason };
    let file = File::open(archive).map_err(FetchError::io(archive))?;
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|error| refused(error.to_string()))?;
    let index = (0..zip.len())
        .find(|&index| {
            let name = zip.name_for_index(index);
            name.and_then(Result::ok).is_some_and(|name| is_called(&name, wanted))
        })
        .ok_or_else(|| refused(format!("none of its {} files is called so", zip.len())))?;
    let mut entry = zip.by_index(index).map_err(|error| refused(error.to_string()))?;
    let part = partial(target);
    let mut out = File::create(&part).map_err(FetchError::io(&part))?;
    // Reading and writing fail alike here: a damaged archive, or a full disk. The reason says which.
    io::copy(&mut entry, &mut out).map_err(|error| refused(error.to_string()))?;
    out.sync_all().map_err(FetchError::io(&part))?;
    fs::rename(&part, target).map_err(FetchError::io(target))
}

/// macOS adds `__MACOSX/…/._name` beside `name`; the comparison of whole names leaves it out.
fn is_called(path: &str, wanted: &str) -> bool {
    path.rsplit('/').next() == Some(wanted)
}
