//! `lamo predict`: input arrays in, predicted fields out.

use crate::commands::{say, warn};
use crate::text::duration;
use anyhow::Result;
use clap::Args;
use lamo::error::counted;
use lamo::inference::Source;
use lamo::workflow::{self, PredictRequest};
use lamo_tensor::Device;
use std::path::PathBuf;

/// `lamo predict`
#[derive(Args)]
pub(crate) struct Predict {
    /// A run folder (its last checkpoint), a checkpoint file, or a model folder made by lamo import.
    run: PathBuf,
    /// The arrays of the input fields, for one sample or several: FILE, FILE:VARIABLE or FIELD=FILE:VARIABLE. Files are npy,
    /// npz, safetensors, MAT or HDF5. May be repeated.
    #[arg(long, value_name = "ARRAY", required = true)]
    input: Vec<String>,
    /// File to write: .npy, .npz, .mat or .safetensors.
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Number of snapshots to predict of a time series; as many as in training unless given.
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
}

pub(crate) fn run(options: &Predict) -> Result<()> {
    let request = PredictRequest {
        model: options.run.clone(),
        inputs: options.input.iter().map(|text| Source::parse(text)).collect(),
        output: options.output.clone(),
        snapshots: options.frames,
        device: options.device,
    };
    let predicted = workflow::predict(&request)?;
    if let Some(note) = &predicted.note {
        warn(&format!("warning: {note}"));
    }
    let arrays: Vec<_> = predicted.arrays.iter().map(|array| format!("{} {:?}", array.name, array.shape)).collect();
    let (samples, time) = (counted(predicted.samples, "sample"), duration(predicted.elapsed.as_secs_f64()));
    say(&format!("{}: {} of {samples} in {time}", options.output.display(), arrays.join(", ")))
}
