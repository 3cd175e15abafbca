//! The outermost points of a line, plane or volume against the inner ones: operators fail first at boundary conditions.

use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// Root mean squares of the error over points, frames and samples. The unit of each sample is the root mean square of its
/// truth over all points, so border and inside compare even where the truth vanishes at the border.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Border {
    /// Points of the outermost ring.
    pub points: usize,
    /// Error on the outermost ring.
    pub border: f64,
    /// Error at the inner points.
    pub inside: f64,
}

/// Sums mean squares, one frame of one channel after the other.
pub(super) struct Edge {
    outermost: Vec<bool>,
    points: usize,
    border: f64,
    inside: f64,
    planes: f64,
}

impl Edge {
    /// `None` for clouds, whose border is unknown, and for grids without inner points.
    pub(super) fn of(grid: Grid) -> Option<Edge> {
        grid.axes()?;
        let extents = grid.shape();
        let is_outermost = |mut point: usize| {
            extents.iter().rev().any(|&extent| {
                let place = point % extent;
                point /= extent;
                place == 0 || place + 1 == extent
            })
        };
        let outermost: Vec<bool> = (0..grid.points()).map(is_outermost).collect();
        let points = outermost.iter().filter(|&&edge| edge).count();
        (points < outermost.len()).then_some(Edge { outermost, points, border: 0.0, inside: 0.0, planes: 0.0 })
    }

    /// Adds the error of one plane; `scale` is the mean square of the truth of its sample.
    pub(super) fn add(&mut self, error: &[f64], scale: f64) {
        let sum = |edge: bool| -> f64 {
            let places = error.iter().zip(&self.outermost).filter(|&(_, &outermost)| outermost == edge);
            places.map(|(error, _)| error * error).sum()
        };
        let inner = (self.outermost.len() - self.points) as f64;
        let [border, inside] = [sum(true) / self.points as f64, sum(false) / inner];
        self.border += border / scale;
        self.inside += inside / scale;
        self.planes += 1.0;
    }

    pub(super) fn finish(self) -> Border {
        let root = |sum: f64| (sum / self.planes).sqrt();
        Border { points: self.points, border: root(self.border), inside: root(self.inside) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error of `edge` on the outermost ring and of `inside` elsewhere, on a truth of mean square `scale`.
    fn border(grid: Grid, edge: f64, inside: f64, scale: f64) -> Border {
        let mut gatherer = Edge::of(grid).unwrap();
        let error: Vec<f64> =
            gatherer.outermost.iter().map(|&outermost| if outermost { edge } else { inside }).collect();
        gatherer.add(&error, scale);
        gatherer.finish()
    }

    #[test]
    fn the_shell_of_a_volume_the_ring_of_a_plane_and_the_ends_of_a_line_are_its_border() {
        let plane = border(Grid::Plane { rows: 5, columns: 7 }, 3.0, -1.0, 4.0);
        assert_eq!(plane, Border { points: 20, border: 1.5, inside: 0.5 });
        let volume = border(Grid::Volume { rows: 4, columns: 5, layers: 3 }, 3.0, -1.0, 4.0);
        assert_eq!(volume, Border { points: 60 - 2 * 3, border: 1.5, inside: 0.5 });
        assert_eq!(border(Grid::Line { points: 9 }, 3.0, 1.0, 1.0), Border { points: 2, border: 3.0, inside: 1.0 });
    }

    #[test]
    fn samples_are_pooled_in_mean_square() {
        let mut gatherer = Edge::of(Grid::Line { points: 3 }).unwrap();
        gatherer.add(&[3.0, 0.0, 3.0], 1.0);
        gatherer.add(&[8.0, 2.0, 8.0], 4.0);
        let found = gatherer.finish();
        assert_eq!((found.border, found.inside), (12.5f64.sqrt(), 0.5f64.sqrt()));
    }

    #[test]
    fn without_an_inside_or_an_order_there_is_no_border() {
        let grids = [Grid::Cloud { points: 9 }, Grid::Line { points: 2 }, Grid::Plane { rows: 2, columns: 9 }];
        assert!(grids.into_iter().all(|grid| Edge::of(grid).is_none()));
    }
}
