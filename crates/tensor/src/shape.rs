//! Shapes and layouts: the extents of a tensor, and the positions of its elements in memory.

use crate::device::{DeviceError, DeviceErrorKind};
use crate::limits::refuse;
use std::fmt;

/// Most elements of a tensor: their bytes fit in an `isize` in f32 and in f64, and so do offsets, strides and small multiples
/// of them. No machine has so much memory.
const MOST_ELEMENTS: usize = isize::MAX as usize / 16;

/// Extents of a tensor's axes, outermost first. Every extent is at least 1, and their product at most `isize::MAX / 16`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape(pub(crate) Vec<usize>);

/// Extents that no tensor can have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// An extent is 0.
    Empty(Vec<usize>),
    /// There are more elements than any memory has.
    TooLarge(Vec<usize>),
}

impl fmt::Display for ShapeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeError::Empty(dims) => write!(formatter, "a shape has extents of at least 1, got {dims:?}"),
            ShapeError::TooLarge(dims) => {
                write!(formatter, "a tensor of shape {dims:?} has more elements than any memory; use smaller sizes")
            }
        }
    }
}

impl std::error::Error for ShapeError {}

impl Shape {
    /// A shape, if a tensor can have it. `Shape::from` panics instead; inside [`attempt`](crate::attempt), a shape that is
    /// too large ends the attempt.
    pub fn try_new(dims: impl AsRef<[usize]>) -> Result<Shape, ShapeError> {
        let dims = dims.as_ref();
        if dims.contains(&0) {
            return Err(ShapeError::Empty(dims.to_vec()));
        }
        let count = dims.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent));
        match count.filter(|&count| count <= MOST_ELEMENTS) {
            Some(_) => Ok(Shape(dims.to_vec())),
            None => Err(ShapeError::TooLarge(dims.to_vec())),
        }
    }

    /// Extents, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.0.iter().product() // does not wrap: every shape comes from `try_new`
    }

    /// The shape both operands expand to, by NumPy's rule: aligned at the last axis, extent 1 stretches.
    pub(crate) fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let rank = self.rank().max(other.rank());
        let extent = |shape: &Shape, axis: usize| {
            let missing = rank - shape.rank();
            if axis < missing { 1 } else { shape.0[axis - missing] }
        };
        (0..rank)
            .map(|axis| match (extent(self, axis), extent(other, axis)) {
                (left, right) if left == right => Some(left),
                (1, right) => Some(right),
                (left, 1) => Some(left),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map(Shape::from)
    }
}

impl<T: AsRef<[usize]>> From<T> for Shape {
    fn from(dims: T) -> Self {
        match Shape::try_new(dims) {
            Ok(shape) => shape,
            Err(error @ ShapeError::TooLarge(_)) => {
                refuse(DeviceError::new(DeviceErrorKind::TooLarge, error.to_string()))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

/// One axis of a slice: its element `i` is element `start + i·step` of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First element.
    pub start: usize,
    /// Distance between neighbours; negative for reversed order, never zero.
    pub step: isize,
    /// Number of elements.
    pub length: usize,
}

impl Span {
    /// All of an axis.
    pub fn all(extent: usize) -> Span {
        Span { start: 0, step: 1, length: extent }
    }

    /// `start..end`, in order.
    pub fn range(start: usize, end: usize) -> Span {
        assert!(start <= end, "a range starts before its end, got {start}..{end}");
        Span { start, step: 1, length: end - start }
    }

    /// All of an axis, last element first.
    pub fn flipped(extent: usize) -> Span {
        Span { start: extent - 1, step: -1, length: extent }
    }

    /// The operand's element under this span's element `index`.
    pub(crate) fn at(&self, index: usize) -> isize {
        self.start as isize + index as isize * self.step
    }

    pub(crate) fn fits(&self, extent: usize) -> bool {
        // The caller may have written any numbers, so the arithmetic is wider than theirs.
        let at = |index: usize| self.start as i128 + index as i128 * self.step as i128;
        let inside = |position: i128| (0..extent as i128).contains(&position);
        self.length > 0 && self.step != 0 && inside(at(0)) && inside(at(self.length - 1))
    }

    /// The same elements; the step of a single element, which leads nowhere, is 1.
    pub(crate) fn normalised(self) -> Span {
        if self.length == 1 { Span { step: 1, ..self } } else { self }
    }
}

/// The product, or the largest number if it does not fit: an allocation of that size is refused.
pub(crate) fn saturating_product<const COUNT: usize>(factors: [usize; COUNT]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// Row-major strides.
pub(crate) fn contiguous_strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

/// Where a tensor lies inside a buffer: element `index` at `offset + Σ index·stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Place of the first element.
    pub offset: isize,
    /// Extents, outermost first.
    pub dims: Vec<usize>,
    /// Elements of the buffer from one index of an axis to the next.
    pub strides: Vec<isize>,
}

impl Layout {
    /// All elements of a buffer, row by row.
    pub fn contiguous(shape: &Shape) -> Layout {
        Layout { offset: 0, dims: shape.0.clone(), strides: contiguous_strides(&shape.0) }
    }

    /// Whether its elements lie one after the other.
    pub fn is_contiguous(&self) -> bool {
        let expected = contiguous_strides(&self.dims);
        (0..self.dims.len()).all(|axis| self.dims[axis] == 1 || self.strides[axis] == expected[axis])
    }

    /// Axis `k` is axis `order[k]` of this one.
    pub fn permuted(&self, order: &[usize]) -> Layout {
        Layout {
            offset: self.offset,
            dims: order.iter().map(|&axis| self.dims[axis]).collect(),
            strides: order.iter().map(|&axis| self.strides[axis]).collect(),
        }
    }

    /// The same with axes of extent 1 repeated.
    pub fn expanded(&self, dims: &[usize]) -> Layout {
        let strides = (0..dims.len()).map(|axis| if self.dims[axis] == dims[axis] { self.strides[axis] } else { 0 });
        Layout { offset: self.offset, strides: strides.collect(), dims: dims.to_vec() }
    }

    /// The elements of a span along each axis.
    pub fn sliced(&self, spans: &[Span]) -> Layout {
        let shift: isize = spans.iter().zip(&self.strides).map(|(span, stride)| span.start as isize * stride).sum();
        Layout {
            offset: self.offset + shift,
            dims: spans.iter().map(|span| span.length).collect(),
            strides: spans.iter().zip(&self.strides).map(|(span, stride)| span.step * stride).collect(),
        }
    }

    /// The same elements in the same order under other extents; `None` if strides cannot express that.
    pub fn reshaped(&self, dims: &[usize]) -> Option<Layout> {
        // Axes of extent 1 are dropped; the others are merged into runs that have one stride.
        let old: Vec<(usize, isize)> =
            self.dims.iter().copied().zip(self.strides.iter().copied()).filter(|&(extent, _)| extent != 1).collect();
        let mut strides = vec![0; dims.len()];
        let (mut from, mut axis) = (0, 0);
        while from < old.len() {
            // The smallest groups of old axes [from, to) and new axes [axis, until) with equal products.
            let (mut to, mut until) = (from + 1, axis);
            let mut old_count = old[from].0;
            let mut new_count = 1;
            while new_count != old_count || until == axis {
                if new_count < old_count {
                    new_count *= dims[until];
                    until += 1;
                } else {
                    old_count *= old[to].0;
                    to += 1;
                }
            }
            let uniform = (from + 1..to).all(|inner| old[inner - 1].1 == old[inner].1 * old[inner].0 as isize);
            if !uniform {
                return None;
            }
            let mut stride = old[to - 1].1;
            for new_axis in (axis..until).rev() {
                strides[new_axis] = stride;
                stride *= dims[new_axis] as isize;
            }
            (from, axis) = (to, until);
        }
        Some(Layout { offset: self.offset, dims: dims.to_vec(), strides })
    }
}

/// Calls `visit` with every index of a box, last axis fastest.
pub fn for_each_index(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; dims.len()];
    loop {
        visit(&index);
        let mut axis = dims.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(layout: &Layout) -> Vec<isize> {
        let mut found = Vec::new();
        for_each_index(&layout.dims, |index| {
            found.push(layout.offset + index.iter().zip(&layout.strides).map(|(&i, s)| i as isize * s).sum::<isize>());
        });
        found
    }

    #[test]
    fn a_reshaped_layout_visits_the_same_addresses_or_refuses() {
        let base = Layout::contiguous(&Shape::from([2, 3, 4]));
        for dims in [vec![6, 4], vec![2, 12], vec![24], vec![1, 2, 1, 3, 4, 1], vec![4, 3, 2]] {
            assert_eq!(addresses(&base.reshaped(&dims).unwrap()), addresses(&base), "{dims:?}");
        }
        let flipped = base.sliced(&[Span::all(2), Span::flipped(3), Span::all(4)]);
        assert_eq!(flipped.reshaped(&[6, 4]), None);
        let split = flipped.reshaped(&[2, 3, 2, 2]).unwrap();
        assert_eq!(addresses(&split), addresses(&flipped));
        let turned = base.permuted(&[0, 2, 1]);
        assert_eq!(turned.reshaped(&[2, 12]), None);
        assert_eq!(addresses(&turned.reshaped(&[2, 2, 2, 3]).unwrap()), addresses(&turned));
        let stretched = Layout::contiguous(&Shape::from([1, 1, 4])).expanded(&[2, 3, 4]);
        assert_eq!(addresses(&stretched.reshaped(&[6, 4]).unwrap()), addresses(&stretched));
        assert_eq!(stretched.reshaped(&[24]), None);
    }

    #[test]
    fn a_shape_whose_count_would_wrap_is_refused() {
        for dims in [vec![111_620, 429_509_837, 384_773], vec![usize::MAX, 2], vec![1 << 32, 1 << 32], vec![1 << 60]] {
            assert_eq!(Shape::try_new(&dims), Err(ShapeError::TooLarge(dims.clone())));
        }
        assert_eq!(Shape::try_new([3, 0, usize::MAX]), Err(ShapeError::Empty(vec![3, 0, usize::MAX])));
        assert_eq!(Shape::try_new([1 << 29, 1 << 29]).map(|shape| shape.count()), Ok(1 << 58));
    }

    #[test]
    fn a_span_of_any_numbers_fits_only_inside_its_axis() {
        let fits = |start, step, length| Span { start, step, length }.fits(10);
        assert!(fits(9, -3, 4) && fits(0, isize::MAX, 1) && fits(0, 3, 4));
        // In 64 bits the last element of each of these would wrap to a place inside the axis.
        assert!(
            !fits(0, isize::MIN, 3) && !fits(5, 1 << 62, 5) && !fits(0, 2, (1 << 63) + 1) && !fits(usize::MAX, 1, 7)
        );
    }

    #[test]
    fn a_trailing_axis_of_extent_one_reshapes_away() {
        let base = Layout::contiguous(&Shape::from([5, 1]));
        assert!(base.reshaped(&[5]).is_some());
        assert!(base.reshaped(&[1, 5, 1]).is_some());
        let scalar = Layout::contiguous(&Shape::from([1, 1]));
        assert!(scalar.reshaped(&[1]).is_some());
    }
}
