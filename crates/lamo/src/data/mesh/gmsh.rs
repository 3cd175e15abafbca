//! Gmsh's msh files of version 2.2, 4.0 and 4.1, as text or binary: sections of nodes, elements and data.
//!
//! Each element carries the entity of the geometry that it lies on and the first physical group of this entity; they
//! become the arrays `gmsh:geometrical` and `gmsh:physical` on the cells, the names under which meshio has them.

use super::input::{CUT, Input, Opened, broken, shortened};
use super::mesh::{Cells, DataArray, Mesh, Shape};
use super::numbers::{ByteOrder, Numbers};
use crate::error::{Refusal, require};
use crate::files::memory;
use std::collections::HashMap;
use std::io::Read;

pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    start.trim_ascii_start().starts_with(b"$MeshFormat") || start.starts_with(b"$Comments")
}

/// One type of elements: its number in Gmsh, its VTK type, and where VTK's points stand among Gmsh's.
struct Element {
    gmsh: i64,
    kind: u8,
    order: &'static [usize],
}

const fn element(gmsh: i64, kind: u8, order: &'static [usize]) -> Element {
    Element { gmsh, kind, order }
}

const ELEMENTS: &[Element] = &[
    element(15, 1, &[0]),
    element(1, 3, &[0, 1]),
    element(2, 5, &[0, 1, 2]),
    element(3, 9, &[0, 1, 2, 3]),
    element(4, 10, &[0, 1, 2, 3]),
    element(5, 12, &[0, 1, 2, 3, 4, 5, 6, 7]),
    element(6, 13, &[0, 1, 2, 3, 4, 5]),
    element(7, 14, &[0, 1, 2, 3, 4]),
    element(8, 21, &[0, 1, 2]),
    element(9, 22, &[0, 1, 2, 3, 4, 5]),
    element(10, 28, &[0, 1, 2, 3, 4, 5, 6, 7, 8]),
    element(16, 23, &[0, 1, 2, 3, 4, 5, 6, 7]),
    element(11, 24, &[0, 1, 2, 3, 4, 5, 6, 7, 9, 8]),
    element(17, 25, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 14, 15]),
    element(
        12,
        29,
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 14, 15, 22, 23, 21, 24, 20, 25, 26],
    ),
    element(18, 26, &[0, 1, 2, 3, 4, 5, 6, 9, 7, 12, 14, 13, 8, 10, 11]),
    element(19, 27, &[0, 1, 2, 3, 4, 5, 8, 10, 6, 7, 9, 11, 12]),
];

/// The version of a file decides what its sections hold.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    Two,
    Four,
    FourOne,
}

/// What was read so far.
struct Reader<'a> {
    input: Input<'a>,
    version: Version,
    /// `None` for text.
    order: Option<ByteOrder>,
    points: Vec<f64>,
    /// Node of the file → point.
    nodes: HashMap<u64, u32>,
    cells: Cells,
    /// Element of the file → cell.
    elements: HashMap<u64, u32>,
    physical: Vec<i32>,
    geometrical: Vec<i32>,
    /// Dimension and entity → its first physical group.
    groups: HashMap<(i64, i64), i32>,
    /// On points, on cells: name, components, and the values by number.
    data: [Vec<Data>; 2],
}

/// One section of data.
struct Data {
    name: String,
    components: usize,
    values: Vec<(u64, Vec<f64>)>,
}

pub(super) fn read(opened: &Opened) -> Result<Mesh, Refusal> {
    let mut reader = Reader {
        input: opened.whole()?,
        version: Version::FourOne,
        order: None,
        points: Vec::new(),
        nodes: HashMap::new(),
        cells: Cells::new(),
        elements: HashMap::new(),
        physical: Vec::new(),
        geometrical: Vec::new(),
        groups: HashMap::new(),
        data: Default::default(),
    };
    while let Some(word) = reader.input.word()? {
        let name = word.strip_prefix('$').ok_or_else(|| reader.input.refuse("a section", shortened(&word)))?.to_owned();
        reader.section(&name).map_err(|refusal| refusal.within(format!("${}", shortened(&name))))?;
    }
    reader.finish()
}

impl Reader<'_> {
    fn section(&mut self, name: &str) -> Result<(), Refusal> {
        self.input.rest_of_line()?;
        match name {
            "MeshFormat" => self.format()?,
            "Entities" => self.entities()?,
            "Nodes" if self.version == Version::Two => self.old_nodes()?,
            "Nodes" => self.nodes()?,
            "Elements" if self.version == Version::Two => self.old_elements()?,
            "Elements" => self.elements()?,
            "NodeData" => self.data(0)?,
            "ElementData" => self.data(1)?,
            _ => return self.skip(name),
        }
        let (end, found) = (format!("$End{name}"), self.input.expect("the end of the section")?);
        require(found == end, || self.input.refuse(&end, format!("`{}`", shortened(&found))))
    }

    /// Skips a section that may hold any bytes.
    fn skip(&mut self, name: &str) -> Result<(), Refusal> {
        let end = format!("$End{name}").into_bytes();
        let mut matched = 0;
        let mut byte = [0];
        while matched < end.len() {
            self.input.read_exact(&mut byte).map_err(|reason| broken(&reason))?;
            matched = if byte[0] == end[matched] { matched + 1 } else { usize::from(byte[0] == end[0]) };
        }
        Ok(())
    }

    fn format(&mut self) -> Result<(), Refusal> {
        let version = self.input.expect("a version")?;
        self.version = match version.as_str() {
            "2" | "2.0" | "2.1" | "2.2" => Version::Two,
            "4" | "4.0" => Version::Four,
            "4.1" => Version::FourOne,
            other => return Err(Refusal::new("version", "2.2, 4.0 or 4.1", format!("`{}`", shortened(other)))),
        };
        let is_binary: u8 = self.input.number("0 for text or 1 for binary")?;
        let size: usize = self.input.number("the size of numbers")?;
        if is_binary == 0 {
            return Ok(());
        }
        require(size == 8, || Refusal::new("size of numbers", "8", size.to_string()))?;
        self.input.rest_of_line()?;
        self.input.line = 0;
        let mut one = [0; 4];
        self.input.read_exact(&mut one).map_err(|reason| broken(&reason))?;
        self.order = match (u32::from_le_bytes(one), u32::from_be_bytes(one)) {
            (1, _) => Some(ByteOrder::Little),
            (_, 1) => Some(ByteOrder::Big),
            (other, _) => return Err(Refusal::new("byte order", "the number 1", other.to_string()).advise(CUT)),
        };
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, order: ByteOrder) -> Result<[u8; N], Refusal> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|reason| broken(&reason))?;
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// A whole number of 32 bits.
    fn int(&mut self) -> Result<i64, Refusal> {
        match self.order {
            None => self.input.number("a whole number"),
            Some(order) => Ok(i32::from_le_bytes(self.bytes(order)?).into()),
        }
    }

    /// A whole number of 64 bits.
    fn size(&mut self) -> Result<u64, Refusal> {
        match self.order {
            None => self.input.number("a whole number"),
            Some(order) => Ok(u64::from_le_bytes(self.bytes(order)?)),
        }
    }

    /// A number of a node or an element: 64 bits from version 4.1 on, 32 before.
    fn tag(&mut self) -> Result<u64, Refusal> {
        if self.version == Version::FourOne {
            return self.size();
        }
        let tag = self.int()?;
        u64::try_from(tag).map_err(|_| Refusal::new("", "a number from 0 on", tag.to_string()))
    }

    fn double(&mut self) -> Result<f64, Refusal> {
        match self.order {
            None => self.input.number("a number"),
            Some(order) => Ok(f64::from_le_bytes(self.bytes(order)?)),
        }
    }

    /// A count of things that take at least two bytes each.
    fn count(&mut self, what: &str) -> Result<usize, Refusal> {
        let count = self.size()?;
        self.input.require(count, 2, &format!("{count} {what}"))?;
        Ok(count as usize)
    }

    /// The physical groups of each entity.
    fn entities(&mut self) -> Result<(), Refusal> {
        let counts = [self.count("points")?, self.count("curves")?, self.count("surfaces")?, self.count("volumes")?];
        for (dimension, count) in counts.into_iter().enumerate() {
            for _ in 0..count {
                let entity = self.int()?;
                let corners = if dimension == 0 && self.version == Version::FourOne { 3 } else { 6 };
                for _ in 0..corners {
                    self.double()?;
                }
                for group in 0..self.count("groups")? {
                    let tag = self.int()?;
                    if group == 0 {
                        self.groups.insert((dimension as i64, entity), tag as i32);
                    }
                }
                if dimension > 0 {
                    for _ in 0..self.count("bounding entities")? {
                        self.int()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, tag: u64, place: [f64; 3]) -> Result<(), Refusal> {
        let point =
            u32::try_from(self.points.len() / 3).map_err(|_| Refusal::new("", "fewer than 2³² nodes", "more"))?;
        require(self.nodes.insert(tag, point).is_none(), || {
            Refusal::new("", "each node once", format!("node {tag} twice"))
        })?;
        self.points.extend(place);
        Ok(())
    }

    fn place(&mut self) -> Result<[f64; 3], Refusal> {
        Ok([self.double()?, self.double()?, self.double()?])
    }

    fn old_nodes(&mut self) -> Result<(), Refusal> {
        let count: usize = self.input.number("the number of nodes")?;
        self.input.require(count as u64, 4, &format!("{count} nodes"))?;
        self.after_line()?;
        for _ in 0..count {
            let tag = self.tag()?;
            let place = self.place()?;
            self.node(tag, place)?;
        }
        Ok(())
    }

    /// Bytes begin on the next line.
    fn after_line(&mut self) -> Result<(), Refusal> {
        if self.order.is_some() { self.input.rest_of_line().map(drop) } else { Ok(()) }
    }

    /// The head of a block: entity and dimension, in the order of the version, and two more numbers.
    fn block(&mut self) -> Result<(i64, i64, i64, usize), Refusal> {
        let (first, second, third) = (self.int()?, self.int()?, self.int()?);
        let count = self.count("things of a block")?;
        let (dimension, entity) = if self.version == Version::FourOne { (first, second) } else { (second, first) };
        Ok((dimension, entity, third, count))
    }

    fn nodes(&mut self) -> Result<(), Refusal> {
        let blocks = self.count("blocks")?;
        self.size()?; // all nodes
        if self.version == Version::FourOne {
            self.size()?; // least number
            self.size()?; // greatest number
        }
        for _ in 0..blocks {
            let (dimension, _, parametric, count) = self.block()?;
            let parameters = if parametric != 0 { dimension.clamp(0, 3) } else { 0 };
            let mut tags: Vec<Option<u64>> = memory::filled(None, count).map_err(|reason| broken(&reason))?;
            if self.version == Version::FourOne {
                for tag in &mut tags {
                    *tag = Some(self.size()?); // the numbers of all nodes, then their places
                }
            }
            for tag in tags {
                let tag = tag.map_or_else(|| self.tag(), Ok)?;
                let place = self.place()?;
                for _ in 0..parameters {
                    self.double()?;
                }
                self.node(tag, place)?;
            }
        }
        Ok(())
    }

    fn elements(&mut self) -> Result<(), Refusal> {
        let blocks = self.count("blocks")?;
        self.size()?; // all elements
        if self.version == Version::FourOne {
            self.size()?;
            self.size()?;
        }
        for _ in 0..blocks {
            let (dimension, entity, kind, count) = self.block()?;
            let element = known(kind)?;
            let group = self.groups.get(&(dimension, entity)).copied().unwrap_or(0);
            for _ in 0..count {
                let tag = self.tag()?;
                self.element(element, tag, group, entity as i32)?;
            }
        }
        Ok(())
    }

    /// The nodes of one element.
    fn element(&mut self, element: &Element, tag: u64, group: i32, entity: i32) -> Result<(), Refusal> {
        let mut corners = [0; 27];
        for corner in &mut corners[..element.order.len()] {
            let node = self.tag()?;
            let found = self.nodes.get(&node).copied();
            *corner = found
                .ok_or_else(|| Refusal::new(format!("element {tag}"), "a node of the file", format!("node {node}")))?;
        }
        self.elements.insert(tag, self.cells.len() as u32);
        self.cells.push(element.kind, element.order.iter().map(|&place| corners[place]));
        self.physical.push(group);
        self.geometrical.push(entity);
        Ok(())
    }

    fn old_elements(&mut self) -> Result<(), Refusal> {
        let count: usize = self.input.number("the number of elements")?;
        self.input.require(count as u64, 4, &format!("{count} elements"))?;
        self.after_line()?;
        let mut done = 0;
        while done < count {
            // As text each element says its type; in binary files a block does.
            let (first, second, third) = (self.int()?, self.int()?, self.int()?);
            let (kind, block, tags) = if self.order.is_none() { (second, 1, third) } else { (first, second, third) };
            let element = known(kind)?;
            require((1..=count as i64 - done as i64).contains(&block) && (0..=1 << 16).contains(&tags), || {
                Refusal::new("elements", "blocks of them with few tags", format!("{block} elements with {tags} tags"))
            })?;
            for _ in 0..block {
                let tag = if self.order.is_none() { first as u64 } else { self.tag()? };
                let mut own = [0, 0];
                for place in 0..tags as usize {
                    let value = self.int()?;
                    own.iter_mut().skip(place).take(1).for_each(|slot| *slot = value as i32);
                }
                self.element(element, tag, own[0], own[1])?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Values on nodes or elements: tags as text, then numbers.
    fn data(&mut self, owner: usize) -> Result<(), Refusal> {
        let texts: usize = self.input.number("the number of texts")?;
        self.input.require(texts as u64, 1, "texts")?;
        self.input.rest_of_line()?;
        let mut name = String::new();
        for text in 0..texts {
            let line = self.input.rest_of_line()?.unwrap_or_default();
            if text == 0 {
                name = line.trim().trim_matches('"').to_owned();
            }
        }
        for _ in 0..self.input.number::<u16>("the number of numbers")? {
            self.input.number::<f64>("a number")?;
        }
        let mut sizes = Vec::new();
        for _ in 0..self.input.number::<u16>("the number of sizes")? {
            sizes.push(self.input.number::<u64>("a size")?);
        }
        let (Some(&components), Some(&count)) = (sizes.get(1), sizes.get(2)) else {
            return Err(Refusal::new("", "a number of components and a number of entries", format!("{sizes:?}")));
        };
        self.after_line()?;
        require(components <= 1 << 16, || Refusal::new("", "few components", components.to_string()))?;
        self.input.require(count, 2 * (components + 1), &format!("{count} entries"))?;
        let mut values = Vec::new();
        for _ in 0..count {
            let tag = self.int()? as u64;
            let own: Result<Vec<f64>, Refusal> = (0..components).map(|_| self.double()).collect();
            values.push((tag, own?));
        }
        require(self.data[owner].iter().all(|other| other.name != name), || {
            let title = format!("data `{}`", shortened(&name).escape_debug());
            Refusal::new(title, "values of one time", "a second section of the same name")
                .advise("save each time step as a file of its own, and list the files with their times in a .pvd file")
        })?;
        self.data[owner].push(Data { name, components: components as usize, values });
        Ok(())
    }

    fn finish(self) -> Result<Mesh, Refusal> {
        let (points, cells) = (self.points.len() / 3, self.cells.len());
        let mut mesh = Mesh::new(Shape::Unstructured { points: Numbers::F64(self.points), cells: self.cells });
        for (name, values) in [("gmsh:physical", self.physical), ("gmsh:geometrical", self.geometrical)] {
            if values.iter().any(|&value| value != 0) {
                mesh.cell_data.push(DataArray { name: name.into(), components: 1, values: Numbers::I32(values) });
            }
        }
        let [on_nodes, on_elements] = self.data;
        mesh.point_data = on_nodes.into_iter().map(|data| data.array(&self.nodes, points)).collect::<Result<_, _>>()?;
        for data in on_elements {
            // meshio writes the marks of the elements a second time, as data
            if mesh.cell_data.iter().all(|other| other.name != data.name) {
                mesh.cell_data.push(data.array(&self.elements, cells)?);
            }
        }
        Ok(mesh)
    }
}

impl Data {
    /// One group of values for each point or cell; what the file does not give is not a number.
    fn array(self, places: &HashMap<u64, u32>, count: usize) -> Result<DataArray, Refusal> {
        let Data { name, components, values } = self;
        let given = values.len();
        let title = format!("data `{}`", shortened(&name).escape_debug());
        require(components > 0 && count <= given.saturating_mul(64) + 64, || {
            Refusal::new(title.clone(), format!("values for {count}"), given.to_string())
        })?;
        let total = count.saturating_mul(components);
        let mut numbers = memory::filled(f64::NAN, total).map_err(|reason| broken(&reason))?;
        // meshio counts values from 1 on, whatever the numbers of the elements are.
        let in_order = given == count && values.iter().any(|(tag, _)| !places.contains_key(tag));
        for (row, (tag, own)) in values.into_iter().enumerate() {
            let place = if in_order { Some(row) } else { places.get(&tag).map(|&place| place as usize) };
            let place = place.ok_or_else(|| Refusal::new(&*title, "numbers of the file", tag.to_string()))?;
            numbers[place * components..][..components].copy_from_slice(&own);
        }
        Ok(DataArray { name, components, values: Numbers::F64(numbers) })
    }
}

fn known(kind: i64) -> Result<&'static Element, Refusal> {
    ELEMENTS.iter().find(|row| row.gmsh == kind).ok_or_else(|| {
        let expected = "elements of first and second order (Gmsh types 1 to 12 and 15 to 19)";
        Refusal::new("type of elements", expected, kind.to_string())
    })
}
