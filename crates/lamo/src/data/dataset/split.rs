//! Which samples to learn from and which to be judged by.

use super::{Error, hexadecimal};
use crate::error::counted;
use crate::random::shuffle;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// How a split is chosen; a manifest or an experiment says it in this form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Rule {
    /// The first samples and the last ones, as the benchmarks do.
    Ends {
        /// How many of the first.
        train: usize,
        /// How many of the last.
        test: usize,
    },
    /// Two runs of consecutive samples: from, and up to but without.
    Ranges {
        /// Of samples to train on.
        train: [usize; 2],
        /// Of samples to test on.
        test: [usize; 2],
    },
    /// Drawn without replacement.
    Random {
        /// How many to train on.
        train: usize,
        /// How many to test on.
        test: usize,
        /// Of the draw.
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

/// Indices of samples, in the order in which they are to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// To learn from.
    pub train: Vec<usize>,
    /// To be judged by.
    pub test: Vec<usize>,
}

impl Rule {
    /// The last sixth to test on: 1000 and 200 of 1200, as in the benchmarks.
    pub fn default_for(samples: usize) -> Rule {
        let test = if samples > 1 { (samples / 6).max(1) } else { 0 };
        Rule::Ends { train: samples - test, test }
    }

    /// The split of a set of so many samples; no sample may be missing or be used twice.
    pub fn split(&self, samples: usize) -> Result<Split, Error> {
        let split = match self {
            Rule::Ends { train, test } | Rule::Random { train, test, .. } => {
                enough(*train, *test, samples)?;
                let mut order: Vec<usize> = (0..samples).collect();
                if let Rule::Random { seed, .. } = self {
                    shuffle(&mut order, *seed, u64::MAX);
                }
                Split { train: order[..*train].to_vec(), test: order[samples - test..].to_vec() }
            }
            Rule::Ranges { train: [first, end], test: [from, to] } => {
                let outside = [end, to].into_iter().find(|&&end| end > samples);
                if let Some(end) = outside {
                    let (expected, found) = (format!("samples below {samples}"), format!("sample {}", end - 1));
                    return Err(Error::Number { what: "split", expected, found });
                }
                Split { train: (*first..*end).collect(), test: (*from..*to).collect() }
            }
            Rule::Indices { train, test } => Split { train: train.clone(), test: test.clone() },
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

fn enough(train: usize, test: usize, samples: usize) -> Result<(), Error> {
    if train.checked_add(test).is_some_and(|used| used <= samples) {
        return Ok(());
    }
    let expected = format!("at most {} in all", counted(samples, "sample"));
    Err(Error::Number { what: "split", expected, found: format!("{train} to train and {test} to test on") })
}

impl Split {
    fn check(&self, samples: usize) -> Result<(), Error> {
        let mut seen = vec![false; samples];
        for &sample in self.train.iter().chain(&self.test) {
            let (expected, found) = match seen.get_mut(sample) {
                None => (format!("samples below {samples}"), format!("sample {sample}")),
                Some(true) => ("each sample at most once".into(), format!("sample {sample} twice")),
                Some(fresh) => {
                    *fresh = true;
                    continue;
                }
            };
            return Err(Error::Number { what: "split", expected, found });
        }
        Ok(())
    }

    /// SHA-256 of both lists, in hexadecimal: two runs with the same hash saw the same samples in the same roles.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for list in [&self.train, &self.test] {
            for &number in [&list.len()].into_iter().chain(list) {
                hash.update((number as u64).to_le_bytes());
            }
        }
        hexadecimal(hash)
    }
}
