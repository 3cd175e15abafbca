//! The programs of the buckets of a ragged set. One of them is in use and holds the states; the others wait.
//!
//! A program is compiled when the first batch of its bucket comes. States move from program to program by a copy on the device.

use super::buckets::Buckets;
use super::resident::Stored;
use crate::data::Samples;
use crate::error::Error;
use lamo_tensor::{Program, Snapshot};

/// The buckets, and the programs that are not in use.
pub(super) struct BucketPrograms {
    pub(super) buckets: Buckets,
    /// The samples, where they are ragged.
    ragged: Option<Samples>,
    /// The bucket whose program is in use.
    active: usize,
    /// Programs of the other buckets that are compiled.
    waiting: Vec<Option<Program>>,
    carried: Option<Snapshot>,
}

impl BucketPrograms {
    /// Begins with the largest bucket, whose program needs the most memory.
    pub(super) fn new(train: &Samples, buckets: Buckets) -> BucketPrograms {
        let active = buckets.all.len() - 1;
        BucketPrograms {
            ragged: train.is_ragged().then(|| train.clone()),
            active,
            waiting: buckets.all.iter().map(|_| None).collect(),
            carried: None,
            buckets,
        }
    }

    /// The samples of a bucket as its program holds them; `train` are all samples.
    pub(super) fn stored<'a>(&self, train: &'a Samples, bucket: usize) -> Stored<'a> {
        match train.is_ragged() {
            true => Stored::padded(train, &self.buckets.all[bucket].samples, self.buckets.all[bucket].points),
            false => Stored::whole(train),
        }
    }

    /// The bucket whose program is in use.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// Puts the program of another bucket in the place of the one in use and gives it the states; `compile` makes it from its
    /// samples where it is needed for the first time.
    pub(super) fn enter(
        &mut self,
        bucket: usize,
        program: &mut Program,
        compile: impl FnOnce(&Stored<'_>) -> Result<Program, Error>,
    ) -> Result<(), Error> {
        if bucket == self.active {
            return Ok(());
        }
        let next = match (self.waiting[bucket].take(), &self.ragged) {
            (Some(next), _) => next,
            (None, Some(train)) => compile(&self.stored(train, bucket))?,
            (None, None) => unreachable!("samples of equal size have one bucket"),
        };
        let carried = match &mut self.carried {
            Some(carried) => carried,
            empty => {
                let names = program.states();
                empty.insert(Snapshot::new(program, &names.iter().map(String::as_str).collect::<Vec<_>>())?)
            }
        };
        carried.capture(program)?;
        let before = std::mem::replace(program, next);
        carried.restore(program)?;
        self.waiting[self.active] = Some(before);
        self.active = bucket;
        Ok(())
    }
}
