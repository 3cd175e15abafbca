//! From a mesh to an older VTK file of version 4.2, which all readers know.

use super::TYPES;
use crate::data::mesh::kinds::POLYHEDRON;
use crate::data::mesh::mesh::{Cells, DataArray, Mesh, Shape, UNTURNED, short};
use crate::data::mesh::numbers::{ByteOrder, Numbers};
use crate::data::mesh::sorts::sorted;
use crate::data::mesh::{Encoding, Options};
use crate::error::{Kind, Refusal};
use crate::files::memory;
use std::io::{self, Write};

struct Page<'a> {
    out: &'a mut dyn Write,
    is_text: bool,
}

/// Writes a mesh, as text where the options say so, else binary.
pub(in crate::data::mesh) fn write(
    mesh: &Mesh,
    _ending: &str,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Refusal> {
    let is_text = options.encoding == Encoding::Ascii;
    let cells = mesh.shape.cells().map_err(|reason| short(&reason))?;
    let surface = matches!(mesh.shape, Shape::Surface { .. }).then(|| sorted(&cells)).transpose()?;
    let mut cell_data = mesh.cell_data.clone();
    if let Some((_, order)) = &surface {
        for array in &mut cell_data {
            array.values = array.values.select(array.components, order).map_err(|reason| short(&reason))?;
        }
    }
    let mut page = Page { out, is_text };
    let written = page.head(mesh).and_then(|()| match &surface {
        Some((sorts, _)) => page.surface(sorts),
        None if matches!(mesh.shape, Shape::Unstructured { .. }) => page.cells(&cells),
        None => Ok(()),
    });
    let written = written.and_then(|()| page.owned("POINT_DATA", mesh.point_count(), &mesh.point_data));
    let written = written.and_then(|()| page.owned("CELL_DATA", mesh.cell_count(), &cell_data));
    written.map_err(|reason| Refusal::said(format!("cannot be written: {reason}")).of(Kind::of_io(&reason)))
}

impl Page<'_> {
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    fn head(&mut self, mesh: &Mesh) -> io::Result<()> {
        self.line("# vtk DataFile Version 4.2")?;
        self.line("written by lamo")?;
        self.line(if self.is_text { "ASCII" } else { "BINARY" })?;
        let kind = match &mesh.shape {
            Shape::Unstructured { .. } => "UNSTRUCTURED_GRID",
            Shape::Surface { .. } => "POLYDATA",
            Shape::Image { direction, .. } if *direction == UNTURNED => "STRUCTURED_POINTS",
            Shape::Image { .. } | Shape::Structured { .. } => "STRUCTURED_GRID",
            Shape::Rectilinear { .. } => "RECTILINEAR_GRID",
        };
        self.line(&format!("DATASET {kind}"))?;
        if !mesh.field_data.is_empty() {
            self.fields(&mesh.field_data)?;
        }
        if let Some([x, y, z]) = mesh.shape.dimensions() {
            self.line(&format!("DIMENSIONS {x} {y} {z}"))?;
        }
        match &mesh.shape {
            Shape::Image { origin: [x, y, z], spacing: [a, b, c], .. } if kind == "STRUCTURED_POINTS" => {
                self.line(&format!("ORIGIN {x} {y} {z}"))?;
                self.line(&format!("SPACING {a} {b} {c}"))
            }
            Shape::Rectilinear { coordinates } => {
                for (name, values) in ["X", "Y", "Z"].into_iter().zip(coordinates) {
                    self.line(&format!("{name}_COORDINATES {} {}", values.len(), type_name(values)))?;
                    self.numbers(values)?;
                }
                Ok(())
            }
            Shape::Unstructured { points, .. } | Shape::Surface { points, .. } | Shape::Structured { points, .. } => {
                self.points(points)
            }
            Shape::Image { .. } => self.points(&Numbers::F64(mesh.shape.positions()?)),
        }
    }

    fn points(&mut self, points: &Numbers) -> io::Result<()> {
        self.line(&format!("POINTS {} {}", points.len() / 3, type_name(points)))?;
        self.numbers(points)
    }

    fn numbers(&mut self, values: &Numbers) -> io::Result<()> {
        if !self.is_text {
            self.out.write_all(&values.bytes(ByteOrder::Big)?)?;
            return self.line("");
        }
        for index in 0..values.len() {
            self.out.write_all(values.word(index).as_bytes())?;
            self.out.write_all(if (index + 1).is_multiple_of(12) { b"\n" } else { b" " })?;
        }
        self.line("")
    }

    /// Each cell behind its number of points; a polyhedron behind the number of its numbers, which are its faces.
    fn lists(&mut self, keyword: &str, cells: &Cells) -> io::Result<()> {
        let too_many =
            || io::Error::new(io::ErrorKind::InvalidInput, "expected fewer than 2³¹ numbers of cells, found more");
        let mut numbers: Vec<i32> = memory::reserve(cells.connectivity.len() + cells.len())?;
        for cell in 0..cells.len() {
            let faces = cells.faces.as_ref().filter(|_| cells.kinds[cell] == POLYHEDRON);
            let list = match faces {
                Some(faces) => &faces.stream[faces.offsets[cell]..faces.offsets[cell + 1]],
                None => cells.points(cell),
            };
            numbers.push(list.len().try_into().map_err(|_| too_many())?);
            for &point in list {
                numbers.push(point.try_into().map_err(|_| too_many())?);
            }
        }
        self.line(&format!("{keyword} {} {}", cells.len(), numbers.len()))?;
        self.numbers(&Numbers::I32(numbers))
    }

    fn cells(&mut self, cells: &Cells) -> io::Result<()> {
        self.lists("CELLS", cells)?;
        self.line(&format!("CELL_TYPES {}", cells.len()))?;
        self.numbers(&Numbers::I32(cells.kinds.iter().map(|&kind| kind.into()).collect()))
    }

    fn surface(&mut self, sorts: &[Cells; 4]) -> io::Result<()> {
        let keywords = ["VERTICES", "LINES", "POLYGONS", "TRIANGLE_STRIPS"];
        let filled = keywords.into_iter().zip(sorts).filter(|(_, cells)| !cells.is_empty());
        filled.into_iter().try_for_each(|(keyword, cells)| self.lists(keyword, cells))
    }

    fn owned(&mut self, keyword: &str, count: usize, arrays: &[DataArray]) -> io::Result<()> {
        if arrays.is_empty() {
            return Ok(());
        }
        self.line(&format!("{keyword} {count}"))?;
        self.fields(arrays)
    }

    fn fields(&mut self, arrays: &[DataArray]) -> io::Result<()> {
        self.line(&format!("FIELD FieldData {}", arrays.len()))?;
        for array in arrays {
            let (name, components, kind) = (encoded(&array.name), array.components, type_name(&array.values));
            let groups = array.values.len() / components.max(1);
            self.line(&format!("{name} {components} {groups} {kind}"))?;
            self.numbers(&array.values)?;
        }
        Ok(())
    }
}

fn type_name(values: &Numbers) -> &'static str {
    TYPES.iter().find(|row| row.1 == values.kind()).map_or("double", |row| row.0)
}

/// A name as one word: VTK writes `%20` for a blank.
fn encoded(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'"');
    let letter = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    if name.is_empty() { "unnamed".into() } else { name.bytes().map(letter).collect() }
}
