//! The data set that an experiment file of your own data names, as far as it decides the settings of a model.

use super::TrainRequest;
use crate::data::dataset::{Dataset, MANIFEST};
use crate::error::Error;
use crate::experiment::{OWN, Request};
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};

impl TrainRequest {
    /// The grid of the data set that an experiment file is trained on: the one of `data.folder` in a change, of `--data`, or of
    /// the file, which names it relative to itself. `None` for benchmarks, and where the data set is not there.
    pub(super) fn grid_of_file(&self, path: &Path, text: &str) -> Result<Option<Grid>, Error> {
        let changes = Request { changes: &self.changes, ..Request::default() };
        let file = Request { file: Some((&self.what, text)), ..Request::default() };
        let said = |key: &[&str]| changes.text(key).or_else(|| file.text(key));
        if said(&["benchmark"]).is_some_and(|benchmark| benchmark != OWN) {
            return Ok(None);
        }
        const FOLDER: [&str; 2] = ["data", "folder"];
        let beside = |folder: String| path.parent().unwrap_or(Path::new("")).join(folder);
        let folder = changes.text(&FOLDER).map(PathBuf::from).or_else(|| self.data.clone());
        let folder = folder.or_else(|| file.text(&FOLDER).map(beside));
        let there = folder.filter(|folder| folder.join(MANIFEST).is_file());
        Ok(there.map(|folder| Dataset::open(&folder)).transpose()?.map(|dataset| dataset.manifest().grid))
    }
}
