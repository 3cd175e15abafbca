//! Compiled programs of a model, one for each grid and batch size; the last used ones are kept, within a number of points that
//! bounds their memory.
//!
//! A request by itself is computed as `lamo predict` does. Requests are computed together only where that changes no bit. A
//! program of another batch size may add in another order, and a model may couple the samples of a batch, as ONO does. So each
//! size is first compared with the program of one sample: copies of a sample must have its bits, and so must two different samples
//! in one batch. The order of sums depends on shapes alone, so one comparison holds for all samples. On a CPU, a set is cut into the
//! largest batches that have a program: 7 samples are 4 + 2 + 1. A GPU computes a few samples more in the same time, so there a
//! short batch is padded.

use super::{Compute, batch};
use crate::settings::Settings;
use lamo::error::Refusal;
use lamo::experiment::Symmetries;
use lamo::inference::Predictor;
use lamo::run::forward_batch;
use lamo::workflow::Model;
use lamo::{Device, Error, Grid, Kind, Samples};
use std::sync::Arc;

/// Comparisons that are remembered; clouds come in any number of sizes.
const REMEMBERED: usize = 256;

/// The programs of a model.
pub(crate) struct Programs {
    model: Arc<Model>,
    device: Device,
    /// Samples of a batch of several requests at most.
    batch: usize,
    /// Programs that are kept at most.
    most: usize,
    /// Points of all samples of the programs that are kept at most; the last one may have more.
    points: usize,
    /// The last used one last.
    kept: Vec<((Grid, usize), Predictor)>,
    /// Whether the program of a grid and a size has the bits of the program of one sample.
    compared: Vec<((Grid, usize), bool)>,
    /// Found when it is first asked for.
    symmetries: Option<Symmetries>,
}

impl Programs {
    pub(crate) fn new(model: Arc<Model>, settings: &Settings) -> Programs {
        let (batch, most) = (settings.batch.max(1), settings.programs.max(1));
        let (device, points) = (settings.device, settings.limits.points);
        Programs { model, device, batch, most, points, kept: Vec::new(), compared: Vec::new(), symmetries: None }
    }

    /// The samples of the next program of several requests, for what is left.
    fn size(&self, left: usize) -> usize {
        let left = left.min(self.batch);
        match self.device {
            _ if left == self.batch => left,
            Device::Cpu => 1 << left.ilog2(),
            Device::Cuda(_) => left.next_power_of_two().min(self.batch),
        }
    }

    /// The sizes that compute so many samples of several requests.
    fn sizes(&self, count: usize) -> Vec<usize> {
        let (mut sizes, mut left) = (Vec::new(), count);
        while left > 0 {
            let size = self.size(left);
            left = left.saturating_sub(size);
            sizes.push(size);
        }
        sizes
    }

    /// The size of the program with which `lamo predict` computes so many samples.
    fn own_size(&self, count: usize) -> usize {
        forward_batch(self.model.operator().batch, self.device).min(count).max(1)
    }

    fn program(&mut self, grid: Grid, size: usize) -> Result<&mut Predictor, Error> {
        let key = (grid, size);
        let known = match self.kept.iter().position(|(known, _)| *known == key) {
            Some(place) => self.kept.remove(place),
            None => {
                let points = |(grid, size): (Grid, usize)| grid.points().saturating_mul(size);
                let room = self.points.saturating_sub(points(key));
                // Before the new one takes memory.
                while self.kept.len() >= self.most
                    || self.kept.iter().map(|(known, _)| points(*known)).sum::<usize>() > room
                {
                    self.kept.remove(0);
                }
                (key, self.model.operator().predictor(self.device, grid, size)?)
            }
        };
        self.kept.push(known);
        match self.kept.last_mut() {
            Some((_, predictor)) => Ok(predictor),
            None => unreachable!("a program was just added"),
        }
    }

    /// Whether the program of a size has the bits of the program of one sample, on the grid of a sample.
    fn has_the_same_bits(&mut self, size: usize, sample: &Samples) -> Result<bool, Error> {
        let key = (sample.grid, size);
        if let Some((_, same)) = self.compared.iter().find(|(known, _)| *known == key) {
            return Ok(*same);
        }
        let same = size == 1 || {
            let [one, other] = [sample.chosen(&[0]), self.changed(sample)];
            let copies = vec![&one; size];
            let neighbours: Vec<&Samples> = (0..size).map(|place| if place == 0 { &one } else { &other }).collect();
            self.has_the_bits_of_each(&copies)? && self.has_the_bits_of_each(&neighbours)?
        };
        if self.compared.len() >= REMEMBERED {
            self.compared.remove(0);
        }
        self.compared.push((key, same));
        Ok(same)
    }

    /// Whether samples of one each have the same bits in one batch as each by itself.
    fn has_the_bits_of_each(&mut self, samples: &[&Samples]) -> Result<bool, Error> {
        let grid = samples[0].grid;
        let together = self.program(grid, samples.len())?.predict(&batch::joined(samples))?;
        let mut parts = together.chunks(together.len().max(1).div_ceil(samples.len()));
        let mut known: Option<(&Samples, Vec<f32>)> = None;
        for &sample in samples {
            let alone = match known.take() {
                Some((last, alone)) if std::ptr::eq(last, sample) => alone,
                _ => self.program(grid, 1)?.predict(sample)?,
            };
            let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
            if parts.next().map(bits) != Some(bits(&alone)) {
                return Ok(false);
            }
            known = Some((sample, alone));
        }
        Ok(true)
    }

    /// A sample with other values: of its functions, and of its positions unless they are a lattice.
    fn changed(&self, sample: &Samples) -> Samples {
        let mut other = sample.chosen(&[0]);
        let change = |value: &mut f32| *value = 0.1 - 0.5 * *value;
        other.inputs.iter_mut().for_each(change);
        if self.model.operator().task.needs_positions() {
            other.positions.iter_mut().for_each(change);
        }
        other
    }

    /// Computes samples by programs of these sizes in turn; the last one is used again for what is left.
    fn compute(&mut self, samples: &Samples, sizes: &[usize], asked: &Asked) -> Result<Vec<f32>, Error> {
        let (mut values, mut first) = (Vec::new(), 0);
        let mut sizes = sizes.iter().copied();
        let mut size = 1;
        while first < samples.count {
            if !(asked.wanted)() {
                return Err(Refusal::said("the client does not wait any longer").of(Kind::Cancelled).into());
            }
            size = sizes.next().unwrap_or(size);
            let chosen: Vec<usize> = (first..(first + size).min(samples.count)).collect();
            first += chosen.len();
            let part = samples.chosen(&chosen);
            let program = self.program(samples.grid, size)?;
            values.extend(match asked.symmetries {
                Some(group) => program.predict_mean(&part, group)?,
                None => program.predict(&part)?,
            });
        }
        Ok(values)
    }

    fn answer(&mut self, requests: &[&Samples], asked: &Asked) -> Result<Vec<f32>, Error> {
        let total = requests.iter().map(|samples| samples.count).sum();
        let mut sizes = self.sizes(total);
        if requests.len() > 1 {
            let own: Vec<usize> = requests.iter().map(|samples| self.own_size(samples.count)).collect();
            let mut same = true;
            for size in sizes.iter().chain(&own) {
                same = same && self.has_the_same_bits(*size, requests[0])?;
            }
            if same {
                return self.compute(&batch::joined(requests), &sizes, asked);
            }
        }
        let mut values = Vec::new();
        for samples in requests {
            sizes = vec![self.own_size(samples.count)];
            values.extend(self.compute(samples, &sizes, asked)?);
        }
        Ok(values)
    }
}

/// What all requests of a batch ask for.
struct Asked<'a> {
    symmetries: Option<&'a Symmetries>,
    wanted: &'a dyn Fn() -> bool,
}

impl Compute for Programs {
    fn warm_up(&mut self) -> Result<(), Error> {
        let sample = typical(&self.model)?;
        let mut size = 1;
        while size < self.batch && self.kept.len() + 1 < self.most {
            self.has_the_same_bits(size, &sample)?;
            size *= 2;
        }
        self.has_the_same_bits(self.batch, &sample)?;
        self.program(sample.grid, 1).map(drop)
    }

    fn predict(
        &mut self,
        requests: &[&Samples],
        symmetric: bool,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, Error> {
        let symmetries = match self.symmetries.take() {
            None if symmetric => Some(self.model.symmetries()?),
            known => known,
        };
        let asked = Asked { symmetries: symmetries.as_ref().filter(|_| symmetric), wanted };
        let values = self.answer(requests, &asked);
        self.symmetries = symmetries;
        values
    }
}

/// A sample on the grid of the training with values of the size that the model knows.
fn typical(model: &Model) -> Result<Samples, Error> {
    let task = &model.operator().task;
    let (grid, functions) = (task.grid, task.input_channels());
    let wave = |index: usize| ((index + 1) as f32 * 12.9898).sin();
    let around = |normaliser: Option<&lamo::task::Normaliser>, channels: usize| -> Vec<f32> {
        let value = |index: usize| {
            let channel = index % channels;
            let known = normaliser.and_then(|own| Some((*own.mean.get(channel)?, *own.deviation.get(channel)?)));
            let (mean, deviation) = known.unwrap_or((0.5, 0.5));
            mean + deviation * wave(index)
        };
        (0..grid.points() * channels).map(value).collect()
    };
    let positions = match task.needs_positions() {
        true => around(task.normalisers.positions.as_ref(), task.space),
        false => task.lattice(grid)?,
    };
    Ok(Samples {
        count: 1,
        grid,
        offsets: Vec::new(),
        space: task.space,
        positions,
        functions,
        inputs: if functions > 0 { around(task.normalisers.inputs.as_ref(), functions) } else { Vec::new() },
        times: 1,
        outputs: task.output_channels(),
        targets: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo::workflow::{MakeRequest, Session, TrainRequest, make, train};

    /// A tiny model of Darcy flow on 8 x 8 points.
    fn model(folder: &std::path::Path, name: &str, settings: &str) -> Arc<Model> {
        let (data, changes) = (folder.join("data"), vec!["resolution=8".to_owned()]);
        let request = MakeRequest { problem: "darcy".into(), changes, seed: 0, samples: 7, out: data.clone() };
        make(&request, &Session::default()).unwrap();
        let sizes = ["train={ epochs = 1, batch = 1 }".to_owned(), format!("model.settings={settings}")];
        let request = TrainRequest {
            model: Some(name.into()),
            changes: sizes.to_vec(),
            out: Some(folder.join(name)),
            ..TrainRequest::new(data.to_str().unwrap())
        };
        Arc::new(Model::open(&train(&request, &Session::default()).unwrap().folder).unwrap())
    }

    #[test]
    fn a_model_that_couples_the_samples_of_a_batch_answers_each_request_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        // With these sizes, copies of a sample have the bits of one sample in batches of 2.
        let ono =
            "{ width = 32, depth = 2, heads = 4, mlp_ratio = 1, basis = 8, landmarks = 8, attention = \"nystrom\" }";
        let fno = "{ width = 8, depth = 1, modes = 2 }";
        for (name, settings, joins) in [("ono", ono, false), ("fno", fno, true)] {
            let model = model(folder.path(), name, settings);
            let mut programs = Programs::new(Arc::clone(&model), &Settings::local());
            let one = typical(&model).unwrap();
            let other = Samples { inputs: one.inputs.iter().rev().map(|value| 2.0 - value).collect(), ..one.clone() };
            let [alone, neighbour] =
                [&one, &other].map(|samples| programs.predict(&[samples], false, &|| true).unwrap());
            let together = programs.predict(&[&one, &other], false, &|| true).unwrap();
            assert!(together == [alone, neighbour].concat(), "{name}: the other request changes the answer");
            assert_eq!(programs.has_the_same_bits(2, &one).unwrap(), joins, "{name}");
        }
    }
}
