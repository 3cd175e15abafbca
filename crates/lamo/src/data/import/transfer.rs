//! Progress of an import in bytes.

use std::cell::Cell;
use std::ops::ControlFlow;

/// Progress of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that have been hashed and read.
    pub done: u64,
    /// Bytes to hash and read.
    pub total: u64,
}

/// Called after every few bytes. When it returns `Break`, the import stops once the samples being read are stored.
pub type Listen<'a> = &'a dyn Fn(Transfer) -> ControlFlow<()>;

/// Counts bytes and reports them.
pub(super) struct Meter<'a> {
    done: Cell<u64>,
    total: Cell<u64>,
    listen: Listen<'a>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(total: u64, listen: Listen<'a>) -> Meter<'a> {
        Meter { done: Cell::new(0), total: Cell::new(total), listen }
    }

    /// Changes the bytes to hash and read.
    pub(super) fn expect(&self, total: u64) {
        self.total.set(total);
    }

    /// Counts and reports bytes that have been hashed or read.
    pub(super) fn tick(&self, bytes: usize) {
        self.done.set(self.done.get() + bytes as u64);
        let _ = self.stop();
    }

    /// Reports the progress; whether the import is to stop.
    pub(super) fn stop(&self) -> bool {
        let (done, total) = (self.done.get(), self.total.get());
        (self.listen)(Transfer { done: done.min(total), total }).is_break()
    }
}
