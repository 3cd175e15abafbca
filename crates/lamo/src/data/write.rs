//! Writing arrays: npy for one, npz and safetensors for any number, told apart by the name of the file.

use super::Error;
use crate::{atomic, dataset, weights};
use flate2::Crc;
use lamo_tensor::{Section, Shape};
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

/// Writes arrays as float32; the file appears complete or not at all.
pub fn write(path: &Path, arrays: &[Named]) -> Result<(), Error> {
    let fails = |reason: String| Error::Unwritable { path: path.to_owned(), reason };
    let bytes = match (path.extension().and_then(|extension| extension.to_str()), arrays) {
        (Some("npy"), [only]) => npy(only),
        (Some("npy"), _) => {
            let names: Vec<_> = arrays.iter().map(|array| array.name.as_str()).collect();
            let reason = format!("an npy file holds one array, found {}; use .npz or .safetensors", names.join(", "));
            return Err(fails(reason));
        }
        (Some("npz"), _) => npz(arrays),
        (Some("safetensors"), _) => {
            let mut sections: Vec<Section> = Vec::new();
            for array in arrays {
                let start = sections.last().map_or(0, |last| last.range().end);
                sections.push(Section { name: array.name.clone(), shape: Shape::from(array.shape.clone()), start });
            }
            let values: Vec<f32> = arrays.iter().flat_map(|array| &array.values).copied().collect();
            return weights::write(path, &sections, &values, &BTreeMap::new())
                .map_err(|error| fails(error.to_string()));
        }
        _ => return Err(fails("expected a name that ends in .npy, .npz or .safetensors".to_owned())),
    };
    atomic::replace(path, &bytes).map_err(|reason| fails(reason.to_string()))
}

fn npy(array: &Named) -> Vec<u8> {
    let mut bytes = dataset::npy_header(&array.shape);
    bytes.extend(array.values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// A zip archive of npy files that are not packed (PKWARE's APPNOTE, 4.3).
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
