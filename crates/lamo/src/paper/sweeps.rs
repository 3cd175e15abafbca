//! The figures of errors over what is varied: Figure 2 on Darcy flow, Figure 8 on all benchmarks.

use super::Cell;
use super::artifact::{Content, Panel, Series};
use super::effort::{Effort, Length, Options};
use super::published;
use super::tables::BOTH;

/// The panels of Figure 8 in its order: name on the command line, in `published.toml`, in print.
const PANELS: [(&str, &str, &str); 6] = [
    ("navier-stokes", "navier_stokes", "Navier–Stokes"),
    ("darcy", "darcy", "Darcy"),
    ("airfoil", "airfoil", "Airfoil"),
    ("pipe", "pipe", "Pipe"),
    ("plasticity", "plasticity", "Plasticity"),
    ("elasticity", "elasticity", "Elasticity"),
];

/// Errors are drawn in thousandths, as in the paper.
const ERROR: (&str, f64) = ("error × 10³", 1e3);

/// Both models over some values; `change` makes the cell of a value.
fn series(
    options: &Options,
    benchmark: &'static str,
    (at, axis): (&str, &str),
    values: &dyn Fn(&str) -> Vec<(f64, usize)>,
    change: &dyn Fn(&Cell, usize) -> Cell,
) -> Vec<Series> {
    let one = |model: &'static str| {
        let base = options.cell(benchmark, model, Length::Sweep);
        let point = |(x, value): (f64, usize)| (x, options.runs(&change(&base, value)));
        Series {
            model,
            published: published::curve(at, model, axis),
            ours: values(model).into_iter().map(point).collect(),
        }
    };
    BOTH.map(one).into()
}

/// Values that are their own place on the axis.
fn plain(values: &[usize]) -> Vec<(f64, usize)> {
    values.iter().map(|value| (*value as f64, *value)).collect()
}

/// The error over the number of training samples; the test samples stay the same.
fn samples(options: &Options, (benchmark, key, _): (&'static str, &str, &str), title: String) -> Panel {
    let at = format!("data_efficiency.{key}");
    let values = |_: &str| plain(&options.samples(benchmark));
    let all = options.samples(benchmark).last().copied().unwrap_or(0);
    let change =
        |base: &Cell, count: usize| if count == all { base.clone() } else { base.with(format!("data.train={count}")) };
    let series = series(options, benchmark, (&at, "samples"), &values, &change);
    Panel { title, axis: "training samples", logarithmic: false, vertical: ERROR, series }
}

/// F8.
pub(super) fn data_efficiency(options: &Options) -> (Content, Vec<String>) {
    let letters = ["a", "b", "c", "d", "e", "f"];
    let panel = |(letter, row): (&str, (&'static str, &'static str, &'static str))| {
        samples(options, row, format!("({letter}) {}", row.2))
    };
    let panels = letters.into_iter().zip(PANELS).map(panel).collect();
    let note = "The first n samples are trained on, with the same epochs, so with fewer steps; the test samples are the same for all n.";
    (Content::Curves(panels), vec![note.to_owned()])
}

/// F2.
pub(super) fn scaling(options: &Options) -> (Content, Vec<String>) {
    let depths: &[usize] = match options.effort {
        Effort::Full => &[4, 8, 12, 16, 20, 24],
        Effort::Reduced => &[4, 8, 16, 24],
        Effort::Quick => &[2, 4, 8],
        Effort::Smoke => &[1, 2],
    };
    let widths: &[usize] = match options.effort {
        Effort::Full | Effort::Reduced => &[32, 64, 128, 256],
        Effort::Quick => &[16, 32, 64],
        Effort::Smoke => &[16, 32],
    };
    let depth = |model: &str| {
        let all = plain(depths); // the paper has no point of Transolver at 20 layers
        all.into_iter().filter(|(_, depth)| !(model == "transolver" && *depth == 20)).collect()
    };
    let set = |name: &'static str| move |base: &Cell, value: usize| base.set(&[&format!("{name}={value}")]);
    let darcy = ("darcy", "darcy", "Darcy");
    let panels = vec![
        samples(options, darcy, "(a) data".to_owned()),
        Panel {
            title: "(b) resolution".to_owned(),
            axis: "points",
            logarithmic: true,
            vertical: ERROR,
            series: series(options, "darcy", ("resolution.darcy", "points"), &|_| sides(options), &|base, value| {
                at_resolution(options, base, value)
            }),
        },
        Panel {
            title: "(c) depth".to_owned(),
            axis: "layers",
            logarithmic: false,
            vertical: ERROR,
            series: series(options, "darcy", ("depth.darcy", "layers"), &depth, &set("depth")),
        },
        Panel {
            title: "(d) width".to_owned(),
            axis: "embedding width",
            logarithmic: false,
            vertical: ERROR,
            series: series(options, "darcy", ("width.darcy", "width"), &|_| plain(widths), &set("width")),
        },
    ];
    let note = "Each resolution is trained anew with patches of 2, so that tokens grow with the points.";
    (Content::Curves(panels), vec![note.to_owned()])
}

/// Numbers of points, and what makes them: every n-th of 421 × 421 points, or a resolution in the smaller grids.
fn sides(options: &Options) -> Vec<(f64, usize)> {
    let strides: &[usize] = match options.effort {
        Effort::Full => &[5, 4, 3, 2, 1],
        Effort::Reduced => &[5, 4, 3, 2],
        Effort::Quick => &[32, 42, 64],
        Effort::Smoke => &[10, 12],
    };
    let points = |value: usize| match options.effort {
        Effort::Full | Effort::Reduced => 420 / value + 1,
        Effort::Quick | Effort::Smoke => value,
    };
    strides.iter().map(|value| ((points(*value) * points(*value)) as f64, *value)).collect()
}

fn at_resolution(options: &Options, base: &Cell, value: usize) -> Cell {
    match options.effort {
        Effort::Full | Effort::Reduced => {
            let cell = base.with(format!("data.settings.stride={value}"));
            if base.model == "lamo" { cell.set(&["padded=[0,0]"]) } else { cell }
        }
        Effort::Quick | Effort::Smoke => base.with(format!("data.settings.resolution={value}")),
    }
}

/// The trainings of a model at each resolution, by number of points.
pub(super) fn resolutions(options: &Options, model: &'static str) -> Vec<(f64, Cell)> {
    let base = options.cell("darcy", model, Length::Sweep);
    sides(options).into_iter().map(|(points, value)| (points, at_resolution(options, &base, value))).collect()
}
