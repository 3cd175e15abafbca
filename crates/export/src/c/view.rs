//! Where the elements of a tensor are: a buffer, a first element and a stride for each axis.

/// Elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) buffer: usize,
    pub(crate) offset: isize,
    pub(crate) dims: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

/// Strides of a contiguous array.
pub(crate) fn contiguous(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

impl View {
    /// All elements of a buffer.
    pub(crate) fn whole(buffer: usize, dims: &[usize]) -> View {
        View { buffer, offset: 0, dims: dims.to_vec(), strides: contiguous(dims) }
    }

    pub(crate) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether its elements lie one after the other.
    pub(crate) fn is_contiguous(&self) -> bool {
        let expected = contiguous(&self.dims);
        (0..self.dims.len()).all(|axis| self.dims[axis] == 1 || self.strides[axis] == expected[axis])
    }

    pub(crate) fn permuted(&self, order: &[usize]) -> View {
        View {
            dims: order.iter().map(|&axis| self.dims[axis]).collect(),
            strides: order.iter().map(|&axis| self.strides[axis]).collect(),
            ..*self
        }
    }

    /// The same with axes of extent 1 repeated.
    pub(crate) fn expanded(&self, dims: &[usize]) -> View {
        let stride = |axis: usize| if self.dims[axis] == dims[axis] { self.strides[axis] } else { 0 };
        View { strides: (0..dims.len()).map(stride).collect(), dims: dims.to_vec(), ..*self }
    }

    /// Elements `start + i · step` of an axis.
    pub(crate) fn cut(&self, axis: usize, start: usize, step: isize, length: usize) -> View {
        let mut view = self.clone();
        view.offset += start as isize * self.strides[axis];
        view.strides[axis] *= step;
        view.dims[axis] = length;
        view
    }

    /// The same elements in the same order under other extents, where strides can express that.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Option<View> {
        let old: Vec<(usize, isize)> =
            self.dims.iter().copied().zip(self.strides.iter().copied()).filter(|(extent, _)| *extent != 1).collect();
        let mut strides = vec![0; dims.len()];
        let (mut from, mut axis) = (0, 0);
        while from < old.len() {
            let (mut to, mut until, mut old_count, mut new_count) = (from + 1, axis, old[from].0, 1);
            while new_count != old_count || until == axis {
                if new_count < old_count {
                    new_count *= dims[until];
                    until += 1;
                } else {
                    old_count *= old[to].0;
                    to += 1;
                }
            }
            if (from + 1..to).any(|inner| old[inner - 1].1 != old[inner].1 * old[inner].0 as isize) {
                return None;
            }
            let mut stride = old[to - 1].1;
            for new in (axis..until).rev() {
                strides[new] = stride;
                stride *= dims[new] as isize;
            }
            (from, axis) = (to, until);
        }
        Some(View { dims: dims.to_vec(), strides, ..*self })
    }

    /// The place of an element.
    pub(crate) fn at(&self, index: &[usize]) -> usize {
        let shift: isize = index.iter().zip(&self.strides).map(|(&index, stride)| index as isize * stride).sum();
        (self.offset + shift) as usize
    }
}

/// Calls `visit` with every index of a box, last axis fastest.
pub(crate) fn for_each_index(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; dims.len()];
    for _ in 0..dims.iter().product::<usize>() {
        visit(&index);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// Views of one shape with neighbouring axes merged wherever all of them allow it; axes of extent 1 are dropped.
pub(crate) fn merged(views: &[View]) -> Vec<View> {
    let mut merged: Vec<View> =
        views.iter().map(|view| View { dims: Vec::new(), strides: Vec::new(), ..*view }).collect();
    for axis in 0..views[0].dims.len() {
        let extent = views[0].dims[axis];
        if extent == 1 {
            continue;
        }
        let joins = views.iter().zip(&merged).all(|(view, merged)| {
            merged.strides.last().is_some_and(|&outer| outer == view.strides[axis] * extent as isize)
        });
        for (view, merged) in views.iter().zip(&mut merged) {
            match (joins, merged.dims.last_mut(), merged.strides.last_mut()) {
                (true, Some(dims), Some(stride)) => {
                    *dims *= extent;
                    *stride = view.strides[axis];
                }
                _ => {
                    merged.dims.push(extent);
                    merged.strides.push(view.strides[axis]);
                }
            }
        }
    }
    for view in merged.iter_mut().filter(|view| view.dims.is_empty()) {
        (view.dims, view.strides) = (vec![1], vec![0]);
    }
    merged
}
