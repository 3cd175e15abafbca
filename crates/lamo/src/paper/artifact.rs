//! The tables and figures: what each varies, and which trainings give its values.

use super::effort::{Effort, Options};
use super::published::Value;
use super::{Cell, costs, facts, insight, pictures, sweeps, tables};
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
    /// Whether its last row says how far LaMO's error is below the lowest of the other models of our own runs, in percent.
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
    /// Name of the vertical axis, whose values are multiplied by the factor.
    pub vertical: (&'static str, f64),
    /// The curves.
    pub series: Vec<Series>,
}

/// What we have and what the paper prints, in words.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// Ours.
    pub ours: String,
    /// The paper's.
    pub published: String,
}

/// A table that needs no training.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The name of the first column.
    pub corner: &'static str,
    /// The other columns.
    pub columns: Vec<String>,
    /// Rows: a name, and a fact per column.
    pub rows: Vec<(String, Vec<Fact>)>,
}

/// Time and memory of a model on a benchmark: the training whose receipt has ours, and the published numbers.
#[derive(Clone, Debug)]
pub struct Spending {
    /// The benchmark.
    pub benchmark: &'static str,
    /// The model.
    pub model: &'static str,
    /// The training that is timed.
    pub cell: Cell,
    /// Published seconds of training per epoch.
    pub training: Option<f64>,
    /// Published seconds of a pass over the test samples.
    pub inference: Option<f64>,
    /// Published gigabytes.
    pub memory: Option<f64>,
    /// Published parameters in millions.
    pub million: Option<f64>,
}

/// A row of the table of complexities.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The class of models.
    pub label: &'static str,
    /// Published: which points a point sees.
    pub range: &'static str,
    /// Published: whether the kernel depends on the data.
    pub kernel: &'static str,
    /// Published: the order in the number of points.
    pub order: &'static str,
    /// Trainings by number of points.
    pub cells: Vec<(f64, Cell)>,
}

/// One benchmark of a figure of fields: the run of each model.
#[derive(Clone, Debug)]
pub struct Portrait {
    /// The benchmark in print.
    pub title: &'static str,
    /// The run of LaMO, and that of Transolver.
    pub cells: [Cell; 2],
}

/// One benchmark of the figure of cosines: the published curves, and the runs whose insights have ours.
#[derive(Clone, Debug)]
pub struct Similarity {
    /// The published curves.
    pub panel: Panel,
    /// The run of LaMO, and that of Transolver.
    pub cells: [Cell; 2],
}

/// What a figure of fields shows of each benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What is given and what is asked.
    Task,
    /// The truth and the errors of both models, on one scale.
    Errors,
    /// The truth, the predictions and the errors of both models.
    Predictions,
}

/// What an artifact shows.
#[derive(Clone, Debug)]
pub enum Content {
    /// Words and numbers that need no training.
    Facts(Facts),
    /// The propositions, which are computed when they are shown ([`super::theory`]).
    Theory,
    /// Time and memory as bars.
    Bars(Vec<Spending>),
    /// Time, memory and parameters as bubbles.
    Bubbles(Vec<Spending>),
    /// How time and memory grow with the points.
    Growth(Vec<Growth>),
    /// Fields of one test sample.
    Fields(Subject, Vec<Portrait>),
    /// Hidden matrices by layer of both models.
    Matrices(Portrait),
    /// Cosine of tokens by layer of both models.
    Similarity(Vec<Similarity>),
    /// The orders in which tokens are scanned.
    Orders,
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
    /// As on the command line: `T1`, `F2`, `X1`, `theory`.
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
            Some(b't') => return "Theory".to_owned(),
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
            Content::Bars(all) | Content::Bubbles(all) => all.iter().map(|one| &one.cell).collect(),
            Content::Growth(rows) => rows.iter().flat_map(|row| &row.cells).map(|(_, cell)| cell).collect(),
            Content::Fields(_, portraits) => portraits.iter().flat_map(|portrait| &portrait.cells).collect(),
            Content::Matrices(portrait) => portrait.cells.iter().collect(),
            Content::Similarity(panels) => panels.iter().flat_map(|panel| &panel.cells).collect(),
            Content::Facts(_) | Content::Theory | Content::Orders | Content::Gap(_) => Vec::new(),
        };
        cells.sort_by_key(|cell| cell.seed);
        cells
    }

    /// The artifact with the trainings of some benchmarks alone; all where the list is empty.
    pub fn on(mut self, benchmarks: &[String]) -> Artifact {
        let wanted = |cell: &Cell| benchmarks.is_empty() || benchmarks.iter().any(|name| name == cell.benchmark);
        let keep = |cells: &mut Vec<Cell>| cells.retain(wanted);
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
            Content::Bars(all) | Content::Bubbles(all) => all.retain(|one| wanted(&one.cell)),
            Content::Growth(rows) => rows.iter_mut().for_each(|row| row.cells.retain(|(_, cell)| wanted(cell))),
            Content::Fields(_, portraits) => portraits.retain(|portrait| portrait.cells.iter().all(wanted)),
            Content::Similarity(panels) => panels.retain(|panel| panel.cells.iter().all(wanted)),
            Content::Matrices(portrait) if !portrait.cells.iter().all(wanted) => {
                self.content = Content::Gap("Its benchmark is not chosen.");
            }
            Content::Matrices(_) | Content::Facts(_) | Content::Theory | Content::Orders | Content::Gap(_) => {}
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
    Definition { id: "F3", title: "Truth and error maps of both models", build: pictures::errors },
    Definition { id: "T3", title: "Airfoil: number of tokens", build: tables::airfoil_tokens },
    Definition { id: "F4", title: "Time, memory and parameters of six models", build: costs::bubbles },
    Definition { id: "F5", title: "What is given and what is asked", build: pictures::tasks },
    Definition { id: "T5", title: "Sizes of the data sets", build: facts::datasets },
    Definition { id: "T6", title: "Recipes and sizes of LaMO", build: facts::recipes },
    Definition { id: "F6", title: "Orders of the four scans", build: |_| (Content::Orders, pictures::order_notes()) },
    Definition { id: "T7", title: "Scan directions and sharing of slice maps", build: tables::directions },
    Definition { id: "T8", title: "Mean and deviation over runs", build: tables::deviations },
    Definition { id: "T9", title: "Parameters of seven models", build: facts::parameters },
    Definition { id: "F7", title: "Training time, inference time and memory", build: costs::bars },
    Definition { id: "T10", title: "Complexity in the number of points", build: costs::growth },
    Definition { id: "F8", title: "Error over training samples", build: sweeps::data_efficiency },
    Definition { id: "T11", title: "Navier–Stokes: depth", build: tables::depth },
    Definition { id: "F9", title: "Hidden attention matrices by layer, Airfoil", build: insight::airfoil },
    Definition { id: "F10", title: "Hidden attention matrices by layer, Elasticity", build: insight::elasticity },
    Definition { id: "F11", title: "Cosine similarity of tokens by layer", build: insight::similarity },
    Definition { id: "F12", title: "Darcy flow: truth, predictions and errors", build: pictures::darcy },
    Definition { id: "F13", title: "Navier–Stokes: truth, predictions and errors", build: pictures::navier_stokes },
    Definition { id: "X1", title: "Navier–Stokes at Reynolds number 10⁴", build: tables::reynolds },
    Definition { id: "X2", title: "Darcy flow with soft tokens in place of patches", build: tables::soft_tokens },
    Definition { id: "theory", title: "The propositions, run numerically", build: |_| (Content::Theory, Vec::new()) },
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
