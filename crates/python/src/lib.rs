//! The Python module `lamo._lamo`: jobs of the library as functions of Python. What people use is the package `lamo` in `python/lamo`, which
//! calls these functions.
//!
//! Numbers and names that describe something cross as JSON, arrays as arrays of NumPy.

#![allow(clippy::needless_pass_by_value)] // what Python gives arrives as values of our own

mod data;
mod errors;
mod job;
mod model;
mod train;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// The version of lamo.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Runs the command `lamo` with its arguments, of which the first is the name of the program; its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| lamo_app::run(arguments));
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

/// Models, benchmarks and experiments as JSON.
#[pyfunction]
fn listing(py: Python<'_>) -> PyResult<String> {
    lamo_app::pages::list().map_err(|error| errors::raised(py, &error))
}

/// The receipt of a pretrained model as JSON.
#[pyfunction]
fn pretrained_receipt(name: &str) -> Option<String> {
    lamo::run::pretrained::receipt(name)
}

#[pymodule]
mod _lamo {
    #[pymodule_export]
    use super::data::{cache_folder, check_dataset, describe_dataset, import_files, make};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::train::{compare, evaluate, explain, history, is_run, resume, train};
    #[pymodule_export]
    use super::{listing, main, pretrained_receipt, version};
}
