//! Arrays of your own: which arrays are which field, and what their axes are.

use super::axes::{self, ORDER};
use super::column::{Column, Part, Piece, thinned, title};
use super::sources::Sources;
use super::write::Import;
use crate::data::dataset::{Error, FieldEntry, Manifest, Normalise, Role, Rule};
use crate::error::counted;
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};

/// An array of more values is no list of times, unless there are as many snapshots.
const MOST_TIMES: usize = 1 << 16;

/// The description of an import: arrays, and what they are.
#[derive(Clone, Debug)]
pub struct Own {
    /// Name of the data set.
    pub name: String,
    /// The grid of the arrays.
    pub grid: Grid,
    /// Distance of the rows and columns that are read: 1 reads all, 2 every second.
    pub stride: usize,
    /// Positions, inputs and outputs.
    pub fields: Vec<OwnField>,
    /// Times of the snapshots.
    pub times: Option<ArrayName>,
    /// Samples to train and to test on; without it, the last sixth is the test set.
    pub split: Option<Rule>,
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
    /// A letter for each axis of its arrays: n samples, t snapshots, x rows, y columns, p points, c channels; without
    /// it, they are found by the shape.
    pub axes: Option<String>,
    /// Its arrays: the outer list is joined along the samples, the inner lists along the channels.
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

    fn title(&self) -> String {
        title(&self.path, self.variable.as_deref())
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
        if self.stride > 1 && !matches!(self.grid, Grid::Plane { .. }) {
            let (expected, found) = ("1 where the grid is not a plane".into(), self.stride.to_string());
            return Err(Error::Number { what: "stride", expected, found });
        }
        check_words("--name", &self.name)?;
        let (mut columns, mut sources) = (Vec::new(), Sources::default());
        let mut entries: Vec<FieldEntry> = Vec::new();
        for field in &self.fields {
            field.check_name(&entries)?;
            check_words("--unit", &field.unit)?;
            let column = field.column(&self.grid, self.stride, &mut sources)?;
            field.check_coordinates(&column)?;
            let common = !column.parts[0].pieces()[0].has_samples();
            let normalise = field.normalise;
            let shape = column.shape();
            entries.push(FieldEntry {
                common,
                normalise,
                ..FieldEntry::new(&field.name, field.role, &field.unit, shape)
            });
            columns.push(column);
        }
        let samples = self.samples(&entries, &columns)?;
        self.check_outputs(&columns)?;
        let times = self.times(&columns, &mut sources)?;
        sources.close();
        let split = self.split.clone().unwrap_or_else(|| Rule::default_for(samples));
        if split.split(samples)?.test.is_empty() {
            let (what, expected) = ("the import".into(), "at least 1 sample to test on".into());
            let advice = "give a number with --test; --train 0 makes a data set that is only a test set";
            return Err(Error::unfit(what, expected, format!("none of {}", counted(samples, "sample")), advice));
        }
        let stride = Some(("stride".to_owned(), toml::Value::from(self.stride as i64))).filter(|_| self.stride > 1);
        let (grid, parameters) = (thinned(self.grid, self.stride), stride.into_iter().collect());
        let manifest = Manifest::imported(&self.name, parameters, grid, split, samples, entries);
        let all = 0..samples;
        Ok(Import { manifest: Manifest { times, ..manifest }, columns, selected: vec![all], sources })
    }

    /// The number of samples, which all fields must have.
    fn samples(&self, entries: &[FieldEntry], columns: &[Column]) -> Result<usize, Error> {
        let mut first: Option<(String, usize)> = None;
        let fields = self.fields.iter().zip(entries).zip(columns);
        for ((field, _), column) in fields.filter(|((_, entry), _)| !entry.common) {
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

    /// Refuses an import without an output at every point of the grid.
    fn check_outputs(&self, columns: &[Column]) -> Result<(), Error> {
        let outputs = self.fields.iter().zip(columns).filter(|(field, _)| field.role == Role::Output);
        let mut elsewhere = outputs.clone().filter(|(_, column)| !column.parts[0].pieces()[0].is_over_points());
        match elsewhere.next() {
            Some((field, column)) if elsewhere.count() + 1 == outputs.count() => {
                let expected = format!("an output with a value at every point of the grid {:?}", self.grid.shape());
                let found = format!("{:?} for each sample", column.shape());
                Err(Error::unfit(field.title(), expected, found, "check --grid and --axes"))
            }
            _ => Ok(()),
        }
    }

    /// Times of the snapshots; refuses another number of times than of snapshots.
    fn times(&self, columns: &[Column], sources: &mut Sources) -> Result<Vec<f64>, Error> {
        let Some(name) = &self.times else { return Ok(Vec::new()) };
        let file = sources.file(&name.path)?;
        let snapshots = columns.iter().filter_map(|column| column.parts[0].pieces()[0].snapshots()).max();
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
        if columns.iter().all(|column| column.parts[0].pieces()[0].snapshots().is_none()) {
            let advice = "name the axis of the snapshots (t) with --axes, or leave --time out";
            return Err(Error::unfit(name.title(), "a field with snapshots".into(), "none".into(), advice));
        }
        for (field, column) in self.fields.iter().zip(columns) {
            let snapshots = column.parts[0].pieces()[0].snapshots();
            if let Some(snapshots) = snapshots.filter(|&snapshots| snapshots != times.len()) {
                let expected = format!("{snapshots} times, one for each snapshot of {}", field.title());
                let advice = "give the times of these snapshots, or name their axis (t) with --axes";
                return Err(Error::unfit(name.title(), expected, times.len().to_string(), advice));
            }
        }
        Ok(times)
    }
}

impl OwnField {
    /// The title of its first array in a sentence.
    fn title(&self) -> String {
        self.arrays.iter().flatten().next().map_or_else(|| self.name.clone(), ArrayName::title)
    }

    fn check_name(&self, before: &[FieldEntry]) -> Result<(), Error> {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        let name = &self.name;
        if name.is_empty() || !name.chars().all(plain) || name.len() > 64 {
            let expected = "a name of small letters, digits, `_` and `-`".into();
            return Err(Error::unfit("field".into(), expected, format!("`{name}`"), "choose another name"));
        }
        if before.iter().any(|field| field.name == *name) {
            let expected = "each name once among positions, inputs and outputs".into();
            return Err(Error::unfit("field".into(), expected, format!("`{name}` twice"), "choose another name"));
        }
        Ok(())
    }

    /// Refuses positions that have not 1 to 3 coordinates.
    fn check_coordinates(&self, column: &Column) -> Result<(), Error> {
        let found = column.channels();
        if self.role == Role::Position && !(1..=3).contains(&found) {
            let expected = "1 to 3 coordinates for each point".into();
            let advice = "check --grid, or name the axes with --axes, such as positions=pc";
            return Err(Error::unfit(self.title(), expected, found.to_string(), advice));
        }
        Ok(())
    }

    /// Refuses letters that are not axes, or occur twice.
    fn check_axes(&self) -> Result<(), Error> {
        let axes = self.axes.as_deref().unwrap_or_default();
        let letters = || axes.char_indices();
        let unknown = letters().find(|(_, letter)| !ORDER.contains(*letter)).map(|(_, letter)| format!("`{letter}`"));
        let twice = letters().find(|(index, letter)| axes[..*index].contains(*letter));
        let Some(found) = unknown.or(twice.map(|(_, letter)| format!("`{letter}` twice"))) else { return Ok(()) };
        let expected = "n samples, t snapshots, x rows, y columns, p points and c channels, each once at most";
        let advice = format!("give {} a letter for each axis", self.name);
        Err(Error::unfit(format!("--axes {}={axes}", self.name), expected.into(), found, advice))
    }

    /// Its arrays, checked against the grid and each other.
    fn column(&self, grid: &Grid, stride: usize, sources: &mut Sources) -> Result<Column, Error> {
        self.check_axes()?;
        if self.arrays.is_empty() || self.arrays.iter().any(Vec::is_empty) {
            let what = format!("field `{}`", self.name);
            return Err(Error::unfit(what, "an array".into(), "none".into(), "name its file"));
        }
        let mut column = Column::new(stride);
        for arrays in &self.arrays {
            let mut pieces: Vec<Piece> = Vec::new();
            for name in arrays {
                let piece = self.piece(name, arrays.len() > 1, grid, sources)?;
                if let Some(first) = pieces.first().filter(|first| first.samples() != piece.samples()) {
                    let expected = format!("{}, as {} holds", counted(first.samples(), "sample"), first.title());
                    let found = piece.samples().to_string();
                    let advice = "give arrays of the same samples";
                    return Err(Error::unfit(piece.title(), expected, found, advice));
                }
                if let Some(first) = pieces.first().filter(|first| !first.alike(&piece)) {
                    return Err(unlike(&piece, first));
                }
                pieces.push(piece);
            }
            let part = Part::new(pieces);
            if let Some(before) = column.parts.first() {
                check_join(before, &part)?;
            }
            column.parts.push(part);
        }
        Ok(column)
    }

    /// One array with its axes; arrays side by side have no axis of channels.
    fn piece(&self, name: &ArrayName, side_by_side: bool, grid: &Grid, sources: &mut Sources) -> Result<Piece, Error> {
        let info = sources.file(&name.path)?.describe(name.variable.as_deref())?;
        let fits = |axes: &str| axes.chars().count() == info.shape.len() && axes::fits(axes, &info.shape, grid);
        let axes = match &self.axes {
            Some(axes) => Some(axes.clone()).filter(|axes| axes::allowed(axes, self.role, grid) && fits(axes)),
            None => axes::candidates(self.role, side_by_side, grid).into_iter().find(|axes| fits(axes)),
        };
        let (path, variable) = (&name.path, name.variable.as_deref());
        axes.map(|axes| Piece::new(path, variable, &axes, &info, None)).ok_or_else(|| {
            let expected = match &self.axes {
                Some(axes) => format!("axes {axes} over a grid of {:?}", grid.shape()),
                None => format!("{} over a grid of {:?}", self.wanted(), grid.shape()),
            };
            let advice = "check --grid, or name the axes with --axes, such as u=xytn";
            Error::unfit(name.title(), expected, format!("shape {:?}", info.shape), advice)
        })
    }

    /// The axes that its arrays may have, in words.
    fn wanted(&self) -> &'static str {
        match self.role {
            Role::Position => "x and y for each point, for each sample or for all",
            Role::Input | Role::Output => "samples, then snapshots if any, points, channels if any",
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

/// Refuses a part that cannot be joined to the first part of its column.
fn check_join(first: &Part, part: &Part) -> Result<(), Error> {
    let ([before, ..], [piece, ..]) = (first.pieces(), part.pieces()) else { return Ok(()) };
    if !before.alike(piece) {
        return Err(unlike(piece, before));
    }
    let [expected, found] = [first, part].map(|part| counted(part.pieces().len(), "array"));
    if expected != found {
        let expected = format!("{expected} side by side, as {} begins", before.title());
        return Err(Error::unfit(piece.title(), expected, found, "give the same number of arrays each time"));
    }
    if !piece.has_samples() {
        let expected = "an axis of samples, along which arrays are joined".into();
        return Err(Error::unfit(
            piece.title(),
            expected,
            piece.words(),
            "name the axis (n) with --axes, or give one array",
        ));
    }
    Ok(())
}

fn unlike(piece: &Piece, first: &Piece) -> Error {
    let expected = format!("the shape of {} but for the samples, {}", first.title(), first.words());
    Error::unfit(piece.title(), expected, piece.words(), "give arrays with the same axes for one field")
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
