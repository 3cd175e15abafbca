//! States of a model in fixtures: what the training pass makes of them, and the output in evaluation.

use super::{Comparison, Error, Tolerance, double};
use crate::data::state_dict;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{MODEL_STATES, Program, Section, Tensor};

/// Of |found − expected| / (1 + |expected|) for a running mean or variance.
const STATISTIC: Tolerance = Tolerance { relative: 1e-5, noise: 0.0 };
/// Of a running covariance.
const COVARIANCE: Tolerance = Tolerance { relative: 2e-6, noise: 0.0 };

/// Tensors of a fixture: running means and variances after the training pass, running covariances, and these in float64.
const STATISTICS_AFTER: &str = "extra.after";
const COVARIANCE_AFTER: &str = "buf.after";
const COVARIANCE_AFTER_IN_DOUBLE: &str = "buf.after_f64";

fn key(prefix: &str, section: &Section) -> String {
    format!("{prefix}.{}", section.name)
}

/// Compares the states after the training pass, as far as the fixture has them.
pub(super) fn compare_states(program: &Program, io: &mut Comparison) -> Result<(), state_dict::Error> {
    for section in program.state_sections() {
        let found = double(&program.read(MODEL_STATES)[section.range()]);
        let [statistic, covariance] = [STATISTICS_AFTER, COVARIANCE_AFTER].map(|prefix| key(prefix, section));
        if io.tensors.contains_key(&statistic) {
            let expected = io.doubles(&statistic, found.len())?;
            let errors =
                found.iter().zip(expected).map(|(found, expected)| (found - expected).abs() / (1.0 + expected.abs()));
            let worst =
                errors.fold(0.0, |worst: f64, error| if error.is_nan() { f64::INFINITY } else { worst.max(error) });
            io.record("state", &statistic, worst, STATISTIC);
        }
        if io.tensors.contains_key(&covariance) {
            io.compare("state", &covariance, &found, COVARIANCE)?;
        }
    }
    Ok(())
}

/// Compares the output in evaluation. The states come from the fixture's training pass where it has them, otherwise from the
/// weights file. The tolerances are those in float32 and in float64.
pub(super) fn compare_evaluation(
    out: Tensor<'_>,
    mut bindings: Bindings<'_>,
    [single, in_double]: [Tolerance; 2],
    io: &mut Comparison,
) -> Result<(), Error> {
    let graph = out.graph();
    graph.output("out", out);
    let sections = graph.state_sections();
    let put = |prefix: &str, io: &Comparison, bindings: &mut Bindings<'_>| {
        for section in &sections {
            let key = key(prefix, section);
            if let (true, Some(states)) = (io.tensors.contains_key(&key), bindings.get_mut(MODEL_STATES)) {
                states[section.range()].copy_from_slice(io.doubles(&key, section.shape.count())?);
            }
        }
        Ok::<_, state_dict::Error>(())
    };
    put(COVARIANCE_AFTER, io, &mut bindings)?;
    let program = io.run(graph, &bindings)?;
    io.compare("evaluation", "out_eval_f64", &double(program.read("out")), single)?;
    put(COVARIANCE_AFTER_IN_DOUBLE, io, &mut bindings)?;
    let exact = &reference::evaluate(graph, &bindings, &[out])[0];
    Ok(io.compare("evaluation in double", "out_eval_f64", &exact.values, in_double)?)
}
