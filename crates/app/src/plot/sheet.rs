//! A sheet of heat maps: a row per sample, a column per field or frame, one colour bar per field.
//!
//! In each map x runs to the right and y upwards, as in the equations; a field on a line is drawn as a curve, one with
//! positions on its own mesh or cloud.

use super::colour::{FAINT, INK, PAPER, Scale};
use super::mesh::{Area, Window, draw_cloud, draw_mesh};
use super::{Canvas, font};

/// Pixels of the longer side of a map, about: points of coarse fields become squares of whole pixels.
const MAP: usize = 220;
const FINEST: usize = 256;
const MARGIN: usize = 24;
const GAP: usize = 14;
const BAR: usize = 12;
/// Dots of a letter are squares of so many pixels.
const TYPE: usize = 2;
const LINE: usize = (font::HEIGHT + 2) * TYPE + 6;

/// What is drawn.
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// Label of each row.
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<Column>,
}

/// One field, or one frame of it.
pub(crate) struct Column {
    pub(crate) title: String,
    /// Columns of the same field share their colours and their bar, and stand side by side.
    pub(crate) field: String,
    /// `[rows, columns]` of each map
    pub(crate) plane: [usize; 2],
    /// A map per row of the sheet.
    pub(crate) cells: Vec<Vec<f32>>,
    /// Where the points of each map lie, if not on a grid of squares.
    pub(crate) positions: Option<Vec<Vec<[f32; 2]>>>,
}

impl Column {
    /// `[width, height]` in pixels: rows run along x.
    fn size(&self) -> [usize; 2] {
        if let Some(window) = self.window() {
            return window.size(MAP);
        }
        match self.plane {
            [_, 1] => [MAP, MAP / 2],
            [rows, columns] => {
                let longest = rows.max(columns);
                let map = if longest <= FINEST { longest * MAP.div_ceil(longest) } else { MAP };
                let side = |points: usize| (points * map / longest).max(MAP / 8);
                [side(rows), side(columns)]
            }
        }
    }

    /// The part of the domain that all maps of the column show.
    fn window(&self) -> Option<Window> {
        self.positions.as_deref().map(Window::around)
    }

    fn width(&self) -> usize {
        self.size()[0].max(width(&self.title))
    }
}

impl Sheet {
    pub(crate) fn draw(&self) -> Canvas {
        let labels = self.rows.iter().map(|label| width(label)).max().unwrap_or(0);
        let row_height = self.columns.iter().map(|column| column.size()[1]).max().unwrap_or(0) + GAP;
        let (left, top) = (MARGIN + labels + GAP, MARGIN + 2 * LINE + GAP);
        let bottom = top + self.rows.len() * row_height;
        let columns: usize = self.columns.iter().map(|column| column.width() + GAP).sum();
        let full = (left + columns - GAP).max(MARGIN + width(&self.title)) + MARGIN;
        let mut canvas = Canvas::new(full, bottom + BAR + GAP / 2 + LINE + MARGIN, PAPER);
        canvas.text([MARGIN, MARGIN], &self.title, TYPE, INK);
        for (row, label) in self.rows.iter().enumerate() {
            let middle = top + row * row_height + (row_height - GAP) / 2 - font::HEIGHT * TYPE / 2;
            canvas.text([MARGIN, middle], label, TYPE, FAINT);
        }
        let mut x = left;
        for group in self.columns.chunk_by(|first, second| first.field == second.field) {
            let scale = Scale::of(group.iter().flat_map(|column| column.cells.iter().flatten().copied()));
            let start = x;
            for column in group {
                canvas.text([x, top - LINE], &column.title, TYPE, INK);
                for row in 0..column.cells.len() {
                    map(&mut canvas, [x, top + row * row_height], column, row, &scale);
                }
                x += column.width() + GAP;
            }
            bar(&mut canvas, [start, bottom], x - GAP - start, &scale);
        }
        canvas
    }
}

/// One field of one sample.
fn map(canvas: &mut Canvas, [left, top]: [usize; 2], column: &Column, row: usize, scale: &Scale) {
    let (values, [rows, columns], [width, height]) = (&column.cells[row], column.plane, column.size());
    if let (Some(positions), Some(window)) = (&column.positions, column.window()) {
        let area = Area { corner: [left, top], size: [width, height] };
        return match columns {
            1 => draw_cloud(canvas, area, &window, &positions[row], values, scale),
            _ => draw_mesh(canvas, area, &window, column.plane, &positions[row], values, scale),
        };
    }
    if columns == 1 {
        return curve(canvas, [left, top], [width, height], values, scale);
    }
    for y in 0..height {
        for x in 0..width {
            let (across, up) = (cells(x, width, rows), cells(height - 1 - y, height, columns));
            let count = (across.len() * up.len()) as f32;
            let sum: f32 = across.flat_map(|row| up.clone().map(move |column| values[row * columns + column])).sum();
            canvas.dot(left + x, top + y, scale.colour(sum / count));
        }
    }
}

/// The points that share a pixel: several where the field is finer than the map, else the one it lies in.
fn cells(pixel: usize, pixels: usize, points: usize) -> std::ops::Range<usize> {
    let first = pixel * points / pixels;
    first..((pixel + 1) * points / pixels).clamp(first + 1, points.max(first + 1))
}

fn curve(canvas: &mut Canvas, [left, top]: [usize; 2], [width, height]: [usize; 2], values: &[f32], scale: &Scale) {
    canvas.fill([left, top], [width, height], [244, 245, 247]);
    let extent = (scale.most - scale.least).max(f32::MIN_POSITIVE);
    let level = |value: f32| ((height - 3) as f32 * (1.0 - (value - scale.least) / extent)) as usize;
    let mut before = None;
    for x in 0..width {
        let value = values[x * values.len() / width];
        if !value.is_finite() {
            before = None;
            continue;
        }
        let (now, last) = (level(value), before.unwrap_or(level(value)));
        canvas.fill([left + x, top + now.min(last)], [1, now.abs_diff(last) + 2], scale.colour(value));
        before = Some(now);
    }
}

/// The colours of a field with the numbers at their ends.
fn bar(canvas: &mut Canvas, [left, top]: [usize; 2], length: usize, scale: &Scale) {
    let extent = scale.most - scale.least;
    for x in 0..length {
        let value = scale.least + extent * x as f32 / (length - 1).max(1) as f32;
        canvas.fill([left + x, top], [1, BAR], scale.colour(value));
    }
    let (least, most) = (number(scale.least), number(scale.most));
    let line = top + BAR + GAP / 2;
    canvas.text([left, line], &least, TYPE, INK);
    if least != most {
        canvas.text([(left + length).saturating_sub(width(&most)), line], &most, TYPE, INK);
    }
}

/// Pixels a text takes.
fn width(text: &str) -> usize {
    (text.chars().count() * font::ADVANCE * TYPE).saturating_sub(TYPE)
}

/// Three digits that count, with an exponent where the point would be far from them.
fn number(value: f32) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e4).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_true_to_three_digits() {
        let written: Vec<_> = [0.0, 12.0, -3.216, 0.012345, 1234.0, 1.5e-7, 9.999].map(number).into();
        assert_eq!(written, ["0", "12", "-3.22", "0.0123", "1234", "1.50e-7", "10"]);
    }

    #[test]
    fn every_point_reaches_the_map_and_none_lies_outside() {
        for (pixels, points) in [(220, 421), (220, 85), (220, 220), (27, 31), (5, 1)] {
            let mut seen = vec![false; points];
            (0..pixels).flat_map(|pixel| cells(pixel, pixels, points)).for_each(|point| seen[point] = true);
            assert!(seen.iter().all(|&seen| seen), "{points} points on {pixels} pixels");
        }
    }
}
