//! The tables and figures: what each varies, and which trainings give its values.

use super::effort::{Effort, Options};
use super::published::Value;
use super::{Cell, sweeps, tables};
use crate::error::{Kind, Refusal};

/// One value of the paper: the published number, if the paper prints it, and the trainings that give ours, one per seed.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// What the paper prints.
    pub published: Option<Value>,
    /// Our trainings; none where the grid leaves the value out.
    pub cells: Vec<Cell>,
}

/// How the cells of a table are shaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    /// Not at all.
    None,
    /// The best three of each column, as in Table 1.
    BestThree,
    /// The darker, the lower the error, as in Table 2.
    Darker,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// A heading over this row and those that follow with the same one; empty for none.
    pub group: &'static str,
    /// Its name.
    pub label: String,
    /// A value per column.
    pub entries: Vec<Entry>,
}

/// Rows and columns of errors.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name of the first column.
    pub corner: &'static str,
    /// The other columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// How its cells are shaded.
    pub shade: Shade,
    /// Whether its last row says by how much LaMO is better than the second best model of our own runs, in percent.
    pub increment: bool,
}

/// A model's curve, published and ours.
#[derive(Clone, Debug)]
pub struct Series {
    /// The model, as the registry names it.
    pub model: &'static str,
    /// The published points.
    pub published: Vec<(f64, Value)>,
    /// Our points; each has a training per seed.
    pub ours: Vec<(f64, Vec<Cell>)>,
}

/// One set of axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// Name of the horizontal axis.
    pub axis: &'static str,
    /// Whether the horizontal axis is logarithmic.
    pub logarithmic: bool,
    /// The curves.
    pub series: Vec<Series>,
}

/// What an artifact shows.
#[derive(Clone, Debug)]
pub enum Content {
    /// Rows and columns of errors.
    Table(Table),
    /// Errors over what is varied.
    Curves(Vec<Panel>),
    /// Nothing that this version draws; the sentence says why.
    Gap(&'static str),
}

/// A table or figure.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// As on the command line: `T1`, `F2`, `X1`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How the values were chosen where the paper leaves it open.
    pub notes: Vec<String>,
    /// The values.
    pub content: Content,
}

impl Artifact {
    /// `Table 1`, `Figure 2`, or `Text 1` for an experiment of the running text.
    pub fn name(&self) -> String {
        let kind = match self.id.as_bytes().first() {
            Some(b'T') => "Table",
            Some(b'F') => "Figure",
            _ => "Text",
        };
        format!("{kind} {}", &self.id[1..])
    }

    /// All trainings, those of seed 0 first.
    pub fn cells(&self) -> Vec<&Cell> {
        let mut cells: Vec<&Cell> = match &self.content {
            Content::Table(table) => {
                table.rows.iter().flat_map(|row| &row.entries).flat_map(|entry| &entry.cells).collect()
            }
            Content::Curves(panels) => {
                let series = panels.iter().flat_map(|panel| &panel.series);
                series.flat_map(|series| &series.ours).flat_map(|(_, cells)| cells).collect()
            }
            Content::Gap(_) => Vec::new(),
        };
        cells.sort_by_key(|cell| cell.seed);
        cells
    }

    /// The artifact with the trainings of some benchmarks alone; all where the list is empty.
    pub fn on(mut self, benchmarks: &[String]) -> Artifact {
        let keep = |cells: &mut Vec<Cell>| {
            cells.retain(|cell| benchmarks.is_empty() || benchmarks.iter().any(|name| name == cell.benchmark));
        };
        match &mut self.content {
            Content::Table(table) => {
                table.rows.iter_mut().flat_map(|row| &mut row.entries).for_each(|entry| keep(&mut entry.cells));
            }
            Content::Curves(panels) => {
                for (_, cells) in
                    panels.iter_mut().flat_map(|panel| &mut panel.series).flat_map(|series| &mut series.ours)
                {
                    keep(cells);
                }
            }
            Content::Gap(_) => {}
        }
        self
    }
}

/// A row of the list of artifacts.
struct Definition {
    id: &'static str,
    title: &'static str,
    build: fn(&Options) -> (Content, Vec<String>),
}

const ARTIFACTS: &[Definition] = &[
    Definition { id: "T1", title: "Error of 18 models on six benchmarks", build: tables::main },
    Definition { id: "F2", title: "Darcy flow: samples, resolution, depth, width", build: sweeps::scaling },
    Definition { id: "T2", title: "Darcy flow: tokens, states, expansion", build: tables::states },
    Definition { id: "T3", title: "Airfoil: number of tokens", build: tables::airfoil_tokens },
    Definition { id: "T7", title: "Scan directions and sharing of slice maps", build: tables::directions },
    Definition { id: "T8", title: "Mean and deviation over runs", build: tables::deviations },
    Definition { id: "F8", title: "Error over training samples", build: sweeps::data_efficiency },
    Definition { id: "T11", title: "Navier–Stokes: depth", build: tables::depth },
    Definition { id: "X1", title: "Navier–Stokes at Reynolds number 10⁴", build: tables::reynolds },
    Definition { id: "X2", title: "Darcy flow with soft tokens in place of patches", build: tables::soft_tokens },
];

/// All artifacts, in the order in which their trainings are run.
pub fn artifacts(options: &Options) -> Vec<Artifact> {
    let build = |definition: &Definition| {
        let (content, notes) = (definition.build)(options);
        Artifact { id: definition.id, title: definition.title, notes, content }
    };
    ARTIFACTS.iter().map(build).collect()
}

/// The artifacts of these names, or all; names are those of [`Artifact::id`] in any case.
pub fn find(names: &[String], options: &Options) -> Result<Vec<Artifact>, Refusal> {
    let all = artifacts(options);
    if names.is_empty() {
        return Ok(all);
    }
    let known: Vec<&str> = ARTIFACTS.iter().map(|definition| definition.id).collect();
    let one = |name: &String| {
        let found = all.iter().find(|artifact| artifact.id.eq_ignore_ascii_case(name)).cloned();
        found
            .ok_or_else(|| Refusal::new(name, format!("one of {}", known.join(", ")), "none of them").of(Kind::Missing))
    };
    names.iter().map(one).collect()
}

/// A note about a grid whose cells differ from the published ones.
pub(super) fn smaller(effort: Effort, note: &str) -> Vec<String> {
    if effort == Effort::Quick { vec![note.to_owned()] } else { Vec::new() }
}
