//! A figure as pixels.

use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use super::ReportError;

/// Pixels for each unit of the drawing.
const SCALE: f32 = 2.0;

/// Draws `svg` as PNG, twice as large, with a font of its own: it looks the same on a machine that has none.
///
/// # Errors
///
/// [`ReportError::Figure`] if `svg` is not one, or is too large to draw.
pub fn png(svg: &str) -> Result<Vec<u8>, ReportError> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = usvg::Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..usvg::Options::default() };
    let error = |error: &dyn std::fmt::Display| ReportError::Figure(error.to_string());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| error(&e))?;
    let size =
        tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| ReportError::Figure("it has no size".to_owned()))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| ReportError::Figure("it is too large".to_owned()))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| error(&e))
}

/// The embedded font: Ubuntu Light, whose licence (Ubuntu Font Licence 1.0) allows to embed it.
const FAMILY: &str = "Ubuntu";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_leaves_ink_without_any_font_of_the_system() {
        let draw = |text: &str| {
            let svg = format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30" fill="white"/><text x="5" y="20" font-family="sans-serif" font-size="16" fill="black">{text}</text></svg>"#
            );
            png(&svg).unwrap()
        };
        let dark = |png: &[u8]| {
            let pixels = tiny_skia::Pixmap::decode_png(png).unwrap();
            pixels.pixels().iter().filter(|pixel| pixel.red() < 128).count()
        };
        assert_eq!(dark(&draw("")), 0);
        assert!(dark(&draw("Memory")) > dark(&draw("M")));
        assert!(dark(&draw("M")) > 20);
    }
}
