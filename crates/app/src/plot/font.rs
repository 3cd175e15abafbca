//! The font of the pictures: Noto Sans Mono as bitmaps.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// Pixels from one letter to the next.
pub(crate) const ADVANCE: usize = get_raster_width(FontWeight::Regular, SIZE);
/// Pixels of the height of a letter, descenders included.
pub(crate) const HEIGHT: usize = SIZE.val();
const SIZE: RasterHeight = RasterHeight::Size16;
/// Drawn instead of a letter that the font lacks.
const UNKNOWN: char = '?';

/// `([column, row], ink)` of the pixels of a letter; ink runs from 1 to 255.
pub(crate) fn dots(letter: char) -> impl Iterator<Item = ([usize; 2], u8)> {
    let picture = |letter| get_raster(letter, FontWeight::Regular, SIZE);
    let rows = picture(letter).or_else(|| picture(UNKNOWN)).into_iter().flat_map(|picture| picture.rows().enumerate());
    rows.flat_map(|(row, dots)| dots.iter().enumerate().map(move |(column, &ink)| ([column, row], ink)))
        .filter(|(_, ink)| *ink > 0)
}

/// Width of a text in pixels.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count() * ADVANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_letters_differ_from_each_other_and_fit() {
        let letters: Vec<Vec<_>> = (' '..='~').chain("·×é°".chars()).map(|letter| dots(letter).collect()).collect();
        for (index, letter) in letters.iter().enumerate() {
            assert!(letter.iter().all(|([column, row], _)| *column < ADVANCE && *row < HEIGHT), "{index}");
            assert!(!letters[..index].contains(letter), "{index}");
        }
        assert!(letters[0].is_empty(), "a space is empty");
        assert!(dots('🦀').eq(dots(UNKNOWN)));
    }
}
