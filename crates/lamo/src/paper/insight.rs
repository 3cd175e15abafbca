//! What Figures 9 to 11 show of a run: its hidden matrices on one test sample, how concentrated they are and how alike its tokens
//! are on many. A small file beside the receipt, so that figures need neither the run folder nor the data.

use super::artifact::{Content, Panel, Portrait, Series, Similarity};
use super::cell::Resolved;
use super::effort::{Length, Options};
use super::published;
use super::tables::BOTH;
use super::view::rounded;
use crate::error::{Error, Refusal};
use crate::files::{self, atomic};
use crate::inference::explain::{Explained, cosine, summarise};
use crate::network::probe::Layer;
use crate::run::Operator;
use crate::workflow::Evaluated;
use lamo_tensor::Device;
use lamo_tensor::reference::Array;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Test samples over which entropies are averaged.
const SAMPLES: usize = 32;
/// Rows and columns of the matrices in the file, at most.
const SIDE: usize = 64;

/// One block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InsightLayer {
    /// Tokens.
    pub tokens: usize,
    /// Rows and columns of the matrix.
    pub side: usize,
    /// `[side, side]` |M| over its row sums, mean over the heads, of the first test sample
    pub shares: Vec<f32>,
    /// Mean over heads and samples of the row entropy over ln M.
    pub entropy: f64,
    /// Mean over heads and samples of the share of the three heaviest columns.
    pub heaviest: f64,
    /// Mean cosine of two tokens before the mixer and after it, over all test samples.
    pub cosine: [Option<f64>; 2],
    /// The same before the training.
    pub start: [Option<f64>; 2],
}

/// The blocks of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Insight {
    /// SHA-256 of the experiment.
    pub key: String,
    /// Name of the model.
    pub model: String,
    /// Number of the drawn sample in its data set.
    pub sample: usize,
    /// Samples over which entropies are averaged.
    pub averaged: usize,
    /// Test samples.
    pub tested: usize,
    /// The blocks.
    pub layers: Vec<InsightLayer>,
}

/// The benchmarks of the figures.
pub(super) const BENCHMARKS: [(&str, &str); 2] = [("airfoil", "Airfoil"), ("elasticity", "Elasticity")];

/// The file of an insight in a folder.
fn path(folder: &Path, cell: &Resolved) -> PathBuf {
    folder.join(format!("{}.insight.json", cell.name()))
}

/// Means of the cosines, layer by layer.
#[derive(Clone, Default)]
struct Mean {
    sums: [f64; 2],
    counts: [f64; 2],
}

impl Mean {
    fn add(&mut self, values: [Option<f64>; 2]) {
        for (place, value) in values.into_iter().enumerate() {
            self.sums[place] += value.unwrap_or(0.0);
            self.counts[place] += f64::from(u8::from(value.is_some()));
        }
    }

    fn found(&self) -> [Option<f64>; 2] {
        [0, 1].map(|place| (self.counts[place] > 0.0).then(|| self.sums[place] / self.counts[place]))
    }
}

impl Insight {
    /// The insight of a cell, from the first of the folders that has it.
    pub fn find(folders: &[PathBuf], cell: &Resolved) -> Option<Insight> {
        let beside = |folder: &PathBuf| [path(folder, cell), path(&cell.folder(folder), cell)];
        let read = |path: PathBuf| serde_json::from_str::<Insight>(&files::read_to_string(&path).ok()?).ok();
        folders.iter().flat_map(beside).filter_map(read).find(|insight| insight.key == cell.key)
    }

    /// The blocks of an evaluated run.
    pub(super) fn of(cell: &Resolved, evaluated: &Evaluated, device: Device) -> Result<Insight, Error> {
        let Evaluated { trained, test, receipt, .. } = evaluated;
        let averaged = SAMPLES.min(test.count);
        let mut explainer = trained.operator.explainer(device, test.grid, false)?;
        let mut cosines: Vec<Mean> = Vec::new();
        let (mut drawn, mut numbers): (Vec<Explained>, Vec<[f64; 2]>) = (Vec::new(), Vec::new());
        for sample in 0..test.count {
            let shown = explainer.shown(test, sample)?;
            add(&mut cosines, &shown);
            if sample < averaged {
                let layers = summarise(&shown, test.grid, SIDE);
                numbers.resize(layers.len(), [0.0; 2]);
                for (sum, layer) in numbers.iter_mut().zip(&layers) {
                    sum[0] += layer.entropy / averaged as f64;
                    sum[1] += layer.heaviest / averaged as f64;
                }
                drawn = if sample == 0 { layers } else { drawn };
            }
        }
        let start = cosines_of(&trained.operator.at_start(trained.experiment.seed)?, evaluated, averaged, device)?;
        let layer = |(place, layer): (usize, Explained)| InsightLayer {
            tokens: layer.tokens,
            side: layer.shares.side,
            shares: layer.shares.values.iter().map(|share| rounded(*share)).collect(),
            entropy: numbers[place][0],
            heaviest: numbers[place][1],
            cosine: cosines[place].found(),
            start: start.get(place).map(Mean::found).unwrap_or_default(),
        };
        Ok(Insight {
            key: cell.key.clone(),
            model: cell.cell.model.to_owned(),
            sample: receipt.evaluation.samples.first().map_or(0, |sample| sample.sample),
            averaged,
            tested: test.count,
            layers: drawn.into_iter().enumerate().map(layer).collect(),
        })
    }

    /// Writes the file.
    pub(super) fn write(&self, folder: &Path, cell: &Resolved) -> Result<(), Error> {
        let path = path(folder, cell);
        let text = serde_json::to_string(self).map_err(|error| Refusal::said(error.to_string()))? + "\n";
        atomic::replace(&path, text.as_bytes()).map_err(|reason| Error::writing(&path, reason))
    }
}

/// Adds the cosines of one sample.
fn add(means: &mut Vec<Mean>, shown: &[Layer<Array>]) {
    means.resize(shown.len(), Mean::default());
    for (mean, layer) in means.iter_mut().zip(shown) {
        let pair = layer.tokens.as_ref().map(|tokens| tokens.each_ref().map(|tokens| cosine(tokens, 0)));
        mean.add(pair.unwrap_or_default());
    }
}

/// The mean cosines of some samples in an operator.
fn cosines_of(operator: &Operator, evaluated: &Evaluated, samples: usize, device: Device) -> Result<Vec<Mean>, Error> {
    let mut explainer = operator.explainer(device, evaluated.test.grid, false)?;
    let mut means: Vec<Mean> = Vec::new();
    for sample in 0..samples {
        add(&mut means, &explainer.shown(&evaluated.test, sample)?);
    }
    Ok(means)
}

fn matrices(options: &Options, place: usize) -> (Content, Vec<String>) {
    let (benchmark, title) = BENCHMARKS[place];
    let cells = BOTH.map(|model| options.cell(benchmark, model, Length::Main));
    let note = format!(
        "|M| over its row sums, mean over the heads, of the first test sample; one scale for both models, which ends at the 99.5th \
         percentile off the diagonal. Beside each layer: row entropy over ln M, and the share of the three heaviest columns, means over heads and up to \
         {SAMPLES} test samples. The paper does not say what it drew. lamo explain has the signed matrices of each head."
    );
    (Content::Matrices(Portrait { title, cells }), vec![note])
}

/// F9.
pub(super) fn airfoil(options: &Options) -> (Content, Vec<String>) {
    matrices(options, 0)
}

/// F10.
pub(super) fn elasticity(options: &Options) -> (Content, Vec<String>) {
    matrices(options, 1)
}

/// F11.
pub(super) fn similarity(options: &Options) -> (Content, Vec<String>) {
    let letters = ["a", "b"].into_iter().zip(BENCHMARKS);
    let panel = |(letter, (benchmark, title)): (&str, (&'static str, &str))| {
        let one = |model: &'static str| Series {
            model,
            published: published::curve(&format!("cosine.{benchmark}"), model, "layer"),
            ours: Vec::new(),
        };
        let (axis, vertical, title) = ("layer", ("mean cosine", 1.0), format!("({letter}) {title}"));
        let panel = Panel { title, axis, logarithmic: false, vertical, series: BOTH.map(one).into() };
        Similarity { panel, cells: BOTH.map(|model| options.cell(benchmark, model, Length::Main)) }
    };
    let note = "The mean cosine between two tokens of a sample, mean over all test samples: after the mixer, before the tokens are \
                spread to the points, and, dashed, before the mixer. The paper does not define its measure.";
    (Content::Similarity(letters.map(panel).collect()), vec![note.to_owned()])
}
