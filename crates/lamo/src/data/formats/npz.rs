//! NumPy's npz format: a zip archive of npy files, stored or deflated, with the 64-bit extensions for large archives.

use super::entry::Entry;
use super::error::Error;
use super::section::{Packing, Section};
use super::source::Opened;
use super::{Named, npy};
use flate2::Crc;

/// A zip archive begins with its first member, or with the end record if it has no members.
const MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// One file of the archive, from the directory at the archive's end.
struct Member {
    name: String,
    method: u16,
    encrypted: bool,
    sum: u32,
    packed: u64,
    unpacked: u64,
    /// Where its local header begins.
    header: u64,
}

/// Whether the file begins as a zip archive.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    MAGICS.iter().any(|magic| start.starts_with(magic))
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
    let local = opened.bytes(member.header, 30, "the header of a zip member")?;
    if &local[..4] != b"PK\x03\x04" {
        return Err(opened.damaged("the header of a zip member", format!("{:02x?}", &local[..4])));
    }
    let start = member.header + 30 + u64::from(short(&local, 26)) + u64::from(short(&local, 28));
    let name = member.name.strip_suffix(".npy").unwrap_or(&member.name).to_owned();
    let packing = packing_of(member);
    let (bytes, sum) = (member.packed, Some(member.sum));
    let packed = *packing.as_ref().unwrap_or(&Packing::Plain);
    let mut section = Section { start, bytes, packing: packed, before: 0, sum };
    section.check_end(opened)?;
    let end = start + bytes;
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

/// How a member is packed, or what it is instead of an array.
fn packing_of(member: &Member) -> Result<Packing, String> {
    match member.method {
        _ if !member.name.ends_with(".npy") => Err("a file that is not npy".to_owned()),
        _ if member.encrypted => Err("an encrypted file".to_owned()),
        0 => Ok(Packing::Plain),
        8 => Ok(Packing::Deflate),
        other => Err(format!("a file packed by zip method {other}")),
    }
}

/// The members that the directory of the archive lists.
fn members(opened: &Opened) -> Result<Vec<Member>, Error> {
    let (count, start, bytes) = directory(opened)?;
    let raw = opened.bytes(start, bytes, "the zip directory")?;
    let mut members = Vec::new();
    let mut rest = raw.as_slice();
    while !rest.is_empty() {
        let (member, after) = member(rest).ok_or_else(|| {
            opened.damaged(
                format!("{count} members in the zip directory"),
                format!("{} and then bytes that are not a member", members.len()),
            )
        })?;
        members.push(member);
        rest = after;
    }
    let found = members.len() as u64;
    if found == count { Ok(members) } else { Err(opened.damaged(format!("{count} zip members"), found.to_string())) }
}

/// How many members the archive has, where its directory starts and how long it is.
fn directory(opened: &Opened) -> Result<(u64, u64, u64), Error> {
    const RECORD: usize = 22;
    let tail = opened.size.min(RECORD as u64 + u64::from(u16::MAX)); // the record, and a comment after it
    let raw = opened.bytes(opened.size - tail, tail, "the end of the zip archive")?;
    let ends_here =
        |at: &usize| raw[*at..].starts_with(MAGICS[1]) && at + RECORD + usize::from(short(&raw, at + 20)) == raw.len();
    let last = raw.len().saturating_sub(RECORD);
    let at = (0..=last).rev().filter(|at| at + RECORD <= raw.len()).find(ends_here);
    let at = at.ok_or_else(|| opened.damaged("the directory at the end of the zip archive", "none"))?;
    let (count, bytes, start) = (short(&raw, at + 10), word(&raw, at + 12), word(&raw, at + 16));
    if count < u16::MAX && bytes < u32::MAX && start < u32::MAX {
        return Ok((count.into(), start.into(), bytes.into()));
    }
    let locator = at.checked_sub(20).filter(|&at| raw[at..].starts_with(b"PK\x06\x07"));
    let locator = locator.ok_or_else(|| opened.damaged("a 64-bit zip directory", "none"))?;
    let record = opened.bytes(long(&raw, locator + 8), 56, "the 64-bit zip directory")?;
    if !record.starts_with(b"PK\x06\x06") {
        return Err(opened.damaged("a 64-bit zip directory", format!("{:02x?}", &record[..4])));
    }
    Ok((long(&record, 32), long(&record, 48), long(&record, 40)))
}

/// The first member of a directory, and the rest of the directory.
fn member(raw: &[u8]) -> Option<(Member, &[u8])> {
    const RECORD: usize = 46;
    if raw.len() < RECORD || !raw.starts_with(b"PK\x01\x02") {
        return None;
    }
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(short(raw, at)));
    let (texts, after) = raw[RECORD..].split_at_checked(name + extra + comment)?;
    let mut member = Member {
        name: String::from_utf8_lossy(&texts[..name]).into_owned(),
        method: short(raw, 10),
        encrypted: short(raw, 8) & 1 == 1,
        sum: word(raw, 16),
        packed: word(raw, 20).into(),
        unpacked: word(raw, 24).into(),
        header: word(raw, 42).into(),
    };
    widen(&mut member, &texts[name..name + extra])?;
    Some((member, after))
}

/// Reads the sizes that do not fit in 32 bits: an extra field of kind 1 has them in this order.
fn widen(member: &mut Member, mut extra: &[u8]) -> Option<()> {
    let [unpacked, packed, header] = [&mut member.unpacked, &mut member.packed, &mut member.header];
    let wide: Vec<_> = [unpacked, packed, header].into_iter().filter(|size| **size == u64::from(u32::MAX)).collect();
    if wide.is_empty() {
        return Some(());
    }
    while extra.len() >= 4 {
        let (field, after) = extra[4..].split_at_checked(short(extra, 2).into())?;
        if short(extra, 0) == 1 {
            let (longs, _) = field.as_chunks::<8>();
            return (longs.len() >= wide.len())
                .then(|| wide.into_iter().zip(longs).for_each(|(size, bytes)| *size = u64::from_le_bytes(*bytes)));
        }
        extra = after;
    }
    None
}

fn number<const N: usize>(raw: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&raw[at..at + N]);
    bytes
}

fn short(raw: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(number(raw, at))
}

fn word(raw: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number(raw, at))
}

fn long(raw: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(raw, at))
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
