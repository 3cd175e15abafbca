//! The arena: one block of zeroed memory, aligned for the widest vectors, on huge pages where the system has them.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// A cache line.
const LINE: usize = 64;
/// Large blocks start on a huge page: kernels walk hundreds of megabytes, far more than small pages the processor can
/// keep track of.
const HUGE_PAGE: usize = 2 << 20;

/// Numbers at a fixed address.
pub(super) struct Arena {
    start: *mut f32,
    layout: Layout,
}

// SAFETY: the memory belongs to the arena alone.
unsafe impl Send for Arena {}

impl Arena {
    /// `count` zeros.
    pub(super) fn zeros(count: usize) -> Arena {
        let bytes = (count.max(1) * size_of::<f32>()).next_multiple_of(LINE);
        let alignment = if bytes >= HUGE_PAGE { HUGE_PAGE } else { LINE };
        let layout = Layout::from_size_align(bytes, alignment).expect("a program fits into memory");
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        #[cfg(target_os = "linux")]
        if alignment == HUGE_PAGE {
            // SAFETY: the block is ours; the call is advice and may fail without harm.
            unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Arena { start: start.cast(), layout }
    }

    /// The first number.
    pub(super) fn start(&self) -> *mut f32 {
        self.start
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.layout.size() / size_of::<f32>()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.cast(), self.layout) };
    }
}
