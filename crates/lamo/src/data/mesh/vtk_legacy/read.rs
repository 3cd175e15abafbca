//! From keywords to a mesh.

use super::TYPES;
use crate::data::formats::ElementKind;
use crate::data::mesh::input::{CUT, Input, Opened, broken, shortened};
use crate::data::mesh::kinds::POLYHEDRON;
use crate::data::mesh::mesh::{Cells, DataArray, Faces, Mesh, Shape, UNTURNED, short};
use crate::data::mesh::numbers::{ByteOrder, Numbers};
use crate::data::mesh::sorts::surface_kind;
use crate::error::{Refusal, require};
use crate::files::memory;
use std::io::Read;

/// Offsets and connectivity.
type Lists = (Vec<usize>, Vec<u32>);

/// What was read so far.
struct Reader<'a> {
    input: Input<'a>,
    is_text: bool,
    has_offsets: bool,
    points: Option<Numbers>,
    cells: Option<Lists>,
    kinds: Option<Vec<u8>>,
    /// Vertices, lines, polygons, strips.
    sorts: [Option<Lists>; 4],
    dimensions: [usize; 3],
    origin: [f64; 3],
    spacing: [f64; 3],
    coordinates: [Option<Numbers>; 3],
    arrays: [Vec<DataArray>; 3],
    /// Whose arrays follow: 0 the whole, 1 points, 2 cells; and how many.
    owner: (usize, usize),
}

/// Reads a file.
pub(in crate::data::mesh) fn read(opened: &Opened) -> Result<Mesh, Refusal> {
    let mut input = opened.whole()?;
    let version = input.rest_of_line()?.unwrap_or_default();
    let number = version.split_whitespace().last().and_then(|word| word.split('.').next()?.parse::<u32>().ok());
    let major = number.ok_or_else(|| input.refuse("a version such as 4.2", shortened(&version)))?;
    input.rest_of_line()?; // the title
    let form = input.expect("ASCII or BINARY")?.to_uppercase();
    let is_text = form == "ASCII";
    require(is_text || form == "BINARY", || input.refuse("ASCII or BINARY", shortened(&form)))?;
    if !is_text {
        input.line = 0;
    }
    let mut reader = Reader {
        input,
        is_text,
        has_offsets: major >= 5,
        points: None,
        cells: None,
        kinds: None,
        sorts: Default::default(),
        dimensions: [0; 3],
        origin: [0.0; 3],
        spacing: [1.0; 3],
        coordinates: Default::default(),
        arrays: Default::default(),
        owner: (0, 0),
    };
    let keyword = reader.input.expect("DATASET")?.to_uppercase();
    require(keyword == "DATASET", || reader.input.refuse("DATASET", format!("`{}`", shortened(&keyword))))?;
    let kind = reader.input.expect("the kind of the data set")?.to_uppercase();
    while let Some(keyword) = reader.input.word()? {
        let keyword = keyword.to_uppercase();
        reader.keyword(&keyword).map_err(|refusal| refusal.within(shortened(&keyword)))?;
    }
    reader.finish(&kind)
}

impl Reader<'_> {
    fn keyword(&mut self, keyword: &str) -> Result<(), Refusal> {
        match keyword {
            "POINTS" => {
                let count: usize = self.input.number("the number of points")?;
                let kind = self.kind()?;
                self.points = Some(self.numbers(kind, count, 3)?);
            }
            "CELLS" => self.cells = Some(self.lists()?),
            "VERTICES" => self.sorts[0] = Some(self.lists()?),
            "LINES" => self.sorts[1] = Some(self.lists()?),
            "POLYGONS" => self.sorts[2] = Some(self.lists()?),
            "TRIANGLE_STRIPS" => self.sorts[3] = Some(self.lists()?),
            "CELL_TYPES" => {
                let count: usize = self.input.number("the number of cells")?;
                let kinds = self.numbers(ElementKind::I32, count, 1)?.to_counts();
                let kinds: Option<Vec<u8>> =
                    kinds.unwrap_or_default().iter().map(|&kind| kind.try_into().ok()).collect();
                let kinds = kinds.filter(|kinds| kinds.len() == count);
                self.kinds = Some(kinds.ok_or_else(|| Refusal::new("", "types from 0 to 255", "another number"))?);
            }
            "DIMENSIONS" => self.dimensions = self.three()?,
            "ORIGIN" => self.origin = self.three()?,
            "SPACING" | "ASPECT_RATIO" => self.spacing = self.three()?,
            "X_COORDINATES" | "Y_COORDINATES" | "Z_COORDINATES" => {
                let count: usize = self.input.number("the number of coordinates")?;
                let kind = self.kind()?;
                let axis = usize::from(keyword.as_bytes()[0] - b'X');
                self.coordinates[axis] = Some(self.numbers(kind, count, 1)?);
            }
            "POINT_DATA" => self.owner = (1, self.input.number("the number of points")?),
            "CELL_DATA" => self.owner = (2, self.input.number("the number of cells")?),
            "METADATA" => self.skip_metadata()?,
            "FIELD" => self.fields()?,
            _ => self.attribute(keyword)?,
        }
        Ok(())
    }

    /// Arrays that say by a keyword what they mean.
    fn attribute(&mut self, keyword: &str) -> Result<(), Refusal> {
        let components = match keyword {
            "SCALARS" | "GLOBAL_IDS" | "PEDIGREE_IDS" | "EDGE_FLAGS" => 1,
            "VECTORS" | "NORMALS" => 3,
            "TENSORS" => 9,
            "TENSORS6" => 6,
            "COLOR_SCALARS" | "TEXTURE_COORDINATES" | "LOOKUP_TABLE" => 0, // said in the file
            _ => return Err(self.input.refuse("a keyword of VTK", format!("`{}`", shortened(keyword)))),
        };
        let name = decoded(&self.input.expect("a name")?);
        let count = self.owner.1;
        if keyword == "LOOKUP_TABLE" {
            let colours: usize = self.input.number("the number of colours")?;
            return self.colours(colours, 4).map(|_| ());
        }
        if keyword == "COLOR_SCALARS" {
            let components = self.input.number("the number of colours of each")?;
            let values = self.colours(count, components)?;
            return self.keep(DataArray { name, components, values });
        }
        let components = match keyword {
            "TEXTURE_COORDINATES" => self.input.number("the number of coordinates")?,
            _ => components,
        };
        let kind = self.kind()?;
        let components = if keyword == "SCALARS" { self.scalar_components()? } else { components };
        let values = self.numbers(kind, count, components)?;
        self.keep(DataArray { name, components, values })
    }

    /// The optional number of components of scalars, and the line of their lookup table.
    fn scalar_components(&mut self) -> Result<usize, Refusal> {
        let rest = self.input.rest_of_line()?.unwrap_or_default();
        let components = match rest.trim() {
            "" => 1,
            text => text.parse().map_err(|_| self.input.refuse("a number of components", shortened(text)))?,
        };
        let keyword = self.input.expect("LOOKUP_TABLE")?;
        require(keyword.eq_ignore_ascii_case("LOOKUP_TABLE"), || {
            self.input.refuse("LOOKUP_TABLE", shortened(&keyword))
        })?;
        self.input.expect("the name of a lookup table")?;
        Ok(components)
    }

    /// Colours are bytes in binary files and numbers from 0 to 1 in text.
    fn colours(&mut self, count: usize, components: usize) -> Result<Numbers, Refusal> {
        let kind = if self.is_text { ElementKind::F32 } else { ElementKind::U8 };
        self.numbers(kind, count, components)
    }

    fn fields(&mut self) -> Result<(), Refusal> {
        self.input.expect("the name of a field")?;
        let count: usize = self.input.number("the number of arrays")?;
        for _ in 0..count {
            let mut word = self.input.expect("the name of an array")?;
            if word == "METADATA" {
                self.skip_metadata()?;
                word = self.input.expect("the name of an array")?;
            }
            let name = decoded(&word);
            let read = self.field();
            let array =
                read.map_err(|refusal| refusal.within(format!("array `{}`", shortened(&name).escape_debug())))?;
            if let Some((components, values)) = array {
                self.keep(DataArray { name, components, values })?;
            }
        }
        Ok(())
    }

    /// Components and numbers of an array of a field; `None` for text.
    fn field(&mut self) -> Result<Option<(usize, Numbers)>, Refusal> {
        let components: usize = self.input.number("the number of components")?;
        let count: usize = self.input.number("the number of tuples")?;
        let word = self.input.expect("a type")?.to_lowercase();
        if word == "string" || word == "utf8_string" {
            self.skip_text(components.saturating_mul(count))?;
            return Ok(None);
        }
        let kind = self.named_kind(&word)?;
        Ok(Some((components, self.numbers(kind, count, components)?)))
    }

    fn skip_text(&mut self, count: usize) -> Result<(), Refusal> {
        self.input.require(count as u64, 1, &format!("{count} texts"))?;
        self.input.rest_of_line()?;
        for _ in 0..count {
            if self.is_text {
                self.input.rest_of_line()?;
                continue;
            }
            // The two highest bits say how many bytes the length has: 8, 4, 2 or 1.
            let width = 8 >> (self.input.peek()?.unwrap_or(0) >> 6);
            let mut bytes = [0; 8];
            self.input.read_exact(&mut bytes[8 - width..]).map_err(|reason| broken(&reason))?;
            bytes[8 - width] &= 0x3f;
            let length = u64::from_be_bytes(bytes);
            self.input.require(length, 1, "a text")?;
            let skipped = std::io::copy(&mut (&mut self.input).take(length), &mut std::io::sink());
            skipped.map_err(|reason| broken(&reason))?;
        }
        Ok(())
    }

    fn keep(&mut self, array: DataArray) -> Result<(), Refusal> {
        let list = &mut self.arrays[self.owner.0];
        require(list.iter().all(|other| other.name != array.name), || {
            Refusal::new("arrays", "different names", format!("`{}` twice", shortened(&array.name).escape_debug()))
        })?;
        list.push(array);
        Ok(())
    }

    /// Information about the array before it ends with an empty line.
    fn skip_metadata(&mut self) -> Result<(), Refusal> {
        self.input.rest_of_line()?;
        while self.input.rest_of_line()?.is_some_and(|line| !line.trim().is_empty()) {}
        Ok(())
    }

    fn kind(&mut self) -> Result<ElementKind, Refusal> {
        let word = self.input.expect("a type")?.to_lowercase();
        self.named_kind(&word)
    }

    fn named_kind(&self, word: &str) -> Result<ElementKind, Refusal> {
        let row = TYPES.iter().find(|(name, _)| *name == word);
        row.map(|row| row.1).ok_or_else(|| {
            let names: Vec<_> = TYPES.iter().map(|row| row.0).collect();
            self.input.refuse(&format!("a type of {}", names.join(", ")), format!("`{}`", shortened(word)))
        })
    }

    fn three<T: std::str::FromStr + Copy + Default>(&mut self) -> Result<[T; 3], Refusal> {
        let mut numbers = [T::default(); 3];
        for number in &mut numbers {
            *number = self.input.number("three numbers")?;
        }
        Ok(numbers)
    }

    /// `[count, components]` numbers, from the next line on in a binary file.
    fn numbers(&mut self, kind: ElementKind, count: usize, components: usize) -> Result<Numbers, Refusal> {
        let count = count.checked_mul(components).ok_or_else(|| {
            Refusal::new("", "a number of numbers", format!("{count} times {components}")).advise(CUT)
        })?;
        if self.is_text {
            return self.input.words(kind, count);
        }
        self.input.rest_of_line()?;
        self.input.binary(kind, count, ByteOrder::Big)
    }

    /// The points of cells: in pairs of offsets and connectivity, or each behind its number.
    fn lists(&mut self) -> Result<Lists, Refusal> {
        let count: usize = self.input.number("the number of cells")?;
        let size: usize = self.input.number("the number of numbers")?;
        if !self.has_offsets {
            let numbers = point_numbers(&self.numbers(ElementKind::I32, size, 1)?)?;
            return split(&numbers, count);
        }
        let mut parts = Vec::new();
        for (keyword, length) in [("OFFSETS", count), ("CONNECTIVITY", size)] {
            let word = self.input.expect(keyword)?;
            require(word.eq_ignore_ascii_case(keyword), || {
                self.input.refuse(keyword, format!("`{}`", shortened(&word)))
            })?;
            let kind = self.kind()?;
            parts.push(point_numbers(&self.numbers(kind, length, 1)?)?);
        }
        let (Some(connectivity), Some(offsets)) = (parts.pop(), parts.pop()) else {
            unreachable!("two parts were read")
        };
        let offsets: Vec<usize> =
            if count == 0 { vec![0] } else { offsets.iter().map(|&offset| offset as usize).collect() };
        Ok((offsets, connectivity))
    }

    fn finish(self, kind: &str) -> Result<Mesh, Refusal> {
        let [field_data, point_data, cell_data] = self.arrays;
        let points = self.points.unwrap_or(Numbers::F32(Vec::new()));
        let shape = match kind {
            "UNSTRUCTURED_GRID" => {
                let (offsets, connectivity) = self.cells.unwrap_or((vec![0], Vec::new()));
                Shape::Unstructured { points, cells: typed(offsets, connectivity, self.kinds.unwrap_or_default())? }
            }
            "POLYDATA" => {
                let mut cells = Cells::new();
                for (sort, lists) in crate::data::mesh::sorts::SORTS.into_iter().zip(self.sorts) {
                    let (offsets, connectivity) = lists.unwrap_or((vec![0], Vec::new()));
                    for ends in offsets.windows(2) {
                        let points = connectivity.get(ends[0]..ends[1]).ok_or_else(falling)?;
                        cells.push(surface_kind(sort, points.len()), points.iter().copied());
                    }
                }
                Shape::Surface { points, cells }
            }
            "STRUCTURED_POINTS" => {
                let product = self.dimensions.iter().try_fold(1_usize, |product, &count| product.checked_mul(count));
                require(product.is_some_and(|product| u32::try_from(product).is_ok()), || {
                    Refusal::new("DIMENSIONS", "fewer than 2³² points", format!("{:?}", self.dimensions))
                })?;
                let (dimensions, origin, spacing) = (self.dimensions, self.origin, self.spacing);
                Shape::Image { dimensions, origin, spacing, direction: UNTURNED }
            }
            "STRUCTURED_GRID" => Shape::Structured { dimensions: self.dimensions, points },
            "RECTILINEAR_GRID" => {
                let coordinates = self.coordinates.map(|numbers| numbers.unwrap_or(Numbers::F32(Vec::new())));
                let found = [0, 1, 2].map(|axis| coordinates[axis].len());
                require(found == self.dimensions, || {
                    Refusal::new("coordinates", format!("{:?} of them", self.dimensions), format!("{found:?}"))
                })?;
                Shape::Rectilinear { coordinates }
            }
            other => {
                let known = "UNSTRUCTURED_GRID, POLYDATA, STRUCTURED_POINTS, STRUCTURED_GRID or RECTILINEAR_GRID";
                return Err(Refusal::new("DATASET", known, format!("`{}`", shortened(other))));
            }
        };
        Ok(Mesh { shape, point_data, cell_data, field_data, seams: Vec::new() })
    }
}

fn falling() -> Refusal {
    Refusal::new("OFFSETS", "numbers that rise within the connectivity", "others")
}

fn point_numbers(numbers: &Numbers) -> Result<Vec<u32>, Refusal> {
    let counts = numbers.to_counts().unwrap_or_default();
    let points: Option<Vec<u32>> = counts.iter().map(|&count| count.try_into().ok()).collect();
    let points = points.filter(|points| points.len() == numbers.len());
    points.ok_or_else(|| Refusal::new("", "numbers of points", "a negative or very large number"))
}

/// Cells of which each stands behind its number of points.
fn split(numbers: &[u32], count: usize) -> Result<Lists, Refusal> {
    require(count <= numbers.len(), || {
        Refusal::new("", format!("numbers for {count} cells"), numbers.len().to_string())
    })?;
    let mut offsets = memory::reserve(count + 1).map_err(|reason| short(&reason))?;
    let mut connectivity = memory::reserve(numbers.len() - count).map_err(|reason| short(&reason))?;
    let mut rest = numbers;
    offsets.push(0);
    for cell in 0..count {
        let points = rest.split_first().and_then(|(&length, rest)| rest.split_at_checked(length as usize));
        let (points, after) = points.ok_or_else(|| {
            Refusal::new(
                format!("cell {cell}"),
                "its number of points and the points",
                format!("{} numbers left", rest.len()),
            )
        })?;
        connectivity.extend_from_slice(points);
        offsets.push(connectivity.len());
        rest = after;
    }
    Ok((offsets, connectivity))
}

/// Cells with their types. What stands for the points of a polyhedron is its faces.
fn typed(offsets: Vec<usize>, connectivity: Vec<u32>, kinds: Vec<u8>) -> Result<Cells, Refusal> {
    require(kinds.len() + 1 == offsets.len(), || {
        Refusal::new("CELL_TYPES", format!("{} types", offsets.len().saturating_sub(1)), kinds.len().to_string())
    })?;
    if !kinds.contains(&POLYHEDRON) {
        return Ok(Cells { kinds, offsets, connectivity, faces: None });
    }
    let mut cells = Cells::new();
    let mut faces = Faces { offsets: vec![0], stream: Vec::new() };
    for (cell, ends) in offsets.windows(2).enumerate() {
        let numbers = connectivity.get(ends[0]..ends[1]).ok_or_else(falling)?;
        if kinds[cell] == POLYHEDRON {
            faces.stream.extend_from_slice(numbers);
            cells.push(POLYHEDRON, corners(numbers));
        } else {
            cells.push(kinds[cell], numbers.iter().copied());
        }
        faces.offsets.push(faces.stream.len());
    }
    cells.faces = Some(faces);
    Ok(cells)
}

/// The points of a polyhedron in the order in which its faces name them first.
fn corners(stream: &[u32]) -> Vec<u32> {
    let mut seen = std::collections::HashSet::new();
    let mut points = Vec::new();
    let mut rest = stream.get(1..).unwrap_or_default();
    while let Some((&count, after)) = rest.split_first() {
        let (face, after) = after.split_at((count as usize).min(after.len()));
        points.extend(face.iter().copied().filter(|point| seen.insert(*point)));
        rest = after;
    }
    points
}

/// A name with `%20` for a blank, as VTK writes it.
fn decoded(word: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match code.filter(|_| byte == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_and_points_of_polyhedra_found() {
        assert_eq!(decoded("mean%20p%25"), "mean p%");
        assert_eq!(decoded("50%"), "50%");
        assert_eq!(decoded("%+1x"), "%+1x");
        assert_eq!(corners(&[2, 3, 5, 6, 7, 3, 7, 8, 5]), [5, 6, 7, 8]);
    }
}
