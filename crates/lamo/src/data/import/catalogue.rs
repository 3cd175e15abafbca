//! The public files of the benchmarks: one row per benchmark. They become data sets like those of the solvers.
//!
//! A file is recognised by its name without the ending, in any folder: the papers' archives, the authors' scripts and
//! later libraries have the same files in different folders and formats. `public` finds and reads the files.

use crate::data::dataset::{Error, Normalise, Role};
use crate::data::formats::mat5::write::Real;
use lamo_geometry::Grid;

/// One benchmark.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// The field to predict.
    pub target: &'static str,
    /// The grid of the files.
    pub(super) grid: Grid,
    /// Distance of the rows and columns that are read: 1 reads all, 5 every fifth.
    pub(super) stride: usize,
    pub(super) times: Times,
    /// Type of the variables in MAT files; npy files hold doubles.
    pub(super) real: Real,
    /// Parts joined along the samples.
    pub(super) parts: &'static [PartRow],
    pub(super) fields: &'static [FieldRow],
}

/// Times of the snapshots of a time series.
pub(super) enum Times {
    /// The fields are no time series.
    None,
    /// This many times, evenly from 0 to 1.
    Even(usize),
    /// This many times in the variable of this name in the first file; 1, 2, 3, … if the file does not have it.
    Variable(&'static str, usize),
}

impl Times {
    /// How many there are.
    pub(super) fn count(&self) -> Option<usize> {
        match *self {
            Times::None => None,
            Times::Even(count) | Times::Variable(_, count) => Some(count),
        }
    }
}

/// Files that hold the same samples.
pub(super) struct PartRow {
    /// The files, each with all its names.
    pub(super) files: &'static [&'static [&'static str]],
    /// Samples that the files must hold at least.
    pub(super) samples: usize,
    pub(super) train: Option<Selection>,
    pub(super) test: Option<Selection>,
}

/// Samples of a part.
#[derive(Clone, Copy)]
pub(super) enum Selection {
    /// From the first number on, as many as the second says.
    From(usize, usize),
    /// This many, from the end.
    Last(usize),
}

/// A field of the data set.
pub(super) struct FieldRow {
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) unit: &'static str,
    pub(super) normalise: Normalise,
    /// Arrays side by side, joined along the channels.
    pub(super) pieces: &'static [PieceRow],
}

/// An array of a public file.
pub(super) struct PieceRow {
    /// Index of its file in the part.
    pub(super) file: usize,
    /// Its name in the file.
    pub(super) variable: Option<&'static str>,
    /// A letter per axis: n samples, t snapshots, x rows, y columns, p points, c channels.
    pub(super) axes: &'static str,
    /// Extent of each axis; 0 for the samples.
    pub(super) shape: &'static [usize],
    /// The only channel to read.
    pub(super) channel: Option<usize>,
}

const RAW: Normalise = Normalise::None;
const CHANNELS: Normalise = Normalise::Channels;

const fn field(
    name: &'static str,
    role: Role,
    unit: &'static str,
    normalise: Normalise,
    pieces: &'static [PieceRow],
) -> FieldRow {
    FieldRow { name, role, unit, normalise, pieces }
}

const fn array(file: usize, axes: &'static str, shape: &'static [usize]) -> PieceRow {
    PieceRow { file, variable: None, axes, shape, channel: None }
}

const fn variable(name: &'static str, axes: &'static str, shape: &'static [usize]) -> PieceRow {
    PieceRow { file: 0, variable: Some(name), axes, shape, channel: None }
}

const fn channel(file: usize, axes: &'static str, shape: &'static [usize], channel: usize) -> PieceRow {
    PieceRow { file, variable: None, axes, shape, channel: Some(channel) }
}

const AIRFOIL: &[usize] = &[0, 5, 221, 51];
const PIPE: &[usize] = &[0, 3, 129, 129];

/// Every benchmark with public files.
pub const CATALOGUE: &[Row] = &[
    Row {
        name: "darcy",
        target: "pressure",
        grid: Grid::Plane { rows: 421, columns: 421 },
        stride: 5,
        times: Times::None,
        real: Real::Double,
        parts: &[
            PartRow {
                files: &[&["piececonst_r421_N1024_smooth1"]],
                samples: 1000,
                train: Some(Selection::From(0, 1000)),
                test: None,
            },
            PartRow {
                files: &[&["piececonst_r421_N1024_smooth2"]],
                samples: 200,
                train: None,
                test: Some(Selection::From(0, 200)),
            },
        ],
        fields: &[
            field("permeability", Role::Input, "1", CHANNELS, &[variable("coeff", "nxy", &[0, 421, 421])]),
            field("pressure", Role::Output, "1", CHANNELS, &[variable("sol", "nxy", &[0, 421, 421])]),
        ],
    },
    Row {
        name: "navier-stokes",
        target: "vorticity",
        grid: Grid::Plane { rows: 64, columns: 64 },
        stride: 1,
        times: Times::Variable("t", 20),
        real: Real::Single,
        parts: &[PartRow {
            files: &[&["NavierStokes_V1e-5_N1200_T20", "ns_V1e-5_N1200_T20"]],
            samples: 1200,
            train: Some(Selection::From(0, 1000)),
            test: Some(Selection::Last(200)),
        }],
        fields: &[
            field("initial_vorticity", Role::Input, "1", RAW, &[variable("a", "nxy", &[0, 64, 64])]),
            field("vorticity", Role::Output, "1", RAW, &[variable("u", "nxyt", &[0, 64, 64, 20])]),
        ],
    },
    Row {
        name: "elasticity",
        target: "stress",
        grid: Grid::Cloud { points: 972 },
        stride: 1,
        times: Times::None,
        real: Real::Double,
        parts: &[PartRow {
            files: &[&["Random_UnitCell_XY_10"], &["Random_UnitCell_sigma_10"]],
            samples: 1200,
            train: Some(Selection::From(0, 1000)),
            test: Some(Selection::Last(200)),
        }],
        fields: &[
            field("positions", Role::Position, "1", RAW, &[array(0, "pcn", &[972, 2, 0])]),
            field("stress", Role::Output, "1", CHANNELS, &[array(1, "pn", &[972, 0])]),
        ],
    },
    Row {
        name: "plasticity",
        target: "deformation",
        grid: Grid::Plane { rows: 101, columns: 31 },
        stride: 1,
        times: Times::Even(20),
        real: Real::Single,
        parts: &[PartRow {
            files: &[&["plas_N987_T20", "buri_plas_N987_time"]],
            samples: 980,
            train: Some(Selection::From(0, 900)),
            test: Some(Selection::Last(80)),
        }],
        fields: &[
            field("die", Role::Input, "mm", CHANNELS, &[variable("input", "nx", &[0, 101])]),
            field("deformation", Role::Output, "mm", RAW, &[variable("output", "nxytc", &[0, 101, 31, 20, 4])]),
        ],
    },
    Row {
        name: "airfoil",
        target: "mach",
        grid: Grid::Plane { rows: 221, columns: 51 },
        stride: 1,
        times: Times::None,
        real: Real::Double,
        parts: &[PartRow {
            files: &[&["NACA_Cylinder_X"], &["NACA_Cylinder_Y"], &["NACA_Cylinder_Q"]],
            samples: 1200,
            train: Some(Selection::From(0, 1000)),
            test: Some(Selection::From(1000, 200)),
        }],
        fields: &[
            field(
                "positions",
                Role::Position,
                "1",
                RAW,
                &[array(0, "nxy", &[0, 221, 51]), array(1, "nxy", &[0, 221, 51])],
            ),
            field("mach", Role::Output, "1", RAW, &[channel(2, "ncxy", AIRFOIL, 4)]),
            field("density", Role::Output, "1", RAW, &[channel(2, "ncxy", AIRFOIL, 0)]),
            field("velocity_x", Role::Output, "1", RAW, &[channel(2, "ncxy", AIRFOIL, 1)]),
            field("velocity_y", Role::Output, "1", RAW, &[channel(2, "ncxy", AIRFOIL, 2)]),
            field("pressure", Role::Output, "1", RAW, &[channel(2, "ncxy", AIRFOIL, 3)]),
        ],
    },
    Row {
        name: "pipe",
        target: "velocity_x",
        grid: Grid::Plane { rows: 129, columns: 129 },
        stride: 1,
        times: Times::None,
        real: Real::Double,
        parts: &[PartRow {
            files: &[&["Pipe_X"], &["Pipe_Y"], &["Pipe_Q"]],
            samples: 1200,
            train: Some(Selection::From(0, 1000)),
            test: Some(Selection::From(1000, 200)),
        }],
        fields: &[
            field(
                "positions",
                Role::Position,
                "1",
                CHANNELS,
                &[array(0, "nxy", &[0, 129, 129]), array(1, "nxy", &[0, 129, 129])],
            ),
            field("velocity_x", Role::Output, "1", CHANNELS, &[channel(2, "ncxy", PIPE, 0)]),
            field("velocity_y", Role::Output, "1", CHANNELS, &[channel(2, "ncxy", PIPE, 1)]),
            field("pressure", Role::Output, "1", CHANNELS, &[channel(2, "ncxy", PIPE, 2)]),
        ],
    },
];

/// The benchmark called `name`.
pub fn find(name: &str) -> Result<&'static Row, Error> {
    CATALOGUE.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<_> = CATALOGUE.iter().map(|row| row.name).collect();
        Error::UnknownBenchmark { expected: known.join(", "), found: name.into() }
    })
}

/// How a benchmark normalises a field; [`Normalise::None`] where the catalogue has no such benchmark or field.
#[cfg(feature = "solvers")]
pub(in crate::data) fn normalise(benchmark: &str, field: &str) -> Normalise {
    let row = CATALOGUE.iter().find(|row| row.name == benchmark);
    row.and_then(|row| row.fields.iter().find(|known| known.name == field)).map_or(RAW, |known| known.normalise)
}

impl Row {
    /// The names of the public files, for help and error sentences.
    pub fn files(&self) -> Vec<&'static str> {
        self.parts.iter().flat_map(|part| part.files).filter_map(|names| names.first().copied()).collect()
    }
}
