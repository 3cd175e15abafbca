//! Complex arrays whose real and imaginary parts lie apart in the file, as in MAT v5: an array of real numbers with one
//! more axis, the last one, of length 2.

use super::array::{ElementKind, Found, Layout, Rounding, Tick, Values, Wanted};
use super::entry::{Entry, Numbers, OpenArray};
use super::error::Error;
use super::section::Section;
use crate::files::memory;
use std::io;

/// The real and the imaginary parts. Each may be stored in another type.
pub(super) struct Complex {
    parts: [(Section, Layout); 2],
}

impl Complex {
    /// The entry of a complex array.
    pub(super) fn entry(name: String, parts: [(Section, Layout); 2]) -> Entry {
        let real = &parts[0].1;
        let (kind, stored) = match real.kind.is_single() {
            true => (ElementKind::C64, ElementKind::F32),
            false => (ElementKind::C128, ElementKind::F64),
        };
        let shape = real.shape.iter().copied().chain([2]).collect();
        let layout = Layout { shape, kind, stored, ..real.clone() };
        Entry::new(name, Ok(layout), Complex { parts })
    }

    fn part<'a>(&'a self, array: &OpenArray<'a>, part: usize) -> OpenArray<'a> {
        let (section, layout) = &self.parts[part];
        OpenArray { layout, numbers: section, ..*array }
    }
}

impl Numbers for Complex {
    fn check(&self, array: &OpenArray) -> Result<(), Error> {
        self.parts.iter().try_for_each(|(section, layout)| section.check(&OpenArray { layout, ..*array }))
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        let pair = array.layout.shape.len() - 1;
        let place = wanted.order.iter().position(|&axis| axis == pair).unwrap_or(pair);
        let order: Vec<usize> = wanted.order.iter().copied().filter(|&axis| axis != pair).collect();
        let all = 0..self.parts[0].1.extent(order.first());
        let (parts, rows) = if place == 0 { (wanted.rows.clone(), all) } else { (0..2, wanted.rows.clone()) };
        let inner_wanted = Wanted { order: &order, rows, single: wanted.single };
        let inner = self.parts[0].1.shape_of(&inner_wanted)[place..].iter().product();
        let mut found = Vec::new();
        for part in parts {
            let array = self.part(array, part);
            found.push(array.numbers.read(&array, &inner_wanted, tick)?);
        }
        let beyond = found.iter().find_map(|found| found.beyond);
        let rounding = found.iter().map(|found| found.rounding).fold(Rounding::default(), Rounding::and);
        let values: Vec<Values> = found.into_iter().map(|found| found.values).collect();
        let values = alternate(values, inner, wanted.single || array.layout.kind.is_single());
        Ok(Found { values: values.map_err(|_| array.too_large(wanted))?, beyond, rounding })
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        [0, 1].into_iter().try_for_each(|part| {
            let array = self.part(array, part);
            array.numbers.visit(&array, take)
        })
    }
}

/// Blocks of `length` numbers of each part in turn.
fn alternate(parts: Vec<Values>, length: usize, single: bool) -> io::Result<Values> {
    fn blocks<T: Copy>(parts: &[Vec<T>], length: usize) -> io::Result<Vec<T>> {
        let mut numbers = memory::reserve(parts.iter().map(Vec::len).sum())?;
        let count = parts.first().map_or(0, Vec::len).checked_div(length).unwrap_or(0);
        for block in 0..count {
            parts.iter().for_each(|part| numbers.extend_from_slice(&part[block * length..][..length]));
        }
        Ok(numbers)
    }
    Ok(match single {
        true => Values::F32(blocks(&parts.into_iter().map(Values::into_f32).collect::<Vec<_>>(), length)?),
        false => Values::F64(blocks(&parts.into_iter().map(Values::into_f64).collect::<Vec<_>>(), length)?),
    })
}
