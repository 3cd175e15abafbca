//! The six benchmarks of the field and those of our own: inputs, outputs and sizes.

use crate::error::{Kind, Refusal};
use crate::network::models::OwnData;
use crate::task::{Task, Time};
use lamo_geometry::Grid;

/// One benchmark.
pub struct Benchmark {
    /// Name on the command line.
    pub name: &'static str,
    /// The task in one line.
    pub summary: &'static str,
    /// Whether its sizes and recipes are those of the papers; models have recipes for these. On the others they have the
    /// sizes for a user's data, and `lamo results` and `lamo paper` leave them out.
    pub published: bool,
    grid: Grid,
    /// Coordinates of a point.
    space: usize,
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
        published: true,
        grid: plane(85, 85),
        space: 2,
        functions: 1,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/darcy.toml"),
    },
    Benchmark {
        name: "navier-stokes",
        summary: "ten snapshots of vorticity to the next ten, viscosity 1e-5",
        published: true,
        grid: plane(64, 64),
        space: 2,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 10, snapshots: 10, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/navier-stokes.toml"),
    },
    Benchmark {
        name: "elasticity",
        summary: "points of a pulled cell with a hole to their stress",
        published: true,
        grid: Grid::Cloud { points: 972 },
        space: 2,
        functions: 0,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/elasticity.toml"),
    },
    Benchmark {
        name: "plasticity",
        summary: "shape of a die to the deformation of the block it stamps, over time",
        published: true,
        grid: plane(101, 31),
        space: 2,
        functions: 1,
        outputs: 4,
        time: Time::ByTime { count: 20, clock: Vec::new() },
        samples: [900, 80],
        keys: include_str!("../../../../experiments/plasticity.toml"),
    },
    Benchmark {
        name: "airfoil",
        summary: "mesh around an airfoil to the Mach number of the transonic flow",
        published: true,
        grid: plane(221, 51),
        space: 2,
        functions: 0,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/airfoil.toml"),
    },
    Benchmark {
        name: "pipe",
        summary: "mesh of a bent pipe to the velocity of the flow through it",
        published: true,
        grid: plane(129, 129),
        space: 2,
        functions: 0,
        outputs: 1,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/pipe.toml"),
    },
    Benchmark {
        name: "beam",
        summary: "shape of a clamped bar and the force at its end to displacement and stress, in 3-D, sizes differ",
        published: false,
        grid: Grid::Cloud { points: 1225 },
        space: 3,
        functions: 7,
        outputs: 4,
        time: Time::Steady,
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/beam.toml"),
    },
    Benchmark {
        name: "heat",
        summary: "conductivity, sources and first temperature of a body to later temperatures, in 3-D, sizes differ",
        published: false,
        grid: Grid::Cloud { points: 1377 },
        space: 3,
        functions: 3,
        outputs: 1,
        time: Time::ByTime { count: 5, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/heat.toml"),
    },
    Benchmark {
        name: "advection-diffusion",
        summary: "a wave that is carried along and spreads, continued from its first snapshot",
        published: false,
        grid: Grid::Line { points: 128 },
        space: 1,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 1, snapshots: 19, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/advection-diffusion.toml"),
    },
    Benchmark {
        name: "burgers",
        summary: "velocity of Burgers' equation, continued from its first snapshot",
        published: false,
        grid: Grid::Line { points: 256 },
        space: 1,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 1, snapshots: 39, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/burgers.toml"),
    },
    Benchmark {
        name: "kdv",
        summary: "waves of Korteweg and de Vries, continued from their first snapshot",
        published: false,
        grid: Grid::Line { points: 128 },
        space: 1,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 1, snapshots: 39, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/kdv.toml"),
    },
    Benchmark {
        name: "kuramoto-sivashinsky",
        summary: "chaos of Kuramoto and Sivashinsky, continued from its first snapshot",
        published: false,
        grid: Grid::Line { points: 128 },
        space: 1,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 1, snapshots: 39, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/kuramoto-sivashinsky.toml"),
    },
    Benchmark {
        name: "kolmogorov",
        summary: "vorticity of Kolmogorov flow, continued from its first two snapshots",
        published: false,
        grid: plane(64, 64),
        space: 2,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 2, snapshots: 18, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/kolmogorov.toml"),
    },
    Benchmark {
        name: "turbulence",
        summary: "vorticity of decaying turbulence, continued from its first two snapshots",
        published: false,
        grid: plane(64, 64),
        space: 2,
        functions: 0,
        outputs: 1,
        time: Time::RollOut { past: 2, snapshots: 18, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/turbulence.toml"),
    },
    Benchmark {
        name: "gray-scott",
        summary: "two reacting substances, continued from their first snapshot",
        published: false,
        grid: plane(64, 64),
        space: 2,
        functions: 0,
        outputs: 2,
        time: Time::RollOut { past: 1, snapshots: 19, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/gray-scott.toml"),
    },
    Benchmark {
        name: "shallow-water",
        summary: "height and velocity of shallow water, continued from their first snapshot",
        published: false,
        grid: plane(64, 64),
        space: 2,
        functions: 0,
        outputs: 3,
        time: Time::RollOut { past: 1, snapshots: 19, clock: Vec::new() },
        samples: [1000, 200],
        keys: include_str!("../../../../experiments/shallow-water.toml"),
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
        Task { time: self.time.clone(), ..Task::plain(self.grid, self.space, self.functions, self.outputs) }
    }

    /// What a model that has no recipe for it is told: the same as about a user's data.
    pub(super) fn as_own(&self, own: &OwnData) -> OwnData {
        OwnData { grid: own.grid.or(Some(self.grid)), timed: own.timed || self.time.is_input(), quick: own.quick }
    }

    /// Its grid at the published size.
    pub fn grid(&self) -> Grid {
        self.grid
    }
}
