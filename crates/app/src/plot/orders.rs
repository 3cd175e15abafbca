//! The orders in which tokens of a grid are scanned, as paths with an arrow at their end.

use super::drawing::{Anchor, Drawing, Ink};

/// Units between two tokens.
const STEP: f64 = 13.0;
const MARGIN: f64 = 14.0;
const HEAD: f64 = 16.0;

/// One picture per order; `order[k]` is the token that is visited at step k, counted row by row.
pub(crate) fn scan_orders(orders: &[(&str, Vec<u32>)], [rows, columns]: [usize; 2]) -> Drawing {
    let [width, height] =
        [columns as f64 * STEP + 2.0 * MARGIN - STEP, rows as f64 * STEP + 2.0 * MARGIN - STEP + HEAD];
    let mut drawing = Drawing::new(width * orders.len() as f64, height);
    for (place, (name, order)) in orders.iter().enumerate() {
        let left = width * place as f64;
        drawing.word([left + width / 2.0, 11.0], *name, 8.0, Ink::Text, Anchor::Middle);
        let at = |token: u32| {
            let (row, column) = (token as usize / columns, token as usize % columns);
            [left + MARGIN + column as f64 * STEP, HEAD + MARGIN + row as f64 * STEP]
        };
        let points: Vec<[f64; 2]> = order.iter().map(|token| at(*token)).collect();
        for pair in points.windows(2) {
            let jump = (pair[0][0] - pair[1][0]).abs() + (pair[0][1] - pair[1][1]).abs() > 1.5 * STEP;
            drawing.line(pair.to_vec(), if jump { Ink::Grid } else { Ink::Orange }, if jump { 0.7 } else { 1.2 }, jump);
        }
        points.iter().for_each(|point| drawing.disc(*point, 1.6, Ink::Text, 1.0));
        if let [.., before, last] = points[..] {
            arrow(&mut drawing, before, last);
        }
        if let Some(first) = points.first() {
            drawing.ring(*first, 4.0, Ink::Orange, 1.2);
        }
    }
    drawing
}

/// The tip of an arrow at its end.
fn arrow(drawing: &mut Drawing, from: [f64; 2], to: [f64; 2]) {
    let length = (to[0] - from[0]).hypot(to[1] - from[1]).max(1e-9);
    let [x, y] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    let tip = [to[0] + 5.0 * x, to[1] + 5.0 * y];
    let wing = |side: f64| [to[0] - 2.0 * x + side * 3.4 * y, to[1] - 2.0 * y - side * 3.4 * x];
    drawing.polygon(vec![tip, wing(1.0), wing(-1.0)], Ink::Orange, 1.0);
}
