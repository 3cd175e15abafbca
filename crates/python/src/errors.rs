//! Errors of the library as exceptions of Python: the class by the kind, the sentence as it is.

use lamo::{Error, Kind};
use pyo3::prelude::*;

/// The exception of an error.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error.kind(), &error.to_string()).unwrap_or_else(|failure| failure)
}

/// The exception of a broken assumption of ours.
pub(crate) fn broken(py: Python<'_>, panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    exception(py, Kind::Internal, &format!("lamo has an error: {text}")).unwrap_or_else(|failure| failure)
}

/// An instance of the class of a kind, which `lamo._errors` defines.
fn exception(py: Python<'_>, kind: Kind, sentence: &str) -> PyResult<PyErr> {
    let classes = py.import("lamo._errors")?.getattr("BY_KIND")?;
    let class = classes.get_item(kind.name()).or_else(|_| classes.get_item(Kind::Internal.name()))?;
    Ok(PyErr::from_value(class.call1((sentence,))?))
}
