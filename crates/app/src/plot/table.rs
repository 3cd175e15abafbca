//! A table for print: our value above the published one in each cell, shaded cells, headings of groups.

use super::drawing::{Anchor, Drawing, Ink};

const WORDS: f64 = 8.0;
/// Units per letter, and the height of a line.
const LETTER: f64 = 4.7;
const LINE: f64 = 10.5;
const GAP: f64 = 10.0;

/// One cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableCell {
    pub(crate) ours: String,
    pub(crate) published: String,
    /// A colour behind the cell, and its opacity.
    pub(crate) shade: Option<(Ink, f64)>,
}

/// One row; a heading stands above it where it begins a group.
#[derive(Clone, Debug)]
pub(crate) struct TableRow {
    pub(crate) heading: Option<String>,
    pub(crate) label: String,
    pub(crate) cells: Vec<TableCell>,
}

/// The table with its columns.
pub(crate) fn table(corner: &str, columns: &[String], rows: &[TableRow]) -> Drawing {
    let long = |text: &str| LETTER * text.chars().count() as f64;
    let first = rows.iter().map(|row| long(&row.label)).fold(long(corner), f64::max) + GAP;
    let widths: Vec<f64> = columns
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let cells = rows.iter().filter_map(|row| row.cells.get(place));
            cells.map(|cell| long(&cell.ours).max(long(&cell.published))).fold(long(name), f64::max) + GAP
        })
        .collect();
    let height = |row: &TableRow| 2.0 * LINE + 3.0 + if row.heading.is_some() { LINE + 3.0 } else { 0.0 };
    let whole = first + widths.iter().sum::<f64>();
    let mut drawing = Drawing::new(whole, 18.0 + rows.iter().map(height).sum::<f64>() + 4.0);
    drawing.word([2.0, 11.0], corner, WORDS, Ink::Faint, Anchor::Start);
    let mut right = first;
    for (name, width) in columns.iter().zip(&widths) {
        right += width;
        drawing.heading([right - 4.0, 11.0], name.clone(), WORDS, Anchor::End);
    }
    drawing.line(vec![[0.0, 16.0], [whole, 16.0]], Ink::Text, 0.8, false);
    let mut top = 17.0;
    for row in rows {
        if let Some(heading) = &row.heading {
            drawing.word([2.0, top + LINE - 1.0], heading.clone(), WORDS, Ink::Faint, Anchor::Start);
            drawing.line(vec![[0.0, top], [whole, top]], Ink::Grid, 0.6, false);
            top += LINE + 3.0;
        }
        drawing.word([2.0, top + LINE], row.label.clone(), WORDS, Ink::Text, Anchor::Start);
        let mut right = first;
        for (cell, width) in row.cells.iter().zip(&widths) {
            right += width;
            if let Some((ink, opacity)) = cell.shade {
                drawing.rectangle([right - width + 2.0, top + 1.0], [width - 3.0, LINE + 1.5], ink, opacity);
            }
            drawing.heading([right - 4.0, top + LINE], cell.ours.clone(), WORDS, Anchor::End);
            let below = [right - 4.0, top + 2.0 * LINE];
            drawing.word(below, cell.published.clone(), WORDS, Ink::Published, Anchor::End);
        }
        top += 2.0 * LINE + 3.0;
    }
    drawing.line(vec![[0.0, top + 1.0], [whole, top + 1.0]], Ink::Text, 0.8, false);
    drawing
}
