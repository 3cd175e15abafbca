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
/// Pixels per unit of meshes and clouds.
const FINE: f64 = 4.0;

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct FieldPicture {
    pub(crate) title: String,
    pub(crate) layout: Layout,
    pub(crate) values: Vec<f32>,
    pub(crate) scale: Scale,
}

/// Fields below each other.
#[derive(Clone, Debug)]
pub(crate) struct FieldColumn {
    pub(crate) title: String,
    /// A column may lack a picture of the row.
    pub(crate) pictures: Vec<Option<FieldPicture>>,
}

/// Columns side by side; pictures of a row line up.
pub(crate) fn field_sheet(columns: &[FieldColumn]) -> Drawing {
    let rows = columns.iter().map(|column| column.pictures.len()).max().unwrap_or(0);
    let sizes: Vec<Vec<[f64; 2]>> = columns.iter().map(|column| column.sizes()).collect();
    let heights: Vec<f64> = (0..rows)
        .map(|row| sizes.iter().filter_map(|column| column.get(row)).map(|size| size[1]).fold(0.0, f64::max))
        .collect();
    let height: f64 = heights.iter().map(|height| height + TITLE + BAR + GAP).sum::<f64>() + 16.0;
    let mut drawing = Drawing::new(columns.len() as f64 * (COLUMN + GAP) + GAP, height);
    for (place, column) in columns.iter().enumerate() {
        let left = GAP + place as f64 * (COLUMN + GAP);
        drawing.heading([left, 11.0], column.title.clone(), WORDS + 1.0, Anchor::Start);
        let view = column.window();
        let mut top = 16.0;
        for (row, picture) in column.pictures.iter().enumerate() {
            if let Some(picture) = picture {
                picture.draw(&mut drawing, [left, top], sizes[place][row], view.as_ref());
            }
            top += heights[row] + TITLE + BAR + GAP;
        }
    }
    drawing
}

impl FieldColumn {
    /// The part of the domain that all pictures of the column show.
    fn window(&self) -> Option<Window> {
        let layouts = self.pictures.iter().flatten().map(|picture| &picture.layout);
        let layouts: Vec<&Layout> = layouts.filter(|layout| layout.positions().is_some()).collect();
        if layouts.is_empty() { None } else { window(&layouts) }
    }

    fn sizes(&self) -> Vec<[f64; 2]> {
        let window = self.window();
        let size = |picture: &Option<FieldPicture>| {
            let Some(picture) = picture else { return [COLUMN, 0.0] };
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
            Layout::Grid([rows, columns]) => [*columns, *rows],
            _ => [width, height].map(|side| (FINE * side) as usize),
        };
        let mut canvas = Canvas::new(size[0].max(1), size[1].max(1), PAPER);
        self.layout.draw(&mut canvas, Area { corner: [0, 0], size }, window, &self.values, &self.scale);
        drawing.image([left, top + TITLE], [width, height], canvas);
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
        drawing.image([left, y], [width, 4.0], bar);
        drawing.word([left, y + 12.0], number(self.scale.least), 7.0, Ink::Faint, Anchor::Start);
        drawing.word([left + width, y + 12.0], number(self.scale.most), 7.0, Ink::Faint, Anchor::End);
    }
}
