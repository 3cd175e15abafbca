//! The machine and the data of a run: `environment.json`.

use super::Origin;
use crate::data::dataset::{Dataset, Split};
use crate::data::state_dict::checksum;
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
    /// The model that the run started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<Origin>,
    /// Trainings that shared the device, this one included; none where it had the device for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<usize>,
}

/// SHA-256 of a record, whose keys are in order.
fn seal(record: &serde_json::Value) -> String {
    checksum(&[record.to_string().as_bytes()])
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
            fields: manifest
                .fields
                .iter()
                .map(|field| (field.name.clone(), field.sha256.clone()))
                .chain(manifest.ragged.iter().map(|ragged| (ragged.file.clone(), ragged.sha256.clone())))
                .collect(),
        }
    }
}

/// Key of the SHA-256 of all other keys.
const SEAL: &str = "sha256";

impl Environment {
    /// As JSON, sealed with the SHA-256 of all that it says.
    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        let mut record = serde_json::to_value(self)?;
        let seal = seal(&record);
        record[SEAL] = seal.into();
        Ok(serde_json::to_string_pretty(&record)? + "\n")
    }

    /// Reads [`Environment::text`]; the rest of the sentence where it is damaged. Records of lamo 0.1 have no seal.
    pub(super) fn parse(text: &str) -> Result<Environment, String> {
        let damaged = |error: serde_json::Error| format!("is damaged: {error}");
        let mut record: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
        let stated = record.as_object_mut().and_then(|record| record.remove(SEAL));
        match stated {
            Some(stated) if stated != seal(&record) => {
                Err(format!("is damaged: expected a record with SHA-256 {stated}, found \"{}\"", seal(&record)))
            }
            _ => serde_json::from_value(record).map_err(damaged),
        }
    }

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
            init: None,
            together: None,
        }
    }

    /// True when the samples and the arrays are equal, in any folder.
    pub fn sees_the_same(&self, other: &Environment) -> bool {
        let seen = |data: &Option<Provenance>| data.as_ref().map(|data| (data.split.clone(), data.fields.clone()));
        seen(&self.data) == seen(&other.data)
    }
}
