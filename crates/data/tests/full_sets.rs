//! The real sets, whole. They are too large to ship: name the folder that holds `mnist/` and `caltech101/` in
//! `MEM_POLICY_DATA`. Without it these tests are reported as ignored.
//!
//! Expected values come from elsewhere: the MNIST checksums and counts are the well-known ones, the checksum of the
//! Caltech101 images and the number of grey ones were computed with Python's `hashlib` and Pillow 13, and the resized
//! pixels with Pillow's `BILINEAR`.

#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use data::caltech101::Photos;
use data::manifest::Manifest;
use data::{DataConfig, ImageShape, LabelledDataset, Loader, LoaderConfig, SetId, Split};
use image::codecs::jpeg::JpegDecoder;
use image::{ColorType, ImageDecoder};
use libtest_mimic::{Arguments, Trial};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const VARIABLE: &str = "MEM_POLICY_DATA";
/// A test of the sets in a folder.
type Claim = fn(&Path);

fn main() {
    let args = Arguments::from_args();
    let dir = std::env::var_os(VARIABLE).map(PathBuf::from);
    if dir.is_none() && !args.list {
        println!("skipped: {VARIABLE} names no folder with the full sets");
    }
    let claims: [(&str, Claim); 6] = [
        ("mnist_has_the_well_known_content", mnist_content),
        ("mnist_has_the_well_known_labels", mnist_labels),
        ("mnist_has_the_well_known_pixels_and_statistics", mnist_pixels),
        ("caltech101_has_its_classes_and_its_content", caltech_content),
        ("caltech101_resizes_like_pillow", caltech_resizes),
        ("every_caltech101_image_decodes", caltech_decodes),
    ];
    let trials = claims
        .into_iter()
        .map(|(name, claim)| {
            let dir = dir.clone();
            let ignored = dir.is_none();
            let run = move || {
                claim(&dir.ok_or(format!("{VARIABLE} is not set"))?);
                Ok(())
            };
            Trial::test(name, run).with_ignored_flag(ignored)
        })
        .collect();
    libtest_mimic::run(&args, trials).exit();
}

fn open(set: SetId, dir: &Path) -> Split {
    data::open(&DataConfig { dir: Some(dir.to_owned()), ..DataConfig::new(set) }).unwrap()
}

fn counts(data: &Arc<dyn LabelledDataset>, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    for &label in data.labels() {
        counts[label] += 1;
    }
    counts
}

fn mnist_content(dir: &Path) {
    let manifest = Manifest::shipped().unwrap();
    let files = &manifest.set("mnist").unwrap().full;
    assert_eq!(files.len(), 4);
    for file in files {
        let path = dir.join(&file.path);
        assert!(file.matches(&path).unwrap(), "{} is not the published file", path.display());
    }
}

fn mnist_labels(dir: &Path) {
    let split = open(SetId::Mnist, dir);
    let train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    let test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009];
    assert_eq!(counts(&split.train, 10), train);
    assert_eq!(counts(&split.test, 10), test);
    assert_eq!(split.train.labels()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
}

fn mnist_pixels(dir: &Path) {
    let split = open(SetId::Mnist, dir);
    let row = |data: &Arc<dyn LabelledDataset>, row: usize| data.get(0).unwrap().pixels[row * 28..][..28].to_vec();
    let train = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 18, 18, 18, 126, 136, 175, 26, 166, 255, 247, 127, 0, 0, 0, 0];
    let test = [0, 0, 0, 0, 0, 0, 84, 185, 159, 151, 60, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(row(&split.train, 5), train);
    assert_eq!(row(&split.test, 7), test);

    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    for index in 0..split.train.len() {
        for &pixel in split.train.get(index).unwrap().pixels.iter() {
            let value = f64::from(pixel) / 255.0;
            sum += value;
            squares += value * value;
            count += 1.0;
        }
    }
    let mean = sum / count;
    let std = (squares / count - mean * mean).sqrt();
    let (expected_mean, expected_std) = data::Normalisation::MNIST;
    assert!((mean - f64::from(expected_mean)).abs() < 5e-5, "mean {mean}");
    assert!((std - f64::from(expected_std)).abs() < 5e-5, "standard deviation {std}");
}

fn caltech_content(dir: &Path) {
    let photos = Photos::open(dir, None).unwrap();
    assert_eq!(photos.labels().len(), 8677);
    assert_eq!(
        photos.content().unwrap().to_string(),
        "sha256:784a8545101327c5adb7290bc76010ef142c25c6b92a758d049abb95a41b2aea"
    );
    let is_grey = |index: &usize| {
        let jpeg = photos.jpeg(*index).unwrap();
        let decoder = JpegDecoder::new(Cursor::new(&jpeg[..])).unwrap();
        decoder.color_type() == ColorType::L8
    };
    assert_eq!((0..8677).filter(is_grey).count(), 381);
    let split = open(SetId::Caltech101, dir);
    assert_eq!((split.classes, split.train.len() + split.test.len()), (101, 8677));
    assert_eq!(split.class_names[..5], ["Faces", "Faces_easy", "Leopards", "Motorbikes", "accordion"]);
    assert_eq!(split.class_names[100], "yin_yang");
    let (train, test) = (counts(&split.train, 101), counts(&split.test, 101));
    for (class, all) in [(0, 435), (1, 435), (2, 200), (3, 798), (4, 55), (5, 800)] {
        assert_eq!(train[class] + test[class], all, "{}", split.class_names[class]);
        assert_eq!(test[class], (f64::from(all as u32) * 0.2).round() as usize);
    }
}

/// Pixels and channel means of the image resized to 96x96.
fn caltech_resizes(dir: &Path) {
    let photos = Photos::open(dir, None).unwrap();
    let places = [(10, 10), (48, 48), (80, 30), (20, 85)];
    let cases = [
        ("accordion/image_0001.jpg", [[3, 3, 3], [15, 12, 15], [155, 149, 125], [1, 1, 1]], [78.555, 78.688, 70.764]),
        (
            "Faces/image_0001.jpg",
            [[123, 129, 123], [214, 192, 187], [46, 36, 27], [88, 105, 107]],
            [146.940, 137.018, 127.606],
        ),
        (
            "yin_yang/image_0060.jpg",
            [[254, 254, 254], [183, 200, 201], [228, 248, 251], [254, 254, 254]],
            [175.493, 182.573, 182.915],
        ),
    ];
    for (name, pixels, means) in cases {
        let index = (0..photos.labels().len()).find(|&index| photos.name(index) == name).unwrap();
        let image = photos.pixels(index, ImageShape::new(3, 96, 96)).unwrap();
        for (channel, plane) in image.chunks(96 * 96).enumerate() {
            for ((x, y), expected) in places.into_iter().zip(pixels) {
                let got = plane[y * 96 + x];
                assert!(got.abs_diff(expected[channel]) <= 4, "{name} at {x}, {y}: {got}, Pillow has {expected:?}");
            }
            let mean = plane.iter().map(|&pixel| f64::from(pixel)).sum::<f64>() / plane.len() as f64;
            assert!((mean - means[channel]).abs() < 0.6, "{name}: mean {mean}, Pillow has {means:?}");
        }
    }
}

fn caltech_decodes(dir: &Path) {
    let split = data::open(&DataConfig {
        dir: Some(dir.to_owned()),
        size: Some([24, 24]),
        ..DataConfig::new(SetId::Caltech101)
    })
    .unwrap();
    let config = LoaderConfig { batch_size: 64, workers: 2, prefetch: 4, ..LoaderConfig::default() };
    let mut images = 0;
    for part in [split.train, split.test] {
        let loader = Loader::new(part, config.clone(), &Device::flex(), |batch| batch.len()).unwrap();
        for len in loader.iter() {
            images += len.unwrap();
        }
    }
    assert_eq!(images, 8677);
    assert_eq!(split.skipped.count(), 0);
}
