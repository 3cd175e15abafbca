//! The tables: main results, ablations, deviations, depth on Navier–Stokes, and the two experiments of the running text.

use super::Cell;
use super::artifact::{Content, Entry, Row, Shade, Table, smaller};
use super::effort::{Effort, Length, Options};
use super::published::{self, Value};
use crate::network::models;

/// The benchmarks as the paper's tables order them: name on the command line, in `published.toml`, in print.
pub(super) const BENCHMARKS: [(&str, &str, &str); 6] = [
    ("elasticity", "elasticity", "Elasticity"),
    ("navier-stokes", "navier_stokes", "Navier–Stokes"),
    ("darcy", "darcy", "Darcy"),
    ("plasticity", "plasticity", "Plasticity"),
    ("airfoil", "airfoil", "Airfoil"),
    ("pipe", "pipe", "Pipe"),
];

/// The two models that most artifacts compare.
pub(super) const BOTH: [&str; 2] = ["lamo", "transolver"];

/// The name of a model in the registry; the paper writes WMT for the multiwavelet operator.
fn registered(name: &'static str) -> &'static str {
    if name == "wmt" { "mwt" } else { name }
}

/// The name of a model in print.
pub fn printed(model: &str) -> &'static str {
    let name = if model == "mwt" { "wmt" } else { model };
    published::text(&format!("names.models.{name}")).unwrap_or("?")
}

fn columns() -> Vec<String> {
    BENCHMARKS.iter().map(|(_, _, name)| (*name).to_owned()).collect()
}

fn table(corner: &'static str, columns: Vec<String>, rows: Vec<Row>, shade: Shade) -> Content {
    Content::Table(Table { corner, columns, rows, shade, increment: false })
}

fn number(path: &str) -> Option<Value> {
    published::number(path).map(Value::plain)
}

/// T1. The smaller grids train LaMO and Transolver on all benchmarks and FNO on Darcy flow; quick also FNO on other planes.
pub(super) fn main(options: &Options) -> (Content, Vec<String>) {
    let trained = |benchmark: &str, model: &str| match options.effort {
        Effort::Full => models::find(model).is_ok_and(|row| (row.recipe)(benchmark).is_some()),
        Effort::Reduced | Effort::Smoke => BOTH.contains(&model) || (benchmark, model) == ("darcy", "fno"),
        Effort::Quick => {
            let planes = ["darcy", "navier-stokes", "airfoil", "pipe"];
            BOTH.contains(&model) || model == "fno" && planes.contains(&benchmark)
        }
    };
    let mut rows = Vec::new();
    let families =
        [("classic", "classic"), ("frequency", "frequency"), ("transformer", "transformer"), ("ssm", "state space")];
    for (family, group) in families {
        for name in published::family(family) {
            let model = registered(name);
            let entry = |&(benchmark, key, _): &(&'static str, &str, &str)| Entry {
                published: number(&format!("main.{key}.{name}")),
                cells: match trained(benchmark, model) {
                    true => options.runs(&options.cell(benchmark, model, Length::Main)),
                    false => Vec::new(),
                },
            };
            let entries = BENCHMARKS.iter().map(entry).collect();
            rows.push(Row { group, label: printed(model).to_owned(), entries });
        }
    }
    if options.effort == Effort::Full {
        let variants = ["elasticity", "navier-stokes", "airfoil", "pipe"];
        let entry = |&(benchmark, _, _): &(&'static str, &str, &str)| match variants.contains(&benchmark) {
            true => {
                let base = options.cell(benchmark, "lamo", Length::Main);
                let cell = Cell { variant: Some("paper"), ..base };
                Entry { published: None, cells: options.runs(&cell) }
            }
            false => Entry::default(),
        };
        let label = "LaMO, sizes of Table 6".to_owned();
        rows.push(Row { group: "state space", label, entries: BENCHMARKS.iter().map(entry).collect() });
    }
    let table = Table { corner: "model", columns: columns(), rows, shade: Shade::BestThree, increment: true };
    let note =
        "Of the published rows, LaMO and Transolver were run by the authors; most others are quoted from their papers.";
    (Content::Table(table), vec![note.to_owned()])
}

/// T2.
pub(super) fn states(options: &Options) -> (Content, Vec<String>) {
    let (states, patches): (&[usize], &[usize]) = match options.effort {
        Effort::Full => (&[1, 16, 32, 64], &[2, 4, 8]),
        Effort::Reduced => (&[1, 64], &[2, 4, 8]),
        Effort::Quick => (&[1, 16], &[2, 4, 8]),
        Effort::Smoke => (&[1, 4], &[2, 4]),
    };
    let shown: Vec<usize> = [1, 4, 16, 32, 64].into_iter().filter(|n| *n != 4 || states.contains(n)).collect();
    let base = options.cell("darcy", "lamo", Length::Sweep);
    let mut rows = Vec::new();
    for (expand, group) in [(1, "expansion 1"), (2, "expansion 2")] {
        for patch in [2, 4, 8] {
            let tokens = (88 / patch) * (88 / patch);
            let entry = |&n: &usize| Entry {
                published: published::darcy_ablation(tokens, n, expand).map(Value::plain),
                cells: match states.contains(&n) && patches.contains(&patch) {
                    true => {
                        let settings = [format!("patch={patch}"), format!("states={n}"), format!("expand={expand}")];
                        options.runs(&base.set(&settings.each_ref().map(String::as_str)))
                    }
                    false => Vec::new(),
                },
            };
            let label = format!("patches of {patch} ({tokens} tokens)");
            rows.push(Row { group, label, entries: shown.iter().map(entry).collect() });
        }
    }
    let columns = shown.iter().map(|n| format!("N = {n}")).collect();
    let note = "Ours have 441, 121 and 36 tokens, as their grid is coarser.";
    (table("tokens", columns, rows, Shade::Darker), smaller(options.effort, note))
}

/// A table over the values of one setting, both models.
fn over(
    options: &Options,
    (benchmark, setting): (&'static str, &str),
    (printed_values, at): (Vec<f64>, &str),
    values: &[usize],
) -> (Vec<usize>, Vec<Row>) {
    let mut all: Vec<usize> =
        printed_values.iter().map(|value| *value as usize).chain(values.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let row = |model: &'static str| {
        let base = options.cell(benchmark, model, Length::Sweep);
        let numbers = published::numbers(&format!("{at}.{model}"));
        let entry = |value: &usize| Entry {
            published: printed_values
                .iter()
                .position(|printed| *printed as usize == *value)
                .and_then(|place| numbers.get(place).copied())
                .map(Value::plain),
            cells: match values.contains(value) {
                true => options.runs(&base.set(&[&format!("{setting}={value}")])),
                false => Vec::new(),
            },
        };
        Row { group: "", label: printed(model).to_owned(), entries: all.iter().map(entry).collect() }
    };
    let rows = BOTH.map(row).into();
    (all, rows)
}

/// T3.
pub(super) fn airfoil_tokens(options: &Options) -> (Content, Vec<String>) {
    let values: &[usize] = match options.effort {
        Effort::Full => &[1, 8, 16, 32, 64, 96, 128, 256, 512],
        Effort::Reduced => &[1, 8, 64, 128, 512],
        Effort::Quick => &[1, 4, 16, 64],
        Effort::Smoke => &[1, 4],
    };
    let at = "ablation.tokens_airfoil";
    let (all, rows) = over(options, ("airfoil", "tokens"), (published::numbers(&format!("{at}.tokens")), at), values);
    let note = "With one token a mixer has nothing to mix: that column measures the convolutions and the mean over all points.";
    (table("tokens", all.iter().map(usize::to_string).collect(), rows, Shade::None), vec![note.to_owned()])
}

/// T11.
pub(super) fn depth(options: &Options) -> (Content, Vec<String>) {
    let values: &[usize] = match options.effort {
        Effort::Full => &[2, 4, 6, 8],
        Effort::Reduced => &[2, 4, 8],
        Effort::Quick => &[1, 2, 4],
        Effort::Smoke => &[1, 2],
    };
    let at = "depth.navier_stokes";
    let printed = published::numbers(&format!("{at}.layers"));
    let (all, rows) = over(options, ("navier-stokes", "depth"), (printed, at), values);
    (table("layers", all.iter().map(usize::to_string).collect(), rows, Shade::None), Vec::new())
}

/// Soft tokens on a plane: the settings of the classes with slices, with their own maps in each block or with shared ones.
fn soft(options: &Options, base: &Cell, own: bool) -> Cell {
    let common: &[&str] = match options.effort {
        Effort::Full | Effort::Reduced => {
            &["latent=slices", "directions=2", "tokens=64", "slice_heads=8", "mlp_ratio=1"]
        }
        Effort::Quick => &["latent=slices", "directions=2", "tokens=32", "slice_heads=4"],
        Effort::Smoke => &["latent=slices", "directions=2"],
    };
    let width: &[&str] = match (options.effort, base.benchmark) {
        (Effort::Full | Effort::Reduced, "darcy") => &["width=128"],
        _ => &[],
    };
    let heads: [&str; 2] = match (options.effort, own) {
        (Effort::Full | Effort::Reduced, true) => ["head_width=32", "groups=1"],
        (Effort::Full | Effort::Reduced, false) => ["head_width=64", "groups=2"],
        (Effort::Quick, _) => ["head_width=16", "groups=2"],
        (Effort::Smoke, _) => ["head_width=8", "groups=1"],
    };
    let maps = if own { ["encoder=own", "mixer=mamba2"] } else { ["encoder=shared", "mixer=hydra"] };
    base.set(common).set(width).set(&maps).set(&heads)
}

/// T7. One switch is changed at a time.
pub(super) fn directions(options: &Options) -> (Content, Vec<String>) {
    let plane = |benchmark: &str| ["darcy", "navier-stokes"].contains(&benchmark);
    let owns = |benchmark: &str| ["plasticity", "pipe"].contains(&benchmark);
    // Four directions need a square of tokens; the elasticity model of the quick grid has 32.
    let square = |cell: Cell| match (options.effort, cell.benchmark) {
        (Effort::Quick, "elasticity") => cell.set(&["tokens=36"]),
        _ => cell,
    };
    type Choice<'a> = (&'static str, &'static str, &'a dyn Fn(&Cell) -> Option<Cell>);
    let choices: [Choice<'_>; 5] = [
        ("one direction", "unidirectional", &|base| Some(base.set(&["directions=1"]))),
        ("two, own slice maps", "bidirectional_own", &|base| match base.benchmark {
            grid if plane(grid) => Some(soft(options, base, true)),
            own if owns(own) => Some(base.clone()),
            _ => Some(base.set(&["encoder=own"])),
        }),
        ("two, shared slice maps", "bidirectional_shared", &|base| match base.benchmark {
            grid if plane(grid) => Some(soft(options, base, false)),
            own if owns(own) => Some(base.set(&["encoder=shared"])),
            _ => Some(base.clone()),
        }),
        ("two, patches", "-", &|base| plane(base.benchmark).then(|| base.set(&["directions=2"]))),
        ("four", "multidirectional", &|base| match plane(base.benchmark) {
            true => Some(base.clone()),
            false => Some(square(base.set(&["directions=4"]))),
        }),
    ];
    let row = |(label, at, choose): &Choice<'_>| {
        let entry = |&(benchmark, key, _): &(&'static str, &str, &str)| {
            let cell = choose(&options.cell(benchmark, "lamo", Length::Sweep));
            Entry {
                published: published::spread(&format!("ablation.directions.{key}.{at}")),
                cells: cell.map(|cell| options.runs(&cell)).unwrap_or_default(),
            }
        };
        Row { group: "", label: (*label).to_owned(), entries: BENCHMARKS.iter().map(entry).collect() }
    };
    let rows = choices.iter().map(row).collect();
    let notes = [
        "One switch changes at a time. On Darcy and Navier–Stokes, own and shared slice maps need soft tokens in place of patches; \
         patches with two directions stand beside them.",
        "Four directions on soft tokens scan a square arrangement of them, row by row and column by column; the paper does not say \
         what its number means there.",
    ];
    (table("LaMO", columns(), rows, Shade::None), notes.map(str::to_owned).into())
}

/// T8.
pub(super) fn deviations(options: &Options) -> (Content, Vec<String>) {
    let seeds = |benchmark: &str, model: &str| match options.effort {
        Effort::Full if model == "lamo" => 5,
        Effort::Full => 3,
        Effort::Reduced | Effort::Quick if ["darcy", "elasticity"].contains(&benchmark) => 3,
        Effort::Reduced | Effort::Quick => 1,
        Effort::Smoke if benchmark == "darcy" => 2,
        Effort::Smoke => 1,
    };
    let row = |model: &'static str| {
        let entry = |&(benchmark, key, _): &(&'static str, &str, &str)| {
            let length = if options.effort == Effort::Full { Length::Main } else { Length::Sweep };
            let cell = options.cell(benchmark, model, length);
            let most = seeds(benchmark, model).max(options.seeds);
            Entry {
                published: published::spread(&format!("std.{key}.{model}")),
                cells: (0..most as u64).map(|seed| cell.seeded(seed)).collect(),
            }
        };
        Row { group: "", label: printed(model).to_owned(), entries: BENCHMARKS.iter().map(entry).collect() }
    };
    let note = "Deviations divide by n − 1. The data stay the same; the seed draws the first parameters and the order of samples. \
                The paper's caption says five runs, its text three for Transolver.";
    (table("model", columns(), BOTH.map(row).into(), Shade::None), vec![note.to_owned()])
}

/// X1: a viscosity ten times that of Table 1.
pub(super) fn reynolds(options: &Options) -> (Content, Vec<String>) {
    let viscosity = match options.effort {
        Effort::Full | Effort::Reduced => "1e-4",
        Effort::Quick | Effort::Smoke => "1e-2",
    };
    let row = |model: &'static str| {
        let cell =
            options.cell("navier-stokes", model, Length::Sweep).with(format!("data.settings.viscosity={viscosity}"));
        let published = number(&format!("prose.navier_stokes_reynolds_1e4.{model}"));
        Row {
            group: "",
            label: printed(model).to_owned(),
            entries: vec![Entry { published, cells: options.runs(&cell) }],
        }
    };
    let note = "The paper calls 1/ν the Reynolds number, so ν = 10⁻⁴; counts and frames, which it does not say, are those of Table 1.";
    let quick = "Ours have ν = 10⁻², ten times that of the other quick cells.";
    let notes = [vec![note.to_owned()], smaller(options.effort, quick)].concat();
    (table("model", vec!["error".to_owned()], BOTH.map(row).into(), Shade::None), notes)
}

/// X2.
pub(super) fn soft_tokens(options: &Options) -> (Content, Vec<String>) {
    let lamo = options.cell("darcy", "lamo", Length::Sweep);
    let at = "prose.darcy_slices_instead_of_patches";
    let choices = [
        ("Transolver", "transolver", options.cell("darcy", "transolver", Length::Sweep)),
        ("LaMO, soft tokens, own maps", "lamo_slices", soft(options, &lamo, true)),
        ("LaMO, soft tokens, shared maps", "lamo_slices", soft(options, &lamo, false)),
        ("LaMO, patches", "lamo_patches", lamo),
    ];
    let row = |(label, key, cell): &(&str, &str, Cell)| {
        let published = number(&format!("{at}.{key}"));
        Row { group: "", label: (*label).to_owned(), entries: vec![Entry { published, cells: options.runs(cell) }] }
    };
    let note = "The text prints one number for soft tokens; Table 7 has 0.0064 and 0.0077 for what should be the same.";
    (table("model", vec!["error".to_owned()], choices.iter().map(row).collect(), Shade::None), vec![note.to_owned()])
}
