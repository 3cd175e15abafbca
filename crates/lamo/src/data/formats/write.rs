//! Writing arrays: the ending of the file name chooses the format.

use super::FORMATS;
use super::error::{Error, alternatives};
use crate::files::{atomic, memory};
use std::path::Path;

/// An array with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name; an npy file does not store it.
    pub name: String,
    /// Points along each axis, the slowest first.
    pub shape: Vec<usize>,
    /// Its numbers in C order.
    pub values: Vec<f32>,
}

impl Named {
    /// How many numbers the shape has; `None` if a `usize` cannot count them.
    fn count(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1usize, |count, &axis| count.checked_mul(axis))
    }
}

/// Writes arrays as float32; the file appears complete or not at all.
pub fn write(path: &Path, arrays: &[Named]) -> Result<(), Error> {
    let bytes = encode(path, arrays)?;
    atomic::replace(path, &bytes).map_err(|reason| Error::Writing { path: path.to_owned(), reason })
}

/// The bytes of a file with these arrays; nothing is written.
pub fn encode(path: &Path, arrays: &[Named]) -> Result<Vec<u8>, Error> {
    let unwritable = |reason: String| Error::Unwritable { path: path.to_owned(), reason };
    if let Some(Named { name, shape, values }) = arrays.iter().find(|array| array.count() != Some(array.values.len())) {
        let found = values.len();
        let reason = format!("expected array `{name}` to have the values of shape {shape:?}, found {found} of them");
        return Err(unwritable(reason + "; give the shape that the values have"));
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let format = FORMATS.iter().filter(|format| format.endings.contains(&ending)).find_map(|format| format.write);
    let format = format.ok_or_else(|| {
        let endings = FORMATS.iter().filter(|format| format.is_writable()).flat_map(|format| format.endings);
        let expected = alternatives(endings.map(|ending| format!(".{ending}")));
        let found = if ending.is_empty() { "no ending".to_owned() } else { format!(".{ending}") };
        unwritable(format!("expected a name that ends in {expected}, found {found}"))
    })?;
    let expected = 3 * 4 * arrays.iter().map(|array| array.values.len() as u64).sum::<u64>(); // copies at most
    let name = || arrays.first().map(|array| array.name.clone()).unwrap_or_default();
    memory::require(expected).map_err(|_| Error::Memory { path: path.to_owned(), name: name(), expected })?;
    format(arrays).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::ArrayFile;
    use crate::files::scratch::Folder;

    fn named(name: &str, shape: &[usize], values: usize) -> Named {
        Named { name: name.into(), shape: shape.to_vec(), values: (0..values).map(|value| value as f32).collect() }
    }

    #[test]
    fn arrays_in_memory_are_read_as_from_a_file() {
        let arrays = [named("a", &[2, 3], 6), named("b", &[], 1)];
        let bytes = encode("x.npz".as_ref(), &arrays).unwrap();
        let file = ArrayFile::in_memory("the body", bytes.clone()).unwrap();
        let found = file.read(Some("a")).unwrap();
        assert_eq!((found.shape, found.values.into_f32()), (vec![2, 3], arrays[0].values.clone()));
        let refusal = |bytes: &[u8]| match ArrayFile::in_memory("the body", bytes.to_vec()) {
            Err(refusal) => refusal.to_string(),
            Ok(file) => file.read(Some("a")).map(drop).unwrap_err().to_string(),
        };
        for cut in [0, 3, 40, bytes.len() - 30] {
            let told = refusal(&bytes[..cut]);
            assert!(told.starts_with("the body: "), "{told}");
        }
        let told = refusal(b"<?xml version='1.0'?><VTKFile>");
        assert!(told.contains("npy or npz"), "{told}"); // a mesh needs a file
    }

    #[test]
    fn every_format_gives_back_what_was_written_also_where_there_is_nothing() {
        let arrays = [named("a", &[2, 3], 6), named("none", &[4, 0, 2], 0), named("b", &[], 1)];
        let folder = Folder::new("write");
        for ending in ["npz", "safetensors"] {
            let path = folder.at(&format!("file.{ending}"));
            write(&path, &arrays).unwrap();
            for array in &arrays {
                let found = crate::data::formats::read(&path, Some(&array.name)).unwrap();
                assert_eq!((found.shape, found.values.into_f32()), (array.shape.clone(), array.values.clone()));
            }
        }
    }

    #[test]
    fn values_that_are_not_those_of_the_shape_are_refused() {
        let folder = Folder::new("unwritten");
        for (shape, values) in [(&[2, 3][..], 5), (&[], 0), (&[0, 3], 1), (&[usize::MAX, 2], 1)] {
            for ending in ["npy", "npz", "safetensors"] {
                let path = folder.at(&format!("file.{ending}"));
                let told = write(&path, &[named("u", shape, values)]).unwrap_err().to_string();
                let expected = format!("array `u` to have the values of shape {shape:?}, found {values} of them");
                assert!(told.contains(&expected) && !path.exists(), "{told}");
            }
        }
    }
}
