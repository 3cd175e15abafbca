//! Arrays in memory, and their layout in a stream of bytes: element type, byte order, row- or column-major.

use super::source::Source;
use crate::files::memory;
use std::fmt;
use std::io;
use std::ops::Range;

/// How one number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum ElementKind {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
    C64,
    C128,
}

impl ElementKind {
    /// Bytes of one number in a file.
    pub fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Whether it is read as [`Values::F32`], else as [`Values::F64`].
    pub fn is_single(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::C64)
    }

    /// Whether it is complex. Its array has one more axis than the file says, the last one: real and imaginary part.
    pub fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }
}

impl fmt::Display for ElementKind {
    /// NumPy's name.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        })
    }
}

/// The header of one array of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Its name; empty in an npy file.
    pub name: String,
    /// Points along each axis, the slowest first; for complex numbers the last axis is 2, real and imaginary part.
    pub shape: Vec<usize>,
    /// Type of its numbers.
    pub kind: ElementKind,
}

/// The numbers of an array, in C order.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// From float32, float16 and bfloat16.
    F32(Vec<f32>),
    /// From float64, integers (rounded above 2⁵³) and Booleans (0 and 1).
    F64(Vec<f64>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        }
    }

    /// Whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers in single precision, rounded to nearest.
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Values::F32(values) => values,
            Values::F64(values) => values.into_iter().map(|value| value as f32).collect(),
        }
    }

    /// The first number that is finite here and infinite in single precision.
    pub fn beyond_f32(&self) -> Option<f64> {
        let beyond = |value: &&f64| value.is_finite() && !(**value as f32).is_finite();
        if let Values::F64(values) = self { values.iter().find(beyond).copied() } else { None }
    }

    /// The numbers in double precision.
    pub fn into_f64(self) -> Vec<f64> {
        match self {
            Values::F32(values) => values.into_iter().map(f64::from).collect(),
            Values::F64(values) => values,
        }
    }
}

/// An array, or some of its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Points along each axis, the slowest first.
    pub shape: Vec<usize>,
    /// Its numbers in C order: the last axis is the fastest.
    pub values: Values,
}

/// The lowest and the highest difference of numbers in single precision and those of a file; none where nothing was rounded. Equal
/// numbers have equal differences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounding(Option<[f64; 2]>);

impl Rounding {
    fn see(&mut self, difference: f64) {
        if difference.is_finite() {
            *self = self.and(Rounding(Some([difference; 2])));
        }
    }

    /// The differences of both.
    #[must_use]
    pub fn and(self, other: Rounding) -> Rounding {
        Rounding(match (self.0, other.0) {
            (Some([low, high]), Some([other_low, other_high])) => Some([low.min(other_low), high.max(other_high)]),
            (one, other) => one.or(other),
        })
    }

    /// Half of the distance between the two, 0 for equal numbers: a difference that all numbers share is harmless.
    pub fn largest(self) -> f64 {
        self.0.map_or(0.0, |[low, high]| (high - low) / 2.0)
    }
}

/// An array, or some of its rows, in single precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Single {
    /// Points along each axis, the slowest first.
    pub shape: Vec<usize>,
    /// Its numbers in C order, rounded to nearest.
    pub values: Vec<f32>,
    /// A number that is finite in the file and infinite here.
    pub beyond: Option<f64>,
    /// The lowest and the highest difference of a number here and that of the file.
    pub rounding: Rounding,
}

/// The numbers of the wanted part, one that single precision cannot hold, and what single precision changes.
pub(super) struct Found {
    pub(super) values: Values,
    pub(super) beyond: Option<f64>,
    pub(super) rounding: Rounding,
}

/// The two precisions that values are read in.
pub(crate) trait Real: Copy + Default {
    fn nearest(value: f64) -> Self;
    fn wide(self) -> f64;
    fn values(numbers: Vec<Self>) -> Values;
}

impl Real for f32 {
    fn nearest(value: f64) -> f32 {
        value as f32
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn values(numbers: Vec<f32>) -> Values {
        Values::F32(numbers)
    }
}

impl Real for f64 {
    fn nearest(value: f64) -> f64 {
        value
    }
    fn wide(self) -> f64 {
        self
    }
    fn values(numbers: Vec<f64>) -> Values {
        Values::F64(numbers)
    }
}

/// Appends the numbers in `bytes`, whose length is a multiple of the size of a number.
pub(crate) fn decode<T: Real>(stored: ElementKind, big_endian: bool, bytes: &[u8], numbers: &mut Vec<T>) {
    macro_rules! each {
        ($number:ty, $widen:expr) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$number>() }>();
            if big_endian {
                numbers.extend(chunks.iter().map(|&chunk| T::nearest($widen(<$number>::from_be_bytes(chunk)))));
            } else {
                numbers.extend(chunks.iter().map(|&chunk| T::nearest($widen(<$number>::from_le_bytes(chunk)))));
            }
        }};
    }
    match stored {
        ElementKind::F16 => each!(u16, half),
        ElementKind::Bf16 => each!(u16, |bits: u16| f64::from(f32::from_bits(u32::from(bits) << 16))),
        ElementKind::F32 | ElementKind::C64 => each!(f32, f64::from), // a complex number is two numbers
        ElementKind::F64 | ElementKind::C128 => each!(f64, f64::from),
        ElementKind::I8 => each!(i8, f64::from),
        ElementKind::I16 => each!(i16, f64::from),
        ElementKind::I32 => each!(i32, f64::from),
        ElementKind::I64 => each!(i64, |value: i64| value as f64),
        ElementKind::U8 => each!(u8, f64::from),
        ElementKind::U16 => each!(u16, f64::from),
        ElementKind::U32 => each!(u32, f64::from),
        ElementKind::U64 => each!(u64, |value: u64| value as f64),
        ElementKind::Bool => each!(u8, |value: u8| f64::from(u8::from(value != 0))),
    }
}

/// IEEE 754 binary16: (-1)^sign · 1.fraction · 2^(exponent - 15), subnormal where the exponent is 0.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The part of an array to read: some rows of one axis, and all points of the other axes.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    /// Every axis of the array once, in the order of the result; the first is the axis of the rows.
    pub(super) order: &'a [usize],
    pub(super) rows: Range<usize>,
    /// In single precision, whatever the type of the array.
    pub(super) single: bool,
}

/// How the numbers of an array are stored in a stream of bytes.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) shape: Vec<usize>,
    /// The type of the array.
    pub(super) kind: ElementKind,
    /// The type in which its numbers are written; MATLAB writes doubles that are small integers in fewer bytes.
    pub(super) stored: ElementKind,
    pub(super) big_endian: bool,
    /// The first axis is the fastest, as in MATLAB and Fortran.
    pub(super) column_major: bool,
    /// The last axis is the real and the imaginary part, which stand side by side whatever the order of the other axes.
    pub(super) pairs: bool,
}

impl Layout {
    /// How many numbers it has; `None` if a `usize` cannot count them.
    pub(super) fn count(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1usize, |count, &axis| count.checked_mul(axis))
    }

    /// How many bytes they have in the stream.
    pub(super) fn bytes(&self) -> Option<u64> {
        u64::try_from(self.count()?.checked_mul(self.stored.bytes())?).ok()
    }

    /// Points along an axis; a number without axes has one row.
    pub(super) fn extent(&self, axis: Option<&usize>) -> usize {
        axis.map_or(1, |&axis| self.shape[axis])
    }

    /// The axes in the order of the file, the fastest first.
    pub(super) fn fastest_first(&self) -> Vec<usize> {
        let rank = self.shape.len();
        match (self.column_major, self.pairs) {
            (true, true) => [rank - 1].into_iter().chain(0..rank - 1).collect(),
            (true, false) => (0..rank).collect(),
            (false, _) => (0..rank).rev().collect(),
        }
    }

    /// The shape of the wanted part.
    pub(super) fn shape_of(&self, wanted: &Wanted) -> Vec<usize> {
        let mut shape: Vec<_> = wanted.order.iter().map(|&axis| self.shape[axis]).collect();
        shape.iter_mut().take(1).for_each(|rows| *rows = wanted.rows.len());
        shape
    }

    /// Bytes that the wanted part needs in memory.
    pub(super) fn memory(&self, wanted: &Wanted) -> u64 {
        let width = if wanted.single || self.kind.is_single() { 4 } else { 8 };
        self.shape_of(wanted).iter().fold(width, |bytes: u64, &extent| bytes.saturating_mul(extent as u64))
    }

    /// Reads the wanted part from a source that stands at the first number. The caller has checked the shape against
    /// the size of the file.
    pub(super) fn read(&self, source: &mut dyn Source, wanted: &Wanted, tick: Tick) -> io::Result<Found> {
        let gathering = Gathering { layout: self, wanted, tick };
        match (self.kind.is_single(), wanted.single) {
            (true, _) => gathering.run::<f32, _>(|take| self.each(source, wanted, take)),
            (false, false) => gathering.run::<f64, _>(|take| self.each(source, wanted, take)),
            (false, true) => gathering.run_narrow(|take| self.each(source, wanted, take)),
        }
    }

    /// Calls `take` with the numbers of the wanted part in the order of the file.
    fn each<T: Real>(&self, source: &mut dyn Source, wanted: &Wanted, mut take: impl FnMut(&[T])) -> io::Result<()> {
        let rows = &wanted.rows;
        let height = self.extent(wanted.order.first());
        let faster = self.fastest_first().into_iter().take_while(|axis| Some(axis) != wanted.order.first());
        let inner: usize = faster.map(|axis| self.shape[axis]).product();
        if rows.len() == height {
            return self.stream(source, self.count().unwrap_or(0), take);
        }
        for _ in 0..self.count().unwrap_or(0) / (inner * height) {
            self.skip(source, rows.start * inner)?;
            self.stream(source, rows.len() * inner, &mut take)?;
            self.skip(source, (height - rows.end) * inner)?;
        }
        Ok(())
    }

    /// Calls `take` with all numbers in the order of the file.
    pub(super) fn visit(&self, source: &mut dyn Source, take: impl FnMut(&[f64])) -> io::Result<()> {
        self.stream(source, self.count().unwrap_or(0), take)
    }

    fn skip(&self, source: &mut dyn Source, count: usize) -> io::Result<()> {
        source.skip((count * self.stored.bytes()) as u64)
    }

    /// Calls `take` with the next `count` numbers in blocks of bounded size.
    fn stream<T: Real>(&self, source: &mut dyn Source, count: usize, mut take: impl FnMut(&[T])) -> io::Result<()> {
        let mut bytes = vec![0; BLOCK.min(count) * self.stored.bytes()];
        let mut numbers = Vec::with_capacity(BLOCK.min(count));
        let mut left = count;
        while left > 0 {
            let block = &mut bytes[..BLOCK.min(left) * self.stored.bytes()];
            source.read_exact(block)?;
            numbers.clear();
            decode::<T>(self.stored, self.big_endian, block, &mut numbers);
            take(&numbers);
            left -= numbers.len();
        }
        Ok(())
    }
}

/// Numbers that are decoded at a time.
const BLOCK: usize = 8192;

/// Called with how many numbers have been read since the last call.
pub type Tick<'a> = &'a mut dyn FnMut(usize);

/// Puts the numbers of a wanted part in order as they come, from a stream or from slabs.
pub(super) struct Gathering<'a, 'b> {
    pub(super) layout: &'a Layout,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) tick: Tick<'b>,
}

impl Gathering<'_, '_> {
    fn is_empty(&self) -> bool {
        self.wanted.rows.is_empty() || self.layout.count() == Some(0)
    }

    /// Calls `each` with what takes the numbers in the order of the file.
    pub(super) fn run<T: Real, E: From<io::Error>>(
        self,
        each: impl FnOnce(&mut dyn FnMut(&[T])) -> Result<(), E>,
    ) -> Result<Found, E> {
        if self.is_empty() {
            return Ok(Found { values: T::values(Vec::new()), beyond: None, rounding: Rounding::default() });
        }
        let mut gathered = Gathered::<T>::new(self.layout, self.wanted)?;
        each(&mut |block| {
            gathered.push(block);
            (self.tick)(block.len());
        })?;
        Ok(Found { values: T::values(gathered.numbers), beyond: None, rounding: Rounding::default() })
    }

    /// The same for doubles that are stored in single precision.
    pub(super) fn run_narrow<E: From<io::Error>>(
        self,
        each: impl FnOnce(&mut dyn FnMut(&[f64])) -> Result<(), E>,
    ) -> Result<Found, E> {
        if self.is_empty() {
            return Ok(Found { values: Values::F32(Vec::new()), beyond: None, rounding: Rounding::default() });
        }
        let mut gathered = Gathered::<f32>::new(self.layout, self.wanted)?;
        let (mut beyond, mut rounding, mut narrow) = (None, Rounding::default(), Vec::new());
        each(&mut |block| {
            for block in block.chunks(BLOCK) {
                narrow.clear();
                narrow.extend(block.iter().map(|&value| value as f32));
                let lost = |(wide, narrow): &(&f64, &f32)| wide.is_finite() && !narrow.is_finite();
                beyond = beyond.or_else(|| block.iter().zip(&narrow).find(lost).map(|(&wide, _)| wide));
                block.iter().zip(&narrow).for_each(|(&wide, &narrow)| rounding.see(f64::from(narrow) - wide));
                gathered.push(&narrow);
            }
            (self.tick)(block.len());
        })?;
        Ok(Found { values: Values::F32(gathered.numbers), beyond, rounding })
    }
}

/// One axis of a [`Gathered`] array.
struct Axis {
    extent: usize,
    /// Distance of neighbours in the result.
    stride: usize,
    index: usize,
}

/// Takes numbers in the order of their file and stores them in C order of the wanted axes.
pub(super) struct Gathered<T> {
    pub(super) numbers: Vec<T>,
    /// The order of the file is the wanted order.
    in_order: bool,
    /// In the order of the file, the fastest first.
    axes: Vec<Axis>,
    /// Index of the next number in the result.
    next: usize,
}

impl<T: Real> Gathered<T> {
    /// Reserves memory for the result. The caller has checked the shape against the size of the file.
    pub(super) fn new(layout: &Layout, wanted: &Wanted) -> io::Result<Self> {
        let shape = layout.shape_of(wanted);
        let mut strides = vec![0; shape.len()]; // in the result, by axis of the array
        let mut count = 1;
        for (&axis, extent) in wanted.order.iter().zip(&shape).rev() {
            strides[axis] = count;
            count *= extent;
        }
        let first = wanted.order.first();
        let extent = |axis| if Some(&axis) == first { wanted.rows.len() } else { layout.shape[axis] };
        let axis = |axis| Axis { extent: extent(axis), stride: strides[axis], index: 0 };
        let axes: Vec<_> = layout.fastest_first().into_iter().map(axis).collect();
        let mut expected = 1;
        let in_order = axes.iter().all(|axis| {
            let next = axis.extent == 1 || axis.stride == expected;
            expected *= axis.extent;
            next
        });
        let mut numbers = memory::reserve(count)?;
        if !in_order {
            numbers.resize(count, T::default());
        }
        Ok(Gathered { numbers, in_order, axes, next: 0 })
    }

    pub(super) fn push(&mut self, mut block: &[T]) {
        if self.in_order {
            self.numbers.extend_from_slice(block);
            return;
        }
        while !block.is_empty() {
            let run = &mut self.axes[0];
            let (now, later) = block.split_at(block.len().min(run.extent - run.index));
            let targets = self.numbers[self.next..].iter_mut().step_by(run.stride);
            targets.zip(now).for_each(|(target, &number)| *target = number);
            run.index += now.len();
            self.next += now.len() * run.stride;
            self.carry();
            block = later;
        }
    }

    /// Where an axis has reached its end, the next slower axis advances by one.
    fn carry(&mut self) {
        let mut axes = self.axes.iter_mut().peekable();
        while let Some(axis) = axes.next().filter(|axis| axis.index == axis.extent) {
            self.next -= axis.extent * axis.stride;
            axis.index = 0;
            if let Some(slower) = axes.peek_mut() {
                slower.index += 1;
                self.next += slower.stride;
            }
        }
    }
}
