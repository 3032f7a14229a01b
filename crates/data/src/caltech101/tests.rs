use super::archive::class_and_file;
use super::*;
use crate::OnBadFile;
use flate2::Compression;
use flate2::write::GzEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::{GrayImage, Luma};
use tempfile::TempDir;

const SHAPE: ImageShape = ImageShape::new(3, 8, 8);

pub(crate) fn jpeg(brightness: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    GrayImage::from_pixel(12, 10, Luma([brightness]))
        .write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, 95))
        .unwrap();
    bytes
}

/// What lies in an extracted copy: images, and things that are none.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("ant/image_0002.jpg", jpeg(20)),
        ("ant/image_0001.jpg", jpeg(10)),
        ("Zebra/image_0001.JPG", jpeg(30)),
        ("bee/image_0001.jpg", jpeg(40)),
        ("bee/._image_0001.jpg", b"resource fork".to_vec()),
        ("bee/notes.txt", b"text".to_vec()),
        ("BACKGROUND_Google/image_0001.jpg", jpeg(50)),
        ("BACKGROUND_Google/tmp", b"left over".to_vec()),
    ]
}

fn write_folder(dir: &Path, files: &[(&str, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = dir.join("caltech101").join(FOLDER).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn write_archive(dir: &Path, files: &[(&str, Vec<u8>)]) -> PathBuf {
    let base = dir.join("caltech101");
    fs::create_dir_all(&base).unwrap();
    let path = base.join(format!("{FOLDER}.tar.gz"));
    let gz = GzEncoder::new(fs::File::create(&path).unwrap(), Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{FOLDER}/{name}"), &bytes[..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    path
}

fn assert_is_the_set(photos: &Photos) {
    assert_eq!(photos.class_names(), ["Zebra", "ant", "bee"]);
    assert_eq!(photos.labels(), [0, 1, 1, 2]);
    let names: Vec<_> = (0..4).map(|index| photos.name(index)).collect();
    assert_eq!(names, ["Zebra/image_0001.JPG", "ant/image_0001.jpg", "ant/image_0002.jpg", "bee/image_0001.jpg"]);
    for (index, brightness) in [30u8, 10, 20, 40].into_iter().enumerate() {
        let pixels = photos.pixels(index, SHAPE).unwrap();
        assert!(pixels.iter().all(|pixel| pixel.abs_diff(brightness) <= 2), "{index}: {pixels:?}");
    }
}

#[test]
fn folder_archive_and_unpacked_archive_are_the_same_set() {
    let (folder, archive, unpacked) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    write_folder(folder.path(), &files());
    write_archive(archive.path(), &files());
    let sets = [
        Photos::open(folder.path(), None).unwrap(),
        Photos::open(archive.path(), None).unwrap(),
        Photos::open(archive.path(), Some(unpacked.path())).unwrap(),
    ];
    for photos in &sets {
        assert_is_the_set(photos);
        assert_eq!(photos.content().unwrap(), sets[0].content().unwrap());
    }
}

#[test]
fn an_archive_without_unpack_folder_writes_nothing() {
    let dir = TempDir::new().unwrap();
    write_archive(dir.path(), &files());
    Photos::open(dir.path(), None).unwrap();
    let entries: Vec<_> = fs::read_dir(dir.path().join("caltech101")).unwrap().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
}

#[test]
fn an_archive_is_unpacked_once() {
    let (dir, unpacked) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let archive = write_archive(dir.path(), &files());
    Photos::open(dir.path(), Some(unpacked.path())).unwrap();
    // Damaged now: only a second unpacking would notice.
    fs::write(&archive, b"damaged").unwrap();
    assert_is_the_set(&Photos::open(dir.path(), Some(unpacked.path())).unwrap());
    let left: Vec<_> = fs::read_dir(unpacked.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [FOLDER]);
}

#[test]
fn a_damaged_archive_is_an_error_with_its_path_and_leaves_nothing_unpacked() {
    let (dir, unpacked) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let archive = write_archive(dir.path(), &files());
    let whole = fs::read(&archive).unwrap();
    for keep in [0, 10, whole.len() / 2, whole.len() - 9] {
        fs::write(&archive, &whole[..keep]).unwrap();
        for unpack_dir in [None, Some(unpacked.path())] {
            let error = Photos::open(dir.path(), unpack_dir).unwrap_err();
            assert!(matches!(error, DataError::Archive { .. }), "{keep} bytes: {error}");
            assert!(error.to_string().contains("101_ObjectCategories.tar.gz"), "{error}");
        }
        assert_eq!(fs::read_dir(unpacked.path()).unwrap().count(), 0);
    }
}

#[test]
fn nothing_in_an_archive_is_written_outside_the_unpack_folder() {
    let outside = class_and_file(Path::new("101_ObjectCategories/../../evil.jpg"));
    assert_eq!(outside, None);
    assert_eq!(class_and_file(Path::new("evil.jpg")), None);
    assert_eq!(class_and_file(Path::new("/etc/ant/a.jpg")), Some("ant/a.jpg".to_owned()));
}

#[test]
fn a_missing_set_names_what_would_be_accepted() {
    let dir = TempDir::new().unwrap();
    let message = Photos::open(dir.path(), None).unwrap_err().to_string();
    for part in ["caltech101", "101_ObjectCategories or", "101_ObjectCategories.tar.gz"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_copy_that_lacks_classes_is_refused() {
    let dir = TempDir::new().unwrap();
    write_folder(dir.path(), &files());
    let error = Photos::open(dir.path(), None).unwrap().complete().unwrap_err();
    assert!(matches!(error, DataError::Classes { found: 3, expected: 101, .. }), "{error}");
}

/// A whole set of 101 classes of two images, one of which is cut and one deleted after opening.
fn damaged(on_bad_file: OnBadFile) -> (TempDir, crate::Split) {
    let dir = TempDir::new().unwrap();
    let mut files = Vec::new();
    let names: Vec<String> = (0..CLASSES).map(|class| format!("class_{class:03}")).collect();
    for name in &names {
        for file in ["a.jpg", "b.jpg", "c.jpg"] {
            files.push((format!("{name}/{file}"), jpeg(100)));
        }
    }
    files[30].1.truncate(200);
    let borrowed: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    write_folder(dir.path(), &borrowed);
    let config = crate::DataConfig {
        dir: Some(dir.path().to_owned()),
        on_bad_file,
        size: Some([8, 8]),
        ..crate::DataConfig::new(crate::SetId::Caltech101)
    };
    let split = crate::open(&config).unwrap();
    fs::remove_file(dir.path().join("caltech101").join(FOLDER).join(&files[60].0)).unwrap();
    (dir, split)
}

#[test]
fn bad_files_are_errors_with_their_paths() {
    let (_dir, split) = damaged(OnBadFile::Error);
    let mut errors = Vec::new();
    for part in [&split.train, &split.test] {
        for index in 0..part.len() {
            errors.extend(part.load(index).err().map(|error| error.to_string()));
        }
    }
    errors.sort_unstable();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("class_010/a.jpg") && errors[0].contains("cut off"), "{errors:?}");
    assert!(errors[1].contains("class_020/a.jpg"), "{errors:?}");
    assert_eq!(split.skipped.count(), 0);
}

#[test]
fn bad_files_are_skipped_and_counted_once_if_wished() {
    let (_dir, split) = damaged(OnBadFile::Skip);
    for _epoch in 0..2 {
        let mut loaded = 0;
        for part in [&split.train, &split.test] {
            for index in 0..part.len() {
                loaded += usize::from(part.load(index).unwrap().is_some());
            }
        }
        assert_eq!(loaded, 3 * CLASSES - 2);
        assert_eq!(split.skipped.count(), 2);
    }
    let paths = split.skipped.paths();
    assert!(paths[0].ends_with("class_010/a.jpg") && paths[1].ends_with("class_020/a.jpg"), "{paths:?}");
}
