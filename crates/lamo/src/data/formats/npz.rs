//! NumPy's npz format: a zip archive of npy files, stored or deflated, with the 64-bit extensions that large ones need.

use super::error::Error;
use super::npy;
use super::source::{Entry, Opened, Packing};

/// A zip archive begins with its first member, or with its end if it has none.
pub(super) const MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// One file of the archive, from the directory at the archive's end.
struct Member {
    name: String,
    method: u16,
    encrypted: bool,
    sum: u32,
    packed: u64,
    unpacked: u64,
    /// Where its local header stands.
    header: u64,
}

/// All npy members, and other files as what they are.
pub(super) fn entries(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for member in members(opened)? {
        entries.push(entry(opened, &member)?);
    }
    Ok(entries)
}

fn entry(opened: &Opened, member: &Member) -> Result<Entry, Error> {
    let local = opened.bytes(member.header, 30, "the header of a zip member")?;
    if &local[..4] != b"PK\x03\x04" {
        return Err(opened.damaged("the header of a zip member", format!("{:02x?}", &local[..4])));
    }
    let start = member.header + 30 + u64::from(short(&local, 26)) + u64::from(short(&local, 28));
    let name = member.name.strip_suffix(".npy").unwrap_or(&member.name).to_owned();
    let (packing, refusal) = match how(member) {
        Ok(packing) => (packing, String::new()),
        Err(found) => (Packing::Plain, found),
    };
    let refused = !refusal.is_empty();
    let (holds, bytes, sum) = (Err(refusal), member.packed, Some(member.sum));
    let mut entry = Entry { name, holds, start, bytes, packing, before: 0, sum };
    entry.check(opened)?;
    if refused {
        return Ok(entry);
    }
    let part = format!("the header of `{}`", member.name);
    let (before, holds) = npy::header(&mut entry.source(opened)?).map_err(|problem| problem.in_file(opened, &part))?;
    let promised = holds.as_ref().ok().and_then(|layout| layout.bytes()?.checked_add(before));
    if let Some(expected) = promised.filter(|&expected| expected != member.unpacked) {
        return Err(opened.wrong_length(&part, expected, member.unpacked));
    }
    (entry.before, entry.holds) = (before, holds);
    Ok(entry)
}

/// How a member is packed, or what it is if it cannot be an array.
fn how(member: &Member) -> Result<Packing, String> {
    match member.method {
        _ if !member.name.ends_with(".npy") => Err("a file that is not npy".to_owned()),
        _ if member.encrypted => Err("an encrypted file".to_owned()),
        0 => Ok(Packing::Plain),
        8 => Ok(Packing::Deflate),
        other => Err(format!("a file packed by zip method {other}")),
    }
}

/// The directory of the archive.
fn members(opened: &Opened) -> Result<Vec<Member>, Error> {
    let (count, start, bytes) = directory(opened)?;
    let held = opened.bytes(start, bytes, "the zip directory")?;
    let mut members = Vec::new();
    let mut rest = held.as_slice();
    while !rest.is_empty() {
        let (member, after) = member(rest).ok_or_else(|| {
            opened.damaged(
                format!("{count} members in the zip directory"),
                format!("{} and then nonsense", members.len()),
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
    let held = opened.bytes(opened.size - tail, tail, "the end of the zip archive")?;
    let ends_here = |at: &usize| {
        held[*at..].starts_with(MAGICS[1]) && at + RECORD + usize::from(short(&held, at + 20)) == held.len()
    };
    let last = held.len().saturating_sub(RECORD);
    let at = (0..=last).rev().filter(|at| at + RECORD <= held.len()).find(ends_here);
    let at = at.ok_or_else(|| opened.damaged("the directory at the end of the zip archive", "none"))?;
    let (count, bytes, start) = (short(&held, at + 10), word(&held, at + 12), word(&held, at + 16));
    if count < u16::MAX && bytes < u32::MAX && start < u32::MAX {
        return Ok((count.into(), start.into(), bytes.into()));
    }
    let locator = at.checked_sub(20).filter(|&at| held[at..].starts_with(b"PK\x06\x07"));
    let locator = locator.ok_or_else(|| opened.damaged("a 64-bit zip directory", "none"))?;
    let record = opened.bytes(long(&held, locator + 8), 56, "the 64-bit zip directory")?;
    if !record.starts_with(b"PK\x06\x06") {
        return Err(opened.damaged("a 64-bit zip directory", format!("{:02x?}", &record[..4])));
    }
    Ok((long(&record, 32), long(&record, 48), long(&record, 40)))
}

/// The first member of a directory, and the directory after it.
fn member(held: &[u8]) -> Option<(Member, &[u8])> {
    const RECORD: usize = 46;
    if held.len() < RECORD || !held.starts_with(b"PK\x01\x02") {
        return None;
    }
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(short(held, at)));
    let (texts, after) = held[RECORD..].split_at_checked(name + extra + comment)?;
    let mut member = Member {
        name: String::from_utf8_lossy(&texts[..name]).into_owned(),
        method: short(held, 10),
        encrypted: short(held, 8) & 1 == 1,
        sum: word(held, 16),
        packed: word(held, 20).into(),
        unpacked: word(held, 24).into(),
        header: word(held, 42).into(),
    };
    widen(&mut member, &texts[name..name + extra])?;
    Some((member, after))
}

/// Sizes that do not fit 32 bits stand in an extra field of kind 1, in this order.
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

fn number<const N: usize>(held: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&held[at..at + N]);
    bytes
}

fn short(held: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(number(held, at))
}

fn word(held: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number(held, at))
}

fn long(held: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(held, at))
}
