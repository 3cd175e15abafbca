//! An image: pixels, rectangles, text, and the bytes of a PNG file.

use super::colour::Rgb;
use super::font;
use anyhow::Result;
use std::collections::HashMap;

/// An image. x runs to the right, y downwards.
#[derive(Clone, Debug)]
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

    /// Draws a picture into a rectangle; each pixel takes the nearest one of the picture.
    pub(super) fn paste(&mut self, [left, top]: [usize; 2], [width, height]: [usize; 2], picture: &Canvas) {
        for (x, y) in (0..width).flat_map(|x| (0..height).map(move |y| (x, y))) {
            let (column, row) = (x * picture.width / width, y * picture.height / height);
            self.dot(left + x, top + y, picture.pixels[row * picture.width + column]);
        }
    }

    /// Blends a colour into a pixel: not at all for ink 0, fully for 255.
    pub(super) fn tint(&mut self, x: usize, y: usize, colour: Rgb, ink: u8) {
        if x < self.width && y < self.height {
            let pixel = &mut self.pixels[y * self.width + x];
            let mix = |paper: u8, ink_colour: u8| {
                let ink = u32::from(ink);
                ((u32::from(paper) * (255 - ink) + u32::from(ink_colour) * ink + 127) / 255) as u8
            };
            *pixel = std::array::from_fn(|channel| mix(pixel[channel], colour[channel]));
        }
    }

    /// The image as the bytes of a PNG file; pixels of the `clear` colour are transparent. With at most 256 colours, a pixel is
    /// one byte in the file instead of three.
    pub(crate) fn png(&self, clear: Option<Rgb>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let indexed = self.indexed();
        match (&indexed, clear) {
            (Some((colours, _)), clear) => {
                encoder.set_color(png::ColorType::Indexed);
                encoder.set_palette(colours.concat());
                encoder.set_trns(
                    colours.iter().map(|colour| if Some(*colour) == clear { 0 } else { 255 }).collect::<Vec<u8>>(),
                );
            }
            (None, Some([red, green, blue])) => {
                encoder.set_color(png::ColorType::Rgb);
                encoder.set_trns(vec![0, red, 0, green, 0, blue]);
            }
            (None, None) => encoder.set_color(png::ColorType::Rgb),
        }
        let mut writer = encoder.write_header()?;
        match &indexed {
            Some((_, pixels)) => writer.write_image_data(pixels)?,
            None => writer.write_image_data(self.pixels.as_flattened())?,
        }
        writer.finish()?;
        Ok(bytes)
    }

    /// The colours of the image and the index of that of each pixel; `None` with more than 256 colours.
    fn indexed(&self) -> Option<(Vec<Rgb>, Vec<u8>)> {
        let (mut colours, mut known) = (Vec::new(), HashMap::new());
        let mut index = |colour: Rgb| -> Option<u8> {
            if let Some(index) = known.get(&colour) {
                return Some(*index);
            }
            let index = u8::try_from(colours.len()).ok()?;
            colours.push(colour);
            known.insert(colour, index);
            Some(index)
        };
        let pixels: Option<Vec<u8>> = self.pixels.iter().map(|&colour| index(colour)).collect();
        Some((colours, pixels?))
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

    /// The pixels of a file as red, green, blue and opacity.
    fn decoded(bytes: Vec<u8>) -> (Vec<[u8; 4]>, [u32; 2]) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let decoded = reader.next_frame(&mut pixels).unwrap();
        (
            pixels.chunks(4).map(|pixel| [pixel[0], pixel[1], pixel[2], pixel[3]]).collect(),
            [decoded.width, decoded.height],
        )
    }

    #[test]
    fn the_file_holds_every_pixel_with_few_colours_and_with_many() {
        for side in [6, 40] {
            let mut canvas = Canvas::new(side, side + 1, PAPER);
            let colour = |x: usize, y: usize| [x as u8, y as u8, 7];
            for (x, y) in (0..side).flat_map(|x| (0..side).map(move |y| (x, y))) {
                canvas.dot(x, y, colour(x, y));
            }
            assert_eq!(canvas.indexed().is_some(), side * side < 256, "{side} x {side} colours");
            for clear in [Some(PAPER), None] {
                let (pixels, size) = decoded(canvas.png(clear).unwrap());
                assert_eq!(size, [side as u32, side as u32 + 1]);
                for (at, pixel) in pixels.iter().enumerate() {
                    let (x, y) = (at % side, at / side);
                    let wanted = if y < side { colour(x, y) } else { PAPER };
                    let opacity = if y == side && clear.is_some() { 0 } else { 255 };
                    assert_eq!((pixel[..3].to_vec(), pixel[3]), (wanted.to_vec(), opacity), "pixel {x}, {y}");
                }
            }
        }
    }
}
