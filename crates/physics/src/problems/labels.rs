//! The error of the labels of each benchmark, measured: mean relative L2 of the stored field against a finer
//! discretisation. `lamo data check DIR --converge K` measures it again on any data set.

use super::{Problem, find};
use crate::parameters::Settings;

/// The error of one field with some settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Labels {
    /// The problem.
    pub problem: &'static str,
    /// The field, or the quantity in it.
    pub field: &'static str,
    /// What is different from the defaults. A `stride` is free: it leaves out points and changes none.
    pub changes: &'static [&'static str],
    /// Mean relative L2.
    pub error: f64,
}

const fn labels(problem: &'static str, field: &'static str, changes: &'static [&'static str], error: f64) -> Labels {
    Labels { problem, field, changes, error }
}

/// What was measured; `docs/problems.md` has the number of samples and the spread.
pub const LABELS: &[Labels] = &[
    labels("darcy", "pressure", &["canonical=true"], 0.0023),
    labels("darcy", "pressure", &[], 0.0005),
    labels("navier-stokes", "vorticity", &[], 0.0025),
    labels("elasticity", "stress", &[], 0.0305),
    labels("plasticity", "deformation", &[], 0.0019),
    labels("plasticity", "displacement", &[], 0.054),
    labels("airfoil", "mach", &["canonical=true"], 0.0231),
    labels("airfoil", "mach", &[], 0.0127),
    labels("pipe", "velocity_x", &["canonical=true"], 0.0016),
    labels("pipe", "velocity_x", &[], 0.0011),
    labels("beam", "displacement", &[], 0.003),
    labels("beam", "stress", &[], 0.05),
    labels("heat", "temperature", &[], 0.0023),
];

/// The measured errors that hold for the settings of a problem.
pub fn label_errors(problem: &dyn Problem) -> Vec<Labels> {
    let holds = |labels: &&Labels| {
        let row = find(labels.problem).ok();
        let settings = row.and_then(|row| Settings::new(row.name, row.parameters, labels.changes).ok());
        labels.problem == problem.name()
            && settings.is_some_and(|settings| {
                let alike = |(one, other): ((_, _), (_, _))| one == other;
                let counts = |(parameter, _): &(&'static crate::parameters::Parameter, _)| parameter.name != "stride";
                settings.iter().filter(counts).zip(problem.settings().iter().filter(counts)).all(alike)
            })
    };
    LABELS.iter().filter(holds).copied().collect()
}
