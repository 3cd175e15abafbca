//! Windows of time series at rest: a snapshot to predict that is zero everywhere has no relative error, so such windows are
//! neither trained nor tested on.

use super::npy::Array;
use super::{Dataset, Error, FieldEntry, Manifest, Role, Split};
use crate::error::counted;

impl Manifest {
    /// The windows in which all outputs are zero in a snapshot to predict; none where the samples are no windows.
    pub(super) fn windows_at_rest(&self, arrays: &[Array]) -> Result<Vec<usize>, Error> {
        let whole = |key: &str| usize::try_from(self.parameters.get(key)?.as_integer()?).ok();
        let (Some(window), Some(horizon), None) = (whole("window"), whole("horizon"), &self.ragged) else {
            return Ok(Vec::new());
        };
        let moves = |field: &FieldEntry| {
            let axes = field.on(self.grid).ok();
            !field.common && axes.and_then(|axes| axes.snapshots) == Some(window + horizon)
        };
        let outputs = || self.fields.iter().zip(arrays).filter(|(field, _)| field.role == Role::Output);
        if outputs().any(|(field, _)| !moves(field)) {
            return Ok(Vec::new()); // an output without snapshots is no time series
        }
        let mut at_rest = Vec::new();
        for sample in 0..self.samples {
            let mut still = vec![true; horizon];
            for (_, array) in outputs() {
                let mut values = Vec::new();
                array.read(sample, 1, &mut values)?;
                let snapshots = values.chunks_exact(array.count() / (window + horizon)).skip(window);
                still.iter_mut().zip(snapshots).for_each(|(still, snapshot)| {
                    *still &= snapshot.iter().all(|&value| value == 0.0);
                });
            }
            at_rest.extend(still.contains(&true).then_some(sample));
        }
        Ok(at_rest)
    }
}

impl Dataset {
    /// A sentence about the windows at rest, if there are some.
    pub fn at_rest(&self) -> Option<String> {
        let count = self.manifest().at_rest.len();
        (count > 0).then(|| {
            let (windows, samples) = (counted(count, "window"), self.samples());
            let left = self.split().map(|split| [split.train.len(), split.test.len()]).unwrap_or_default();
            format!(
                "{windows} of {samples} left out: a snapshot to predict is zero everywhere, which has no relative error; \
                 {} to train and {} to test remain",
                left[0], left[1]
            )
        })
    }
}

impl Split {
    /// The same without these samples, which are in ascending order.
    pub(super) fn without(mut self, samples: &[usize]) -> Split {
        for part in [&mut self.train, &mut self.validation, &mut self.test] {
            part.retain(|sample| samples.binary_search(sample).is_err());
        }
        self
    }
}
