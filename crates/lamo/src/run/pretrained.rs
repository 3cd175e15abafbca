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

/// Models that come with the library, by name.
pub const MODELS: &[(&str, &[u8])] = &[
    ("airfoil", include_bytes!("../../../../models/airfoil.safetensors")),
    ("darcy", include_bytes!("../../../../models/darcy.safetensors")),
    ("elasticity", include_bytes!("../../../../models/elasticity.safetensors")),
];

/// Their receipts, as JSON.
const RECEIPTS: &[(&str, &str)] = &[
    ("airfoil", include_str!("../../../../models/airfoil.json")),
    ("darcy", include_str!("../../../../models/darcy.json")),
    ("elasticity", include_str!("../../../../models/elasticity.json")),
];

/// The receipt of a pretrained model, as JSON: the file `NAME.json` beside it, or what comes with the library.
pub fn receipt(name: &str) -> Option<String> {
    let beside = std::env::var_os(FOLDER).map(|folder| Path::new(&folder).join(format!("{name}.json")));
    let beside = beside.and_then(|file| std::fs::read_to_string(file).ok());
    beside.or_else(|| Some(RECEIPTS.iter().find(|(known, _)| *known == name)?.1.to_owned()))
}

/// The bytes of a model that comes with the library, where a path is its name.
pub(crate) fn included(path: &Path) -> Option<&'static [u8]> {
    MODELS.iter().find(|(name, _)| path == Path::new(name)).map(|(_, bytes)| *bytes)
}

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

/// Writes the model of a run, a checkpoint or a pretrained model to one file without moments and without the folder of its
/// data, which no other machine has; returns its size in bytes.
pub fn shrink(model: &Path, file: &Path, storage: Storage) -> Result<u64, Error> {
    let mut trained = Trained::open(model)?;
    trained.protect(file)?;
    let data = &mut trained.experiment.data;
    if data.folder.take().is_some() {
        (data.train, data.test, data.first_test, data.validation, data.gap) = (0, 0, 0, 0, 0); // a solver would make others
    }
    let best = None; // the error of the file itself is what an evaluation says
    let checkpoint = Checkpoint { trained, states: Default::default(), best, tested: None };
    let bytes = checkpoint.model_bytes(file, storage)?;
    atomic::replace(file, &bytes).map_err(|reason| Error::writing(file, reason))?;
    Ok(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::benchmarks::BENCHMARKS;

    /// Bytes of a model that comes with the library, at most.
    const LARGEST: usize = 5_000_000;

    #[test]
    fn a_model_that_comes_with_the_library_is_small_and_opens_and_the_others_are_missed_in_a_sentence() {
        for (name, bytes) in MODELS {
            assert!(bytes.len() <= LARGEST, "{name} has {} bytes", bytes.len());
        }
        for benchmark in BENCHMARKS {
            let shipped = MODELS.iter().any(|(name, _)| *name == benchmark.name);
            match open(Path::new(benchmark.name), None).unwrap() {
                Ok(trained) => assert!(shipped && trained.experiment.benchmark == benchmark.name),
                Err(error) => {
                    let told = error.to_string();
                    let advice = format!("lamo train {}", benchmark.name);
                    assert!(!shipped && told.contains("no pretrained model") && told.contains(&advice), "{told}");
                }
            }
        }
        assert!(MODELS.iter().all(|(name, _)| benchmarks::find(name).is_ok() && receipt(name).is_some()));
    }

    #[test]
    fn a_path_is_no_name() {
        for path in ["runs/darcy", "./darcy/x", "darcy.safetensors", "/darcy", "mine", ""] {
            assert!(open(Path::new(path), None).is_none(), "{path}");
        }
    }
}
