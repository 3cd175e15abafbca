//! Predictors that learn nothing, to compare a model with: the mean of the training outputs, persistence (nothing changes),
//! and the output of the training sample whose normalised input is nearest. A model that is not better than these has
//! learned nothing of use. Their error is that of the headline.

use crate::data::Samples;
use crate::task::{Field, Spread, Task};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Products that the search for the nearest sample may take; beyond this it compares every k-th point only. About a second
/// per core.
const MOST_WORK: u64 = 10_000_000_000;
/// Values between two looks at whether a sample is already farther than the nearest so far.
const STRIP: usize = 1024;
/// Sums side by side.
const LANES: usize = 16;

/// Errors of the trivial predictors; `None` where one cannot be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trivial {
    /// The mean of the training outputs at each time and point; over all points where the samples differ in their points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The last snapshot of the input at all times, where the input has the output's past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<f64>,
    /// The output of the training sample with the nearest input; `None` where samples differ in their points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<f64>,
}

impl Trivial {
    /// The errors that could be computed, each with the name of its predictor.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("mean of the training outputs", self.mean),
            ("persistence", self.persistence),
            ("nearest training sample", self.nearest),
        ];
        all.into_iter().filter_map(|(name, error)| Some((name, error?))).collect()
    }

    /// The best of them.
    pub fn best(&self) -> Option<(&'static str, f64)> {
        self.named().into_iter().min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The errors on test samples. `groups` are the output functions whose relative errors are averaged. Without training
    /// samples there is no mean and no nearest sample.
    pub(crate) fn of(task: &Task, groups: &[Range<usize>], train: Option<&Samples>, test: &Samples) -> Trivial {
        let alike = |train: &&Samples| train.grid == test.grid || (train.is_ragged() && test.is_ragged());
        let train = train.filter(|train| alike(train) && train.times == test.times && train.count > 0);
        let error = |predict: &mut dyn FnMut(usize, &mut [f32])| {
            let mut score = Score::new(groups, test.outputs);
            for sample in 0..test.count {
                let mut prediction = vec![0.0; test.target_of(sample).len()];
                predict(sample, &mut prediction);
                score.add(&prediction, test.target_of(sample));
            }
            score.mean()
        };
        let mean = train.and_then(|train| {
            let mean = if test.is_ragged() { mean_over_points(train) } else { mean_output(train) };
            error(&mut |sample, prediction| match test.is_ragged() {
                true => {
                    let times = prediction.chunks_exact_mut(test.points_of(sample) * test.outputs);
                    for (time, mean) in times.zip(mean.chunks_exact(test.outputs)) {
                        time.chunks_exact_mut(test.outputs).for_each(|point| point.copy_from_slice(mean));
                    }
                }
                false => prediction.copy_from_slice(&mean),
            })
        });
        let persistence = past_of_outputs(task).and_then(|source| {
            error(&mut |sample, prediction| {
                let input = test.input_of(sample);
                for (place, value) in prediction.iter_mut().enumerate() {
                    let (point, output) = (place / test.outputs % test.points_of(sample), place % test.outputs);
                    *value = input[point * test.functions + source[output]];
                }
            })
        });
        // Points of samples of different sizes do not belong to each other.
        let nearest = train.filter(|train| !train.is_ragged()).and_then(|train| {
            let nearest = nearest(task, train, test);
            error(&mut |sample, prediction| prediction.copy_from_slice(train.target_of(nearest[sample])))
        });
        Trivial { mean, persistence, nearest }
    }
}

/// Relative errors, averaged over samples and then over groups of outputs.
struct Score<'a> {
    groups: &'a [Range<usize>],
    outputs: usize,
    /// Number and sum of the errors of each group.
    errors: Vec<(f64, f64)>,
}

impl Score<'_> {
    fn new(groups: &[Range<usize>], outputs: usize) -> Score<'_> {
        Score { groups, outputs, errors: vec![(0.0, 0.0); groups.len()] }
    }

    /// Adds a sample, `[times, points, outputs]`.
    fn add(&mut self, prediction: &[f32], truth: &[f32]) {
        for (group, (count, sum)) in self.groups.iter().zip(&mut self.errors) {
            let [mut miss, mut size] = [0.0f64; 2];
            for (found, truth) in prediction.chunks_exact(self.outputs).zip(truth.chunks_exact(self.outputs)) {
                for (&found, &truth) in found[group.clone()].iter().zip(&truth[group.clone()]) {
                    let (found, truth) = (f64::from(found), f64::from(truth));
                    miss += (found - truth) * (found - truth);
                    size += truth * truth;
                }
            }
            if size > 0.0 {
                *count += 1.0;
                *sum += (miss / size).sqrt();
            }
        }
    }

    fn mean(&self) -> Option<f64> {
        let means: Vec<f64> =
            self.errors.iter().filter(|(count, _)| *count > 0.0).map(|(count, sum)| sum / count).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }
}

/// `[times, points, outputs]` the mean over the samples.
fn mean_output(train: &Samples) -> Vec<f32> {
    let mut sums = vec![0.0f64; train.targets.len() / train.count];
    for sample in 0..train.count {
        sums.iter_mut().zip(train.target_of(sample)).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sums.into_iter().map(|sum| (sum / train.count as f64) as f32).collect()
}

/// `[times, outputs]` the mean over the points of all samples.
fn mean_over_points(train: &Samples) -> Vec<f32> {
    let mut sums = vec![0.0f64; train.times * train.outputs];
    for sample in 0..train.count {
        let times = train.target_of(sample).chunks_exact(train.points_of(sample) * train.outputs);
        for (time, sums) in times.zip(sums.chunks_exact_mut(train.outputs)) {
            for point in time.chunks_exact(train.outputs) {
                sums.iter_mut().zip(point).for_each(|(sum, &value)| *sum += f64::from(value));
            }
        }
    }
    sums.into_iter().map(|sum| (sum / train.total_points() as f64) as f32).collect()
}

/// Words that tell the past of a field from its future.
const TENSES: [&str; 17] = [
    "initial", "start", "first", "past", "previous", "before", "old", "input", "in", "output", "out", "next", "after",
    "final", "last", "end", "new",
];

/// A name without numbers and without the words of [`TENSES`]: `u0`, `u_initial` and `u` are the same.
fn stem(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphabetic()).map(str::to_lowercase);
    words.filter(|word| !TENSES.contains(&word.as_str())).collect::<Vec<_>>().concat()
}

/// For each output function, the input function that is its last known value; `None` where the inputs do not have the past
/// of every output.
fn past_of_outputs(task: &Task) -> Option<Vec<usize>> {
    let outputs = task.output_channels();
    if task.time.past() > 0 {
        let last = (task.time.past() - 1) * outputs;
        return Some((last..last + outputs).collect());
    }
    let starts = task.inputs.iter().scan(0, |first, field| {
        let start = *first;
        *first += field.functions();
        Some(start)
    });
    let inputs: Vec<(&Field, usize)> = task.inputs.iter().zip(starts).collect();
    let mut source = Vec::with_capacity(outputs);
    for (output, range) in task.outputs.iter().zip(task.output_ranges()) {
        let alike = |input: &Field| {
            let form = |field: &Field| (field.unit.clone(), field.spread, field.width(), stem(&field.name));
            input.spread == Spread::Points && form(input) == form(output)
        };
        let (input, start) = inputs.iter().find(|(input, _)| alike(input))?;
        let last = start + (input.length() - 1) * input.width();
        source.extend(range.enumerate().map(|(place, _)| last + place % input.width()));
    }
    Some(source)
}

/// What the search compares of each sample: `[count, features]`, and the number of features.
struct Features {
    values: Vec<f32>,
    length: usize,
}

impl Features {
    /// The normalised functions at every `stride`-th point, and with `places` the normalised positions.
    fn of(task: &Task, samples: &Samples, stride: usize, places: bool) -> Features {
        let mut values = Vec::new();
        let every = |values: &[f32], width: usize| -> Vec<f32> {
            values.chunks_exact(width.max(1)).step_by(stride).flatten().copied().collect()
        };
        for sample in 0..samples.count {
            if samples.functions > 0 {
                values
                    .extend(task.encode_inputs(&every(samples.input_of(sample), samples.functions), samples.functions));
            }
            if places {
                values.extend(task.encode_positions(&every(samples.positions_of(sample), samples.space)));
            }
        }
        let length = values.len() / samples.count;
        Features { values, length }
    }

    fn row(&self, sample: usize) -> &[f32] {
        &self.values[sample * self.length..][..self.length]
    }
}

/// For each test sample, the number of the nearest training sample; the first of several.
fn nearest(task: &Task, train: &Samples, test: &Samples) -> Vec<usize> {
    let places = train.positions != test.positions || !train.share_positions();
    let width = train.functions + if places { train.space } else { 0 };
    let pairs = train.count.saturating_mul(test.count);
    let work = pairs.saturating_mul(width).saturating_mul(train.grid.points());
    let stride = (work as u64).div_ceil(MOST_WORK).max(1) as usize;
    let [known, asked] = [train, test].map(|samples| Features::of(task, samples, stride, places));
    let search = |sample: usize| {
        let mut best = (f64::INFINITY, 0);
        for other in 0..train.count {
            if let Some(distance) = closer(asked.row(sample), known.row(other), best.0) {
                best = (distance, other);
            }
        }
        best.1
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = vec![0; test.count];
    std::thread::scope(|scope| {
        for (part, found) in found.chunks_mut(test.count.div_ceil(threads).max(1)).enumerate() {
            let first = part * test.count.div_ceil(threads);
            scope.spawn(move || found.iter_mut().enumerate().for_each(|(place, found)| *found = search(first + place)));
        }
    });
    found
}

/// The squared distance if it is below `bound`.
fn closer(one: &[f32], other: &[f32], bound: f64) -> Option<f64> {
    let mut sum = 0.0f64;
    for (one, other) in one.chunks(STRIP).zip(other.chunks(STRIP)) {
        sum += f64::from(square_distance(one, other));
        if sum >= bound {
            return None;
        }
    }
    (sum < bound).then_some(sum)
}

/// Σ (a − b)² in [`LANES`] sums side by side, which the compiler turns into vector instructions.
fn square_distance(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (lanes, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest = lanes.remainder().iter().zip(others.remainder()).map(|(one, other)| (one - other) * (one - other));
    let rest: f32 = rest.sum();
    for (one, other) in lanes.zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += (one - other) * (one - other);
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Time;
    use lamo_geometry::Grid;

    const LINE: Grid = Grid::Line { points: 2 };

    fn samples(inputs: &[f32], targets: &[f32]) -> Samples {
        Samples::new(LINE, 1, inputs.to_vec(), 1, targets.to_vec()).unwrap()
    }

    fn field(name: &str, unit: &str) -> Field {
        Field { unit: unit.into(), ..Field::plain(name, 1) }
    }

    #[test]
    fn the_mean_and_the_nearest_sample_are_taken_from_the_training_samples() {
        let task = Task::plain(LINE, 1, 1, 1);
        let train = samples(&[0.0, 0.0, 10.0, 10.0], &[1.0, 1.0, 3.0, 5.0]);
        let test = samples(&[9.0, 8.0], &[3.0, 4.0]);
        let whole = 0..1;
        let found = Trivial::of(&task, std::slice::from_ref(&whole), Some(&train), &test);
        assert_eq!((found.mean, found.nearest), (Some(2.0f64.sqrt() / 5.0), Some(0.2)));
        assert_eq!((found.persistence, found.best()), (None, Some(("nearest training sample", 0.2))));
        let without = Trivial::of(&task, std::slice::from_ref(&whole), None, &test);
        assert_eq!((without, without.best()), (Trivial::default(), None));
    }

    #[test]
    fn outputs_count_the_same_whatever_their_size() {
        let task = Task { outputs: vec![field("p", "Pa"), field("w", "mm")], ..Task::plain(LINE, 1, 1, 2) };
        let train = Samples::new(LINE, 1, vec![0.0; 2], 2, vec![1e6, 1.0, 1e6, 1.0]).unwrap();
        let test = Samples::new(LINE, 1, vec![0.0; 2], 2, vec![1e6, 2.0, 1e6, 2.0]).unwrap();
        let mean = |groups: &[Range<usize>]| Trivial::of(&task, groups, Some(&train), &test).mean.unwrap();
        assert_eq!(mean(&task.output_ranges()), 0.25);
        let whole = 0..2;
        assert!(mean(&[whole]) < 1e-6);
    }

    #[test]
    fn persistence_repeats_the_last_snapshot_of_a_series() {
        let time = Time::RollOut { past: 2, snapshots: 2, clock: Vec::new() };
        let task = Task { time, ..Task::plain(LINE, 1, 0, 1) };
        // the snapshots [1, 1] and [3, 4] are given; [3, 4] and [6, 8] follow
        let test = Samples {
            offsets: Vec::new(),
            functions: 2,
            inputs: vec![1.0, 3.0, 1.0, 4.0],
            times: 2,
            targets: vec![3.0, 4.0, 6.0, 8.0],
            ..samples(&[0.0; 2], &[1.0; 2])
        };
        let whole = 0..1;
        let found = Trivial::of(&task, &[whole], None, &test);
        assert_eq!(found.persistence, Some((25.0f64 / 125.0).sqrt()));
    }

    #[test]
    fn persistence_needs_an_input_with_the_unit_and_the_name_of_each_output() {
        let task = |input: Field, output: Field| Task {
            inputs: vec![input],
            outputs: vec![output],
            ..Task::plain(LINE, 1, 1, 1)
        };
        for (input, output, found) in [
            (field("u0", "m"), field("u", "m"), Some(vec![0])),
            (field("u_initial", "m"), field("u_final", "m"), Some(vec![0])),
            (Field { snapshots: Some(3), ..field("u_past", "m") }, field("u", "m"), Some(vec![2])),
            (field("u0", "m"), field("u", "km"), None),
            (field("permeability", "1"), field("pressure", "1"), None),
            (Field { spread: Spread::Sample, ..field("u0", "m") }, field("u", "m"), None),
        ] {
            let names = format!("{} to {}", input.name, output.name);
            assert_eq!(past_of_outputs(&task(input, output)), found, "{names}");
        }
        let vector = |name: &str| Field::plain(name, 2);
        let both = Task {
            inputs: vec![field("a", "1"), vector("v_old")],
            outputs: vec![vector("v")],
            ..Task::plain(LINE, 1, 3, 2)
        };
        assert_eq!(past_of_outputs(&both), Some(vec![1, 2]));
    }

    #[test]
    fn a_distance_of_any_length_is_exact_and_the_search_stops_where_it_is_too_long() {
        for length in [1, 15, 16, 17, 1024, 1025, 5000] {
            let [one, other] = [3.0f32, 1.0].map(|value| vec![value; length]);
            let distance = 4.0 * length as f64;
            assert_eq!(closer(&one, &other, f64::INFINITY), Some(distance), "{length} values");
            assert_eq!(closer(&one, &other, distance), None, "{length} values: not closer than itself");
        }
    }

    #[test]
    fn points_of_their_own_decide_where_there_is_no_other_input() {
        let cloud = Grid::Cloud { points: 1 };
        let at = |places: &[f32], targets: &[f32]| {
            Samples::on_points(cloud, (1, places.to_vec()), (0, Vec::new()), (1, targets.to_vec())).unwrap()
        };
        let (train, test) = (at(&[0.0, 1.0, 2.0], &[5.0, 6.0, 7.0]), at(&[1.9, 0.2], &[7.0, 5.0]));
        let task = Task::plain(cloud, 1, 0, 1);
        assert_eq!(nearest(&task, &train, &test), [2, 0]);
    }
}
