//! Predictions: a compiled forward pass, stepped through time on the device.

use crate::data::Samples;
use crate::error::{Error, Kind, Refusal, bounded, require};
use crate::experiment::Symmetries;
use crate::network::models::{self, Settings};
use crate::network::{Input, Mode, Parameters};
use crate::run::{Operator, forward_batch};
use crate::task::Task;
use crate::task::beside::DRIVING;
use crate::task::time::WINDOW;
use crate::training::buckets::Buckets;
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, MODEL_STATES, PARAMETERS, Program, Section, Tensor};

impl Operator {
    /// A forward pass for batches of `batch` samples on a grid, which may differ from the training grid where the model
    /// allows it.
    pub fn predictor(&self, device: Device, grid: Grid, batch: usize) -> Result<Predictor, Error> {
        self.check()?;
        self.check_grid(grid)?; // before the program is compiled: it reserves memory for every point of the grid
        self.compiled(device, grid, batch, false)
    }

    fn compiled(&self, device: Device, grid: Grid, batch: usize, masked: bool) -> Result<Predictor, Error> {
        let predictor = bounded(|| Predictor::new(self, device, grid, (batch, masked)))?;
        require(predictor.program.sections() == self.sections, || self.elsewhere(grid))?;
        Ok(predictor)
    }

    /// Predictions of a ragged set, ordered as its targets: a program for each bucket of sizes.
    fn predict_ragged(&self, samples: &Samples, device: Device) -> Result<Vec<f32>, Error> {
        models::find(&self.model.name)?.check_ragged(&self.task, &self.model.settings)?;
        self.check()?;
        samples.check_for(&self.task)?;
        let batch = forward_batch(self.batch, device).min(samples.count.max(1));
        let mut predictions = reserved(samples)?;
        predictions.resize(samples.total_points() * samples.times * samples.outputs, 0.0);
        for bucket in Buckets::new(&samples.sizes(), batch).all {
            let (grid, count) = (Grid::Cloud { points: bucket.points }, bucket.samples.len());
            self.check_grid(grid)?;
            let mut predictor = self.compiled(device, grid, batch.min(count), true)?;
            for chosen in bucket.samples.chunks(predictor.batch) {
                let padded = samples.padded(chosen, bucket.points);
                predictor.write_mask(&samples.mask(chosen, bucket.points))?;
                let found = predictor.predict_batch(&padded, &(0..chosen.len()).collect::<Vec<_>>())?;
                let each = found.chunks_exact(samples.times * bucket.points * samples.outputs);
                for (&sample, found) in chosen.iter().zip(each) {
                    let length = samples.points_of(sample) * samples.outputs;
                    let times = found.chunks_exact(bucket.points * samples.outputs).map(|values| &values[..length]);
                    let to = &mut predictions[samples.range_of(sample, samples.times * samples.outputs)];
                    to.chunks_exact_mut(length).zip(times).for_each(|(to, values)| to.copy_from_slice(values));
                }
            }
        }
        Ok(predictions)
    }

    /// What to know about predictions on another line, plane or volume than that of the training.
    pub fn note_on_grid(&self, grid: Grid) -> Option<String> {
        let trained = self.task.grid;
        let differs = grid != trained && !matches!(trained, Grid::Cloud { .. });
        differs.then(|| {
            format!("the model was trained on a {trained} and predicts on a {grid}; its error there may be larger")
        })
    }

    /// Refuses a grid that the model cannot predict on.
    pub(crate) fn check_grid(&self, grid: Grid) -> Result<(), Refusal> {
        if grid == self.task.grid {
            return Ok(());
        }
        let count = self.count_on(grid).map_err(|refusal| self.instead(grid, refusal))?;
        require(count == self.parameters.len(), || self.elsewhere(grid))
    }

    /// Parameters of the model on a grid.
    fn count_on(&self, grid: Grid) -> Result<usize, Refusal> {
        models::find(&self.model.name)?.parameter_count(&self.task.on(grid), &self.settings_on(grid)?)
    }

    /// The refusal of a grid that is too coarse, with the coarsest refinement that the model can predict on: the settings of a
    /// trained model cannot be changed, so the advice to set them is for another training.
    fn instead(&self, grid: Grid, refusal: Refusal) -> Refusal {
        let most = self.task.grid.shape().into_iter().max().unwrap_or(0).min(FINEST);
        let finer = (1..=most).map(|extent| refined(grid, extent)).find(|&finer| self.count_on(finer).is_ok());
        let Some(finer) = finer.filter(|_| !refusal.advice.is_empty()) else { return refusal };
        let advice = format!("give fields on a {finer} or more, or train a model for this grid: {}", refusal.advice);
        refusal.advise(advice)
    }

    /// Settings of the model on a grid.
    pub(super) fn settings_on(&self, grid: Grid) -> Result<Settings, Refusal> {
        if grid == self.task.grid {
            return Ok(self.model.settings.clone());
        }
        let moved = models::find(&self.model.name)?.moved(&self.model.settings, [self.task.grid, grid]);
        moved.ok_or_else(|| self.elsewhere(grid))
    }

    /// The states in the order of a program. Tables of another grid are those that were computed for it.
    pub(super) fn states_for(&self, sections: &[Section], mut computed: Vec<f32>) -> Vec<f32> {
        for section in sections {
            let own = self.states.sections.iter().find(|own| own.name == section.name && own.shape == section.shape);
            if let Some(own) = own {
                computed[section.range()].copy_from_slice(&self.states.values[own.range()]);
            }
        }
        computed
    }

    fn elsewhere(&self, grid: Grid) -> Refusal {
        elsewhere(&self.model.name, self.task.grid, grid)
    }

    /// Builds the model on a grid and applies it to the inputs of a program.
    pub(super) fn apply<'g>(
        &self,
        graph: &'g Graph,
        parameters: &Parameters<'g>,
        grid: Grid,
        batch: usize,
        masked: bool,
    ) -> Result<Applied<'g>, Error> {
        let task = self.task.on(grid);
        let model = models::find(&self.model.name)?.build(parameters, &task, &self.settings_on(grid)?)?;
        let window = task.time.window(graph, [batch, grid.points(), task.input_channels()]);
        let input = match window {
            Some(window) => Input { functions: Some(window), ..Input::without_functions(graph, &task, batch) },
            None => Input::declare(graph, &task, batch),
        };
        let input = if masked { input.masked(graph) } else { input };
        let found = task.found(model.forward(&input, Mode::Inference), input.positions, input.functions);
        if let Some(window) = window {
            task.advance(window, found, task.declare_driving(graph, batch, grid));
        }
        Ok(Applied { prediction: task.decoded(found, input.mask), input })
    }

    /// The program of a graph, with the parameters and the states of the model.
    pub(super) fn compile(&self, graph: &Graph, parameters: &Parameters<'_>, device: Device) -> Result<Program, Error> {
        let mut program = Program::compile_on(graph, device, self.precision)?;
        if program.sections() == self.sections {
            program.try_write(PARAMETERS, &self.parameters)?;
        }
        if parameters.has_states() {
            program.try_write(MODEL_STATES, &self.states_for(program.state_sections(), parameters.draw_states(0)))?;
        }
        Ok(program)
    }

    /// `[count, times, points, outputs]` predictions in physical units. A roll-out is continued for `samples.times`
    /// snapshots.
    pub fn predict(&self, samples: &Samples, device: Device) -> Result<Vec<f32>, Error> {
        self.predict_mean(samples, None, device)
    }

    /// The same; with a group of symmetries, the mean over the group.
    pub fn predict_mean(
        &self,
        samples: &Samples,
        group: Option<&Symmetries>,
        device: Device,
    ) -> Result<Vec<f32>, Error> {
        if samples.is_ragged() {
            require(group.is_none(), || Refusal::new("--symmetries", "samples of equal size", "different sizes"))?;
            return self.predict_ragged(samples, device);
        }
        let batch = forward_batch(self.batch, device).min(samples.count.max(1));
        let mut predictor = self.predictor(device, samples.grid, batch)?;
        match group {
            Some(group) => predictor.predict_mean(samples, group),
            None => predictor.predict(samples),
        }
    }
}

/// The refusal of a grid by a model whose parameters belong to the points of another.
pub(super) fn elsewhere(model: &str, trained: Grid, grid: Grid) -> Refusal {
    let expected = format!("the {trained} that its parameters belong to");
    let refusal = Refusal::new(format!("model {model}"), expected, format!("a {grid}"));
    refusal.advise(
        "predict on the grid it was trained on, or train a model whose parameters do not belong to points, such as lamo or \
         transolver",
    )
}

/// Points along an axis up to which a finer grid is looked for.
const FINEST: usize = 1024;

/// The grid with at least so many points along each axis.
fn refined(grid: Grid, least: usize) -> Grid {
    match grid {
        Grid::Line { points } => Grid::Line { points: points.max(least) },
        Grid::Plane { rows, columns } => Grid::Plane { rows: rows.max(least), columns: columns.max(least) },
        Grid::Volume { rows, columns, layers } => {
            Grid::Volume { rows: rows.max(least), columns: columns.max(least), layers: layers.max(least) }
        }
        Grid::Cloud { points } => Grid::Cloud { points },
    }
}

/// An empty vector with room for the predictions of samples.
fn reserved(samples: &Samples) -> Result<Vec<f32>, Refusal> {
    let size = [samples.times, samples.total_points(), samples.outputs];
    let count = size.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
    let mut predictions = Vec::new();
    require(count.is_some_and(|count| predictions.try_reserve_exact(count).is_ok()), || {
        let sentence = "the predictions do not fit into memory";
        Refusal::about(format!("{} samples of {} times", samples.count, size[0]), sentence)
            .advise("ask for fewer")
            .of(Kind::OutOfSpace)
    })?;
    Ok(predictions)
}

/// Output of a program that holds the prediction in physical units.
pub(super) const PREDICTION: &str = "prediction";

/// A model that is applied to the inputs of a program.
pub(super) struct Applied<'g> {
    /// The inputs as the model sees them; the functions of a roll-out are a state.
    pub(super) input: Input<'g>,
    /// `[batch, points, outputs]` in physical units
    pub(super) prediction: Tensor<'g>,
}

/// Writes positions and input functions of some samples to a program.
pub(super) fn write_inputs(
    program: &mut Program,
    task: &Task,
    samples: &Samples,
    chosen: &[usize],
) -> Result<(), Error> {
    let positions: Vec<f32> = chosen.iter().flat_map(|&sample| samples.positions_of(sample)).copied().collect();
    program.try_write("positions", &task.encode_positions(&positions))?;
    if samples.functions > 0 {
        let name = if task.time.mode().is_roll_out() { WINDOW } else { "functions" };
        let inputs = given(task, samples, chosen);
        program.try_write(name, &task.shown(&inputs, samples.functions, 0))?;
    }
    Ok(())
}

/// `[chosen, points, functions]` the functions of some samples in the units that the model sees.
fn given(task: &Task, samples: &Samples, chosen: &[usize]) -> Vec<f32> {
    let inputs: Vec<f32> = chosen.iter().flat_map(|&sample| samples.input_of(sample)).copied().collect();
    task.encode_inputs(&inputs, samples.functions)
}

/// A compiled forward pass.
pub struct Predictor {
    program: Program,
    /// The task on the grid of the predictions.
    task: Task,
    batch: usize,
}

impl Predictor {
    fn new(operator: &Operator, device: Device, grid: Grid, (batch, masked): (usize, bool)) -> Result<Self, Error> {
        require(batch > 0, || Refusal::new("batch", "at least 1 sample", "0"))?;
        let task = operator.task.on(grid);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let applied = operator.apply(&graph, &parameters, grid, batch, masked)?;
        graph.output(PREDICTION, applied.prediction);
        let program = operator.compile(&graph, &parameters, device)?;
        Ok(Predictor { program, task, batch })
    }

    /// `[count, times, points, outputs]` in physical units.
    pub fn predict(&mut self, samples: &Samples) -> Result<Vec<f32>, Error> {
        samples.check_for(&self.task)?;
        require(samples.grid == self.task.grid, || {
            let (expected, found) = (self.task.grid.shape(), samples.grid.shape());
            Refusal::new("samples", format!("the grid {expected:?} of the predictor"), format!("{found:?}"))
                .advise("make a predictor for it")
        })?;
        let mut predictions = reserved(samples)?;
        for first in (0..samples.count).step_by(self.batch) {
            let chosen: Vec<usize> = (first..(first + self.batch).min(samples.count)).collect();
            predictions.extend(self.predict_batch(samples, &chosen)?);
        }
        Ok(predictions)
    }

    /// Sets which points of a batch are real, `[samples, points]`; a short batch is filled with copies of its last sample.
    fn write_mask(&mut self, mask: &[f32]) -> Result<(), Error> {
        let points = self.task.grid.points();
        let last = &mask[mask.len() - points..];
        let copies = (0..self.batch - mask.len() / points).flat_map(|_| last);
        Ok(self.program.try_write("mask", &mask.iter().chain(copies).copied().collect::<Vec<_>>())?)
    }

    /// The mean over the group: each sample is predicted under every symmetry, and the predictions are transformed back.
    pub fn predict_mean(&mut self, samples: &Samples, group: &Symmetries) -> Result<Vec<f32>, Error> {
        require(group.grid() == samples.grid, || {
            let expected = format!("samples on a {}, as in training", group.grid());
            Refusal::new("--symmetries", expected, format!("a {}", samples.grid))
        })?;
        let mut sum: Vec<f64> = Vec::new();
        for symmetry in group.elements() {
            let found = symmetry.undo(&self.predict(&symmetry.apply(&self.task, samples))?);
            sum.resize(found.len(), 0.0);
            sum.iter_mut().zip(found).for_each(|(sum, value)| *sum += f64::from(value));
        }
        Ok(sum.into_iter().map(|sum| (sum / group.order() as f64) as f32).collect())
    }

    /// Predicts one batch. A short batch is filled with copies of the last sample, whose predictions are dropped.
    fn predict_batch(&mut self, samples: &Samples, chosen: &[usize]) -> Result<Vec<f32>, Error> {
        let last = *chosen.last().expect("a batch holds at least one sample");
        let filled: Vec<usize> = (0..self.batch).map(|place| chosen.get(place).copied().unwrap_or(last)).collect();
        write_inputs(&mut self.program, &self.task, samples, &filled)?;
        let driving = (self.task.driving() > 0).then(|| given(&self.task, samples, &filled));
        let mut snapshots = Vec::with_capacity(samples.times);
        for time in 0..samples.times {
            if self.task.time.is_input() {
                self.program.try_write("time", &vec![self.task.time.fraction(time); self.batch])?;
            }
            if let Some(driving) = &driving {
                self.program.try_write(DRIVING, &self.task.entering(driving, samples.functions, time))?;
            }
            self.program.try_run()?;
            snapshots.push(self.program.try_read(PREDICTION)?.to_vec()); // [batch, points, outputs]
        }
        let length = samples.grid.points() * samples.outputs;
        let sample =
            |place: usize| snapshots.iter().flat_map(move |values| &values[place * length..(place + 1) * length]);
        Ok((0..chosen.len()).flat_map(sample).copied().collect())
    }
}
