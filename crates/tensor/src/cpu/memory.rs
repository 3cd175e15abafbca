//! Strided memory as kernels see it: element `[i, j, …]` lies `i·strides[0] + j·strides[1] + …` floats past `pointer`.
//!
//! The planner guarantees what the types cannot: every index a kernel may form lies inside one live buffer, and a
//! [`Target`] overlaps no memory that another task reads or writes at the same time. A stride may be negative (a flip); a
//! stride of a source may be zero (a broadcast).

/// Memory a kernel reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<const RANK: usize> {
    pub(crate) pointer: *const f32,
    pub(crate) strides: [isize; RANK],
}

/// Memory a kernel writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<const RANK: usize> {
    pub(crate) pointer: *mut f32,
    pub(crate) strides: [isize; RANK],
}

// SAFETY: the planner's guarantee above; the pointers carry no thread affinity.
unsafe impl<const RANK: usize> Send for Source<RANK> {}
unsafe impl<const RANK: usize> Sync for Source<RANK> {}
unsafe impl<const RANK: usize> Send for Target<RANK> {}
unsafe impl<const RANK: usize> Sync for Target<RANK> {}

#[inline(always)]
fn distance<const RANK: usize>(index: [usize; RANK], strides: [isize; RANK]) -> isize {
    let mut sum = 0;
    for axis in 0..RANK {
        sum += index[axis] as isize * strides[axis];
    }
    sum
}

impl<const RANK: usize> Source<RANK> {
    /// # Safety
    /// `index` lies inside the view.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, index: [usize; RANK]) -> *const f32 {
        // SAFETY: the caller's promise.
        unsafe { self.pointer.offset(distance(index, self.strides)) }
    }
}

impl<const RANK: usize> Target<RANK> {
    /// # Safety
    /// `index` lies inside the view.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, index: [usize; RANK]) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.pointer.offset(distance(index, self.strides)) }
    }
}
