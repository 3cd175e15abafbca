//! Compiled programs of a model, one for each grid and batch size; the last used ones are kept, within a number of points that
//! bounds their memory.
//!
//! A request by itself is computed as `lamo predict` does. Requests are computed together only where that changes no bit. A
//! program of another batch size may add in another order, so each size is first compared with the program of one sample: copies
//! of a sample must have its bits. The order of sums depends on shapes alone, so one comparison holds for all samples. On a CPU, a
//! set is cut into the largest batches that have a program: 7 samples are 4 + 2 + 1. A GPU computes a few samples more in the
//! same time, so there a short batch is padded.

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
            let alone = self.program(sample.grid, 1)?.predict(&sample.chosen(&[0]))?;
            let together = self.program(sample.grid, size)?.predict(&sample.chosen(&vec![0; size]))?;
            let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
            let alone = bits(&alone);
            together.chunks(alone.len().max(1)).all(|copy| bits(copy) == alone)
        };
        if self.compared.len() >= REMEMBERED {
            self.compared.remove(0);
        }
        self.compared.push((key, same));
        Ok(same)
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
