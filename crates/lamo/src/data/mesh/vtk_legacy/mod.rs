//! The older files of VTK (`# vtk DataFile Version 2.0` to `5.1`): keywords, each followed by numbers as text or as bytes,
//! the most significant first.
//!
//! Up to version 4.2 a cell is its number of points and the points; from 5.0 on there are offsets and connectivity.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;

use crate::data::formats::ElementKind;

pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    start.len() >= 22 && start[..22].eq_ignore_ascii_case(b"# vtk DataFile Version")
}

/// The names of types. The first name of a type is written.
const TYPES: &[(&str, ElementKind)] = &[
    ("float", ElementKind::F32),
    ("double", ElementKind::F64),
    ("char", ElementKind::I8),
    ("signed_char", ElementKind::I8),
    ("short", ElementKind::I16),
    ("int", ElementKind::I32),
    ("vtkidtype", ElementKind::I32), // VTK writes them with 32 bits
    ("vtktypeint64", ElementKind::I64),
    ("long", ElementKind::I64),
    ("unsigned_char", ElementKind::U8),
    ("unsigned_short", ElementKind::U16),
    ("unsigned_int", ElementKind::U32),
    ("vtktypeuint64", ElementKind::U64),
    ("unsigned_long", ElementKind::U64),
];
