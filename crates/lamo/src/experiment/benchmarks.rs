//! The six benchmarks of the field: inputs, outputs and sizes.

use crate::error::{Kind, Refusal};
use crate::task::{Task, Time};
use lamo_geometry::Grid;

/// One benchmark.
pub struct Benchmark {
    /// Name on the command line.
    pub name: &'static str,
    /// The task in one line.
    pub summary: &'static str,
    grid: Grid,
    functions: usize,
    outputs: usize,
    time: Time,
    /// Samples to train on, and to test on.
    pub samples: [usize; 2],
    /// Keys that all its experiments share: `[data]`, `[train]`, and in `[quick]` the changes of the preset quick.
    pub(crate) keys: &'static str,
}

const fn plane(rows: usize, columns: usize) -> Grid {
    Grid::Plane { rows, columns }
}

/// Every benchmark.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "darcy",
        summary: "permeability to pressure of Darcy flow",
        grid: plane(85, 85),
        functions: 1,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/darcy.toml"),
    },
    Benchmark {
        name: "navier-stokes",
        summary: "ten snapshots of vorticity to the next ten, viscosity 1e-5",
        grid: plane(64, 64),
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 10, snapshots: 10, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/navier-stokes.toml"),
    },
    Benchmark {
        name: "elasticity",
        summary: "points of a pulled cell with a hole to their stress",
        grid: Grid::Cloud { points: 972 },
        functions: 0,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/elasticity.toml"),
    },
    Benchmark {
        name: "plasticity",
        summary: "shape of a die to the deformation of the block it stamps, over time",
        grid: plane(101, 31),
        functions: 1,
        outputs: 4,
        time: Time::ByTime { count: 20, clock: Vec::new() },
        samples: [900, 80],
        keys: include_str!("../../../../experiments/plasticity.toml"),
    },
    Benchmark {
        name: "airfoil",
        summary: "mesh around an airfoil to the Mach number of the transonic flow",
        grid: plane(221, 51),
        functions: 0,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/airfoil.toml"),
    },
    Benchmark {
        name: "pipe",
        summary: "mesh of a bent pipe to the velocity of the flow through it",
        grid: plane(129, 129),
        functions: 0,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/pipe.toml"),
    },
];

/// A benchmark by name.
pub fn find(name: &str) -> Result<&'static Benchmark, Refusal> {
    BENCHMARKS.iter().find(|benchmark| benchmark.name == name).ok_or_else(|| {
        let known: Vec<_> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
        Refusal::said(format!("benchmark {name:?} does not exist; there are {}", known.join(", "))).of(Kind::Missing)
    })
}

impl Benchmark {
    /// The task of the benchmark at its published size.
    pub fn task(&self) -> Task {
        Task { time: self.time.clone(), ..Task::plain(self.grid, 2, self.functions, self.outputs) }
    }
}
