//! Regular grids: equally spaced points along straight, orthogonal axes. Only there do differences of neighbours
//! approximate derivatives, and only there do the modes of a transform have one wavelength.

use super::{Positions, Task};
use lamo_geometry::Grid;

/// A point may be this share of the spacing away from its place: positions are stored in single precision.
const SLACK: f64 = 1e-2;

impl Task {
    /// Distance of neighbours along each axis of samples of this task, in units of the longest side. `None` unless all
    /// samples share one regular grid: `positions` are `[points, space]`, or more for samples with their own points.
    pub fn spacing(&self, grid: Grid, positions: &[f32]) -> Option<Vec<f64>> {
        match self.positions {
            Positions::Lattice | Positions::Scrambled => lattice_spacing(grid),
            Positions::Given => spacing(grid, self.space, positions),
        }
    }
}

/// The spacing of the unit lattice.
fn lattice_spacing(grid: Grid) -> Option<Vec<f64>> {
    let shape = grid.shape();
    let regular = !matches!(grid, Grid::Cloud { .. }) && shape.iter().all(|&points| points > 1);
    regular.then(|| shape.iter().map(|&points| 1.0 / (points - 1) as f64).collect())
}

/// Distance of neighbours along each axis in units of the longest side; `None` where `[points, space]` positions are not
/// regular.
pub(crate) fn spacing(grid: Grid, space: usize, positions: &[f32]) -> Option<Vec<f64>> {
    lattice_spacing(grid)?;
    if space == 0 || positions.len() != grid.points() * space {
        return None;
    }
    let shape = grid.shape();
    let strides: Vec<usize> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
    let at = |point: usize, coordinate: usize| f64::from(positions[point * space + coordinate]);
    // The vector from a point to its next neighbour along each axis.
    let step = |(&points, &stride): (&usize, &usize)| -> Vec<f64> {
        let last = (points - 1) * stride;
        (0..space).map(|coordinate| (at(last, coordinate) - at(0, coordinate)) / (points - 1) as f64).collect()
    };
    let steps: Vec<Vec<f64>> = shape.iter().zip(&strides).map(step).collect();
    let dot = |one: &[f64], two: &[f64]| one.iter().zip(two).map(|(one, two)| one * two).sum::<f64>();
    let lengths: Vec<f64> = steps.iter().map(|step| dot(step, step).sqrt()).collect();
    let shortest = lengths.iter().copied().fold(f64::INFINITY, f64::min);
    let straight = |point: usize| {
        (0..space).all(|coordinate| {
            let places = shape.iter().zip(&strides).map(|(points, stride)| (point / stride % points) as f64);
            let moved: f64 = places.zip(&steps).map(|(place, step)| place * step[coordinate]).sum();
            (at(0, coordinate) + moved - at(point, coordinate)).abs() <= SLACK * shortest
        })
    };
    let orthogonal =
        |one: usize, two: usize| dot(&steps[one], &steps[two]).abs() <= SLACK * lengths[one] * lengths[two];
    let axes = 0..shape.len();
    let square = axes.clone().all(|one| axes.clone().filter(|&two| two > one).all(|two| orthogonal(one, two)));
    if !(shortest > 0.0 && square && (0..grid.points()).all(straight)) {
        return None;
    }
    let longest = lengths.iter().zip(&shape).map(|(length, &points)| length * (points - 1) as f64).fold(0.0, f64::max);
    Some(lengths.iter().map(|length| length / longest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: Grid = Grid::Plane { rows: 3, columns: 5 };

    /// Positions of the points of a plane by a rule of row and column.
    fn plane(rule: impl Fn(f64, f64) -> [f64; 2]) -> Vec<f32> {
        let points = (0..15).flat_map(|point| rule((point / 5) as f64, (point % 5) as f64));
        points.map(|value| value as f32).collect()
    }

    #[test]
    fn equally_spaced_points_are_regular_wherever_the_plane_lies_and_however_it_is_turned() {
        let turned = plane(|row, column| [7.0 + 0.3 * column - 0.8 * row, -2.0 + 0.4 * column + 0.6 * row]);
        for (name, positions) in [
            ("unit", PLANE.lattice(false).unwrap()),
            ("physical", plane(|row, column| [10.0 + 2.0 * column, 0.5 * row])),
            ("turned", turned),
        ] {
            let found = spacing(PLANE, 2, &positions).unwrap_or_else(|| panic!("{name} is regular"));
            let expected = match name {
                "unit" => [0.5, 0.25],
                "physical" => [0.5 / 8.0, 0.25],
                _ => [0.5, 0.25],
            };
            assert!(
                found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6),
                "{name} {found:?}"
            );
        }
        let line = spacing(Grid::Line { points: 5 }, 1, &[3.0, 3.5, 4.0, 4.5, 5.0]);
        assert_eq!(line, Some(vec![0.25]));
    }

    #[test]
    fn bent_stretched_skew_and_doubled_points_are_not_regular_and_clouds_never_are() {
        for (name, positions) in [
            ("bent", plane(|row, column| [column, row + 0.1 * column * column])),
            ("stretched", plane(|row, column| [column * column, row])),
            ("skew", plane(|row, column| [column + 0.5 * row, row])),
            ("doubled", plane(|_, column| [column, 0.0])),
        ] {
            assert_eq!(spacing(PLANE, 2, &positions), None, "{name}");
        }
        let lattice = PLANE.lattice(false).unwrap();
        assert_eq!(spacing(Grid::Cloud { points: 15 }, 2, &lattice), None);
        assert_eq!(spacing(PLANE, 2, &[lattice.clone(), lattice].concat()), None, "two samples with their own points");
        assert_eq!(spacing(Grid::Plane { rows: 1, columns: 3 }, 1, &[0.0, 0.5, 1.0]), None);
        assert_eq!(spacing(Grid::Line { points: 1 }, 1, &[0.0]), None);
    }

    #[test]
    fn a_task_on_its_lattice_needs_no_positions() {
        let task = Task { positions: Positions::Scrambled, ..Task::plain(PLANE, 2, 1, 1) };
        assert_eq!(task.spacing(PLANE, &[]), Some(vec![0.5, 0.25]));
        assert_eq!(Task { positions: Positions::Given, ..task }.spacing(PLANE, &[]), None);
    }
}
