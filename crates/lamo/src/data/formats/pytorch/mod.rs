//! Files of `torch.save`: a zip archive with a pickle `data.pkl`, which describes the tensors, and a file of plain numbers for each
//! storage. [`pickle`] reads the description; nothing of Python runs.
//!
//! ```text
//! {"x": tensor, "y": tensor}         arrays x and y        [tensor, ...]     arrays 0, 1, ...
//! {"train": {"x": tensor}}           train/x               tensor            one array without a name
//! ```
//! A tensor is a view: numbers of its storage at a distance, the stride, for each axis. Files before PyTorch 1.6 are bare pickles;
//! they are recognised, and the error says how to convert them.

mod old;
mod pickle;

use super::array::{ElementKind, Found, Layout, Tick, Wanted};
use super::entry::{Entry, Numbers, OpenArray, of_values};
use super::error::Error;
use super::section::Section;
use super::source::Opened;
use super::zip::{Member, members};
use crate::files::memory;
pub(super) use old::conversion;
use pickle::Tensor;
use std::io::Read;

/// Memory for a byte of a pickle at most: an instruction of one byte makes a value and a container.
const MEMORY_PER_BYTE: u64 = 64;

/// Whether the file begins as a zip archive whose first member is a pickle.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    start.starts_with(b"PK\x03\x04") && start.windows(9).any(|bytes| bytes == b"/data.pkl")
}

/// The tensors.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let members = members(opened)?;
    let pickle = members.iter().find(|member| member.name.ends_with("/data.pkl"));
    let pickle = pickle.ok_or_else(|| opened.damaged("a member data.pkl", "none"))?;
    let folder = pickle.name.strip_suffix("data.pkl").unwrap_or_default();
    let named = |name: &str| members.iter().find(|member| member.name.strip_prefix(folder) == Some(name));
    let order = named("byteorder").map(|member| contents(opened, member)).transpose()?;
    let big_endian = order.is_some_and(|order| order.starts_with(b"big"));
    let tensors = pickle::tensors(&contents(opened, pickle)?)
        .map_err(|found| opened.damaged("a description of tensors in data.pkl", found))?;
    let mut entries = Vec::new();
    for (name, tensor) in tensors {
        let Some(storage) = named(&format!("data/{}", tensor.storage)) else {
            return Err(opened.damaged(format!("the numbers of `{}`", name.escape_debug()), "no such member"));
        };
        entries.push(entry(opened, name, &tensor, storage, big_endian)?);
    }
    if entries.is_empty() {
        let command = old::command(&opened.path);
        return Err(Error::PyTorch { path: opened.path.clone(), command });
    }
    Ok(entries)
}

/// The bytes of a small member.
fn contents(opened: &Opened, member: &Member) -> Result<Vec<u8>, Error> {
    let packing = member.packing().map_err(|found| opened.damaged(format!("a readable {}", member.name), found))?;
    let section = member.section(opened, packing)?;
    let too_large =
        |_| Error::Memory { path: opened.path.clone(), name: member.name.clone(), expected: member.unpacked };
    memory::require(member.unpacked.saturating_mul(MEMORY_PER_BYTE)).map_err(too_large)?;
    let mut bytes = Vec::new();
    let source = section.source(opened)?;
    source.take(member.unpacked).read_to_end(&mut bytes).map_err(|error| opened.broken(&member.name, error))?;
    Ok(bytes)
}

/// The array of a tensor.
fn entry(opened: &Opened, name: String, tensor: &Tensor, storage: &Member, big_endian: bool) -> Result<Entry, Error> {
    let packing = storage.packing().map_err(|found| opened.damaged(format!("readable numbers of `{name}`"), found))?;
    let section = storage.section(opened, packing)?;
    let pairs = tensor.kind.is_complex();
    let stored = match tensor.kind {
        ElementKind::C64 => ElementKind::F32,
        ElementKind::C128 => ElementKind::F64,
        kind => kind,
    };
    let layout_of = |mut shape: Vec<usize>| {
        shape.extend(pairs.then_some(2));
        Layout { shape, kind: tensor.kind, stored, big_endian, column_major: false, pairs }
    };
    let layout = layout_of(tensor.shape.clone());
    let width = tensor.kind.bytes() as u64;
    let (numbers, last) = (storage.unpacked / width, last_place(tensor));
    if last.is_none_or(|last| last as u64 >= numbers) && layout.count() != Some(0) {
        let expected = format!("array `{}` within the {numbers} numbers of its storage", name.escape_debug());
        return Err(opened.damaged(expected, format!("shape {:?}", tensor.shape)));
    }
    if layout.count().is_none_or(|count| count as u64 > numbers.saturating_mul(1 + u64::from(pairs))) {
        let found = "a view that repeats its numbers (save its .contiguous())".to_owned();
        return Ok(Entry::new(name, Err(found), section));
    }
    if tensor.lazy {
        let found = "a conjugated or negated view (save its .resolve_conj().resolve_neg())".to_owned();
        return Ok(Entry::new(name, Err(found), section));
    }
    let (before, whole) = ((tensor.offset as u64).saturating_mul(width), layout.bytes());
    let sum = section.sum.filter(|&sum| sum != 0 && before == 0 && whole == Some(storage.unpacked));
    let section = Section { before, sum, ..section };
    Ok(match dense(tensor) {
        Some(order) => {
            let inner = layout_of(order.iter().map(|&axis| tensor.shape[axis]).collect());
            Entry::new(name, Ok(layout), Dense { section, layout: inner, order })
        }
        None if pairs => {
            Entry::new(name, Err("a view of complex numbers (save its .contiguous())".to_owned()), section)
        }
        None => {
            let span = last.unwrap_or(0) + 1 - tensor.offset;
            let (strides, layout_inside) = (tensor.strides.clone(), layout_of(vec![span]));
            Entry::new(name, Ok(layout), Strided { section, layout: layout_inside, strides })
        }
    })
}

/// The place of the last number in the storage; `None` where no storage is so large.
fn last_place(tensor: &Tensor) -> Option<usize> {
    let axes = tensor.shape.iter().zip(&tensor.strides);
    axes.filter(|(extent, _)| **extent > 0)
        .try_fold(tensor.offset, |last, (extent, stride)| last.checked_add((extent - 1).checked_mul(*stride)?))
}

/// The axes in the order in which their numbers lie one after another without gaps, the slowest first; `None` where there are gaps.
fn dense(tensor: &Tensor) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..tensor.shape.len()).collect();
    if tensor.shape.contains(&0) {
        return Some(order);
    }
    order.sort_by_key(|&axis| std::cmp::Reverse((tensor.shape[axis] > 1, tensor.strides[axis])));
    let mut expected = 1_usize;
    let fits = order.iter().rev().all(|&axis| {
        let fits = tensor.shape[axis] == 1 || tensor.strides[axis] == expected;
        expected = expected.saturating_mul(tensor.shape[axis]);
        fits
    });
    fits.then_some(order)
}

/// Numbers one after another, with the axes in another order.
struct Dense {
    section: Section,
    /// With the axes in the order of the file.
    layout: Layout,
    /// Axes of the array in the order of the file.
    order: Vec<usize>,
}

impl Dense {
    fn inner<'a>(&'a self, array: &OpenArray<'a>) -> OpenArray<'a> {
        OpenArray { layout: &self.layout, numbers: &self.section, ..*array }
    }
}

impl Numbers for Dense {
    fn check(&self, array: &OpenArray) -> Result<(), Error> {
        self.section.check(&self.inner(array))
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        let place = |axis: &usize| self.order.iter().position(|own| own == axis).unwrap_or(*axis); // parts of complex numbers stay last
        let order: Vec<usize> = wanted.order.iter().map(place).collect();
        self.section.read(&self.inner(array), &Wanted { order: &order, ..wanted.clone() }, tick)
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        self.section.visit(&self.inner(array), take)
    }
}

/// Numbers with gaps between them, as in `x[:, ::2]`.
struct Strided {
    section: Section,
    /// All numbers from the first to the last.
    layout: Layout,
    strides: Vec<usize>,
}

impl Strided {
    /// The numbers of the array in C order.
    fn values(&self, array: &OpenArray) -> Result<Vec<f64>, Error> {
        let inner = OpenArray { layout: &self.layout, numbers: &self.section, ..*array };
        let wanted = Wanted { order: &[0], rows: 0..self.layout.shape[0], single: false };
        let all = self.section.read(&inner, &wanted, &mut |_| {})?.values.into_f64();
        let shape = &array.layout.shape;
        let count = array.layout.count().unwrap_or(0);
        let mut values = memory::reserve(count).map_err(|_| array.too_large(&wanted))?;
        let mut index = vec![0; shape.len()];
        for _ in 0..count {
            values.push(all[index.iter().zip(&self.strides).map(|(place, stride)| place * stride).sum::<usize>()]);
            for axis in (0..shape.len()).rev() {
                index[axis] = (index[axis] + 1) % shape[axis];
                if index[axis] > 0 {
                    break;
                }
            }
        }
        Ok(values)
    }
}

impl Numbers for Strided {
    fn check(&self, array: &OpenArray) -> Result<(), Error> {
        self.section.check(&OpenArray { layout: &self.layout, ..*array })
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        of_values(array, &self.values(array)?, wanted, tick)
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        self.values(array)?.chunks(1 << 13).for_each(take);
        Ok(())
    }
}
