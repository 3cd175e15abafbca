//! Where the values of a field sit.

/// The arrangement of points; a cloud has no rows, so nothing can ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Number of points in all.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_has_as_many_points_as_rows_times_columns() {
        let plane = Grid::Plane { rows: 3, columns: 5 };
        assert_eq!((plane.points(), plane.shape()), (15, vec![3, 5]));
        assert_eq!(Grid::Cloud { points: 7 }.shape(), vec![7]);
        assert_eq!(Grid::Line { points: 4 }.points(), 4);
    }
}
