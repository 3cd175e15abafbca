//! The test samples of a model, where its data are at hand: one by one, with the triangles between their points.

use super::dataset;
use super::explain::alone;
use super::predict::Model;
use crate::data::{Dataset, Samples, Split};
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::{self, Experiment};
use crate::run;
use std::path::Path;

/// The test samples of the data that a model was trained on.
#[derive(Debug)]
pub struct TestSet {
    experiment: Experiment,
    dataset: Dataset,
    split: Split,
}

/// One test sample.
#[derive(Clone, Debug)]
pub struct TestSample {
    /// Positions, inputs and targets of the one sample.
    pub samples: Samples,
    /// The triangles between its points; none where no cells are known.
    pub triangles: Vec<[u32; 3]>,
}

impl TestSet {
    /// Finds the data of a model that was opened at `path`. Nothing is made, and no values are read.
    pub fn open(model: &Model, path: &Path) -> Result<TestSet, Error> {
        let Model::Trained(trained) = model else {
            let sentence = "imported weights come without the data that they were trained on";
            return Err(Refusal::about("the model", sentence).of(Kind::Missing).into());
        };
        let mut experiment = trained.experiment.clone();
        if path.is_dir() {
            experiment.data.folder = run::experiment(path)?.data.folder;
            if let Ok(environment) = run::environment(path) {
                dataset::recorded_folder(&mut experiment.data, &environment);
            }
        }
        let dataset = dataset::at_hand(&experiment)?;
        let split = experiment::split(&experiment, &dataset)?;
        Ok(TestSet { experiment, dataset, split })
    }

    /// Number of test samples.
    pub fn count(&self) -> usize {
        self.split.test.len()
    }

    /// Reads all test samples.
    pub fn samples(&self) -> Result<Samples, Error> {
        experiment::test_samples(&self.experiment, &self.dataset)
    }

    /// One of the samples that [`TestSet::samples`] read.
    pub fn one(&self, samples: &Samples, index: usize) -> Result<TestSample, Error> {
        require(index < samples.count, || {
            let most = samples.count.saturating_sub(1);
            Refusal::new("sample", format!("one of the test samples 0 to {most}"), index.to_string()).of(Kind::Missing)
        })?;
        let number = self.split.test.get(index).copied().unwrap_or(index);
        Ok(TestSample { samples: alone(samples, index), triangles: self.dataset.drawn_triangles(number)? })
    }
}
