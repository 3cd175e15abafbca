//! Arrays of one's own: which file is which field, and which axis is what.

use super::import::{Column, Import, ORDER, Part, Piece, title};
use super::public::thinned;
use crate::data::dataset::{Error, FieldEntry, Manifest, Normalise, Role, Rule};
use crate::data::formats;
use crate::error::counted;
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};

/// Arrays, and what they mean.
#[derive(Clone, Debug)]
pub struct Own {
    /// Of the data set.
    pub name: String,
    /// As the files have it.
    pub grid: Grid,
    /// Every so many-th row and column is kept.
    pub stride: usize,
    /// Positions, inputs and outputs.
    pub fields: Vec<OwnField>,
    /// When the frames of the films were taken.
    pub times: Option<ArrayName>,
    /// Samples to train and to test on; the last sixth to test on unless given.
    pub split: Option<Rule>,
}

/// One field.
#[derive(Clone, Debug)]
pub struct OwnField {
    /// Small letters, digits, `_` and `-`.
    pub name: String,
    /// What it is to an operator.
    pub role: Role,
    /// Of its values.
    pub unit: String,
    /// What is done to it before a model sees it.
    pub normalise: Normalise,
    /// A letter for each axis of its arrays: n samples, t frames, x rows, y columns, p points, c channels; found by
    /// the shape unless given.
    pub axes: Option<String>,
    /// Arrays joined along the samples, each of arrays joined along the channels.
    pub arrays: Vec<Vec<ArrayName>>,
}

/// A file, and which of its arrays if it has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayName {
    /// The file.
    pub path: PathBuf,
    /// The array.
    pub variable: Option<String>,
}

impl ArrayName {
    /// `FILE` or `FILE:VARIABLE`; what is the name of a file is a file.
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
    /// Opens every array, finds its axes and compares the sizes.
    pub fn import(&self) -> Result<Import, Error> {
        if !self.fields.iter().any(|field| field.role == Role::Output) {
            return Err(Error::unfit("the import".into(), "at least one output".into(), "none".into(), "add --output"));
        }
        if self.stride == 0 {
            return Err(Error::Number { what: "stride", expected: "1 or more".into(), found: "0".into() });
        }
        if self.stride > 1 && !matches!(self.grid, Grid::Plane { .. }) {
            let (expected, found) = ("1 where the grid is no plane".into(), self.stride.to_string());
            return Err(Error::Number { what: "stride", expected, found });
        }
        let mut columns = Vec::new();
        let mut entries: Vec<FieldEntry> = Vec::new();
        for field in &self.fields {
            field.check_name(&entries)?;
            let column = field.column(&self.grid, self.stride)?;
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
        let times = self.times(&columns)?;
        let split = self.split.clone().unwrap_or_else(|| Rule::default_for(samples));
        if split.split(samples)?.test.is_empty() {
            let (what, expected) = ("the import".into(), "at least 1 sample to test on".into());
            let advice = "name a number with --test; --train 0 keeps a set to be judged by alone";
            return Err(Error::unfit(what, expected, format!("none of {}", counted(samples, "sample")), advice));
        }
        let stride = Some(("stride".to_owned(), toml::Value::from(self.stride as i64))).filter(|_| self.stride > 1);
        let (grid, parameters) = (thinned(self.grid, self.stride).into(), stride.into_iter().collect());
        let manifest = Manifest::imported(&self.name, parameters, grid, split, samples, entries);
        let every = 0..samples;
        Ok(Import { manifest: Manifest { times, ..manifest }, columns, kept: vec![every] })
    }

    /// The number that all fields agree on.
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

    /// Something must be learned at every point.
    fn check_outputs(&self, columns: &[Column]) -> Result<(), Error> {
        let outputs = self.fields.iter().zip(columns).filter(|(field, _)| field.role == Role::Output);
        let mut alone = outputs.clone().filter(|(_, column)| !column.parts[0].pieces()[0].is_over_points());
        match alone.next() {
            Some((field, column)) if alone.count() + 1 == outputs.count() => {
                let expected = format!("an output with a value at every point of the grid {:?}", self.grid.shape());
                let found = format!("{:?} for each sample", column.shape());
                Err(Error::unfit(field.title(), expected, found, "check --grid and --axes"))
            }
            _ => Ok(()),
        }
    }

    /// Of the frames; films must have as many.
    fn times(&self, columns: &[Column]) -> Result<Vec<f64>, Error> {
        let Some(name) = &self.times else { return Ok(Vec::new()) };
        let array = formats::read(&name.path, name.variable.as_deref())?;
        if array.shape.iter().filter(|&&extent| extent != 1).count() > 1 {
            let found = format!("shape {:?}", array.shape);
            return Err(Error::unfit(name.title(), "one row of times".into(), found, "name another array"));
        }
        let times = array.values.into_f64();
        if let Some(place) = times.iter().position(|time| !time.is_finite()) {
            let found = format!("{} at place {place}", times[place]);
            return Err(Error::unfit(name.title(), "finite times".into(), found, "mend the file"));
        }
        if columns.iter().all(|column| column.parts[0].pieces()[0].frames().is_none()) {
            let advice = "say with --axes which axis the frames lie along (t), or leave --time out";
            return Err(Error::unfit(name.title(), "a field with frames".into(), "none".into(), advice));
        }
        for (field, column) in self.fields.iter().zip(columns) {
            if let Some(frames) = column.parts[0].pieces()[0].frames().filter(|&frames| frames != times.len()) {
                let expected = format!("{frames} times, one for each frame of {}", field.title());
                let advice = "give the times of those frames, or say with --axes which axis they lie along";
                return Err(Error::unfit(name.title(), expected, times.len().to_string(), advice));
            }
        }
        Ok(times)
    }
}

impl OwnField {
    /// The first of its arrays, for a sentence.
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

    /// Positions lie on a line, in a plane or in space.
    fn check_coordinates(&self, column: &Column) -> Result<(), Error> {
        let found = column.channels();
        if self.role == Role::Position && !(1..=3).contains(&found) {
            let expected = "1 to 3 coordinates for each point".into();
            let advice = "check --grid, or name the axes with --axes, such as positions=pc";
            return Err(Error::unfit(self.title(), expected, found.to_string(), advice));
        }
        Ok(())
    }

    /// Letters that mean something, each once.
    fn check_axes(&self) -> Result<(), Error> {
        let axes = self.axes.as_deref().unwrap_or_default();
        let letters = || axes.char_indices();
        let unknown = letters().find(|(_, letter)| !ORDER.contains(*letter)).map(|(_, letter)| format!("`{letter}`"));
        let twice = letters().find(|(place, letter)| axes[..*place].contains(*letter));
        let Some(found) = unknown.or(twice.map(|(_, letter)| format!("`{letter}` twice"))) else { return Ok(()) };
        let expected = "n samples, t frames, x rows, y columns, p points and c channels, each once at most";
        let advice = format!("give {} a letter for each axis", self.name);
        Err(Error::unfit(format!("--axes {}={axes}", self.name), expected.into(), found, advice))
    }

    fn column(&self, grid: &Grid, stride: usize) -> Result<Column, Error> {
        self.check_axes()?;
        if self.arrays.is_empty() || self.arrays.iter().any(Vec::is_empty) {
            let what = format!("field `{}`", self.name);
            return Err(Error::unfit(what, "an array".into(), "none".into(), "name its file"));
        }
        let mut column = Column::new(stride);
        for arrays in &self.arrays {
            let mut pieces: Vec<Piece> = Vec::new();
            for name in arrays {
                let piece = self.piece(name, arrays.len() > 1, grid)?;
                if let Some(first) = pieces.first().filter(|first| first.samples() != piece.samples()) {
                    let expected = format!("{}, as {} holds", counted(first.samples(), "sample"), first.title());
                    let found = piece.samples().to_string();
                    return Err(Error::unfit(
                        piece.title(),
                        expected,
                        found,
                        "channels of a field need the same samples",
                    ));
                }
                if let Some(first) = pieces.first().filter(|first| !first.alike(&piece)) {
                    return Err(unlike(&piece, first));
                }
                pieces.push(piece);
            }
            let part = Part::new(pieces);
            if let Some(before) = column.parts.first() {
                let (first, piece) = (&before.pieces()[0], &part.pieces()[0]);
                if !first.alike(piece) || before.pieces().len() != part.pieces().len() || !piece.has_samples() {
                    return Err(unlike(piece, first));
                }
            }
            column.parts.push(part);
        }
        Ok(column)
    }

    fn piece(&self, name: &ArrayName, side_by_side: bool, grid: &Grid) -> Result<Piece, Error> {
        let info = formats::describe(&name.path, name.variable.as_deref())?;
        let fits = |axes: &str| axes.chars().count() == info.shape.len() && fits(axes, &info.shape, grid);
        let axes = match &self.axes {
            Some(axes) => Some(axes.clone()).filter(|axes| allowed(axes, self.role, grid) && fits(axes)),
            None => candidates(self.role, side_by_side, grid).into_iter().find(|axes| fits(axes)),
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

    fn wanted(&self) -> &'static str {
        match self.role {
            Role::Position => "x and y for each point, for each sample or for all",
            Role::Input | Role::Output => "samples, then frames if any, points, channels if any",
        }
    }
}

fn unlike(piece: &Piece, first: &Piece) -> Error {
    let expected = format!("the shape of {} but for the samples", first.title());
    Error::unfit(piece.title(), expected, "another".into(), "arrays of one field must have the same axes")
}

/// Whether letters name the axes a field of this role may have: each once, and all of the grid's axes, or the rows of a
/// plane alone, or none; positions lie on the whole grid and are no films, other fields have samples.
fn allowed(axes: &str, role: Role, grid: &Grid) -> bool {
    let once = |(place, letter): (usize, char)| ORDER.contains(letter) && !axes[..place].contains(letter);
    let has = |letter| axes.contains(letter);
    let (all, rows_alone) = match grid {
        Grid::Plane { .. } => (has('x') && has('y') && !has('p'), has('x') && !has('y') && !has('p')),
        Grid::Line { .. } | Grid::Cloud { .. } => (has('p') && !has('x') && !has('y'), false),
    };
    let none = !has('x') && !has('y') && !has('p');
    axes.char_indices().all(once)
        && match role {
            Role::Position => all && !has('t'),
            Role::Input | Role::Output => has('n') && (all || !has('t') && (rows_alone || none)),
        }
}

/// Whether rows, columns and points are as many as the grid has, and nothing is empty.
fn fits(axes: &str, shape: &[usize], grid: &Grid) -> bool {
    axes.chars().zip(shape).all(|(letter, &extent)| match (letter, grid) {
        ('x', Grid::Plane { rows, .. }) => extent == *rows,
        ('y', Grid::Plane { columns, .. }) => extent == *columns,
        ('p', Grid::Line { points } | Grid::Cloud { points }) => extent == *points,
        ('x' | 'y' | 'p', _) => false,
        _ => extent > 0,
    })
}

/// The axes an array may have, the likeliest first.
fn candidates(role: Role, side_by_side: bool, grid: &Grid) -> Vec<String> {
    let (points, line, plane) = match grid {
        Grid::Plane { .. } => ("xy", false, true),
        Grid::Line { .. } => ("p", true, false),
        Grid::Cloud { .. } => ("p", false, false),
    };
    let over_points = |patterns: &[&str]| patterns.iter().map(|pattern| pattern.replace('*', points)).collect();
    let mut found: Vec<String> = match (role, side_by_side) {
        (Role::Position, true) => return over_points(&["n*", "*"]),
        (Role::Position, false) if line => return over_points(&["n*c", "*c", "n*", "*"]),
        (Role::Position, false) => return over_points(&["n*c", "*c"]),
        (_, true) => over_points(&["n*", "nt*"]),
        (_, false) => over_points(&["n*", "n*c", "nt*", "nt*c"]),
    };
    if plane {
        found.push("nx".into());
    }
    found.extend(["n".into(), "nc".into()]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_found_by_the_shape() {
        let plane = Grid::Plane { rows: 5, columns: 3 };
        let cloud = Grid::Cloud { points: 7 };
        let found = |role, side, grid, shape: &[usize]| {
            let fit = |axes: &String| axes.len() == shape.len() && fits(axes, shape, grid);
            candidates(role, side, grid).into_iter().find(fit)
        };
        use Role::{Input, Output, Position};
        for (role, side, grid, shape, axes) in [
            (Output, false, &plane, &[9, 5, 3][..], "nxy"),
            (Output, false, &plane, &[9, 20, 5, 3], "ntxy"),
            (Output, false, &plane, &[9, 5, 3, 4], "nxyc"),
            (Output, false, &plane, &[9, 20, 5, 3, 4], "ntxyc"),
            (Input, false, &plane, &[9, 5], "nx"),
            (Input, false, &plane, &[9], "n"),
            (Input, false, &plane, &[9, 2], "nc"),
            (Position, false, &plane, &[5, 3, 2], "xyc"),
            (Position, true, &plane, &[9, 5, 3], "nxy"),
            (Position, false, &cloud, &[9, 7, 2], "npc"),
            (Position, false, &cloud, &[7, 2], "pc"),
            (Output, true, &cloud, &[9, 7], "np"),
        ] {
            assert_eq!(found(role, side, grid, shape).as_deref(), Some(axes), "{shape:?}");
        }
        assert_eq!(found(Output, false, &plane, &[9, 3, 5]), None);
        for (axes, role, grid, expected) in [
            ("xytn", Output, &plane, true),
            ("xn", Input, &plane, true),
            ("n", Input, &plane, true),
            ("xyt", Output, &plane, false),
            ("yn", Input, &plane, false),
            ("nxyz", Output, &plane, false),
            ("nxx", Output, &plane, false),
            ("np", Output, &plane, false),
            ("pcn", Position, &cloud, true),
            ("pc", Position, &cloud, true),
            ("cn", Position, &cloud, false),
            ("tpc", Position, &cloud, false),
        ] {
            assert_eq!(allowed(axes, role, grid), expected, "{axes}");
        }
    }

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
