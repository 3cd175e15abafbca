//! A figure: rows of maps, each under its title and above its own colour bar or the one of its row.

use super::colour::{FAINT, INK, PAPER};
use super::map::{Map, ends};
use super::number::number;
use super::sheet::{BAR_AND_NUMBERS, GAP, LINE, MARGIN, bar};
use super::{Canvas, font};

/// Whether one colour bar serves a whole row.
pub(crate) fn share_colours(row: &[Map]) -> bool {
    row.len() > 1 && row.iter().all(|map| map.has_bar() && map.scale == row[0].scale)
}

/// What is drawn.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// What holds for all maps, below the title.
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<Vec<Map>>,
}

impl Figure {
    pub(crate) fn draw(&self) -> Canvas {
        let width = |row: &Vec<Map>| row.iter().map(|map| column(map) + GAP).sum::<usize>().saturating_sub(GAP);
        let words = self.notes.iter().chain([&self.title]).map(|words| font::width(words));
        let full = self.rows.iter().map(width).chain(words).max().unwrap_or(0);
        let rows: usize = self.rows.iter().map(|row| height(row)).sum();
        let head = (1 + self.notes.len()) * LINE + GAP / 2;
        let mut canvas = Canvas::new(full + 2 * MARGIN, rows - GAP + head + 2 * MARGIN, PAPER);
        canvas.text([MARGIN, MARGIN], &self.title, INK);
        for (line, note) in self.notes.iter().enumerate() {
            canvas.text([MARGIN, MARGIN + (line + 1) * LINE], note, FAINT);
        }
        let mut top = MARGIN + head;
        for row in &self.rows {
            draw_row(&mut canvas, top, row);
            top += height(row);
        }
        canvas
    }
}

/// Pixels of the highest map of a row.
fn lowest(row: &[Map]) -> usize {
    row.iter().map(|map| map.size()[1]).max().unwrap_or(0)
}

/// Pixels from the titles of a row to those of the next.
fn height(row: &[Map]) -> usize {
    let bars = if row.iter().any(Map::has_bar) { GAP / 2 + BAR_AND_NUMBERS } else { 0 };
    LINE + lowest(row) + bars + GAP
}

/// Pixels across of a map with its words.
fn column(map: &Map) -> usize {
    let numbers = if map.has_bar() { font::width(&ends(std::slice::from_ref(map), number).join("  ")) } else { 0 };
    map.size()[0].max(font::width(&map.title)).max(numbers)
}

fn draw_row(canvas: &mut Canvas, top: usize, row: &[Map]) {
    let (shared, mut left) = (share_colours(row), MARGIN);
    for map in row {
        let ([width, height], words) = (map.size(), std::slice::from_ref(map));
        canvas.text([left, top], &map.title, INK);
        map.draw(canvas, [left, top + LINE]);
        if map.has_bar() && !shared {
            let length = width.max(font::width(&ends(words, number).join("  ")));
            bar(canvas, [left, top + LINE + height + GAP / 2], length, &map.scale, ends(words, number));
        }
        left += column(map) + GAP;
    }
    if shared {
        let corner = [MARGIN, top + LINE + lowest(row) + GAP / 2];
        bar(canvas, corner, left - GAP - MARGIN, &row[0].scale, ends(row, number));
    }
}
