//! Writing arrays: npy for one, npz and safetensors for any number, told apart by the name of the file.

use super::npy::float_header;
use super::{Error, safetensors};
use crate::files::atomic;
use flate2::Crc;
use std::collections::BTreeMap;
use std::path::Path;

/// An array with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name; an npy file has no place for it.
    pub name: String,
    /// Points along each axis, the slowest first.
    pub shape: Vec<usize>,
    /// Its numbers in C order.
    pub values: Vec<f32>,
}

impl Named {
    /// How many numbers its shape promises; none if that is beyond counting.
    fn count(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1usize, |count, &axis| count.checked_mul(axis))
    }
}

/// Writes arrays as float32; the file appears complete or not at all.
pub fn write(path: &Path, arrays: &[Named]) -> Result<(), Error> {
    let fails = |reason: String| Error::Unwritable { path: path.to_owned(), reason };
    if let Some(Named { name, shape, values }) = arrays.iter().find(|array| array.count() != Some(array.values.len())) {
        let found = values.len();
        let reason = format!("expected array `{name}` to have the values of shape {shape:?}, found {found} of them");
        return Err(fails(reason + "; hand in the shape they have"));
    }
    let bytes = match (path.extension().and_then(|extension| extension.to_str()), arrays) {
        (Some("npy"), [only]) => npy(only),
        (Some("npy"), _) => {
            let names: Vec<_> = arrays.iter().map(|array| array.name.as_str()).collect();
            let reason = format!("an npy file holds one array, found {}; use .npz or .safetensors", names.join(", "));
            return Err(fails(reason));
        }
        (Some("npz"), _) => {
            check_archive(arrays.iter().map(entry_sizes)).map_err(fails)?;
            npz(arrays)
        }
        (Some("safetensors"), _) => {
            let mut end = 0;
            let tensors = arrays.iter().map(|array| {
                let start = end;
                end += array.values.len();
                (array.name.as_str(), array.shape.as_slice(), start..end)
            });
            let values = arrays.iter().flat_map(|array| &array.values);
            let values: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
            safetensors::serialise(tensors, &values, &BTreeMap::new())
        }
        _ => return Err(fails("expected a name that ends in .npy, .npz or .safetensors".to_owned())),
    };
    atomic::replace(path, &bytes).map_err(|reason| Error::Writing { path: path.to_owned(), reason })
}

fn npy(array: &Named) -> Vec<u8> {
    let mut bytes = float_header(&array.shape);
    bytes.extend(array.values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Bytes of an array's name and content in an archive.
fn entry_sizes(array: &Named) -> [u64; 2] {
    let content = float_header(&array.shape).len() + 4 * array.values.len();
    [array.name.len() + ".npy".len(), content].map(|bytes| bytes as u64)
}

/// A zip archive counts its arrays and the bytes of their names in 16 bits and all other bytes in 32; the largest number
/// means that the true one stands elsewhere.
fn check_archive(entries: impl Iterator<Item = [u64; 2]>) -> Result<(), String> {
    const AROUND: u64 = 30 + 46; // an entry and its line in the directory
    let (mut arrays, mut bytes, mut longest) = (0u64, 0u64, 0);
    for [name, content] in entries {
        arrays += 1;
        bytes += AROUND + 2 * name + content;
        longest = name.max(longest);
    }
    if arrays < u64::from(u16::MAX) && longest < u64::from(u16::MAX) && bytes < u64::from(u32::MAX) {
        return Ok(());
    }
    let limits = "an npz file holds less than 4 GiB, 65535 arrays and 64 KiB of a name";
    Err(format!("{limits}, found {bytes} bytes in {arrays} arrays; use .safetensors"))
}

/// A zip archive of npy files that are not packed (PKWARE's APPNOTE, 4.3); [`check_archive`] has looked at the sizes.
fn npz(arrays: &[Named]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for array in arrays {
        let (name, content) = (format!("{}.npy", array.name), npy(array));
        let mut sum = Crc::new();
        sum.update(&content);
        let start = (file.len() as u32).to_le_bytes();
        let size = (content.len() as u32).to_le_bytes();
        // version 2.0, no flags, stored, no time, 1980-01-01
        let mut entry = [&[20, 0, 0, 0, 0, 0, 0, 0, 33, 0][..], &sum.sum().to_le_bytes(), &size, &size].concat();
        entry.extend((name.len() as u16).to_le_bytes());
        entry.extend([0, 0]);
        file.extend([b"PK\x03\x04", &entry[..], name.as_bytes(), &content].concat());
        directory.extend([b"PK\x01\x02\x14\x00", &entry[..], &[0; 10], &start, name.as_bytes()].concat());
    }
    let (count, place) = ((arrays.len() as u16).to_le_bytes(), (file.len() as u32).to_le_bytes());
    let length = (directory.len() as u32).to_le_bytes();
    file.extend(directory);
    file.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &length, &place, &[0, 0]].concat());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, shape: &[usize], values: usize) -> Named {
        Named { name: name.into(), shape: shape.to_vec(), values: (0..values).map(|value| value as f32).collect() }
    }

    #[test]
    fn every_format_gives_back_what_was_written_also_where_there_is_nothing() {
        let arrays = [named("a", &[2, 3], 6), named("none", &[4, 0, 2], 0), named("b", &[], 1)];
        let folder = std::env::temp_dir().join(format!("lamo-write-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for ending in ["npz", "safetensors"] {
            let path = folder.join(format!("file.{ending}"));
            write(&path, &arrays).unwrap();
            for array in &arrays {
                let found = crate::data::formats::read(&path, Some(&array.name)).unwrap();
                assert_eq!((found.shape, found.values.into_f32()), (array.shape.clone(), array.values.clone()));
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn values_that_are_not_those_of_the_shape_are_refused() {
        for (shape, values) in [(&[2, 3][..], 5), (&[], 0), (&[0, 3], 1), (&[usize::MAX, 2], 1)] {
            for ending in ["npy", "npz", "safetensors"] {
                let path = std::env::temp_dir().join(format!("lamo-write-nothing.{ending}"));
                let told = write(&path, &[named("u", shape, values)]).unwrap_err().to_string();
                let expected = format!("array `u` to have the values of shape {shape:?}, found {values} of them");
                assert!(told.contains(&expected) && !path.exists(), "{told}");
            }
        }
    }

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
