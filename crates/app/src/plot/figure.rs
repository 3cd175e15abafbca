//! A figure: rows of maps with titles. Each map has a colour bar, or its whole row shares one.

use super::colour::{FAINT, INK, PAPER};
use super::map::{Map, ends};
use super::number::number;
use super::sheet::{BAR_AND_NUMBERS, GAP, LINE, MARGIN, bar};
use super::{Canvas, font};

/// Whether the maps of a row share one colour bar.
pub(crate) fn share_colours(row: &[Map]) -> bool {
    row.len() > 1 && row.iter().all(|map| map.has_bar() && map.scale == row[0].scale)
}

/// Rows of maps.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Lines below the title that apply to all maps.
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<Vec<Map>>,
}

impl Figure {
    pub(crate) fn draw(&self) -> Canvas {
        let width =
            |row: &Vec<Map>| self.columns(row).iter().map(|column| column + GAP).sum::<usize>().saturating_sub(GAP);
        let lines = self.notes.iter().chain([&self.title]).map(|line| font::width(line));
        let full = self.rows.iter().map(width).chain(lines).max().unwrap_or(0);
        let rows: usize = self.rows.iter().map(|row| height(row)).sum();
        let head = (1 + self.notes.len()) * LINE + GAP / 2;
        let mut canvas = Canvas::new(full + 2 * MARGIN, rows - GAP + head + 2 * MARGIN, PAPER);
        canvas.text([MARGIN, MARGIN], &self.title, INK);
        for (line, note) in self.notes.iter().enumerate() {
            canvas.text([MARGIN, MARGIN + (line + 1) * LINE], note, FAINT);
        }
        let mut top = MARGIN + head;
        for row in &self.rows {
            draw_row(&mut canvas, top, row, &self.columns(row));
            top += height(row);
        }
        canvas
    }

    /// Widths in pixels of the columns of a row. Rows with the same number of maps have the same columns, so that snapshots
    /// line up.
    fn columns(&self, row: &[Map]) -> Vec<usize> {
        let alike = || self.rows.iter().filter(|other| other.len() == row.len());
        let column = |index: usize| alike().map(|other| column(&other[index])).max().unwrap_or(0);
        (0..row.len()).map(column).collect()
    }
}

/// Height in pixels of the tallest map of a row.
fn tallest(row: &[Map]) -> usize {
    row.iter().map(|map| map.size()[1]).max().unwrap_or(0)
}

/// Pixels from the titles of a row to the titles of the next row.
fn height(row: &[Map]) -> usize {
    let bars = if row.iter().any(Map::has_bar) { GAP / 2 + BAR_AND_NUMBERS } else { 0 };
    LINE + tallest(row) + bars + GAP
}

/// Width in pixels of a map with its title and numbers.
fn column(map: &Map) -> usize {
    let numbers = if map.has_bar() { font::width(&ends(std::slice::from_ref(map), number).join("  ")) } else { 0 };
    map.size()[0].max(font::width(&map.title)).max(numbers)
}

fn draw_row(canvas: &mut Canvas, top: usize, row: &[Map], columns: &[usize]) {
    let (shared, mut left) = (share_colours(row), MARGIN);
    for (map, column) in row.iter().zip(columns) {
        let ([width, height], alone) = (map.size(), std::slice::from_ref(map));
        canvas.text([left, top], &map.title, INK);
        map.draw(canvas, [left, top + LINE]);
        if map.has_bar() && !shared {
            let length = width.max(font::width(&ends(alone, number).join("  ")));
            bar(canvas, [left, top + LINE + height + GAP / 2], length, &map.scale, ends(alone, number));
        }
        left += column + GAP;
    }
    if shared {
        let corner = [MARGIN, top + LINE + tallest(row) + GAP / 2];
        bar(canvas, corner, left - GAP - MARGIN, &row[0].scale, ends(row, number));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Scale};
    use super::*;

    #[test]
    fn rows_with_the_same_number_of_maps_have_the_same_columns() {
        let map = |title: &str| {
            let (layout, scale) = (Layout::Grid([2, 2]), Scale::plain());
            Map { title: title.into(), layout, window: None, values: vec![0.0; 4], over: None, scale, source: None }
        };
        let long = "a title that is wider than the map";
        let rows = vec![vec![map("alone")], vec![map("a"), map("b")], vec![map("a"), map(long)]];
        let figure = Figure { title: String::new(), notes: Vec::new(), rows };
        let columns: Vec<_> = figure.rows.iter().map(|row| figure.columns(row)).collect();
        let width = figure.rows[0][0].size()[0];
        assert_eq!(columns, [vec![width], vec![width, font::width(long)], vec![width, font::width(long)]]);
    }
}
