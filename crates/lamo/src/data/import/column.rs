//! The arrays of which an import makes one field, and how their values are read.
//!
//! ```text
//! column (one field) = parts joined along the samples;  part = pieces joined along the channels;  piece = one array
//! ```

use super::axes::{self, ORDER};
use super::sources::Sources;
use super::transfer::Meter;
use crate::data::dataset::{Error, OriginEntry};
use crate::data::formats::{ArrayInfo, ElementKind, Single};
use crate::error::counted;
use crate::files::memory;
use lamo_geometry::Grid;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The source of one field.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) parts: Vec<Part>,
    /// Distance of the rows and columns that are read: 1 reads all, 2 every second.
    stride: usize,
}

/// Arrays that hold the same samples, side by side.
#[derive(Debug)]
pub(super) struct Part {
    samples: usize,
    pieces: Vec<Piece>,
}

/// One array.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) path: PathBuf,
    variable: Option<String>,
    /// Its name in the file, also where `variable` does not name it.
    name: String,
    /// A letter of [`ORDER`] for each axis of the file.
    axes: String,
    /// The axes of the file in the order of the data set.
    order: Vec<usize>,
    /// Extents along samples, snapshots, rows, columns, points and channels; 1 where the array has no such axis.
    extents: [usize; 6],
    /// Letters and extents of one sample, before the stride.
    inner: Vec<(char, usize)>,
    has_samples: bool,
    kind: ElementKind,
    /// The only channel that is read.
    channel: Option<usize>,
}

/// The title of an array in a sentence.
pub(super) fn title(path: &Path, variable: Option<&str>) -> String {
    variable.map_or_else(|| path.display().to_string(), |name| format!("{}:{name}", path.display()))
}

/// The grid of every `stride`-th row and column.
pub(super) fn thinned(grid: Grid, stride: usize) -> Grid {
    match grid {
        Grid::Plane { rows, columns } => Grid::Plane { rows: rows.div_ceil(stride), columns: columns.div_ceil(stride) },
        other => other,
    }
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
        let axis_of = |letter| axes.chars().position(|axis| axis == letter);
        let order: Vec<_> = ORDER.chars().filter_map(axis_of).collect();
        assert_eq!(order.len(), info.shape.len(), "a letter of {ORDER} for each axis, found {axes}");
        let mut extents = [1; 6];
        for (extent, letter) in extents.iter_mut().zip(ORDER.chars()) {
            *extent = axis_of(letter).map_or(1, |axis| info.shape[axis]);
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

    /// Its axes in words.
    pub(super) fn words(&self) -> String {
        let samples = self.has_samples.then_some(('n', self.samples()));
        axes::words(samples.into_iter().chain(self.inner.iter().copied()))
    }

    /// Whether both have the same axes and extents, but for the number of samples and the order in the file.
    pub(super) fn alike(&self, other: &Piece) -> bool {
        self.inner == other.inner && self.has_samples == other.has_samples
    }

    /// Whether it has a value at every point of the grid; else it has one per row or one per sample.
    pub(super) fn is_over_points(&self) -> bool {
        self.inner.iter().any(|(letter, _)| matches!(letter, 'y' | 'p'))
    }

    /// How many snapshots it has; `None` where it has no such axis.
    pub(super) fn snapshots(&self) -> Option<usize> {
        self.inner.iter().find(|(letter, _)| *letter == 't').map(|(_, snapshots)| *snapshots)
    }

    fn channels(&self) -> usize {
        if self.channel.is_some() { 1 } else { self.extents[5] }
    }

    /// Bytes of one value in the progress of the import.
    fn width(&self) -> usize {
        if self.kind.is_single() { 4 } else { 8 }
    }

    /// Bytes of one sample in the progress of the import, and at most in memory.
    pub(super) fn bytes(&self) -> usize {
        self.extents[1..].iter().fold(self.width(), |bytes, &extent| bytes.saturating_mul(extent))
    }

    /// Samples `rows` with all channels, the axes in the order of the data set.
    fn read(&self, rows: Range<usize>, sources: &mut Sources, meter: &Meter) -> Result<Single, Error> {
        let rows = if self.has_samples { rows } else { 0..self.first_extent() };
        let tick = &mut |count| meter.tick(count * self.width());
        let file = sources.file(&self.path)?;
        let array = file.read_single(self.variable.as_deref(), Some(&self.order), Some(rows), tick)?;
        let inner: Vec<_> = self.inner.iter().map(|(_, extent)| *extent).collect();
        if !array.shape.ends_with(&inner) {
            let (expected, found) = (format!("{inner:?} for each sample, as before"), format!("{:?}", array.shape));
            return Err(Error::unfit(self.title(), expected, found, "do not change the file while it is imported"));
        }
        Ok(array)
    }

    /// Whether the values of a sample are all those of the data set, in its order.
    fn is_whole(&self, stride: usize) -> bool {
        stride == 1 && self.channel.is_none()
    }

    /// Copies the values of `samples` samples into a block `[samples, points, total]`, from channel `offset` on.
    fn copy_into(&self, block: &mut [f32], values: &[f32], samples: usize, stride: usize, [offset, total]: [usize; 2]) {
        let [_, snapshots, rows, columns, points, channels] = self.extents;
        let taken = self.channel.map_or(0..channels, |channel| channel..channel + 1);
        let mut targets = block.chunks_exact_mut(total);
        for snapshot in 0..samples * snapshots {
            for row in (0..rows).step_by(stride) {
                for column in (0..columns).step_by(stride) {
                    let start = ((snapshot * rows + row) * columns + column) * points * channels;
                    for (point, target) in (0..points).zip(&mut targets) {
                        let from = start + point * channels;
                        let taken = &values[from + taken.start..from + taken.end];
                        target[offset..offset + taken.len()].copy_from_slice(taken);
                    }
                }
            }
        }
    }

    /// Its entry in the manifest; `sources` are the files of the import.
    pub(super) fn origin(&self, sources: &[&Path]) -> OriginEntry {
        let source = sources.iter().position(|source| *source == self.path).unwrap_or_default();
        OriginEntry { source, array: self.name.clone(), axes: self.axes.clone(), channel: self.channel }
    }

    /// Extent of the first axis where there are no samples.
    fn first_extent(&self) -> usize {
        self.inner.first().map_or(1, |(_, extent)| *extent)
    }
}

impl Part {
    /// A part of arrays that hold the same samples.
    pub(super) fn new(pieces: Vec<Piece>) -> Part {
        Part { samples: pieces.first().map_or(0, Piece::samples), pieces }
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn channels(&self) -> usize {
        self.pieces.iter().map(Piece::channels).sum()
    }
}

impl Column {
    pub(super) fn new(stride: usize) -> Column {
        Column { parts: Vec::new(), stride }
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.parts.iter().flat_map(|part| &part.pieces)
    }

    pub(super) fn samples(&self) -> usize {
        self.parts.iter().map(|part| part.samples).sum()
    }

    /// Channels per point.
    pub(super) fn channels(&self) -> usize {
        self.parts.first().map_or(0, Part::channels)
    }

    /// Shape of one sample in the data set.
    pub(super) fn shape(&self) -> Vec<usize> {
        let Some(part) = self.parts.first() else { return Vec::new() };
        let inner = &part.pieces[0].inner;
        let thin = |&(letter, extent): &(char, usize)| match letter {
            'c' => None,
            'x' | 'y' => Some(extent.div_ceil(self.stride)),
            _ => Some(extent),
        };
        let mut shape: Vec<_> = inner.iter().filter_map(thin).collect();
        let has_channels = inner.iter().any(|(letter, _)| *letter == 'c') && part.pieces[0].channel.is_none();
        if part.pieces.len() > 1 || has_channels {
            shape.push(part.channels());
        }
        shape
    }

    /// The only array, if its values are those of the data set and in their order.
    fn whole(&self) -> Option<&Piece> {
        let [part] = &self.parts[..] else { return None };
        let [piece] = &part.pieces[..] else { return None };
        Some(piece).filter(|piece| piece.is_whole(self.stride))
    }

    /// Bytes of memory for one sample: the array as it is read, and the values taken from it where these are others.
    pub(super) fn memory(&self) -> u64 {
        let product =
            |extents: &[usize]| extents.iter().fold(4, |bytes: u64, &extent| bytes.saturating_mul(extent as u64));
        let read = self.pieces().map(|piece| product(&piece.extents[1..])).max().unwrap_or(0);
        let taken = if self.whole().is_some() { 0 } else { product(&self.shape()) };
        read.saturating_add(taken)
    }

    /// `[samples, ...shape]` in single precision, and a value that single precision cannot hold.
    pub(super) fn read<'a>(
        &self,
        samples: Range<usize>,
        sources: &mut Sources,
        last: &'a mut LastRead,
        meter: &Meter,
    ) -> Result<(Cow<'a, [f32]>, Option<f64>), Error> {
        let count: usize = self.shape().iter().product();
        if let Some(piece) = self.whole() {
            last.load(piece, samples, sources, meter)?;
            return Ok((Cow::Borrowed(&last.values), last.beyond));
        }
        let needed = samples.len().saturating_mul(count);
        let mut block = memory::filled(0.0, needed).map_err(|reason| {
            Error::memory(format!("{} of {}", counted(samples.len(), "sample"), self.origin(samples.start).0), reason)
        })?;
        let (mut first, mut filled) = (0, 0);
        for part in &self.parts {
            let end = first + part.samples;
            let (from, to) = (samples.start.max(first), samples.end.min(end));
            if from < to {
                let block = &mut block[filled..filled + (to - from) * count];
                let mut offset = 0;
                for piece in &part.pieces {
                    last.load(piece, from - first..to - first, sources, meter)?;
                    piece.copy_into(block, &last.values, to - from, self.stride, [offset, part.channels()]);
                    offset += piece.channels();
                }
                filled += block.len();
            }
            first = end;
        }
        Ok((Cow::Owned(block), last.beyond))
    }

    /// The array that sample `sample` of the column comes from, and the index of the sample in it.
    pub(super) fn origin(&self, mut sample: usize) -> (String, usize) {
        for part in &self.parts {
            if sample < part.samples {
                return (part.pieces[0].title(), sample);
            }
            sample -= part.samples;
        }
        (String::new(), sample)
    }
}

/// The array that was read last: several fields may be channels of the same array.
#[derive(Default)]
pub(super) struct LastRead {
    /// Title and rows.
    of: Option<(String, Range<usize>)>,
    values: Vec<f32>,
    /// A value of this or an earlier array that is finite in the file and infinite in single precision.
    beyond: Option<f64>,
}

impl LastRead {
    /// Reads an array, unless it is the one that was read last.
    fn load(&mut self, piece: &Piece, rows: Range<usize>, sources: &mut Sources, meter: &Meter) -> Result<(), Error> {
        let of = Some((piece.title(), rows.clone()));
        if self.of != of {
            *self = LastRead { beyond: self.beyond, ..LastRead::default() }; // frees the memory before the next read
            let Single { values, beyond, .. } = piece.read(rows, sources, meter)?;
            *self = LastRead { of, values, beyond: beyond.or(self.beyond) };
        }
        Ok(())
    }
}
