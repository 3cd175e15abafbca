//! From a data set to the public files of a benchmark: their names, variables, axes and types, so that the loaders of
//! other codes read our data unchanged. [`Row::import`] reads them back to the bit.

use super::catalogue::{FieldRow, PartRow, PieceRow, Row, Times};
use super::transfer::{Listen, Meter};
use crate::data::dataset::{Dataset, Error, Split};
use crate::data::formats::mat5::write::{self as mat5, Real};
use crate::data::formats::npy;
use crate::error::{counted, shown};
use crate::files::{atomic, memory};
use std::io;
use std::path::{Path, PathBuf};

/// Samples that are read at once. Elements of neighbouring samples may be neighbours in the file.
const BLOCK: usize = 32;

/// An array of a file: all pieces with the same variable.
struct Target {
    variable: Option<&'static str>,
    axes: &'static str,
    /// Extents in the order of `axes`.
    shape: Vec<usize>,
    pieces: Vec<(&'static FieldRow, &'static PieceRow, usize)>,
}

/// An array with its values in the order of the file.
type Filled = (Target, Vec<f32>);

impl Row {
    /// Writes the public files into a folder; their paths. The data set must have the grid and the fields of the public
    /// files. All samples are written in their order; where the public files are one for training and one for testing,
    /// each gets its part of the split.
    pub fn export(&self, dataset: &Dataset, out: &Path, listen: Listen) -> Result<Option<Vec<PathBuf>>, Error> {
        self.check(dataset)?;
        let parts = self.samples_of_parts(&dataset.split()?, dataset.samples());
        let paths: Vec<Vec<PathBuf>> = self.parts.iter().map(|part| part.paths(self, out)).collect();
        if let Some(path) = paths.iter().flatten().find(|path| path.exists()) {
            let (expected, found) = ("no file of this name".to_owned(), "one".to_owned());
            return Err(Error::unfit(shown(path), expected, found, "choose another folder"));
        }
        std::fs::create_dir_all(out).map_err(|reason| Error::writing(out, reason))?;
        let numbers = |samples: &[usize]| self.numbers_of_sample() * samples.len() as u64;
        let meter = Meter::new(4 * parts.iter().map(|samples| numbers(samples)).sum::<u64>(), listen);
        let mut written = Vec::new();
        let done = parts.iter().zip(&paths).try_fold(true, |going, (samples, paths)| {
            paths.iter().enumerate().try_fold(going, |going, (file, path)| {
                let arrays = if going { self.arrays(file, samples, dataset, &meter)? } else { None };
                let Some(arrays) = arrays else { return Ok(false) };
                let stored = atomic::stream(path, |out| self.write(out, &arrays, file, dataset));
                stored.map_err(|reason| Error::writing(path, reason))?;
                written.push(path.clone());
                Ok(true)
            })
        });
        if !matches!(done, Ok(true)) {
            written.iter().for_each(|path| {
                let _ = std::fs::remove_file(path); // best effort: the first error is reported
            });
        }
        done.map(|done| done.then_some(written))
    }

    /// Refuses a data set on another grid or without the fields.
    fn check(&self, dataset: &Dataset) -> Result<(), Error> {
        let (folder, manifest) = (shown(dataset.folder()), dataset.manifest());
        if manifest.grid != self.grid {
            let expected = format!("a {}, as the public files of {} have", self.grid, self.name);
            let advice = "make the data set with the default resolution and stride=1";
            return Err(Error::unfit(folder, expected, format!("a {}", manifest.grid), advice));
        }
        for field in self.fields {
            let found = &dataset.field(field.name)?.shape;
            let expected = self.shape(field);
            if *found != expected {
                let what = format!("{folder}: field `{}`", field.name);
                let advice = "make the data set with the default settings";
                return Err(Error::unfit(what, format!("shape {expected:?}"), format!("{found:?}"), advice));
            }
        }
        let count = self.times.count();
        if count.is_some_and(|count| !manifest.times.is_empty() && manifest.times.len() != count) {
            let expected = format!("{} snapshots", count.unwrap_or_default());
            return Err(Error::unfit(folder, expected, manifest.times.len().to_string(), "make it with frames=20"));
        }
        Ok(())
    }

    /// The shape of one sample of a field in a data set: snapshots, points, channels.
    fn shape(&self, field: &FieldRow) -> Vec<usize> {
        let first = &field.pieces[0];
        let extent = |letter: char| first.axes.find(letter).map(|axis| first.shape[axis]);
        let channels = match (field.pieces.len(), first.channel) {
            (1, Some(_)) => None,
            (1, None) => extent('c'),
            (pieces, _) => Some(pieces),
        };
        ['t', 'x', 'y', 'p'].into_iter().filter_map(extent).chain(channels).collect()
    }

    /// Numbers of one sample in all fields.
    fn numbers_of_sample(&self) -> u64 {
        let count = |field: &FieldRow| self.shape(field).iter().product::<usize>() as u64;
        self.fields.iter().map(count).sum()
    }

    /// The samples of each part: of the split where one file is for training and another for testing, otherwise all.
    fn samples_of_parts(&self, split: &Split, samples: usize) -> Vec<Vec<usize>> {
        let of = |part: &PartRow| match (&part.train, &part.test) {
            (Some(_), None) => split.train.clone(),
            (None, Some(_)) => split.test.clone(),
            _ => (0..samples).collect(),
        };
        self.parts.iter().map(of).collect()
    }

    /// The arrays of a file, filled; `None` if the listener asks to stop.
    fn arrays(
        &self,
        file: usize,
        samples: &[usize],
        dataset: &Dataset,
        meter: &Meter,
    ) -> Result<Option<Vec<Filled>>, Error> {
        let mut targets: Vec<Target> = Vec::new();
        for field in self.fields {
            for (number, piece) in field.pieces.iter().enumerate().filter(|(_, piece)| piece.file == file) {
                let known = targets.iter_mut().find(|target| target.variable == piece.variable);
                if let Some(target) = known {
                    target.pieces.push((field, piece, number));
                    continue;
                }
                let extent = |&extent: &usize| if extent == 0 { samples.len() } else { extent };
                let shape = piece.shape.iter().map(extent).collect();
                let pieces = vec![(field, piece, number)];
                targets.push(Target { variable: piece.variable, axes: piece.axes, shape, pieces });
            }
        }
        let mut arrays = Vec::new();
        for target in targets {
            let what = || format!("{} of {}", counted(samples.len(), "sample"), shown(dataset.folder()));
            let count = target.shape.iter().product();
            let mut values = memory::filled(0.0, count).map_err(|reason| Error::memory(what(), reason))?;
            for &(field, piece, number) in &target.pieces {
                let places = places(&target, &self.shape(field), piece, number);
                let step = target.stride('n');
                for (block, chosen) in samples.chunks(BLOCK).enumerate() {
                    let read = dataset.gather(field.name, chosen)?;
                    let length = read.len() / chosen.len();
                    for &(element, place) in &places {
                        for sample in 0..chosen.len() {
                            values[place + (block * BLOCK + sample) * step] = read[sample * length + element];
                        }
                    }
                    meter.tick(4 * chosen.len() * places.len());
                    if meter.stop() {
                        return Ok(None);
                    }
                }
            }
            arrays.push((target, values));
        }
        Ok(Some(arrays))
    }

    /// Writes one file.
    fn write(&self, out: &mut dyn io::Write, arrays: &[Filled], file: usize, dataset: &Dataset) -> io::Result<()> {
        if arrays.iter().any(|(target, _)| target.variable.is_some()) {
            out.write_all(&mat5::header())?;
        }
        for (target, values) in arrays {
            let numbers = values.iter().map(|&value| f64::from(value));
            match target.variable {
                Some(name) => mat5::variable(out, name, &target.shape, self.real, numbers)?,
                None => {
                    out.write_all(&npy::header_of("<f8", &target.shape))?;
                    for number in numbers {
                        out.write_all(&number.to_le_bytes())?;
                    }
                }
            }
        }
        if let (Times::Variable(name, count), 0) = (&self.times, file) {
            let times = &dataset.manifest().times;
            let even: Vec<f64> = (1..=*count).map(|time| time as f64).collect();
            let times = if times.is_empty() { &even } else { times };
            mat5::variable(out, name, &[1, *count], Real::Double, times.iter().copied())?;
        }
        Ok(())
    }
}

impl PartRow {
    /// Where its files are written.
    fn paths(&self, row: &Row, out: &Path) -> Vec<PathBuf> {
        let named = |piece: &PieceRow, file: usize| piece.file == file && piece.variable.is_some();
        let is_mat = |file: usize| row.fields.iter().flat_map(|field| field.pieces).any(|piece| named(piece, file));
        let path = |(file, names): (usize, &&[&str])| {
            out.join(format!("{}.{}", names[0], if is_mat(file) { "mat" } else { "npy" }))
        };
        self.files.iter().enumerate().map(path).collect()
    }
}

impl Target {
    /// Distance in memory of neighbours along an axis. Variables of MAT files have the first axis fastest, npy files the
    /// last one.
    fn stride(&self, letter: char) -> usize {
        let axis = self.axes.find(letter).unwrap_or_default();
        match self.variable {
            Some(_) => self.shape[..axis].iter().product(),
            None => self.shape[axis + 1..].iter().product(),
        }
    }
}

/// For every element of a sample of the field that belongs to the piece: its place in the sample, and in the array for the
/// first sample.
fn places(target: &Target, shape: &[usize], piece: &PieceRow, number: usize) -> Vec<(usize, usize)> {
    let points = |letter: &char| target.axes.contains(*letter);
    let mut letters: Vec<char> = ['t', 'x', 'y', 'p'].into_iter().filter(points).collect();
    if letters.len() < shape.len() {
        letters.push('c');
    }
    let side_by_side = letters.contains(&'c') && !target.axes.contains('c'); // the piece is one channel of the field
    let offset = piece.channel.map_or(0, |channel| channel * target.stride('c'));
    let mut found = Vec::new();
    for element in 0..shape.iter().product() {
        let (mut rest, mut place, mut belongs): (usize, usize, bool) = (element, offset, true);
        for (letter, extent) in letters.iter().zip(shape).rev() {
            let index = rest % extent;
            rest /= extent;
            match letter {
                'c' if side_by_side => belongs = index == number,
                letter => place += index * target.stride(*letter),
            }
        }
        if belongs {
            found.push((element, place));
        }
    }
    found
}
