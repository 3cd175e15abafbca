//! Splits: which samples to train on and which to test on.

use super::{Error, Series, hexadecimal};
use crate::error::counted;
use crate::files::memory;
use crate::random::shuffle;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::ops::Range;

/// The rule that chooses a split, as manifests and experiments write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Rule {
    /// Trains on the first samples and tests on the last samples, as the benchmarks do.
    Ends {
        /// Samples to train on, from the start.
        train: usize,
        /// Samples to test on, from the end.
        test: usize,
    },
    /// Two ranges of samples, each as its start and its end; the end is excluded.
    Ranges {
        /// Samples to train on.
        train: [usize; 2],
        /// Samples to test on.
        test: [usize; 2],
    },
    /// Drawn without replacement.
    Random {
        /// How many to train on.
        train: usize,
        /// How many to test on.
        test: usize,
        /// Seed of the draw.
        seed: u64,
    },
    /// Listed one by one.
    Indices {
        /// Samples to train on.
        train: Vec<usize>,
        /// Samples to test on.
        test: Vec<usize>,
    },
}

/// Indices of samples, in the order of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Samples to train on.
    pub train: Vec<usize>,
    /// Samples that decide the best epoch and the end of a training; an experiment takes them from the training samples.
    pub validation: Vec<usize>,
    /// Samples to test on.
    pub test: Vec<usize>,
}

impl Rule {
    /// Tests on the last sixth: 1000 and 200 of 1200, as in the benchmarks.
    pub fn default_for(samples: usize) -> Rule {
        let test = if samples > 1 { (samples / 6).max(1) } else { 0 };
        Rule::Ends { train: samples - test, test }
    }

    /// The split of a data set with this many samples. It refuses samples that do not exist or are used twice.
    pub fn split(&self, samples: usize) -> Result<Split, Error> {
        let split = match self {
            Rule::Ends { train, test } | Rule::Random { train, test, .. } => {
                enough(*train, *test, samples)?;
                let [first, last] = [0..*train, samples - test..samples];
                if let Rule::Random { seed, .. } = self {
                    let mut order = list(0..samples)?;
                    shuffle(&mut order, *seed, u64::MAX);
                    let chosen = |places: Range<usize>| listed(places.len(), order[places].iter().copied());
                    Split::of(chosen(first)?, chosen(last)?)
                } else {
                    Split::of(list(first)?, list(last)?)
                }
            }
            Rule::Ranges { train: [first, end], test: [from, to] } => {
                let outside = [end, to].into_iter().find(|&&end| end > samples);
                if let Some(end) = outside {
                    let (expected, found) = (format!("samples below {samples}"), format!("sample {}", end - 1));
                    return Err(Error::Number { what: "split", expected, found });
                }
                Split::of(list(*first..*end)?, list(*from..*to)?)
            }
            Rule::Indices { train, test } => Split::of(train.clone(), test.clone()),
        };
        split.check(samples)?;
        Ok(split)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Ends { train, test } => write!(out, "first {train} to train, last {test} to test"),
            Rule::Ranges { train: [first, end], test: [from, to] } => {
                write!(out, "{first}..{end} to train, {from}..{to} to test")
            }
            Rule::Random { train, test, seed } => {
                write!(out, "{train} to train and {test} to test, drawn with seed {seed}")
            }
            Rule::Indices { train, test } => write!(out, "{} to train and {} to test, listed", train.len(), test.len()),
        }
    }
}

/// The samples of a range.
fn list(samples: Range<usize>) -> Result<Vec<usize>, Error> {
    listed(samples.len(), samples)
}

/// `count` samples as a list, which may be too long for the memory of the machine.
fn listed(count: usize, samples: impl Iterator<Item = usize>) -> Result<Vec<usize>, Error> {
    let mut list = memory::reserve(count).map_err(|reason| Error::memory("split", reason))?;
    list.extend(samples);
    Ok(list)
}

fn enough(train: usize, test: usize, samples: usize) -> Result<(), Error> {
    if train.checked_add(test).is_some_and(|used| used <= samples) {
        return Ok(());
    }
    let expected = format!("at most {} in all", counted(samples, "sample"));
    Err(Error::Number { what: "split", expected, found: format!("{train} to train and {test} to test on") })
}

/// Makes the draw of validation samples independent of a random split with the same seed.
const VALIDATION: u64 = 0x7661_6c69;

/// The use of a sample to train on once there are validation samples.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Train,
    Validation,
    Nothing,
}

impl Split {
    /// A split without validation samples.
    pub fn of(train: Vec<usize>, test: Vec<usize>) -> Split {
        Split { train, validation: Vec::new(), test }
    }

    /// Moves `count` training samples, drawn with a seed, to the validation samples. Both lists keep their order. At least
    /// one sample must stay to train on.
    pub fn validated(self, count: usize, seed: u64) -> Result<Split, Error> {
        if count == 0 {
            return Ok(self);
        }
        self.enough_for(count)?;
        let mut order = list(0..self.train.len())?;
        shuffle(&mut order, seed ^ VALIDATION, u64::MAX);
        let mut uses = self.all_trained()?;
        order[..count].iter().for_each(|&place| uses[place] = Use::Validation);
        Ok(self.used(&uses))
    }

    /// Moves `count` windows of time series from the training samples to the validation samples: whole series in an order that
    /// is drawn with a seed, and the last windows of the last of these series. Windows that begin within `gap` windows of a
    /// validation window in the same series share snapshots with it and are dropped.
    pub fn validated_in_time(self, count: usize, seed: u64, gap: usize, series: &Series) -> Result<Split, Error> {
        if count == 0 {
            return Ok(self);
        }
        self.enough_for(count)?;
        let mut places = list(0..self.train.len())?;
        places.sort_unstable_by_key(|&place| self.train[place]);
        let in_one = |&one: &usize, &next: &usize| series.of(self.train[one]) == series.of(self.train[next]);
        let all: Vec<&[usize]> = places.chunk_by(in_one).collect();
        let mut order = list(0..all.len())?;
        shuffle(&mut order, seed ^ VALIDATION, u64::MAX);
        let (mut uses, mut wanted) = (self.all_trained()?, count);
        for windows in order.into_iter().map(|series| all[series]) {
            let (before, taken) = windows.split_at(windows.len() - wanted.min(windows.len()));
            wanted -= taken.len();
            taken.iter().for_each(|&place| uses[place] = Use::Validation);
            let near =
                |place: &&usize| taken.first().is_some_and(|&first| self.train[**place] + gap >= self.train[first]);
            before.iter().filter(near).for_each(|&place| uses[place] = Use::Nothing);
        }
        if !uses.contains(&Use::Train) {
            let expected = format!(
                "fewer, so that some of the {} windows to train on share no snapshots with them (data.gap = {gap})",
                self.train.len()
            );
            return Err(Error::Number { what: "data.validation", expected, found: count.to_string() });
        }
        Ok(self.used(&uses))
    }

    /// Refuses as many validation samples as there are samples to train on.
    fn enough_for(&self, validation: usize) -> Result<(), Error> {
        if validation < self.train.len() {
            return Ok(());
        }
        let expected = format!("fewer than the {} to train on, from which they are taken", self.train.len());
        Err(Error::Number { what: "data.validation", expected, found: validation.to_string() })
    }

    fn all_trained(&self) -> Result<Vec<Use>, Error> {
        memory::filled(Use::Train, self.train.len()).map_err(|reason| Error::memory("split", reason))
    }

    /// The split with each of its training samples used as listed.
    fn used(self, uses: &[Use]) -> Split {
        let chosen = |which: Use| -> Vec<usize> {
            self.train.iter().zip(uses).filter(|(_, found)| **found == which).map(|(&sample, _)| sample).collect()
        };
        Split { train: chosen(Use::Train), validation: chosen(Use::Validation), test: self.test }
    }

    fn check(&self, samples: usize) -> Result<(), Error> {
        let mut used = memory::filled(false, samples).map_err(|reason| Error::memory("split", reason))?;
        for &sample in self.train.iter().chain(&self.test) {
            let (expected, found) = match used.get_mut(sample) {
                None => (format!("samples below {samples}"), format!("sample {sample}")),
                Some(true) => ("each sample at most once".into(), format!("sample {sample} twice")),
                Some(used) => {
                    *used = true;
                    continue;
                }
            };
            return Err(Error::Number { what: "split", expected, found });
        }
        Ok(())
    }

    /// SHA-256 of the lists, in hexadecimal. Two runs with the same hash used the same samples to train, to validate and to
    /// test. An empty list of validation samples does not count, so the hash of a split without them is that of lamo 0.1.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        let validation = (!self.validation.is_empty()).then_some(&self.validation);
        for list in [&self.train, &self.test].into_iter().chain(validation) {
            for &number in [&list.len()].into_iter().chain(list) {
                hash.update((number as u64).to_le_bytes());
            }
        }
        hexadecimal(hash)
    }
}
