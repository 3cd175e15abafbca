//! `report.html` and its pictures: all about a run on one page, which opens in any browser without a network.

mod cards;
mod charts;
mod chosen;
mod curves;
mod deformation;
mod html;
mod names;
mod page;
mod parts;
mod pictures;
mod scene;
mod svg;
mod tables;
mod values;

pub(crate) use html::{base64, escape};
pub(crate) use names::{channels, in_unit, is_deformation, outputs, snapshot_name, unit};
pub(crate) use tables::costs;

use crate::commands::{make_folder, write_file};
use crate::plot::Figure;
use crate::text::{percent, together, whole};
use anyhow::Result;
use lamo::data::dataset::{Manifest, Role};
use lamo::data::{Dataset, Drawn, Samples};
use lamo::error::counted;
use lamo::experiment::{Experiment, OWN};
use lamo::files::atomic;
use lamo::inference::evaluate::{Receipt, Trivial};
use lamo::network::models;
use lamo::run::{Line, Trained};
use lamo::task::{Field, Task};
pub(crate) use parts::{layout_of, volume_layout};
use pictures::Shared;
use scene::{SampleView, Scene};
use std::path::Path;
use std::time::Duration;

/// The page in a run folder.
pub(crate) const PAGE: &str = "report.html";
/// The folder of the pictures in a run folder.
const PICTURES: &str = "pictures";
/// A partial file that was not written to for this long belongs to a process that was killed.
const STALE: Duration = Duration::from_secs(3600);

/// The contents of a report.
pub(crate) struct Report<'a> {
    pub(crate) trained: &'a Trained,
    /// The task as it is measured and drawn.
    pub(crate) task: &'a Task,
    /// The test samples, as the task has them.
    pub(crate) samples: &'a Samples,
    /// `[count, times, points, outputs]`
    pub(crate) prediction: &'a [f32],
    pub(crate) manifest: &'a Manifest,
    /// Its folder, where the cells are.
    pub(crate) dataset: &'a Dataset,
    /// Number of training samples, if known.
    pub(crate) train_samples: Option<usize>,
    pub(crate) history: &'a [Line],
    pub(crate) receipt: &'a Receipt,
    /// The command that computes the numbers again.
    pub(crate) repeat: &'a str,
}

/// A drawn test sample.
struct Picture {
    /// Its rank: `Best`, `25th percentile`, ...
    rank: &'static str,
    sample: usize,
    error: f64,
    scene: Scene,
    figure: Figure,
}

impl Report<'_> {
    /// Writes the page and the pictures; each file appears complete or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let (pictures, shared) = self.pictures()?;
        let picture_folder = folder.join(PICTURES);
        make_folder(&picture_folder)?;
        for folder in [folder, &picture_folder] {
            atomic::sweep(folder, STALE);
        }
        for picture in &pictures {
            let name = picture.rank.to_lowercase().replace(' ', "-");
            write_file(&picture_folder.join(format!("{name}.png")), &picture.figure.draw().png(None)?)?;
        }
        Ok(write_file(&folder.join(PAGE), self.page(&pictures, &shared)?.as_bytes())?)
    }

    /// Draws the best sample, the median, the worst, and without time series the quartiles.
    fn pictures(&self) -> Result<(Vec<Picture>, Shared)> {
        let errors = &self.receipt.evaluation.samples;
        let mut order: Vec<usize> = (0..errors.len()).collect();
        order.sort_by(|&one, &other| errors[one].error.total_cmp(&errors[other].error));
        let last = order.len() - 1;
        let mut ranks = vec![("Best", order[0]), ("Median", order[last / 2]), ("Worst", order[last])];
        let task = self.task;
        if !task.time.is_series() && task.outputs.iter().all(|field| field.length() == 1) {
            ranks.insert(1, ("25th percentile", order[last / 4]));
            ranks.insert(3, ("75th percentile", order[last * 3 / 4]));
        }
        let mut chosen: Vec<(&'static str, usize)> = Vec::new();
        for (rank, index) in ranks {
            if chosen.iter().all(|(_, known)| *known != index) {
                chosen.push((rank, index));
            }
        }
        let scene = |&(_, index): &(&'static str, usize)| -> Result<Scene> {
            let drawn = self.dataset.drawn(errors[index].sample)?;
            Ok(self.view(index, &drawn).scene())
        };
        let scenes: Vec<Scene> = chosen.iter().map(scene).collect::<Result<_>>()?;
        let shared = Shared::of(&scenes);
        let picture = |((rank, index), scene): ((&'static str, usize), Scene)| {
            let (sample, error) = (errors[index].sample, errors[index].error);
            let title = format!(
                "{}, {}: sample {sample} ({}), relative L2 {}",
                data_name(&self.trained.experiment, self.manifest),
                self.trained.experiment.model.name,
                rank.to_lowercase(),
                percent(error)
            );
            let figure = scene.figure(title, &shared);
            Picture { rank, sample, error, scene, figure }
        };
        Ok((chosen.into_iter().zip(scenes).map(picture).collect(), shared))
    }

    /// The test sample of an index, with its prediction.
    fn view<'b>(&'b self, index: usize, drawn: &'b Drawn) -> SampleView<'b> {
        let Manifest { fields, times, .. } = self.manifest;
        let positions = fields.iter().find(|field| field.role == Role::Position);
        SampleView {
            task: self.task,
            samples: self.samples,
            index,
            prediction: self.samples.part_of(self.prediction, index),
            times,
            unit: positions.map_or("", |field| &field.unit),
            drawn,
        }
    }

    /// The problem, as a title.
    fn title(&self) -> String {
        let name = match self.manifest.problem.as_str() {
            "darcy" => "Darcy flow",
            "navier-stokes" => "Navier–Stokes flow",
            other => &other.replace(['-', '_'], " "),
        };
        let mut letters = name.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    }

    /// The result in a few sentences.
    fn summary(&self) -> String {
        let Receipt { model, evaluation, costs, .. } = self.receipt;
        let name = models::find(model).map_or(model.as_str(), |row| row.summary.split(" (").next().unwrap_or(row.name));
        let trivial = evaluation.trivial.as_ref().and_then(Trivial::best);
        let trivial = trivial.map(|(name, error)| {
            let best = if name == "persistence" { name.to_owned() } else { format!("the {name}") };
            format!(" The best predictor that learns nothing, {best}, has {}.", percent(error))
        });
        let from = self.train_samples.map(|count| format!(" from {}", counted(count, "training sample")));
        format!(
            "A {name} with {} parameters learned to map {}{}. Its {} on {} is {}.{}",
            whole(costs.parameters),
            mapping(self.task),
            from.unwrap_or_default(),
            evaluation.headline_name(),
            counted(evaluation.distribution.count, "test sample"),
            percent(evaluation.headline()),
            trivial.unwrap_or_default()
        )
    }
}

/// How far the labels are from a finer solution, in a sentence; empty where it is unknown.
pub(crate) fn label_errors(manifest: &Manifest) -> String {
    let known = manifest.label_errors.iter();
    let known: Vec<_> = known.map(|(field, error)| format!("{field} {}", percent(*error))).collect();
    if known.is_empty() { String::new() } else { format!("{} from a finer solution", known.join(", ")) }
}

/// The benchmark, or the name of your own data.
pub(crate) fn data_name<'a>(experiment: &'a Experiment, manifest: &'a Manifest) -> &'a str {
    if experiment.benchmark == OWN { &manifest.problem } else { &experiment.benchmark }
}

/// The inputs and the outputs in words.
fn mapping(task: &Task) -> String {
    let names = |fields: &[Field]| -> String {
        together(&fields.iter().map(|field| field.name.replace('_', " ")).collect::<Vec<_>>())
    };
    task.time.describe(&names(&task.inputs), &names(&task.outputs))
}
