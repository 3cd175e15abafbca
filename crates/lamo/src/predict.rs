//! From a file of arrays to a file of predictions: fields shaped as in a data set, one sample or a row of them.
//!
//! A file needs the positions where the case has no lattice, and the input fields by name; where one array is all that
//! is needed it may have any name. The grid may differ from the one trained on, if the model allows it.

use crate::case::{Case, Course};
use crate::data::{self, Named};
use crate::error::{Error, counted};
use crate::field::{self, Field, Spread};
use crate::models::{Refusal, require};
use crate::samples::{Samples, functions, lattice};
use lamo_geometry::Grid;
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
    /// One sample on the grid trained on.
    trained: Vec<usize>,
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Given {
    /// How many samples, where there is an axis for them.
    fn samples(&self) -> Option<usize> {
        (self.shape.len() > self.trained.len()).then(|| self.shape[0])
    }

    /// One sample.
    fn sample(&self) -> &[usize] {
        &self.shape[usize::from(self.samples().is_some())..]
    }

    fn refuse(&self, expected: &str) -> Refusal {
        Refusal(format!("array `{}`: expected {expected}, found shape {:?}", self.field.name, self.shape))
    }

    /// The grid it lies on. Nothing is said of fields without a value at every point: they go with any grid.
    fn grid(&self, trained: Grid) -> Result<Grid, Refusal> {
        let plane = matches!(trained, Grid::Plane { .. });
        let as_trained = || {
            let expected = format!("samples of shape {:?}, on this or another grid", self.trained);
            format!("{}; bring it into that shape", self.refuse(&expected).0)
        };
        let flattened = || format!("{}; reshape it", self.refuse(&format!("samples of shape {:?}", self.trained)).0);
        let (axes, found) = (self.trained.len(), self.shape.len());
        require(axes <= found || !plane || !self.shape.contains(&trained.points()), flattened)?;
        require(found == axes || found == axes + 1, as_trained)?;
        require(self.samples() != Some(0), || self.refuse("at least one sample").0)?;
        let grid = match (trained, &self.sample()[usize::from(self.field.frames.is_some())..]) {
            (Grid::Plane { .. }, [rows, columns, ..]) => Grid::Plane { rows: *rows, columns: *columns },
            (Grid::Line { .. }, [points, ..]) => Grid::Line { points: *points },
            (Grid::Cloud { .. }, [points, ..]) => Grid::Cloud { points: *points },
            _ => trained,
        };
        let flat = |grid: Grid| match grid {
            // both axes as long as the points of a small grid are a finer grid, unless nothing says that they are axes
            Grid::Plane { rows, columns } if rows == columns && self.samples().is_some() => false,
            Grid::Plane { rows, columns } => [rows, columns].contains(&trained.points()),
            Grid::Line { .. } | Grid::Cloud { .. } => false,
        };
        require(grid == trained || !flat(grid), flattened)?;
        require(grid.points() > 0 && self.sample() == self.field.shape(grid), as_trained)?;
        Ok(grid)
    }
}

impl Question {
    /// Reads what a case asks for. Films are continued by `frames` frames, by default as many as in training.
    pub fn read(case: &Case, path: &Path, frames: Option<usize>) -> Result<Question, Error> {
        let arrays = read_arrays(case, path)?;
        let refuse = |reason: String| Refusal(format!("{}: {reason}", path.display()));
        let grid = find_grid(case, &arrays).map_err(|refusal| refuse(refusal.0))?;
        let leading = arrays.iter().find(|given| case.lattice || given.field.name != POSITIONS).or(arrays.first());
        let leading = leading.ok_or_else(|| refuse("the case asks for no input".to_owned()))?;
        for given in &arrays {
            // positions may be given once for all samples
            let shared = !case.lattice && given.field.name == POSITIONS && given.samples().is_none();
            require(shared || given.samples() == leading.samples(), || {
                let one = || "one sample without an axis for samples".to_owned();
                let expected = leading.samples().map_or_else(one, |count| counted(count, "sample"));
                refuse(given.refuse(&format!("{expected} as in `{}`", leading.field.name)).0).0
            })?;
        }
        let (single, count) = (leading.samples().is_none(), leading.samples().unwrap_or(1));
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

    /// The predictions `[count, times, points, outputs]` as arrays of the output fields; numbers that are not finite are no
    /// predictions.
    pub fn answer(&self, case: &Case, prediction: &[f32]) -> Result<Vec<Named>, Refusal> {
        let Samples { count, grid, times, .. } = self.samples;
        let points = grid.points();
        let length = (times * points * case.domain.outputs).max(1);
        let broken = prediction.chunks(length).position(|sample| sample.iter().any(|value| !value.is_finite()));
        require(broken.is_none(), || {
            format!(
                "sample {}: expected a prediction of finite numbers, found NaN or infinity; give inputs nearer to those \
                 trained on",
                broken.unwrap_or_default()
            )
        })?;
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
        Ok(named)
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
    let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
    let refuse = |reason: String| Refusal(format!("{}: {reason}", path.display()));
    let read = |field: Field| {
        let named = known.iter().any(|array| array.name == field.name);
        let array = match data::read(path, (named || !alone || known.len() != 1).then_some(field.name.as_str())) {
            Err(data::Error::Missing { known, .. }) => {
                let (expected, found) = (names.join(", "), data::listed(&known));
                let reason = format!("expected arrays named {expected}, found {found}; save the file with these names");
                return Err(refuse(reason).into());
            }
            array => array?,
        };
        if let Some(value) = array.values.beyond_f32() {
            let name = &field.name;
            let reason = format!("array `{name}`: expected values up to 3.4e38, as float32 has, found {value:e}");
            return Err(refuse(format!("{reason}; give it in another unit")).into());
        }
        let trained = field.shape(case.domain.grid);
        Ok(Given { field, trained, shape: array.shape, values: array.values.into_f32() })
    };
    fields.into_iter().map(read).collect()
}

/// The grid the arrays lie on: read off the first that has a value at every point, else the one trained on.
fn find_grid(case: &Case, arrays: &[Given]) -> Result<Grid, Refusal> {
    let trained = case.domain.grid;
    let spread = arrays.iter().find(|given| given.field.spread == Spread::Points);
    let grid = spread.map_or(Ok(trained), |given| given.grid(trained))?;
    for given in arrays {
        let expected = given.field.shape(grid);
        require(given.samples() != Some(0), || given.refuse("at least one sample").0)?;
        require(given.sample() == expected, || given.refuse(&format!("samples of shape {expected:?}")).0)?;
    }
    Ok(grid)
}
