//! Snapshots that a model predicts all at once, as the time series that they are.
//!
//! With `data.time = steady` the snapshots of an output are functions of their own: targets are
//! `[count, points, Σ snapshots · channels]`. Errors and pictures are of times, and runs on the same samples have the
//! same test samples in whichever way they predict them, so all of these see `[count, snapshots, points, Σ channels]`.

use crate::data::Samples;
use crate::task::{Field, Normalisers, Task};

/// A task with all snapshots at once, and its samples, as if each snapshot were asked for by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The task; it has no normalisers, because nothing is to be predicted.
    pub task: Task,
    /// The samples.
    pub samples: Samples,
    /// Functions of each output field in one snapshot.
    widths: Vec<usize>,
}

impl Series {
    /// `None` unless all outputs are predicted at once and have the same number of snapshots, at least two.
    pub fn of(task: &Task, samples: &Samples) -> Option<Series> {
        let task = Series::task_of(task)?;
        let widths: Vec<usize> = task.outputs.iter().map(Field::width).collect();
        let (times, outputs) = (task.time.count(), widths.iter().sum());
        let mut series = Series { task, samples: Samples { times, outputs, ..samples.clone() }, widths };
        series.samples.targets = series.values(&samples.targets);
        Some(series)
    }

    /// The task of [`Series::of`].
    pub fn task_of(task: &Task) -> Option<Task> {
        let snapshots = task.outputs.first()?.length();
        let alike = task.outputs.iter().all(|field| field.length() == snapshots);
        let at_once = !task.time.is_series() && snapshots > 1 && alike;
        at_once.then(|| Task { normalisers: Normalisers::default(), ..task.clone() }.by_time(snapshots))
    }

    /// `[count, points, Σ snapshots · channels]` → `[count, snapshots, points, Σ channels]`; nothing of nothing.
    pub fn values(&self, stacked: &[f32]) -> Vec<f32> {
        let Samples { count, times: snapshots, outputs, .. } = self.samples;
        let functions = snapshots * outputs;
        let mut values = Vec::with_capacity(stacked.len());
        let mut rest = stacked;
        for sample in 0..if stacked.is_empty() { 0 } else { count } {
            let (own, others) = rest.split_at(self.samples.points_of(sample) * functions);
            rest = others;
            for snapshot in 0..snapshots {
                for point in own.chunks_exact(functions) {
                    let mut first = 0;
                    for width in &self.widths {
                        values.extend_from_slice(&point[first + snapshot * width..][..*width]);
                        first += snapshots * width;
                    }
                }
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Time;
    use lamo_geometry::Grid;

    const LINE: Grid = Grid::Line { points: 2 };

    /// Two snapshots of a field of one channel and of one with two channels, on a line of two points.
    fn task() -> Task {
        let field = |name: &str, width| Field { snapshots: Some(2), ..Field::plain(name, width) };
        Task { outputs: vec![field("p", 1), field("u", 2)], ..Task::plain(LINE, 1, 1, 1) }
    }

    #[test]
    fn functions_of_a_point_become_snapshots_of_all_fields() {
        let rows = [[1.0, 2.0, 10.0, 11.0, 20.0, 21.0], [3.0, 4.0, 12.0, 13.0, 22.0, 23.0]];
        let one: Vec<f32> = rows.concat();
        let two: Vec<f32> = one.iter().map(|value| value + 100.0).collect();
        let samples = Samples::new(LINE, 1, vec![0.0; 4], 6, [one, two].concat()).unwrap();
        let series = Series::of(&task(), &samples).unwrap();
        let expected = [1.0, 10.0, 11.0, 3.0, 12.0, 13.0, 2.0, 20.0, 21.0, 4.0, 22.0, 23.0];
        assert_eq!(series.samples.targets[..12], expected);
        assert_eq!(series.samples.targets[12..], expected.map(|value| value + 100.0));
        assert_eq!((series.samples.times, series.samples.outputs), (2, 3));
        assert_eq!(series.task.output_channels(), 3);
        series.samples.check().unwrap();
    }

    #[test]
    fn samples_of_different_sizes_keep_their_own_points() {
        let task = Task { outputs: vec![Field { snapshots: Some(2), ..Field::plain("p", 1) }], ..task() };
        let cloud = Samples::cloud(2, (1, vec![0.0; 4]), (1, vec![0.0; 4]), (2, (0..8).map(|n| n as f32).collect()));
        // one sample of a single point, then one of three
        let samples = Samples { offsets: vec![0, 1, 4], ..cloud.unwrap() };
        let series = Series::of(&task, &samples).unwrap();
        assert_eq!(series.samples.targets, [0.0, 1.0, 2.0, 4.0, 6.0, 3.0, 5.0, 7.0]);
    }

    #[test]
    fn other_tasks_are_as_they_are() {
        let samples = Samples::new(LINE, 1, vec![0.0; 4], 6, vec![1.0; 24]).unwrap();
        let others = [
            Task::plain(LINE, 1, 1, 6),
            Task { time: Time::ByTime { count: 2, clock: Vec::new() }, ..task() },
            Task {
                outputs: vec![Field { snapshots: Some(3), ..task().outputs[0].clone() }, task().outputs[1].clone()],
                ..task()
            },
        ];
        for other in others {
            assert_eq!(Series::of(&other, &samples), None, "{other:?}");
        }
    }
}
