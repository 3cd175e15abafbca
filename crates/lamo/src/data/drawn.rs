//! The triangles between the points of a data set, from files or from its solver.

use super::dataset::{Dataset, Error};

impl Dataset {
    /// The triangles between the points of a sample, as which it is drawn: those of its mesh file, or of the solver that made it; none
    /// where no cells are known.
    pub fn drawn_triangles(&self, sample: usize) -> Result<Vec<[u32; 3]>, Error> {
        let stored = self.triangles_of(sample)?;
        #[cfg(feature = "solvers")]
        if stored.is_empty() && sample < self.samples() {
            return Ok(super::converge::triangles(self, sample));
        }
        Ok(stored)
    }
}
