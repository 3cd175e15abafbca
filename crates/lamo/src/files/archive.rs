//! A folder as one file: a tar archive (POSIX ustar) of plain files, compressed by gzip. Other programs can open it, too.
//!
//! ```text
//! each file: a header of 512 bytes (name, size in octal digits, sum of its bytes), its bytes, zeros up to a multiple of 512
//! the end:   two blocks of zeros
//! ```

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

const BLOCK: usize = 512;
/// Bytes of a name at most.
const LONGEST_NAME: usize = 100;
/// Places of a header: offset and length.
const SIZE: [usize; 2] = [124, 12];
const SUM: [usize; 2] = [148, 8];
const KIND: usize = 156;
/// Bytes of a file at most, eleven octal digits.
const LARGEST: u64 = 1 << 33;

/// What a file of an archive holds.
pub(crate) enum Content {
    /// The bytes of another file.
    Of(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("it is damaged or no archive of a run: {what}"))
}

/// Writes the files in their order; returns the bytes before compression. Equal files give equal archives.
pub(crate) fn write(out: &mut dyn Write, files: &[(String, Content)]) -> io::Result<u64> {
    let mut out = GzEncoder::new(out, Compression::default());
    let mut total = 0;
    for (name, content) in files {
        let mut file: Box<dyn Read> = match content {
            Content::Of(path) => Box::new(super::open(path)?),
            Content::Bytes(bytes) => Box::new(bytes.as_slice()),
        };
        let size = match content {
            Content::Of(path) => std::fs::metadata(path)?.len(),
            Content::Bytes(bytes) => bytes.len() as u64,
        };
        out.write_all(&header(name, size)?)?;
        let copied = io::copy(&mut file.as_mut().take(size), &mut out)?;
        if copied != size {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("{name} changed while it was read")));
        }
        out.write_all(&vec![0; padding(size)])?;
        total += size;
    }
    out.write_all(&[0; 2 * BLOCK])?;
    out.finish()?;
    Ok(total)
}

fn padding(size: u64) -> usize {
    (size.next_multiple_of(BLOCK as u64) - size) as usize
}

fn header(name: &str, size: u64) -> io::Result<[u8; BLOCK]> {
    if name.len() > LONGEST_NAME || size >= LARGEST {
        let reason = format!("{name}: names have at most {LONGEST_NAME} bytes and files at most 8 GiB");
        return Err(io::Error::new(ErrorKind::InvalidInput, reason));
    }
    let mut header = [0; BLOCK];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644"); // readable by all, writable by the owner
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[SIZE[0]..SIZE[0] + 11].copy_from_slice(format!("{size:011o}").as_bytes());
    header[136..147].copy_from_slice(b"00000000000"); // no time, so that equal files give equal archives
    header[KIND] = b'0';
    let sum = sum(&header);
    header[SUM[0]..SUM[0] + 7].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header[SUM[0] + 7] = b' ';
    Ok(header)
}

/// Sum of the bytes of a header, in which the sum itself counts as spaces.
fn sum(header: &[u8; BLOCK]) -> u32 {
    let own = SUM[0]..SUM[0] + SUM[1];
    header.iter().enumerate().map(|(place, &byte)| u32::from(if own.contains(&place) { b' ' } else { byte })).sum()
}

fn octal(header: &[u8; BLOCK], [start, length]: [usize; 2]) -> io::Result<u64> {
    let text = String::from_utf8_lossy(&header[start..start + length]);
    let digits = text.trim_matches(|letter: char| letter == '\0' || letter == ' ');
    u64::from_str_radix(digits, 8).map_err(|_| damaged("a header without a number"))
}

/// Writes the files of an archive below `folder`, which exists; returns their names.
pub(crate) fn read(input: impl Read, folder: &Path) -> io::Result<Vec<String>> {
    let mut input = GzDecoder::new(input);
    let mut names = Vec::new();
    loop {
        let mut header = [0; BLOCK];
        input.read_exact(&mut header).map_err(cut)?;
        if header == [0; BLOCK] {
            break;
        }
        if octal(&header, SUM)? != u64::from(sum(&header)) {
            return Err(damaged("a header with another sum"));
        }
        let (name, size) = (name(&header)?, octal(&header, SIZE)?);
        let path = folder.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        let copied = io::copy(&mut input.by_ref().take(size), &mut file)?;
        if copied != size {
            return Err(damaged("it was cut short"));
        }
        file.sync_all()?;
        input.read_exact(&mut vec![0; padding(size)]).map_err(cut)?;
        names.push(name);
    }
    io::copy(&mut input, &mut io::sink())?; // to the end, where the checksum stands
    Ok(names)
}

fn cut(reason: io::Error) -> io::Error {
    if reason.kind() == ErrorKind::UnexpectedEof { damaged("it was cut short") } else { reason }
}

/// The name of a plain file inside the folder.
fn name(header: &[u8; BLOCK]) -> io::Result<String> {
    let end = header[..LONGEST_NAME].iter().position(|&byte| byte == 0).unwrap_or(LONGEST_NAME);
    let name = std::str::from_utf8(&header[..end]).map_err(|_| damaged("a name that is not Unicode"))?;
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !inside || header[KIND] != b'0' || name.contains('\\') {
        return Err(damaged(&format!("{name:?} is no plain file inside the folder")));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::scratch::Folder;

    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let files: Vec<_> =
            files.iter().map(|(name, bytes)| ((*name).to_owned(), Content::Bytes(bytes.to_vec()))).collect();
        let mut out = Vec::new();
        write(&mut out, &files).unwrap();
        out
    }

    #[test]
    fn files_of_any_length_come_back_and_equal_files_give_equal_archives() {
        let folder = Folder::new("archive");
        let long = vec![7; 1500];
        let files: [(&str, &[u8]); 4] = [("a", b""), ("b/c", b"text"), ("d", &long[..512]), ("e", &long)];
        assert_eq!(packed(&files), packed(&files));
        let names = read(packed(&files).as_slice(), folder.path()).unwrap();
        assert_eq!(names, ["a", "b/c", "d", "e"]);
        files.iter().for_each(|(name, bytes)| assert_eq!(std::fs::read(folder.at(name)).unwrap(), *bytes, "{name}"));
    }

    #[test]
    fn names_that_leave_the_folder_and_damage_are_refused() {
        for name in ["../a", "/a", "a/../../b", ""] {
            let folder = Folder::new("archive-names");
            let told = read(packed(&[(name, b"text")]).as_slice(), folder.path()).unwrap_err().to_string();
            assert!(told.contains("no plain file inside"), "{told}");
        }
        let whole = packed(&[("a", &[5; 3000])]);
        for end in (0..whole.len()).step_by(3) {
            let folder = Folder::new("archive-cut");
            assert!(read(&whole[..end], folder.path()).is_err(), "{end} of {} bytes", whole.len());
        }
        for place in (10..whole.len()).step_by(2) {
            let folder = Folder::new("archive-damaged");
            let mut bytes = whole.clone();
            bytes[place] ^= 16;
            let read = read(bytes.as_slice(), folder.path());
            let same =
                read.is_ok_and(|names| std::fs::read(folder.at(&names[0])).is_ok_and(|found| found == [5; 3000]));
            assert!(!same, "byte {place} changed and went unnoticed");
        }
    }
}
