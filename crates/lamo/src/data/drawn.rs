//! The triangles as which the samples of a data set are drawn, from files or from its solver.

use super::dataset::{Dataset, Error};

/// The triangles as which a sample is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// The points of the sample whose values each triangle shows at its three corners.
    pub triangles: Vec<[u32; 3]>,
    /// `[triangles, 3, space]` positions of the corners where they are no points of the sample: a triangle is then a part of a cell,
    /// and its three points are the centre of the cell. Empty elsewhere.
    pub corners: Vec<f32>,
}

impl Drawn {
    /// Whether there are no triangles.
    pub fn is_empty(&self) -> bool {
        self.triangles.is_empty()
    }
}

impl Dataset {
    /// The triangles as which a sample is drawn: those of its mesh file, or of the solver that made it; none where no cells are
    /// known.
    pub fn drawn(&self, sample: usize) -> Result<Drawn, Error> {
        let stored = Drawn { triangles: self.triangles_of(sample)?, corners: self.corners_of(sample)? };
        #[cfg(feature = "solvers")]
        if stored.is_empty() && sample < self.samples() {
            return Ok(Drawn { triangles: super::converge::triangles(self, sample), corners: Vec::new() });
        }
        Ok(stored)
    }

    /// The same triangles where they join the points of the sample; none where the points are the centres of cells.
    pub fn drawn_triangles(&self, sample: usize) -> Result<Vec<[u32; 3]>, Error> {
        let Drawn { triangles, corners } = self.drawn(sample)?;
        Ok(if corners.is_empty() { triangles } else { Vec::new() })
    }
}
