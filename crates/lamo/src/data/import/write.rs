//! An import: arrays are read a few samples at a time, their axes put in the order of the data set, rounded to single
//! precision and written.
//!
//! A file is hashed before its values are read and again after, and is looked at whenever some of them are read. If it
//! changes in between, nothing is imported: the hash that the data set records is that of the values it holds.
//!
//! MATLAB and Fortran files interleave their samples, so reading some samples means passing over the whole file. A file
//! is passed over once per [`BUDGET`] of bytes and is never in memory as a whole.

use super::cells::Meshes;
use super::column::{Column, LastRead, Part, Piece};
use super::precision::Precision;
use super::sources::Sources;
use super::transfer::{Listen, Meter};
use crate::data::dataset::partial::{self, Partial};
use crate::data::dataset::{Error, FieldEntry, Manifest, Outcome, Progress, SourceEntry, Warn, file_hash, position};
use crate::error::{Failure, Kind};
use crate::files::memory;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of one array in memory at a time; about as many again hold the values in order.
const BUDGET: usize = 256 << 20;

/// What to import.
#[derive(Debug)]
pub struct Import {
    pub(super) manifest: Manifest,
    /// One per field of the manifest.
    pub(super) columns: Vec<Column>,
    /// The samples of the columns to import, in the order of the data set.
    pub(super) selected: Vec<Range<usize>>,
    /// The files, as they were when their headers were read.
    pub(super) sources: Sources,
    /// How the files were understood, a sentence each.
    pub(super) notes: Vec<String>,
    /// The mesh file of each sample, or one of all samples, whose cells are kept; or none.
    pub(super) meshes: Option<Meshes>,
    /// Files that are read beside those of the columns.
    pub(super) beside: Vec<PathBuf>,
}

impl Import {
    /// The manifest of the data set to be written, without hashes.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How the files were understood: the axes of each field, and the split where it is not the plain one.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Every file to read, once.
    fn paths(&self) -> Vec<&Path> {
        let (mut paths, mut seen) = (Vec::new(), HashSet::new());
        for path in self.columns.iter().flat_map(Column::pieces).map(|piece| piece.path.as_path()) {
            if seen.insert(path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Files to read that are not among `paths`.
    fn others(&self, paths: &[&Path]) -> impl Iterator<Item = &Path> {
        let beside = self.beside.iter().map(PathBuf::as_path);
        beside.filter(move |path| !paths.contains(path)).collect::<Vec<_>>().into_iter()
    }

    /// Writes the data set into `target`, or the samples that an interrupted attempt did not write.
    pub fn write(&self, target: &Path, listen: Listen) -> Result<Outcome, Error> {
        self.write_and_warn(target, listen, &|_| {})
    }

    /// The same; `warn` is told which samples of an interrupted attempt were lost and are read again, and which fields lose digits.
    pub fn write_and_warn(&self, target: &Path, listen: Listen, warn: Warn) -> Result<Outcome, Error> {
        let size = |path: &&Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let paths = self.paths();
        let hashed: u64 = paths.iter().map(size).sum();
        let meter = Meter::new(2 * hashed + self.bytes(self.manifest.samples), listen);
        let mut manifest = self.manifest.clone();
        let places: HashMap<&Path, usize> = paths.iter().enumerate().map(|(place, path)| (*path, place)).collect();
        for (field, column) in manifest.fields.iter_mut().zip(&self.columns) {
            field.origin = column.pieces().map(|piece| piece.origin(&places)).collect();
        }
        self.require_memory()?; // before the files are hashed, which takes long
        let mut sources = Sources::as_found_by(&self.sources);
        for path in &paths {
            let (bytes, sha256) = sources.hash(path, &mut |bytes| meter.tick(bytes))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            manifest.sources.push(SourceEntry { file, bytes, sha256 });
        }
        for path in self.others(&paths) {
            manifest.sources.push(whole_file(path)?);
        }
        partial::make(target, &manifest, warn, |partial| {
            let progress = self.fill(partial, &mut sources, &meter, hashed, warn)?;
            if progress.complete == progress.samples {
                self.write_triangles(partial, &mut sources).inspect_err(|error| {
                    if error.kind() != Kind::OutOfSpace {
                        partial.discard();
                    }
                })?;
                for (path, entry) in self.others(&paths).zip(&manifest.sources[paths.len()..]) {
                    if whole_file(path).inspect_err(|_| partial.discard())? != *entry {
                        partial.discard();
                        return Err(Error::Changed { path: path.to_owned() });
                    }
                }
                for (path, entry) in paths.iter().zip(&manifest.sources) {
                    let again =
                        sources.hash(path, &mut |bytes| meter.tick(bytes)).inspect_err(|_| partial.discard())?;
                    if again.1 != entry.sha256 {
                        partial.discard();
                        return Err(Error::Changed { path: path.to_path_buf() });
                    }
                }
            }
            Ok(progress)
        })
    }

    /// Refuses an import of which one sample does not fit into memory.
    fn require_memory(&self) -> Result<(), Error> {
        for column in &self.columns {
            memory::require(column.memory()).map_err(|reason| {
                let thing = format!("1 sample of {}", column.origin(0).0);
                Error::memory(thing, reason)
            })?;
        }
        Ok(())
    }

    /// Bytes to read for `samples` samples.
    fn bytes(&self, samples: usize) -> u64 {
        if self.manifest.ragged.is_some() {
            let all: u64 = self.columns.iter().flat_map(Column::pieces).map(|piece| piece.bytes() as u64).sum();
            return (all as f64 * samples as f64 / self.manifest.samples as f64) as u64;
        }
        let first = self.columns.iter().filter_map(|column| column.parts.first());
        let pieces = first.flat_map(Part::pieces);
        let mut arrays: Vec<_> = pieces.map(|piece| (piece.title(), piece.bytes())).collect();
        arrays.sort();
        arrays.dedup();
        arrays.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>() * samples as u64
    }

    /// Reads and stores the missing samples; `hashed` bytes have been counted before.
    fn fill(
        &self,
        partial: &Partial,
        sources: &mut Sources,
        meter: &Meter,
        hashed: u64,
        warn: Warn,
    ) -> Result<Progress, Error> {
        let (missing, samples) = (partial.missing()?, self.manifest.samples);
        meter.expect(2 * hashed + self.bytes(missing.len()));
        let largest = self.columns.iter().flat_map(Column::pieces).map(Piece::bytes).max().unwrap_or(1);
        let mut precisions: Vec<Precision> = self.columns.iter().map(Precision::of).collect();
        let mut made = 0;
        let few = if self.manifest.ragged.is_some() { 1 } else { (BUDGET / largest.max(1)).max(1) };
        for (first, origin) in self.blocks(&missing, few) {
            self.transfer(partial, sources, meter, (first, &origin), &mut precisions)?;
            partial.mark(first..first + origin.len(), 1)?;
            made += origin.len();
            if meter.stop() {
                break;
            }
        }
        partial.save()?;
        for (field, precision) in self.manifest.fields.iter().zip(&precisions) {
            precision.warning(field).iter().for_each(|text| warn(text));
        }
        Ok(Progress { complete: samples - missing.len() + made, made, samples })
    }

    /// Reads the samples `origin` of every column and stores them as the samples from `first` on. If a source file
    /// cannot be read or has a value that is not finite, the partial data set is deleted: the corrected file will have
    /// another hash. If memory is short, what was read stays.
    fn transfer(
        &self,
        partial: &Partial,
        sources: &mut Sources,
        meter: &Meter,
        (first, origin): (usize, &Range<usize>),
        precisions: &mut [Precision],
    ) -> Result<(), Error> {
        let mut last = LastRead::default();
        for (number, (field, column)) in self.manifest.fields.iter().zip(&self.columns).enumerate() {
            let (first, origin) = if field.common { (0, 0..1) } else { (first, origin.clone()) };
            let read = column.read(origin.clone(), sources, &mut last, meter);
            let checked = read.and_then(|(values, beyond, rounding)| {
                check(field, column, origin.start, &values, beyond).map(|()| (values, rounding))
            });
            let (values, rounding) = checked.inspect_err(|error| {
                if error.kind() != Kind::OutOfSpace {
                    partial.discard();
                }
            })?;
            precisions[number].see(&values, column.count_at(origin.start), rounding);
            match self.manifest.ragged.as_ref().filter(|_| column.is_ragged()) {
                Some(ragged) => partial.store_ragged(number, ragged.points_of(first), &values)?,
                None => partial.store(number, first, &values)?,
            }
        }
        Ok(())
    }

    /// Ranges of at most `most` missing samples: the first sample in the data set, and the samples in the columns.
    fn blocks(&self, missing: &[usize], most: usize) -> Vec<(usize, Range<usize>)> {
        let origins: Vec<usize> = self.selected.iter().cloned().flatten().collect();
        let mut blocks: Vec<(usize, Range<usize>)> = Vec::new();
        for &sample in missing {
            let origin = origins[sample];
            match blocks.last_mut() {
                Some((first, run)) if *first + run.len() == sample && run.end == origin && run.len() < most => {
                    run.end += 1;
                }
                _ => blocks.push((sample, origin..origin + 1)),
            }
        }
        blocks
    }
}

/// Name, size and hash of a file.
fn whole_file(path: &Path) -> Result<SourceEntry, Error> {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut bytes = 0;
    let sha256 = file_hash(path, &mut |count| bytes += count as u64)?;
    Ok(SourceEntry { file, bytes, sha256 })
}

/// Refuses values that are not finite. The values begin with sample `first` of the column; `beyond` is a value of the
/// source that single precision cannot hold.
fn check(field: &FieldEntry, column: &Column, first: usize, values: &[f32], beyond: Option<f64>) -> Result<(), Error> {
    let Some(index) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let count = column.count_at(first);
    let (origin, sample, snapshot) = column.origin(first + index / count);
    let found = beyond.filter(|&value| value as f32 == values[index]).unwrap_or(values[index].into());
    let mut position = position(index % count, &column.shape_at(first));
    if let Some(first) = position.first_mut().filter(|_| snapshot > 0) {
        *first += snapshot; // what is cut into windows has its snapshots first
    }
    Err(Error::NoNumber { origin, field: field.name.clone(), sample, position, found })
}
