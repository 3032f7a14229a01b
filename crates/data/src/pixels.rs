//! From encoded or grey images to CHW bytes of the shape that is asked for.

use crate::sample::ImageShape;
use image::imageops::FilterType;
use image::{DynamicImage, GrayImage, ImageFormat};

/// Decodes a JPEG, converts it to 1 or 3 channels, and resizes it.
///
/// Resizing is bilinear (`image`'s `Triangle` filter, which widens its support when it shrinks, so that fine texture
/// does not alias) and ignores the aspect ratio. Grey becomes colour by repeating the plane; colour becomes grey by
/// the Rec. 709 luma weights.
pub(crate) fn from_jpeg(bytes: &[u8], shape: ImageShape) -> Result<Vec<u8>, String> {
    ensure_complete(bytes)?;
    let image = image::load_from_memory_with_format(bytes, ImageFormat::Jpeg).map_err(|error| error.to_string())?;
    if shape.channels == 1 || matches!(image, DynamicImage::ImageLuma8(_)) {
        let grey = resize(DynamicImage::ImageLuma8(image.into_luma8()), shape);
        return Ok(repeat_plane(grey.into_luma8().into_raw(), shape.channels));
    }
    let rgb = resize(DynamicImage::ImageRgb8(image.into_rgb8()), shape).into_rgb8();
    let mut planes = vec![0; shape.elements()];
    let plane = shape.height * shape.width;
    for (index, pixel) in rgb.as_raw().as_chunks::<3>().0.iter().enumerate() {
        for (channel, value) in pixel.iter().enumerate() {
            planes[channel * plane + index] = *value;
        }
    }
    Ok(planes)
}

fn resize(image: DynamicImage, shape: ImageShape) -> DynamicImage {
    // Sides are at most a few thousand (`DataConfig::validate`).
    image.resize_exact(shape.width as u32, shape.height as u32, FilterType::Triangle)
}

/// Resizes a grey image, if it has another size, and repeats it for each channel.
pub(crate) fn from_grey(pixels: &[u8], height: usize, width: usize, shape: ImageShape) -> Result<Vec<u8>, String> {
    if (height, width) == (shape.height, shape.width) {
        return Ok(repeat_plane(pixels.to_vec(), shape.channels));
    }
    let image = GrayImage::from_raw(width as u32, height as u32, pixels.to_vec())
        .ok_or_else(|| format!("{} pixels are no image of {height}x{width}", pixels.len()))?;
    let plane = resize(DynamicImage::ImageLuma8(image), shape).into_luma8();
    Ok(repeat_plane(plane.into_raw(), shape.channels))
}

fn repeat_plane(plane: Vec<u8>, channels: usize) -> Vec<u8> {
    if channels == 1 { plane } else { plane.repeat(channels) }
}

/// A decoder fills what a cut file lacks with grey and reports success, so the end is checked here: after the start of
/// the last scan there must be an end-of-image marker. Neither can occur within compressed pixels.
fn ensure_complete(bytes: &[u8]) -> Result<(), String> {
    const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
    const START_OF_SCAN: [u8; 2] = [0xff, 0xda];
    const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];
    let last = |marker: [u8; 2]| bytes.windows(2).rposition(|pair| pair == marker);
    if !bytes.starts_with(&START_OF_IMAGE) {
        return Err(format!("its {} bytes do not start like a JPEG", bytes.len()));
    }
    match (last(START_OF_SCAN), last(END_OF_IMAGE)) {
        (Some(scan), Some(end)) if scan < end => Ok(()),
        _ => Err(format!("it is cut off after {} bytes", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::codecs::jpeg::JpegEncoder;
    use image::{Luma, Rgb, RgbImage};

    fn jpeg(image: DynamicImage) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, 100)).unwrap();
        bytes
    }

    fn close(bytes: &[u8], expected: u8) -> bool {
        bytes.iter().all(|&byte| byte.abs_diff(expected) <= 3)
    }

    #[test]
    fn colour_planes_come_one_after_the_other() {
        let red = RgbImage::from_pixel(24, 16, Rgb([250, 120, 10]));
        let planes = from_jpeg(&jpeg(red.into()), ImageShape::new(3, 8, 10)).unwrap();
        assert_eq!(planes.len(), 3 * 80);
        for (plane, expected) in planes.chunks(80).zip([250, 120, 10]) {
            assert!(close(plane, expected), "{plane:?}");
        }
    }

    #[test]
    fn a_grey_jpeg_gives_three_equal_planes() {
        let grey = GrayImage::from_fn(16, 16, |x, y| Luma([(x * 8 + y * 4) as u8]));
        let planes = from_jpeg(&jpeg(grey.into()), ImageShape::new(3, 8, 8)).unwrap();
        assert_eq!(planes[..64], planes[64..128]);
        assert_eq!(planes[..64], planes[128..]);
        assert!(planes[0] < planes[63], "the gradient was lost");
    }

    #[test]
    fn a_colour_jpeg_becomes_grey_by_its_luma() {
        let green = RgbImage::from_pixel(16, 16, Rgb([0, 200, 0]));
        let plane = from_jpeg(&jpeg(green.into()), ImageShape::new(1, 4, 4)).unwrap();
        assert!(close(&plane, (0.7152 * 200.0) as u8), "{plane:?}");
    }

    #[test]
    fn a_cut_jpeg_is_an_error_wherever_it_is_cut() {
        let image = RgbImage::from_fn(32, 32, |x, y| Rgb([(x * 7) as u8, (y * 5) as u8, (x * y) as u8]));
        let whole = jpeg(image.into());
        let shape = ImageShape::new(3, 8, 8);
        assert!(from_jpeg(&whole, shape).is_ok());
        for keep in 0..whole.len() - 1 {
            assert!(from_jpeg(&whole[..keep], shape).is_err(), "{keep} of {} bytes decoded", whole.len());
        }
    }

    #[test]
    fn a_grey_image_of_the_wanted_size_stays_as_it_is() {
        let pixels: Vec<u8> = (0..12).collect();
        assert_eq!(from_grey(&pixels, 3, 4, ImageShape::new(1, 3, 4)).unwrap(), pixels);
        assert_eq!(from_grey(&pixels, 3, 4, ImageShape::new(3, 3, 4)).unwrap(), pixels.repeat(3));
    }

    #[test]
    fn enlarging_interpolates_between_neighbours() {
        let wide = from_grey(&[0, 100], 1, 2, ImageShape::new(1, 1, 4)).unwrap();
        assert_eq!(wide, [0, 25, 75, 100]);
    }
}
