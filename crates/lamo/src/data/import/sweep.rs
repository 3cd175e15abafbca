//! Sweeps: samples whose order means something, such as a parameter that grows from sample to sample, or a path through
//! shapes. A model that trains on the first of them and is tested on the last extrapolates.

use crate::data::dataset::{Dataset, Error, FieldEntry, Role};
use crate::random::shuffle;
use std::fmt;

/// Samples that are looked at, at most.
const MOST: usize = 64;
/// Fewer samples are in some order by chance.
const LEAST: usize = 8;
/// Fewer samples are alike by chance.
const LEAST_NEIGHBOURS: usize = 16;
/// A field with more values per sample is not looked at.
const LARGEST: usize = 1 << 22;
/// Neighbours of a sweep are at most this far apart, measured by the distance of samples drawn at random.
const NEAR: f64 = 0.5;

/// What the order of the samples means.
#[derive(Clone, Debug, PartialEq)]
pub enum Sweep {
    /// An input that is one number for each sample never falls, or never grows, from sample to sample.
    Parameter {
        /// The input.
        field: String,
        /// Its values for the first and the last sample.
        ends: [f32; 2],
    },
    /// Neighbours are more alike than samples drawn at random.
    Neighbours {
        /// The field.
        field: String,
        /// Distance of neighbours over the distance of samples drawn at random.
        ratio: f64,
    },
}

impl fmt::Display for Sweep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sweep::Parameter { field, ends: [first, last] } => {
                write!(out, "the samples are a sweep: `{field}` goes from {first} to {last} in their order")
            }
            Sweep::Neighbours { field, ratio } => write!(
                out,
                "the samples are a sweep: `{field}` of neighbouring samples differs {ratio:.2} times as much as of samples \
                 drawn at random"
            ),
        }
    }
}

/// The sweep that the samples of a data set are, if they are one. It looks at a few samples.
pub fn sweep(dataset: &Dataset) -> Result<Option<Sweep>, Error> {
    let samples = dataset.samples();
    let small = |field: &&FieldEntry| !field.common && field.shape.iter().product::<usize>() <= LARGEST;
    if samples < LEAST {
        return Ok(None);
    }
    for field in dataset.fields(Role::Input).filter(small) {
        if let Some(ends) = parameter(dataset, field)? {
            return Ok(Some(Sweep::Parameter { field: field.name.clone(), ends }));
        }
    }
    for role in [Role::Input, Role::Position, Role::Output] {
        for field in dataset.fields(role).filter(small).filter(|_| samples >= LEAST_NEIGHBOURS) {
            if let Some(ratio) = nearness(dataset, field)?.filter(|&ratio| ratio < NEAR) {
                return Ok(Some(Sweep::Neighbours { field: field.name.clone(), ratio }));
            }
        }
    }
    Ok(None)
}

/// The first and the last value of an input that is constant in each sample and monotone in their order.
fn parameter(dataset: &Dataset, field: &FieldEntry) -> Result<Option<[f32; 2]>, Error> {
    let mut values = Vec::new();
    for sample in evenly(dataset.samples(), MOST) {
        let of_sample = dataset.read(&field.name, sample..sample + 1)?;
        let Some(&first) = of_sample.first().filter(|first| of_sample.iter().all(|value| value == *first)) else {
            return Ok(None);
        };
        values.push(first);
    }
    let ordered = |holds: fn(&f32, &f32) -> bool| values.windows(2).all(|pair| holds(&pair[0], &pair[1]));
    let monotone = ordered(|one, next| one <= next) || ordered(|one, next| one >= next);
    let ends = [values[0], values[values.len() - 1]];
    Ok(Some(ends).filter(|[first, last]| monotone && first != last))
}

/// The mean distance of neighbours over that of samples drawn at random; `None` where all samples are equal.
fn nearness(dataset: &Dataset, field: &FieldEntry) -> Result<Option<f64>, Error> {
    let samples = dataset.samples();
    let mut order: Vec<usize> = (0..samples).collect();
    shuffle(&mut order, 0, u64::MAX);
    let neighbours = evenly(samples - 1, MOST / 2).into_iter().map(|sample| [sample, sample + 1]);
    let drawn = order.chunks_exact(2).take(MOST / 2).map(|pair| [pair[0], pair[1]]);
    let near = mean_distance(dataset, field, neighbours)?;
    let far = mean_distance(dataset, field, drawn)?;
    Ok((far > 0.0).then(|| near / far))
}

fn mean_distance(dataset: &Dataset, field: &FieldEntry, pairs: impl Iterator<Item = [usize; 2]>) -> Result<f64, Error> {
    let (mut total, mut count) = (0.0, 0);
    for pair in pairs {
        let values = dataset.gather(&field.name, &pair)?;
        let (one, other) = values.split_at(values.len() / 2);
        let squares = one.iter().zip(other).map(|(one, other)| (f64::from(*one) - f64::from(*other)).powi(2));
        total += squares.sum::<f64>().sqrt();
        count += 1;
    }
    Ok(total / f64::from(count.max(1)))
}

/// At most `most` indices below `count`, evenly spaced, the first and the last included.
fn evenly(count: usize, most: usize) -> Vec<usize> {
    let chosen = count.min(most);
    (0..chosen).map(|index| if chosen == 1 { 0 } else { index * (count - 1) / (chosen - 1) }).collect()
}
