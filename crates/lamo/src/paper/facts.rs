//! The tables that need no training: sizes of the data sets, recipes, parameter counts.

use super::artifact::{Content, Fact, Facts};
use super::effort::Options;
use super::published;
use super::tables::{BENCHMARKS, printed};
use crate::error::Error;
use crate::experiment::{EXPERIMENTS, Experiment, benchmarks};
use crate::network::models::Settings;
use lamo_geometry::Grid;
use serde::Serialize;

fn columns() -> Vec<String> {
    BENCHMARKS.iter().map(|(_, _, name)| (*name).to_owned()).collect()
}

/// A row with a fact for each benchmark.
fn row(label: &str, fact: impl Fn(&'static str, &str) -> Fact) -> (String, Vec<Fact>) {
    (label.to_owned(), BENCHMARKS.iter().map(|(benchmark, key, _)| fact(benchmark, key)).collect())
}

/// `10 × 4096 × 1` as frames, points and values; frames are left out where there are none.
fn sizes(numbers: &[f64]) -> String {
    let shown: Vec<String> = numbers.iter().filter(|number| **number > 0.0).map(f64::to_string).collect();
    shown.join(" × ")
}

/// `85 × 85`, or `972 points` of a cloud.
fn extents(grid: Grid) -> String {
    match grid {
        Grid::Cloud { points } | Grid::Line { points } => format!("{points} points"),
        _ => grid.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
    }
}

/// T5.
pub(super) fn datasets(_: &Options) -> (Content, Vec<String>) {
    let task = |benchmark: &str| benchmarks::find(benchmark).map(|row| (row.task(), row.samples));
    let geometry = row("geometry", |benchmark, key| Fact {
        published: published::text(&format!("dataset.{key}.geometry")).unwrap_or_default().to_owned(),
        ours: task(benchmark).map(|(task, _)| extents(task.grid)).unwrap_or_default(),
    });
    let count = |label: &'static str, place: usize| {
        row(label, move |benchmark, key| Fact {
            published: published::number(&format!("dataset.{key}.{}", ["train", "test"][place]))
                .map_or_else(String::new, |number| number.to_string()),
            ours: benchmarks::find(benchmark).map(|row| row.samples[place].to_string()).unwrap_or_default(),
        })
    };
    let given = row("given", |benchmark, key| Fact {
        published: sizes(&published::numbers(&format!("dataset.{key}.input"))),
        ours: task(benchmark)
            .map(|(task, _)| {
                let points = task.grid.points() as f64;
                match () {
                    () if task.time.mode().is_roll_out() => {
                        sizes(&[task.time.past() as f64, points, task.output_channels() as f64])
                    }
                    () if task.input_channels() == 0 => sizes(&[points, task.space as f64]),
                    () => sizes(&[points, task.input_channels() as f64]),
                }
            })
            .unwrap_or_default(),
    });
    let asked = row("asked", |benchmark, key| Fact {
        published: sizes(&published::numbers(&format!("dataset.{key}.output"))),
        ours: task(benchmark)
            .map(|(task, _)| {
                let times = if task.time.is_series() { task.time.count() as f64 } else { 0.0 };
                sizes(&[times, task.grid.points() as f64, task.output_channels() as f64])
            })
            .unwrap_or_default(),
    });
    let rows = vec![geometry, count("training samples", 0), count("test samples", 1), given, asked];
    let notes = [
        "Given and asked are frames × points × values.",
        "The paper's appendix says 200 test samples for Airfoil. Plasticity is given one die height per column, and the mesh.",
    ];
    (Content::Facts(Facts { corner: "benchmark", columns: columns(), rows }), notes.map(str::to_owned).into())
}

/// Tokens of LaMO on a benchmark.
fn tokens(settings: &Settings, grid: Grid) -> Option<i64> {
    let whole = |key: &str| settings.get(key).and_then(toml::Value::as_integer);
    if settings.get("latent").and_then(toml::Value::as_str) == Some("slices") {
        return whole("tokens");
    }
    let Grid::Plane { rows, columns } = grid else { return None };
    let padded = settings.get("padded").and_then(toml::Value::as_array)?;
    let patch = whole("patch")?;
    let along = |axis: usize, points: usize| match padded.get(axis).and_then(toml::Value::as_integer) {
        Some(extent) if extent > 0 => extent / patch,
        _ => (points as i64 + patch - 1) / patch,
    };
    Some(along(0, rows) * along(1, columns))
}

/// A choice as experiments write it, `cosine-by-epoch` for example.
fn word(choice: impl Serialize) -> String {
    toml::Value::try_from(choice).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// T6.
pub(super) fn recipes(_: &Options) -> (Content, Vec<String>) {
    let experiment = |benchmark: &str| Experiment::shipped(&format!("{benchmark}-lamo")).ok();
    let text = |key: &str, name: &str| match published::number(&format!("config.{key}.{name}")) {
        Some(number) if number < 0.01 => format!("{number:e}"),
        Some(number) => number.to_string(),
        None => published::text(&format!("config.{key}.{name}")).unwrap_or_default().to_owned(),
    };
    let setting = |experiment: &Experiment, name: &str| {
        experiment.model.settings.get(name).map_or_else(String::new, ToString::to_string)
    };
    type Show<'a> = &'a dyn Fn(&Experiment) -> String;
    let rows: [(&str, &str, Show<'_>); 12] = [
        ("loss", "loss", &|it| it.train.loss.name().replace('-', " ")),
        ("epochs", "epochs", &|it| it.train.epochs.to_string()),
        ("learning rate", "rate", &|it| format!("{:e}", it.train.rate)),
        ("optimiser", "optimiser", &|it| word(it.train.optimiser)),
        ("batch", "batch", &|it| it.train.batch.to_string()),
        ("schedule", "schedule", &|it| word(it.train.schedule)),
        ("layers", "layers", &|it| setting(it, "depth")),
        ("width", "width", &|it| setting(it, "width")),
        ("tokens", "tokens", &|it| {
            let grid = it.benchmark().map(|row| row.task().grid).ok();
            grid.and_then(|grid| tokens(&it.model.settings, grid)).map_or_else(String::new, |count| count.to_string())
        }),
        ("states", "states", &|it| setting(it, "states")),
        ("heads", "heads", &|it| match it.model.settings.get("latent").and_then(toml::Value::as_str) {
            Some("slices") => setting(it, "slice_heads"),
            _ => {
                let width = it.model.settings.get("width").and_then(toml::Value::as_integer).unwrap_or(0);
                format!("{} per direction", (width as u64).div_ceil(16))
            }
        }),
        ("convolution", "convolution", &|it| setting(it, "convolution")),
    ];
    let fact = |(label, name, show): &(&str, &str, Show<'_>)| {
        row(label, |benchmark, key| Fact {
            published: text(key, name),
            ours: experiment(benchmark).map(|it| show(&it)).unwrap_or_default(),
        })
    };
    let rows = rows.iter().map(fact).collect();
    let notes = [
        "Ours are the released code, which the recipes follow. Where the table differs, the experiments BENCHMARK-lamo-paper \
         have its values, and scan_heads sets the heads of the mixer of planes.",
    ];
    (Content::Facts(Facts { corner: "LaMO", columns: columns(), rows }), notes.map(str::to_owned).into())
}

/// Least and most parameters of a model over the benchmarks that have a recipe for it, in millions.
fn parameter_range(model: &str) -> Result<Option<[f64; 2]>, Error> {
    let mut range: Option<[f64; 2]> = None;
    for (benchmark, _, _) in BENCHMARKS {
        let name = format!("{benchmark}-{model}");
        if EXPERIMENTS.iter().any(|shipped| shipped.name == name) {
            let count = Experiment::shipped(&name)?.parameter_count()? as f64 * 1e-6;
            let [least, most] = range.unwrap_or([count, count]);
            range = Some([least.min(count), most.max(count)]);
        }
    }
    Ok(range)
}

/// T9.
pub(super) fn parameters(_: &Options) -> (Content, Vec<String>) {
    let models = ["fno", "ufno", "lsm", "gnot", "galerkin", "transolver", "lamo"];
    let range = |[least, most]: [f64; 2]| format!("{least:.1}–{most:.1}");
    let fact = |model: &&str| {
        let numbers = published::numbers(&format!("parameters.range_million.{model}"));
        Fact {
            published: <[f64; 2]>::try_from(numbers).map(range).unwrap_or_default(),
            ours: parameter_range(model).ok().flatten().map(range).unwrap_or_default(),
        }
    };
    let rows = vec![("millions".to_owned(), models.iter().map(fact).collect())];
    let columns = models.iter().map(|model| printed(model).to_owned()).collect();
    let note =
        "Least and most over the benchmarks, at the sizes of the recipes that this library ships (docs/models.md).";
    (Content::Facts(Facts { corner: "model", columns, rows }), vec![note.to_owned()])
}
