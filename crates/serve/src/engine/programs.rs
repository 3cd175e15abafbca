//! Compiled programs of a model, one for each grid, batch size and set of symmetries; the last used ones are kept.
//!
//! A sample has the same bits in a batch of any size: each sample of a batch is computed by the same sums in the same order. On a
//! CPU, a set is cut into the largest batches that have a program, without padding: 7 samples are 4 + 2 + 1. A GPU computes
//! a few samples more in the same time, so there a short batch is padded.

use super::Compute;
use lamo::error::Refusal;
use lamo::experiment::Symmetries;
use lamo::inference::Predictor;
use lamo::workflow::Model;
use lamo::{Device, Error, Grid, Kind, Samples};
use std::sync::Arc;

/// The programs of a model.
pub(crate) struct Programs {
    model: Arc<Model>,
    device: Device,
    /// Samples of a batch at most.
    batch: usize,
    /// Programs that are kept at most.
    most: usize,
    /// The last used one last.
    kept: Vec<((Grid, usize), Predictor)>,
    /// Found when it is first asked for.
    symmetries: Option<Symmetries>,
}

impl Programs {
    pub(crate) fn new(model: Arc<Model>, device: Device, batch: usize, most: usize) -> Programs {
        Programs { model, device, batch: batch.max(1), most: most.max(1), kept: Vec::new(), symmetries: None }
    }

    /// The samples of the next program for what is left.
    fn size(&self, left: usize) -> usize {
        let left = left.min(self.batch);
        match self.device {
            _ if left == self.batch => left,
            Device::Cpu => 1 << left.ilog2(),
            Device::Cuda(_) => left.next_power_of_two().min(self.batch),
        }
    }

    fn program(&mut self, grid: Grid, size: usize) -> Result<&mut Predictor, Error> {
        let key = (grid, size);
        let known = match self.kept.iter().position(|(known, _)| *known == key) {
            Some(place) => self.kept.remove(place),
            None => {
                if self.kept.len() >= self.most {
                    self.kept.remove(0); // before the new one takes memory
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
}

impl Compute for Programs {
    fn warm_up(&mut self) -> Result<(), Error> {
        let grid = self.model.operator().task.grid;
        let mut size = 1;
        while size < self.batch && self.kept.len() + 1 < self.most {
            self.program(grid, size)?;
            size *= 2;
        }
        self.program(grid, self.batch).map(drop)
    }

    fn predict(&mut self, samples: &Samples, symmetric: bool, wanted: &dyn Fn() -> bool) -> Result<Vec<f32>, Error> {
        let symmetries = match self.symmetries.take() {
            None if symmetric => Some(self.model.symmetries()?),
            known => known,
        };
        let mut values = Vec::new();
        let mut first = 0;
        while first < samples.count {
            if !wanted() {
                return Err(Refusal::said("the client does not wait any longer").of(Kind::Cancelled).into());
            }
            let size = self.size(samples.count - first);
            let chosen: Vec<usize> = (first..(first + size).min(samples.count)).collect();
            first += chosen.len();
            let part = samples.chosen(&chosen);
            let program = self.program(samples.grid, size)?;
            values.extend(match symmetries.as_ref().filter(|_| symmetric) {
                Some(group) => program.predict_mean(&part, group)?,
                None => program.predict(&part)?,
            });
        }
        self.symmetries = symmetries;
        Ok(values)
    }
}
