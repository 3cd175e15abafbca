//! The directory of a zip archive (PKWARE's APPNOTE, 4.3), with the 64-bit extensions for large archives. NumPy's npz files and
//! PyTorch's files are such archives.

use super::error::Error;
use super::section::{Packing, Section};
use super::source::Opened;

/// A zip archive begins with its first member, or with the end record if it has no members.
pub(super) const MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// One file of the archive, from the directory at the archive's end.
pub(super) struct Member {
    pub(super) name: String,
    method: u16,
    encrypted: bool,
    sum: u32,
    packed: u64,
    /// Bytes of the file itself.
    pub(super) unpacked: u64,
    /// Where its local header begins.
    pub(super) header: u64,
}

impl Member {
    /// How it is packed, or what it is instead of a file that can be read.
    pub(super) fn packing(&self) -> Result<Packing, String> {
        match self.method {
            _ if self.encrypted => Err("an encrypted file".to_owned()),
            0 => Ok(Packing::Plain),
            8 => Ok(Packing::Deflate),
            other => Err(format!("a file packed by zip method {other}")),
        }
    }

    /// Where its bytes are in the archive.
    pub(super) fn section(&self, opened: &Opened, packing: Packing) -> Result<Section, Error> {
        let local = opened.bytes(self.header, 30, "the header of a zip member")?;
        if &local[..4] != b"PK\x03\x04" {
            return Err(opened.damaged("the header of a zip member", format!("{:02x?}", &local[..4])));
        }
        let start = self.header + 30 + u64::from(short(&local, 26)) + u64::from(short(&local, 28));
        let section = Section { start, bytes: self.packed, packing, before: 0, sum: Some(self.sum) };
        section.check_end(opened)?;
        Ok(section)
    }
}

/// The members that the directory of the archive lists.
pub(super) fn members(opened: &Opened) -> Result<Vec<Member>, Error> {
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
