//! The arena: one block of zeroed memory, aligned for the widest vectors, on huge pages where the system has them.

use crate::device::DeviceError;
use crate::memory;
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// A cache line.
const LINE: usize = 64;
/// What every allocator aligns to by itself.
const ALIGNMENT: usize = 8;
/// Large blocks start on a huge page: kernels use hundreds of megabytes, more than the address cache of a processor covers with
/// small pages.
const HUGE_PAGE: usize = 2 << 20;

/// The subject of the sentence that refuses a block.
const WHAT: &str = "the program";

/// Numbers at a fixed address.
pub(super) struct Arena {
    start: *mut f32,
    count: usize,
    /// What the system gave: the numbers, and room to align them.
    block: *mut u8,
    layout: Layout,
}

// SAFETY: the memory belongs to the arena alone.
unsafe impl Send for Arena {}

impl Arena {
    /// `count` zeros for a program that has `taken` numbers already; an error of kind `OutOfMemory` if the system does not
    /// give that much.
    pub(super) fn zeros(count: usize, taken: usize) -> Result<Arena, DeviceError> {
        let whole = count.saturating_add(taken).saturating_mul(size_of::<f32>());
        // The zeros that the program has already may not be in use yet, so that the system still counts them as free.
        memory::check(whole, WHAT)?;
        let full = || memory::refused(whole, WHAT);
        let bytes = count.max(1).checked_mul(size_of::<f32>()).and_then(|bytes| bytes.checked_next_multiple_of(LINE));
        let alignment = if bytes.is_some_and(|bytes| bytes < HUGE_PAGE) { LINE } else { HUGE_PAGE };
        // A wider alignment than that of an allocation would be filled with zeros by hand, page by small page, before the advice
        // below. So there is room for one more `alignment`, and zeros are the system's: a page is there when it is first used.
        let room = bytes.and_then(|bytes| bytes.checked_add(alignment));
        let layout = room.and_then(|room| Layout::from_size_align(room, ALIGNMENT).ok()).ok_or_else(full)?;
        // SAFETY: the size is not zero.
        let block = unsafe { alloc_zeroed(layout) };
        if block.is_null() {
            return Err(full());
        }
        // SAFETY: the block has room for the shift.
        let start = unsafe { block.add(block.align_offset(alignment)) };
        #[cfg(all(target_os = "linux", not(miri)))]
        if alignment == HUGE_PAGE {
            // SAFETY: the memory is ours; the call is advice and may fail without harm.
            unsafe { libc::madvise(start.cast(), layout.size() - alignment, libc::MADV_HUGEPAGE) };
        }
        Ok(Arena { start: start.cast(), count: (layout.size() - alignment) / size_of::<f32>(), block, layout })
    }

    /// The first number.
    pub(super) fn start(&self) -> *mut f32 {
        self.start
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.block, self.layout) };
    }
}
