//! `lamo data import`: makes a data set from public benchmark files, or from your own arrays.

use super::make::report;
use crate::commands::progress::Meter;
use crate::commands::say;
use crate::commands::stop::stop_on_signal;
use anyhow::Result;
use clap::Args;
use lamo::data::dataset::{Normalise, Role};
use lamo::data::import::catalogue::CATALOGUE;
use lamo::data::import::{ArrayName, MeshCases, Own, OwnField, Sizes, Windows, parse_arrays, points_of_files};
use lamo::data::{formats, mesh};
use lamo::error::{Refusal, counted};
use lamo::workflow::{self, Event, ImportRequest, ImportSource, Session};
use lamo_geometry::Grid;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// `lamo data import`
#[derive(Args)]
pub(crate) struct Import {
    /// With --as: files of a benchmark, or folders that hold them at any depth. Without it: mesh files, one for each case, such as
    /// 'cases/*.vtu' or a folder that holds them (vtu, vtp, vti, vtr, vts, vtm, pvtu, pvd, vtk, msh, stl, obj); --input and --output then name their arrays.
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// The benchmark of the files; lamo data import --help lists them all.
    #[arg(long = "as", value_name = "BENCHMARK", requires = "files", conflicts_with_all = ["positions", "input", "output"])]
    benchmark: Option<String>,
    /// Import every sample of the files, not only those of the official split.
    #[arg(long, requires = "benchmark")]
    all: bool,
    /// Positions of the points: [samples, points, 2], or [points, 2] if all samples share them (1 to 3 coordinates). A,B joins
    /// two arrays, FILE:X,Y two arrays of a file.
    #[arg(long, value_name = "ARRAY")]
    positions: Vec<String>,
    /// An input field. The same name again and a pattern, such as 'a=case_*.npy', add samples; A,B joins two arrays as channels.
    /// An array without samples is one sample of several files, or else the same for all samples.
    /// Of mesh files: the names of arrays, p,U or FIELD=p; those on cells are averaged to the points.
    #[arg(long, value_name = "NAME=ARRAY")]
    input: Vec<String>,
    /// An output field, which the model learns; arrays as for --input.
    #[arg(long, value_name = "NAME=ARRAY", required_unless_present = "benchmark")]
    output: Vec<String>,
    /// Of mesh files: inputs made from the mesh. distance is that to its boundary, normals are those of a surface;
    /// distance=FILE is that to the surface in FILE, sdf=FILE has a sign, negative inside a closed surface. For a flat mesh FILE may
    /// be a curve, such as the outline of an airfoil (.dat).
    #[arg(long, value_name = "WHAT", conflicts_with = "benchmark")]
    derive: Vec<String>,
    /// Of mesh files: a CSV table with a row for each case. The first column has the names of the files, the others are inputs.
    #[arg(long, value_name = "FILE", conflicts_with = "benchmark")]
    scalars: Option<PathBuf>,
    /// Of mesh files: where the samples have their points: points or cells (the centres of the cells).
    #[arg(long, value_name = "PLACE", default_value = "points", value_parser = ["points", "cells"])]
    on: String,
    /// Times of the snapshots of a time series.
    #[arg(long, value_name = "ARRAY", conflicts_with = "benchmark")]
    time: Option<String>,
    /// The grid: ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS. For line and cloud without a number the positions are counted.
    /// Mesh files are clouds; those of images and structured grids of one size are lines, planes or volumes unless you say cloud.
    #[arg(long, required_unless_present_any = ["benchmark", "files"], conflicts_with = "benchmark")]
    grid: Option<String>,
    /// Axes of a field's arrays, one letter each: n samples, t snapshots, x rows, y columns, p points, c channels, 1 an axis of
    /// length 1. On a line the points are x or p. Without it they are found by the shape, and printed.
    #[arg(long, value_name = "NAME=LETTERS", conflicts_with = "benchmark")]
    axes: Vec<String>,
    /// Cut time series into samples: snapshots that are given.
    #[arg(long, value_name = "W", requires = "horizon", conflicts_with = "benchmark")]
    window: Option<u16>,
    /// Cut time series into samples: snapshots that are predicted after the window.
    #[arg(long, value_name = "H", requires = "window")]
    horizon: Option<u16>,
    /// With --window, begin a sample at every K-th snapshot (1 unless given). Without it, the same as --thin.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "benchmark")]
    stride: Option<u16>,
    /// Take every K-th row and column of the grid.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "benchmark")]
    thin: Option<u16>,
    /// Number of training samples. 0 makes a data set for evaluation only.
    #[arg(long, value_name = "N", conflicts_with = "benchmark")]
    train: Option<usize>,
    /// Number of test samples; a sixth unless given.
    #[arg(long, value_name = "N", conflicts_with = "benchmark")]
    test: Option<usize>,
    /// Seed with which the training and test samples are drawn; 0 unless given. Files with train and test in their names keep
    /// their samples unless a seed is given.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64), conflicts_with = "benchmark")]
    seed: Option<u64>,
    /// Train on the first samples and test on the last, in the order of the files, instead of drawing them.
    #[arg(long, conflicts_with_all = ["benchmark", "seed"])]
    ordered: bool,
    /// Unit of a field.
    #[arg(long, value_name = "NAME=UNIT", conflicts_with = "benchmark")]
    unit: Vec<String>,
    /// A field that is not normalised; all other inputs and outputs are.
    #[arg(long, value_name = "NAME", conflicts_with = "benchmark")]
    raw: Vec<String>,
    /// Name of the problem; the name of the folder unless given.
    #[arg(long, conflicts_with = "benchmark")]
    name: Option<String>,
    /// Folder to make; until it is complete the samples are in DIR.partial.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// The public files, for the long help.
pub(crate) fn public_files() -> String {
    let mut text = "Public files, recognised by their names in any folder and format:".to_owned();
    for row in CATALOGUE {
        let _ = write!(text, "\n  {:14} {}", row.name, row.files().join(", "));
    }
    text
}

pub(crate) fn run(options: &Import) -> Result<()> {
    let (title, source) = match &options.benchmark {
        Some(name) => {
            let (benchmark, files, all) = (name.clone(), options.files.clone(), options.all);
            (name.clone(), ImportSource::Public { benchmark, files, all })
        }
        None => {
            let own = options.own()?;
            (own.name.clone(), ImportSource::Own(Box::new(own)))
        }
    };
    let official = options.benchmark.is_some() && !options.all;
    let meter = Meter::of_bytes(&title);
    let listener = |event: Event<'_>| match event {
        Event::Planned { samples } if official => {
            let samples = counted(samples, "sample");
            let _ = say(&format!("{title}: {samples} of the official split; --all imports every sample"));
        }
        Event::Importing(transfer) => meter.show(transfer),
        Event::Note(note) => {
            let _ = say(note);
        }
        Event::Warning(warning) => {
            let _ = say(&format!("warning: {warning}"));
        }
        _ => {}
    };
    let cancel = stop_on_signal("the samples that are being written")?;
    let request = ImportRequest { source, out: options.out.clone() };
    let outcome = workflow::import(&request, &Session { listener: &listener, cancel, threads: 1 });
    let time = meter.clear();
    report(outcome?, "imported", &time, &options.out)
}

impl Import {
    fn own(&self) -> Result<Own> {
        let (mut fields, lattice) = match self.files.is_empty() {
            true => (self.array_fields()?, None),
            false => self.mesh_cases()?.fields()?,
        };
        for text in &self.axes {
            let (name, axes) = pair(text, "--axes", "NAME=LETTERS, such as u=xytn")?;
            named(&mut fields, name, "--axes")?.axes = Some(axes.into());
        }
        for text in &self.unit {
            let (name, unit) = pair(text, "--unit", "NAME=UNIT, such as u=m/s")?;
            named(&mut fields, name, "--unit")?.unit = unit.into();
        }
        for name in &self.raw {
            named(&mut fields, name, "--raw")?.normalise = Normalise::None;
        }
        let folder = self.out.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = self.name.clone().or(folder).unwrap_or_else(|| "own".into());
        let (grid, ragged) = match lattice {
            Some(grid) => (grid, Vec::new()),
            None => self.grid_of(&fields)?,
        };
        let times = match &self.time {
            Some(text) => Some(ArrayName::parse(text)),
            None => self.times_of_files()?,
        };
        let (windows, stride) = match (self.window, self.horizon, self.stride) {
            (Some(window), Some(horizon), step) => {
                let (window, horizon, step) = (window.into(), horizon.into(), step.unwrap_or(1).into());
                (Some(Windows { window, horizon, step }), self.thin)
            }
            (_, _, stride) => (None, self.thin.or(stride)),
        };
        let stride = stride.map_or(1, usize::from);
        let sizes = Sizes { train: self.train, test: self.test, seed: self.seed, ordered: self.ordered };
        Ok(Own { name, grid, ragged, stride, fields, times, windows, split: None, sizes })
    }

    /// The times of the first file, where it is a list of several times.
    fn times_of_files(&self) -> Result<Option<ArrayName>> {
        let Some(path) = MeshCases::expand(&self.files)?.into_iter().next() else { return Ok(None) };
        let has_times = !mesh::times(&path)?.is_empty();
        Ok(has_times.then(|| ArrayName { path, variable: Some("times".into()) }))
    }

    /// Positions, inputs and outputs in files of arrays.
    fn array_fields(&self) -> Result<Vec<OwnField>> {
        if !self.derive.is_empty() || self.scalars.is_some() || self.on != "points" {
            return Err(
                Refusal::new("--derive, --scalars and --on", "mesh files, such as 'cases/*.vtu'", "none").into()
            );
        }
        let mut fields: Vec<OwnField> = Vec::new();
        for text in &self.positions {
            add(&mut fields, "positions", Role::Position, text)?;
        }
        for (role, texts) in [(Role::Input, &self.input), (Role::Output, &self.output)] {
            for text in texts {
                let (name, arrays) =
                    pair(text, "--input and --output", "NAME=ARRAY, such as a=perm.npy or u=flow.mat:sol")?;
                add(&mut fields, name, role, arrays)?;
            }
        }
        Ok(fields)
    }

    /// Mesh files, one for each case.
    fn mesh_cases(&self) -> Result<MeshCases> {
        if !self.positions.is_empty() {
            let found = "--positions";
            return Err(Refusal::new("the import", "mesh files or --positions", found)
                .advise("leave one of them out")
                .into());
        }
        let files = MeshCases::expand(&self.files)?;
        if let Some(other) = files.iter().find(|path| !mesh::is_mesh_name(path)) {
            let expected = "mesh files (.vtu, .vtk, .msh, .stl, ...), or --as BENCHMARK beside public files";
            let advice = match foreign_mesh(other) {
                true => format!(
                    "save it as .vtu in its program or in ParaView, or: meshio convert {} case.vtu",
                    other.display()
                ),
                false => "arrays of your own are --input NAME=FILE and --output NAME=FILE".to_owned(),
            };
            return Err(Refusal::new("the import", expected, other.display().to_string()).advise(advice).into());
        }
        Ok(MeshCases {
            files,
            inputs: self.input.clone(),
            outputs: self.output.clone(),
            derived: self.derive.clone(),
            scalars: self.scalars.clone(),
            at_centres: self.on == "cells",
            lattices: self.grid.is_none(),
        })
    }

    /// What the grid is called; mesh files that are no lattices are clouds.
    fn grid_text(&self) -> &str {
        self.grid.as_deref().unwrap_or(if self.files.is_empty() { "" } else { "cloud" })
    }

    /// The grid, and the points of each sample where their numbers differ.
    fn grid_of(&self, fields: &[OwnField]) -> Result<(Grid, Vec<usize>)> {
        let sizes = if self.grid_text() == "cloud" { points_of_files(fields)? } else { Vec::new() };
        match sizes.iter().max() {
            Some(&points) if sizes.iter().any(|size| *size != points) => Ok((Grid::Cloud { points }, sizes)),
            _ => Ok((self.grid(fields)?, Vec::new())),
        }
    }

    fn grid(&self, fields: &[OwnField]) -> Result<Grid> {
        let text = self.grid_text();
        let number = |text: &str| text.parse::<usize>().ok().filter(|&count| count > 0);
        if let Some(lattice) = Grid::parse_lattice(text) {
            return Ok(lattice);
        }
        let (kind, count) = text.split_once(':').map_or((text, None), |(kind, count)| (kind, Some(count)));
        let points = match count {
            Some(count) => number(count),
            None if matches!(kind, "line" | "cloud") => Some(count_points(fields)?),
            None => None,
        };
        match (kind, points) {
            ("line", Some(points)) => Ok(Grid::Line { points }),
            ("cloud", Some(points)) => Ok(Grid::Cloud { points }),
            _ => {
                let expected = "ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS";
                Err(Refusal::new("--grid", expected, format!("`{text}`")).advise("an example is 64x64").into())
            }
        }
    }
}

/// Whether a path ends like a mesh file of a format that is not read.
fn foreign_mesh(path: &Path) -> bool {
    const ENDINGS: [&str; 17] = [
        "inp", "med", "cgns", "e", "ex2", "exo", "xdmf", "xmf", "foam", "case", "bdf", "nas", "fem", "unv", "ply",
        "off", "su2",
    ];
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

fn pair<'a>(text: &'a str, flag: &str, form: &str) -> Result<(&'a str, &'a str), Refusal> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(Refusal::new(flag, form, format!("`{text}`"))),
    }
}

/// Adds a field, or more samples to a field that exists.
fn add(fields: &mut Vec<OwnField>, name: &str, role: Role, arrays: &str) -> Result<()> {
    let arrays = parse_arrays(arrays)?;
    if let Some(field) = fields.iter_mut().find(|field| field.name == name && field.role == role) {
        field.arrays.extend(arrays);
        return Ok(());
    }
    let normalise = if role == Role::Position { Normalise::None } else { Normalise::Channels };
    fields.push(OwnField { name: name.into(), role, unit: "1".into(), normalise, axes: None, arrays });
    Ok(())
}

/// The field of a name that a flag gives.
fn named<'a>(fields: &'a mut [OwnField], name: &str, flag: &str) -> Result<&'a mut OwnField, Refusal> {
    let known: Vec<_> = fields.iter().map(|field| field.name.clone()).collect();
    let unknown = || Refusal::new(flag, format!("one of {}", known.join(", ")), format!("`{name}`"));
    fields.iter_mut().find(|field| field.name == name).ok_or_else(unknown)
}

/// The number of points in the array of positions: its axis p, or its last axis before the coordinates.
fn count_points(fields: &[OwnField]) -> Result<usize> {
    let Some(field) = fields.iter().find(|field| field.role == Role::Position) else {
        let expected = "line:POINTS without --positions";
        return Err(Refusal::new("--grid", expected, "no number of points").into());
    };
    let arrays = &field.arrays[0];
    let shape = formats::describe(&arrays[0].path, arrays[0].variable.as_deref())?.shape;
    let by_letter = field.axes.as_deref().and_then(|axes| axes.find('p'));
    // A row of numbers, as MATLAB writes the points of a line.
    if let ([1, points], None) = (&shape[..], by_letter) {
        return Ok(*points);
    }
    let axis = by_letter.or_else(|| shape.len().checked_sub(if arrays.len() > 1 { 1 } else { 2 })).unwrap_or(0);
    Ok(shape.get(axis).copied().unwrap_or(1))
}
