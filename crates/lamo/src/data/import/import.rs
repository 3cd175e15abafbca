//! Arrays of others become a data set: read a few samples at a time, axes put in order, rounded, written.
//!
//! ```text
//! field = column of parts (joined along the samples), part = pieces (joined along the channels), piece = one array
//! ```
//! In the files of MATLAB and Fortran the samples are interleaved, so that some of them cannot be had without passing
//! over the rest: a file is passed over once per [`BUDGET`] of values, and never held whole.

use crate::data::dataset::partial::{self, Partial};
use crate::data::dataset::{
    Dataset, Error, FieldEntry, Manifest, OriginEntry, Outcome, Progress, SourceEntry, file_hash,
};
use crate::data::formats::{self, ArrayInfo, ElementKind, Values};
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// Bytes of one array held at a time, and about as many again while they are put in order.
const BUDGET: usize = 256 << 20;
/// The axes of a data set in their order: samples, frames, rows, columns, points, channels.
pub(super) const ORDER: &str = "ntxypc";

/// What is to be imported.
#[derive(Debug)]
pub struct Import {
    pub(super) manifest: Manifest,
    /// One per field of the manifest.
    pub(super) columns: Vec<Column>,
    /// Which samples of the columns, in the order of the data set.
    pub(super) kept: Vec<Range<usize>>,
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes hashed and read.
    pub done: u64,
    /// Bytes to be hashed and read.
    pub total: u64,
}

/// Hears of every few bytes; its `Break` is obeyed when the samples being read have been stored.
pub type Listen<'a> = &'a dyn Fn(Transfer) -> ControlFlow<()>;

/// Where one field comes from.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) parts: Vec<Part>,
    /// Every so many-th row and column of the grid.
    stride: usize,
}

/// Some samples of a field.
#[derive(Debug)]
pub(super) struct Part {
    samples: usize,
    pieces: Vec<Piece>,
}

/// One array.
#[derive(Debug)]
pub(super) struct Piece {
    path: PathBuf,
    variable: Option<String>,
    /// Its name in the file, asked for or not.
    name: String,
    /// A letter of [`ORDER`] for each axis of the file.
    axes: String,
    /// Which axis of the file comes first, second, … in the data set.
    order: Vec<usize>,
    /// Points along samples, frames, rows, columns, points and channels; 1 where there is no such axis.
    extents: [usize; 6],
    /// Of one sample, without the axes there are not, before the stride; the channels are told apart.
    inner: Vec<(char, usize)>,
    has_samples: bool,
    kind: ElementKind,
    channel: Option<usize>,
}

/// An array in a sentence.
pub(super) fn title(path: &Path, variable: Option<&str>) -> String {
    variable.map_or_else(|| path.display().to_string(), |name| format!("{}:{name}", path.display()))
}

impl Piece {
    /// `axes` has a letter of [`ORDER`] for each axis of the array.
    pub(super) fn new(
        path: &Path,
        variable: Option<&str>,
        axes: &str,
        info: &ArrayInfo,
        channel: Option<usize>,
    ) -> Piece {
        let place = |letter| axes.chars().position(|axis| axis == letter);
        let order: Vec<_> = ORDER.chars().filter_map(place).collect();
        assert_eq!(order.len(), info.shape.len(), "a letter of {ORDER} for each axis, found {axes}");
        let mut extents = [1; 6];
        for (extent, letter) in extents.iter_mut().zip(ORDER.chars()) {
            *extent = place(letter).map_or(1, |axis| info.shape[axis]);
        }
        let inner = ORDER.chars().zip(extents).filter(|(letter, _)| *letter != 'n' && axes.contains(*letter)).collect();
        Piece {
            path: path.to_owned(),
            variable: variable.map(str::to_owned),
            name: info.name.clone(),
            axes: axes.to_owned(),
            order,
            extents,
            inner,
            has_samples: axes.contains('n'),
            kind: info.kind,
            channel,
        }
    }

    pub(super) fn title(&self) -> String {
        title(&self.path, self.variable.as_deref())
    }

    pub(super) fn samples(&self) -> usize {
        self.extents[0]
    }

    pub(super) fn has_samples(&self) -> bool {
        self.has_samples
    }

    /// Whether both have the same axes and the same points along them, but for the samples and the order in the file.
    pub(super) fn alike(&self, other: &Piece) -> bool {
        self.inner == other.inner && self.has_samples == other.has_samples
    }

    /// Whether it has a value at every point of the grid, not at the rows alone or once.
    pub(super) fn is_over_points(&self) -> bool {
        self.inner.iter().any(|(letter, _)| matches!(letter, 'y' | 'p'))
    }

    pub(super) fn frames(&self) -> Option<usize> {
        self.inner.iter().find(|(letter, _)| *letter == 't').map(|(_, frames)| *frames)
    }

    fn channels(&self) -> usize {
        if self.channel.is_some() { 1 } else { self.extents[5] }
    }

    /// Bytes of one value as it is read.
    fn width(&self) -> usize {
        if self.kind.is_single() { 4 } else { 8 }
    }

    /// Bytes of one sample as they are read.
    fn bytes(&self) -> usize {
        self.extents[1..].iter().fold(self.width(), |bytes, &extent| bytes.saturating_mul(extent))
    }

    /// Samples `rows` of the whole array, its axes in order.
    fn read(&self, rows: Range<usize>, meter: &Meter) -> Result<Values, Error> {
        let rows = if self.has_samples { rows } else { 0..self.first_extent() };
        let tick = &mut |count| meter.tick(count * self.width());
        let array = formats::read_ordered(&self.path, self.variable.as_deref(), &self.order, rows, tick)?;
        let inner: Vec<_> = self.inner.iter().map(|(_, extent)| *extent).collect();
        if !array.shape.ends_with(&inner) {
            let (expected, found) = (format!("{inner:?} for each sample, as before"), format!("{:?}", array.shape));
            return Err(Error::unfit(self.title(), expected, found, "leave the file alone while it is being read"));
        }
        Ok(array.values)
    }

    /// Puts the values of so many samples into a block `[samples, points, total]` from channel `offset` on.
    fn lay(&self, values: &[f32], samples: usize, stride: usize, block: &mut [f32], [offset, total]: [usize; 2]) {
        let [_, frames, rows, columns, points, channels] = self.extents;
        let taken = self.channel.map_or(0..channels, |channel| channel..channel + 1);
        let mut point = block.chunks_exact_mut(total);
        for frame in 0..samples * frames {
            for row in (0..rows).step_by(stride) {
                for column in (0..columns).step_by(stride) {
                    let start = ((frame * rows + row) * columns + column) * points * channels;
                    for (place, point) in (0..points).zip(&mut point) {
                        let from = start + place * channels;
                        let taken = &values[from + taken.start..from + taken.end];
                        point[offset..offset + taken.len()].copy_from_slice(taken);
                    }
                }
            }
        }
    }

    /// What the manifest says of it; its file is one of `sources`.
    fn origin(&self, sources: &[&Path]) -> OriginEntry {
        let source = sources.iter().position(|source| *source == self.path).unwrap_or_default();
        OriginEntry { source, array: self.name.clone(), axes: self.axes.clone(), channel: self.channel }
    }

    /// Points along the axis that comes first where there are no samples.
    fn first_extent(&self) -> usize {
        self.inner.first().map_or(1, |(_, extent)| *extent)
    }
}

impl Part {
    /// Of arrays that hold the same samples.
    pub(super) fn new(pieces: Vec<Piece>) -> Part {
        Part { samples: pieces.first().map_or(0, Piece::samples), pieces }
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

impl Column {
    pub(super) fn new(stride: usize) -> Column {
        Column { parts: Vec::new(), stride }
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.parts.iter().flat_map(|part| &part.pieces)
    }

    pub(super) fn samples(&self) -> usize {
        self.parts.iter().map(|part| part.samples).sum()
    }

    /// At one point.
    pub(super) fn channels(&self) -> usize {
        self.parts.first().map_or(0, |part| part.pieces.iter().map(Piece::channels).sum())
    }

    /// Of one sample in the data set.
    pub(super) fn shape(&self) -> Vec<usize> {
        let Some(part) = self.parts.first() else { return Vec::new() };
        let (inner, channels) = (&part.pieces[0].inner, part.pieces.iter().map(Piece::channels).sum());
        let thin = |&(letter, extent): &(char, usize)| match letter {
            'c' => None,
            'x' | 'y' => Some(extent.div_ceil(self.stride)),
            _ => Some(extent),
        };
        let mut shape: Vec<_> = inner.iter().filter_map(thin).collect();
        let one = part.pieces.len() == 1 && (part.pieces[0].channel.is_some() || inner.iter().all(|(l, _)| *l != 'c'));
        if !one {
            shape.push(channels);
        }
        shape
    }

    /// `[samples, ...shape]` in single precision.
    fn read(&self, samples: Range<usize>, held: &mut Held, meter: &Meter) -> Result<Vec<f32>, Error> {
        let count: usize = self.shape().iter().product();
        let mut block = vec![0.0; samples.len() * count];
        let (mut first, mut filled) = (0, 0);
        for part in &self.parts {
            let end = first + part.samples;
            let (from, to) = (samples.start.max(first), samples.end.min(end));
            if from < to {
                let total = part.pieces.iter().map(Piece::channels).sum();
                let block = &mut block[filled..filled + (to - from) * count];
                let mut offset = 0;
                for piece in &part.pieces {
                    let values = held.values(piece, from - first..to - first, meter)?;
                    piece.lay(values, to - from, self.stride, block, [offset, total]);
                    offset += piece.channels();
                }
                filled += block.len();
            }
            first = end;
        }
        Ok(block)
    }

    /// The array and the sample in it that sample `sample` of the column comes from.
    fn origin(&self, mut sample: usize) -> (String, usize) {
        for part in &self.parts {
            if sample < part.samples {
                return (part.pieces[0].title(), sample);
            }
            sample -= part.samples;
        }
        (String::new(), sample)
    }
}

/// The array read last: several fields may be channels of the same one.
#[derive(Default)]
struct Held {
    of: Option<(String, Range<usize>)>,
    values: Vec<f32>,
    /// A value of this or an earlier array that is infinite in single precision alone.
    beyond: Option<f64>,
}

impl Held {
    fn values(&mut self, piece: &Piece, rows: Range<usize>, meter: &Meter) -> Result<&[f32], Error> {
        let of = Some((piece.title(), rows.clone()));
        if self.of != of {
            *self = Held { beyond: self.beyond, ..Held::default() }; // before the next one takes its memory
            let values = piece.read(rows, meter)?;
            self.beyond = values.beyond_f32().or(self.beyond);
            self.values = values.into_f32();
            self.of = of;
        }
        Ok(&self.values)
    }
}

impl Import {
    /// The manifest of the set to come, without hashes.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Every file there is to read, once.
    fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        for path in self.columns.iter().flat_map(Column::pieces).map(|piece| piece.path.as_path()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Writes the data set into `target`, or what an earlier attempt left missing of it.
    pub fn write(&self, target: &Path, listen: Listen) -> Result<Outcome, Error> {
        let size = |path: &&Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let paths = self.paths();
        let hashed: u64 = paths.iter().map(size).sum();
        let meter = Meter { done: Cell::new(0), total: Cell::new(hashed + self.bytes(self.manifest.samples)), listen };
        let mut manifest = self.manifest.clone();
        for (field, column) in manifest.fields.iter_mut().zip(&self.columns) {
            field.origin = column.pieces().map(|piece| piece.origin(&paths)).collect();
        }
        for path in paths {
            let sha256 = file_hash(path, &mut |bytes| meter.tick(bytes))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            manifest.sources.push(SourceEntry { file, bytes: size(&path), sha256 });
        }
        partial::make(target, &manifest, |partial| self.fill(partial, &meter, hashed))
    }

    /// Bytes to read for so many samples.
    fn bytes(&self, samples: usize) -> u64 {
        let first = self.columns.iter().filter_map(|column| column.parts.first());
        let mut arrays: Vec<_> =
            first.flat_map(|part| &part.pieces).map(|piece| (piece.title(), piece.bytes())).collect();
        arrays.sort();
        arrays.dedup();
        arrays.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>() * samples as u64
    }

    fn fill(&self, partial: &Partial, meter: &Meter, hashed: u64) -> Result<Progress, Error> {
        let (missing, samples) = (partial.missing(), self.manifest.samples);
        meter.total.set(hashed + self.bytes(missing.len()));
        let most = self.columns.iter().flat_map(Column::pieces).map(Piece::bytes).max().unwrap_or(1);
        let mut made = 0;
        for (place, origin) in self.blocks(&missing, (BUDGET / most.max(1)).max(1)) {
            let mut held = Held::default();
            for (number, (field, column)) in self.manifest.fields.iter().zip(&self.columns).enumerate() {
                let (first, origin) = if field.common { (0, 0..1) } else { (place, origin.clone()) };
                let read = column.read(origin.clone(), &mut held, meter);
                let sound =
                    |values: Vec<f32>| check(field, column, origin.start, &values, held.beyond).map(|()| values);
                // A source that is refused will be another one when it has been mended.
                let values = read.and_then(sound).inspect_err(|_| partial.discard())?;
                partial.store(number, first, &values)?;
            }
            partial.mark(place..place + origin.len())?;
            made += origin.len();
            if meter.stop() {
                break;
            }
        }
        partial.save()?;
        Ok(Progress { complete: samples - missing.len() + made, made, samples })
    }

    /// Runs of at most `most` missing samples: the first place in the set, and where they are in the columns.
    fn blocks(&self, missing: &[usize], most: usize) -> Vec<(usize, Range<usize>)> {
        let origins: Vec<usize> = self.kept.iter().cloned().flatten().collect();
        let mut blocks: Vec<(usize, Range<usize>)> = Vec::new();
        for &place in missing {
            let origin = origins[place];
            match blocks.last_mut() {
                Some((first, run)) if *first + run.len() == place && run.end == origin && run.len() < most => {
                    run.end += 1;
                }
                _ => blocks.push((place, origin..origin + 1)),
            }
        }
        blocks
    }
}

/// Refuses what is no number; the values begin with sample `first` of the column, and infinite ones may have been `beyond`.
fn check(field: &FieldEntry, column: &Column, first: usize, values: &[f32], beyond: Option<f64>) -> Result<(), Error> {
    let Some(place) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let count: usize = field.shape.iter().product();
    let (mut rest, mut position) = (place % count, vec![0; field.shape.len()]);
    for (index, length) in position.iter_mut().zip(&field.shape).rev() {
        (*index, rest) = (rest % length, rest / length);
    }
    let (origin, sample) = column.origin(first + place / count);
    let found = beyond.filter(|&value| value as f32 == values[place]).unwrap_or(values[place].into());
    Err(Error::NoNumber { origin, field: field.name.clone(), sample, position, found })
}

/// Bytes gone by, and those who hear of them.
struct Meter<'a> {
    done: Cell<u64>,
    total: Cell<u64>,
    listen: Listen<'a>,
}

impl Meter<'_> {
    fn tick(&self, bytes: usize) {
        self.done.set(self.done.get() + bytes as u64);
        let _ = self.stop();
    }

    fn stop(&self) -> bool {
        let (done, total) = (self.done.get(), self.total.get());
        (self.listen)(Transfer { done: done.min(total), total }).is_break()
    }
}

impl Dataset {
    /// Whether the values come from files rather than from a solver.
    pub fn is_imported(&self) -> bool {
        !self.manifest().sources.is_empty()
    }
}
