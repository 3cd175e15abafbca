//! Matrices of tokens in rows, as a paper prints them: row 0 on top, one colour scale for each row of pictures.

use super::drawing::{Anchor, Drawing, Ink};
use super::number::number;
use super::{Canvas, PAPER, Scale};

/// Width of a sheet.
const WIDTH: f64 = 488.0;
const MARGIN: f64 = 6.0;
const GAP: f64 = 4.0;
const WORDS: f64 = 8.0;
const HEAD: f64 = 14.0;
const TITLE: f64 = 10.0;
const BAR: f64 = 22.0;
/// Pixels along a side, at least.
const FINEST: usize = 192;

/// One matrix.
#[derive(Clone, Debug)]
pub(crate) struct MatrixPicture {
    pub(crate) title: String,
    /// Rows and columns.
    pub(crate) side: usize,
    pub(crate) values: Vec<f32>,
}

/// Matrices with one scale.
#[derive(Clone, Debug)]
pub(crate) struct MatrixRow {
    pub(crate) title: String,
    pub(crate) scale: Scale,
    pub(crate) matrices: Vec<MatrixPicture>,
}

/// Rows below each other; more than `across` matrices go on in a further line.
pub(crate) fn matrix_sheet(rows: &[MatrixRow], across: usize) -> Drawing {
    let across = across.max(1);
    let cell = ((WIDTH - 2.0 * MARGIN + GAP) / across as f64 - GAP).min(112.0);
    let lines = |row: &MatrixRow| row.matrices.len().div_ceil(across) as f64;
    let height = |row: &MatrixRow| HEAD + lines(row) * (TITLE + cell + GAP) + BAR;
    let mut drawing = Drawing::new(WIDTH, rows.iter().map(height).sum());
    let mut top = 0.0;
    for row in rows {
        drawing.heading([MARGIN, top + 10.0], row.title.clone(), WORDS + 1.0, Anchor::Start);
        for (place, matrix) in row.matrices.iter().enumerate() {
            let [x, y] = [
                MARGIN + (place % across) as f64 * (cell + GAP),
                top + HEAD + (place / across) as f64 * (TITLE + cell + GAP),
            ];
            drawing.word([x, y + 7.0], matrix.title.clone(), WORDS - 1.0, Ink::Text, Anchor::Start);
            drawing.image([x, y + TITLE], [cell; 2], matrix.canvas(&row.scale));
        }
        bar(&mut drawing, [MARGIN, top + HEAD + lines(row) * (TITLE + cell + GAP) + 2.0], &row.scale);
        top += height(row);
    }
    drawing
}

/// A colour bar with its ends.
fn bar(drawing: &mut Drawing, [left, top]: [f64; 2], scale: &Scale) {
    let (steps, width) = (64, 120.0);
    let mut canvas = Canvas::new(steps, 1, PAPER);
    for step in 0..steps {
        let share = step as f32 / (steps - 1) as f32;
        canvas.dot(step, 0, scale.colour(scale.least + share * (scale.most - scale.least)));
    }
    drawing.word([left, top + 6.0], number(scale.least), WORDS - 1.0, Ink::Faint, Anchor::Start);
    drawing.image([left + 34.0, top], [width, 6.0], canvas);
    drawing.word([left + 38.0 + width, top + 6.0], number(scale.most), WORDS - 1.0, Ink::Faint, Anchor::Start);
}

impl MatrixPicture {
    /// Whole pixels per entry, so that no viewer blurs it.
    fn canvas(&self, scale: &Scale) -> Canvas {
        let pixels = FINEST.div_ceil(self.side.max(1)).max(1);
        let mut canvas = Canvas::new((self.side * pixels).max(1), (self.side * pixels).max(1), PAPER);
        for (place, value) in self.values.iter().enumerate() {
            let [row, column] = [place / self.side, place % self.side];
            canvas.fill([column * pixels, row * pixels], [pixels; 2], scale.colour(*value));
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_matrix_has_its_place_and_row_0_is_on_top() {
        let scale = Scale::of([0.0, 1.0].into_iter());
        let matrix = MatrixPicture { title: "layer 1".to_owned(), side: 2, values: vec![1.0, 0.0, 0.0, 0.0] };
        let canvas = matrix.canvas(&scale);
        assert_eq!([canvas.at(0, 0), canvas.at(191, 0)], [scale.colour(1.0), scale.colour(0.0)]);
        let rows = [MatrixRow { title: "LaMO".to_owned(), scale, matrices: vec![matrix; 3] }];
        let sheet = matrix_sheet(&rows, 2).svg("matrices");
        assert_eq!((sheet.matches("layer 1").count(), sheet.matches("<image").count()), (3, 4));
    }
}
