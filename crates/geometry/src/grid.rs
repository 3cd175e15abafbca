//! Grids: how the points of a field are arranged, the cells between them, and their coordinates on the unit lattice.

/// The arrangement of points. A cloud has no rows, so no code can ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)
)]
pub enum Grid {
    /// Points in order along one axis.
    Line {
        /// Number of points.
        points: usize,
    },
    /// Rows run along x, columns along y; values are stored row by row.
    Plane {
        /// Number of points along x.
        rows: usize,
        /// Number of points along y.
        columns: usize,
    },
    /// Points without neighbours; each sample brings its own positions.
    Cloud {
        /// Number of points.
        points: usize,
    },
}

impl Grid {
    /// Number of points.
    pub fn points(&self) -> usize {
        self.shape().iter().product()
    }

    /// `[points]` or `[rows, columns]`
    pub fn shape(&self) -> Vec<usize> {
        match *self {
            Self::Line { points } | Self::Cloud { points } => vec![points],
            Self::Plane { rows, columns } => vec![rows, columns],
        }
    }

    /// Rows and columns of a plane.
    pub fn plane(&self) -> Option<[usize; 2]> {
        match *self {
            Self::Plane { rows, columns } => Some([rows, columns]),
            Self::Line { .. } | Self::Cloud { .. } => None,
        }
    }

    /// The quadrilaterals between the points of a plane, each as its four corners in order around it; empty elsewhere.
    pub fn cells(&self) -> Vec<[usize; 4]> {
        let Some([rows, columns]) = self.plane() else { return Vec::new() };
        let corner = |row: usize, column: usize| row * columns + column;
        let cell = |row: usize, column: usize| {
            [corner(row, column), corner(row + 1, column), corner(row + 1, column + 1), corner(row, column + 1)]
        };
        (1..rows).flat_map(|row| (1..columns).map(move |column| cell(row - 1, column - 1))).collect()
    }

    /// Coordinates of equally spaced points from 0 to 1 along each axis, `[points, axes]`, the column's coordinate first;
    /// `None` for a cloud, which has no axes. `scrambled` counts along the rows of a plane as if they were its columns: the
    /// same on square planes, elsewhere the positions that the authors' Plasticity loader makes.
    pub fn lattice(&self, scrambled: bool) -> Option<Vec<f32>> {
        let step =
            |index: usize, extent: usize| if extent > 1 { index as f64 / (extent - 1) as f64 } else { 0.0 } as f32;
        match *self {
            Self::Line { points } => Some((0..points).map(|point| step(point, points)).collect()),
            Self::Plane { rows, columns } => {
                let (fast, slow) = if scrambled { (rows, columns) } else { (columns, rows) };
                Some((0..rows * columns).flat_map(|n| [step(n % fast, fast), step(n / fast, slow)]).collect())
            }
            Self::Cloud { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: Grid = Grid::Plane { rows: 3, columns: 5 };

    #[test]
    fn a_plane_has_as_many_points_as_rows_times_columns() {
        assert_eq!((PLANE.points(), PLANE.shape()), (15, vec![3, 5]));
        assert_eq!(Grid::Cloud { points: 7 }.shape(), vec![7]);
        assert_eq!(Grid::Line { points: 4 }.points(), 4);
    }

    #[test]
    fn neighbouring_points_of_a_plane_share_cells_and_a_cloud_has_no_cells() {
        let cells = PLANE.cells();
        assert_eq!((cells.len(), cells[0], cells[7]), (2 * 4, [0, 5, 6, 1], [8, 13, 14, 9]));
        assert!(Grid::Cloud { points: 7 }.cells().is_empty());
    }

    #[test]
    fn a_lattice_runs_from_0_to_1_along_each_axis() {
        assert_eq!(Grid::Line { points: 3 }.lattice(false), Some(vec![0.0, 0.5, 1.0]));
        let lattice = PLANE.lattice(false).unwrap();
        assert_eq!((&lattice[..4], &lattice[28..]), (&[0.0, 0.0, 0.25, 0.0][..], &[1.0, 1.0][..]));
        assert_eq!(PLANE.lattice(true).unwrap()[..8], [0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.25]);
        assert_eq!(Grid::Line { points: 1 }.lattice(false), Some(vec![0.0]));
        assert_eq!(Grid::Cloud { points: 2 }.lattice(false), None);
    }
}
