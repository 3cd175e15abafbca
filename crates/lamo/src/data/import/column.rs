//! The arrays of which an import makes one field, and how their values are read.
//!
//! ```text
//! column (one field) = parts joined along the samples;  part = pieces joined along the channels;  piece = one array
//! ```

use super::axes::{self, ORDER, UNUSED};
use super::sources::Sources;
use super::transfer::Meter;
use super::windows::Windows;
use crate::data::dataset::{Error, OriginEntry};
use crate::data::formats::{ArrayInfo, ElementKind, Rounding, Single};
use crate::error::counted;
use crate::files::memory;
use lamo_geometry::Grid;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The source of one field.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) parts: Vec<Part>,
    /// Distance of the rows and columns that are read: 1 reads all, 2 every second.
    stride: usize,
    /// Each part is a sample, or a time series, with its own number of points.
    ragged: bool,
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
    /// Extents along samples, snapshots, rows, columns, points and channels; 1 where the array has no such axis. The
    /// samples are those of the file, the snapshots those of one sample of the data set.
    extents: [usize; 7],
    /// Snapshots of the file; 1 where it has none.
    snapshots: usize,
    /// Letters and extents of one sample, before the stride.
    inner: Vec<(char, usize)>,
    /// How its time series are cut.
    cut: Option<Windows>,
    /// Samples of the data set for each sample of the file: the windows of a trajectory, else 1.
    windows: usize,
    has_samples: bool,
    kind: ElementKind,
    /// The only channel that is read.
    channel: Option<usize>,
}

/// The title of an array in a sentence.
pub(super) fn title(path: &Path, variable: Option<&str>) -> String {
    variable.map_or_else(|| path.display().to_string(), |name| format!("{}:{name}", path.display()))
}

/// The grid of every `stride`-th row, column and layer.
pub(super) fn thinned(grid: Grid, stride: usize) -> Grid {
    match grid {
        Grid::Plane { rows, columns } => Grid::Plane { rows: rows.div_ceil(stride), columns: columns.div_ceil(stride) },
        Grid::Volume { rows, columns, layers } => Grid::Volume {
            rows: rows.div_ceil(stride),
            columns: columns.div_ceil(stride),
            layers: layers.div_ceil(stride),
        },
        Grid::Line { .. } | Grid::Cloud { .. } => grid,
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
        let unused = axes.chars().enumerate().filter(|(_, letter)| *letter == UNUSED).map(|(axis, _)| axis);
        let order: Vec<_> = ORDER.chars().filter_map(axis_of).chain(unused).collect();
        assert_eq!(order.len(), info.shape.len(), "a letter of {ORDER} for each axis, found {axes}");
        let mut extents = [1; 7];
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
            snapshots: extents[1],
            extents,
            inner,
            cut: None,
            windows: 1,
            has_samples: axes.contains('n'),
            kind: info.kind,
            channel,
        }
    }

    pub(super) fn title(&self) -> String {
        title(&self.path, self.variable.as_deref())
    }

    /// Whether its numbers are complex.
    pub(super) fn is_complex(&self) -> bool {
        self.kind.is_complex()
    }

    /// Extents of the axes of its array, in the order of the file.
    pub(super) fn extents_of_file(&self) -> Vec<usize> {
        let extent = |letter| match letter {
            't' => self.snapshots,
            _ => ORDER.find(letter).map_or(1, |place| self.extents[place]),
        };
        self.axes.chars().map(extent).collect()
    }

    /// Its axes, one letter each.
    pub(super) fn axes(&self) -> &str {
        &self.axes
    }

    /// Samples of the data set.
    pub(super) fn samples(&self) -> usize {
        self.extents[0].saturating_mul(self.windows)
    }

    /// Samples of the data set for each sample of the file.
    pub(super) fn windows(&self) -> usize {
        self.windows
    }

    /// The same cut into windows, if it has snapshots.
    pub(super) fn cut(mut self, windows: Windows) -> Piece {
        if let Some((_, snapshots)) = self.inner.iter_mut().find(|(letter, _)| *letter == 't') {
            (self.cut, self.windows) = (Some(windows), windows.count(self.snapshots));
            (*snapshots, self.extents[1]) = (windows.length(), windows.length());
        }
        self
    }

    /// Snapshots of the file; 1 where it has none.
    pub(super) fn all_snapshots(&self) -> usize {
        self.snapshots
    }

    /// The axes of one sample in words.
    pub(super) fn words(&self) -> String {
        axes::words(self.inner.iter().copied())
    }

    /// The axes of one sample in words, without its points.
    pub(super) fn words_without_points(&self) -> String {
        axes::words(self.inner.iter().copied().filter(|(letter, _)| *letter != 'p'))
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
        if self.channel.is_some() { 1 } else { self.extents[6] }
    }

    /// Bytes of one value in the progress of the import.
    fn width(&self) -> usize {
        if self.kind.is_single() { 4 } else { 8 }
    }

    /// Bytes of one sample in the progress of the import, and at most in memory.
    pub(super) fn bytes(&self) -> usize {
        self.extents[1..].iter().fold(self.width(), |bytes, &extent| bytes.saturating_mul(extent))
    }

    /// Samples `samples` with all channels, the axes in the order of the data set.
    fn read(&self, samples: Range<usize>, sources: &mut Sources, meter: &Meter) -> Result<Single, Error> {
        let last = samples.end.saturating_sub(1).max(samples.start);
        let rows = match (self.has_samples, self.cut) {
            (true, _) => samples.start / self.windows..last / self.windows + 1,
            (false, Some(windows)) => windows.snapshots(&samples),
            (false, None) => 0..self.first_extent(),
        };
        let tick = &mut |count| meter.tick(count * self.width());
        let file = sources.file(&self.path)?;
        let first = rows.start;
        let expected: usize = match (self.has_samples, self.cut) {
            (true, _) => rows.len() * self.snapshots * self.point_values(),
            (false, Some(_)) => rows.len() * self.point_values(),
            (false, None) => self.snapshots * self.point_values(),
        };
        let array = file.read_single(self.variable.as_deref(), Some(&self.order), Some(rows), tick)?;
        if array.values.len() != expected {
            let (expected, found) = (format!("{expected} values, as before"), array.values.len().to_string());
            return Err(Error::unfit(self.title(), expected, found, "do not change the file while it is imported"));
        }
        if self.windows == 1 && self.cut.is_none() {
            return Ok(array);
        }
        let values = self.cut_out(&array.values, samples, first)?;
        Ok(Single { values, ..array })
    }

    /// Values of all points and channels of one snapshot.
    fn point_values(&self) -> usize {
        self.extents[2..].iter().product()
    }

    /// The samples of the data set from the rows of the file, the first of which is `first`.
    fn cut_out(&self, values: &[f32], samples: Range<usize>, first: usize) -> Result<Vec<f32>, Error> {
        let (points, length) = (self.point_values(), self.extents[1] * self.point_values());
        let mut found = memory::reserve(samples.len().saturating_mul(length)).map_err(|reason| {
            Error::memory(format!("{} of {}", counted(samples.len(), "sample"), self.title()), reason)
        })?;
        for sample in samples {
            let (trajectory, window) = (sample / self.windows, sample % self.windows);
            let step = self.cut.map_or(0, |windows| windows.step);
            let start = match self.has_samples {
                true => ((trajectory - first) * self.snapshots + window * step) * points,
                false if self.cut.is_some() => (window * step - first) * points,
                false => 0, // one value for all windows
            };
            found.extend_from_slice(&values[start..start + length]);
        }
        Ok(found)
    }

    /// Whether the values of a sample are all those of the data set, in its order.
    fn is_whole(&self, stride: usize) -> bool {
        stride == 1 && self.channel.is_none()
    }

    /// Copies the values of `samples` samples into a block `[samples, points, total]`, from channel `offset` on.
    fn copy_into(&self, block: &mut [f32], values: &[f32], samples: usize, stride: usize, [offset, total]: [usize; 2]) {
        let [_, snapshots, rows, columns, layers, points, channels] = self.extents;
        let thinned = |extent: usize| (0..extent).step_by(stride);
        let taken = self.channel.map_or(0..channels, |channel| channel..channel + 1);
        let mut targets = block.chunks_exact_mut(total);
        for snapshot in 0..samples * snapshots {
            let columns_of = |row| thinned(columns).map(move |column| row * columns + column);
            let layers_of = |column| thinned(layers).map(move |layer| column * layers + layer);
            for place in thinned(rows).flat_map(columns_of).flat_map(layers_of) {
                let start = (snapshot * rows * columns * layers + place) * points * channels;
                for (point, target) in (0..points).zip(&mut targets) {
                    let from = start + point * channels;
                    let taken = &values[from + taken.start..from + taken.end];
                    target[offset..offset + taken.len()].copy_from_slice(taken);
                }
            }
        }
    }

    /// Its entry in the manifest; `sources` are the files of the import and their places in the manifest.
    pub(super) fn origin(&self, sources: &HashMap<&Path, usize>) -> OriginEntry {
        let source = sources.get(self.path.as_path()).copied().unwrap_or_default();
        OriginEntry { source, array: self.name.clone(), axes: self.axes.clone(), channel: self.channel }
    }

    /// Extent of the first axis where there are no samples.
    fn first_extent(&self) -> usize {
        self.inner.first().map_or(1, |(_, extent)| *extent)
    }

    /// Its extents in words, samples and snapshots as in the file: `3 samples, 201 snapshots, 512 points`.
    pub(super) fn described(&self) -> String {
        let samples = self.has_samples.then(|| counted(self.extents[0], "sample"));
        let file =
            self.inner.iter().map(|&(letter, extent)| (letter, if letter == 't' { self.snapshots } else { extent }));
        let rest = axes::words(file);
        let words: Vec<String> = samples.into_iter().chain(Some(rest).filter(|rest| !rest.is_empty())).collect();
        if words.is_empty() { "one number".to_owned() } else { words.join(", ") }
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

/// Values in single precision, a value that single precision cannot hold, and what it changes in the values of the files.
pub(super) type Values<'a> = (Cow<'a, [f32]>, Option<f64>, Rounding);

impl Column {
    pub(super) fn new(stride: usize) -> Column {
        Column { parts: Vec::new(), stride, ragged: false }
    }

    /// A column whose parts are samples with different numbers of points.
    pub(super) fn ragged() -> Column {
        Column { parts: Vec::new(), stride: 1, ragged: true }
    }

    /// Whether each part is a sample with its own number of points.
    pub(super) fn is_ragged(&self) -> bool {
        self.ragged
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.parts.iter().flat_map(|part| &part.pieces)
    }

    pub(super) fn samples(&self) -> usize {
        self.parts.iter().map(|part| part.samples).sum()
    }

    /// Snapshots of each of its time series.
    pub(super) fn series(&self) -> Vec<usize> {
        let first = self.parts.iter().filter_map(|part| part.pieces.first());
        first.flat_map(|piece| std::iter::repeat_n(piece.snapshots, piece.extents[0])).collect()
    }

    /// Whether all samples share its values: it is one array without samples and without windows.
    pub(super) fn is_common(&self) -> bool {
        let [part] = &self.parts[..] else { return false };
        !self.ragged && part.pieces.first().is_some_and(|piece| !piece.has_samples && piece.cut.is_none())
    }

    /// Whether each part is one sample, of which there are so many.
    pub(super) fn has_a_part_for_each(&self, samples: usize) -> bool {
        self.parts.len() == samples && self.parts.iter().all(|part| part.samples == 1)
    }

    /// Repeats each sample for the windows of its trajectory, whose numbers are those of the parts or one for all; nothing to do
    /// where it has snapshots of its own.
    pub(super) fn repeat(&mut self, windows: &[usize]) {
        let counts = windows.iter().copied().cycle();
        for (part, windows) in self.parts.iter_mut().zip(counts) {
            for piece in part.pieces.iter_mut().filter(|piece| piece.cut.is_none()) {
                piece.windows = windows;
            }
            part.samples = part.pieces.first().map_or(0, Piece::samples);
        }
    }

    /// Channels per point.
    pub(super) fn channels(&self) -> usize {
        self.parts.first().map_or(0, Part::channels)
    }

    /// Shape of one sample in the data set, of the largest where they differ in their points.
    pub(super) fn shape(&self) -> Vec<usize> {
        let Some(first) = self.parts.first() else { return Vec::new() };
        let mut shape = self.shape_of(first);
        for part in self.parts.iter().filter(|_| self.ragged) {
            let other = self.shape_of(part);
            shape.iter_mut().zip(other).for_each(|(extent, other)| *extent = (*extent).max(other));
        }
        shape
    }

    /// Shape of the samples of a part in the data set.
    fn shape_of(&self, part: &Part) -> Vec<usize> {
        let inner = &part.pieces[0].inner;
        let thin = |&(letter, extent): &(char, usize)| match letter {
            'c' => None,
            'x' | 'y' | 'z' => Some(extent.div_ceil(self.stride)),
            _ => Some(extent),
        };
        let mut shape: Vec<_> = inner.iter().filter_map(thin).collect();
        let has_channels = inner.iter().any(|(letter, _)| *letter == 'c') && part.pieces[0].channel.is_none();
        if part.pieces.len() > 1 || has_channels {
            shape.push(part.channels());
        }
        shape
    }

    /// A letter for each axis of its shape: t snapshots, p the points, x rows alone, c channels.
    pub(super) fn letters(&self) -> String {
        let Some(piece) = self.pieces().next() else { return String::new() };
        let has = |letter: char| piece.inner.iter().any(|(axis, _)| *axis == letter);
        let points = if piece.is_over_points() { Some('p') } else { has('x').then_some('x') };
        let places = usize::from(has('t')) + piece.inner.iter().filter(|(letter, _)| "xyzp".contains(*letter)).count();
        let channels = (self.shape().len() > places).then_some('c');
        has('t').then_some('t').into_iter().chain(points).chain(channels).collect()
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

    /// Values of one sample.
    pub(super) fn count_at(&self, sample: usize) -> usize {
        self.shape_at(sample).iter().product()
    }

    /// Shape of one sample, which has its own number of points where these differ.
    pub(super) fn shape_at(&self, sample: usize) -> Vec<usize> {
        let mut end = 0;
        let holds = |part: &&Part| {
            end += part.samples;
            !self.ragged || sample < end
        };
        let part = self.parts.iter().find(holds);
        part.map_or_else(Vec::new, |part| self.shape_of(part))
    }

    /// `[samples, ...shape]`
    pub(super) fn read<'a>(
        &self,
        samples: Range<usize>,
        sources: &mut Sources,
        last: &'a mut LastRead,
        meter: &Meter,
    ) -> Result<Values<'a>, Error> {
        let count = self.count_at(samples.start);
        if let Some(piece) = self.whole() {
            last.load(piece, samples, sources, meter)?;
            return Ok((Cow::Borrowed(&last.values), last.beyond, last.rounding));
        }
        let needed = samples.len().saturating_mul(count);
        let mut block = memory::filled(0.0, needed).map_err(|reason| {
            Error::memory(format!("{} of {}", counted(samples.len(), "sample"), self.origin(samples.start).0), reason)
        })?;
        let (mut first, mut filled, mut rounding) = (0, 0, Rounding::default());
        for part in &self.parts {
            let end = first + part.samples;
            let (from, to) = (samples.start.max(first), samples.end.min(end));
            if from < to {
                let block = &mut block[filled..filled + (to - from) * count];
                let mut offset = 0;
                for piece in &part.pieces {
                    last.load(piece, from - first..to - first, sources, meter)?;
                    rounding = rounding.and(last.rounding);
                    piece.copy_into(block, &last.values, to - from, self.stride, [offset, part.channels()]);
                    offset += piece.channels();
                }
                filled += block.len();
            }
            first = end;
        }
        Ok((Cow::Owned(block), last.beyond, rounding))
    }

    /// The array that sample `sample` of the column comes from, the index of the sample in it, and the first of its snapshots.
    pub(super) fn origin(&self, mut sample: usize) -> (String, usize, usize) {
        for part in &self.parts {
            if sample < part.samples {
                let (piece, windows) = (&part.pieces[0], part.pieces[0].windows.max(1));
                let step = piece.cut.map_or(0, |cut| cut.step);
                return (piece.title(), sample / windows, sample % windows * step);
            }
            sample -= part.samples;
        }
        (String::new(), sample, 0)
    }
}

/// The array that was read last: several fields may be channels of the same array.
#[derive(Default)]
pub(super) struct LastRead {
    /// Title, axes and rows.
    of: Option<(String, String, Range<usize>)>,
    values: Vec<f32>,
    /// A value of this or an earlier array that is finite in the file and infinite in single precision.
    beyond: Option<f64>,
    /// What single precision changes in the values.
    rounding: Rounding,
}

impl LastRead {
    /// Reads an array, unless it is the one that was read last.
    fn load(&mut self, piece: &Piece, rows: Range<usize>, sources: &mut Sources, meter: &Meter) -> Result<(), Error> {
        let of = Some((piece.title(), piece.axes.clone(), rows.clone()));
        if self.of != of {
            *self = LastRead { beyond: self.beyond, ..LastRead::default() }; // frees the memory before the next read
            let Single { values, beyond, rounding, .. } = piece.read(rows, sources, meter)?;
            *self = LastRead { of, values, beyond: beyond.or(self.beyond), rounding };
        }
        Ok(())
    }
}
