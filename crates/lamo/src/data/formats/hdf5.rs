//! HDF5: a tree of groups whose leaves are arrays, called datasets. MAT v7.3 is HDF5 with reversed axes, netCDF-4 is HDF5 with
//! attributes, which [`packed`](super::packed) reads.
//!
//! The crate `hdf5-reader` reads the format. This file sets its limits, chooses the element types and orders the axes.

use super::array::{ElementKind, Found, Gathering, Layout, Real, Tick, Wanted, decode};
use super::entry::{Entry, Numbers, OpenArray};
use super::error::Error;
use super::packed::Packing;
use super::section::LARGEST_RATIO;
use super::source::Opened;
use crate::files::memory;
use hdf5_reader::error::{Error as Failure, Result as Outcome};
use hdf5_reader::group::Group;
use hdf5_reader::{
    ByteOrder, CompoundField, DEFAULT_MAX_CHUNK_BYTES, Dataset, Datatype, FileStorage, H5Type, Hdf5File, OpenOptions,
    SliceInfo, SliceInfoElem,
};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Values of one slab, which is read and put in order at once, 16 MiB of doubles; and the most values that it may have
/// so that it covers whole chunks, 256 MiB of doubles.
const SLAB: [usize; 2] = [1 << 21, 1 << 25];
/// Axes of an empty array of MATLAB at most.
const MOST_AXES: u64 = 64;
/// Groups inside groups that are searched.
const DEEPEST: usize = 32;

/// Whether the signature stands at the start of the file, or after a user block of 512, 1024 or 2048 bytes.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    [0, 512, 1024, 2048].iter().any(|&at| start.get(at..).is_some_and(|rest| rest.starts_with(SIGNATURE)))
}

/// All datasets under their paths.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    entries(opened, false)
}

/// All datasets under their paths; `matlab` where MATLAB wrote the file.
pub(super) fn entries(opened: &Opened, matlab: bool) -> Result<Vec<Entry>, Error> {
    let tree = Rc::new(Tree::open(opened, matlab)?);
    let mut found = Vec::new();
    let walk = tree.file.root_group().and_then(|root| tree.walk(&root, "", &mut HashSet::new(), &mut found));
    walk.map_err(|failure| failed(opened, "the tree of datasets", failure))?;
    Ok(found.into_iter().map(|(name, holds)| Entry::new(name, holds, Rc::clone(&tree))).collect())
}

/// An HDF5 file.
struct Tree {
    file: Hdf5File,
    /// Written by MATLAB: axes are reversed, and each variable has its class as an attribute.
    matlab: bool,
}

impl Tree {
    fn open(opened: &Opened, matlab: bool) -> Result<Tree, Error> {
        let file = opened.file()?.try_clone().map_err(|source| opened.unreadable(source))?;
        let possible = usize::try_from(opened.size.saturating_mul(LARGEST_RATIO)).unwrap_or(usize::MAX);
        let options = OpenOptions::default()
            .with_max_read_bytes(possible)
            .with_max_chunk_bytes(possible.min(DEFAULT_MAX_CHUNK_BYTES))
            .with_max_object_header_bytes(usize::try_from(opened.size).unwrap_or(usize::MAX));
        let open = FileStorage::from_file(file)
            .and_then(|storage| Hdf5File::from_storage_with_options(Arc::new(storage), options));
        Ok(Tree { file: open.map_err(|failure| failed(opened, "the file", failure))?, matlab })
    }

    /// Adds the datasets of a group, and of the groups in it, to `found`.
    fn walk(
        &self,
        group: &Group,
        path: &str,
        seen: &mut HashSet<u64>,
        found: &mut Vec<(String, Result<Layout, String>)>,
    ) -> Outcome<()> {
        if !seen.insert(group.address()) || path.matches('/').count() > DEEPEST {
            return Ok(()); // links may form cycles
        }
        let (groups, datasets) = group.members()?;
        for dataset in datasets {
            found.push((format!("{path}{}", dataset.name()), self.layout(&dataset)?));
        }
        for group in groups.iter().filter(|group| !group.name().starts_with('#')) {
            self.walk(group, &format!("{path}{}/", group.name()), seen, found)?; // #refs# holds MATLAB's cells
        }
        Ok(())
    }

    fn layout(&self, dataset: &Dataset) -> Outcome<Result<Layout, String>> {
        let class = if self.matlab { text_attribute(dataset, "MATLAB_class") } else { None };
        let mut shape = Vec::new();
        for &extent in dataset.shape() {
            shape.push(usize::try_from(extent).map_err(|_| Failure::InvalidData(format!("extent {extent}")))?);
        }
        if self.matlab {
            shape.reverse();
        }
        if let Some((_, [(_, stored, big_endian), _])) = pair(dataset.dtype()) {
            let kind = if stored == ElementKind::F32 { ElementKind::C64 } else { ElementKind::C128 };
            shape.push(2);
            return Ok(Ok(Layout { shape, kind, stored, big_endian, column_major: self.matlab, pairs: true }));
        }
        let (kind, stored, big_endian) = match (element(dataset.dtype()), class.as_deref()) {
            (_, Some("char")) => return Ok(Err("text".to_owned())),
            (_, Some("cell")) => return Ok(Err("a cell array".to_owned())),
            (Err(found), _) => return Ok(Err(found.to_owned())),
            (Ok((stored, big_endian)), Some("logical")) => (ElementKind::Bool, stored, big_endian),
            (Ok((stored, big_endian)), _) => (stored, stored, big_endian),
        };
        if !self.matlab && text_attribute(dataset, "_Unsigned").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(Err("signed integers that stand for unsigned ones (_Unsigned)".to_owned()));
        }
        let unpacks = !self.matlab && Packing::of(dataset).is_some_and(|packing| packing.unpacks());
        let kind = if unpacks { ElementKind::F64 } else { kind };
        if self.matlab && dataset.attributes().iter().any(|attribute| attribute.name == "MATLAB_empty") {
            if dataset.num_elements()? > MOST_AXES {
                return Ok(Err("an empty array of too many axes".to_owned()));
            }
            shape = dataset.read_array::<Number<f64>>()?.iter().map(|extent| extent.0 as usize).collect();
            if !shape.contains(&0) {
                return Ok(Err("an empty array that is not empty".to_owned()));
            }
        }
        Ok(Ok(Layout { shape, kind, stored, big_endian, column_major: self.matlab, pairs: false }))
    }
}

impl Numbers for Rc<Tree> {
    /// The chunks of a dataset lie anywhere in the file, packed or not.
    fn check(&self, array: &OpenArray) -> Result<(), Error> {
        let size = array.opened.size;
        array.check_size(0, size, size.saturating_mul(LARGEST_RATIO))
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        let OpenArray { opened, name, layout, .. } = *array;
        let gathering = Gathering { layout, wanted, tick };
        let found = self.file.dataset(name).and_then(|dataset| match (layout.kind.is_single(), wanted.single) {
            (true, _) => gathering.run::<f32, _>(|take| slabs(&dataset, layout, wanted, SLAB, take)),
            (false, false) => gathering.run::<f64, _>(|take| slabs(&dataset, layout, wanted, SLAB, take)),
            (false, true) => gathering.run_narrow(|take| slabs(&dataset, layout, wanted, SLAB, take)),
        });
        found.map_err(|failure| match plain(failure) {
            Failure::Io(source) if source.kind() == ErrorKind::OutOfMemory => array.too_large(wanted),
            failure => failed(opened, &format!("dataset `{name}`"), failure),
        })
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        let OpenArray { opened, name, layout, .. } = *array;
        let order: Vec<_> = (0..layout.shape.len()).collect();
        let wanted = Wanted { rows: 0..layout.extent(order.first()), order: &order, single: false };
        let visited = self.file.dataset(name).and_then(|dataset| slabs(&dataset, layout, &wanted, SLAB, take));
        visited.map_err(|failure| failed(opened, &format!("dataset `{name}`"), failure))
    }
}

/// The failure itself, without the names of the objects in which it occurred.
fn plain(failure: Failure) -> Failure {
    let mut cause = failure;
    while let Failure::Context { source, .. } = cause {
        cause = *source;
    }
    cause
}

fn failed(opened: &Opened, part: &str, failure: Failure) -> Error {
    let found = failure.to_string();
    match plain(failure) {
        Failure::Io(source) => opened.unreadable(source),
        Failure::UnsupportedFilter(_) | Failure::UnsupportedEncoding(_) => {
            Error::Unsupported { path: opened.path.clone(), part: part.to_owned(), found }
        }
        _ => opened.damaged(format!("{part} in valid HDF5"), format!("{found:?}")),
    }
}

/// The text of an attribute.
fn text_attribute(dataset: &Dataset, name: &str) -> Option<String> {
    dataset.attributes().iter().find(|attribute| attribute.name == name)?.read_string().ok()
}

/// Type and byte order (big-endian or not), or what an element is instead of a real number.
pub(super) fn element(datatype: &Datatype) -> Result<(ElementKind, bool), &'static str> {
    let (kind, order) = match datatype {
        Datatype::FloatingPoint { size: 2, byte_order } => (ElementKind::F16, byte_order),
        Datatype::FloatingPoint { size: 4, byte_order } => (ElementKind::F32, byte_order),
        Datatype::FloatingPoint { size: 8, byte_order } => (ElementKind::F64, byte_order),
        Datatype::FixedPoint { size: 1, signed: true, byte_order } => (ElementKind::I8, byte_order),
        Datatype::FixedPoint { size: 2, signed: true, byte_order } => (ElementKind::I16, byte_order),
        Datatype::FixedPoint { size: 4, signed: true, byte_order } => (ElementKind::I32, byte_order),
        Datatype::FixedPoint { size: 8, signed: true, byte_order } => (ElementKind::I64, byte_order),
        Datatype::FixedPoint { size: 1, signed: false, byte_order } => (ElementKind::U8, byte_order),
        Datatype::FixedPoint { size: 2, signed: false, byte_order } => (ElementKind::U16, byte_order),
        Datatype::FixedPoint { size: 4, signed: false, byte_order } => (ElementKind::U32, byte_order),
        Datatype::FixedPoint { size: 8, signed: false, byte_order } => (ElementKind::U64, byte_order),
        Datatype::Bitfield { size: 1, byte_order } => (ElementKind::Bool, byte_order),
        Datatype::Enum { base, members } => {
            let truth = members.len() == 2 && members.iter().any(|member| member.name == "TRUE");
            return element(base).map(|(kind, order)| (if truth { ElementKind::Bool } else { kind }, order));
        }
        Datatype::Compound { .. } => return Err("records"),
        Datatype::String { .. } | Datatype::VarLen { .. } => return Err("text or lists"),
        Datatype::Reference { .. } => return Err("a cell array or other references"),
        _ => return Err("elements of a rare type"),
    };
    Ok((kind, *order == ByteOrder::BigEndian))
}

/// Where a part of a complex number begins in it, and its type and byte order.
type ComplexPart = (usize, ElementKind, bool);

/// Bytes of a complex number, and its two parts; `None` where a datatype is another one. h5py calls the parts `r` and `i`,
/// MATLAB `real` and `imag`.
fn pair(datatype: &Datatype) -> Option<(usize, [ComplexPart; 2])> {
    let Datatype::Compound { size, fields } = datatype else { return None };
    let [real, imaginary] = &fields[..] else { return None };
    let names = [real.name.as_str(), imaginary.name.as_str()];
    let known = [["r", "i"], ["real", "imag"], ["re", "im"]].contains(&names);
    let part = |field: &CompoundField| -> Option<ComplexPart> {
        let (kind, big_endian) = element(&field.datatype).ok()?;
        let (start, size) = (field.byte_offset as usize, *size as usize);
        let inside = start.checked_add(kind.bytes()).is_some_and(|end| end <= size);
        (inside && matches!(kind, ElementKind::F32 | ElementKind::F64)).then_some((start, kind, big_endian))
    };
    let parts = [part(real)?, part(imaginary)?];
    (known && parts[0].1 == parts[1].1).then_some((*size as usize, parts))
}

/// Calls `take` with the wanted part in the order of the file, in slabs of bounded size. A slab is cut along the slowest
/// axis; where one row of chunks along it is too large, along the next axis of each index of the slower ones.
fn slabs<T: Real + Send>(
    dataset: &Dataset,
    layout: &Layout,
    wanted: &Wanted,
    [size, largest]: [usize; 2],
    mut take: impl FnMut(&[T]),
) -> Outcome<()> {
    let mut selection = SliceInfo::all(dataset.ndim());
    let packing = Packing::of(dataset).filter(|_| !layout.column_major); // MATLAB has no such attributes
    let real = |selection: &SliceInfo| -> Outcome<Vec<T>> {
        let mut found = numbers(dataset, selection)?;
        packing.iter().for_each(|packing| packing.unpack(&mut found));
        Ok(found)
    };
    let Some(&rows_axis) = wanted.order.first() else {
        take(&real(&selection)?); // a single number without axes
        return Ok(());
    };
    if layout.count() == Some(0) {
        return Ok(());
    }
    // The parts of complex numbers are the last axis of the layout and no axis of the dataset.
    let parts = if layout.pairs && rows_axis + 1 == layout.shape.len() { wanted.rows.clone() } else { 0..2 };
    let values = |selection: &SliceInfo| match layout.pairs {
        true => complex_numbers(dataset, selection, parts.clone()),
        false => real(selection),
    };
    if dataset.ndim() == 0 {
        take(&values(&selection)?); // a single complex number
        return Ok(());
    }
    let range = |axis: usize| if axis == rows_axis { wanted.rows.clone() } else { 0..layout.shape[axis] };
    let slowest_first = layout.fastest_first().into_iter().rev();
    let ranges: Vec<Range<usize>> = slowest_first.take(dataset.ndim()).map(range).collect();
    selection.selections.iter_mut().zip(&ranges).for_each(|(selected, range)| *selected = span(range));
    let chunk = |axis: usize| {
        let chunk = dataset.chunks().and_then(|chunks| chunks.get(axis).copied());
        chunk.map_or(1, |chunk| chunk.max(1) as usize)
    };
    let inner = |axis: usize| ranges[axis + 1..].iter().map(Range::len).product::<usize>();
    let fits = |axis: &usize| chunk(*axis).min(ranges[*axis].len()).saturating_mul(inner(*axis)) <= largest;
    let cut = (0..ranges.len()).find(fits).unwrap_or(ranges.len() - 1);
    let thickness = (size / inner(cut) / chunk(cut)).max(1).saturating_mul(chunk(cut)); // each chunk is unpacked once
    let mut slower: Vec<usize> = ranges[..cut].iter().map(|range| range.start).collect();
    loop {
        for (selected, &index) in selection.selections.iter_mut().zip(&slower) {
            *selected = span(&(index..index + 1));
        }
        let mut start = ranges[cut].start;
        while start < ranges[cut].end {
            let end = ranges[cut].end.min((start - start % chunk(cut)).saturating_add(thickness));
            selection.selections[cut] = span(&(start..end));
            take(&values(&selection)?);
            start = end;
        }
        let Some(axis) = (0..cut).rev().find(|&axis| slower[axis] + 1 < ranges[axis].end) else { return Ok(()) };
        slower[axis] += 1;
        (axis + 1..cut).for_each(|faster| slower[faster] = ranges[faster].start);
    }
}

fn span(rows: &Range<usize>) -> SliceInfoElem {
    SliceInfoElem::Slice { start: rows.start as u64, end: rows.end as u64, step: 1 }
}

fn numbers<T: Real + Send>(dataset: &Dataset, selection: &SliceInfo) -> Outcome<Vec<T>> {
    let (numbers, _) = dataset.read_slice::<Number<T>>(selection)?.into_raw_vec_and_offset();
    Ok(numbers.into_iter().map(|number| number.0).collect())
}

/// The real parts, the imaginary parts or both, side by side.
fn complex_numbers<T: Real + Send>(dataset: &Dataset, selection: &SliceInfo, parts: Range<usize>) -> Outcome<Vec<T>> {
    let (found, _) = dataset.read_slice::<Pair<T>>(selection)?.into_raw_vec_and_offset();
    let mut numbers = memory::reserve(found.len().saturating_mul(parts.len()))?;
    found.iter().for_each(|pair| numbers.extend_from_slice(&pair.0[parts.clone()]));
    Ok(numbers)
}

/// A complex number, read in precision `T`.
#[derive(Clone)]
struct Pair<T>([T; 2]);

impl<T: Real + Send> H5Type for Pair<T> {
    fn hdf5_type() -> Datatype {
        f64::hdf5_type()
    }

    fn from_bytes(bytes: &[u8], datatype: &Datatype) -> Outcome<Self> {
        let one = Self::decode_vec(bytes, datatype, 1).and_then(|decoded| decoded.ok()?.into_iter().next());
        one.ok_or_else(|| Failure::InvalidData("a number that is cut short".to_owned()))
    }

    fn element_size(datatype: &Datatype) -> usize {
        pair(datatype).map_or(1, |(size, _)| size)
    }

    fn decode_vec(raw: &[u8], datatype: &Datatype, count: usize) -> Option<Outcome<Vec<Self>>> {
        let (size, parts) = pair(datatype)?;
        let bytes = raw.get(..count.checked_mul(size)?)?;
        let mut pairs = match memory::reserve(count) {
            Ok(pairs) => pairs,
            Err(reason) => return Some(Err(reason.into())),
        };
        let mut numbers: Vec<T> = Vec::with_capacity(2);
        for number in bytes.chunks_exact(size) {
            numbers.clear();
            for (start, kind, big_endian) in parts {
                decode::<T>(kind, big_endian, &number[start..start + kind.bytes()], &mut numbers);
            }
            pairs.push(Pair([numbers[0], numbers[1]]));
        }
        Some(Ok(pairs))
    }
}

/// A number of any stored type, read in precision `T`.
#[derive(Clone)]
struct Number<T>(T);

impl<T: Real + Send> H5Type for Number<T> {
    fn hdf5_type() -> Datatype {
        f64::hdf5_type()
    }

    fn from_bytes(bytes: &[u8], datatype: &Datatype) -> Outcome<Self> {
        let one = Self::decode_vec(bytes, datatype, 1).and_then(|decoded| decoded.ok()?.into_iter().next());
        one.ok_or_else(|| Failure::InvalidData("a number that is cut short".to_owned()))
    }

    fn element_size(datatype: &Datatype) -> usize {
        element(datatype).map_or(1, |(kind, _)| kind.bytes())
    }

    fn decode_vec(raw: &[u8], datatype: &Datatype, count: usize) -> Option<Outcome<Vec<Self>>> {
        let (kind, big_endian) = element(datatype).ok()?;
        let bytes = raw.get(..count.checked_mul(kind.bytes())?)?;
        let mut numbers = match memory::reserve(count) {
            Ok(numbers) => numbers,
            Err(reason) => return Some(Err(reason.into())),
        };
        decode::<T>(kind, big_endian, bytes, &mut numbers);
        Some(Ok(numbers.into_iter().map(Number).collect())) // in place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_complex_number_are_found_by_name_and_place() {
        let float = |size| Datatype::FloatingPoint { size, byte_order: ByteOrder::BigEndian };
        let field =
            |name: &str, byte_offset, size| CompoundField { name: name.into(), byte_offset, datatype: float(size) };
        let compound = |size, fields| Datatype::Compound { size, fields };
        let padded = compound(12, vec![field("real", 4, 4), field("imag", 8, 4)]);
        let bytes: Vec<u8> = [0.0_f32, 1.5, -2.5, 0.0, 3.0, 4.0].iter().flat_map(|value| value.to_be_bytes()).collect();
        let found = Pair::<f64>::decode_vec(&bytes, &padded, 2).unwrap().unwrap();
        assert_eq!([found[0].0, found[1].0], [[1.5, -2.5], [3.0, 4.0]]);
        assert!(Pair::<f64>::decode_vec(&bytes, &padded, 3).is_none(), "cut short");
        assert!(pair(&compound(16, vec![field("x", 0, 8), field("y", 8, 8)])).is_none(), "a record");
        assert!(pair(&compound(8, vec![field("r", 0, 4), field("i", 6, 4)])).is_none(), "beyond the end");
        assert!(pair(&compound(12, vec![field("r", 0, 4), field("i", 4, 8)])).is_none(), "two types");
    }

    /// The wanted part in the order of the file, read in slabs of these sizes.
    fn read(dataset: &Dataset, layout: &Layout, wanted: &Wanted, sizes: [usize; 2]) -> Outcome<Vec<f64>> {
        let mut read = Vec::new();
        slabs(dataset, layout, wanted, sizes, |slab| read.extend_from_slice(slab))?;
        Ok(read)
    }

    #[test]
    fn slabs_of_any_size_give_the_same_numbers_in_the_same_order() {
        let mut compared = 0;
        for (name, matlab) in [("hdf5/plain.h5", false), ("hdf5/chunked.h5", false), ("mat73/all.mat", true)] {
            let path =
                std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/arrays").join(name);
            let opened = Opened::open(&path).unwrap();
            let tree = Tree::open(&opened, matlab).unwrap();
            for entry in entries(&opened, matlab).unwrap() {
                let (Ok(layout), Ok(dataset)) = (&entry.holds, tree.file.dataset(&entry.name)) else { continue };
                for axis in 0..layout.shape.len() {
                    let others = (0..layout.shape.len()).filter(|&other| other != axis);
                    let order: Vec<_> = [axis].into_iter().chain(others).collect();
                    for rows in [0..layout.shape[axis], 1.min(layout.shape[axis])..layout.shape[axis]] {
                        let wanted = Wanted { order: &order, rows, single: false };
                        let Ok(expected) = read(&dataset, layout, &wanted, SLAB) else { continue }; // a rare packing
                        for sizes in [[1, 1], [2, 4], [5, 20], [1, 1 << 20]] {
                            assert_eq!(read(&dataset, layout, &wanted, sizes).unwrap(), expected, "{name} {sizes:?}");
                        }
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 50, "{compared}");
    }
}
