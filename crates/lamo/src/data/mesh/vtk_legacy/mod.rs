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

/// The names of types. The first name of a type is written: `long` has 64 bits wherever meshes are large (VTK on Linux and
/// macOS, meshio), and `vtktypeint64` is unknown to meshio in files of version 4.2.
const TYPES: &[(&str, ElementKind)] = &[
    ("float", ElementKind::F32),
    ("double", ElementKind::F64),
    ("char", ElementKind::I8),
    ("signed_char", ElementKind::I8),
    ("vtktypeint8", ElementKind::I8), // meshio writes these names of types with sizes
    ("short", ElementKind::I16),
    ("vtktypeint16", ElementKind::I16),
    ("int", ElementKind::I32),
    ("vtktypeint32", ElementKind::I32),
    ("vtkidtype", ElementKind::I32), // VTK writes them with 32 bits
    ("long", ElementKind::I64),
    ("vtktypeint64", ElementKind::I64),
    ("unsigned_char", ElementKind::U8),
    ("vtktypeuint8", ElementKind::U8),
    ("unsigned_short", ElementKind::U16),
    ("vtktypeuint16", ElementKind::U16),
    ("unsigned_int", ElementKind::U32),
    ("vtktypeuint32", ElementKind::U32),
    ("unsigned_long", ElementKind::U64),
    ("vtktypeuint64", ElementKind::U64),
];
