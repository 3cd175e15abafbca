//! The test samples of a model, where its data are at hand: one by one, with the triangles between their points.

use super::dataset;
use super::explain::alone;
use super::predict::Model;
use crate::data::formats::Named;
use crate::data::{Dataset, Samples, Split};
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::{self, Experiment};
use crate::run::{self, Environment, Provenance};
use crate::task::{Field, POSITIONS, Spread, Task};
use lamo_tensor::Device;
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
        let begun = path.join(run::ENVIRONMENT).is_file().then(|| run::environment(path)).transpose()?;
        if path.is_dir() {
            experiment.data.folder = run::experiment(path)?.data.folder;
            begun.iter().for_each(|begun| dataset::recorded_folder(&mut experiment.data, begun));
        }
        let dataset = dataset::at_hand(&experiment)?;
        let split = experiment::split(&experiment, &dataset)?;
        let now = Environment::here(Device::Cpu, 1, Some(Provenance::of(&dataset, &split)));
        require(begun.is_none_or(|begun| now.sees_the_same(&begun)), || {
            let sentence = "the data are not those the run began with, so their test samples are unknown";
            Refusal::about(dataset.folder().display().to_string(), sentence).of(Kind::Conflict)
        })?;
        Ok(TestSet { experiment, dataset, split })
    }

    /// The data set that they are part of.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
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

impl TestSample {
    /// The arrays of the sample, of which a prediction takes those it needs: `positions`, the input fields by name, the truth of
    /// each output by its name, or as `NAME_truth` where an input has the same name, and `triangles` `[count, 3]`.
    pub fn arrays(&self, task: &Task) -> Vec<Named> {
        let Samples { grid, space, times, .. } = self.samples;
        let shape = grid.shape().into_iter().chain([space]).collect();
        let mut arrays = vec![Named { name: POSITIONS.into(), shape, values: self.samples.positions_of(0).to_vec() }];
        arrays.extend(self.given(task));
        let given: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
        if !self.samples.targets.is_empty() {
            let truth = task.time.predicted_fields(&task.outputs, times, grid.points(), &self.samples.targets);
            arrays.extend(truth.into_iter().map(|(field, values)| {
                let shape = field.shape(grid);
                let name = if given.contains(&field.name) { format!("{}_truth", field.name) } else { field.name };
                Named { name, shape, values }
            }));
        }
        if !self.triangles.is_empty() {
            let values = self.triangles.as_flattened().iter().map(|&point| point as f32).collect();
            arrays.push(Named { name: "triangles".into(), shape: vec![self.triangles.len(), 3], values });
        }
        arrays
    }

    /// The input fields, out of the functions `[points, functions]` that the model is given.
    fn given(&self, task: &Task) -> Vec<Named> {
        let Samples { grid, functions, .. } = self.samples;
        let points = grid.points();
        // Past snapshots come first, all outputs of a snapshot side by side; the other fields follow one after another.
        let (past, width) = (task.time.past(), task.output_channels());
        let (mut of_series, mut of_others) = (0, past * width);
        let mut arrays = Vec::new();
        for (place, field) in task.time.given_fields(&task.inputs, &task.outputs).into_iter().enumerate() {
            let series = past > 0 && place < task.outputs.len();
            let (first, step) = if series { (of_series, width) } else { (of_others, field.width()) };
            let (inner, every) = match field.spread {
                Spread::Points => (points, 1),
                Spread::Rows => (grid.shape()[0], points / grid.shape()[0]),
                Spread::Sample => (1, 1),
            };
            let (length, channels) = (field.length(), field.width());
            let value = |index: usize| {
                let (snapshot, point, channel) =
                    (index / channels / inner, index / channels % inner * every, index % channels);
                self.samples.inputs[point * functions + first + snapshot * step + channel]
            };
            let values = (0..length * inner * channels).map(value).collect();
            *(if series { &mut of_series } else { &mut of_others }) +=
                if series { channels } else { field.functions() };
            let shape = field.shape(grid);
            let Field { name, .. } = field;
            arrays.push(Named { name, shape, values });
        }
        arrays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Time;
    use lamo_geometry::Grid;

    /// Fields with one value for each point, row or sample, in a steady task and in a series that is continued.
    #[test]
    fn the_arrays_of_a_sample_are_those_that_its_functions_were_made_of() {
        let grid = Grid::Plane { rows: 3, columns: 2 };
        let on = |name: &str, shape: &[usize]| Field::on(grid, name, "1", shape).unwrap();
        let inputs = vec![on("a", &[3, 2]), on("r", &[3]), on("b", &[2, 3, 2, 2]), on("c", &[])];
        for (time, past) in [(Time::Steady, 0), (Time::RollOut { past: 2, snapshots: 3, clock: Vec::new() }, 2)] {
            let outputs = vec![on("u", &[3, 2]), on("v", &[3, 2, 2])];
            let task = Task { inputs: inputs.clone(), outputs, time, ..Task::plain(grid, 2, 1, 3) };
            let fields = task.time.given_fields(&task.inputs, &task.outputs);
            let mut next = 0.0;
            let mut values = |field: &Field| -> Vec<f32> {
                let count: usize = field.shape(grid).iter().product();
                next += 100.0;
                (0..count).map(|index| next + index as f32).collect()
            };
            let values: Vec<Vec<f32>> = fields.iter().map(&mut values).collect();
            let given = task.time.arrange_given((&fields, &values), task.output_channels(), grid);
            let samples = Samples {
                count: 1,
                grid,
                offsets: Vec::new(),
                space: 2,
                positions: vec![0.5; 12],
                functions: given.len() / 6,
                inputs: given,
                times: if past > 0 { 3 } else { 1 },
                outputs: 3,
                targets: vec![1.0; if past > 0 { 54 } else { 18 }],
            };
            let sample = TestSample { samples, triangles: vec![[0, 1, 2]] };
            let arrays = sample.arrays(&task);
            for (field, values) in fields.iter().zip(&values) {
                let found = arrays.iter().find(|array| array.name == field.name).unwrap();
                assert_eq!((&found.shape, &found.values), (&field.shape(grid), values), "{}, past {past}", field.name);
            }
            let truth = if past > 0 { "u_truth" } else { "u" };
            let truth = arrays.iter().find(|array| array.name == truth).unwrap();
            assert_eq!(truth.values.len(), if past > 0 { 18 } else { 6 });
            assert_eq!(arrays.last().unwrap().values, [0.0, 1.0, 2.0]);
        }
    }
}
