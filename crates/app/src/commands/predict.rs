//! `lamo predict`: arrays in, the trained model's fields out.

use crate::commands::say;
use crate::report::count;
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::data;
use lamo::predict::Question;
use lamo::trained::Trained;
use lamo_tensor::Device;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// `lamo predict`
#[derive(Args)]
pub(crate) struct Predict {
    /// A run folder, which gives its last checkpoint, or a checkpoint file.
    run: PathBuf,
    /// Arrays of the input fields, one sample or a row of them: npy, npz, safetensors, MAT or HDF5.
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// File to write: .npy, .npz or .safetensors.
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Frames to continue a film by; as many as in training unless given.
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
}

pub(crate) fn run(options: &Predict) -> Result<()> {
    if options.frames == Some(0) {
        bail!("--frames: expected at least 1, found 0");
    }
    let place = |path: &Path| path.canonicalize().ok();
    if place(&options.output).is_some_and(|output| place(&options.input) == Some(output)) {
        bail!("--output {}: expected another file than --input, found the same", options.output.display());
    }
    let trained = Trained::open(&options.run)?;
    trained.spare(&options.output)?;
    let question = Question::read(&trained.case, &options.input, options.frames)?;
    let started = Instant::now();
    let prediction = trained.predict(&question.samples, options.device)?;
    let seconds = started.elapsed().as_secs_f64();
    let answer = question.answer(&trained.case, &prediction).with_context(|| options.input.display().to_string())?;
    data::write(&options.output, &answer)?;
    let arrays: Vec<_> = answer.iter().map(|array| format!("{} {:?}", array.name, array.shape)).collect();
    let samples = count(question.samples.count, "sample");
    say(&format!("{}: {} of {samples} in {seconds:.2} s", options.output.display(), arrays.join(", ")))
}
