//! An image: pixels, rectangles, text, and the bytes of a PNG file.

use super::colour::Rgb;
use super::font;
use anyhow::Result;

/// An image. x runs to the right, y downwards.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize, paper: Rgb) -> Canvas {
        Canvas { width, height, pixels: vec![paper; width * height] }
    }

    /// Colours one pixel, if it lies inside the image.
    pub(crate) fn dot(&mut self, x: usize, y: usize, colour: Rgb) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    /// The colour of one pixel.
    #[cfg(test)]
    pub(crate) fn at(&self, x: usize, y: usize) -> Rgb {
        self.pixels[y * self.width + x]
    }

    /// Fills a rectangle.
    pub(crate) fn fill(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], colour: Rgb) {
        for row in y..y + height {
            (x..x + width).for_each(|column| self.dot(column, row, colour));
        }
    }

    /// Writes `text` with its upper left corner at `[x, y]`.
    pub(crate) fn text(&mut self, [x, y]: [usize; 2], text: &str, colour: Rgb) {
        for (index, letter) in text.chars().enumerate() {
            for ([column, row], ink) in font::dots(letter) {
                self.tint(x + index * font::ADVANCE + column, y + row, colour, ink);
            }
        }
    }

    /// Blends a colour into a pixel: not at all for ink 0, fully for 255.
    fn tint(&mut self, x: usize, y: usize, colour: Rgb, ink: u8) {
        if x < self.width && y < self.height {
            let pixel = &mut self.pixels[y * self.width + x];
            let mix = |paper: u8, ink_colour: u8| {
                let ink = u32::from(ink);
                ((u32::from(paper) * (255 - ink) + u32::from(ink_colour) * ink + 127) / 255) as u8
            };
            *pixel = std::array::from_fn(|channel| mix(pixel[channel], colour[channel]));
        }
    }

    /// The image as the bytes of a PNG file; pixels of the `clear` colour are transparent.
    pub(crate) fn png(&self, clear: Option<Rgb>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        if let Some([red, green, blue]) = clear {
            encoder.set_trns(vec![0, red, 0, green, 0, blue]);
        }
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{INK, PAPER};

    #[test]
    fn text_is_clipped_at_the_border_of_the_image() {
        let mut canvas = Canvas::new(20, 10, PAPER);
        canvas.text([15, 2], "MMM", INK);
        let dark = (0..20).flat_map(|x| (0..10).map(move |y| (x, y))).filter(|&(x, y)| canvas.at(x, y) != PAPER);
        assert!(dark.clone().count() > 3 && dark.into_iter().all(|(x, _)| x >= 15));
    }

    #[test]
    fn the_file_holds_every_pixel() {
        let mut canvas = Canvas::new(7, 5, PAPER);
        canvas.dot(3, 4, [1, 2, 3]);
        let bytes = canvas.png(Some(PAPER)).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let decoded = reader.next_frame(&mut pixels).unwrap();
        assert_eq!([decoded.width, decoded.height], [7, 5]);
        assert_eq!(reader.info().trns.as_deref(), Some(&PAPER[..]), "the reader returns the low bytes");
        assert_eq!(&pixels[3 * (4 * 7 + 3)..][..3], [1, 2, 3]);
    }
}
