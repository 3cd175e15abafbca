//! The page: one HTML file that contains its style, charts, pictures and values. It needs no network. A script reads values off
//! the maps and animates time series; without it the page has everything else.

use super::html::escape;
use super::pictures::Shared;
use super::tables::tables;
use super::{Picture, Report, cards, charts, label_errors, names};
use crate::text::{duration, percent, whole};
use anyhow::Result;
use lamo::error::counted;
use lamo::inference::evaluate::{Evaluation, Receipt};
use lamo::run;
use lamo::task::Spread;
use lamo_geometry::Grid;
use std::fmt::Write;
use std::path::Path;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("triangles.js"), include_str!("page.js"));

impl Report<'_> {
    /// The text of the file.
    pub(super) fn page(&self, pictures: &[Picture], shared: &Shared) -> Result<String> {
        let (title, receipt) = (escape(&self.title()), self.receipt);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{title}: {} mean error</title>\n<style>{STYLE}</style></head>\n<body><main>\n",
            percent(receipt.evaluation.headline())
        );
        let _ = writeln!(
            page,
            "<p class=\"over\">lamo {} · {} · seed {}{}</p><h1>{title}</h1><p class=\"lead\">{}</p>",
            escape(&receipt.lamo),
            escape(&receipt.model),
            receipt.seed,
            Some(self.trained_on())
                .filter(|on| !on.is_empty())
                .map_or_else(String::new, |on| format!(" · {}", escape(&on))),
            escape(&self.summary())
        );
        page += &facts(receipt);
        page += "<h2>Predictions</h2><p class=\"under\">Test samples from the best to the worst. All samples have the same colours \
                 and the same size. The colours of the prediction have the range of the truth; the error has a range of its \
                 own.<span class=\"scripted\" hidden> Point at a map to read its values.";
        let mut maps = pictures.iter().flat_map(|picture| picture.figure.rows.iter().flatten());
        if maps.any(|map| map.layout.is_solid()) {
            page += " Drag a surface to turn it, or use the arrow keys.";
        }
        page += "</span></p>\n";
        let room = cards::Room::of(pictures);
        for picture in pictures {
            page += &cards::sample(picture, shared, room)?;
        }
        page += &self.training();
        page += &self.errors();
        page += &self.provenance();
        let _ = writeln!(page, "</main>\n<script>\n{SCRIPT}</script>\n</body></html>");
        Ok(page)
    }

    /// The device of the training, a GPU by its name; empty if no record of it lies beside the checkpoint.
    fn trained_on(&self) -> String {
        let folder = self.trained.path.parent().and_then(Path::parent);
        let environment = folder.and_then(|folder| run::environment(folder).ok());
        environment.map_or_else(String::new, |found| device(&found.device, found.gpu.as_deref()))
    }

    /// The charts of the training; nothing without a history.
    fn training(&self) -> String {
        let charts = charts::training(self.history);
        if charts.is_empty() {
            return charts;
        }
        let tested = match self.history.iter().any(|line| line.validation.is_some()) {
            true => "validation samples, which chose the best epoch",
            false => "test samples",
        };
        format!(
            "<h2>Training</h2><p class=\"under\">The training loss, the mean relative L2 error on the {tested}, and the \
             learning rate.</p><div class=\"charts\">{charts}</div>\n"
        )
    }

    /// Where the error is.
    fn errors(&self) -> String {
        let (evaluation, task) = (&self.receipt.evaluation, self.task);
        let past = task.time.past();
        let mut charts = charts::histogram(evaluation) + &charts::snapshots(&evaluation.snapshots, past);
        charts += &evaluation.spectrum.as_ref().map_or_else(String::new, charts::waves);
        let numbers = task.outputs.iter().any(|field| field.spread == Spread::Sample);
        let missing = match self.samples.grid {
            _ if numbers => " Numbers of whole samples have no wave numbers, no border and no H1 error.",
            Grid::Cloud { .. } if self.samples.is_ragged() => {
                " A point cloud has no wave numbers, no border and no neighbours, so the tables of these and H1 are missing. \
                 The samples have different numbers of points: the mean of the training outputs is that over all points, and \
                 there is no nearest training sample."
            }
            Grid::Cloud { .. } => {
                " A point cloud has no wave numbers, no border and no neighbours, so the tables of these and H1 are missing."
            }
            Grid::Line { .. } | Grid::Plane { .. } | Grid::Volume { .. }
                if evaluation.outputs.iter().all(|output| output.h1.is_none()) =>
            {
                " The points are not equally spaced, so there is no H1 error and no error of the energy spectrum."
            }
            Grid::Line { .. } | Grid::Plane { .. } | Grid::Volume { .. } => "",
        };
        format!(
            "<h2>Where the error is</h2><p class=\"under\">The relative L2 error of a sample is ‖prediction − truth‖ / ‖truth‖. \
             The mean over the test samples is the number that papers report.{missing}</p>\
             <div class=\"charts\">{charts}</div><div class=\"tables\">{}</div>\n",
            tables(evaluation, past, &names::outputs(task))
        )
    }

    /// What is needed to reproduce the numbers: experiment, data, machine.
    fn provenance(&self) -> String {
        let Receipt { machine, hashes, costs, .. } = self.receipt;
        let mut rows = vec![
            ("trained on".to_owned(), self.trained_on()),
            ("evaluated on".into(), device(&machine.device, machine.gpu.as_deref())),
            ("processor".into(), format!("{}, {}", machine.vectors, machine.system)),
            ("precision".into(), machine.precision.clone()),
            ("threads".into(), machine.threads.to_string()),
            ("lamo".into(), self.receipt.lamo.clone()),
            ("seed of the training".into(), self.receipt.seed.to_string()),
            ("seed of the data".into(), self.receipt.data_seed.to_string()),
            ("error of the labels".into(), label_errors(self.manifest)),
            ("optimiser steps".into(), format!("{}, {} each", whole(costs.steps), counted(costs.batch, "sample"))),
            ("weights".into(), hashes.weights.clone()),
            ("experiment".into(), hashes.experiment.clone()),
            ("split".into(), hashes.split.clone()),
        ];
        rows.retain(|(_, value)| !value.is_empty());
        rows.extend(self.receipt.commit.iter().map(|commit| ("commit".to_owned(), commit.clone())));
        rows.extend(hashes.data.iter().map(|(field, hash)| (format!("data, {field}"), hash.clone())));
        let row = |(name, value): &(String, String)| {
            format!("<tr><th>{}</th><td><code>{}</code></td></tr>", escape(name), escape(value))
        };
        format!(
            "<h2>How to reproduce it</h2><p class=\"under\">The experiment below is complete. <code>receipt.json</code> holds \
             the numbers of this page, and <code>{}</code> computes them again.</p>\
             <details><summary>Experiment</summary><pre>{}</pre></details>\
             <details><summary>Machine, seeds and SHA-256 hashes</summary><table class=\"wide\">{}</table></details>\n",
            escape(self.repeat),
            escape(self.trained.experiment.text().trim_end()),
            rows.iter().map(row).collect::<String>()
        )
    }
}

/// `cuda:1, NVIDIA H200`, or `cpu`.
fn device(device: &str, gpu: Option<&str>) -> String {
    gpu.map_or_else(|| device.to_owned(), |gpu| format!("{device}, {gpu}"))
}

/// The name of the first number at the top.
fn main_fact(evaluation: &Evaluation) -> String {
    match evaluation.mean_of_outputs {
        Some(_) => format!("mean over {} outputs", evaluation.outputs.len()),
        None => "mean relative L2".to_owned(),
    }
}

/// The numbers at the top.
fn facts(receipt: &Receipt) -> String {
    let Receipt { evaluation, costs, .. } = receipt;
    let whole_sample = if evaluation.mean_of_outputs.is_some() { ", outputs as one" } else { "" };
    let facts = [
        (main_fact(evaluation), percent(evaluation.headline())),
        (format!("median{whole_sample}"), percent(evaluation.distribution.median())),
        (format!("worst{whole_sample}"), percent(evaluation.distribution.most())),
        ("parameters".into(), whole(costs.parameters)),
        (format!("training, {}", counted(receipt.epoch, "epoch")), duration(costs.training_seconds)),
        ("one prediction".into(), duration(costs.prediction_seconds / evaluation.distribution.count as f64)),
    ];
    let fact = |(index, (name, value)): (usize, &(String, String))| {
        let class = if index == 0 { " class=\"main\"" } else { "" };
        format!("<div{class}><dt>{name}</dt><dd>{value}</dd></div>")
    };
    format!("<dl class=\"facts\">{}</dl>\n", facts.iter().enumerate().map(fact).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::device;

    #[test]
    fn a_gpu_is_named() {
        assert_eq!([device("cuda:1", Some("NVIDIA H200")), device("cpu", None)], ["cuda:1, NVIDIA H200", "cpu"]);
    }
}
