//! What can go wrong in the world: settings people type, matrices and time steps that samples provoke.

/// A failure that names the thing, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No row of the registry bears this name.
    #[error("unknown problem `{found}`: expected one of {expected}")]
    UnknownProblem {
        /// The names in the registry.
        expected: String,
        /// The name asked for.
        found: String,
    },
    /// A setting without an equals sign.
    #[error("{problem}: expected a setting of the form key=value, found `{found}`")]
    MalformedSetting {
        /// The problem being set.
        problem: &'static str,
        /// The text as typed.
        found: String,
    },
    /// The problem has no such parameter.
    #[error("{problem}: unknown parameter `{found}`, expected one of {expected}")]
    UnknownParameter {
        /// The problem being set.
        problem: &'static str,
        /// The parameters it has.
        expected: String,
        /// The key as typed.
        found: String,
    },
    /// The value does not parse, lies outside its range, or contradicts another parameter.
    #[error("{problem}: parameter `{key}` expects {expected}, found `{found}`")]
    BadValue {
        /// The problem being set.
        problem: &'static str,
        /// The parameter.
        key: &'static str,
        /// The values it takes.
        expected: String,
        /// The value as typed.
        found: String,
    },
    /// A sparse factorisation met a pivot it cannot divide by, or ran out of memory.
    #[error("{system}: expected a matrix that can be factored, found: {found}")]
    Factorisation {
        /// The linear system.
        system: &'static str,
        /// The complaint of the factorisation.
        found: String,
    },
    /// A linear solve whose residual is too large to trust.
    #[error("{system}: expected a relative residual below {expected:e}, found {found:e}")]
    Residual {
        /// The linear system.
        system: &'static str,
        /// The largest residual accepted.
        expected: f64,
        /// The residual reached.
        found: f64,
    },
    /// The step control asks for steps too short to ever arrive.
    #[error("time stepping at t = {time}: expected steps above {expected:e}, the error control asks for {found:e}")]
    StepTooSmall {
        /// Time at which it happened.
        time: f64,
        /// The shortest step allowed.
        expected: f64,
        /// The step the error control wants.
        found: f64,
    },
    /// A cell of a mesh turned inside out.
    #[error("finite-element mesh: expected cells that are not folded, found area {found:e} in cell {cell}")]
    FoldedCell {
        /// Its number.
        cell: usize,
        /// The smallest share of area that a Gauss point has there.
        found: f64,
    },
    /// Newton's method that does not arrive.
    #[error("{system}: expected forces in balance to {expected:e} after {steps} steps, found {found:e}")]
    NotConverged {
        /// The nonlinear system.
        system: &'static str,
        /// Steps allowed.
        steps: usize,
        /// The largest imbalance accepted, relative to the forces.
        expected: f64,
        /// The imbalance reached.
        found: f64,
    },
    /// A steady flow was not found for any of the shapes drawn.
    #[error(
        "{problem}: expected a balance below {expected:e} for one of {attempts} draws, the last stopped at {found:e}"
    )]
    Unsettled {
        /// The problem.
        problem: &'static str,
        /// Shapes drawn.
        attempts: usize,
        /// The largest balance accepted.
        expected: f64,
        /// The balance at which the last one stopped.
        found: f64,
    },
    /// A state that no body of this material can be in: the solution has blown up.
    #[error("{system} at t = {time:e}: expected {expected}, found {found:e}")]
    Unphysical {
        /// What was being moved.
        system: &'static str,
        /// Time at which it happened.
        time: f64,
        /// What holds for a body.
        expected: &'static str,
        /// The value reached.
        found: f64,
    },
}
