//! A folder of mesh files, one for each case: which of their arrays are positions, inputs and outputs.

use super::glob::expand;
use super::own::{ArrayName, OwnField};
use super::recorded::{Making, Recorded};
use crate::data::dataset::{Normalise, Role};
use crate::data::mesh::{self, Mesh, named};
use crate::error::{Error, Refusal, require};
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};

/// Mesh files, and what is asked of them.
#[derive(Clone, Debug, Default)]
pub struct MeshCases {
    /// The files, one for each case.
    pub files: Vec<PathBuf>,
    /// Arrays that are inputs: `NAME`, or `FIELD=NAME` for a field called FIELD. A prediction takes a field from the array named here.
    pub inputs: Vec<String>,
    /// Arrays that are outputs.
    pub outputs: Vec<String>,
    /// Inputs made from the meshes: `distance`, `normals`, `distance=FILE`, `sdf=FILE`.
    pub derived: Vec<String>,
    /// A table with numbers for each case; the first column has the names of the files, the others are inputs.
    pub scalars: Option<PathBuf>,
    /// Whether the points of a sample are the centres of the cells.
    pub at_centres: bool,
    /// Whether samples are lines, planes or volumes where the files are lattices of one size; clouds otherwise.
    pub lattices: bool,
}

/// What all files of an import have in common.
struct Survey {
    /// Coordinates that differ between points: 1, 2 or 3.
    space: usize,
    /// The lattice of all files, where it has as many axes as there are coordinates.
    lattice: Option<Vec<usize>>,
    /// Whether all have the same points.
    same: bool,
    /// Whether each file is a list of several times.
    series: bool,
    /// Names of arrays that can be derived and that a file holds.
    held: Vec<&'static str>,
}

/// The grid of a lattice with these extents, the last axis of VTK first, and the letters of its axes: the rows of a plane follow y,
/// those of a volume x, as the positions of lattices do.
fn grid_of(extents: &[usize]) -> Option<(Grid, &'static str)> {
    match *extents {
        [points] => Some((Grid::Line { points }, "p")),
        [rows, columns] => Some((Grid::Plane { rows, columns }, "xy")),
        [layers, columns, rows] => Some((Grid::Volume { rows, columns, layers }, "zyx")),
        _ => None,
    }
}

/// The field and the array that `FIELD=NAME` or `NAME` asks for.
fn parts(text: &str) -> (String, &str) {
    let named = text.split_once('=').filter(|(field, array)| !field.is_empty() && !array.is_empty());
    named.map_or_else(|| (field_name(text), text), |(field, array)| (field.to_owned(), array))
}

/// The name of an array as the name of a field: small letters, digits, `_` and `-`.
pub fn field_name(array: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() || letter == '-' => letter,
        _ => '_',
    };
    array.chars().map(plain).collect::<String>().trim_matches('_').to_owned()
}

/// The name of a field and its unit from the head of a column such as `angle of attack [deg]` or `Mach (-)`.
pub(super) fn name_and_unit(column: &str) -> (String, String) {
    let parts = column.trim().strip_suffix([']', ')']).and_then(|open| {
        let at = open.rfind(['[', '('])?;
        Some((open[..at].trim(), open[at + 1..].trim())).filter(|(name, _)| !field_name(name).is_empty())
    });
    let (name, unit) = parts.unwrap_or((column, ""));
    (field_name(name), if matches!(unit, "" | "-") { "1".into() } else { unit.to_owned() })
}

/// A field, the array that holds it, and a letter for each axis of the array.
pub type FieldArray = (String, ArrayName, String);

/// The arrays of a mesh that a field of this name may have come from.
fn alike<'a>(mesh: &'a Mesh, field: &str) -> impl Iterator<Item = &'a mesh::DataArray> {
    let arrays = mesh.point_data.iter().chain(&mesh.cell_data).chain(&mesh.field_data);
    arrays.filter(move |array| field_name(&array.name) == field)
}

/// The array of a mesh that a field of this name came from; `None` where arrays of two names are such, as `T` and `t`.
pub fn array_of_field<'a>(mesh: &'a Mesh, field: &str) -> Option<&'a mesh::DataArray> {
    let first = alike(mesh, field).next()?;
    alike(mesh, field).all(|other| other.name == first.name).then_some(first)
}

/// Refuses a mesh with arrays of two names of which a field may have come.
fn require_one(mesh: &Mesh, field: &str) -> Result<(), Refusal> {
    let mut names: Vec<&str> = alike(mesh, field).map(|array| array.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    require(names.len() < 2, || {
        Refusal::new(format!("field `{field}`"), "one array with this name in small letters", names.join(" and "))
            .advise("leave out, or rename, the one that the model was not trained on")
    })
}

/// Whether a mesh has an array of this name.
fn holds(mesh: &Mesh, name: &str) -> bool {
    let mut arrays = mesh.point_data.iter().chain(&mesh.cell_data).chain(&mesh.field_data);
    arrays.any(|array| array.name == name)
}

/// Refuses a field that the training made in another way than `--derive` asks for, or from another file, which is not given.
fn check_asked(field: &str, asked: Option<&str>, making: Option<&Making>) -> Result<(), Refusal> {
    let with_file = asked.is_some_and(|text| text.contains('='));
    let (expected, advice) = match making {
        Some(Making::WithFile(file)) if !with_file => (
            format!("its distance to another file, as in the training, which had {file}"),
            format!("--derive {field}=FILE"),
        ),
        Some(Making::Derived(_)) if with_file => {
            ("what the training derived from the meshes alone".to_owned(), format!("--derive {field}"))
        }
        Some(Making::Stored(name)) if asked.is_some() => {
            (format!("the array `{name}` of the file, as in the training"), "no --derive for it".to_owned())
        }
        _ => return Ok(()),
    };
    let found = asked.map_or("the mesh alone".to_owned(), |text| format!("`{text}` to derive"));
    Err(Refusal::new(format!("field `{field}`"), expected, found).advise(format!("give {advice}")))
}

impl MeshCases {
    /// The files of some paths, patterns and folders, in the order of their numbers.
    pub fn expand(patterns: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for pattern in patterns {
            let path = if pattern.is_dir() { inside(pattern)? } else { pattern.clone() };
            let found = expand(&ArrayName { path, variable: None })?;
            files.extend(found.into_iter().map(|array| array.path));
        }
        Ok(files)
    }

    /// The fields of an import: positions, inputs, outputs; and the grid, where the samples are lattices.
    pub fn fields(&self) -> Result<(Vec<OwnField>, Option<Grid>), Error> {
        let first = self.files.first().ok_or_else(|| Refusal::new("the import", "mesh files", "none"))?;
        let mesh = mesh::read(first)?;
        let survey = self.survey()?;
        let lattice = survey.lattice.as_deref().and_then(grid_of);
        let mut fields = vec![self.field("positions", Role::Position, &self.placed(coordinates(survey.space)), "pc")];
        for (role, texts) in [(Role::Input, &self.inputs), (Role::Output, &self.outputs)] {
            for text in texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
                let (name, array) = parts(text);
                let (variable, axes) = self.find(&mesh, first, array)?;
                fields.push(self.field(&name, role, &variable, &in_time(axes, survey.series)));
            }
        }
        for text in &self.derived {
            fields.push(self.derive(text, &survey.held)?);
        }
        if let Some(table) = &self.scalars {
            for column in named::scalar_names(table)? {
                let (name, unit) = name_and_unit(&column);
                let variable = format!("scalar={}:{column}", table.display());
                fields.push(OwnField { unit, ..self.field(&name, Role::Input, &variable, "1") });
            }
        }
        if let Some((_, letters)) = lattice {
            fields.iter_mut().for_each(|field| field.spread_over(letters));
            if survey.same {
                fields[0].arrays.truncate(1); // the positions of one file are those of all
            }
        }
        Ok((fields, lattice.map(|(grid, _)| grid)))
    }

    fn field(&self, name: &str, role: Role, variable: &str, axes: &str) -> OwnField {
        let array = |path: &PathBuf| vec![ArrayName { path: path.clone(), variable: Some(variable.to_owned()) }];
        OwnField {
            name: name.to_owned(),
            role,
            unit: "1".into(),
            normalise: if role == Role::Position { Normalise::None } else { Normalise::Channels },
            axes: Some(axes.to_owned()),
            arrays: self.files.iter().map(array).collect(),
        }
    }

    /// A derived input; `held` has the names of the arrays that files hold.
    fn derive(&self, text: &str, held: &[&str]) -> Result<OwnField, Refusal> {
        let name = text.split('=').next().unwrap_or_default();
        let known = match text.split_once('=') {
            None => name == "distance" || name == "normals" && !self.at_centres,
            Some((_, file)) => matches!(name, "distance" | "sdf") && !file.is_empty(),
        };
        require(known, || {
            Refusal::new("--derive", "distance, normals, distance=FILE or sdf=FILE", format!("`{text}`"))
        })?;
        let (variable, axes) = self.derived_array(text, held.contains(&text));
        Ok(self.field(name, Role::Input, &variable, axes))
    }

    /// The array of a derived input, also where the file holds an array of that name; and the letters of its axes.
    fn derived_array(&self, text: &str, held: bool) -> (String, &'static str) {
        let prefix = if held { named::DERIVED_PREFIX } else { "" };
        (self.placed(&format!("{prefix}{text}")), if text == "normals" { "pc" } else { "p" })
    }

    /// The name of an array at the points of the samples.
    fn placed(&self, name: &str) -> String {
        if self.at_centres { format!("{}{name}", named::CENTRES) } else { name.to_owned() }
    }

    /// The array that a name means, and the letters of its axes.
    fn find(&self, mesh: &Mesh, path: &Path, name: &str) -> Result<(String, &'static str), Refusal> {
        let on =
            |arrays: &[mesh::DataArray]| arrays.iter().find(|array| array.name == name).map(|array| array.components);
        if let Some(components) = on(&mesh.point_data).or(on(&mesh.cell_data)) {
            let prefix = if named::DERIVED.contains(&name) { named::STORED } else { "" };
            return Ok((self.placed(&format!("{prefix}{name}")), if components == 1 { "p" } else { "pc" }));
        }
        let of_all = mesh.field_data.iter().find(|array| array.name == name);
        if let Some(array) = of_all.filter(|array| array.components > 0) {
            let axes = match (array.values.len() / array.components, array.components) {
                (1, 1) => "1",
                (1, _) => "1c",
                _ => "c",
            };
            return Ok((format!("{}{name}", named::WHOLE), axes));
        }
        let arrays = [&mesh.point_data, &mesh.cell_data, &mesh.field_data].into_iter().flatten();
        let known: Vec<_> = arrays.map(|array| array.name.clone()).collect();
        let found = if known.is_empty() { "no arrays".to_owned() } else { known.join(", ") };
        Err(Refusal::new(path.display().to_string(), format!("an array `{name}`"), found))
    }

    /// [`MeshCases::arrays_as_recorded`] where it is not known how the fields of the training were made.
    pub fn arrays(&self, file: &Path, fields: &[String], points: (usize, Grid)) -> Result<Vec<FieldArray>, Error> {
        self.arrays_as_recorded(file, fields, points, &Recorded::default())
    }

    /// The arrays of one file that hold fields of a model on points of `space` coordinates: those from which the data of the
    /// training were made, or else a column of the table, an array with the name of the field, or a derived input. Of a lattice they
    /// have its axes, which `grid` must have, too.
    pub fn arrays_as_recorded(
        &self,
        file: &Path,
        fields: &[String],
        (space, grid): (usize, Grid),
        recorded: &Recorded,
    ) -> Result<Vec<FieldArray>, Error> {
        let mesh = mesh::read(file)?;
        if fields.iter().any(|field| field == "positions") {
            check_flat(&mesh, space).map_err(|refusal| refusal.within(file.display()))?;
        }
        let letters = self.letters(&mesh, grid).map_err(|refusal| refusal.within(file.display()))?;
        let series = !mesh::times(file)?.is_empty();
        let mut found = Vec::new();
        for field in fields {
            let (variable, axes) = match field.as_str() {
                "positions" => (self.placed(coordinates(space)), "pc".to_owned()),
                _ => self.array_of((&mesh, file, series), field, recorded.making(field))?,
            };
            let (variable, axes) = match letters {
                Some(letters) if axes.contains('p') => {
                    (format!("{}{variable}", named::LATTICE), axes.replace('p', letters))
                }
                _ => (variable, axes),
            };
            found.push((field.clone(), ArrayName { path: file.to_owned(), variable: Some(variable) }, axes));
        }
        Ok(found)
    }

    /// The array of a mesh file, which may be a list of several times, that holds a field which the training made in some way; and
    /// the letters of its axes.
    fn array_of(
        &self,
        (mesh, file, series): (&Mesh, &Path, bool),
        field: &str,
        making: Option<&Making>,
    ) -> Result<(String, String), Refusal> {
        let stored = |name: &str| self.find(mesh, file, name).map(|(variable, axes)| (variable, in_time(axes, series)));
        let derived = |text: &str, held: bool| {
            let (variable, axes) = self.derived_array(text, held);
            (variable, axes.to_owned())
        };
        let named = self.inputs.iter().map(|text| parts(text)).find(|(name, _)| name == field);
        if let Some((_, array)) = named {
            return stored(array);
        }
        let asked = self.derived.iter().find(|text| text.split('=').next() == Some(field)).map(String::as_str);
        check_asked(field, asked, making)?;
        if let Some(text) = asked {
            return Ok(derived(text, named::is_stored(mesh, text)));
        }
        match making {
            Some(Making::Stored(name) | Making::Derived(name)) if holds(mesh, name) => return stored(name),
            Some(Making::Derived(name)) => return Ok(derived(name, false)),
            _ => {}
        }
        let unit = match making {
            Some(Making::Scalar(unit)) => unit,
            _ => "1",
        };
        if let Some(column) = self.column_of(field, unit)? {
            return Ok((column, "1".to_owned()));
        }
        require_one(mesh, field).map_err(|refusal| refusal.within(file.display()))?;
        let own = array_of_field(mesh, field).map(|array| array.name.as_str());
        if own.is_none() && making.is_none() && named::DERIVED.contains(&field) {
            return Ok(derived(field, false));
        }
        let missing = match making {
            Some(Making::Stored(name)) => name.as_str(),
            _ => field,
        };
        stored(own.unwrap_or(missing)).map_err(|refusal| match making {
            Some(Making::Stored(_)) => refusal.advise(format!("field `{field}` of the training was read from it")),
            _ => refusal.advise("name a table with --scalars, or derive it with --derive"),
        })
    }

    /// The column of the table that holds a field, as the name of an array. A head with another unit than that of the training is
    /// refused; `1` stands for none.
    fn column_of(&self, field: &str, unit: &str) -> Result<Option<String>, Refusal> {
        let Some(table) = &self.scalars else { return Ok(None) };
        let holds = |column: &String| name_and_unit(column).0 == *field || field_name(column) == *field;
        let column = named::scalar_names(table)?.into_iter().find(holds);
        if let Some(found) = column.as_deref().map(|column| name_and_unit(column).1) {
            require(found == unit || found == "1" || unit == "1", || {
                Refusal::new(
                    format!("{}: `{field}`", table.display()),
                    format!("the unit {unit} of the training"),
                    found,
                )
                .advise("convert the column")
            })?;
        }
        Ok(column.map(|column| format!("scalar={}:{column}", table.display())))
    }

    /// The letters of the axes of a mesh for a model on a line, a plane or a volume; `None` for a model on clouds.
    fn letters(&self, mesh: &Mesh, grid: Grid) -> Result<Option<&'static str>, Refusal> {
        if matches!(grid, Grid::Cloud { .. }) {
            return Ok(None);
        }
        let found = named::extents(mesh, self.at_centres);
        let letters = found.as_deref().and_then(grid_of);
        let fits = letters.filter(|(found, _)| std::mem::discriminant(found) == std::mem::discriminant(&grid));
        fits.map(|(_, letters)| Some(letters)).ok_or_else(|| {
            let found = match found {
                Some(extents) => format!("a lattice with {} axes", extents.len()),
                None => "points that form no lattice".into(),
            };
            Refusal::new("points", format!("an image or a structured grid, as the {grid} of the training"), found)
                .advise("train on clouds: import with --grid cloud")
        })
    }

    /// Reads all files, or as many as are needed to know that they are clouds in three dimensions and nothing is derived from them.
    fn survey(&self) -> Result<Survey, Error> {
        let mut survey = Survey { space: 1, lattice: None, same: true, series: false, held: Vec::new() };
        let plain = self.derived.iter().any(|text| !text.contains('='));
        let (mut first, mut first_times): (Option<Vec<f64>>, Vec<f64>) = (None, Vec::new());
        for (place, file) in self.files.iter().enumerate() {
            let times = mesh::times(file)?;
            let series = !times.is_empty();
            require(place == 0 || series == survey.series, || {
                let word = |series| if series { "a list of several times" } else { "a file of one time" };
                Refusal::new(
                    file.display().to_string(),
                    format!("{}, as the first file", word(survey.series)),
                    word(series),
                )
            })?;
            survey.series = series;
            if place == 0 {
                first_times = times;
            } else {
                check_steps(&first_times, &times).map_err(|refusal| refusal.within(file.display()))?;
            }
            let within = |reason: std::io::Error| Refusal::about(file.display().to_string(), reason.to_string());
            let mesh = mesh::read(file)?;
            survey.held.extend(named::DERIVED.into_iter().filter(|name| named::is_stored(&mesh, name)));
            let positions = mesh.shape.positions().map_err(within)?;
            let extents = named::extents(&mesh, self.at_centres).filter(|_| self.lattices);
            if first.is_none() {
                survey.lattice = extents.clone();
            }
            survey.lattice = survey.lattice.filter(|lattice| Some(lattice) == extents.as_ref());
            let first = first.get_or_insert_with(|| positions.clone());
            survey.same &= *first == positions;
            for place in positions.chunks_exact(3) {
                let differs = |&axes: &usize| place[axes - 1] != first[axes - 1];
                survey.space = (survey.space + 1..=3).rev().find(differs).unwrap_or(survey.space);
            }
            if survey.space == 3 && survey.lattice.is_none() && !survey.series && !plain {
                break;
            }
        }
        let space = survey.space;
        survey.lattice = survey.lattice.filter(|lattice| lattice.len() == space && !lattice.contains(&0));
        Ok(survey)
    }
}

/// How far two lists of times may differ, in parts of their length: times are often written with six digits.
const ROUNDING_OF_TIMES: f64 = 1e-5;

/// Refuses times that are not as far apart as those of the first file: one step of a model is one distance of snapshots.
fn check_steps(first: &[f64], times: &[f64]) -> Result<(), Refusal> {
    let ([start, second, ..], [own, ..]) = (first, times) else { return Ok(()) };
    let last = first.len() - 1;
    let mean = (first[last] - start) / last as f64;
    // A longer series is compared with the first one as if that went on with its mean step.
    let since = |number: usize| match first.get(number) {
        Some(time) => time - start,
        None => first[last] - start + mean * (number - last) as f64,
    };
    let length = since(times.len() - 1).abs().max(second - start);
    let apart = |&number: &usize| (times[number] - own - since(number)).abs() > ROUNDING_OF_TIMES * length;
    (1..times.len()).find(apart).map_or(Ok(()), |number| {
        let expected = format!("{} after the first time, as in the first file", since(number));
        Err(Refusal::new(format!("time number {number}"), expected, (times[number] - own).to_string())
            .advise("import series with the same distances of their times"))
    })
}

/// The letters of the axes of an array of a list of several times.
fn in_time(axes: &str, series: bool) -> String {
    if series && axes.contains('p') { format!("t{axes}") } else { axes.to_owned() }
}

/// The pattern of the mesh files in a folder, which have one ending.
fn inside(folder: &Path) -> Result<PathBuf, Refusal> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut endings: Vec<String> = files
        .filter(|path| path.is_file() && mesh::is_mesh_name(path))
        .filter_map(|path| Some(path.extension()?.to_string_lossy().into_owned()))
        .collect();
    endings.sort_unstable();
    endings.dedup();
    let title = folder.display().to_string();
    match &endings[..] {
        [ending] => Ok(folder.join(format!("*.{ending}"))),
        [] => Err(Refusal::new(title, "mesh files, such as .vtu, in this folder", "none")),
        [first, ..] => {
            let advice = format!("name those of the cases: '{}'", folder.join(format!("*.{first}")).display());
            Err(Refusal::new(title, "mesh files of one kind in this folder", endings.join(", ")).advise(advice))
        }
    }
}

impl OwnField {
    /// Gives an array on points the axes of a lattice.
    fn spread_over(&mut self, letters: &str) {
        let Some(axes) = self.axes.as_mut().filter(|axes| axes.contains('p')) else { return };
        *axes = axes.replacen('p', letters, 1);
        for array in self.arrays.iter_mut().flatten() {
            array.variable = array.variable.take().map(|name| format!("{}{name}", named::LATTICE));
        }
    }
}

/// How far a mesh may leave the plane or line of the training, in parts of its extent: coordinates are often single.
const FLATNESS: f64 = 1e-5;

/// Refuses points that differ in a coordinate that the model is not given.
fn check_flat(mesh: &Mesh, space: usize) -> Result<(), Refusal> {
    let positions = mesh.shape.positions().map_err(|reason| Refusal::said(reason.to_string()))?;
    let range = |axis: usize| {
        let values = || positions.iter().skip(axis).step_by(3).copied();
        [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
    };
    let length = |axis: usize| range(axis)[1] - range(axis)[0];
    let extent = (0..3).map(length).fold(0.0, f64::max);
    let tilted = (space..3).find(|&axis| length(axis) > FLATNESS * extent);
    tilted.map_or(Ok(()), |axis| {
        let (name, [least, most]) = (["x", "y", "z"][axis], range(axis));
        let expected =
            format!("the same {name} at all points, because the model is given {space} of their coordinates");
        Err(Refusal::new("its points", expected, format!("{name} from {least} to {most}"))
            .advise("turn the mesh as those of the training lie"))
    })
}

/// The array of the first coordinates of the points.
fn coordinates(space: usize) -> &'static str {
    ["points-x", "points-xy", "points"][space.clamp(1, 3) - 1]
}
