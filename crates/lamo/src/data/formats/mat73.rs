//! MATLAB's MAT-file version 7.3: HDF5 behind a block of 512 bytes of text. MATLAB reverses the axes and stores the
//! class of each variable as an attribute; [`hdf5`] reads both.

use super::entry::Entry;
use super::error::Error;
use super::hdf5;
use super::source::Opened;

/// Whether an HDF5 file begins with MATLAB's text.
pub(super) fn sniff(start: &[u8], size: u64) -> bool {
    start.starts_with(b"MATLAB 7.3") && hdf5::sniff(start, size)
}

/// All variables under their paths.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    hdf5::entries(opened, true)
}
