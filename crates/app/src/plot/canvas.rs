//! Pixels, rectangles, text and the PNG file.

use super::colour::Rgb;
use super::font;
use anyhow::Result;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// An image; x runs to the right, y downwards.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize, paper: Rgb) -> Canvas {
        Canvas { width, height, pixels: vec![paper; width * height] }
    }

    /// Colours one pixel; outside the image there is none to colour.
    pub(crate) fn dot(&mut self, x: usize, y: usize, colour: Rgb) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    /// The colour of one pixel of the image.
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
    pub(crate) fn text(&mut self, [x, y]: [usize; 2], text: &str, scale: usize, colour: Rgb) {
        for (place, letter) in text.chars().enumerate() {
            let left = x + place * font::ADVANCE * scale;
            for [column, row] in font::dots(letter) {
                self.fill([left + column * scale, y + row * scale], [scale, scale], colour);
            }
        }
    }

    /// Saves the image as PNG.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        Ok(writer.finish()?)
    }
}
