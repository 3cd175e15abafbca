//! Fields of one sample in columns, as a paper prints them: each picture with its title, and a colour bar for each scale.

use super::drawing::{Anchor, Drawing, Ink};
use super::map::{Layout, window};
use super::mesh::{Area, Window};
use super::number::number;
use super::{Canvas, PAPER, Scale};

const WORDS: f64 = 8.0;
/// Width of a column, and the tallest picture.
const COLUMN: f64 = 118.0;
const TALLEST: f64 = 118.0;
const GAP: f64 = 10.0;
const TITLE: f64 = 13.0;
const BAR: f64 = 20.0;
/// The narrowest colour bar.
const LEAST_BAR: f64 = 64.0;
/// Pixels per unit of meshes and clouds.
const FINE: f64 = 4.0;

/// Pixels along the longer side of a field on a lattice, at least.
const FINEST: usize = 256;

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct FieldPicture {
    pub(crate) title: String,
    pub(crate) layout: Layout,
    pub(crate) values: Vec<f32>,
    pub(crate) scale: Scale,
    /// A point with a ring around it.
    pub(crate) mark: Option<usize>,
}

/// Fields below each other.
#[derive(Clone, Debug)]
pub(crate) struct FieldColumn {
    pub(crate) title: String,
    pub(crate) pictures: Vec<FieldPicture>,
}

/// Columns side by side, `across` of them at most before the next block begins; pictures of a row line up. The sheet has room
/// for `across` columns always, so that pictures have the same size on all sheets.
pub(crate) fn field_sheet(columns: &[FieldColumn], across: usize) -> Drawing {
    let blocks: Vec<Drawing> = columns.chunks(across.max(1)).map(block).collect();
    let mut drawing = Drawing::new(width(across), blocks.iter().map(|block| block.height).sum());
    let mut top = 0.0;
    for block in blocks {
        let height = block.height;
        drawing.place([0.0, top], block);
        top += height;
    }
    drawing
}

fn width(columns: usize) -> f64 {
    columns as f64 * (COLUMN + GAP) + GAP
}

fn block(columns: &[FieldColumn]) -> Drawing {
    let rows = columns.iter().map(|column| column.pictures.len()).max().unwrap_or(0);
    let sizes: Vec<Vec<[f64; 2]>> = columns.iter().map(FieldColumn::sizes).collect();
    let tallest =
        |row: usize| sizes.iter().filter_map(|column| column.get(row)).map(|size| size[1]).fold(0.0, f64::max);
    let heights: Vec<f64> = (0..rows).map(|row| tallest(row) + TITLE + BAR + GAP).collect();
    let mut drawing = Drawing::new(width(columns.len()), heights.iter().sum::<f64>() + 18.0);
    for (place, column) in columns.iter().enumerate() {
        let left = GAP + place as f64 * (COLUMN + GAP);
        drawing.heading([left, 11.0], column.title.clone(), WORDS + 1.0, Anchor::Start);
        let (view, mut top) = (column.window(), 16.0);
        for ((picture, size), height) in column.pictures.iter().zip(&sizes[place]).zip(&heights) {
            picture.draw(&mut drawing, [left, top], *size, view.as_ref());
            top += height;
        }
    }
    drawing
}

impl FieldColumn {
    /// The part of the domain that all pictures of the column show.
    fn window(&self) -> Option<Window> {
        let layouts = self.pictures.iter().map(|picture| &picture.layout);
        let layouts: Vec<&Layout> = layouts.filter(|layout| layout.positions().is_some()).collect();
        if layouts.is_empty() { None } else { window(&layouts) }
    }

    fn sizes(&self) -> Vec<[f64; 2]> {
        let window = self.window();
        let size = |picture: &FieldPicture| {
            let [width, height] = picture.layout.size(window.as_ref()).map(|side| side as f64);
            let factor = (COLUMN / width).min(TALLEST / height);
            [width * factor, height * factor]
        };
        self.pictures.iter().map(size).collect()
    }
}

impl FieldPicture {
    fn draw(&self, drawing: &mut Drawing, [left, top]: [f64; 2], [width, height]: [f64; 2], window: Option<&Window>) {
        drawing.word([left, top + 9.0], self.title.clone(), WORDS, Ink::Text, Anchor::Start);
        let size = match &self.layout {
            // Whole pixels per point, so that no viewer blurs a coarse field.
            Layout::Grid([rows, columns]) => {
                let pixels = FINEST.div_ceil(*rows.max(columns)).max(1);
                [columns * pixels, rows * pixels]
            }
            _ => [width, height].map(|side| (FINE * side) as usize),
        };
        let mut canvas = Canvas::new(size[0].max(1), size[1].max(1), PAPER);
        self.layout.draw(&mut canvas, Area { corner: [0, 0], size }, window, &self.values, &self.scale);
        drawing.image([left, top + TITLE], [width, height], canvas);
        if let Some([x, y]) = self.mark.and_then(|point| self.layout.place(point, window, [width, height])) {
            drawing.ring([left + x, top + TITLE + y], 4.0, Ink::Paper, 2.6);
            drawing.ring([left + x, top + TITLE + y], 4.0, Ink::Orange, 1.4);
        }
        if self.scale.is_plain() {
            return;
        }
        let y = top + TITLE + height + 4.0;
        let steps = 64;
        let mut bar = Canvas::new(steps, 1, PAPER);
        for step in 0..steps {
            let share = step as f32 / (steps - 1) as f32;
            bar.dot(step, 0, self.scale.colour(self.scale.least + share * (self.scale.most - self.scale.least)));
        }
        let width = width.max(LEAST_BAR); // room for both numbers
        drawing.image([left, y], [width, 4.0], bar);
        drawing.word([left, y + 12.0], number(self.scale.least), 7.0, Ink::Faint, Anchor::Start);
        drawing.word([left + width, y + 12.0], number(self.scale.most), 7.0, Ink::Faint, Anchor::End);
    }
}
