//! NumPy's npz format: a zip archive of npy files, stored or deflated.

use super::entry::Entry;
use super::error::Error;
use super::section::Packing;
use super::source::Opened;
use super::zip::{MAGICS, Member, members};
use super::{Named, npy, pytorch};
use flate2::Crc;

/// Whether the file begins as a zip archive that PyTorch did not write.
pub(super) fn sniff(start: &[u8], size: u64) -> bool {
    MAGICS.iter().any(|magic| start.starts_with(magic)) && !pytorch::sniff(start, size)
}

/// All members, npy files or not.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let (mut entries, mut spans) = (Vec::new(), Vec::new());
    for member in members(opened)? {
        let (entry, end) = entry(opened, &member)?;
        entries.push(entry);
        spans.push((member.header, end, member.name));
    }
    // Members that share their bytes unpack to far more than the file holds.
    spans.sort_by_key(|(start, ..)| *start);
    let shared = spans.windows(2).find(|pair| pair[0].1 > pair[1].0);
    shared.map_or(Ok(entries), |pair| {
        let found = format!("{:?} and {:?} in the same bytes", pair[0].2, pair[1].2);
        Err(opened.damaged("zip members one after another", found))
    })
}

/// The array of a member, and where its bytes end.
fn entry(opened: &Opened, member: &Member) -> Result<(Entry, u64), Error> {
    let name = member.name.strip_suffix(".npy").unwrap_or(&member.name).to_owned();
    let packing = match member.name.ends_with(".npy") {
        true => member.packing(),
        false => Err("a file that is not npy".to_owned()),
    };
    let mut section = member.section(opened, *packing.as_ref().unwrap_or(&Packing::Plain))?;
    let end = section.start + section.bytes;
    if let Err(found) = packing {
        return Ok((Entry::new(name, Err(found), section), end));
    }
    let part = format!("the header of `{}`", member.name);
    let (before, holds) =
        npy::header(&mut section.source(opened)?).map_err(|problem| problem.in_file(opened, &part))?;
    let promised = holds.as_ref().ok().and_then(|layout| layout.bytes()?.checked_add(before));
    if let Some(expected) = promised.filter(|&expected| expected != member.unpacked) {
        return Err(opened.wrong_length(&part, expected, member.unpacked));
    }
    section.before = before;
    Ok((Entry::new(name, holds, section), end))
}

/// Bytes of an array's name and content in an archive.
fn entry_sizes(array: &Named) -> [u64; 2] {
    let content = npy::float_header(&array.shape).len() + 4 * array.values.len();
    [array.name.len() + ".npy".len(), content].map(|bytes| bytes as u64)
}

/// A zip archive without the 64-bit extensions counts its members and the bytes of their names in 16 bits and all other
/// bytes in 32 bits. The largest number of each is reserved.
fn check_archive(entries: impl Iterator<Item = [u64; 2]>) -> Result<(), String> {
    const HEADERS: u64 = 30 + 46; // of a member, and of its record in the directory
    let (mut arrays, mut bytes, mut longest) = (0u64, 0u64, 0);
    for [name, content] in entries {
        arrays += 1;
        bytes += HEADERS + 2 * name + content;
        longest = name.max(longest);
    }
    if arrays < u64::from(u16::MAX) && longest < u64::from(u16::MAX) && bytes < u64::from(u32::MAX) {
        return Ok(());
    }
    let limits = "an npz file holds less than 4 GiB, 65535 arrays and 64 KiB of a name";
    Err(format!("{limits}, found {bytes} bytes in {arrays} arrays; use .safetensors"))
}

/// A zip archive of npy files that are not packed (PKWARE's APPNOTE, 4.3).
pub(super) fn write(arrays: &[Named]) -> Result<Vec<u8>, String> {
    check_archive(arrays.iter().map(entry_sizes))?;
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for array in arrays {
        let (name, content) = (format!("{}.npy", array.name), npy::float_file(array));
        let mut sum = Crc::new();
        sum.update(&content);
        let start = (file.len() as u32).to_le_bytes();
        let size = (content.len() as u32).to_le_bytes();
        // version 2.0, no flags, stored, no time, 1980-01-01
        let mut entry = [&[20, 0, 0, 0, 0, 0, 0, 0, 33, 0][..], &sum.sum().to_le_bytes(), &size, &size].concat();
        entry.extend((name.len() as u16).to_le_bytes());
        entry.extend([0, 0]);
        file.extend([b"PK\x03\x04", &entry[..], name.as_bytes()].concat());
        file.extend(content);
        directory.extend([b"PK\x01\x02\x14\x00", &entry[..], &[0; 10], &start, name.as_bytes()].concat());
    }
    let (count, directory_start) = ((arrays.len() as u16).to_le_bytes(), (file.len() as u32).to_le_bytes());
    let length = (directory.len() as u32).to_le_bytes();
    file.extend(directory);
    file.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &length, &directory_start, &[0, 0]].concat());
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_its_numbers_cannot_count_is_refused() {
        let limit = u64::from(u32::MAX) - 76 - 2 * 5; // beside the content and a name of five letters
        assert_eq!(check_archive([[5, limit - 1]].into_iter()), Ok(()));
        assert_eq!(
            check_archive([[5, limit]].into_iter()).unwrap_err(),
            "an npz file holds less than 4 GiB, 65535 arrays and 64 KiB of a name, found 4294967295 bytes in 1 arrays; \
             use .safetensors"
        );
        for (entry, count) in [([5, 1 << 31], 2), ([5, 1], 65535), ([65535, 1], 1)] {
            assert!(check_archive(std::iter::repeat_n(entry, count)).is_err(), "{count} of {entry:?}");
        }
    }
}
