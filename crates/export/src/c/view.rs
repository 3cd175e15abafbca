//! Where the elements of a tensor are: a buffer, and their layout inside it.

use lamo::tensor::{Layout, Shape, Span};
use std::ops::Deref;

/// Elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) buffer: usize,
    pub(crate) layout: Layout,
}

impl Deref for View {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}

impl View {
    /// All elements of a buffer.
    pub(crate) fn whole(buffer: usize, dims: &[usize]) -> View {
        View { buffer, layout: Layout::contiguous(&Shape::from(dims)) }
    }

    /// Other elements of the same buffer, or the same ones in another order.
    fn with(&self, layout: Layout) -> View {
        View { layout, ..*self }
    }

    pub(crate) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    pub(crate) fn permuted(&self, order: &[usize]) -> View {
        self.with(self.layout.permuted(order))
    }

    /// The same with axes of extent 1 repeated.
    pub(crate) fn expanded(&self, dims: &[usize]) -> View {
        self.with(self.layout.expanded(dims))
    }

    /// Elements `start + i · step` of an axis.
    pub(crate) fn cut(&self, axis: usize, start: usize, step: isize, length: usize) -> View {
        let mut spans: Vec<Span> = self.dims.iter().map(|&extent| Span::all(extent)).collect();
        spans[axis] = Span { start, step, length };
        self.with(self.layout.sliced(&spans))
    }

    /// The same elements in the same order under other extents, where strides can express that.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Option<View> {
        self.layout.reshaped(dims).map(|layout| self.with(layout))
    }

    /// Axes with these extents and strides from the same first element on.
    pub(crate) fn axes(&self, dims: Vec<usize>, strides: Vec<isize>) -> View {
        self.with(Layout { offset: self.offset, dims, strides })
    }

    /// The place of an element.
    pub(crate) fn at(&self, index: &[usize]) -> usize {
        let shift: isize = index.iter().zip(&self.strides).map(|(&index, stride)| index as isize * stride).sum();
        (self.offset + shift) as usize
    }
}

/// Views of one shape with neighbouring axes merged wherever all of them allow it; axes of extent 1 are dropped.
pub(crate) fn merged(views: &[View]) -> Vec<View> {
    let mut merged: Vec<View> = views.iter().map(|view| view.axes(Vec::new(), Vec::new())).collect();
    for axis in 0..views[0].dims.len() {
        let extent = views[0].dims[axis];
        if extent == 1 {
            continue;
        }
        let joins = views.iter().zip(&merged).all(|(view, merged)| {
            merged.strides.last().is_some_and(|&outer| outer == view.strides[axis] * extent as isize)
        });
        for (view, merged) in views.iter().zip(&mut merged) {
            let Layout { dims, strides, .. } = &mut merged.layout;
            match (joins, dims.last_mut(), strides.last_mut()) {
                (true, Some(last), Some(stride)) => {
                    *last *= extent;
                    *stride = view.strides[axis];
                }
                _ => {
                    dims.push(extent);
                    strides.push(view.strides[axis]);
                }
            }
        }
    }
    for view in merged.iter_mut().filter(|view| view.dims.is_empty()) {
        *view = view.axes(vec![1], vec![0]);
    }
    merged
}
