//! Arrays of your own: which arrays are which field, and what their axes are.

use super::axes::{Context, MOST_CHANNELS};
use super::cells::{Meshes, files_beside};
use super::column::{Column, Piece, thinned};
use super::field::Shared;
use super::glob;
use super::partition::Sizes;
use super::sources::Sources;
use super::windows::Windows;
use super::write::Import;
use crate::data::dataset::{Error, FieldEntry, Manifest, Normalise, Ragged, Role, Rule, Series};
use crate::data::mesh::is_mesh_name;
use crate::error::counted;
use crate::task::Spread;
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};

/// An array of more values is no list of times, unless there are as many snapshots.
const MOST_TIMES: usize = 1 << 16;

/// Arrays of an import at most: the manifest lists them, and has at most sixteen million bytes.
const MOST_ARRAYS: usize = 40_000;

/// The description of an import: arrays, and what they are.
#[derive(Clone, Debug)]
pub struct Own {
    /// Name of the data set.
    pub name: String,
    /// The grid of the arrays.
    pub grid: Grid,
    /// Points of each sample, where their numbers differ: a file for each sample, on a cloud of the points of the largest. Empty
    /// where all samples have the points of the grid.
    pub ragged: Vec<usize>,
    /// Distance of the rows and columns that are read: 1 reads all, 2 every second.
    pub stride: usize,
    /// Positions, inputs and outputs.
    pub fields: Vec<OwnField>,
    /// Times of the snapshots.
    pub times: Option<ArrayName>,
    /// Cuts the time series of the files into samples; without it, each time series is a sample.
    pub windows: Option<Windows>,
    /// Samples to train and to test on; without it, `sizes` and the files decide.
    pub split: Option<Rule>,
    /// What is said about the split where there is no rule.
    pub sizes: Sizes,
}

/// One field of the data set.
#[derive(Clone, Debug)]
pub struct OwnField {
    /// Name of small letters, digits, `_` and `-`.
    pub name: String,
    /// What a neural operator uses it for.
    pub role: Role,
    /// Unit of its values.
    pub unit: String,
    /// What a training run does to its values before a model sees them.
    pub normalise: Normalise,
    /// A letter for each axis of its arrays: n samples, t snapshots, x rows, y columns, p points, c channels, 1 an axis of
    /// length 1; without it, they are found by the shape. The points of a line are p or x.
    pub axes: Option<String>,
    /// Its arrays: the outer list is joined along the samples, the inner lists along the channels. Several arrays without an
    /// axis of samples are a sample each; a single one is the same for all samples.
    pub arrays: Vec<Vec<ArrayName>>,
}

/// A file, and the name of the array if the file holds several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayName {
    /// The file.
    pub path: PathBuf,
    /// The array.
    pub variable: Option<String>,
}

impl ArrayName {
    /// `FILE` or `FILE:VARIABLE`; a text that is the name of an existing file is the file.
    pub fn parse(text: &str) -> ArrayName {
        match text.rsplit_once(':') {
            Some((path, variable)) if !path.is_empty() && !variable.is_empty() && !Path::new(text).exists() => {
                ArrayName { path: path.into(), variable: Some(variable.into()) }
            }
            _ => ArrayName { path: text.into(), variable: None },
        }
    }
}

impl Own {
    /// Reads the header of every array, finds its axes and compares the sizes.
    pub fn import(&self) -> Result<Import, Error> {
        if !self.fields.iter().any(|field| field.role == Role::Output) {
            return Err(Error::unfit("the import".into(), "at least one output".into(), "none".into(), "add --output"));
        }
        if self.stride == 0 {
            return Err(Error::Number { what: "stride", expected: "1 or more".into(), found: "0".into() });
        }
        if self.stride > 1 && matches!(self.grid, Grid::Line { .. } | Grid::Cloud { .. }) {
            let (expected, found) = ("1 where the grid is no plane or volume".into(), self.stride.to_string());
            return Err(Error::Number { what: "stride", expected, found });
        }
        check_words("--name", &self.name)?;
        if matches!(self.grid, Grid::Cloud { .. }) && self.fields.iter().all(|field| field.role != Role::Position) {
            let advice = "name them with --positions FILE, or choose --grid line:POINTS where the points lie in a row";
            return Err(Error::unfit("a cloud".into(), "the positions of its points".into(), "none".into(), advice));
        }
        self.check_ragged()?;
        self.windows.map_or(Ok(()), Windows::check)?;
        let arrays = self.fields.iter().flat_map(|field| &field.arrays).map(Vec::len).sum::<usize>();
        if arrays > MOST_ARRAYS {
            let expected = format!("at most {MOST_ARRAYS} arrays");
            return Err(Error::unfit(
                "the import".into(),
                expected,
                arrays.to_string(),
                "join files of several samples",
            ));
        }
        let mut sources = Sources::default();
        let shared = self.shared(&mut sources)?;
        let (mut columns, mut notes, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for field in &self.fields {
            field.check_name(&names)?;
            check_words("--unit", &field.unit)?;
            let column = match field.is_ragged(&self.ragged, &mut sources)? {
                true => field.ragged_column(&self.ragged, &shared, &mut sources)?,
                false => field.column(&shared, &mut sources)?,
            };
            field.check_column(&column, self.windows.is_some())?;
            notes.extend(field.note(&column));
            names.push(field.name.as_str());
            columns.push(column);
        }
        if let Some([file, other]) = glob::strangers(self.lists()) {
            let advice = "give the files of the same cases for each field";
            let expected = format!("the partner of {other}");
            return Err(Error::unfit(file, expected, "another case in its name".into(), advice));
        }
        let series = self.windows.map(|windows| Ok::<_, Error>((windows, self.cut(&mut columns)?))).transpose()?;
        let samples = self.samples(&columns)?;
        self.check_outputs(&columns)?;
        let times = self.times(&columns, &mut notes, &mut sources)?;
        sources.close();
        let series = series.as_ref().map(|(windows, counts)| (*windows, counts.as_slice()));
        let split = match &self.split {
            Some(rule) => rule.clone(),
            None => {
                let (rule, note) = self.sizes.choose(samples, &columns, series)?;
                notes.extend(note);
                rule
            }
        };
        if samples == 1 && self.sizes == Sizes::default() {
            let expected = "at least 2 samples, one to train on and one to test on".into();
            let advice = "import more samples, or say --train 0 for a data set that is only a test set";
            return Err(Error::unfit("the import".into(), expected, "1 sample".into(), advice));
        }
        if split.split(samples)?.test.is_empty() {
            let (what, expected) = ("the import".into(), "at least 1 sample to test on".into());
            let advice = "give a number with --test; --train 0 makes a data set that is only a test set";
            return Err(Error::unfit(what, expected, format!("none of {}", counted(samples, "sample")), advice));
        }
        let grid = thinned(self.grid, self.stride);
        let entries = self.fields.iter().zip(&columns).map(|(field, column)| field.entry(column, grid)).collect();
        let manifest = Manifest::imported(&self.name, self.parameters(series), grid, split, samples, entries);
        let sizes = match series {
            // The windows of a time series have its points.
            Some((_, counts)) => self
                .ragged
                .iter()
                .zip(counts)
                .flat_map(|(&points, &count)| std::iter::repeat_n(points, count))
                .collect(),
            None => self.ragged.clone(),
        };
        let ragged = (!sizes.is_empty()).then(|| Ragged::of(&sizes));
        let manifest = Manifest { ragged, ..manifest };
        for (field, column) in manifest.fields.iter().zip(&columns) {
            if manifest.is_ragged_field(field) != (column.is_ragged() && manifest.ragged.is_some()) {
                let (thing, expected) =
                    (format!("field `{}`", field.name), "values at the points of each sample".into());
                let advice = "give a file for each sample, with its points along one axis";
                return Err(Error::unfit(thing, expected, format!("shape {:?}", field.shape), advice));
            }
        }
        let meshes = Meshes::of(&self.fields).filter(|_| matches!(grid, Grid::Cloud { .. }));
        let meshes = match series {
            Some((_, counts)) => meshes.and_then(|meshes| meshes.repeated(counts)),
            None => meshes,
        };
        let triangles = meshes.as_ref().map(Meshes::unwritten);
        let manifest = Manifest { times, triangles, ..manifest };
        let (all, beside) = (0..samples, files_beside(&self.fields));
        Ok(Import { manifest, columns, selected: vec![all], sources, notes, meshes, beside })
    }

    /// What all fields share; looks at the outputs and the times first, which help to find the axes of the rest.
    fn shared(&self, sources: &mut Sources) -> Result<Shared, Error> {
        let count = |shape: Vec<usize>| shape.iter().fold(1, |count: usize, &extent| count.saturating_mul(extent));
        let times = match &self.times {
            Some(name) => Some(count(sources.file(&name.path)?.describe(name.variable.as_deref())?.shape)),
            None => None,
        };
        let context = Context { windows: self.windows.is_some(), times, ..Context::default() };
        let mut shared = Shared { grid: self.grid, stride: self.stride, windows: self.windows, context };
        if self.windows.is_none() && !self.ragged.is_empty() {
            shared.context.samples = Some(self.ragged.len());
            return Ok(shared);
        }
        let output = self.fields.iter().find(|field| field.role == Role::Output);
        let column = output.and_then(|output| output.column(&shared, sources).ok()); // an error comes in its turn
        match self.windows {
            None => {
                shared.context.samples = column.filter(|column| !column.is_common()).map(|column| column.samples());
            }
            Some(_) => {
                let column = column.filter(|column| column.pieces().all(|piece| piece.snapshots().is_some()));
                let pieces = || column.iter().flat_map(|column| &column.parts).filter_map(|part| part.pieces().first());
                let series = pieces().map(|piece| piece.samples() / piece.windows().max(1)).sum();
                shared.context.snapshots = pieces().next().map(Piece::all_snapshots);
                shared.context.series = shared.context.snapshots.map(|_| series);
            }
        }
        Ok(shared)
    }

    /// The settings of the import that stand in the manifest.
    fn parameters(&self, series: Option<(Windows, &[usize])>) -> toml::Table {
        let mut table = toml::Table::new();
        let mut insert = |key: &str, value: usize| table.insert(key.to_owned(), toml::Value::from(value as i64));
        if self.stride > 1 {
            insert("stride", self.stride);
        }
        if let Some((Windows { window, horizon, step }, counts)) = series {
            for (key, value) in [("window", window), ("horizon", horizon), ("step", step)] {
                insert(key, value);
            }
            table.extend(Series::parameter(counts));
        }
        table
    }

    /// How many windows each time series has. A field without snapshots is repeated for the windows of its series.
    fn cut(&self, columns: &mut [Column]) -> Result<Vec<usize>, Error> {
        let moves = |column: &&Column| column.pieces().any(|piece| piece.snapshots().is_some());
        let mut moving = self.fields.iter().zip(columns.iter()).filter(|(_, column)| moves(column));
        let Some((given, leading)) = moving.next() else {
            return Err(self.without_snapshots(columns));
        };
        for (field, column) in moving {
            check_lengths((given, leading), (field, column))?;
        }
        let first = leading.parts.iter().filter_map(|part| part.pieces().first());
        let counts = |piece: &Piece| std::iter::repeat_n(piece.windows(), piece.samples() / piece.windows().max(1));
        let counts: Vec<usize> = first.flat_map(counts).collect();
        for (field, column) in self.fields.iter().zip(columns.iter_mut()) {
            if moves(&&*column) || column.is_common() {
                continue;
            }
            if column.has_a_part_for_each(counts.len()) {
                column.repeat(&counts);
                continue;
            }
            if let Some(other) = counts.iter().find(|&&count| count != counts[0]) {
                let expected = "snapshots, or time series of the same length beside it".into();
                let found = format!("series of {} and {other} windows", counts[0]);
                return Err(Error::unfit(field.title(), expected, found, "import series of one length together"));
            }
            column.repeat(&counts[..counts.len().min(1)]);
        }
        Ok(counts)
    }

    /// Refuses windows of fields that have no snapshots on the grid; the advice names a grid that the first output would fit.
    fn without_snapshots(&self, columns: &[Column]) -> Error {
        let outputs = self.fields.iter().zip(columns).filter(|(field, _)| field.role == Role::Output);
        let Some((field, piece)) = outputs.filter_map(|(field, column)| Some((field, column.pieces().next()?))).next()
        else {
            let expected = "a field with snapshots".into();
            return Error::unfit("--window".into(), expected, "none".into(), "give an output with --output");
        };
        let extents = piece.extents_of_file();
        let expected = format!("snapshots of a {} to cut windows from", self.grid);
        let found = format!("shape {extents:?}, read as {} (axes {})", piece.described(), piece.axes());
        let advice = match (self.grid, &extents[..]) {
            (Grid::Line { .. }, &[one, other]) if one != other && field.axes.is_none() => {
                format!("say --grid line:{one} if it has {other} snapshots, or --grid line:{other} if it has {one}")
            }
            _ if is_mesh_name(&piece.path) => {
                "a mesh file is one time: list the files of each time series, with their times, in a .pvd file".into()
            }
            _ => format!("check --grid, or name the axis of the snapshots (t) with --axes {}=LETTERS", field.name),
        };
        Error::unfit(format!("--window and {}", field.title()), expected, found, advice)
    }

    /// The names of each field's arrays, one for each file; several lists where arrays stand side by side.
    fn lists(&self) -> impl Iterator<Item = Vec<String>> {
        self.fields.iter().flat_map(|field| {
            let sides = field.arrays.first().map_or(0, Vec::len);
            let side = |side: usize| field.arrays.iter().filter_map(|arrays| Some(arrays.get(side)?.title())).collect();
            (0..sides).map(side).collect::<Vec<_>>()
        })
    }

    /// The number of samples, which all fields must have.
    fn samples(&self, columns: &[Column]) -> Result<usize, Error> {
        let mut first: Option<(String, usize)> = None;
        for (field, column) in self.fields.iter().zip(columns).filter(|(_, column)| !column.is_common()) {
            let (name, found) = (field.title(), column.samples());
            let (other, expected) = first.get_or_insert_with(|| (name.clone(), found));
            if found != *expected {
                let expected = format!("{}, as {other} holds", counted(*expected, "sample"));
                return Err(Error::unfit(name, expected, found.to_string(), "each sample needs all its fields"));
            }
        }
        match first {
            Some((_, samples)) if samples > 0 => Ok(samples),
            Some((name, _)) => Err(Error::unfit(name, "samples".into(), "none".into(), "check the file")),
            None => unreachable!("an output has samples"),
        }
    }

    /// Refuses an output that has neither a value at every point of the grid nor a few numbers for each sample.
    fn check_outputs(&self, columns: &[Column]) -> Result<(), Error> {
        let grid = thinned(self.grid, self.stride);
        for (field, column) in self.fields.iter().zip(columns).filter(|(field, _)| field.role == Role::Output) {
            if column.parts[0].pieces()[0].is_over_points() {
                continue;
            }
            let numbers = column.channels();
            let expected = format!("an output with a value at every point of the grid {:?}", self.grid.shape());
            let found = format!("{:?} for each sample", column.shape());
            let spread = field.entry(column, grid).on(grid).map(|field| field.spread);
            let advice = match spread {
                Ok(Spread::Sample) if field.axes.is_some() || numbers <= MOST_CHANNELS => continue,
                Ok(Spread::Sample) => {
                    format!(
                        "check --grid; if these are {numbers} numbers for each sample, say --axes {}=nc",
                        field.name
                    )
                }
                Err(_) => format!("reshape it to {:?} for each sample", grid.shape()), // the points in one row
                _ => format!("check --grid; if these are numbers for each sample, say --axes {}=nc", field.name),
            };
            return Err(Error::unfit(field.title(), expected, found, advice));
        }
        Ok(())
    }

    /// Times of the snapshots; refuses another number of times than of snapshots.
    fn times(&self, columns: &[Column], notes: &mut Vec<String>, sources: &mut Sources) -> Result<Vec<f64>, Error> {
        let Some(name) = &self.times else { return Ok(Vec::new()) };
        let file = sources.file(&name.path)?;
        let all = |column: &Column| {
            let piece = column.pieces().next()?;
            piece.snapshots().map(|_| piece.all_snapshots())
        };
        let snapshots = columns.iter().filter_map(all).max();
        let info = file.describe(name.variable.as_deref())?;
        let found = info.shape.iter().fold(1, |count: usize, &extent| count.saturating_mul(extent));
        if found > snapshots.unwrap_or(0).max(MOST_TIMES) {
            let found = format!("shape {:?}", info.shape); // it is not read: it may be of any size
            return Err(Error::unfit(name.title(), "one time for each snapshot".into(), found, "name another array"));
        }
        let array = file.read(name.variable.as_deref())?;
        if array.shape.iter().filter(|&&extent| extent != 1).count() > 1 {
            let found = format!("shape {:?}", array.shape);
            return Err(Error::unfit(name.title(), "one row of times".into(), found, "name another array"));
        }
        let times = array.values.into_f64();
        if let Some(index) = times.iter().position(|time| !time.is_finite()) {
            let found = format!("{} at index {index}", times[index]);
            return Err(Error::unfit(name.title(), "finite times".into(), found, "correct the file"));
        }
        if let Some(pair) = times.windows(2).find(|pair| pair[0] >= pair[1]) {
            let (expected, found) = ("times, each later than the one before", format!("{} after {}", pair[1], pair[0]));
            return Err(Error::unfit(name.title(), expected.into(), found, "sort the snapshots and their times"));
        }
        if snapshots.is_none() {
            let advice = "name the axis of the snapshots (t) with --axes, or leave --time out";
            return Err(Error::unfit(name.title(), "a field with snapshots".into(), "none".into(), advice));
        }
        for (field, column) in self.fields.iter().zip(columns) {
            if let Some(snapshots) = all(column).filter(|&snapshots| snapshots != times.len()) {
                let expected = format!("{snapshots} times, one for each snapshot of {}", field.title());
                let advice = "give the times of these snapshots, name their axis (t) with --axes, or leave --time out";
                return Err(Error::unfit(name.title(), expected, times.len().to_string(), advice));
            }
        }
        let Some(windows) = self.windows else { return Ok(times) };
        if is_even(&times) {
            return Ok(times.into_iter().take(windows.length()).collect()); // every window has the same times, moved
        }
        notes.push(format!("{}: the snapshots are not equally spaced, so their times are left out", name.title()));
        Ok(Vec::new())
    }
}

/// Refuses a field whose time series have other lengths than those of the field `first`: their windows would not belong together.
fn check_lengths(first: (&OwnField, &Column), other: (&OwnField, &Column)) -> Result<(), Error> {
    let [(given, expected), (field, found)] = [first, other].map(|(field, column)| (field, column.series()));
    if expected == found {
        return Ok(());
    }
    let advice = "the snapshots of all fields must be those of the same times: give series of the same lengths, in the same order";
    let apart = expected.iter().zip(&found).position(|(expected, found)| expected != found);
    let (expected, found) = match apart {
        Some(place) if expected.len() == found.len() => {
            let told = |lengths: &[usize]| format!("{} in series {place}", counted(lengths[place], "snapshot"));
            (told(&expected), told(&found))
        }
        _ => (format!("{} time series", expected.len()), found.len().to_string()),
    };
    Err(Error::unfit(field.title(), format!("{expected}, as {} has", given.title()), found, advice))
}

/// Whether times are equally spaced, up to the rounding of single precision.
pub(crate) fn is_even(times: &[f64]) -> bool {
    let [first, .., last] = times else { return true };
    let step = (last - first) / (times.len() - 1) as f64;
    let bound = 1e-6 * (last - first).abs();
    times.iter().enumerate().all(|(index, time)| (time - first - index as f64 * step).abs() <= bound)
}

impl OwnField {
    /// Its entry in the manifest, with its axes where the shape alone would be read otherwise: as many snapshots as points, as many
    /// numbers for each sample as rows.
    fn entry(&self, column: &Column, grid: Grid) -> FieldEntry {
        let (common, normalise) = (column.is_common(), self.normalise);
        let plain =
            FieldEntry { common, normalise, ..FieldEntry::new(&self.name, self.role, &self.unit, column.shape()) };
        let lettered = FieldEntry { axes: Some(column.letters()), ..plain.clone() };
        match (plain.on(grid).ok(), lettered.on(grid).ok()) {
            (read, Some(meant)) if read.as_ref() != Some(&meant) => {
                let moves = meant.spread == Spread::Sample && meant.snapshots.is_some();
                if read.is_some() || self.axes.is_some() || moves { lettered } else { plain }
            }
            _ => plain,
        }
    }
}

/// Refuses a text with a control character, such as a newline: it would break the lines that show it.
fn check_words(flag: &str, text: &str) -> Result<(), Error> {
    if !text.contains(char::is_control) {
        return Ok(());
    }
    let expected = "a text without control characters".into();
    Err(Error::unfit(flag.into(), expected, format!("`{text}`"), "choose another"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_follows_the_last_colon_unless_the_whole_is_a_file() {
        let name =
            |path: &str, variable: Option<&str>| ArrayName { path: path.into(), variable: variable.map(Into::into) };
        assert_eq!(ArrayName::parse("flow.mat:sol"), name("flow.mat", Some("sol")));
        assert_eq!(ArrayName::parse("flow.h5:group/sol"), name("flow.h5", Some("group/sol")));
        assert_eq!(ArrayName::parse("flow.npy"), name("flow.npy", None));
        assert_eq!(ArrayName::parse("flow.npy:"), name("flow.npy:", None));
    }
}
