//! How time enters a task. Only this file tells the three ways apart:
//!
//! - steady: u = G(f);
//! - roll-out: uₖ₊₁ = G(uₖ₋ₚ₊₁, …, uₖ, f), trained on the true snapshots (teacher forcing), predicted from its own;
//! - by time: u(t) = G(f, t), each t by itself, scaled from 0 at the first time to 1 at the last.
//!
//! A roll-out sees functions `[batch, points, past · width + static]`: the past snapshots, oldest first, then the fields
//! beside them (`task/beside.rs`). `Time::training_pair` cuts every window of a series out of the truth; `Time::window` and
//! `Task::advance` step a window on the device.

mod clock;

use self::clock::require_growing;
use super::field::{self, Field, Spread, Valued, functions};
use super::normaliser::Normaliser;
use super::task::{MOST_CHANNELS, within};
use crate::error::{Error, Refusal, counted, require};
use crate::random::shuffle;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Tensor};
use serde::{Deserialize, Serialize};

/// Makes the random order of times independent of the order of samples.
const TIMES: u64 = 0x7469_6d65;

/// State of a program that predicts: the input window of a roll-out, `[batch, points, past · width + static]`.
pub(crate) const WINDOW: &str = "window";

/// Role of time, before any data are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMode {
    /// Not at all.
    Steady,
    /// A series is continued snapshot by snapshot.
    RollOut {
        /// Snapshots given.
        past: usize,
    },
    /// Each time is asked for by itself.
    ByTime,
}

/// How time enters a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Time {
    /// Not at all.
    Steady,
    /// A series is continued snapshot by snapshot: the model maps `past` of them to the next.
    RollOut {
        /// Snapshots given.
        past: usize,
        /// Snapshots asked for.
        snapshots: usize,
        /// Times of the snapshots of the training series, past snapshots included; empty where they are unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        clock: Vec<f64>,
    },
    /// The model is asked for each of `count` times by itself.
    ByTime {
        /// Number of times.
        count: usize,
        /// The times; empty where they are unknown, which means equal spacing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        clock: Vec<f64>,
    },
}

/// Inputs and targets of samples, arranged for a task.
pub(crate) struct Arranged {
    /// Functions given at each point.
    pub(crate) functions: usize,
    /// `[count, points, functions]`
    pub(crate) inputs: Vec<f32>,
    /// Times at which outputs are asked for.
    pub(crate) times: usize,
    /// Functions asked for at each point and time.
    pub(crate) outputs: usize,
    /// `[count, times, points, outputs]`
    pub(crate) targets: Vec<f32>,
}

/// The time that a step of a by-time task predicts for each sample of a batch.
pub(crate) struct Asked {
    /// Rows `sample · count + time` of the targets.
    pub(crate) rows: Vec<u32>,
    /// The times as fractions.
    pub(crate) times: Vec<f32>,
}

impl TimeMode {
    /// True when the past of the outputs is the input.
    pub fn is_roll_out(self) -> bool {
        matches!(self, TimeMode::RollOut { .. })
    }

    /// Whether outputs at several times are asked for.
    pub fn is_series(self) -> bool {
        self != TimeMode::Steady
    }

    /// Whether the model has an input for the time.
    pub(crate) fn is_input(self) -> bool {
        self == TimeMode::ByTime
    }

    /// Optimiser steps per batch, and windows of a sample in it, where the outputs have so many snapshots.
    pub(crate) fn turns_and_windows(self, snapshots: usize) -> (usize, usize) {
        match self {
            TimeMode::Steady => (1, 1),
            TimeMode::RollOut { past } => (1, snapshots.saturating_sub(past).max(1)),
            TimeMode::ByTime => (snapshots, 1),
        }
    }

    /// The time of a task whose targets have `times` times each, with the clock of its data.
    pub fn of(self, times: usize, clock: &[f64]) -> Result<Time, Refusal> {
        match self {
            TimeMode::Steady => {
                require(times == 1, || {
                    let expected = "relative-l2-of-frames or relative-l2-of-times for samples with several times";
                    Refusal::new("train.loss", expected, format!("a loss for steady fields and {times} times"))
                })?;
                Ok(Time::Steady)
            }
            TimeMode::RollOut { past } => {
                require_growing(clock)?;
                Ok(Time::RollOut { past, snapshots: times, clock: clock.to_vec() })
            }
            TimeMode::ByTime => {
                let clock = if clock.len() == times { clock } else { &[] };
                require_growing(clock)?;
                Ok(Time::ByTime { count: times, clock: clock.to_vec() })
            }
        }
    }

    /// Inputs and targets from the values of fields, `[count, ...]` each.
    pub(crate) fn arrange(self, given: Valued<'_>, asked: Valued<'_>, grid: Grid) -> Result<Arranged, Refusal> {
        let width: usize = asked.0.iter().map(Field::width).sum();
        let snapshots = asked.0[0].length();
        let series = |key: &str, least: usize| {
            let alike = asked.0.iter().all(|field| field.length() == snapshots);
            require(alike && snapshots >= least, || {
                let expected = format!("outputs of at least {least} snapshots, the same number for all");
                Refusal::new(key, expected, format!("{snapshots} in `{}`", asked.0[0].name))
            })
        };
        let (inputs, static_functions) = functions(given, grid);
        Ok(match self {
            TimeMode::Steady => {
                let (targets, outputs) = functions(asked, grid);
                Arranged { functions: static_functions, inputs, times: 1, outputs, targets }
            }
            TimeMode::ByTime => {
                series("train.loss = relative-l2-of-times", 2)?;
                let targets = field::gather(asked.0, asked.1, grid, [0, snapshots]);
                Arranged { functions: static_functions, inputs, times: snapshots, outputs: width, targets }
            }
            TimeMode::RollOut { past } => {
                require(past > 0, || Refusal::new("data.past", "at least 1 snapshot", "0"))?;
                series("data.past", past + 1)?;
                let window = field::gather(asked.0, asked.1, grid, [0, past]);
                let window = field::stack(&window, [past, grid.points(), width]);
                let inputs = beside(&window, past * width, &inputs, static_functions);
                let targets = field::gather(asked.0, asked.1, grid, [past, snapshots]);
                let functions = past * width + static_functions;
                Arranged { functions, inputs, times: snapshots - past, outputs: width, targets }
            }
        })
    }
}

/// `[rows, left + right]` of `[rows, left]` and `[rows, right]`.
fn beside(one: &[f32], left: usize, other: &[f32], right: usize) -> Vec<f32> {
    if right == 0 {
        return one.to_vec();
    }
    let rows = one.chunks_exact(left).zip(other.chunks_exact(right));
    rows.flat_map(|(one, other)| one.iter().chain(other)).copied().collect()
}

/// Order in which a sample takes its times. Every sample and epoch has its own order; `index` counts them.
pub fn order_of_times(count: usize, seed: u64, index: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    shuffle(&mut order, seed ^ TIMES, index as u64);
    order
}

impl Time {
    /// The way time enters.
    pub fn mode(&self) -> TimeMode {
        match *self {
            Time::Steady => TimeMode::Steady,
            Time::RollOut { past, .. } => TimeMode::RollOut { past },
            Time::ByTime { .. } => TimeMode::ByTime,
        }
    }

    /// Refuses counts of 0, a clock or fields of other lengths, and times that do not grow.
    pub(crate) fn check(&self, outputs: &[Field]) -> Result<(), Refusal> {
        let length = match *self {
            Time::Steady => return Ok(()),
            Time::RollOut { past, snapshots, .. } => {
                within("past", past, MOST_CHANNELS)?;
                within("snapshots", snapshots, MOST_CHANNELS)?;
                past + snapshots
            }
            Time::ByTime { count, .. } => {
                within("times", count, MOST_CHANNELS)?;
                count
            }
        };
        let clock = self.clock();
        require(clock.is_empty() || clock.len() == length, || {
            Refusal::new("clock", format!("{length} times"), clock.len().to_string())
        })?;
        require_growing(clock)?;
        let other = outputs.iter().find(|field| field.snapshots.is_some_and(|snapshots| snapshots != length));
        other.map_or(Ok(()), |field| {
            let found = format!("{} in `{}`", field.length(), field.name);
            Err(Refusal::new("outputs", counted(length, "snapshot"), found))
        })
    }

    /// Windows of a sample in one batch: one for every snapshot of a teacher-forced series.
    pub fn windows(&self) -> usize {
        if let Time::RollOut { snapshots, .. } = self { *snapshots } else { 1 }
    }

    /// Optimiser steps per batch: one for each time that is asked for by itself.
    pub fn turns(&self) -> usize {
        if let Time::ByTime { count, .. } = self { *count } else { 1 }
    }

    /// Times of a sample at which outputs are asked for.
    pub fn count(&self) -> usize {
        self.windows().max(self.turns())
    }

    /// Snapshots that a roll-out is given; 0 elsewhere.
    pub fn past(&self) -> usize {
        if let Time::RollOut { past, .. } = self { *past } else { 0 }
    }

    /// Whether outputs at several times are asked for.
    pub fn is_series(&self) -> bool {
        self.mode().is_series()
    }

    /// The mapping in words, such as `permeability to pressure`. Without input fields, the input is the mesh.
    pub fn describe(&self, inputs: &str, outputs: &str) -> String {
        match self {
            Time::Steady => format!("{} to {outputs}", or_mesh(inputs)),
            Time::RollOut { past, snapshots, .. } => {
                let beside = if inputs.is_empty() { String::new() } else { format!(" and {inputs}") };
                format!("{} of {outputs}{beside} to the next {snapshots}", counted(*past, "snapshot"))
            }
            Time::ByTime { count, .. } => {
                format!("{} to {outputs} at {}", or_mesh(inputs), counted(*count, "time"))
            }
        }
    }

    /// Whether the model has an input for the time.
    pub fn is_input(&self) -> bool {
        matches!(self, Time::ByTime { .. })
    }

    /// Times of the snapshots of the training series; empty where they are unknown.
    pub fn clock(&self) -> &[f64] {
        match self {
            Time::Steady => &[],
            Time::RollOut { clock, .. } | Time::ByTime { clock, .. } => clock,
        }
    }

    /// Times of the outputs: the clock without the past snapshots of a roll-out.
    pub fn output_clock(&self) -> &[f64] {
        self.clock().get(self.past()..).unwrap_or_default()
    }

    /// The time number `index`, from 0 to 1.
    pub fn fraction(&self, index: usize) -> f32 {
        let even = index as f32 / (self.turns().max(2) - 1) as f32;
        match self {
            Time::ByTime { clock, .. } => fraction(clock, index).unwrap_or(even),
            Time::Steady | Time::RollOut { .. } => even,
        }
    }

    /// True when both predict the same snapshots; their clocks may start at different times.
    pub(crate) fn is_like(&self, other: &Time) -> bool {
        let fractions = |time: &Time| (0..time.turns()).map(|index| time.fraction(index)).collect::<Vec<_>>();
        self.mode() == other.mode() && self.count() == other.count() && fractions(self) == fractions(other)
    }

    /// Functions a model is given for these fields.
    pub(crate) fn input_channels(&self, inputs: &[Field], outputs: &[Field]) -> usize {
        let given: usize = inputs.iter().map(Field::functions).sum();
        match self {
            Time::RollOut { past, .. } => past * outputs.iter().map(Field::width).sum::<usize>() + given,
            Time::Steady | Time::ByTime { .. } => given,
        }
    }

    /// Functions a model is asked for at one time.
    pub(crate) fn output_channels(&self, outputs: &[Field]) -> usize {
        match self {
            Time::Steady => outputs.iter().map(Field::functions).sum(),
            Time::RollOut { .. } | Time::ByTime { .. } => outputs.iter().map(Field::width).sum(),
        }
    }

    /// Which channels of inputs, of which so many are shown, and of outputs the model sees as they are.
    pub(crate) fn raw_channels(
        &self,
        inputs: &[Field],
        shown: &dyn Fn(&Field) -> usize,
        outputs: &[Field],
    ) -> [Vec<bool>; 2] {
        let raw = |fields: &[Field], count: &dyn Fn(&Field) -> usize| -> Vec<bool> {
            fields.iter().flat_map(|field| std::iter::repeat_n(field.raw, count(field))).collect()
        };
        let given = raw(inputs, shown);
        match self {
            Time::Steady => [given, raw(outputs, &Field::functions)],
            Time::ByTime { .. } => [given, raw(outputs, &Field::width)],
            Time::RollOut { past, .. } => {
                let outputs = raw(outputs, &Field::width);
                [[outputs.repeat(*past), given].concat(), outputs]
            }
        }
    }

    /// The normaliser of `[..., functions]` inputs. The snapshots of a roll-out are outputs and inputs in turn, so both take
    /// the normaliser of the outputs; the fields beside them are fitted if `fitted`.
    pub(crate) fn fit_inputs(
        &self,
        inputs: &[f32],
        functions: usize,
        outputs: (usize, Option<&Normaliser>),
        fitted: bool,
    ) -> Result<Option<Normaliser>, Error> {
        let (width, normaliser) = outputs;
        let Time::RollOut { past, .. } = self else {
            return Ok((fitted && functions > 0).then(|| Normaliser::fit_given(inputs, functions)).transpose()?);
        };
        let (window, others) = (past * width, functions - past * width);
        let others = match others {
            0 => None,
            count => {
                let values: Vec<f32> =
                    inputs.chunks_exact(functions).flat_map(|point| &point[window..]).copied().collect();
                Some(if fitted { Normaliser::fit_given(&values, count)? } else { Normaliser::identity(count) })
            }
        };
        let window = normaliser.map(|normaliser| normaliser.repeat(*past));
        Ok(match (window, others) {
            (window, None) => window,
            (None, Some(others)) if fitted => Some(Normaliser::identity(past * width).and(others)),
            (None, Some(_)) => None,
            (Some(window), Some(others)) => Some(window.and(others)),
        })
    }

    /// Refuses a series whose times or number of times differ from the training series; unknown times are not compared. A
    /// roll-out accepts series of any length with the same interval.
    pub fn check_clock(&self, count: usize, clock: &[f64]) -> Result<(), Refusal> {
        let interval = |clock: &[f64]| clock.windows(2).map(|pair| pair[1] - pair[0]).next();
        match self {
            Time::Steady => Ok(()),
            Time::RollOut { clock: learned, .. } => match (interval(learned), interval(clock)) {
                (Some(learned), Some(found)) => require((learned - found).abs() < 1e-5 * learned.abs(), || {
                    Refusal::new(
                        "times",
                        format!("snapshots {learned} apart, as in training"),
                        format!("{found} apart"),
                    )
                }),
                _ => Ok(()),
            },
            Time::ByTime { count: learned, clock: times } => {
                require(count == *learned, || {
                    Refusal::new("times", format!("the {learned} times of the training"), count.to_string())
                })?;
                let reach = times.last().zip(times.first()).map_or(0.0, |(last, first)| last - first);
                let mut pairs = times.iter().zip(clock).enumerate();
                let apart = pairs.find(|(_, (learned, found))| (*learned - *found).abs() > 1e-5 * reach);
                apart.map_or(Ok(()), |(place, (learned, found))| {
                    let expected = format!("snapshot {place} at {learned}, as in training");
                    Err(Refusal::new("times", expected, format!("it at {found}"))
                        .advise("use snapshots at the same times"))
                })
            }
        }
    }

    /// The times of one optimiser step of a by-time task, for the rows of samples in the program. `index` counts (epoch, sample).
    pub(crate) fn ask(&self, samples: &[usize], turn: usize, seed: u64, index: &[usize]) -> Option<Asked> {
        let Time::ByTime { count, .. } = self else { return None };
        let times = index.iter().map(|&index| order_of_times(*count, seed, index)[turn]);
        let chosen = samples.iter().copied().zip(times);
        let (rows, times) = chosen.map(|(sample, time)| ((sample * count + time) as u32, self.fraction(time))).unzip();
        Some(Asked { rows, times })
    }

    /// The input of the training program and the targets.
    ///
    /// `past` is `[batch, points, functions]`, `series` the targets `[batch, times, points, width]`. The windows of a
    /// roll-out are independent, so they form one batch: window `snapshot · batch + sample`. `beside`: see [`super::Task::beside_at`].
    pub(crate) fn training_pair<'g>(
        &self,
        positions: Tensor<'g>,
        (given, beside): (Option<Tensor<'g>>, &dyn Fn(Tensor<'g>, usize) -> Option<Tensor<'g>>),
        series: impl FnOnce() -> Tensor<'g>,
        asked: impl FnOnce() -> Tensor<'g>,
        normaliser: Option<&Normaliser>,
    ) -> (Tensor<'g>, Option<Tensor<'g>>, Tensor<'g>) {
        match (self, given) {
            (Time::RollOut { past, .. }, Some(given)) => {
                let shown = (given, beside);
                let (positions, windows, target) = teacher_forced(positions, shown, *past, series(), normaliser);
                (positions, Some(windows), target)
            }
            (Time::ByTime { .. }, given) => (positions, given, asked()),
            (_, given) => {
                let series = series();
                let [batch, times, points, width] = series.dims();
                (positions, given, series.reshape([batch * times, points, width]))
            }
        }
    }

    /// The functions of a roll-out as a state of a program that predicts, `[batch, points, functions]`; `None` where the
    /// functions do not change from time to time.
    pub(crate) fn window<'g>(&self, graph: &'g Graph, shape: [usize; 3]) -> Option<Tensor<'g>> {
        matches!(self, Time::RollOut { .. }).then(|| graph.state(WINDOW, shape))
    }

    /// The last of the past snapshots among the functions of a roll-out, `[batch, points, width]`.
    pub(crate) fn last_snapshot<'g>(&self, functions: Tensor<'g>, width: usize) -> Option<Tensor<'g>> {
        let Time::RollOut { past, .. } = self else { return None };
        Some(functions.slice(2, (past - 1) * width, past * width))
    }

    /// Mean and deviation of the change from one snapshot to the next, from inputs `[points, functions]` and targets
    /// `[times, points, width]` of each sample; `None` where there is no roll-out.
    pub(crate) fn fit_change<'a>(
        &self,
        samples: impl Iterator<Item = (&'a [f32], &'a [f32])>,
        [functions, width]: [usize; 2],
    ) -> Result<Option<Normaliser>, Refusal> {
        let Time::RollOut { past, snapshots, .. } = self else { return Ok(None) };
        let last = (past - 1) * width;
        let changes = samples.flat_map(|(given, series)| {
            let first = given.chunks_exact(functions).flat_map(move |point| &point[last..last + width]);
            let before = first.chain(&series[..series.len() / snapshots * (snapshots - 1)]);
            series.iter().zip(before).map(|(after, before)| after - before)
        });
        Normaliser::fit_given(&changes.collect::<Vec<_>>(), width).map(Some)
    }

    /// The window after one more snapshot, `[batch, points, functions]`; `follow` has the functions behind the past snapshots then.
    pub(crate) fn moved<'g>(
        &self,
        window: Tensor<'g>,
        found: Tensor<'g>,
        follow: impl FnOnce(Tensor<'g>) -> Tensor<'g>,
    ) -> Tensor<'g> {
        let Time::RollOut { past, .. } = self else { return window };
        let ([_, _, functions], [_, _, width]) = (window.dims(), found.dims());
        let end = past * width;
        let older = (*past > 1).then(|| window.slice(2, width, end));
        let others = (functions > end).then(|| follow(window.slice(2, end, functions)));
        let parts: Vec<Tensor<'g>> = older.into_iter().chain([found]).chain(others).collect();
        if let [only] = parts[..] { only } else { Tensor::concatenate(&parts, 2) }
    }

    /// The fields that a prediction is made from.
    pub(crate) fn given_fields(&self, inputs: &[Field], outputs: &[Field]) -> Vec<Field> {
        let past = match self {
            Time::RollOut { past, .. } => {
                outputs.iter().map(|field| Field { snapshots: Some(*past), ..field.clone() }).collect()
            }
            Time::Steady | Time::ByTime { .. } => Vec::new(),
        };
        past.into_iter().chain(inputs.iter().cloned()).collect()
    }

    /// `[count, points, functions]` from the values of [`Time::given_fields`].
    pub(crate) fn arrange_given(&self, (fields, values): Valued<'_>, outputs: usize, grid: Grid) -> Vec<f32> {
        let Time::RollOut { past, .. } = self else { return functions((fields, values), grid).0 };
        let series = fields.iter().scan(0, |width, field| {
            *width += field.width();
            Some(*width)
        });
        let count = series.take_while(|&width| width <= outputs).count();
        let window = field::gather(&fields[..count], &values[..count], grid, [0, *past]);
        let window = field::stack(&window, [*past, grid.points(), outputs]);
        let (others, width) = functions((&fields[count..], &values[count..]), grid);
        beside(&window, past * outputs, &others, width)
    }

    /// How many times are predicted: `asked` snapshots of a roll-out, else those of the training.
    pub(crate) fn predicted_times(&self, asked: Option<usize>) -> Result<usize, Refusal> {
        match (self, asked) {
            (Time::RollOut { .. }, Some(snapshots)) => Ok(snapshots),
            (_, None) => Ok(self.count()),
            (_, Some(snapshots)) => {
                let sentence =
                    format!("the model does not continue a time series, so it cannot predict {snapshots} snapshots");
                Err(Refusal::said(sentence))
            }
        }
    }

    /// Splits predictions `[count, times, points, outputs]` into the output fields, each `[count, ...its shape]`.
    pub(crate) fn predicted_fields(
        &self,
        outputs: &[Field],
        times: usize,
        points: usize,
        values: &[f32],
    ) -> Vec<(Field, Vec<f32>)> {
        let total = self.output_channels(outputs);
        let mut first = 0; // output function where the field begins
        let mut split = Vec::new();
        for output in outputs {
            let (field, functions) = match self {
                Time::Steady => (output.clone(), output.functions()),
                Time::RollOut { .. } | Time::ByTime { .. } => {
                    (Field { snapshots: Some(times), ..output.clone() }, output.width())
                }
            };
            // A number of the whole sample has the same value at all points.
            let step = if output.spread == Spread::Sample { points } else { 1 };
            let part = values.chunks_exact(total).step_by(step).flat_map(|point| &point[first..first + functions]);
            let part: Vec<f32> = part.copied().collect();
            let part = match self {
                Time::Steady => field::unstack(&part, [field.length(), points, field.width()]),
                Time::RollOut { .. } | Time::ByTime { .. } => part,
            };
            split.push((field, part));
            first += functions;
        }
        split
    }
}

/// The name of the inputs; without input fields, the mesh.
fn or_mesh(inputs: &str) -> &str {
    if inputs.is_empty() { "the mesh" } else { inputs }
}

/// Time `index` of a clock, scaled from 0 at its first time to 1 at its last; `None` where the times are equally spaced.
fn fraction(clock: &[f64], index: usize) -> Option<f32> {
    let (first, last) = (clock.first()?, clock.last()?);
    let part = |time: &f64| (time - first) / (last - first);
    let even = |(index, time): (usize, &f64)| (part(time) - index as f64 / (clock.len() - 1) as f64).abs() < 1e-6;
    if clock.iter().enumerate().all(even) { None } else { clock.get(index).map(|time| part(time) as f32) }
}

/// Pairs every snapshot of the series with the true snapshots before it. Every window repeats the fields that stay.
fn teacher_forced<'g>(
    positions: Tensor<'g>,
    (given, beside): (Tensor<'g>, &dyn Fn(Tensor<'g>, usize) -> Option<Tensor<'g>>),
    past: usize,
    series: Tensor<'g>,
    normaliser: Option<&Normaliser>,
) -> (Tensor<'g>, Tensor<'g>, Tensor<'g>) {
    let graph = series.graph();
    let [batch, snapshots, points, width] = series.dims();
    let ([_, _, space], [_, _, functions]) = (positions.dims(), given.dims());
    let window = past * width;
    let (first, others) = match functions > window {
        true => (given.slice(2, 0, window), Some(given.slice(2, window, functions))),
        false => (given, None),
    };
    let encoded = match normaliser {
        Some(Normaliser { mean, deviation }) => {
            (series - graph.constant(mean, [width])) / graph.constant(deviation, [width])
        }
        None => series,
    };
    let future = encoded.permute(&[0, 2, 1, 3]).reshape([batch, points, snapshots * width]);
    let whole = Tensor::concatenate(&[first, future], 2); // [batch, points, (past + snapshots) · width]
    let cut = |snapshot: usize| {
        let window = whole.slice(2, snapshot * width, snapshot * width + window);
        beside(given, snapshot).or(others).map_or(window, |others| Tensor::concatenate(&[window, others], 2))
    };
    let windows = Tensor::concatenate(&(0..snapshots).map(cut).collect::<Vec<_>>(), 0);
    let positions = positions.reshape([1, batch, points, space]).broadcast_to([snapshots, batch, points, space]);
    let positions = positions.reshape([snapshots * batch, points, space]);
    let target = series.permute(&[1, 0, 2, 3]).reshape([snapshots * batch, points, width]);
    (positions, windows, target)
}

#[cfg(test)]
mod tests;
