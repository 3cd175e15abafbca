//! A drawing as pixels: polygons by scan lines on a finer lattice, whose mean gives smooth edges; words by the bitmap font.

use super::drawing::{Anchor, Drawing, Ink, Item};
use super::{Canvas, font};
use anyhow::Result;

/// Pixels per unit of the drawing: a word of 8 units has the 16 pixels of the font.
pub(super) const PIXELS: f64 = 2.0;
/// Samples per pixel along each axis.
const SAMPLES: usize = 3;
/// Lengths of a dash and of the gap after it, as in the SVG.
const DASH: [f64; 2] = [3.0, 2.0];

impl Drawing {
    /// The bytes of a PNG file, twice as many pixels as units.
    pub(crate) fn png(&self, dark: bool) -> Result<Vec<u8>> {
        let [width, height] = [self.width, self.height].map(|side| (side * PIXELS).ceil() as usize);
        let mut canvas = Canvas::new(width, height, Ink::Paper.colour(dark));
        for item in &self.items {
            match item {
                Item::Polygon { corners, fill, opacity } => fill_polygon(&mut canvas, corners, *fill, *opacity, dark),
                Item::Line { points, ink, width, dashed } => {
                    for [from, to] in strokes(points, *dashed) {
                        fill_polygon(&mut canvas, &bar(from, to, *width), *ink, 1.0, dark);
                    }
                }
                Item::Image { at, size, picture } => canvas.paste(at.map(pixel), size.map(pixel), picture),
                Item::Word { at, text, ink, anchor, .. } => write_word(&mut canvas, *at, text, *ink, *anchor, dark),
            }
        }
        canvas.png(None)
    }
}

fn pixel(unit: f64) -> usize {
    (unit * PIXELS).round().max(0.0) as usize
}

/// The straight pieces of a line, cut into dashes.
fn strokes(points: &[[f64; 2]], dashed: bool) -> Vec<[[f64; 2]; 2]> {
    let pieces = points.windows(2).map(|pair| [pair[0], pair[1]]);
    if !dashed {
        return pieces.collect();
    }
    let (mut dashes, mut position, period) = (Vec::new(), 0.0, DASH[0] + DASH[1]);
    for [from, to] in pieces {
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let at = |place: f64| [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * place / length);
        let mut start = 0.0;
        while start < length {
            let phase = (position + start) % period;
            let (drawn, rest) = if phase < DASH[0] { (true, DASH[0] - phase) } else { (false, period - phase) };
            let end = (start + rest.max(1e-6)).min(length);
            if drawn {
                dashes.push([at(start), at(end)]);
            }
            start = end;
        }
        position += length;
    }
    dashes
}

/// The corners of a straight line of some width.
fn bar(from: [f64; 2], to: [f64; 2], width: f64) -> Vec<[f64; 2]> {
    let [along, down] = [to[0] - from[0], to[1] - from[1]];
    let length = along.hypot(down).max(1e-9);
    let [x, y] = [-down / length * width / 2.0, along / length * width / 2.0];
    vec![[from[0] + x, from[1] + y], [to[0] + x, to[1] + y], [to[0] - x, to[1] - y], [from[0] - x, from[1] - y]]
}

/// Fills a polygon by the even-odd rule.
fn fill_polygon(canvas: &mut Canvas, corners: &[[f64; 2]], fill: Ink, opacity: f64, dark: bool) {
    let corners: Vec<[f64; 2]> = corners.iter().map(|corner| corner.map(|side| side * PIXELS)).collect();
    let ends = |axis: usize| {
        let sides = corners.iter().map(|corner| corner[axis]);
        sides.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], side| [least.min(side), most.max(side)])
    };
    let ([left, right], [top, bottom]) = (ends(0), ends(1));
    if !(left.is_finite() && right.is_finite() && top.is_finite() && bottom.is_finite()) {
        return;
    }
    let (first, last) = (left.floor().max(0.0) as usize, right.ceil().max(0.0) as usize);
    for row in top.floor().max(0.0) as usize..bottom.ceil().max(0.0) as usize {
        let mut coverage = vec![0usize; last.saturating_sub(first)];
        for line in 0..SAMPLES {
            let y = row as f64 + (line as f64 + 0.5) / SAMPLES as f64;
            let crossings = crossings(&corners, y);
            for pair in crossings.chunks_exact(2) {
                for (place, count) in coverage.iter_mut().enumerate() {
                    let sample = |k: usize| (first + place) as f64 + (k as f64 + 0.5) / SAMPLES as f64;
                    *count += (0..SAMPLES).filter(|&k| (pair[0]..pair[1]).contains(&sample(k))).count();
                }
            }
        }
        for (place, count) in coverage.iter().enumerate().filter(|(_, count)| **count > 0) {
            let share = *count as f64 / (SAMPLES * SAMPLES) as f64;
            canvas.tint(first + place, row, fill.colour(dark), (255.0 * share * opacity).round() as u8);
        }
    }
}

/// Where the edges of a polygon cross a horizontal line, from left to right.
fn crossings(corners: &[[f64; 2]], y: f64) -> Vec<f64> {
    let next = corners.iter().cycle().skip(1);
    let mut found: Vec<f64> = corners
        .iter()
        .zip(next)
        .filter(|(from, to)| (from[1] <= y) != (to[1] <= y))
        .map(|(from, to)| from[0] + (y - from[1]) / (to[1] - from[1]) * (to[0] - from[0]))
        .collect();
    found.sort_by(f64::total_cmp);
    found
}

/// Writes a word with its baseline at a point. The font lacks some letters; others stand for them.
fn write_word(canvas: &mut Canvas, [x, y]: [f64; 2], text: &str, ink: Ink, anchor: Anchor, dark: bool) {
    let plain = |letter: char| match letter {
        '–' | '−' | '⁻' => '-',
        '√' => 'V',
        '⁰' => '0',
        '⁴' => '4',
        '⁵' => '5',
        '⁶' => '6',
        letter => letter,
    };
    let text: String = text.chars().map(plain).collect();
    let width = font::width(&text) as f64;
    let left = x * PIXELS - width * [0.0, 0.5, 1.0][anchor as usize];
    let top = y * PIXELS - 0.78 * font::HEIGHT as f64; // the height of a letter above its baseline
    canvas.text([left, top].map(|side| side.round().max(0.0) as usize), &text, ink.colour(dark));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_of_whole_pixels_is_filled_to_its_edges_and_half_pixels_are_mixed() {
        let mut canvas = Canvas::new(8, 8, [255; 3]);
        let corners = [[1.0, 1.0], [2.25, 1.0], [2.25, 2.0], [1.0, 2.0]]; // 2 to 4.5 pixels across
        fill_polygon(&mut canvas, &corners, Ink::Text, 1.0, false);
        let ink = Ink::Text.colour(false);
        assert_eq!(
            [canvas.at(1, 2), canvas.at(2, 2), canvas.at(3, 3), canvas.at(5, 2)],
            [[255; 3], ink, ink, [255; 3]]
        );
        let [red, ..] = canvas.at(4, 2);
        assert!((100..=200).contains(&red), "half of the pixel is covered: {red}");
    }

    #[test]
    fn dashes_cover_three_fifths_of_a_line() {
        let drawn: f64 = strokes(&[[0.0, 0.0], [50.0, 0.0]], true).iter().map(|[from, to]| to[0] - from[0]).sum();
        assert!((drawn - 30.0).abs() < 1e-3, "{drawn}");
    }
}
