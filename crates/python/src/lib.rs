//! The Python module `lamo._lamo`: the library's jobs as functions of Python. The package `lamo` (python/lamo) is what people use.

use pyo3::prelude::*;

/// The version of lamo.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
mod _lamo {
    #[pymodule_export]
    use super::version;
}
