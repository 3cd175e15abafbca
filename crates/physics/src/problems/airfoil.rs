//! Steady transonic flow round an airfoil: ∇·f(w) = 0, the Euler equations of air (Li et al. 2023, Geo-FNO).
//!
//! In: the nodes of a C-grid round a NACA 0012 section bent by a design element: y += Σ dᵢ Φᵢ(x) Ψᵢ(y), cubic in x,
//! linear in y, eight vertical displacements dᵢ, the first one zero and the others uniform. Out: ρ, u, v, p and the
//! Mach number at the nodes, for ρ = p = 1 far away. Solved by second-order finite volumes until the Euclidean norm of
//! the flux balance over all volumes, not divided by their areas, is at most the tolerance: the norm of the public
//! files. A section whose flow does not settle is drawn again from the same random stream, and the draws are counted.

use rand::Rng;

use super::{FieldKind, Problem, Role, Row, Sample, SpatialOrder};
use crate::c_grid::CGrid;
use crate::finite_volume::{Flow, Limiter};
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::stream;
use crate::steady::{Steady, settle};
use crate::{Error, euler};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "airfoil",
    equation: "div(rho v) = 0, div(rho v v + p) = 0, div((E + p) v) = 0 round a section, v.n = 0 on it",
    version: 1,
    parameters: PARAMETERS,
    small: &["wake_cells=8", "surface_cells=24", "normal_cells=8"],
    build: |settings| Ok(Box::new(Airfoil::new(settings)?)),
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
        meaning: "cells round the section, an even number; the first cells off it are 2 / surface_cells high",
    },
    Parameter {
        name: "normal_cells",
        kind: Kind::Whole { default: 50, least: 4, most: 1000 },
        unit: "1",
        meaning: "cells from the section to the outer border, 40 chords away",
    },
    Parameter { name: "mach", kind: Kind::Positive { default: 0.8 }, unit: "1", meaning: "Mach number far away" },
    Parameter {
        name: "angle",
        kind: Kind::Real { default: 0.0 },
        unit: "degree",
        meaning: "direction of the flow far away against the chord",
    },
    Parameter {
        name: "displacement",
        kind: Kind::NonNegative { default: 0.05 },
        unit: "chord",
        meaning: "largest displacement of the nodes of the design element",
    },
    Parameter {
        name: "tolerance",
        kind: Kind::Positive { default: 5e-7 },
        unit: "1",
        meaning: "largest norm of the flux balance of a settled flow",
    },
    Parameter {
        name: "smoothing",
        kind: Kind::Positive { default: 1e-4 },
        unit: "1",
        meaning: "epsilon of the van Albada limiter: squared slopes well below it are not limited",
    },
    Parameter {
        name: "canonical",
        kind: Kind::Switch { default: false },
        unit: "1",
        meaning: "limit slopes as the public files do: minmod",
    },
];

/// Physical ranges, both ends included; beyond the largest displacement the upper side may cross the lower one.
const RANGES: [(&str, f64, f64); 5] = [
    ("mach", 0.1, 0.95),
    ("angle", -5.0, 5.0),
    ("displacement", 0.0, 0.06),
    ("tolerance", 1e-12, 1e-3),
    ("smoothing", 1e-8, 1.0),
];

/// Sections drawn for one sample before giving up.
const MOST_ATTEMPTS: usize = 20;

/// Vertical displacements of the design element's nodes: the lower ones left to right, the upper ones right to left.
pub type Displacements = [f64; 8];

/// The problem with its parameters fixed.
#[derive(Debug)]
pub struct Airfoil {
    settings: Settings,
    grid: CGrid,
    limiter: Limiter,
}

/// A settled flow and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Of the section that settled.
    pub displacements: Displacements,
    /// Sections drawn, the settled one included.
    pub attempts: usize,
    /// `[rows, columns]` x and y
    pub positions: Vec<[f64; 2]>,
    /// `[unknowns]` states
    pub steady: Steady,
}

impl Airfoil {
    /// Refuses what leaves the physical ranges.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        for (key, least, most) in RANGES {
            let value = settings.real(key);
            if !(least..=most).contains(&value) {
                return Err(settings.refuse(key, format!("a number from {least} to {most}"), value));
            }
        }
        let [wake, surface, normal] = ["wake_cells", "surface_cells", "normal_cells"].map(|key| settings.whole(key));
        if surface % 2 != 0 {
            return Err(settings.refuse("surface_cells", "an even number".into(), surface));
        }
        let limiter = if settings.switch("canonical") {
            Limiter::Minmod
        } else {
            Limiter::VanAlbada { smoothing: settings.real("smoothing") }
        };
        Ok(Self { settings, grid: CGrid { wake, surface, normal }, limiter })
    }

    /// The mesh round one section and the stream that meets it.
    pub fn flow(&self, displacements: &Displacements) -> Flow {
        let angle = self.settings.real("angle").to_radians();
        let mesh = self.grid.volumes(&self.positions(displacements));
        Flow { mesh, stream: euler::stream(self.settings.real("mach"), angle), limiter: self.limiter }
    }

    /// `[rows, columns]` nodes round one section; the wake starts with the last step of the section before it was bent.
    pub fn positions(&self, displacements: &Displacements) -> Vec<[f64; 2]> {
        let x = self.grid.surface_x();
        let upper = x.iter().rev().map(|&x| [x, half_thickness(x)]);
        let lower = x.iter().skip(1).map(|&x| [x, -half_thickness(x)]);
        let section: Vec<[f64; 2]> = upper.chain(lower).collect();
        let step = (section[0][0] - section[1][0]).hypot(section[0][1] - section[1][1]);
        let surface: Vec<[f64; 2]> = section.into_iter().map(|point| displaced(point, displacements)).collect();
        self.grid.positions(&surface, step)
    }

    /// The first section of the stream (`seed`, `index`) whose flow settles.
    pub fn solve(&self, seed: u64, index: u64) -> Result<Solution, Error> {
        let tolerance = self.settings.real("tolerance");
        self.first(seed, index, |displacements| settle(&self.flow(displacements), tolerance))
    }

    /// The first section that `settle` accepts.
    fn first(
        &self,
        seed: u64,
        index: u64,
        mut settle: impl FnMut(&Displacements) -> Result<Steady, Steady>,
    ) -> Result<Solution, Error> {
        let mut random = stream(seed, index);
        let mut found = f64::NAN;
        for attempts in 1..=MOST_ATTEMPTS {
            let displacements = draw(self.settings.real("displacement"), &mut random);
            match settle(&displacements) {
                Ok(steady) => {
                    let positions = self.positions(&displacements);
                    return Ok(Solution { displacements, attempts, positions, steady });
                }
                Err(stuck) => found = stuck.residual,
            }
        }
        let expected = self.settings.real("tolerance");
        Err(Error::Unsettled { problem: ROW.name, attempts: MOST_ATTEMPTS, expected, found })
    }

    /// `[rows, columns]` the unknown at each node.
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
        let Solution { positions, steady, attempts, .. } = self.solve(seed, index)?;
        let unknowns = self.unknowns();
        let field = |value: &dyn Fn(euler::Primitive) -> f64| -> Vec<f64> {
            unknowns.iter().map(|&unknown| value(steady.states[unknown])).collect()
        };
        let [density, velocity_x, velocity_y, pressure] = [0, 1, 2, 3].map(|k| field(&|state| state[k]));
        let mach = field(&euler::mach);
        let positions = positions.into_iter().flatten().collect();
        let sample = Sample::new(self.fields(), [positions, density, velocity_x, velocity_y, pressure, mach]);
        Ok(Sample { draws: attempts, ..sample })
    }
}

/// The first displacement is zero, the others are uniform up to `largest`.
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
    const ROW: f64 = 0.1; // the other one lies at −0.1
    let cubic = |k: usize| {
        let others = COLUMNS.into_iter().enumerate().filter(|&(other, _)| other != k);
        others.map(|(_, column)| (x - column) / (COLUMNS[k] - column)).product::<f64>()
    };
    let (lower, upper) = ((ROW - y) / (2.0 * ROW), (ROW + y) / (2.0 * ROW));
    let shift: f64 = (0..4).map(|k| cubic(k) * (displacements[k] * lower + displacements[7 - k] * upper)).sum();
    [x, y + shift]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_twelve_percent_thick_and_closed() {
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
    fn a_section_that_does_not_settle_is_drawn_again_and_counted() {
        let problem = Airfoil::new(Settings::new(ROW.name, PARAMETERS, ROW.small).unwrap()).unwrap();
        let state = |residual| Steady { states: Vec::new(), residual, steps: 0 };
        let mut seen = Vec::new();
        let third = problem.first(5, 9, |displacements| {
            seen.push(*displacements);
            if seen.len() < 3 { Err(state(0.5)) } else { Ok(state(1e-9)) }
        });
        let third = third.unwrap();
        assert_eq!((third.attempts, third.displacements), (3, seen[2]));
        assert!(seen[0] != seen[1] && seen[1] != seen[2]);
        let first = problem.first(5, 9, |_| Ok(state(1e-9))).unwrap();
        assert_eq!((first.attempts, first.displacements), (1, seen[0]));
        let message = problem.first(5, 9, |_| Err(state(0.5))).unwrap_err().to_string();
        let sentence = "airfoil: expected a balance below 5e-7 for one of 20 draws, the last stopped at 5e-1";
        assert_eq!(message, sentence);
    }

    /// The thickness is scaled by 1 + (upper − lower shift) / 0.2, and both shifts stay below 1.631 · displacement.
    #[test]
    fn no_displacement_within_range_lets_the_sides_cross() {
        let most = RANGES[2].2;
        for signs in 0..256u32 {
            let displacements: Displacements = std::array::from_fn(|k| if signs >> k & 1 == 1 { most } else { -most });
            for x in (1..60).map(|k| f64::from(k) / 60.0) {
                let [_, upper] = displaced([x, half_thickness(x)], &displacements);
                let [_, lower] = displaced([x, -half_thickness(x)], &displacements);
                assert!(upper > lower, "signs {signs:b} at x = {x}");
            }
        }
    }
}
