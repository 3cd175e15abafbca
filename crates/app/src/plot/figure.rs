//! A figure: rows of maps, each under its title and above its own colour bar or the one of its row.

use super::colour::{INK, PAPER};
use super::map::Map;
use super::sheet::{BAR_AND_NUMBERS, GAP, LINE, MARGIN, bar};
use super::{Canvas, font};

/// Whether one colour bar serves a whole row.
pub(crate) fn share_colours(row: &[Map]) -> bool {
    row.len() > 1 && row.iter().all(|map| map.scale == row[0].scale)
}

/// What is drawn.
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) rows: Vec<Vec<Map>>,
}

impl Figure {
    pub(crate) fn draw(&self) -> Canvas {
        let column = |map: &Map| map.size()[0].max(font::width(&map.title));
        let width = |row: &Vec<Map>| row.iter().map(|map| column(map) + GAP).sum::<usize>().saturating_sub(GAP);
        let height = |row: &Vec<Map>| row.iter().map(|map| map.size()[1]).max().unwrap_or(0) + ROW;
        const ROW: usize = LINE + GAP / 2 + BAR_AND_NUMBERS + GAP;
        let full = self.rows.iter().map(width).max().unwrap_or(0).max(font::width(&self.title));
        let rows: usize = self.rows.iter().map(height).sum();
        let mut canvas = Canvas::new(full + 2 * MARGIN, rows - GAP + LINE + GAP / 2 + 2 * MARGIN, PAPER);
        canvas.text([MARGIN, MARGIN], &self.title, INK);
        let mut top = MARGIN + LINE + GAP / 2;
        for row in &self.rows {
            let mut left = MARGIN;
            for map in row {
                canvas.text([left, top], &map.title, INK);
                map.draw(&mut canvas, [left, top + LINE]);
                if !map.scale.is_plain() && !share_colours(row) {
                    bar(&mut canvas, [left, top + LINE + map.size()[1] + GAP / 2], map.size()[0], &map.scale);
                }
                left += column(map) + GAP;
            }
            if share_colours(row) {
                let lowest = row.iter().map(|map| map.size()[1]).max().unwrap_or(0);
                bar(&mut canvas, [MARGIN, top + LINE + lowest + GAP / 2], left - GAP - MARGIN, &row[0].scale);
            }
            top += height(row);
        }
        canvas
    }
}
