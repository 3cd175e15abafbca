//! One field of an import of your own arrays: its arrays, their axes, and what they must share.

use super::axes::{self, Context, Misfit};
use super::column::{Column, Part, Piece, title};
use super::own::{ArrayName, OwnField};
use super::sources::Sources;
use super::windows::Windows;
use crate::data::dataset::{Error, Role};
use crate::data::formats::ArrayInfo;
use crate::data::mesh::is_mesh_name;
use crate::error::counted;
use lamo_geometry::Grid;

/// Names of files that a data set may have beside those of its fields.
const TAKEN: [&str; 4] = ["offsets", "triangles", "triangle-offsets", "triangle-corners"];

/// What the fields of an import share.
pub(super) struct Shared {
    /// The grid of the arrays.
    pub(super) grid: Grid,
    /// Distance of the rows and columns that are read.
    pub(super) stride: usize,
    /// How time series are cut.
    pub(super) windows: Option<Windows>,
    /// What helps to find the axes.
    pub(super) context: Context,
}

impl ArrayName {
    /// The file, and the array in it.
    pub(crate) fn title(&self) -> String {
        title(&self.path, self.variable.as_deref())
    }
}

impl OwnField {
    /// The title of its first array in a sentence.
    pub(super) fn title(&self) -> String {
        self.arrays.iter().flatten().next().map_or_else(|| self.name.clone(), ArrayName::title)
    }

    pub(super) fn check_name(&self, before: &[&str]) -> Result<(), Error> {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        let name = &self.name;
        if name.is_empty() || !name.chars().all(plain) || name.len() > 64 {
            let expected = "a name of small letters, digits, `_` and `-`".into();
            return Err(Error::unfit("field".into(), expected, format!("`{name}`"), "choose another name"));
        }
        if TAKEN.contains(&name.as_str()) {
            let expected =
                format!("another name than {}, which are those of other files of a data set", TAKEN.join(", "));
            let advice =
                format!("choose another name, such as {name}_1={name} with a mesh or {name}_1=FILE with arrays");
            return Err(Error::unfit("field".into(), expected, format!("`{name}`"), advice));
        }
        if before.contains(&name.as_str()) {
            let expected = "each name once among positions, inputs and outputs".into();
            return Err(Error::unfit("field".into(), expected, format!("`{name}` twice"), "choose another name"));
        }
        Ok(())
    }

    /// Refuses positions that have not 1 to 3 coordinates, and outputs that are one sample.
    pub(super) fn check_column(&self, column: &Column, windows: bool) -> Result<(), Error> {
        let found = column.channels();
        if self.role == Role::Position && !(1..=3).contains(&found) {
            let expected = "1 to 3 coordinates for each point".into();
            let advice = "check --grid, or name the axes with --axes, such as positions=pc";
            return Err(Error::unfit(self.title(), expected, found.to_string(), advice));
        }
        if self.role != Role::Output || !column.is_common() {
            return Ok(());
        }
        let piece = column.pieces().next();
        let found = piece.map(|piece| format!("{} and no axis n (axes {})", piece.described(), piece.axes()));
        let found = found.unwrap_or_default();
        let series = piece.is_some_and(|piece| piece.snapshots().is_some());
        let name = &self.name;
        let (expected, advice) = match (windows, series) {
            (true, _) => {
                ("snapshots (axis t) to cut windows from", format!("name its axes with --axes {name}=LETTERS"))
            }
            (false, true) => (
                "several samples",
                format!(
                    "cut the time series into samples with --window 10 --horizon 10, or give a file for each sample, such as --output '{name}=run_*.npy'"
                ),
            ),
            (false, false) if piece.is_some_and(|piece| is_mesh_name(&piece.path)) => {
                ("several samples", "name a mesh file for each case, such as 'cases/*.vtu'".to_owned())
            }
            (false, false) => {
                // An axis that was taken for channels may count the samples, as in MATLAB.
                let axes = piece.map(Piece::axes).filter(|axes| axes.contains('c')).unwrap_or_default();
                let letters = if axes.is_empty() { "LETTERS".into() } else { axes.replace('c', "n") };
                (
                    "several samples",
                    format!(
                        "name the axis of samples (n) with --axes {name}={letters}, or give a file for each sample, such as --output '{name}=run_*.npy'"
                    ),
                )
            }
        };
        Err(Error::unfit(self.title(), expected.into(), found, advice))
    }

    /// Its arrays, checked against the grid and each other.
    pub(super) fn column(&self, shared: &Shared, sources: &mut Sources) -> Result<Column, Error> {
        if self.arrays.is_empty() || self.arrays.iter().any(Vec::is_empty) {
            let what = format!("field `{}`", self.name);
            return Err(Error::unfit(what, "an array".into(), "none".into(), "name its file"));
        }
        let mut column = Column::new(shared.stride);
        for arrays in &self.arrays {
            let part = self.part(arrays, column.pieces().next(), shared, sources)?;
            if let Some(before) = column.parts.first() {
                check_join(before, &part)?;
            }
            column.parts.push(part);
        }
        Ok(column)
    }

    /// Arrays side by side; the axes are those of an earlier array `like` them where none are given.
    pub(super) fn part(
        &self,
        arrays: &[ArrayName],
        like: Option<&Piece>,
        shared: &Shared,
        sources: &mut Sources,
    ) -> Result<Part, Error> {
        let mut pieces: Vec<Piece> = Vec::new();
        for name in arrays {
            let piece = self.piece(name, like, arrays.len() > 1, shared, sources)?;
            if let Some(first) = pieces.first().filter(|first| first.samples() != piece.samples()) {
                let expected = format!("{}, as {} holds", counted(first.samples(), "sample"), first.title());
                let found = piece.samples().to_string();
                let advice = "give arrays of the same samples";
                return Err(Error::unfit(piece.title(), expected, found, advice));
            }
            if let Some(first) = pieces.first().filter(|first| !first.alike(&piece)) {
                return Err(unlike(&piece, first));
            }
            if let Some(first) = pieces.first().filter(|first| first.all_snapshots() != piece.all_snapshots()) {
                let expected = format!("{}, as {} has", counted(first.all_snapshots(), "snapshot"), first.title());
                let found = piece.all_snapshots().to_string();
                return Err(Error::unfit(piece.title(), expected, found, "give arrays of the same times"));
            }
            pieces.push(piece);
        }
        Ok(Part::new(pieces))
    }

    /// One array with its axes, those of an earlier array `like` it where none are given; arrays side by side have no axis of
    /// channels.
    fn piece(
        &self,
        name: &ArrayName,
        like: Option<&Piece>,
        side_by_side: bool,
        shared: &Shared,
        sources: &mut Sources,
    ) -> Result<Piece, Error> {
        let mut info = sources.file(&name.path)?.describe(name.variable.as_deref())?;
        if info.shape.is_empty() {
            info.shape.push(1); // a number by itself, as np.savez writes it
        }
        let (complex, grid) = (info.kind.is_complex(), &shared.grid);
        // The parts of complex numbers are the last axis of the array, which no letter of the user names.
        let shape = if complex { &info.shape[..info.shape.len() - 1] } else { &info.shape[..] };
        let like = like.filter(|like| like.axes().len() == info.shape.len() && like.is_complex() == complex);
        let mut axes = match (&self.axes, like) {
            (Some(given), _) => self.given(given, shape, grid).map_err(|(expected, found)| {
                let thing = format!("{} with --axes {}={given}", name.title(), self.name);
                Error::unfit(thing, expected, found, "check --grid and --axes")
            })?,
            (None, Some(like)) => {
                let axes = &like.axes()[..shape.len()];
                let misfit = axes::misfit(axes, shape, grid);
                misfit.map_or(Ok(axes.to_owned()), |(expected, found)| {
                    let advice =
                        format!("it is read with the axes {axes} of {}; check --grid and --axes", like.title());
                    Err(Error::unfit(name.title(), expected, found, advice))
                })?
            }
            (None, None) => {
                let joined = self.arrays.len() > 1;
                let samples = shared.context.samples.filter(|_| !joined);
                let context = Context { side_by_side, complex, joined, samples, ..shared.context };
                axes::guess(self.role, shape, grid, context).ok_or_else(|| self.unknown(name, &info, grid))?
            }
        };
        if complex && (axes.contains('c') || side_by_side) {
            let advice = "save its real and imaginary parts as two arrays";
            let expected = "real numbers where there are several channels".into();
            return Err(Error::unfit(name.title(), expected, "complex numbers".into(), advice));
        }
        if complex {
            axes.push('c');
        }
        let piece = Piece::new(&name.path, name.variable.as_deref(), &axes, &info, None);
        match shared.windows {
            Some(windows) => cut(piece, windows),
            None => Ok(piece),
        }
    }

    /// The axes that the user gives, in the letters of the data set.
    fn given(&self, given: &str, shape: &[usize], grid: &Grid) -> Result<String, Misfit> {
        let axes = axes::named(given, grid);
        let refused = axes::refused(&axes, self.role, grid).or_else(|| axes::misfit(&axes, shape, grid));
        refused.map_or(Ok(axes), Err)
    }

    /// The axes cannot be found by the shape.
    fn unknown(&self, name: &ArrayName, info: &ArrayInfo, grid: &Grid) -> Error {
        let wanted = match self.role {
            Role::Position => "coordinates of each point, for each sample or for all,",
            Role::Input | Role::Output => "samples, then snapshots if any, points, channels if any",
        };
        let expected = format!("{wanted} over a grid of {:?}", grid.shape());
        let others = axes::suggestions(&info.shape, self.role, grid);
        let along_an_axis =
            matches!(info.shape[..], [extent] if grid.shape().len() > 1 && grid.shape().contains(&extent));
        let advice = match others.is_empty() {
            true if self.role == Role::Position && along_an_axis => {
                "these are coordinates along one axis: leave --positions out \
                 where they are equally spaced, else save those of all points (numpy.meshgrid with indexing='ij')"
                    .to_owned()
            }
            true => "check --grid: no order of these axes fits it".to_owned(),
            false => {
                let others: Vec<_> = others.iter().map(|axes| format!("{}={axes}", self.name)).collect();
                format!("check --grid, or name the axes with --axes, such as {}", others.join(" or "))
            }
        };
        Error::unfit(name.title(), expected, format!("shape {:?}", info.shape), advice)
    }

    /// How the shape of its arrays is understood, in a sentence.
    pub(super) fn note(&self, column: &Column) -> Option<String> {
        let piece = column.pieces().next()?;
        let samples = |part: &Part| part.pieces().first().map(Piece::samples);
        let alike = column.parts.iter().all(|part| samples(part) == samples(&column.parts[0]));
        let files = match column.parts.len() {
            1 => String::new(),
            files if column.is_ragged() => format!(" in the first of {files} files of different sizes"),
            files => format!(" in {} of {files} files", if alike { "each" } else { "the first" }),
        };
        let how = match self.axes {
            Some(_) => "as given".to_owned(),
            None => format!("found by the shape; --axes {}=LETTERS changes them", self.name),
        };
        let common = if column.is_common() { ", the same for all samples" } else { "" };
        let complex = if piece.is_complex() { "; its real and imaginary parts are two channels" } else { "" };
        let numbers = match (self.role, piece.is_over_points(), column.channels()) {
            (Role::Output, false, 1) => ", a number for each sample".to_owned(),
            (Role::Output, false, numbers) => format!(", {numbers} numbers for each sample"),
            _ => String::new(),
        };
        let (name, words, axes) = (&self.name, piece.described(), piece.axes());
        Some(format!("{name}: {words}{files}{common}{numbers} (axes {axes}, {how}){complex}"))
    }
}

/// Cuts an array into windows; refuses one that is too short for one.
fn cut(piece: Piece, windows: Windows) -> Result<Piece, Error> {
    let piece = piece.cut(windows);
    if piece.windows() > 0 {
        return Ok(piece);
    }
    let Windows { window, horizon, .. } = windows;
    let expected = format!("at least {} snapshots, {window} given and {horizon} predicted", windows.length());
    let found = format!("{} (axes {})", piece.all_snapshots(), piece.axes());
    Err(Error::unfit(piece.title(), expected, found, "give smaller numbers with --window and --horizon"))
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
    Ok(())
}

fn unlike(piece: &Piece, first: &Piece) -> Error {
    let expected = format!("{} for each sample, as {} holds (axes {})", first.words(), first.title(), first.axes());
    let found = format!("{} (axes {})", piece.words(), piece.axes());
    Error::unfit(piece.title(), expected, found, "give arrays with the same axes for one field")
}
