//! Errors of the solvers: wrong settings, and samples whose matrices, iterations or time steps fail.

/// An error that names the thing, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry has no problem of this name.
    #[error("unknown problem `{found}`: expected one of {expected}")]
    UnknownProblem {
        /// The names in the registry.
        expected: String,
        /// The name as typed.
        found: String,
    },
    /// The setting has no equals sign.
    #[error("{problem}: expected a setting of the form key=value, found `{found}`")]
    MalformedSetting {
        /// The problem to which the setting belongs.
        problem: &'static str,
        /// The text as typed.
        found: String,
    },
    /// The problem has no such parameter.
    #[error("{problem}: unknown parameter `{found}`, expected one of {expected}")]
    UnknownParameter {
        /// The problem to which the setting belongs.
        problem: &'static str,
        /// The parameters of the problem.
        expected: String,
        /// The key as typed.
        found: String,
    },
    /// The problem had this parameter in an earlier version.
    #[error("{problem}: parameter `{found}` was removed: {reason}")]
    RemovedParameter {
        /// The problem to which the setting belongs.
        problem: &'static str,
        /// The parameter.
        found: &'static str,
        /// Why it is gone.
        reason: &'static str,
    },
    /// The value does not parse, lies outside its range, or contradicts another parameter.
    #[error("{problem}: parameter `{key}` expects {expected}, found `{found}`")]
    BadValue {
        /// The problem to which the setting belongs.
        problem: &'static str,
        /// The parameter.
        key: &'static str,
        /// The accepted values.
        expected: String,
        /// The value as typed.
        found: String,
    },
    /// A sparse factorisation met a pivot that it cannot divide by, or ran out of memory.
    #[error("{system}: expected a matrix that can be factored, found: {found}")]
    Factorisation {
        /// The linear system.
        system: &'static str,
        /// The message of the factorisation.
        found: String,
    },
    /// The residual of a linear solve is too large to trust the solution.
    #[error("{system}: expected a relative residual below {expected:e}, found {found:e}")]
    Residual {
        /// The linear system.
        system: &'static str,
        /// The largest residual accepted.
        expected: f64,
        /// The residual reached.
        found: f64,
    },
    /// The error control asks for a time step that is too short.
    #[error("time stepping at t = {time}: expected steps above {expected:e}, the error control asks for {found:e}")]
    StepTooSmall {
        /// Time at which this happened.
        time: f64,
        /// The shortest step allowed.
        expected: f64,
        /// The step that the error control asks for.
        found: f64,
    },
    /// A cell of a mesh is folded: its area is not positive everywhere.
    #[error("finite-element mesh: expected a positive area at every Gauss point, found {found:e} in cell {cell}")]
    FoldedCell {
        /// The number of the cell.
        cell: usize,
        /// The smallest area of a Gauss point in this cell.
        found: f64,
    },
    /// Newton's method did not converge.
    #[error(
        "{system}: expected a relative imbalance of forces of at most {expected:e}, found {found:e} after {steps} steps"
    )]
    NotConverged {
        /// The nonlinear system.
        system: &'static str,
        /// Steps taken.
        steps: usize,
        /// The largest imbalance accepted, relative to the forces.
        expected: f64,
        /// The imbalance after these steps.
        found: f64,
    },
    /// The solver found no steady flow for any of the drawn shapes.
    #[error(
        "{problem}: no steady flow for any of {draws} drawn shapes, expected a residual of at most {expected:e}, \
         found {found:e} for the last shape"
    )]
    NoSteadyFlow {
        /// The problem.
        problem: &'static str,
        /// Number of drawn shapes.
        draws: usize,
        /// The largest residual accepted.
        expected: f64,
        /// The residual of the last shape.
        found: f64,
    },
    /// An element of a moving body is folded, or so thin that the stable step is too short.
    #[error("{system} at t = {time:e}: expected {expected} of at least {least:e}, found {found:e}")]
    Distorted {
        /// The moving body.
        system: &'static str,
        /// Time at which this happened.
        time: f64,
        /// The quantity that every element has.
        expected: &'static str,
        /// The least value accepted.
        least: f64,
        /// The value found.
        found: f64,
    },
    /// The state is impossible for a solid body: the solution has blown up.
    #[error("{system} at t = {time:e}: expected {expected}, found {found:e}")]
    Unphysical {
        /// The moving body.
        system: &'static str,
        /// Time at which this happened.
        time: f64,
        /// The property that every body has.
        expected: &'static str,
        /// The value found.
        found: f64,
    },
}

impl Error {
    /// Whether a body was deformed until its mesh failed. Another random shape can avoid this.
    pub fn is_distorted(&self) -> bool {
        matches!(self, Self::Distorted { .. })
    }
}
