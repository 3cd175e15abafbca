//! Memory whose size a file decides. A plain `Vec` ends the program where memory is short; these return an error.

use std::io::{self, ErrorKind};

/// An empty vector with room for `count` values.
pub(crate) fn reserve<T>(count: usize) -> io::Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| too_little((count as u64).saturating_mul(size_of::<T>() as u64)))?;
    Ok(values)
}

/// A vector of `count` equal values.
pub(crate) fn filled<T: Clone>(value: T, count: usize) -> io::Result<Vec<T>> {
    let mut values = reserve(count)?;
    values.resize(count, value);
    Ok(values)
}

/// Refuses work that needs more bytes than there are: reserves them all and frees them again. It stands before code
/// whose own allocations do not return errors.
pub(crate) fn require(bytes: u64) -> io::Result<()> {
    let count = usize::try_from(bytes).map_err(|_| too_little(bytes))?;
    reserve::<u8>(count).map(|room| {
        std::hint::black_box(room); // else the compiler may remove the allocation
    })
}

fn too_little(bytes: u64) -> io::Error {
    io::Error::new(ErrorKind::OutOfMemory, format!("expected {} of memory, found too little", amount(bytes)))
}

/// `1.5 GB`
pub(crate) fn amount(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1000.0 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{amount:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_no_machine_has_is_an_error_that_says_how_much() {
        for told in
            [reserve::<u64>(1 << 59).unwrap_err(), filled(0_u64, 1 << 59).unwrap_err(), require(1 << 62).unwrap_err()]
        {
            assert_eq!(told.kind(), ErrorKind::OutOfMemory);
            assert_eq!(told.to_string(), "expected 4.6 EB of memory, found too little");
        }
        assert_eq!(filled(7_u8, 3).unwrap(), [7, 7, 7]);
        require(1 << 20).unwrap();
        assert_eq!(amount(999), "999 bytes");
        assert_eq!(amount(7_340_000_000), "7.3 GB");
    }
}
