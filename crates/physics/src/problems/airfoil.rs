//! Steady transonic flow around an airfoil: ∇·f(w) = 0, the Euler equations of air (Li et al. 2023, Geo-FNO).
//!
//! In: the nodes of a C-grid around a NACA 0012 section that a design element deforms: y += Σ dᵢ Φᵢ(x) Ψᵢ(y), cubic in
//! x, linear in y, with eight vertical displacements dᵢ; d₁ = 0, and d₂ to d₈ are uniform. Out: ρ, u, v, p and the Mach
//! number at the nodes, for ρ = p = 1 in the free stream. The solver uses second-order finite volumes. It has converged
//! when the Euclidean norm of the flux residual over all volumes, not divided by their areas, is at most the tolerance;
//! the public files use the same norm. When the solver finds no steady flow for an airfoil, the next airfoil is drawn
//! from the same random stream; [`Sample::draws`] counts them.

use rand::Rng;

use super::{FieldKind, Problem, Refined, Role, Row, Sample, SpatialOrder};
use crate::c_grid::CGrid;
use crate::finite_volume::{Flow, Limiter};
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::stream;
use crate::steady::{self, Steady};
use crate::symmetry::{Component, Symmetry};
use crate::{Error, euler};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "airfoil",
    equation: "div(rho v) = 0, div(rho v v + p) = 0, div((E + p) v) = 0 around an airfoil, v.n = 0 on its surface",
    version: 2, // 2: without `canonical`, the surface nodes are denser towards the nose
    parameters: PARAMETERS,
    removed: &[],
    small: &["wake_cells=8", "surface_cells=24", "normal_cells=8"],
    build: |settings| Ok(Box::new(Airfoil::new(settings)?)),
    symmetries,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "wake_cells",
        kind: Kind::Whole { default: 50, least: 4, most: 1000 },
        unit: "1",
        meaning: "cells along each side of the wake",
    },
    Parameter {
        name: "surface_cells",
        kind: Kind::Whole { default: 120, least: 12, most: 4000 },
        unit: "1",
        meaning: "cells around the airfoil, an even number; the cells next to it are 2 / surface_cells high",
    },
    Parameter {
        name: "normal_cells",
        kind: Kind::Whole { default: 50, least: 4, most: 1000 },
        unit: "1",
        meaning: "cells from the airfoil to the outer border, 40 chords away",
    },
    Parameter {
        name: "mach",
        kind: Kind::Within { default: 0.8, least: 0.1, most: 0.95 },
        unit: "1",
        meaning: "Mach number of the free stream",
    },
    Parameter {
        name: "angle",
        kind: Kind::Within { default: 0.0, least: -5.0, most: 5.0 },
        unit: "degree",
        meaning: "angle of attack in degrees: between the free stream and the chord",
    },
    Parameter {
        name: "displacement",
        kind: Kind::Within { default: 0.05, least: 0.0, most: LARGEST_DISPLACEMENT },
        unit: "chord",
        meaning: "largest displacement of a node of the design element, in chords",
    },
    Parameter {
        name: "tolerance",
        kind: Kind::Within { default: 5e-7, least: 1e-12, most: 1e-3 },
        unit: "1",
        meaning: "largest norm of the flux residual of a converged flow",
    },
    Parameter {
        name: "smoothing",
        kind: Kind::Within { default: 1e-4, least: 1e-8, most: 1.0 },
        unit: "1",
        meaning: "epsilon of the van Albada limiter: it leaves squared slopes far below epsilon unchanged",
    },
    Parameter {
        name: "canonical",
        kind: Kind::Switch { default: false },
        unit: "1",
        meaning: "mesh and limiter as in the public files: nodes evenly spaced in x, minmod",
    },
];

/// With larger displacements the upper side could cross the lower side.
const LARGEST_DISPLACEMENT: f64 = 0.06;
/// Airfoils drawn for one sample before the sample is an error.
const MOST_DRAWS: usize = 20;
/// Residual at which the finer flow may stop. Some flows stall below it; such a residual changes the Mach number by
/// much less than the mesh does.
const REFINED_TOLERANCE: f64 = 1e-5;

/// Vertical displacements of the nodes of the design element: lower row from left to right, then upper row from right
/// to left.
pub type Displacements = [f64; 8];

/// The mirror y → −y at no angle of attack. Mirrored airfoils have d₁ random and d₈ = 0, so they are other shapes than the
/// airfoils of the samples.
fn symmetries(settings: &Settings) -> (usize, Vec<Symmetry>) {
    let [wake, surface, normal] = ["wake_cells", "surface_cells", "normal_cells"].map(|key| settings.whole(key));
    let grid = CGrid { wake, surface, normal };
    let (rows, columns) = (grid.rows(), grid.columns());
    let fields = vec![
        ("positions", vec![Component::kept(0), Component::mirrored(1, 0.0)]),
        ("velocity_y", vec![Component::mirrored(0, 0.0)]),
    ];
    let mirror = Symmetry::of_plane([rows, columns], |row, column| [rows - 1 - row, column], fields);
    (rows * columns, if settings.real("angle") == 0.0 { vec![mirror] } else { Vec::new() })
}

/// The problem with its parameters fixed.
#[derive(Debug)]
pub struct Airfoil {
    settings: Settings,
    grid: CGrid,
    /// Whether the surface nodes are denser towards the nose; the public ones are evenly spaced in x.
    graded: bool,
    /// Whether the mesh is that of half the cells with each cell divided into four.
    divided: bool,
    limiter: Limiter,
}

/// A converged flow and its airfoil.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Displacements of the airfoil.
    pub displacements: Displacements,
    /// Airfoils drawn until the solver found a steady flow, this one included.
    pub draws: usize,
    /// `[rows, columns]` x and y
    pub positions: Vec<[f64; 2]>,
    /// The flow at the `[unknowns]`.
    pub steady: Steady,
}

impl Airfoil {
    /// Refuses an odd number of cells around the airfoil.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let [wake, surface, normal] = ["wake_cells", "surface_cells", "normal_cells"].map(|key| settings.whole(key));
        if surface % 2 != 0 {
            return Err(settings.refuse("surface_cells", "an even number".into(), surface));
        }
        let limiter = if settings.switch("canonical") {
            Limiter::Minmod
        } else {
            Limiter::VanAlbada { smoothing: settings.real("smoothing") }
        };
        let graded = !settings.switch("canonical");
        Ok(Self { settings, grid: CGrid { wake, surface, normal }, graded, divided: false, limiter })
    }

    /// The mesh around one airfoil, in the free stream.
    pub fn flow(&self, displacements: &Displacements) -> Flow {
        let angle = self.settings.real("angle").to_radians();
        let mesh = self.grid.volumes(&self.positions(displacements));
        Flow { mesh, stream: euler::stream(self.settings.real("mach"), angle), limiter: self.limiter }
    }

    /// The same problem on a mesh with twice the cells in both directions and the same nodes as every second one. The
    /// new nodes lie on the airfoil and on the outer border, or between them. The limiter is the accurate one.
    pub fn divided(&self) -> Result<Self, Error> {
        let mut settings = self.settings.with("canonical", false)?;
        for key in ["wake_cells", "surface_cells", "normal_cells"] {
            settings = settings.with(key, 2 * self.settings.whole(key))?;
        }
        Ok(Self { graded: self.graded, divided: true, ..Self::new(settings)? })
    }

    /// `[rows, columns]` nodes around one airfoil; the first step along the wake is the last step along the undeformed
    /// surface.
    pub fn positions(&self, displacements: &Displacements) -> Vec<[f64; 2]> {
        let CGrid { wake, surface, normal } = self.grid;
        let undivided = CGrid { wake: wake / 2, surface: surface / 2, normal: normal / 2 };
        let grid = if self.divided { undivided } else { self.grid };
        let mut x = if self.graded { grid.graded_surface_x() } else { grid.surface_x() };
        let [before, tail] = [x[x.len() - 2], x[x.len() - 1]].map(|x| [x, half_thickness(x)]);
        let mut spacing = grid.spacing((tail[0] - before[0]).hypot(tail[1] - before[1]));
        if self.divided {
            let between = |pair: &[f64]| (pair[0].sqrt() / 2.0 + pair[1].sqrt() / 2.0).powi(2); // even along a round nose
            let new: Vec<f64> = x.windows(2).map(between).collect();
            x = x.iter().copied().zip(new).flat_map(|(old, new)| [old, new]).chain([1.0]).collect();
            spacing = spacing.halved();
        }
        let upper = x.iter().rev().map(|&x| [x, half_thickness(x)]);
        let lower = x.iter().skip(1).map(|&x| [x, -half_thickness(x)]);
        let surface: Vec<[f64; 2]> = upper.chain(lower).map(|point| displaced(point, displacements)).collect();
        self.grid.positions(&surface, &spacing)
    }

    /// The first airfoil of the random stream (`seed`, `index`) for which the solver finds a steady flow.
    pub fn solve(&self, seed: u64, index: u64) -> Result<Solution, Error> {
        let tolerance = self.settings.real("tolerance");
        self.first_solved(seed, index, |displacements| steady::solve(&self.flow(displacements), tolerance))
    }

    /// The first airfoil of the random stream for which `solve` returns a flow.
    fn first_solved(
        &self,
        seed: u64,
        index: u64,
        mut solve: impl FnMut(&Displacements) -> Result<Steady, Steady>,
    ) -> Result<Solution, Error> {
        let mut random = stream(seed, index);
        let mut found = f64::NAN;
        for draws in 1..=MOST_DRAWS {
            let displacements = draw(self.settings.real("displacement"), &mut random);
            match solve(&displacements) {
                Ok(steady) => {
                    let positions = self.positions(&displacements);
                    return Ok(Solution { displacements, draws, positions, steady });
                }
                Err(stopped) => found = stopped.residual,
            }
        }
        let expected = self.settings.real("tolerance");
        Err(Error::NoSteadyFlow { problem: ROW.name, draws: MOST_DRAWS, expected, found })
    }

    /// `[rows, columns]` number of the unknown at each node.
    pub fn unknowns(&self) -> Vec<usize> {
        self.grid.unknowns()
    }
}

impl Problem for Airfoil {
    fn name(&self) -> &'static str {
        ROW.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        Grid::Plane { rows: self.grid.rows(), columns: self.grid.columns() }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let plane = self.grid().shape();
        let positions = [plane.clone(), vec![2]].concat();
        let mut fields = vec![FieldKind { name: "positions", unit: "chord", role: Role::Position, shape: positions }];
        let outputs = ["density", "velocity_x", "velocity_y", "pressure", "mach"];
        fields.extend(outputs.map(|name| FieldKind { name, unit: "1", role: Role::Output, shape: plane.clone() }));
        fields
    }

    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(2.0)
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        Ok(self.stored(self.solve(seed, index)?))
    }

    fn refined(&self) -> Result<Option<Refined>, Error> {
        let (stored, fine, kinds) = (Self::new(self.settings.clone())?, self.divided()?, self.fields());
        let tolerance = self.settings.real("tolerance").max(REFINED_TOLERANCE);
        let discretisation = "each cell divided into four, limiter of van Albada";
        Ok(Some(Refined::new(discretisation, move |seed, index| {
            let Solution { displacements, draws, .. } = stored.solve(seed, index)?; // the airfoil of the stored sample
            let steady = steady::solve(&fine.flow(&displacements), tolerance).map_err(|stopped| {
                let found = stopped.residual;
                Error::NoSteadyFlow { problem: ROW.name, draws: 1, expected: tolerance, found }
            })?;
            let positions = fine.positions(&displacements);
            Ok(fine.stored(Solution { displacements, draws, positions, steady }).at_every_second_node(&kinds))
        })))
    }
}

impl Airfoil {
    /// The fields of a solution.
    fn stored(&self, Solution { positions, steady, draws, .. }: Solution) -> Sample {
        let unknowns = self.unknowns();
        let field = |value: &dyn Fn(euler::Primitive) -> f64| -> Vec<f64> {
            unknowns.iter().map(|&unknown| value(steady.states[unknown])).collect()
        };
        let [density, velocity_x, velocity_y, pressure] = [0, 1, 2, 3].map(|k| field(&|state| state[k]));
        let mach = field(&euler::mach);
        let positions = positions.into_iter().flatten().collect();
        let sample = Sample::new(self.fields(), [positions, density, velocity_x, velocity_y, pressure, mach]);
        Sample { draws, ..sample }
    }
}

/// The first displacement is zero; the remaining seven are uniform in [−`largest`, `largest`].
fn draw(largest: f64, random: &mut impl Rng) -> Displacements {
    let mut displacements = [0.0; 8];
    displacements[1..].fill_with(|| largest * random.random_range(-1.0..=1.0));
    displacements
}

/// Half the thickness of NACA 0012 with a closed trailing edge.
fn half_thickness(x: f64) -> f64 {
    0.6 * (0.2969 * x.sqrt() - x * (0.1260 + x * (0.3516 - x * (0.2843 - x * 0.1036))))
}

/// (x, y) moved by the design element: cubic between its columns, linear between its rows.
pub fn displaced([x, y]: [f64; 2], displacements: &Displacements) -> [f64; 2] {
    const COLUMNS: [f64; 4] = [-0.25, 0.25, 0.75, 1.25];
    const HALF_HEIGHT: f64 = 0.1; // the rows lie at y = ±0.1
    let cubic = |k: usize| {
        let other_columns = COLUMNS.into_iter().enumerate().filter(|&(other, _)| other != k);
        other_columns.map(|(_, column)| (x - column) / (COLUMNS[k] - column)).product::<f64>()
    };
    let (lower, upper) = ((HALF_HEIGHT - y) / (2.0 * HALF_HEIGHT), (HALF_HEIGHT + y) / (2.0 * HALF_HEIGHT));
    let shift: f64 = (0..4).map(|k| cubic(k) * (displacements[k] * lower + displacements[7 - k] * upper)).sum();
    [x, y + shift]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_airfoil_is_twelve_percent_thick_and_closed() {
        let thickest = (0..=1000).map(|k| half_thickness(f64::from(k) / 1000.0)).fold(0.0, f64::max);
        assert!((thickest - 0.06).abs() < 1e-4, "{thickest}");
        assert!(half_thickness(1.0).abs() < 1e-15 && half_thickness(0.0) == 0.0);
    }

    #[test]
    fn nodes_of_the_design_element_move_by_their_displacements() {
        let displacements = [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07];
        for (k, x) in [-0.25, 0.25, 0.75, 1.25, 1.25, 0.75, 0.25, -0.25].into_iter().enumerate() {
            let y = if k < 4 { -0.1 } else { 0.1 };
            let [_, moved] = displaced([x, y], &displacements);
            assert!((moved - y - displacements[k]).abs() < 1e-15, "node {k} moves to {moved}");
        }
    }

    #[test]
    fn the_next_airfoil_is_drawn_and_counted_when_the_solver_finds_no_steady_flow() {
        let problem = Airfoil::new(Settings::new(ROW.name, PARAMETERS, ROW.small).unwrap()).unwrap();
        let state = |residual| Steady { states: Vec::new(), residual, steps: 0 };
        let mut seen = Vec::new();
        let third = problem.first_solved(5, 9, |displacements| {
            seen.push(*displacements);
            if seen.len() < 3 { Err(state(0.5)) } else { Ok(state(1e-9)) }
        });
        let third = third.unwrap();
        assert_eq!((third.draws, third.displacements), (3, seen[2]));
        assert!(seen[0] != seen[1] && seen[1] != seen[2]);
        let first = problem.first_solved(5, 9, |_| Ok(state(1e-9))).unwrap();
        assert_eq!((first.draws, first.displacements), (1, seen[0]));
        let message = problem.first_solved(5, 9, |_| Err(state(0.5))).unwrap_err().to_string();
        let sentence = "airfoil: no steady flow for any of 20 drawn shapes, expected a residual of at most 5e-7, found \
                        5e-1 for the last shape";
        assert_eq!(message, sentence);
    }

    /// The design element scales the thickness by 1 + (upper − lower shift) / 0.2, and each shift is below
    /// 1.631 · displacement.
    #[test]
    fn the_upper_side_stays_above_the_lower_side_for_all_accepted_displacements() {
        let most = LARGEST_DISPLACEMENT;
        for signs in 0..256u32 {
            let displacements: Displacements = std::array::from_fn(|k| if signs >> k & 1 == 1 { most } else { -most });
            for x in (1..60).map(|k| f64::from(k) / 60.0) {
                let [_, upper] = displaced([x, half_thickness(x)], &displacements);
                let [_, lower] = displaced([x, -half_thickness(x)], &displacements);
                assert!(upper > lower, "signs {signs:b} at x = {x}");
            }
        }
    }

    /// Both flows stop at the tolerance of the residual.
    #[test]
    fn the_flow_around_a_mirrored_airfoil_is_the_mirrored_flow() {
        for canonical in ["canonical=false", "canonical=true"] {
            let changes = [ROW.small, &[canonical, "mach=0.6", "tolerance=1e-10"]].concat();
            let problem = Airfoil::new(Settings::new(ROW.name, PARAMETERS, &changes).unwrap()).unwrap();
            let all = ROW.symmetries(&changes).unwrap();
            assert_eq!(all.len(), 2);
            let tolerance = problem.settings.real("tolerance");
            let solve = |displacements: &Displacements| {
                let steady = steady::solve(&problem.flow(displacements), tolerance).unwrap();
                let positions = problem.positions(displacements);
                problem.stored(Solution { displacements: *displacements, draws: 1, positions, steady })
            };
            let displacements = draw(0.05, &mut stream(1, 1));
            let mut mirrored = displacements.map(|displacement| -displacement);
            mirrored.reverse();
            let wanted = all[1].apply(problem.grid(), &solve(&displacements));
            for (found, wanted) in solve(&mirrored).fields.iter().zip(&wanted.fields) {
                let error = found.relative_error(wanted);
                assert!(error < 1e-6, "{canonical}, {}: {error:e}", found.name);
            }
        }
        let turned = [ROW.small, &["angle=1"]].concat();
        assert_eq!(ROW.symmetries(&turned).unwrap().len(), 1);
    }
}
