//! `report.html` and its pictures: everything about a run on one page that opens anywhere.

mod charts;
mod names;
mod page;
mod pictures;
mod svg;
mod tables;
mod text;

pub(crate) use names::{channels, moment, moves, outputs, unit};
pub(crate) use tables::costs;
pub(crate) use text::{count, duration, error, held, percent, short, whole};

use crate::plot::Figure;
use anyhow::{Context, Result};
use lamo::data::Samples;
use lamo::data::dataset::{Manifest, Role};
use lamo::experiment::{Experiment, OWN};
use lamo::files::atomic;
use lamo::inference::evaluate::Receipt;
use lamo::network::models;
use lamo::run::{Line, Trained};
use lamo::task::{Field, Task};
use pictures::View;
use std::path::Path;
use std::time::Duration;

/// The page's name in a run folder.
pub(crate) const PAGE: &str = "report.html";
/// The folder of the pictures in it.
const PICTURES: &str = "pictures";
/// What is left of a file that nobody has touched for so long is nobody's.
const STALE: Duration = Duration::from_secs(3600);

/// What a report is made of.
pub(crate) struct Report<'a> {
    pub(crate) trained: &'a Trained,
    /// The test samples.
    pub(crate) samples: &'a Samples,
    /// `[count, times, points, outputs]`
    pub(crate) prediction: &'a [f32],
    /// What the data are.
    pub(crate) manifest: &'a Manifest,
    /// How many samples were learned from, where it is known.
    pub(crate) learned: Option<usize>,
    pub(crate) history: &'a [Line],
    pub(crate) receipt: &'a Receipt,
    /// The command that computes it again.
    pub(crate) repeat: &'a str,
}

/// A test sample to look at.
struct Picture {
    /// What it stands for.
    name: String,
    sample: usize,
    error: f64,
    figure: Figure,
}

/// What the page shows.
struct Content<'a> {
    report: &'a Report<'a>,
    experiment: &'a str,
    history: &'a [Line],
    receipt: &'a Receipt,
    pictures: &'a [Picture],
}

impl Report<'_> {
    /// Writes the page and the pictures; each file appears complete or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let pictures = self.pictures();
        let drawn = folder.join(PICTURES);
        std::fs::create_dir_all(&drawn).with_context(|| format!("{}: cannot be made", drawn.display()))?;
        for place in [folder, &drawn] {
            atomic::sweep(place, STALE);
        }
        for picture in &pictures {
            let name = picture.name.to_lowercase().replace(' ', "-");
            replace(&drawn.join(format!("{name}.png")), &picture.figure.draw().png(None)?)?;
        }
        let experiment = self.trained.experiment.text();
        let content = Content {
            report: self,
            experiment: &experiment,
            history: self.history,
            receipt: self.receipt,
            pictures: &pictures,
        };
        replace(&folder.join(PAGE), content.page()?.as_bytes())
    }

    /// The best, the middle, the worst and what lies between.
    fn pictures(&self) -> Vec<Picture> {
        let cases = &self.receipt.evaluation.cases;
        let mut order: Vec<usize> = (0..cases.len()).collect();
        order.sort_by(|&one, &other| cases[one].error.total_cmp(&cases[other].error));
        let last = order.len() - 1;
        let mut ranks = vec![("Best", 0), ("Median", last / 2), ("Worst", last)];
        if self.samples.times == 1 {
            ranks.insert(1, ("First quarter", last / 4));
            ranks.insert(3, ("Third quarter", last * 3 / 4));
        }
        let mut pictures: Vec<Picture> = Vec::new();
        let length = self.prediction.len() / cases.len();
        let Manifest { fields, times, .. } = self.manifest;
        let positions = fields.iter().find(|field| field.role == Role::Position);
        let unit = positions.map_or("", |field| &field.unit);
        let experiment = &self.trained.experiment;
        for (name, rank) in ranks {
            let place = order[rank];
            let case = cases[place];
            if pictures.iter().any(|picture| picture.sample == case.sample) {
                continue;
            }
            let prediction = &self.prediction[place * length..][..length];
            let view =
                View { task: &self.trained.operator.task, samples: self.samples, place, prediction, times, unit };
            let title = format!(
                "{}, {}: {} case, sample {}, relative L2 {}",
                data_name(experiment, self.manifest),
                experiment.model.name,
                name.to_lowercase(),
                case.sample,
                percent(case.error)
            );
            pictures.push(Picture {
                name: name.into(),
                sample: case.sample,
                error: case.error,
                figure: view.figure(title),
            });
        }
        pictures
    }
}

impl Content<'_> {
    /// The name of what was learned.
    fn title(&self) -> String {
        let name = match self.report.manifest.problem.as_str() {
            "darcy" => "Darcy flow",
            "navier-stokes" => "Navier–Stokes flow",
            other => &other.replace(['-', '_'], " "),
        };
        let mut letters = name.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    }

    /// What was learned, in one sentence.
    fn sentence(&self) -> String {
        let Receipt { model, evaluation, costs, .. } = self.receipt;
        let full = models::find(model).map_or(model.as_str(), |row| row.summary.split(" (").next().unwrap_or(row.name));
        format!(
            "A {full} of {} parameters learned to map {}{}; on {} it had never seen it is off by {} on average.",
            whole(costs.parameters),
            mapping(&self.report.trained.operator.task),
            self.report.learned.map(|learned| format!(" from {}", count(learned, "example"))).unwrap_or_default(),
            whole(evaluation.distribution.count),
            percent(evaluation.relative_l2)
        )
    }
}

/// The benchmark, or the name of one's own data.
pub(crate) fn data_name<'a>(experiment: &'a Experiment, manifest: &'a Manifest) -> &'a str {
    if experiment.benchmark == OWN { &manifest.problem } else { &experiment.benchmark }
}

/// What is given and what is asked for, in words.
fn mapping(task: &Task) -> String {
    let names = |fields: &[Field]| -> String {
        let names: Vec<_> = fields.iter().map(|field| field.name.replace('_', " ")).collect();
        if names.is_empty() { "the mesh".into() } else { names.join(" and ") }
    };
    task.time.describe(&names(&task.inputs), &names(&task.outputs))
}

/// A file that appears complete or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    atomic::replace(path, bytes).with_context(|| format!("{}: cannot be written", path.display()))
}
