//! Convolution over rows and columns, channels last (a cross-correlation, as usual in networks):
//!
//! ```text
//! y[b,i,j,o] = Σ_{c,u,v} w[o,c,u,v] · x[b, i·s+u−p, j·s+v−p, c]          x = 0 outside, c in the group of o
//! dx[b,k,l,c] = Σ_{o,u,v} w[o,c,u,v] · dy[b, (k+p−u)/s, (l+p−v)/s, o]    whole quotients only
//! dw[o,c,u,v] = Σ_{b,i,j} dy[b,i,j,o] · x[b, i·s+u−p, j·s+v−p, c]
//! ```
//!
//! x `[batch, rows, columns, in_channels]`, w `[out_channels, in_channels/groups, kernel_rows, kernel_columns]`,
//! y `[batch, out_rows, out_columns, out_channels]`. All three sums read one [`Geometry`]: which pixel a tap meets.
//! Tasks and the order of every sum follow from the shape alone, so the bits do not depend on the number of threads.

mod dense;
mod depthwise;
mod product;
#[cfg(test)]
mod tests;
mod winograd;

use super::memory::{Source, Target};
use crate::ops::convolution::ConvolutionShape;
use std::cell::RefCell;
use std::ops::Range;

impl ConvolutionShape {
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Input channels of one group.
    fn in_width(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of one group.
    fn out_width(&self) -> usize {
        self.out_channels / self.groups
    }

    fn is_depthwise(&self) -> bool {
        self.groups == self.in_channels && self.groups == self.out_channels
    }
}

/// Along one axis, tap u of target pixel i meets source pixel (step·i + direction·u + offset) / divisor, if that is
/// whole and inside.
#[derive(Clone, Copy)]
struct Axis {
    step: isize,
    direction: isize,
    offset: isize,
    divisor: isize,
    taps: usize,
    source_length: usize,
    target_length: usize,
}

impl Axis {
    #[inline(always)]
    fn source(&self, index: usize, tap: usize) -> Option<usize> {
        let numerator = self.step * index as isize + self.direction * tap as isize + self.offset;
        let whole = self.divisor == 1 || numerator % self.divisor == 0;
        let position = if self.divisor == 1 { numerator } else { numerator / self.divisor };
        (whole && numerator >= 0 && position < self.source_length as isize).then_some(position as usize)
    }

    /// Successive taps meet successive pixels.
    fn is_direct(&self) -> bool {
        self.divisor == 1 && self.direction == 1
    }

    /// Taps of target pixel `index` that lie inside; for direct axes.
    #[inline(always)]
    fn inside_taps(&self, index: usize) -> Range<usize> {
        let first = self.step * index as isize + self.offset;
        let end = (self.source_length as isize - first).clamp(0, self.taps as isize) as usize;
        ((-first).max(0) as usize).min(end)..end
    }

    /// Target pixels whose tap `tap` lies inside; for direct axes.
    #[inline(always)]
    fn inside_targets(&self, tap: usize) -> Range<usize> {
        let first = tap as isize + self.offset;
        let reached = |bound: isize| ((bound - first + self.step - 1).div_euclid(self.step)).max(0) as usize;
        let end = reached(self.source_length as isize).min(self.target_length);
        reached(0).min(end)..end
    }
}

/// Which source pixels the taps of each target pixel meet.
#[derive(Clone, Copy)]
struct Geometry {
    batch: usize,
    /// `[rows, columns]`
    axes: [Axis; 2],
}

impl Geometry {
    /// Target y, source x.
    fn forward(shape: &ConvolutionShape) -> Self {
        let axis = |axis: usize| Axis {
            step: shape.stride[axis] as isize,
            direction: 1,
            offset: -(shape.padding[axis][0] as isize),
            divisor: 1,
            taps: shape.kernel[axis],
            source_length: [shape.rows, shape.columns][axis],
            target_length: [shape.out_rows(), shape.out_columns()][axis],
        };
        Self { batch: shape.batch, axes: [axis(0), axis(1)] }
    }

    /// Target dx, source dy.
    fn backward(shape: &ConvolutionShape) -> Self {
        let axis = |axis: usize| Axis {
            step: 1,
            direction: -1,
            offset: shape.padding[axis][0] as isize,
            divisor: shape.stride[axis] as isize,
            taps: shape.kernel[axis],
            source_length: [shape.out_rows(), shape.out_columns()][axis],
            target_length: [shape.rows, shape.columns][axis],
        };
        Self { batch: shape.batch, axes: [axis(0), axis(1)] }
    }

    /// The same with the kernel rotated by 180 degrees: tap u becomes tap taps−1−u.
    fn flipped(mut self) -> Self {
        for axis in &mut self.axes {
            axis.offset += axis.direction * (axis.taps as isize - 1);
            axis.direction = -axis.direction;
        }
        self
    }

    fn target_pixels(&self) -> usize {
        self.batch * self.axes[0].target_length * self.axes[1].target_length
    }

    fn is_direct(&self) -> bool {
        self.axes.iter().all(Axis::is_direct)
    }

    /// Target pixel number `pixel` as `[batch, row, column]`.
    #[inline(always)]
    fn split(&self, pixel: usize) -> [usize; 3] {
        let [rows, columns] = [self.axes[0].target_length, self.axes[1].target_length];
        [pixel / (rows * columns), pixel / columns % rows, pixel % columns]
    }

    /// Distance between neighbouring target pixels, if it is one number across the ends of rows and planes, and
    /// channels lie side by side.
    fn pixel_stride(&self, [plane, row, column, channel]: [isize; 4]) -> Option<isize> {
        let [rows, columns] = self.axes.map(|axis| axis.target_length as isize);
        let even_rows = rows == 1 || row == columns * column;
        let even_planes = self.batch == 1 || plane == rows * columns * column;
        (channel == 1 && even_rows && even_planes).then_some(column)
    }
}

/// A kernel rotated by 180 degrees, so that input gradients read forwards like outputs.
fn flip_weight(weight: Source<4>, kernel: [usize; 2]) -> Source<4> {
    let [out_stride, in_stride, row, column] = weight.strides;
    let last = row * (kernel[0] as isize - 1) + column * (kernel[1] as isize - 1);
    // `wrapping`: an empty kernel has no last tap; every other last tap lies inside the view.
    Source { pointer: weight.pointer.wrapping_offset(last), strides: [out_stride, in_stride, -row, -column] }
}

/// Calls a function with this thread's workspace of at least `floats` floats, aligned to a cache line and not cleared.
fn with_workspace<R>(floats: usize, task: impl FnOnce(&mut [f32]) -> R) -> R {
    const LINE: usize = 16;
    thread_local! { static WORKSPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) } }
    WORKSPACE.with_borrow_mut(|workspace| {
        if workspace.len() < floats + LINE {
            workspace.resize(floats + LINE, 0.0);
        }
        let start = workspace.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        task(&mut workspace[start..start + floats])
    })
}

/// A pointer into `scratch` that tasks share; each writes its own part.
#[derive(Clone, Copy)]
struct Shared(*mut f32);
// SAFETY: every use names the disjoint parts that its tasks touch.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// The range lies in the scratch, and no other task touches it while the slice lives.
    #[allow(clippy::mut_from_ref)] // the pointer, not the borrow, owns the memory
    unsafe fn slice(&self, start: usize, length: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), length) }
    }
}

/// Floats of scratch that [`forward`] needs.
pub(crate) fn forward_scratch(shape: &ConvolutionShape) -> usize {
    if winograd::suits(shape) { 0 } else { shape.out_channels * shape.in_width() * shape.taps() }
}

/// Floats of scratch that [`input_gradient`] needs.
pub(crate) fn input_gradient_scratch(shape: &ConvolutionShape) -> usize {
    forward_scratch(shape)
}

/// Floats of scratch that [`weight_gradient`] needs.
pub(crate) fn weight_gradient_scratch(shape: &ConvolutionShape) -> usize {
    if shape.is_depthwise() {
        depthwise::partials(shape)
    } else if winograd::suits(shape) {
        winograd::partials(shape)
    } else {
        dense::partials(shape)
    }
}

/// y of the equations above.
///
/// # Safety
/// The views have the sizes of `shape`, and `output` overlaps no other argument.
pub(crate) unsafe fn forward(
    shape: &ConvolutionShape,
    input: Source<4>,
    weight: Source<4>,
    output: Target<4>,
    scratch: &mut [f32],
) {
    let geometry = Geometry::forward(shape);
    // SAFETY: the caller's promise.
    unsafe { correlate(shape, &geometry, input, dense::by_input(shape, weight), output, scratch) }
}

/// dx of the equations above.
///
/// # Safety
/// The views have the sizes of `shape`, and `input_gradient` overlaps no other argument.
pub(crate) unsafe fn input_gradient(
    shape: &ConvolutionShape,
    output_gradient: Source<4>,
    weight: Source<4>,
    input_gradient: Target<4>,
    scratch: &mut [f32],
) {
    let geometry = Geometry::backward(shape).flipped();
    let weight = dense::by_output(shape, flip_weight(weight, shape.kernel));
    // SAFETY: the caller's promise.
    unsafe { correlate(shape, &geometry, output_gradient, weight, input_gradient, scratch) }
}

/// target[pixel, n] = Σ_{taps, k} source[met pixel, k] · kernel[k, n], group by group.
unsafe fn correlate(
    shape: &ConvolutionShape,
    geometry: &Geometry,
    source: Source<4>,
    kernel: dense::Kernel,
    target: Target<4>,
    scratch: &mut [f32],
) {
    // SAFETY: the caller's promise.
    unsafe {
        if shape.is_depthwise() {
            depthwise::correlate(geometry, source, &kernel, target, scratch);
        } else if winograd::suits(shape) {
            winograd::correlate(geometry, source, &kernel, target);
        } else {
            dense::correlate(geometry, source, &kernel, target, scratch);
        }
    }
}

/// dw of the equations above.
///
/// # Safety
/// The views have the sizes of `shape`, and `weight_gradient` overlaps no other argument.
pub(crate) unsafe fn weight_gradient(
    shape: &ConvolutionShape,
    input: Source<4>,
    output_gradient: Source<4>,
    weight_gradient: Target<4>,
    scratch: &mut [f32],
) {
    // SAFETY: the caller's promise.
    unsafe {
        if shape.is_depthwise() {
            depthwise::weight_gradient(shape, input, output_gradient, weight_gradient, scratch);
        } else if winograd::suits(shape) {
            winograd::weight_gradient(shape, input, output_gradient, weight_gradient, scratch);
        } else {
            dense::weight_gradient(shape, input, output_gradient, weight_gradient, scratch);
        }
    }
}
