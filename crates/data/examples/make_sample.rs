//! Makes the sample in `datasets/` from the full sets: the first digits of MNIST, and the first photographs of each class
//! of Caltech101, made smaller. The same full sets and the same versions of the libraries give the same bytes.
//!
//! ```text
//! cargo run -p data --example make_sample -- <folder of the full sets> <output folder>
//! ```
//!
//! Prints the manifest's entries for what it wrote.

use data::Checksum;
use data::caltech101::{FOLDER, Photos};
use data::idx::Idx;
use flate2::Compression;
use flate2::write::GzEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat};
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Digits to train on and to test on.
const DIGITS: [(&str, usize); 2] = [("train", 2000), ("t10k", 400)];
/// Photographs of each class.
const PHOTOS: usize = 5;
/// The shorter side of a photograph, in pixels.
const SIDE: u32 = 96;
const QUALITY: u8 = 80;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [full, out] = args.as_slice() else {
        return Err("expected two arguments: the folder of the full sets, and the output folder".into());
    };
    let (full, out) = (Path::new(full), Path::new(out));
    fs::create_dir_all(out.join("mnist"))?;
    fs::create_dir_all(out.join("caltech101"))?;
    for (part, count) in DIGITS {
        for kind in ["images-idx3-ubyte", "labels-idx1-ubyte"] {
            let name = format!("mnist/{part}-{kind}.gz");
            digits(&full.join(&name), count, &out.join(&name))?;
            describe(out, &name)?;
        }
    }
    let name = format!("caltech101/{FOLDER}.tar.gz");
    photos(full, &out.join(&name))?;
    describe(out, &name)
}

/// Writes an IDX file with the first `count` entries of another.
fn digits(from: &Path, count: usize, to: &Path) -> Result<(), Box<dyn Error>> {
    let mut idx = Idx::read(from)?;
    let entry: usize = idx.dims[1..].iter().product();
    idx.dims[0] = count;
    let mut gz = GzEncoder::new(File::create(to)?, Compression::best());
    gz.write_all(&[0, 0, 8, u8::try_from(idx.dims.len())?])?;
    for size in &idx.dims {
        gz.write_all(&u32::try_from(*size)?.to_be_bytes())?;
    }
    gz.write_all(&idx.values[..count * entry])?;
    gz.finish()?;
    Ok(())
}

/// Writes an archive with the first photographs of each class, made smaller.
fn photos(full: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let photos = Photos::open(full, None)?;
    let mut tar = tar::Builder::new(GzEncoder::new(File::create(to)?, Compression::best()));
    let mut taken = vec![0; photos.class_names().len()];
    for (index, &label) in photos.labels().iter().enumerate() {
        if taken[label] == PHOTOS {
            continue;
        }
        taken[label] += 1;
        let jpeg = smaller(&photos.jpeg(index)?)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(jpeg.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{FOLDER}/{}", photos.name(index)), &jpeg[..])?;
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

/// Shrinks a photograph to a shorter side of [`SIDE`]; grey stays grey, and what is smaller stays as large.
fn smaller(jpeg: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let image = image::load_from_memory_with_format(jpeg, ImageFormat::Jpeg)?;
    let (width, height) = (image.width(), image.height());
    let scale = (f64::from(SIDE) / f64::from(width.min(height))).min(1.0);
    let scaled = |side: u32| (f64::from(side) * scale).round() as u32;
    let image: DynamicImage = image.resize_exact(scaled(width), scaled(height), FilterType::Triangle);
    let mut bytes = Vec::new();
    image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, QUALITY))?;
    Ok(bytes)
}

/// Prints the manifest's entry of a file.
fn describe(out: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let path = out.join(name);
    println!("[[sets.sample]]");
    println!("path = \"{name}\"");
    println!("bytes = {}", path.metadata()?.len());
    println!("checksum = \"{}\"\n", Checksum::sha256_of_file(&path)?);
    Ok(())
}
