//! STL: the triangles of a surface, each with its three corners. Equal corners become one point.

use super::input::{CUT, Input, Opened, broken, shortened};
use super::kinds::TRIANGLE;
use super::mesh::{Cells, DataArray, Mesh, Shape};
use super::numbers::Numbers;
use crate::error::{Refusal, require};
use std::collections::HashMap;
use std::io::Read;

/// Bytes of the title and the number of triangles in a binary file.
const HEAD: u64 = 84;
/// Bytes of a triangle in a binary file: normal, corners, and two bytes without a meaning.
const FACET: u64 = 50;

/// A binary file has exactly the length that its number of triangles says; its title may begin with `solid`.
fn is_binary(start: &[u8], size: u64) -> bool {
    let count = start.get(80..84).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    // Any 84 bytes that end in zeros would be a file without triangles.
    count.is_some_and(|count| count > 0 && size == HEAD + FACET * u64::from(count))
}

pub(super) fn sniff(start: &[u8], size: u64) -> bool {
    let text = start.trim_ascii_start();
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default(); // `solid_fraction` is a column of a table
    is_binary(start, size) || word.eq_ignore_ascii_case(b"solid")
}

/// A surface whose equal corners are one point.
struct Surface {
    points: Vec<f64>,
    known: HashMap<[u64; 3], u32>,
    cells: Cells,
    /// Of each triangle, which solid of the file it belongs to.
    solids: Vec<i32>,
}

impl Surface {
    fn new() -> Surface {
        Surface { points: Vec::new(), known: HashMap::new(), cells: Cells::new(), solids: Vec::new() }
    }

    fn triangle(&mut self, corners: [[f64; 3]; 3], solid: i32) -> Result<(), Refusal> {
        let triangle = self.cells.len();
        let numbers = corners.as_flattened();
        require(numbers.iter().all(|number| number.is_finite()), || {
            Refusal::new(format!("triangle {triangle}"), "finite coordinates", format!("{numbers:?}"))
        })?;
        let corners = corners.map(|corner| {
            let next = (self.points.len() / 3) as u32;
            let key = corner.map(|number| (number + 0.0).to_bits()); // −0 is 0
            *self.known.entry(key).or_insert_with(|| {
                self.points.extend(corner);
                next
            })
        });
        self.cells.push(TRIANGLE, corners);
        self.solids.push(solid);
        Ok(())
    }

    fn finish(self) -> Mesh {
        let several = self.solids.last().is_some_and(|&last| last > 0);
        let points = Numbers::F32(self.points.iter().map(|&number| number as f32).collect());
        let mut mesh = Mesh::new(Shape::Surface { points, cells: self.cells });
        if several {
            mesh.cell_data.push(DataArray { name: "solid".into(), components: 1, values: Numbers::I32(self.solids) });
        }
        mesh
    }
}

pub(super) fn read(opened: &Opened) -> Result<Mesh, Refusal> {
    let mut start = Vec::new();
    opened.part(0, HEAD)?.read_to_end(&mut start).map_err(|reason| broken(&reason))?;
    if !is_binary(&start, opened.size) {
        return read_text(&mut opened.whole()?);
    }
    let mut input = opened.part(HEAD, opened.size)?;
    let mut surface = Surface::new();
    let mut facet = [0; FACET as usize];
    for _ in 0..(opened.size - HEAD) / FACET {
        input.read_exact(&mut facet).map_err(|reason| broken(&reason))?;
        let number = |place: usize| {
            let bytes = &facet[12 + 4 * place..][..4];
            f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        surface.triangle([0, 3, 6].map(|first| [number(first), number(first + 1), number(first + 2)]), 0)?;
    }
    Ok(surface.finish())
}

fn read_text(input: &mut Input) -> Result<Mesh, Refusal> {
    let mut surface = Surface::new();
    let mut corners: Vec<[f64; 3]> = Vec::new();
    let (mut solid, mut is_open) = (-1, false);
    while let Some(word) = input.word()? {
        match word.to_lowercase().as_str() {
            "solid" => {
                (solid, is_open) = (solid + 1, true);
                input.rest_of_line()?;
            }
            "facet" | "outer" | "endloop" => drop(input.rest_of_line()?),
            "vertex" => {
                let mut corner = [0.0_f64; 3];
                for number in &mut corner {
                    *number = f64::from(input.number::<f32>("a coordinate")?);
                }
                corners.push(corner);
            }
            "endfacet" => {
                let found = corners.len();
                let triangle = std::mem::take(&mut corners).try_into();
                surface.triangle(
                    triangle.map_err(|_| input.refuse("three corners of a facet", found.to_string()))?,
                    solid,
                )?;
            }
            "endsolid" => {
                is_open = false;
                input.rest_of_line()?;
            }
            other => return Err(input.refuse("a keyword of STL", format!("`{}`", shortened(other)))),
        }
    }
    require(!is_open && corners.is_empty(), || Refusal::new("", "endsolid", "the end of the file").advise(CUT))?;
    Ok(surface.finish())
}
