//! The public benchmark files: one row each, so that they become data sets like those the solvers make.
//!
//! A file is known by its name without the ending, wherever it lies: the papers' archives, the authors' scripts and the
//! libraries that followed keep the same files under different folders and in different formats. How the files are
//! found and read is in `public`.

use crate::data::dataset::{Error, Normalise, Role};
use lamo_geometry::Grid;

/// One benchmark.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// The field that the benchmark asks for.
    pub target: &'static str,
    pub(super) grid: Grid,
    /// Every so many-th row and column is kept.
    pub(super) stride: usize,
    pub(super) times: Times,
    /// Joined along the samples.
    pub(super) parts: &'static [PartRow],
    pub(super) fields: &'static [FieldRow],
}

/// When the frames of a film were taken.
pub(super) enum Times {
    None,
    /// So many, evenly from 0 to 1.
    Even(usize),
    /// In the first file, under this name; 1, 2, 3, … if it is not there.
    Variable(&'static str, usize),
}

/// Files that hold the same samples.
pub(super) struct PartRow {
    /// Each under all its names.
    pub(super) files: &'static [&'static [&'static str]],
    pub(super) samples: Samples,
    pub(super) train: Option<Kept>,
    pub(super) test: Option<Kept>,
}

#[derive(Clone, Copy)]
pub(super) enum Samples {
    /// The split counts from the end, so that the number matters.
    Exactly(usize),
    AtLeast(usize),
}

#[derive(Clone, Copy)]
pub(super) enum Kept {
    /// So many from here on.
    From(usize, usize),
    Last(usize),
}

pub(super) struct FieldRow {
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) unit: &'static str,
    pub(super) normalise: Normalise,
    /// Side by side: the channels of one follow those of the other.
    pub(super) pieces: &'static [PieceRow],
}

/// An array of a public file.
pub(super) struct PieceRow {
    /// Which file of the part.
    pub(super) file: usize,
    pub(super) variable: Option<&'static str>,
    /// A letter per axis: n samples, t frames, x rows, y columns, p points, c channels.
    pub(super) axes: &'static str,
    /// Points of each axis; 0 for the samples.
    pub(super) shape: &'static [usize],
    /// The only channel wanted.
    pub(super) channel: Option<usize>,
}

const RAW: Normalise = Normalise::None;
const EVEN: Normalise = Normalise::Channels;

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

/// Every benchmark whose files are known.
pub const CATALOGUE: &[Row] = &[
    Row {
        name: "darcy",
        target: "pressure",
        grid: Grid::Plane { rows: 421, columns: 421 },
        stride: 5,
        times: Times::None,
        parts: &[
            PartRow {
                files: &[&["piececonst_r421_N1024_smooth1"]],
                samples: Samples::AtLeast(1000),
                train: Some(Kept::From(0, 1000)),
                test: None,
            },
            PartRow {
                files: &[&["piececonst_r421_N1024_smooth2"]],
                samples: Samples::AtLeast(200),
                train: None,
                test: Some(Kept::From(0, 200)),
            },
        ],
        fields: &[
            field("permeability", Role::Input, "1", EVEN, &[variable("coeff", "nxy", &[0, 421, 421])]),
            field("pressure", Role::Output, "1", EVEN, &[variable("sol", "nxy", &[0, 421, 421])]),
        ],
    },
    Row {
        name: "navier-stokes",
        target: "vorticity",
        grid: Grid::Plane { rows: 64, columns: 64 },
        stride: 1,
        times: Times::Variable("t", 20),
        parts: &[PartRow {
            files: &[&["NavierStokes_V1e-5_N1200_T20", "ns_V1e-5_N1200_T20"]],
            samples: Samples::Exactly(1200),
            train: Some(Kept::From(0, 1000)),
            test: Some(Kept::Last(200)),
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
        parts: &[PartRow {
            files: &[&["Random_UnitCell_XY_10"], &["Random_UnitCell_sigma_10"]],
            samples: Samples::Exactly(2000),
            train: Some(Kept::From(0, 1000)),
            test: Some(Kept::Last(200)),
        }],
        fields: &[
            field("positions", Role::Position, "1", RAW, &[array(0, "pcn", &[972, 2, 0])]),
            field("stress", Role::Output, "1", EVEN, &[array(1, "pn", &[972, 0])]),
        ],
    },
    Row {
        name: "plasticity",
        target: "deformation",
        grid: Grid::Plane { rows: 101, columns: 31 },
        stride: 1,
        times: Times::Even(20),
        parts: &[PartRow {
            files: &[&["plas_N987_T20", "buri_plas_N987_time"]],
            samples: Samples::Exactly(987),
            train: Some(Kept::From(0, 900)),
            test: Some(Kept::Last(80)),
        }],
        fields: &[
            field("die", Role::Input, "mm", EVEN, &[variable("input", "nx", &[0, 101])]),
            field("deformation", Role::Output, "mm", RAW, &[variable("output", "nxytc", &[0, 101, 31, 20, 4])]),
        ],
    },
    Row {
        name: "airfoil",
        target: "mach",
        grid: Grid::Plane { rows: 221, columns: 51 },
        stride: 1,
        times: Times::None,
        parts: &[PartRow {
            files: &[&["NACA_Cylinder_X"], &["NACA_Cylinder_Y"], &["NACA_Cylinder_Q"]],
            samples: Samples::AtLeast(1200),
            train: Some(Kept::From(0, 1000)),
            test: Some(Kept::From(1000, 200)),
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
        parts: &[PartRow {
            files: &[&["Pipe_X"], &["Pipe_Y"], &["Pipe_Q"]],
            samples: Samples::AtLeast(1200),
            train: Some(Kept::From(0, 1000)),
            test: Some(Kept::From(1000, 200)),
        }],
        fields: &[
            field(
                "positions",
                Role::Position,
                "1",
                EVEN,
                &[array(0, "nxy", &[0, 129, 129]), array(1, "nxy", &[0, 129, 129])],
            ),
            field("velocity_x", Role::Output, "1", EVEN, &[channel(2, "ncxy", PIPE, 0)]),
            field("velocity_y", Role::Output, "1", EVEN, &[channel(2, "ncxy", PIPE, 1)]),
            field("pressure", Role::Output, "1", EVEN, &[channel(2, "ncxy", PIPE, 2)]),
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

/// What the benchmark does to a field before a model sees it; nothing where neither is known.
pub(in crate::data) fn normalise(benchmark: &str, field: &str) -> Normalise {
    let row = CATALOGUE.iter().find(|row| row.name == benchmark);
    row.and_then(|row| row.fields.iter().find(|known| known.name == field)).map_or(RAW, |known| known.normalise)
}

impl Row {
    /// The public files by name, for help and refusals.
    pub fn files(&self) -> Vec<&'static str> {
        self.parts.iter().flat_map(|part| part.files).filter_map(|names| names.first().copied()).collect()
    }
}
