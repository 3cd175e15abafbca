//! The XML files of VTK: vtu (any cells), vtp (surfaces), vti (images), vtr (rectilinear) and vts (structured grids).
//!
//! Numbers stand in the elements as text or in base64, or behind them as appended data, in base64 or plain, packed by zlib or LZ4
//! or not. The format is that of VTK's users' guide, chapter "VTK File Formats", and of what VTK itself writes.

mod array;
mod base64;
mod lattice;
pub(super) mod parts;
mod read;
mod tree;
mod write;

pub(super) use read::{promised, read};
pub(super) use write::write;
pub use write::{Encoding, Options};

/// Whether a file begins like XML of VTK.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    start.windows(8).any(|bytes| bytes == b"<VTKFile")
}
