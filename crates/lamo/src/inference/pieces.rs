//! Predictions of more points than fit into memory at once: the points come in pieces.
//!
//! Points of a slice model see each other through sums over all points alone ([`InPieces`]), and these add up. Each stage passes
//! over the pieces once: the first lifts the points and sums for the first block; the stage of a block expands its mixed tokens and
//! sums for the next block; the last one projects. Between stages the features of the points are kept, in memory or in a file. The
//! result is that of a prediction at once, up to the rounding of the sums, which are taken in f64 over the pieces. A roll-out goes
//! through all stages for each snapshot, and the window of past snapshots moves on between them.

use super::predictor::PREDICTION;
use crate::data::Samples;
use crate::error::{Error, Kind, Refusal, bounded, require};
use crate::files::memory::{self, amount};
use crate::network::models;
use crate::network::{InPieces, Input, Parameters};
use crate::run::Operator;
use crate::task::{Spread, Task};
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Program, Tensor};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

const MASK: &str = "mask";
const FEATURES: &str = "features";
const NEXT: &str = "next";
const SUMS: &str = "sums";
const TOKENS: &str = "tokens";
const FOUND: &str = "found";
/// Points of a piece, unless memory is short: more do not make a prediction faster.
const MOST: usize = 1 << 16;
/// Points of the smallest piece.
const LEAST: usize = 1 << 8;

/// How the points of a prediction are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Points of a piece.
    pub points: usize,
    /// The folder of a temporary file for the features of the points; `None` keeps them in memory.
    pub folder: Option<PathBuf>,
}

/// What the points of a piece go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Lift,
    Mix(usize),
    Expand(usize),
}

/// Sizes of what goes from stage to stage.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes {
    blocks: usize,
    width: usize,
    /// `[1, heads, tokens, channels]`
    sums: [usize; 4],
    /// `[1, tokens, width]`
    tokens: [usize; 3],
}

impl Pieces {
    /// Pieces with which a prediction takes about so many bytes, the arrays of the samples included.
    pub fn within(bytes: u64, operator: &Operator, samples: &Samples, device: Device) -> Result<Pieces, Error> {
        let sizes = operator.sizes()?;
        let task = &operator.task; // a roll-out has its functions, those of a step, and what the step found
        let window = samples.functions + task.input_channels() + samples.outputs;
        let window = if task.time.mode().is_roll_out() { window } else { 0 };
        let each = samples.space + samples.functions + samples.times * samples.outputs + window;
        let arrays = 4 * each as u64 * samples.total_points() as u64;
        let largest = samples.sizes().into_iter().max().unwrap_or(1);
        let mut points = largest.clamp(1, MOST);
        let left = bytes.saturating_sub(arrays);
        let program = loop {
            let program = operator.stage(Stage::Lift, &sizes, points, device)?.bytes() as u64;
            if program <= left / 4 || points <= LEAST {
                break program;
            }
            points = (points / 2).max(LEAST);
        };
        require(left >= 2 * program, || {
            let needed = amount(arrays + 2 * program);
            Refusal::new("--memory", format!("at least {needed} for these points"), amount(bytes)).of(Kind::OutOfSpace)
        })?;
        let features = 4 * sizes.width as u64 * largest as u64;
        let folder = (features > left - 2 * program).then(std::env::temp_dir);
        Ok(Pieces { points, folder })
    }
}

impl Operator {
    /// `[count, times, points, outputs]` as [`Operator::predict`] has them, one piece of the points at a time.
    pub fn predict_in_pieces(&self, samples: &Samples, pieces: &Pieces, device: Device) -> Result<Vec<f32>, Error> {
        samples.check_for(&self.task)?;
        require(pieces.points > 0, || Refusal::new("pieces", "at least 1 point", "0"))?;
        let sizes = self.sizes()?;
        let total = samples.times.saturating_mul(samples.total_points()).saturating_mul(samples.outputs);
        let mut predictions = memory::reserve(total)
            .map_err(|reason| Refusal::about("the prediction", reason.to_string()).of(Kind::OutOfSpace))?;
        let rolls = self.task.time.mode().is_roll_out();
        for sample in 0..samples.count {
            let mut given = rolls.then(|| self.task.encode_inputs(samples.input_of(sample), samples.functions));
            for time in 0..samples.times {
                let window = given.as_ref().map(|given| self.task.shown(given, samples.functions, time));
                let walk = Walk {
                    operator: self,
                    samples,
                    sample,
                    time,
                    pieces,
                    sizes: &sizes,
                    device,
                    window: window.as_deref(),
                };
                let mut found = Found { physical: &mut predictions, normalised: Vec::new() };
                walk.predict(&mut found)?;
                let next = found.normalised;
                if let Some(given) = &mut given {
                    self.advance(given, &next, samples);
                }
            }
        }
        Ok(predictions)
    }

    /// Moves the past snapshots of a roll-out, the first of `[points, functions]`, by one snapshot, `[points, outputs]`.
    fn advance(&self, given: &mut [f32], found: &[f32], samples: &Samples) {
        let (width, end) = (samples.outputs, self.task.time.past() * samples.outputs);
        for (point, found) in given.chunks_exact_mut(samples.functions).zip(found.chunks_exact(width)) {
            point.copy_within(width..end, 0);
            point[end - width..end].copy_from_slice(found);
        }
    }

    /// Refuses models and tasks that cannot be divided, and returns the sizes between stages.
    fn sizes(&self) -> Result<Sizes, Error> {
        self.check()?;
        let task = &self.task;
        let whole = task.outputs.iter().find(|field| field.spread == Spread::Sample);
        require(whole.is_none(), || {
            let found = whole.map(|field| field.name.clone()).unwrap_or_default();
            Refusal::new("--memory", "outputs with a value at every point", format!("`{found}` of the whole sample"))
        })?;
        require(matches!(task.grid, Grid::Cloud { .. }), || {
            Refusal::new("--memory", "a model of clouds", format!("one of a {}", task.grid))
        })?;
        self.with_model(&Graph::new(), 1, |model, input, _| {
            let features = model.lift(input);
            let sums = model.sums(0, features, ones(input));
            let [_, _, width] = features.dims();
            Ok(Sizes { blocks: model.blocks(), width, sums: sums.dims(), tokens: model.mix(0, sums).dims() })
        })
    }

    /// Builds the model for a piece.
    fn with_model<'g, T>(
        &self,
        graph: &'g Graph,
        points: usize,
        use_it: impl FnOnce(&dyn InPieces<'g>, &Input<'g>, &Parameters<'g>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let grid = Grid::Cloud { points };
        let (parameters, task) = (Parameters::new(graph), self.task.on(grid));
        let row = models::find(&self.model.name)?;
        let model = row.build(&parameters, &task, &self.settings_on(grid)?)?;
        let parts = model.in_pieces().ok_or_else(|| {
            let found = format!("model {} with these settings", row.name);
            Refusal::new("--memory", "lamo with slices, or transolver", found)
        })?;
        let input = Input::declare(graph, &task, 1);
        use_it(parts, &input, &parameters)
    }

    /// The program of a stage for pieces of so many points.
    fn stage(&self, stage: Stage, sizes: &Sizes, points: usize, device: Device) -> Result<Program, Error> {
        bounded(|| {
            let graph = Graph::new();
            self.with_model(&graph, points, |model, input, parameters| {
                self.declare(&graph, model, input, (stage, sizes))?;
                let program = self.compile(&graph, parameters, device)?;
                require(program.sections() == self.sections, || {
                    Refusal::about(format!("model {}", self.model.name), "its parameters are not those of the model")
                })?;
                Ok(program)
            })
        })
    }

    fn declare<'g>(
        &self,
        graph: &'g Graph,
        model: &dyn InPieces<'g>,
        input: &Input<'g>,
        (stage, sizes): (Stage, &Sizes),
    ) -> Result<(), Error> {
        let [_, points, _] = input.positions.dims();
        let mask = || graph.input(MASK, [1, points]);
        let (block, features) = match stage {
            Stage::Mix(block) => {
                graph.output(TOKENS, model.mix(block, graph.input(SUMS, sizes.sums)));
                return Ok(());
            }
            Stage::Lift => (0, model.lift(input)),
            Stage::Expand(block) => {
                let (features, tokens) =
                    (graph.input(FEATURES, [1, points, sizes.width]), graph.input(TOKENS, sizes.tokens));
                (block + 1, model.expand(block, features, tokens))
            }
        };
        if block == sizes.blocks {
            let task = self.task.on(Grid::Cloud { points });
            let found = task.found(model.project(features), input.positions, input.functions);
            graph.output(PREDICTION, task.decoded(found, None));
            if task.time.mode().is_roll_out() {
                graph.output(FOUND, found);
            }
        } else {
            graph.output(SUMS, model.sums(block, features, mask()));
            graph.output(NEXT, features);
        }
        Ok(())
    }
}

/// `[batch, points]` a mask of all points.
fn ones<'g>(input: &Input<'g>) -> Tensor<'g> {
    let [batch, points, _] = input.positions.dims();
    input.positions.graph().fill(1.0, [batch, points])
}

/// The way of one sample at one time through all stages.
struct Walk<'a> {
    operator: &'a Operator,
    samples: &'a Samples,
    sample: usize,
    time: usize,
    pieces: &'a Pieces,
    sizes: &'a Sizes,
    device: Device,
    /// `[points, shown]` the normalised functions that a roll-out shows the model at this time.
    window: Option<&'a [f32]>,
}

/// What a walk ends with.
struct Found<'a> {
    /// All predictions so far, in physical units.
    physical: &'a mut Vec<f32>,
    /// `[points, outputs]` of a roll-out at this time.
    normalised: Vec<f32>,
}

impl Walk<'_> {
    /// Appends the prediction.
    fn predict(&self, predictions: &mut Found<'_>) -> Result<(), Error> {
        let mut features = Features::new(self.points(), self.sizes.width, self.pieces.folder.as_deref())?;
        let mut sums = self.pass(Stage::Lift, &mut features, &[], predictions)?;
        for block in 0..self.sizes.blocks {
            let mut mixer = self.operator.stage(Stage::Mix(block), self.sizes, 1, self.device)?;
            mixer.try_write(SUMS, &sums)?;
            mixer.try_run()?;
            let tokens = mixer.try_read(TOKENS)?.to_vec();
            sums = self.pass(Stage::Expand(block), &mut features, &tokens, predictions)?;
        }
        Ok(())
    }

    fn points(&self) -> usize {
        self.samples.points_of(self.sample)
    }

    /// One stage of all pieces: the sums for the next block, or nothing where the predictions were appended.
    fn pass(
        &self,
        stage: Stage,
        features: &mut Features,
        tokens: &[f32],
        predictions: &mut Found<'_>,
    ) -> Result<Vec<f32>, Error> {
        let points = self.pieces.points.min(self.points());
        let mut program = self.operator.stage(stage, self.sizes, points, self.device)?;
        let is_last = stage == Stage::Expand(self.sizes.blocks - 1);
        if !tokens.is_empty() {
            program.try_write(TOKENS, tokens)?;
        }
        let mut sums = vec![0.0_f64; self.sizes.sums.iter().product()];
        let (mut rows, mut first) = (Vec::new(), 0);
        while first < self.points() {
            let piece = first..(first + points).min(self.points());
            if stage == Stage::Lift || is_last {
                self.write_inputs(&mut program, &piece, points)?;
            }
            if stage != Stage::Lift {
                features.read(&piece, &mut rows)?;
                rows.resize(points * self.sizes.width, 0.0);
                program.try_write(FEATURES, &rows)?;
            }
            if !is_last {
                program
                    .try_write(MASK, &(0..points).map(|point| f32::from(point < piece.len())).collect::<Vec<_>>())?;
            }
            program.try_run()?;
            if is_last {
                let count = piece.len() * self.samples.outputs;
                predictions.physical.extend(&program.try_read(PREDICTION)?[..count]);
                if self.window.is_some() {
                    predictions.normalised.extend(&program.try_read(FOUND)?[..count]);
                }
            } else {
                let found = program.try_read(SUMS)?;
                sums.iter_mut().zip(found).for_each(|(sum, value)| *sum += f64::from(*value));
                features.write(&piece, &program.try_read(NEXT)?[..piece.len() * self.sizes.width])?;
            }
            first = piece.end;
        }
        Ok(sums.into_iter().map(|sum| sum as f32).collect())
    }

    /// Writes what is given at the points of a piece; a short piece is filled with its last point.
    fn write_inputs(&self, program: &mut Program, piece: &Range<usize>, points: usize) -> Result<(), Error> {
        let (task, samples): (&Task, &Samples) = (&self.operator.task, self.samples);
        let filled = |values: &[f32], width: usize| -> Vec<f32> {
            let own = &values[piece.start * width..piece.end * width];
            let last = &own[own.len() - width..];
            own.iter().copied().chain((piece.len()..points).flat_map(|_| last.iter().copied())).collect()
        };
        let positions = filled(samples.positions_of(self.sample), samples.space);
        program.try_write("positions", &task.encode_positions(&positions))?;
        if samples.functions > 0 {
            let inputs = match self.window {
                Some(window) => filled(window, task.input_channels()),
                None => {
                    task.encode_inputs(&filled(samples.input_of(self.sample), samples.functions), samples.functions)
                }
            };
            program.try_write("functions", &inputs)?;
        }
        if task.time.is_input() {
            program.try_write("time", &[task.time.fraction(self.time)])?;
        }
        Ok(())
    }
}

/// `[points, width]` the features of all points between two stages.
enum Features {
    Memory { values: Vec<f32>, width: usize },
    File { file: File, path: PathBuf, width: usize },
}

impl Features {
    fn new(points: usize, width: usize, folder: Option<&Path>) -> Result<Features, Error> {
        let Some(folder) = folder else {
            let values = memory::filled(0.0, points.saturating_mul(width));
            let values = values.map_err(|reason| {
                Refusal::about("the features of the points", reason.to_string()).of(Kind::OutOfSpace)
            })?;
            return Ok(Features::Memory { values, width });
        };
        let fails = |path: &Path, reason: std::io::Error| {
            Refusal::about(path.display().to_string(), format!("cannot be written: {reason}")).of(Kind::of_io(&reason))
        };
        let mut number = 0;
        loop {
            let path = folder.join(format!("lamo-features-{}-{number}", std::process::id()));
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Features::File { file, path, width }),
                Err(reason) if reason.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(reason) => return Err(fails(&path, reason).into()),
            }
        }
    }

    /// Reads the rows of a piece.
    fn read(&mut self, piece: &Range<usize>, rows: &mut Vec<f32>) -> Result<(), Error> {
        rows.clear();
        match self {
            Features::Memory { values, width } => rows.extend(&values[piece.start * *width..piece.end * *width]),
            Features::File { file, path, width } => {
                let mut bytes = vec![0; 4 * *width * piece.len()];
                let read = file.seek(SeekFrom::Start(4 * (*width * piece.start) as u64));
                read.and_then(|_| file.read_exact(&mut bytes)).map_err(|reason| broken(path, &reason))?;
                rows.extend(bytes.as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value)));
            }
        }
        Ok(())
    }

    /// Writes the rows of a piece.
    fn write(&mut self, piece: &Range<usize>, rows: &[f32]) -> Result<(), Error> {
        match self {
            Features::Memory { values, width } => {
                values[piece.start * *width..piece.end * *width].copy_from_slice(rows);
            }
            Features::File { file, path, width } => {
                let bytes: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
                let written = file.seek(SeekFrom::Start(4 * (*width * piece.start) as u64));
                written.and_then(|_| file.write_all(&bytes)).map_err(|reason| broken(path, &reason))?;
            }
        }
        Ok(())
    }
}

fn broken(path: &Path, reason: &std::io::Error) -> Refusal {
    Refusal::about(path.display().to_string(), reason.to_string()).of(Kind::of_io(reason))
}

impl Drop for Features {
    fn drop(&mut self) {
        if let Features::File { path, .. } = self {
            let _ = std::fs::remove_file(path); // a file that stays is only a waste
        }
    }
}
