//! From a file of arrays to a file of predictions: fields shaped as in a data set, one sample or a row of them.
//!
//! A file needs the positions where the case has no lattice, and the input fields by name; where one array is all that
//! is needed it may have any name. The grid may differ from the one trained on, if the model allows it.

use crate::case::{Case, Course};
use crate::data::{self, Named};
use crate::error::Error;
use crate::field::{self, Field, Spread};
use crate::models::{Refusal, require};
use crate::samples::{Samples, functions, lattice};
use lamo_physics::Grid;
use std::path::Path;

/// Samples read from a file, without targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The samples; how many times are asked for is part of them.
    pub samples: Samples,
    /// Whether the file held one sample without an axis for samples.
    pub single: bool,
}

/// One array with the field it is.
struct Given {
    field: Field,
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Question {
    /// Reads what a case asks for. Films are continued by `frames` frames, by default as many as in training.
    pub fn read(case: &Case, path: &Path, frames: Option<usize>) -> Result<Question, Error> {
        let arrays = read_arrays(case, path)?;
        let refuse = |reason: String| Refusal(format!("{}: {reason}", path.display()));
        let first = arrays.first().ok_or_else(|| refuse("the case asks for no input".to_owned()))?;
        let trained = first.field.shape(case.domain.grid);
        let single = first.shape.len() == trained.len();
        let flat = first.shape.last() == Some(&case.domain.grid.points()) && case.domain.grid.shape().len() > 1;
        require(!(single && flat && first.shape != trained), || {
            let name = &first.field.name;
            let found = &first.shape;
            refuse(format!("array `{name}`: expected samples of shape {trained:?}, found {found:?}; reshape it")).0
        })?;
        let grid = find_grid(case, &arrays, single);
        let mut count = 1;
        for given in &arrays {
            let expected = given.field.shape(grid);
            let found = if single { &given.shape[..] } else { given.shape.get(1..).unwrap_or_default() };
            require(found == expected && !given.shape.contains(&0), || {
                let name = &given.field.name;
                refuse(format!(
                    "array `{name}`: expected shape {expected:?}, or samples of it, found {:?}",
                    given.shape
                ))
                .0
            })?;
            let here = if single { 1 } else { given.shape[0] };
            require(count == 1 || here == count, || {
                refuse(format!("expected {count} samples in every array, found {here}")).0
            })?;
            count = count.max(here);
        }
        let position = arrays.iter().position(|given| !case.lattice && given.field.name == POSITIONS);
        let positions = match position {
            Some(place) => arrays[place].values.clone(),
            None => lattice(grid, case.scrambled)?,
        };
        let rest = arrays.iter().enumerate().filter(|(place, _)| Some(*place) != position).map(|(_, given)| given);
        let (fields, values): (Vec<Field>, Vec<Vec<f32>>) =
            rest.map(|given| (given.field.clone(), given.values.clone())).unzip();
        let inputs = match case.course {
            Course::Frames { past, .. } => {
                let width = case.domain.outputs;
                field::stack(&field::gather(&fields, &values, grid, [0, past]), [past, grid.points(), width])
            }
            _ => functions((&fields, &values), grid).0,
        };
        let times = match (case.course, frames) {
            (Course::Frames { frames: known, .. }, frames) => frames.unwrap_or(known),
            (_, None) => case.times(),
            (_, Some(frames)) => {
                return Err(refuse(format!("the model continues no film, it cannot predict {frames} frames")).into());
            }
        };
        let (space, functions, outputs) = (case.domain.space, case.domain.functions, case.domain.outputs);
        let samples = Samples { count, grid, space, positions, functions, inputs, times, outputs, targets: Vec::new() };
        case.check(&samples).map_err(|refusal| refuse(refusal.0))?;
        Ok(Question { samples, single })
    }

    /// The predictions `[count, times, points, outputs]` as arrays of the output fields.
    pub fn answer(&self, case: &Case, prediction: &[f32]) -> Vec<Named> {
        let Samples { count, grid, times, .. } = self.samples;
        let points = grid.points();
        let mut first = 0; // output function where the field begins
        let mut named = Vec::new();
        for output in &case.outputs {
            let field = match case.course {
                Course::Steady => output.clone(),
                _ => Field { frames: Some(times), ..output.clone() },
            };
            let (frames, width) = (field.length(), field.width());
            let functions = if case.course == Course::Steady { frames * width } else { width };
            let part = prediction.chunks_exact(case.domain.outputs).flat_map(|point| &point[first..first + functions]);
            let part: Vec<f32> = part.copied().collect();
            let values =
                if case.course == Course::Steady { field::unstack(&part, [frames, points, width]) } else { part };
            let samples = (!self.single).then_some(count);
            let shape = samples.into_iter().chain(field.shape(grid)).collect();
            named.push(Named { name: field.name, shape, values });
            first += functions;
        }
        named
    }
}

/// Name of the positions in a file.
const POSITIONS: &str = "positions";

/// The arrays a case needs: positions first.
fn read_arrays(case: &Case, path: &Path) -> Result<Vec<Given>, Error> {
    let mut fields = Vec::new();
    if !case.lattice {
        let channels = Some(case.domain.space);
        fields.push(Field { channels, ..Field::plain(POSITIONS, 1) });
    }
    match case.course {
        Course::Frames { past, .. } => {
            fields.extend(case.outputs.iter().map(|field| Field { frames: Some(past), ..field.clone() }));
        }
        _ => fields.extend(case.inputs.iter().cloned()),
    }
    let known = data::list(path)?;
    if known.is_empty() {
        data::describe(path, None)?; // says what is there instead of real numbers
    }
    let alone = fields.len() == 1;
    let read = |field: Field| {
        let named = known.iter().any(|array| array.name == field.name);
        let array = data::read(path, (named || !alone || known.len() != 1).then_some(field.name.as_str()))?;
        Ok(Given { field, shape: array.shape, values: array.values.into_f32() })
    };
    fields.into_iter().map(read).collect()
}

/// The grid the arrays lie on: read off the first that has a value at every point, else the one trained on.
fn find_grid(case: &Case, arrays: &[Given], single: bool) -> Grid {
    let trained = case.domain.grid;
    let spread = arrays.iter().find(|given| given.field.spread == Spread::Points);
    let Some(given) = spread else { return trained };
    let before = usize::from(!single) + usize::from(given.field.frames.is_some());
    match (trained, given.shape.get(before..).unwrap_or_default()) {
        (Grid::Plane { .. }, [rows, columns, ..]) => Grid::Plane { rows: *rows, columns: *columns },
        (Grid::Line { .. }, [points, ..]) => Grid::Line { points: *points },
        (Grid::Cloud { .. }, [points, ..]) => Grid::Cloud { points: *points },
        _ => trained,
    }
}
