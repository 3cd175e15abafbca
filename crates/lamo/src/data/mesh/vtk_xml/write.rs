//! From a mesh to an XML file of VTK, in any of the ways in which numbers can be stored.

use super::array::TYPES;
use super::base64;
use crate::data::mesh::kinds::POLYHEDRON;
use crate::data::mesh::mesh::{Cells, DataArray, Mesh, Shape, short};
use crate::data::mesh::numbers::{ByteOrder, Numbers};
use crate::data::mesh::sorts::{SORTS, sorted};
use crate::error::{Kind, Refusal};
use crate::files::memory;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Where and how the numbers of a file stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As text.
    Ascii,
    /// In the elements, in base64.
    Base64,
    /// Behind the elements, as they are.
    AppendedRaw,
    /// Behind the elements, in base64.
    AppendedBase64,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where and how the numbers stand.
    pub encoding: Encoding,
    /// Whether they are packed by zlib; text is not.
    pub packed: bool,
    /// Whether sizes have 64 bits, else 32.
    pub long_sizes: bool,
    /// Byte order.
    pub order: ByteOrder,
}

impl Default for Options {
    /// Base64 packed by zlib: valid XML that all readers know.
    fn default() -> Options {
        Options { encoding: Encoding::Base64, packed: true, long_sizes: true, order: ByteOrder::Little }
    }
}

/// Bytes that are packed together.
const BLOCK: usize = 1 << 18;

/// What is written so far: the elements, and what will be appended.
struct Page {
    options: Options,
    text: Vec<u8>,
    appended: Vec<u8>,
}

type Outcome = Result<(), Refusal>;

/// Writes a mesh as the kind of file that an ending stands for.
pub(in crate::data::mesh) fn write(mesh: &Mesh, ending: &str, options: &Options, out: &mut dyn Write) -> Outcome {
    let mut page = Page { options: *options, text: Vec::new(), appended: Vec::new() };
    let kind = match ending {
        "vtp" => "PolyData",
        "vti" => "ImageData",
        "vtr" => "RectilinearGrid",
        "vts" => "StructuredGrid",
        _ => "UnstructuredGrid",
    };
    page.open_file(kind);
    match ending {
        "vtp" => page.surface(mesh)?,
        "vti" | "vtr" | "vts" => page.lattice(mesh, ending, kind)?,
        _ => page.unstructured(mesh)?,
    }
    page.line(&format!("</{kind}>"));
    page.finish(out).map_err(|reason| Refusal::said(format!("cannot be written: {reason}")).of(Kind::of_io(&reason)))
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.extend(text.as_bytes());
        self.text.push(b'\n');
    }

    fn open_file(&mut self, kind: &str) {
        let Options { packed, long_sizes, order, encoding } = self.options;
        let order = if order == ByteOrder::Little { "LittleEndian" } else { "BigEndian" };
        let (version, size) = if long_sizes { ("1.0", "UInt64") } else { ("0.1", "UInt32") };
        let packed = packed && encoding != Encoding::Ascii;
        let compressor = if packed { " compressor=\"vtkZLibDataCompressor\"" } else { "" };
        self.line("<?xml version=\"1.0\"?>");
        self.line(&format!(
            "<VTKFile type=\"{kind}\" version=\"{version}\" byte_order=\"{order}\" header_type=\"{size}\"{compressor}>"
        ));
    }

    fn finish(mut self, out: &mut dyn Write) -> io::Result<()> {
        let encoding = match self.options.encoding {
            Encoding::AppendedRaw => Some("raw"),
            Encoding::AppendedBase64 => Some("base64"),
            _ => None,
        };
        if let Some(encoding) = encoding {
            self.line(&format!("<AppendedData encoding=\"{encoding}\">"));
            self.text.push(b'_');
            out.write_all(&self.text)?;
            out.write_all(&self.appended)?;
            self.text.clear();
            self.line("\n</AppendedData>");
        }
        self.line("</VTKFile>");
        out.write_all(&self.text)
    }

    /// One array.
    fn array(&mut self, name: &str, components: usize, values: &Numbers, tuples: bool) -> Outcome {
        let kind = TYPES.iter().find(|row| row.1 == values.kind()).map_or("Float64", |row| row.0);
        let mut head = format!("<DataArray type=\"{kind}\" Name=\"{}\"", escaped(name));
        if components != 1 {
            let _ = write!(head, " NumberOfComponents=\"{components}\"");
        }
        if tuples {
            let _ = write!(head, " NumberOfTuples=\"{}\"", values.len() / components.max(1));
        }
        self.values(&head, values).map_err(|reason| short(&reason).within(format!("array `{}`", name.escape_debug())))
    }

    fn values(&mut self, head: &str, values: &Numbers) -> io::Result<()> {
        match self.options.encoding {
            Encoding::Ascii => {
                self.line(&format!("{head} format=\"ascii\">"));
                for index in 0..values.len() {
                    self.text.extend(values.word(index).bytes());
                    self.text.push(if (index + 1).is_multiple_of(12) { b'\n' } else { b' ' });
                }
                self.line("\n</DataArray>");
            }
            Encoding::Base64 => {
                self.line(&format!("{head} format=\"binary\">"));
                let (header, body) = self.encoded(values)?;
                into_base64(&header, &body, self.options.packed, &mut self.text);
                self.line("\n</DataArray>");
            }
            Encoding::AppendedRaw | Encoding::AppendedBase64 => {
                self.line(&format!("{head} format=\"appended\" offset=\"{}\"/>", self.appended.len()));
                let (header, body) = self.encoded(values)?;
                if self.options.encoding == Encoding::AppendedRaw {
                    self.appended.extend(header);
                    self.appended.extend(body);
                } else {
                    into_base64(&header, &body, self.options.packed, &mut self.appended);
                }
            }
        }
        Ok(())
    }

    /// Sizes, and bytes.
    fn encoded(&self, values: &Numbers) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let bytes = values.bytes(self.options.order)?;
        if !self.options.packed {
            return Ok((self.sizes(&[bytes.len()])?, bytes));
        }
        let blocks = bytes.len().div_ceil(BLOCK);
        let last = bytes.len() % BLOCK;
        let mut sizes = vec![blocks, BLOCK, last];
        let mut body = Vec::new();
        for block in bytes.chunks(BLOCK) {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(block)?;
            let packed = encoder.finish()?;
            sizes.push(packed.len());
            body.extend(packed);
        }
        Ok((self.sizes(&sizes)?, body))
    }

    fn sizes(&self, sizes: &[usize]) -> io::Result<Vec<u8>> {
        let long = Numbers::U64(sizes.iter().map(|&size| size as u64).collect());
        let short: Option<Vec<u32>> = sizes.iter().map(|&size| u32::try_from(size).ok()).collect();
        match (self.options.long_sizes, short) {
            (true, _) => long.bytes(self.options.order),
            (false, Some(short)) => Numbers::U32(short).bytes(self.options.order),
            (false, None) => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected sizes below 4 GiB, found more")),
        }
    }

    fn arrays(&mut self, part: &str, arrays: &[DataArray]) -> Outcome {
        if arrays.is_empty() {
            return Ok(());
        }
        self.line(&format!("<{part}>"));
        for array in arrays {
            self.array(&array.name, array.components, &array.values, part == "FieldData")?;
        }
        self.line(&format!("</{part}>"));
        Ok(())
    }

    fn list(&mut self, name: &str, numbers: impl Iterator<Item = i64>, count: usize) -> Outcome {
        let mut values = memory::reserve(count).map_err(|reason| short(&reason))?;
        values.extend(numbers);
        self.array(name, 1, &Numbers::I64(values), false)
    }

    fn lists(&mut self, cells: &Cells) -> Outcome {
        let points = cells.connectivity.iter().map(|&point| i64::from(point));
        self.list("connectivity", points, cells.connectivity.len())?;
        self.list("offsets", cells.offsets.iter().skip(1).map(|&end| end as i64), cells.len())
    }

    fn points(&mut self, points: &Numbers) -> Outcome {
        self.line("<Points>");
        self.array("Points", 3, points, false)?;
        self.line("</Points>");
        Ok(())
    }

    fn unstructured(&mut self, mesh: &Mesh) -> Outcome {
        let cells = mesh.shape.cells().map_err(|reason| short(&reason))?;
        self.line("<UnstructuredGrid>");
        self.arrays("FieldData", &mesh.field_data)?;
        self.line(&format!("<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">", mesh.point_count(), cells.len()));
        self.arrays("PointData", &mesh.point_data)?;
        self.arrays("CellData", &mesh.cell_data)?;
        self.explicit_points(mesh)?;
        self.line("<Cells>");
        self.lists(&cells)?;
        self.array("types", 1, &Numbers::U8(cells.kinds.clone()), false)?;
        if let Some(faces) = &cells.faces {
            self.list("faces", faces.stream.iter().map(|&number| i64::from(number)), faces.stream.len())?;
            let end = |cell: usize| if cells.kinds[cell] == POLYHEDRON { faces.offsets[cell + 1] as i64 } else { -1 };
            self.list("faceoffsets", (0..cells.len()).map(end), cells.len())?;
        }
        self.line("</Cells>");
        self.line("</Piece>");
        Ok(())
    }

    fn explicit_points(&mut self, mesh: &Mesh) -> Outcome {
        match &mesh.shape {
            Shape::Unstructured { points, .. } | Shape::Surface { points, .. } | Shape::Structured { points, .. } => {
                self.points(points)
            }
            shape => self.points(&Numbers::F64(shape.positions().map_err(|reason| short(&reason))?)),
        }
    }

    fn surface(&mut self, mesh: &Mesh) -> Outcome {
        let cells = mesh.shape.cells().map_err(|reason| short(&reason))?;
        let (sorts, order) = sorted(&cells)?;
        self.line("<PolyData>");
        self.arrays("FieldData", &mesh.field_data)?;
        let [vertices, lines, polygons, strips] = [0, 1, 2, 3].map(|sort| sorts[sort].len());
        let counts = format!("NumberOfVerts=\"{vertices}\" NumberOfLines=\"{lines}\"");
        let more = format!("NumberOfStrips=\"{strips}\" NumberOfPolys=\"{polygons}\"");
        self.line(&format!("<Piece NumberOfPoints=\"{}\" {counts} {more}>", mesh.point_count()));
        self.arrays("PointData", &mesh.point_data)?;
        let mut cell_data = mesh.cell_data.clone();
        for array in &mut cell_data {
            array.values = array.values.select(array.components, &order).map_err(|reason| short(&reason))?;
        }
        self.arrays("CellData", &cell_data)?;
        self.explicit_points(mesh)?;
        for (name, cells) in SORTS.into_iter().zip(&sorts) {
            self.line(&format!("<{name}>"));
            self.lists(cells)?;
            self.line(&format!("</{name}>"));
        }
        self.line("</Piece>");
        Ok(())
    }

    fn lattice(&mut self, mesh: &Mesh, ending: &str, kind: &str) -> Outcome {
        let fits = match ending {
            "vti" => matches!(mesh.shape, Shape::Image { .. }),
            "vtr" => matches!(mesh.shape, Shape::Rectilinear { .. }),
            _ => true,
        };
        let dimensions = mesh.shape.dimensions().filter(|_| fits && mesh.point_count() > 0).ok_or_else(|| {
            let advice = "write .vtu, which holds any cells";
            Refusal::new(format!("a .{ending} file"), "a lattice of that kind", "a mesh of another").advise(advice)
        })?;
        let [x, y, z] = dimensions.map(|count| count - 1);
        let extent = format!("0 {x} 0 {y} 0 {z}");
        let mut head = format!("<{kind} WholeExtent=\"{extent}\"");
        if let Shape::Image { origin, spacing, direction, .. } = &mesh.shape
            && ending == "vti"
        {
            let text = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
            let _ = write!(head, " Origin=\"{}\" Spacing=\"{}\"", text(origin), text(spacing));
            let _ = write!(head, " Direction=\"{}\"", text(direction.as_flattened()));
        }
        self.line(&format!("{head}>"));
        self.arrays("FieldData", &mesh.field_data)?;
        self.line(&format!("<Piece Extent=\"{extent}\">"));
        self.arrays("PointData", &mesh.point_data)?;
        self.arrays("CellData", &mesh.cell_data)?;
        match (ending, &mesh.shape) {
            ("vtr", Shape::Rectilinear { coordinates }) => {
                self.line("<Coordinates>");
                for (name, values) in ["x", "y", "z"].into_iter().zip(coordinates) {
                    self.array(name, 1, values, false)?;
                }
                self.line("</Coordinates>");
            }
            ("vts", _) => self.explicit_points(mesh)?,
            _ => {}
        }
        self.line("</Piece>");
        Ok(())
    }
}

/// VTK decodes the sizes of packed arrays by themselves, and those of plain arrays together with the numbers.
fn into_base64(header: &[u8], body: &[u8], packed: bool, text: &mut Vec<u8>) {
    if packed {
        base64::encode(header, text);
        base64::encode(body, text);
    } else {
        base64::encode(&[header, body].concat(), text);
    }
}

fn escaped(text: &str) -> String {
    let safe = |letter: char| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        letter if letter.is_control() => " ".to_owned(),
        letter => letter.to_string(),
    };
    text.chars().map(safe).collect()
}
