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
    /// Rows run along x, columns along y, layers along z; values are stored row by row, the layers of a column side by side.
    Volume {
        /// Number of points along x.
        rows: usize,
        /// Number of points along y.
        columns: usize,
        /// Number of points along z.
        layers: usize,
    },
    /// Points without order or neighbours; each sample has its own positions.
    Cloud {
        /// Number of points.
        points: usize,
    },
}

impl Grid {
    /// The plane of `64x64` or the volume of `32x32x16`; `None` for other texts and for a count of 0.
    pub fn parse_lattice(text: &str) -> Option<Grid> {
        let count = |part: &str| part.trim().parse::<usize>().ok().filter(|&count| count > 0);
        let extents: Vec<usize> = text.split('x').map(count).collect::<Option<_>>()?;
        match extents[..] {
            [rows, columns] => Some(Self::Plane { rows, columns }),
            [rows, columns, layers] => Some(Self::Volume { rows, columns, layers }),
            _ => None,
        }
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.shape().iter().product()
    }

    /// `[points]`, `[rows, columns]` or `[rows, columns, layers]`
    pub fn shape(&self) -> Vec<usize> {
        match *self {
            Self::Line { points } | Self::Cloud { points } => vec![points],
            Self::Plane { rows, columns } => vec![rows, columns],
            Self::Volume { rows, columns, layers } => vec![rows, columns, layers],
        }
    }

    /// `[rows, columns]` of a plane; `None` for all other grids.
    pub fn plane(&self) -> Option<[usize; 2]> {
        match *self {
            Self::Plane { rows, columns } => Some([rows, columns]),
            Self::Line { .. } | Self::Volume { .. } | Self::Cloud { .. } => None,
        }
    }

    /// Points along the axes of a box: a line is `[1, 1, points]`, a plane `[1, rows, columns]`; `None` for a cloud.
    pub fn extents(&self) -> Option<[usize; 3]> {
        match *self {
            Self::Line { points } => Some([1, 1, points]),
            Self::Plane { rows, columns } => Some([1, rows, columns]),
            Self::Volume { rows, columns, layers } => Some([rows, columns, layers]),
            Self::Cloud { .. } => None,
        }
    }

    /// Number of axes along which points are neighbours: 1, 2 or 3; `None` for a cloud.
    pub fn axes(&self) -> Option<usize> {
        self.extents().map(|_| self.shape().len())
    }

    /// The quadrilaterals between neighbouring points of a plane, row by row; all other grids have no such cells.
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

    /// `[points, axes]` coordinates of equally spaced points from 0 to 1 along each axis, on a plane the column's coordinate
    /// first, on a volume x, y and z; `None` for a cloud, which has no axes.
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
            Self::Volume { rows, columns, layers } => {
                let position = |point: usize| {
                    let (row, column, layer) = (point / (columns * layers), point / layers % columns, point % layers);
                    [coordinate(row, rows), coordinate(column, columns), coordinate(layer, layers)]
                };
                Some((0..rows * columns * layers).flat_map(position).collect())
            }
            Self::Cloud { .. } => None,
        }
    }
}

/// Coordinate of point `index` among `points` equally spaced points from 0 to 1; a single point lies at 0.
fn coordinate(index: usize, points: usize) -> f32 {
    if points > 1 { (index as f64 / (points - 1) as f64) as f32 } else { 0.0 }
}

/// `line of 16 points`, `plane of 85 x 85 points`, `volume of 32 x 32 x 16 points`, `cloud of 972 points`
impl std::fmt::Display for Grid {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line { points } => write!(out, "line of {points} points"),
            Self::Plane { rows, columns } => write!(out, "plane of {rows} x {columns} points"),
            Self::Volume { rows, columns, layers } => write!(out, "volume of {rows} x {columns} x {layers} points"),
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
    fn a_volume_counts_its_layers_fastest() {
        let volume = Grid::Volume { rows: 2, columns: 3, layers: 5 };
        assert_eq!((volume.points(), volume.shape(), volume.plane()), (30, vec![2, 3, 5], None));
        assert_eq!((volume.extents(), volume.axes()), (Some([2, 3, 5]), Some(3)));
        assert_eq!((PLANE.extents(), PLANE.axes(), CLOUD.axes()), (Some([1, 3, 5]), Some(2), None));
        let lattice = volume.lattice(false).unwrap();
        assert_eq!(lattice[3 * 7..3 * 8], [0.0, 0.5, 0.5]);
        assert_eq!((&lattice[..6], &lattice[87..]), (&[0.0, 0.0, 0.0, 0.0, 0.0, 0.25][..], &[1.0, 1.0, 1.0][..]));
        assert_eq!(volume.to_string(), "volume of 2 x 3 x 5 points");
    }

    #[test]
    fn two_numbers_are_a_plane_and_three_a_volume() {
        assert_eq!(Grid::parse_lattice("3x5"), Some(PLANE));
        assert_eq!(Grid::parse_lattice("2x3x5"), Some(Grid::Volume { rows: 2, columns: 3, layers: 5 }));
        for text in ["", "3", "3x", "3x0", "2x3x5x1", "line:4", "3xx5"] {
            assert_eq!(Grid::parse_lattice(text), None, "{text}");
        }
    }

    #[test]
    fn a_scrambled_lattice_counts_rows_as_columns_and_differs_only_where_the_plane_is_not_square() {
        assert_eq!(PLANE.lattice(true).unwrap()[..8], [0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.25]);
        let square = Grid::Plane { rows: 4, columns: 4 };
        assert_eq!(square.lattice(true), square.lattice(false));
    }
}
