//! From the public files of a benchmark to an import: finds the files, compares them with the catalogue, chooses the
//! samples.

use super::catalogue::{FieldRow, PartRow, PieceRow, Row, Selection, Times};
use super::column::{Column, Part, Piece, thinned, title};
use super::sources::Sources;
use super::write::Import;
use crate::data::dataset::{Error, FieldEntry, Manifest, Rule};
use crate::data::formats::{self, FORMATS};
use crate::error::counted;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Depth of the folders that are searched below a given folder.
const DEPTH: usize = 6;
const OWN: &str = "import arrays of your own with --input and --output instead of --as";

impl Row {
    /// An import of the public files. `given` are files, or folders that hold them at any depth. The import has the
    /// samples of the official split, or `all` samples.
    pub fn import(&self, given: &[PathBuf], all: bool) -> Result<Import, Error> {
        let files = self.find_files(given)?;
        let mut sources = Sources::default();
        let mut columns: Vec<_> = self.fields.iter().map(|_| Column::new(self.stride)).collect();
        let (mut everything, mut train, mut test) = (Vec::new(), Vec::new(), Vec::new());
        let mut samples = 0;
        for (part, paths) in self.parts.iter().zip(&files) {
            let found = self.take(part, paths, &mut columns, &mut sources)?;
            let range = |selection: Selection| selection.range(samples, found);
            train.extend(part.train.map(range));
            test.extend(part.test.map(range));
            everything.push(samples..samples + found);
            samples += found;
        }
        let (selected, rule) = match (all, &train[..], &test[..]) {
            (true, [train], [test]) => {
                (everything, Rule::Ranges { train: [train.start, train.end], test: [test.start, test.end] })
            }
            _ => {
                let count = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).sum();
                let rule = Rule::Ends { train: count(&train), test: count(&test) };
                (train.into_iter().chain(test).collect(), rule)
            }
        };
        let stride = Some(("stride".to_owned(), toml::Value::from(self.stride as i64))).filter(|_| self.stride > 1);
        let fields = self.fields.iter().zip(&columns).map(|(field, column)| field.entry(column.shape())).collect();
        let samples = selected.iter().map(Range::len).sum();
        let grid = thinned(self.grid, self.stride);
        let mut manifest = Manifest::imported(self.name, stride.into_iter().collect(), grid, rule, samples, fields);
        manifest.times = self.times(&files[0][0], &mut sources)?;
        sources.close();
        Ok(Import { manifest, columns, selected, sources, notes: Vec::new(), meshes: None, beside: Vec::new() })
    }

    /// Adds the arrays of one part to their columns, and returns how many samples they hold.
    fn take(
        &self,
        part: &PartRow,
        paths: &[PathBuf],
        columns: &mut [Column],
        sources: &mut Sources,
    ) -> Result<usize, Error> {
        let mut first: Option<(String, usize)> = None;
        for (column, field) in columns.iter_mut().zip(self.fields) {
            let mut pieces = Vec::new();
            for row in field.pieces {
                let piece = row.piece(&paths[row.file], sources)?;
                let (other, expected) = first.get_or_insert_with(|| (piece.title(), piece.samples()));
                if piece.samples() != *expected {
                    let expected = format!("{}, as {other} holds", counted(*expected, "sample"));
                    let advice = "give both files from the same archive";
                    return Err(Error::unfit(piece.title(), expected, piece.samples().to_string(), advice));
                }
                pieces.push(piece);
            }
            column.parts.push(Part::new(pieces));
        }
        let (name, found) = first.unwrap_or_default();
        let expected = format!("at least {}", counted(part.samples, "sample"));
        if found >= part.samples { Ok(found) } else { Err(Error::unfit(name, expected, found.to_string(), OWN)) }
    }

    /// Times of the snapshots; `path` is the first file.
    fn times(&self, path: &Path, sources: &mut Sources) -> Result<Vec<f64>, Error> {
        match self.times {
            Times::None => Ok(Vec::new()),
            Times::Even(count) => Ok((0..count).map(|snapshot| snapshot as f64 / (count - 1) as f64).collect()),
            Times::Variable(name, count) => {
                let file = sources.file(path)?;
                let shape = match file.describe(Some(name)) {
                    Err(formats::Error::Missing { .. }) => return Ok((1..=count).map(|time| time as f64).collect()),
                    described => described?.shape,
                };
                if shape.iter().fold(1, |times: usize, &extent| times.saturating_mul(extent)) != count {
                    let (expected, found) = (format!("{count} times"), format!("shape {shape:?}"));
                    return Err(Error::unfit(title(path, Some(name)), expected, found, "download the file again"));
                }
                Ok(file.read(Some(name))?.values.into_f64())
            }
        }
    }

    /// The path of every file, part by part.
    fn find_files(&self, given: &[PathBuf]) -> Result<Vec<Vec<PathBuf>>, Error> {
        let mut candidates = Vec::new();
        for path in given {
            if path.is_dir() {
                collect(path, DEPTH, &mut candidates)?;
                continue;
            }
            if !path.exists() {
                let expected = format!("a file of {} or a folder with its files", self.name);
                let found = "nothing".into();
                return Err(Error::unfit(path.display().to_string(), expected, found, "check the path"));
            }
            if !self.parts.iter().flat_map(|part| part.files).any(|names| has_name(path, names)) {
                let expected = format!("a file of {}: {}", self.name, self.files().join(", "));
                let advice = format!("give it its public name, or {OWN}");
                let found = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Err(Error::unfit(path.display().to_string(), expected, found, advice));
            }
            candidates.push(path.clone());
        }
        let locate = |names: &&[&str]| {
            let mut found = candidates.iter().filter(|path| has_name(path, names));
            match (found.next(), found.next()) {
                (Some(only), None) => Ok(only.clone()),
                (Some(one), Some(other)) => {
                    let (expected, found) = ("it once".into(), format!("{} and {}", one.display(), other.display()));
                    Err(Error::unfit(names[0].into(), expected, found, "name the file to import"))
                }
                (None, _) => {
                    let expected = format!("the file {} too", names.join(" or "));
                    let found = format!("none of that name in {}", shown(given));
                    Err(Error::unfit(self.name.into(), expected, found, "add it, or the folder it is in"))
                }
            }
        };
        self.parts.iter().map(|part| part.files.iter().map(locate).collect()).collect()
    }
}

/// The given paths in a sentence.
fn shown(given: &[PathBuf]) -> String {
    let names: Vec<_> = given.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() { "the command".into() } else { names.join(", ") }
}

/// Whether a file has one of these names, in capital or small letters, with the ending of a known format or without
/// ending.
fn has_name(path: &Path, names: &[&str]) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let mut endings = FORMATS.iter().flat_map(|format| format.endings);
    let known = ending.is_empty() || endings.any(|known| known.eq_ignore_ascii_case(ending));
    // no public name has a dot in it, so the stem of a name without ending is the whole name
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    known && names.iter().any(|name| name.eq_ignore_ascii_case(stem))
}

/// Adds all files of a folder, and of the folders in it, to `found`.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |reason| Error::reading(folder, reason);
    let mut entries = std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for path in entries.into_iter().map(|entry| entry.path()) {
        if !path.is_dir() {
            found.push(path);
        } else if depth > 0 {
            collect(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

impl Selection {
    /// The samples selected from a part of `samples` samples that follows `before` samples of earlier parts.
    fn range(self, before: usize, samples: usize) -> Range<usize> {
        match self {
            Selection::From(first, count) => before + first..before + first + count,
            Selection::Last(count) => before + samples - count..before + samples,
        }
    }
}

impl FieldRow {
    fn entry(&self, shape: Vec<usize>) -> FieldEntry {
        let FieldRow { name, role, unit, normalise, .. } = *self;
        FieldEntry { normalise, ..FieldEntry::new(name, role, unit, shape) }
    }
}

impl PieceRow {
    /// The array in a file. It must have the shape of the public array; some writers reverse all axes.
    fn piece(&self, path: &Path, sources: &mut Sources) -> Result<Piece, Error> {
        let info = sources.file(path)?.describe(self.variable)?;
        let fits = |shape: &mut dyn Iterator<Item = &usize>| {
            shape.zip(self.shape).all(|(found, known)| found == known || *known == 0)
        };
        let piece = |axes: String| Piece::new(path, self.variable, &axes, &info, self.channel);
        if info.shape.len() == self.shape.len() {
            if fits(&mut info.shape.iter()) {
                return Ok(piece(self.axes.into()));
            }
            if fits(&mut info.shape.iter().rev()) {
                return Ok(piece(self.axes.chars().rev().collect()));
            }
        }
        let axis = |&extent: &usize| if extent == 0 { "samples".into() } else { extent.to_string() };
        let expected: Vec<String> = self.shape.iter().map(axis).collect();
        let (expected, found) = (format!("shape [{}]", expected.join(", ")), format!("{:?}", info.shape));
        let advice = format!("check that it is the file of this benchmark, or {OWN}");
        Err(Error::unfit(title(path, self.variable), expected, found, advice))
    }
}

#[cfg(test)]
mod tests;
