//! Files of meshes: VTK XML (vtu, vtp, vti, vtr, vts, and files that name these), legacy VTK, STL, OBJ and Gmsh. The first bytes show the format.
//!
//! A new format is one file in this folder, with its `mod` line, and one row of [`FORMATS`]. The file has
//!
//! ```text
//! sniff(start, size) -> bool          whether a file of `size` bytes with these first bytes has the format
//! read(opened) -> mesh                points, cells and arrays
//! write(mesh, ending, options, out)   only where the format can be written
//! ```
//!
//! Each count in a file is checked against the length of the file before memory is reserved for it, and memory that the
//! machine does not have ends in an error. Every error is one sentence that names the file, the part, what was expected
//! and what was found.

mod curve;
mod gmsh;
mod input;
pub mod kinds;
#[allow(clippy::module_inception)]
mod mesh;
pub mod named;
mod numbers;
mod obj;
mod on_points;
mod scalars;
mod sorts;
mod stl;
mod surface;
mod vtk_legacy;
mod vtk_xml;

pub use mesh::{Cells, DataArray, Faces, Mesh, Shape, UNTURNED};
pub use numbers::{ByteOrder, Numbers};
pub use on_points::{centres, to_points};
pub use surface::{Boundary, boundary, boundary_of};
pub use vtk_xml::{Encoding, Options};

use crate::error::{Error, Kind, Refusal, require, shown};
use crate::files::atomic;
use input::Opened;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a mesh as the kind of file that an ending stands for.
type WriteMesh = fn(&Mesh, ending: &str, &Options, &mut dyn Write) -> Result<(), Refusal>;

/// One row of the registry.
pub struct Format {
    /// Its name in lists and error sentences.
    pub name: &'static str,
    /// Endings of its files, in lower case and without the dot.
    pub endings: &'static [&'static str],
    /// The format in one line.
    pub summary: &'static str,
    /// Whether a file with these first bytes, [`START`] at most, and of this size has the format.
    sniff: fn(start: &[u8], size: u64) -> bool,
    /// The mesh of a file.
    read: fn(&Opened) -> Result<Mesh, Refusal>,
    /// `None` where the format is only read.
    write: Option<WriteMesh>,
}

/// The name of the format that vtu files have.
const XML: &str = "VTK XML";

/// Every format. The first row that recognises a file reads it.
pub const FORMATS: &[Format] = &[
    Format {
        name: "VTK parts",
        endings: &["pvtu", "pvtp", "pvti", "pvtr", "pvts", "vtm", "vtpc", "vtpd", "pvd", "series"],
        summary: "VTK's files that name the files of pieces or blocks: they become one mesh",
        sniff: vtk_xml::parts::sniff,
        read: vtk_xml::parts::read,
        write: None,
    },
    Format {
        name: XML,
        endings: &["vtu", "vtp", "vti", "vtr", "vts"],
        summary: "VTK's XML files: any cells, surfaces, images, rectilinear and structured grids",
        sniff: vtk_xml::sniff,
        read: vtk_xml::read,
        write: Some(vtk_xml::write),
    },
    Format {
        name: "VTK",
        endings: &["vtk"],
        summary: "VTK's older files, as text or binary",
        sniff: vtk_legacy::sniff,
        read: vtk_legacy::read,
        write: Some(vtk_legacy::write),
    },
    Format {
        name: "Gmsh",
        endings: &["msh"],
        summary: "Gmsh's msh 2.2, 4.0 and 4.1, as text or binary",
        sniff: gmsh::sniff,
        read: gmsh::read,
        write: None,
    },
    Format {
        name: "STL",
        endings: &["stl"],
        summary: "triangles of a surface, as text or binary",
        sniff: stl::sniff,
        read: stl::read,
        write: None,
    },
    Format {
        name: "OBJ",
        endings: &["obj"],
        summary: "Wavefront's polygons of a surface",
        sniff: obj::sniff,
        read: obj::read,
        write: None,
    },
];

/// Bytes at the start of a file that its format is recognised by.
const START: u64 = 4096;

impl Format {
    /// Whether [`write()`] can write it.
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

/// The ending of a path in lower case, without the dot.
fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Whether a path ends like a mesh file; files that exist are recognised by [`read()`] whatever their names are.
pub fn is_mesh_name(path: &Path) -> bool {
    let ending = ending(path);
    FORMATS.iter().any(|format| format.endings.contains(&ending.as_str()))
}

/// Whether a file with these first bytes and of this size is a mesh.
pub(in crate::data) fn recognises(start: &[u8], size: u64) -> bool {
    FORMATS.iter().any(|format| (format.sniff)(start, size))
}

/// Whether a file is a mesh.
pub(in crate::data) fn is_mesh(path: &Path) -> bool {
    Opened::open(path).and_then(|opened| Ok(recognises(&opened.start()?, opened.size))).unwrap_or(false)
}

/// The files that a mesh file names, at any depth; none of most files.
pub(in crate::data) fn parts(path: &Path) -> Vec<PathBuf> {
    let found = Opened::open(path).and_then(|opened| match vtk_xml::parts::sniff(&opened.start()?, opened.size) {
        true => vtk_xml::parts::files(&opened),
        false => Ok(Vec::new()),
    });
    found.unwrap_or_default() // reading the mesh says what is wrong
}

/// The times of a list of files of several times, such as a pvd file; none of other files.
pub fn times(path: &Path) -> Result<Vec<f64>, Error> {
    times_of(path).map_err(|refusal| refusal.within(shown(path)).into())
}

/// The same; the refusal does not name the file.
pub(in crate::data) fn times_of(path: &Path) -> Result<Vec<f64>, Refusal> {
    let opened = Opened::open(path)?;
    match vtk_xml::parts::sniff(&opened.start()?, opened.size) {
        true => vtk_xml::parts::times(&opened),
        false => Ok(Vec::new()),
    }
}

/// The mesh of one time of such a list, by the number of the time.
pub(in crate::data) fn read_time(path: &Path, number: usize) -> Result<Mesh, Refusal> {
    let mesh = vtk_xml::parts::read_time(&Opened::open(path)?, number)?;
    mesh.check()?;
    Ok(mesh)
}

/// The mesh of a file; of a list of several times, that of the first.
pub fn read(path: &Path) -> Result<Mesh, Error> {
    read_file(path).map_err(|refusal| refusal.within(shown(path)).into())
}

/// The same; the refusal does not name the file.
pub(in crate::data) fn read_file(path: &Path) -> Result<Mesh, Refusal> {
    read_opened(&Opened::open(path)?)
}

/// Refuses a file of a stranger that is not one XML file of VTK, such as vtu, or whose numbers have more than `most` bytes when they
/// are unpacked. A file that names other files is refused, too: they would be those of the reader.
pub fn require_alone(path: &Path, most: u64) -> Result<(), Error> {
    let check = || {
        let opened = Opened::open(path)?;
        let format = format_of(&opened)?;
        require(format.name == XML, || Refusal::new("", "a vtu file that holds all of its mesh", format.name))?;
        let bytes = vtk_xml::promised(&opened)?;
        require(bytes <= most, || {
            Refusal::new("", format!("at most {most} bytes of unpacked numbers"), bytes.to_string())
                .of(Kind::OutOfSpace)
        })
    };
    check().map_err(|refusal: Refusal| refusal.within(shown(path)).into())
}

fn format_of(opened: &Opened) -> Result<&'static Format, Refusal> {
    let start = opened.start()?;
    FORMATS.iter().find(|format| (format.sniff)(&start, opened.size)).ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        let found = if start.is_empty() {
            "an empty file".into()
        } else {
            format!("the bytes {:02x?}", &start[..start.len().min(8)])
        };
        Refusal::new("", format!("a mesh file of format {}", names.join(", ")), found)
    })
}

fn read_opened(opened: &Opened) -> Result<Mesh, Refusal> {
    let mesh = (format_of(opened)?.read)(opened)?;
    mesh.check()?;
    Ok(mesh)
}

/// Writes a mesh; the ending of the path is the format. The file appears complete or not at all.
pub fn write(path: &Path, mesh: &Mesh, options: &Options) -> Result<(), Error> {
    write_file(path, mesh, options).map_err(|refusal| refusal.within(shown(path)).into())
}

fn write_file(path: &Path, mesh: &Mesh, options: &Options) -> Result<(), Refusal> {
    let bytes = encode(&ending(path), mesh, options)?;
    atomic::replace(path, &bytes)
        .map_err(|reason| Refusal::said(format!("cannot be written: {reason}")).of(Kind::of_io(&reason)))
}

/// The bytes of a mesh file; the ending, such as `vtu`, is the format.
pub fn encode(ending: &str, mesh: &Mesh, options: &Options) -> Result<Vec<u8>, Refusal> {
    mesh.check()?;
    let writer = FORMATS.iter().find(|format| format.endings.contains(&ending)).and_then(|format| format.write);
    let writer = writer.ok_or_else(|| {
        let endings: Vec<_> =
            FORMATS.iter().filter(|format| format.is_writable()).flat_map(|row| row.endings).collect();
        let endings: Vec<_> = endings.iter().map(|ending| format!(".{ending}")).collect();
        Refusal::new("", format!("an ending {}", endings.join(", ")), format!("`.{ending}`"))
    })?;
    let mut bytes = Vec::new();
    writer(mesh, ending, options, &mut bytes)?;
    Ok(bytes)
}
