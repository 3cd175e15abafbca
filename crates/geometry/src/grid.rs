//! Grids: how the points of a field are arranged, the cells between them, and their coordinates on the unit lattice.

/// The arrangement of the points of a field. A cloud has no rows, so no code can ask for them.
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
    /// Points without order or neighbours; each sample has its own positions.
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

    /// `[rows, columns]` of a plane; `None` for a line and for a cloud.
    pub fn plane(&self) -> Option<[usize; 2]> {
        match *self {
            Self::Plane { rows, columns } => Some([rows, columns]),
            Self::Line { .. } | Self::Cloud { .. } => None,
        }
    }

    /// The quadrilaterals between neighbouring points of a plane, row by row; a line and a cloud have no cells.
    ///
    /// Each cell lists its four corners in order around it: counter-clockwise where x grows with the row and y with the
    /// column.
    pub fn cells(&self) -> Vec<[usize; 4]> {
        let Some([rows, columns]) = self.plane() else { return Vec::new() };
        let point = |row: usize, column: usize| row * columns + column;
        let cell = |row: usize, column: usize| {
            [point(row, column), point(row + 1, column), point(row + 1, column + 1), point(row, column + 1)]
        };
        let [cell_rows, cell_columns] = [rows, columns].map(|points| points.saturating_sub(1));
        (0..cell_rows).flat_map(|row| (0..cell_columns).map(move |column| cell(row, column))).collect()
    }

    /// `[points, axes]` coordinates of equally spaced points from 0 to 1 along each axis, the column's coordinate first;
    /// `None` for a cloud, which has no axes.
    ///
    /// With `scrambled`, the points of a plane are counted as if the plane had `columns` rows and `rows` columns. On a
    /// square plane this changes nothing; elsewhere it gives the positions that the authors' Plasticity loader makes.
    pub fn lattice(&self, scrambled: bool) -> Option<Vec<f32>> {
        match *self {
            Self::Line { points } => Some((0..points).map(|point| coordinate(point, points)).collect()),
            Self::Plane { rows, columns } => {
                let (fast, slow) = if scrambled { (rows, columns) } else { (columns, rows) };
                let position = |point: usize| [coordinate(point % fast, fast), coordinate(point / fast, slow)];
                Some((0..rows * columns).flat_map(position).collect())
            }
            Self::Cloud { .. } => None,
        }
    }
}

/// Coordinate of point `index` among `points` equally spaced points from 0 to 1; a single point lies at 0.
fn coordinate(index: usize, points: usize) -> f32 {
    if points > 1 { (index as f64 / (points - 1) as f64) as f32 } else { 0.0 }
}

/// `line of 16 points`, `plane of 85 x 85 points`, `cloud of 972 points`
impl std::fmt::Display for Grid {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line { points } => write!(out, "line of {points} points"),
            Self::Plane { rows, columns } => write!(out, "plane of {rows} x {columns} points"),
            Self::Cloud { points } => write!(out, "cloud of {points} points"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: Grid = Grid::Plane { rows: 3, columns: 5 };
    const CLOUD: Grid = Grid::Cloud { points: 7 };

    #[test]
    fn a_plane_has_as_many_points_as_rows_times_columns() {
        assert_eq!((PLANE.points(), PLANE.shape(), PLANE.plane()), (15, vec![3, 5], Some([3, 5])));
        assert_eq!((CLOUD.points(), CLOUD.shape(), CLOUD.plane()), (7, vec![7], None));
        assert_eq!(Grid::Line { points: 4 }.points(), 4);
    }

    #[test]
    fn each_cell_of_a_plane_lists_the_four_points_around_it() {
        let cells = PLANE.cells();
        assert_eq!((cells.len(), cells[0], cells[7]), (2 * 4, [0, 5, 6, 1], [8, 13, 14, 9]));
    }

    #[test]
    fn grids_without_neighbours_along_both_axes_have_no_cells() {
        let thin = [[0, 5], [1, 5], [5, 1]].map(|[rows, columns]| Grid::Plane { rows, columns });
        for grid in thin.into_iter().chain([CLOUD, Grid::Line { points: 4 }]) {
            assert!(grid.cells().is_empty(), "{grid:?}");
        }
    }

    #[test]
    fn a_lattice_runs_from_0_to_1_along_each_axis() {
        assert_eq!(Grid::Line { points: 3 }.lattice(false), Some(vec![0.0, 0.5, 1.0]));
        let lattice = PLANE.lattice(false).unwrap();
        assert_eq!((&lattice[..4], &lattice[28..]), (&[0.0, 0.0, 0.25, 0.0][..], &[1.0, 1.0][..]));
        assert_eq!(Grid::Line { points: 1 }.lattice(false), Some(vec![0.0]));
        assert_eq!(CLOUD.lattice(false), None);
    }

    #[test]
    fn a_scrambled_lattice_counts_rows_as_columns_and_differs_only_where_the_plane_is_not_square() {
        assert_eq!(PLANE.lattice(true).unwrap()[..8], [0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.25]);
        let square = Grid::Plane { rows: 4, columns: 4 };
        assert_eq!(square.lattice(true), square.lattice(false));
    }
}
