//! The sample that ships in `datasets/`.

#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use data::caltech101::Photos;
use data::manifest::Manifest;
use data::{Checksum, DataConfig, LabelledDataset, Loader, LoaderConfig, SetId, Split};
use flate2::read::GzDecoder;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets")
}

fn open(set: SetId) -> Split {
    data::open(&DataConfig { dir: Some(datasets()), ..DataConfig::new(set) }).unwrap()
}

fn counts(data: &Arc<dyn LabelledDataset>, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    for &label in data.labels() {
        counts[label] += 1;
    }
    counts
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { bytes_below(&path) } else { path.metadata().unwrap().len() }).sum()
}

#[test]
fn every_shipped_file_is_the_manifests() {
    let manifest = Manifest::shipped().unwrap();
    let files: Vec<_> = manifest.sets.iter().flat_map(|set| &set.sample).collect();
    assert_eq!(files.len(), 5);
    for file in files {
        let path = datasets().join(&file.path);
        assert_eq!(path.metadata().unwrap().len(), file.bytes, "{}", path.display());
        assert_eq!(Checksum::sha256_of_file(&path).unwrap(), file.checksum, "{}", path.display());
    }
}

#[test]
fn the_sample_stays_small() {
    let bytes = bytes_below(&datasets());
    assert!(bytes < 5_000_000, "{bytes} bytes");
}

#[test]
fn every_set_names_its_licence_its_authors_and_its_source() {
    let readme = fs::read_to_string(datasets().join("README.md")).unwrap();
    let manifest = Manifest::shipped().unwrap();
    assert_eq!(manifest.sets.len(), 2);
    for set in &manifest.sets {
        assert!(readme.contains(&set.licence), "{} is not in the README", set.licence);
        assert!(!set.attribution.is_empty() && set.home.starts_with("http"));
        for file in &set.full {
            assert!(!file.urls.is_empty() && file.urls.iter().all(|url| url.starts_with("https://")));
        }
    }
}

#[test]
fn the_digits_are_the_first_of_mnist() {
    let split = open(SetId::Mnist);
    assert_eq!((split.train.len(), split.test.len(), split.classes), (2000, 400, 10));
    assert_eq!(split.train.labels()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    for data in [&split.train, &split.test] {
        let fewest = counts(data, 10).into_iter().min().unwrap();
        assert!(fewest * 15 > data.len(), "a class has only {fewest} of {}", data.len());
    }
    let first = split.train.get(0).unwrap();
    assert_eq!(first.pixels[5 * 28 + 12..][..12], [3, 18, 18, 18, 126, 136, 175, 26, 166, 255, 247, 127]);
}

#[test]
fn there_are_five_photographs_of_each_class_and_all_decode() {
    let photos = Photos::open(&datasets(), None).unwrap();
    assert_eq!(photos.labels().len(), 505);
    let split = open(SetId::Caltech101);
    assert_eq!(split.class_names, photos.class_names());
    assert_eq!(counts(&split.train, 101), [4; 101]);
    assert_eq!(counts(&split.test, 101), [1; 101]);
    let config = LoaderConfig { workers: 2, shuffle: Some(1), ..LoaderConfig::default() };
    let mut images = 0;
    for part in [split.train, split.test] {
        let loader = Loader::new(part, config.clone(), &Device::flex(), |batch| batch).unwrap();
        for batch in loader.iter() {
            let batch = batch.unwrap();
            assert_eq!(batch.images.dims()[1..], [3, 96, 96]);
            images += batch.len();
        }
    }
    assert_eq!(images, 505);
}

#[test]
fn digits_are_resized_and_coloured_as_asked() {
    let split = data::open(&DataConfig {
        dir: Some(datasets()),
        size: Some([32, 40]),
        channels: Some(3),
        ..DataConfig::new(SetId::Mnist)
    })
    .unwrap();
    let pixels = split.train.get(0).unwrap().pixels;
    let planes: Vec<&[u8]> = pixels.chunks(32 * 40).collect();
    assert_eq!(planes.len(), 3);
    assert!(planes[0] == planes[1] && planes[1] == planes[2]);
    assert!(planes[0].iter().any(|&pixel| pixel > 200));
}

#[test]
fn uncompressed_mnist_files_are_read_like_compressed_ones() {
    let dir = tempfile::TempDir::new().unwrap();
    fs::create_dir(dir.path().join("mnist")).unwrap();
    for entry in fs::read_dir(datasets().join("mnist")).unwrap() {
        let gz = entry.unwrap().path();
        let mut plain = fs::File::create(dir.path().join("mnist").join(gz.file_stem().unwrap())).unwrap();
        std::io::copy(&mut GzDecoder::new(fs::File::open(&gz).unwrap()), &mut plain).unwrap();
    }
    let plain = data::open(&DataConfig { dir: Some(dir.path().to_owned()), ..DataConfig::new(SetId::Mnist) }).unwrap();
    let compressed = open(SetId::Mnist);
    for (a, b) in [(&plain.train, &compressed.train), (&plain.test, &compressed.test)] {
        assert_eq!(a.labels(), b.labels());
        assert!((0..a.len()).all(|index| a.get(index).unwrap() == b.get(index).unwrap()));
    }
}

#[test]
fn damaged_mnist_files_are_errors_with_their_paths() {
    let dir = tempfile::TempDir::new().unwrap();
    let mnist = dir.path().join("mnist");
    fs::create_dir(&mnist).unwrap();
    let config = DataConfig { dir: Some(dir.path().to_owned()), ..DataConfig::new(SetId::Mnist) };
    let message = |config: &DataConfig| data::open(config).unwrap_err().to_string();
    assert!(message(&config).contains("train-images-idx3-ubyte.gz"), "{}", message(&config));
    for entry in fs::read_dir(datasets().join("mnist")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), mnist.join(entry.file_name())).unwrap();
    }
    data::open(&config).unwrap();
    let labels = mnist.join("t10k-labels-idx1-ubyte.gz");
    let whole = fs::read(&labels).unwrap();
    for (bytes, expected) in [
        (whole[..whole.len() / 2].to_vec(), "gzip data is damaged"),
        (b"not gzip".to_vec(), "gzip data is damaged"),
        (fs::read(mnist.join("train-labels-idx1-ubyte.gz")).unwrap(), "2000 labels for the 400 images"),
        (fs::read(mnist.join("t10k-images-idx3-ubyte.gz")).unwrap(), "3 dimensions, expected 1"),
    ] {
        fs::write(&labels, bytes).unwrap();
        let message = message(&config);
        assert!(message.contains("t10k-labels-idx1-ubyte.gz") && message.contains(expected), "{message}");
    }
}
