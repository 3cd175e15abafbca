//! Pretrained models that are opened by the name of a benchmark.
//!
//! A model is one checkpoint file without moments, with 16-bit weights ([`shrink`]). It lies in the folder that the variable
//! `LAMO_MODELS` names, as `NAME.safetensors`, or comes with the library: a row of [`MODELS`] includes it. A file has at most
//! 5 MB.

use super::{Checkpoint, Trained};
use crate::data::Storage;
use crate::error::{Error, Kind, Refusal};
use crate::experiment::benchmarks;
use crate::files::atomic;
use std::path::{Component, Path, PathBuf};

/// The variable that names a folder of models.
pub const FOLDER: &str = "LAMO_MODELS";

/// Models that come with the library, by name: `("darcy", include_bytes!("../../../../models/darcy.safetensors"))`.
pub const MODELS: &[(&str, &[u8])] = &[];

/// Opens a model by its name; `None` where the path is no name, and an error where no such model is there.
pub(crate) fn open(path: &Path, folder: Option<PathBuf>) -> Option<Result<Trained, Error>> {
    let mut parts = path.components();
    let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else { return None };
    let name = name.to_str().filter(|name| !name.contains('.'))?;
    let file = folder.map(|folder| folder.join(format!("{name}.safetensors"))).filter(|file| file.is_file());
    if let Some(file) = file {
        return Some(Trained::open(&file));
    }
    if let Some((_, bytes)) = MODELS.iter().find(|(known, _)| *known == name) {
        return Some(Checkpoint::of(path, bytes.to_vec()).map(|checkpoint| checkpoint.trained));
    }
    let known = benchmarks::find(name).ok()?;
    let sentence =
        format!("no pretrained model of {} comes with this lamo, and {FOLDER} names no folder with one", known.name);
    let advice = format!("train one with lamo train {}, or give a run folder", known.name);
    Some(Err(Refusal::said(sentence).advise(advice).of(Kind::Missing).into()))
}

/// Writes the model of a run, a checkpoint or a pretrained model to one file without moments; returns its size in bytes.
pub fn shrink(model: &Path, file: &Path, storage: Storage) -> Result<u64, Error> {
    let trained = Trained::open(model)?;
    trained.protect(file)?;
    let best = None; // the error of the file itself is what an evaluation says
    let checkpoint = Checkpoint { trained, states: Default::default(), best, tested: None };
    let bytes = checkpoint.model_bytes(file, storage)?;
    atomic::replace(file, &bytes).map_err(|reason| Error::writing(file, reason))?;
    Ok(bytes.len() as u64)
}
