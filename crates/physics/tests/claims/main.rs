//! Claims about every row of the registry, about each equation, and about the agreement with published data.

mod airfoil;
mod beam;
mod darcy;
mod elasticity;
mod heat;
mod navier_stokes;
mod pipe;
mod pipe_public;
mod plasticity;
mod public;
mod public_dies;
mod real;
mod refined;
mod series;

use lamo_physics::parameters::Kind;
use lamo_physics::problems::{self, FieldKind, PROBLEMS, Problem, Role, Row, SpatialOrder};

/// The problem `name` with changed parameters.
fn problem(name: &str, changes: &[&str]) -> Box<dyn Problem> {
    problems::find(name).unwrap().problem(changes).unwrap()
}

/// The problem of a row with its small settings and `more` settings.
fn small(row: &Row, more: &[String]) -> Box<dyn Problem> {
    let changes: Vec<String> = row.small.iter().map(|&change| change.to_owned()).chain(more.iter().cloned()).collect();
    row.problem(&changes).unwrap_or_else(|error| panic!("{}: {error}", row.name))
}

/// The algebraic order that a problem states.
fn stated_order(problem: &dyn Problem) -> f64 {
    match problem.spatial_order() {
        SpatialOrder::Algebraic(order) => order,
        SpatialOrder::Spectral => panic!("{} has no algebraic order", problem.name()),
    }
}

/// Writes a measured number for the documentation; `--nocapture` shows it.
#[expect(clippy::print_stderr, reason = "the numbers of the documentation")]
fn say(line: &str) {
    eprintln!("{line}");
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// ‖found − wanted‖ / ‖wanted‖
fn relative_error(found: &[f64], wanted: &[f64]) -> f64 {
    let difference: Vec<f64> = found.iter().zip(wanted).map(|(a, b)| a - b).collect();
    norm(&difference) / norm(wanted)
}

/// Least and greatest value.
fn range(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    values.into_iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)])
}

/// Mean and standard deviation √(Σ (x − mean)² / (count − 1)).
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

#[test]
fn a_sample_depends_only_on_seed_and_index() {
    for row in PROBLEMS {
        let problem = small(row, &[]);
        let alone: Vec<_> = (0..4).rev().map(|index| problem.sample(7, index).unwrap()).rev().collect();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let together = pool.install(|| problems::samples(problem.as_ref(), 7, 0..4)).unwrap();
            assert!(together == alone, "{}: {threads} threads change the samples", row.name);
        }
        assert!(alone[0] != alone[1], "{}: samples 0 and 1 are equal", row.name);
        assert!(alone[0] != problem.sample(8, 0).unwrap(), "{}: the seed has no effect", row.name);
    }
}

#[test]
fn recorded_settings_reproduce_the_sample() {
    for row in PROBLEMS {
        let problem = small(row, &[]);
        let recorded: Vec<String> =
            problem.settings().iter().map(|(parameter, value)| format!("{}={value}", parameter.name)).collect();
        let again = row.problem(&recorded).unwrap();
        assert!(problem.sample(1, 2).unwrap() == again.sample(1, 2).unwrap(), "{}", row.name);
    }
}

/// The fields of one sample, with its number of points.
fn kinds_of(problem: &dyn Problem, seed: u64, index: u64) -> Vec<FieldKind> {
    let most = problem.grid().points();
    let points = problem.points_of(seed, index).unwrap_or(most);
    problem
        .fields()
        .iter()
        .map(|kind| if points == most { kind.clone() } else { kind.on_points(most, points) })
        .collect()
}

#[test]
fn samples_hold_the_declared_fields_and_finite_numbers() {
    for row in PROBLEMS {
        let problem = small(row, &[]);
        let (kinds, sample) = (kinds_of(problem.as_ref(), 0, 0), problem.sample(0, 0).unwrap());
        assert_eq!(problem.name(), row.name);
        assert_eq!(kinds.len(), sample.fields.len(), "{}", row.name);
        for wanted in [&[Role::Input, Role::Position][..], &[Role::Output]] {
            assert!(
                kinds.iter().any(|kind| wanted.contains(&kind.role)),
                "{}: no field has a role of {wanted:?}",
                row.name
            );
        }
        for (kind, field) in kinds.iter().zip(&sample.fields) {
            assert_eq!((kind.name, &kind.shape), (field.name, &field.shape), "{}", row.name);
            assert_eq!(field.values.len(), kind.shape.iter().product::<usize>(), "{} {}", row.name, kind.name);
            let grid = problem.points_of(0, 0).map_or_else(|| problem.grid().shape(), |points| vec![points]);
            match kind.role {
                Role::Position => {
                    assert!([2, 3].iter().any(|&space| kind.shape == [grid.clone(), vec![space]].concat()), "{kind:?}");
                }
                // Numbers of the whole sample.
                Role::Input if kind.shape.len() == 1 && kind.shape[0] <= 3 => {}
                _ => {
                    let (profile, channels) = (kind.shape == grid[..1], kind.shape.split_last().map(|(_, rest)| rest));
                    let on_grid = kind.shape.ends_with(&grid) || channels.is_some_and(|rest| rest.ends_with(&grid));
                    assert!(on_grid || profile, "{} {}", row.name, kind.name);
                }
            }
            assert!(field.values.iter().all(|value| value.is_finite()), "{} {}", row.name, kind.name);
            assert_eq!(sample.field(kind.name), Some(field));
        }
    }
}

/// Whether the problem has a `stride`: it can store fewer points than it computes.
fn has_stride(row: &&Row) -> bool {
    row.parameters.iter().any(|parameter| parameter.name == "stride")
}

#[test]
fn a_stride_stores_every_stride_th_point_of_the_same_solution() {
    for row in PROBLEMS.iter().filter(has_stride) {
        let full = small(row, &["stride=1".into()]);
        let thin = small(row, &["stride=4".into()]);
        let [points, stored] = [&full, &thin].map(|problem| problem.grid().shape()[0]);
        assert_eq!(points, 4 * stored, "{}", row.name);
        for (all, some) in full.sample(0, 0).unwrap().fields.iter().zip(thin.sample(0, 0).unwrap().fields) {
            let axes = full.grid().shape().len() as u32;
            for (plane, thinned) in all.values.chunks(points.pow(axes)).zip(some.values.chunks(stored.pow(axes))) {
                let expected = |point: usize| match axes {
                    1 => plane[4 * point],
                    _ => plane[4 * (point / stored) * points + 4 * (point % stored)],
                };
                assert!(thinned.iter().enumerate().all(|(point, &value)| value == expected(point)), "{}", row.name);
            }
        }
    }
}

#[test]
fn every_whole_number_parameter_works_at_its_least_value() {
    for row in PROBLEMS {
        for parameter in row.parameters {
            if let Kind::Whole { least, .. } = parameter.kind {
                let stride = has_stride(&row).then(|| "stride=1".to_owned());
                let changes: Vec<String> = stride.into_iter().chain([format!("{}={least}", parameter.name)]).collect();
                small(row, &changes).sample(0, 0).unwrap_or_else(|error| panic!("{} {changes:?}: {error}", row.name));
            }
        }
    }
}

#[test]
fn every_parameter_is_documented_and_accepts_its_default() {
    for row in PROBLEMS {
        for parameter in row.parameters {
            assert!(!parameter.meaning.is_empty() && !parameter.unit.is_empty(), "{} {}", row.name, parameter.name);
            let default = parameter.kind.default_value();
            assert_eq!(parameter.kind.parse(&default.to_string()), Some(default), "{} {}", row.name, parameter.name);
        }
    }
}

#[test]
fn every_parameter_refuses_a_wrong_value_and_names_the_expected_ones() {
    for row in PROBLEMS {
        for parameter in row.parameters {
            let change = format!("{}=nonsense", parameter.name);
            let message = row.problem(&[change]).unwrap_err().to_string();
            let expected = format!(
                "{}: parameter `{}` expects {}, found `nonsense`",
                row.name,
                parameter.name,
                parameter.kind.expected()
            );
            assert_eq!(message, expected);
        }
        let message = row.problem(&["colour=red"]).unwrap_err().to_string();
        let lists_names = message.contains(row.parameters[0].name);
        assert!(message.contains("unknown parameter `colour`") && lists_names, "{message}");
    }
    for row in PROBLEMS.iter().filter(has_stride) {
        let message = row.problem(&["stride=4095"]).unwrap_err().to_string();
        assert!(message.contains("`stride`") && message.ends_with("found `4095`"), "{message}");
    }
}

#[test]
fn the_registry_finds_each_row_by_its_name() {
    for row in PROBLEMS {
        assert_eq!(problems::find(row.name).unwrap().equation, row.equation);
    }
    let message = problems::find("weather").unwrap_err().to_string();
    let names: Vec<_> = PROBLEMS.iter().map(|row| row.name).collect();
    assert_eq!(message, format!("unknown problem `weather`: expected one of {}", names.join(", ")));
}
