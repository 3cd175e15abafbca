//! The machine and the data of a run: `environment.json`.

use crate::data::dataset::{Dataset, Split};
use lamo_tensor::Device;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The data of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The folder.
    pub folder: PathBuf,
    /// The problem it holds.
    pub problem: String,
    /// Its samples.
    pub samples: usize,
    /// SHA-256 of the lists of training and test samples.
    pub split: String,
    /// SHA-256 of each array.
    pub fields: BTreeMap<String, String>,
}

/// The machine and the data of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of lamo.
    pub lamo: String,
    /// The device.
    pub device: String,
    /// Name of the GPU, if it is one.
    #[serde(rename = "card", default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Threads on the CPU.
    pub threads: usize,
    /// Vector instructions of the CPU.
    pub vectors: String,
    /// Operating system and processor family.
    pub system: String,
    /// The data; `None` for arrays in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Provenance>,
}

impl Provenance {
    /// Provenance of a data set and the samples used.
    pub fn of(dataset: &Dataset, split: &Split) -> Provenance {
        let manifest = dataset.manifest();
        Provenance {
            folder: std::path::absolute(dataset.folder()).unwrap_or(dataset.folder().to_owned()),
            problem: manifest.problem.clone(),
            samples: manifest.samples,
            split: split.hash(),
            fields: manifest.fields.iter().map(|field| (field.name.clone(), field.sha256.clone())).collect(),
        }
    }
}

impl Environment {
    /// The environment of this process.
    pub fn here(device: Device, threads: usize, data: Option<Provenance>) -> Environment {
        Environment {
            lamo: env!("CARGO_PKG_VERSION").to_owned(),
            device: device.to_string(),
            gpu: device.gpu_name(),
            threads,
            vectors: format!("{:?}", lamo_tensor::level()).to_lowercase(),
            system: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            data,
        }
    }

    /// True when the samples and the arrays are equal, in any folder.
    pub fn sees_the_same(&self, other: &Environment) -> bool {
        let seen = |data: &Option<Provenance>| data.as_ref().map(|data| (data.split.clone(), data.fields.clone()));
        seen(&self.data) == seen(&other.data)
    }
}
