//! A sheet of maps: a row per sample, a column per field or frame, one colour bar per field.

use super::colour::{FAINT, INK, PAPER, Scale};
use super::map::Place;
use super::mesh::{Area, Window};
use super::{Canvas, font};

pub(super) const MARGIN: usize = 24;
pub(super) const GAP: usize = 16;
const BAR: usize = 12;
/// From one line of words to the next.
pub(super) const LINE: usize = font::HEIGHT + 6;
/// Rows of pixels of a colour bar with its numbers.
pub(super) const BAR_AND_NUMBERS: usize = BAR + LINE;

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
    /// Where the map in this row of the sheet lies.
    fn place(&self, row: usize) -> Place {
        match (&self.positions, self.plane) {
            (None, plane) => Place::Grid(plane),
            (Some(positions), [_, 1]) => Place::Cloud(positions[row].clone()),
            (Some(positions), plane) => Place::Mesh(plane, positions[row].clone()),
        }
    }

    /// `[width, height]` in pixels of each map.
    fn size(&self) -> [usize; 2] {
        self.place(0).size(self.window().as_ref())
    }

    /// The part of the domain that all maps of the column show.
    fn window(&self) -> Option<Window> {
        self.positions.as_deref().map(Window::around)
    }

    fn width(&self) -> usize {
        self.size()[0].max(font::width(&self.title))
    }
}

impl Sheet {
    pub(crate) fn draw(&self) -> Canvas {
        let labels = self.rows.iter().map(|label| font::width(label)).max().unwrap_or(0);
        let row_height = self.columns.iter().map(|column| column.size()[1]).max().unwrap_or(0) + GAP;
        let (left, top) = (MARGIN + labels + GAP, MARGIN + 2 * LINE + GAP);
        let bottom = top + self.rows.len() * row_height;
        let columns: usize = self.columns.iter().map(|column| column.width() + GAP).sum();
        let full = (left + columns - GAP).max(MARGIN + font::width(&self.title)) + MARGIN;
        let mut canvas = Canvas::new(full, bottom + BAR_AND_NUMBERS + MARGIN, PAPER);
        canvas.text([MARGIN, MARGIN], &self.title, INK);
        for (row, label) in self.rows.iter().enumerate() {
            let middle = top + row * row_height + (row_height - GAP) / 2 - font::HEIGHT / 2;
            canvas.text([MARGIN, middle], label, FAINT);
        }
        let mut x = left;
        for group in self.columns.chunk_by(|first, second| first.field == second.field) {
            let values = group.iter().flat_map(|column| column.cells.iter().flatten().copied());
            let (scale, start) = (Scale::of(values), x);
            for column in group {
                canvas.text([x, top - LINE], &column.title, INK);
                let (window, size) = (column.window(), column.size());
                for (row, values) in column.cells.iter().enumerate() {
                    let area = Area { corner: [x, top + row * row_height], size };
                    column.place(row).draw(&mut canvas, area, window.as_ref(), values, &scale);
                }
                x += column.width() + GAP;
            }
            bar(&mut canvas, [start, bottom], x - GAP - start, &scale);
        }
        canvas
    }
}

/// The colours of a field with the numbers at their ends.
pub(super) fn bar(canvas: &mut Canvas, [left, top]: [usize; 2], length: usize, scale: &Scale) {
    let extent = scale.most - scale.least;
    for x in 0..length {
        let value = scale.least + extent * x as f32 / (length - 1).max(1) as f32;
        canvas.fill([left + x, top], [1, BAR], scale.colour(value));
    }
    let (least, most) = (number(scale.least), number(scale.most));
    let line = top + BAR + 4;
    canvas.text([left, line], &least, FAINT);
    if least != most {
        canvas.text([(left + length).saturating_sub(font::width(&most)), line], &most, FAINT);
    }
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
}
