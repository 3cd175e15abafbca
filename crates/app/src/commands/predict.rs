//! `lamo predict`: input arrays in, predicted fields out.

use crate::commands::{say, warn};
use crate::text::{bytes, duration};
use anyhow::Result;
use clap::Args;
use lamo::data::import::MeshCases;
use lamo::data::mesh;
use lamo::error::{Refusal, counted};
use lamo::inference::Source;
use lamo::workflow::{self, PredictRequest};
use lamo_tensor::Device;
use std::path::PathBuf;

/// `lamo predict`
#[derive(Args)]
pub(crate) struct Predict {
    /// A run folder (its best checkpoint where it has validation samples, else its last), a checkpoint file, a model folder made by
    /// lamo import, or the name of a pretrained model: a file NAME.safetensors in the folder that the variable LAMO_MODELS names,
    /// or one that comes with lamo.
    run: PathBuf,
    /// The arrays of the input fields, for one sample or several: FILE, FILE:VARIABLE or FIELD=FILE:VARIABLE, as for lamo data
    /// import. Files are npy, npz, safetensors, MAT, HDF5, PyTorch or CSV. A pattern such as 'FIELD=case_*.npy' and a repeated field add
    /// samples, in the order of the names. Of a longer time series the last snapshots are continued. A mesh file (vtu, vtp, vti,
    /// vtr, vts, vtm, pvtu, vtk, msh, stl, obj) has the positions and the arrays of the input fields by their names.
    #[arg(long, value_name = "ARRAY", required = true)]
    input: Vec<String>,
    /// Axes of a field's arrays, one letter each, if they are not those of the data set: n samples, t snapshots, x rows, y
    /// columns, p points, c channels, 1 an axis of length 1.
    #[arg(long, value_name = "FIELD=LETTERS")]
    axes: Vec<String>,
    /// File to write: .npy, .npz, .mat or .safetensors. It holds all samples. With a * in its name, such as 'out/*.npz', each
    /// input file has an output file of its own, and * is the name of the input file without its ending. For mesh files also .vtu,
    /// .vtp, .vti, .vtr, .vts or .vtk: the input mesh with NAME_predicted, and with NAME_error where it holds the truth.
    #[arg(long, value_name = "FILE", default_value = "prediction.npz")]
    output: PathBuf,
    /// Of mesh files: inputs made from the mesh, as for lamo data import: distance, normals, distance=FILE, sdf=FILE.
    #[arg(long, value_name = "WHAT")]
    derive: Vec<String>,
    /// Of mesh files: a CSV table with a row for each case; the first column has the names of the files.
    #[arg(long, value_name = "FILE")]
    scalars: Option<PathBuf>,
    /// Of mesh files: where the samples have their points, as for lamo data import: points or cells.
    #[arg(long, value_name = "PLACE", default_value = "points", value_parser = ["points", "cells"])]
    on: String,
    /// Number of snapshots to predict of a time series; as many as in training unless given, or as an input that drives it has.
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    /// Predict each sample under every symmetry of the problem that the run was trained on, and take the mean.
    #[arg(long)]
    symmetries: bool,
    /// Bytes of memory that the prediction may take, such as 8GB or 500MB: its points then come in pieces, for clouds of far more
    /// points than fit at once. LaMO with slices and Transolver predict so, with the result of all points at once.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
}

impl Predict {
    /// Refuses, for arrays, the options that say how a mesh file is read.
    fn refuse_mesh_options(&self) -> Result<(), Refusal> {
        let given = [
            ("--derive", !self.derive.is_empty()),
            ("--scalars", self.scalars.is_some()),
            ("--on", self.on != "points"),
        ];
        let found = given.into_iter().find(|(_, given)| *given);
        found.map_or(Ok(()), |(option, _)| {
            Err(Refusal::new(option, "mesh files as --input FILE", "arrays").advise("leave it out, or name mesh files"))
        })
    }
}

pub(crate) fn run(options: &Predict) -> Result<()> {
    let mut inputs = Vec::new();
    for text in &options.input {
        inputs.extend(Source::parse_all(text)?);
    }
    for text in &options.axes {
        name_axes(&mut inputs, text)?;
    }
    let request = PredictRequest {
        model: options.run.clone(),
        inputs,
        output: options.output.clone(),
        snapshots: options.frames,
        symmetries: options.symmetries,
        memory: options.memory,
        device: options.device,
    };
    let meshes = request.inputs.iter().any(|input| input.field.is_none() && mesh::is_mesh_name(&input.array.path));
    let predicted = match meshes {
        true => {
            let (derived, scalars) = (options.derive.clone(), options.scalars.clone());
            let cases = MeshCases { derived, scalars, at_centres: options.on == "cells", ..MeshCases::default() };
            workflow::predict_meshes(&request, &cases)?
        }
        false => {
            options.refuse_mesh_options()?;
            workflow::predict(&request)?
        }
    };
    for note in predicted.note.iter().chain(&predicted.note_on_grid) {
        warn(&format!("warning: {note}"));
    }
    predicted.notes.iter().try_for_each(|note| say(note))?;
    let arrays: Vec<_> = predicted.arrays.iter().map(|array| format!("{} {:?}", array.name, array.shape)).collect();
    let (samples, time) = (counted(predicted.samples, "sample"), duration(predicted.elapsed.as_secs_f64()));
    let files = match predicted.files.len() {
        1 => predicted.files[0].display().to_string(),
        count => format!("{} ({count} files)", options.output.display()),
    };
    say(&format!("{files}: {} of {samples} in {time}", arrays.join(", ")))
}

/// Gives the inputs of a field their axes; the only input need not be named.
fn name_axes(inputs: &mut [Source], text: &str) -> Result<(), Refusal> {
    let form = || Refusal::new("--axes", "FIELD=LETTERS, such as u=xytn", format!("`{text}`"));
    let (name, axes) =
        text.split_once('=').filter(|(name, axes)| !name.is_empty() && !axes.is_empty()).ok_or_else(form)?;
    let named = inputs.iter().any(|input| input.field.as_deref() == Some(name));
    let unnamed = inputs.iter().all(|input| input.field.is_none());
    if !named && !unnamed {
        let expected = format!("a field that --input names, as in --input {name}=FILE");
        return Err(Refusal::new("--axes", expected, format!("`{name}`")));
    }
    for input in inputs.iter_mut().filter(|input| !named || input.field.as_deref() == Some(name)) {
        input.axes = Some(axes.to_owned());
    }
    Ok(())
}
