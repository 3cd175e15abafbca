//! `receipt.json`: the numbers of a run, with everything that is needed to verify them.

use super::Evaluation;
use crate::data::Samples;
use crate::data::dataset::{Dataset, Split};
use crate::error::{Error, Refusal};
use crate::files;
use crate::inference::Series;
use crate::run::{Environment, Operator, Trained};
use crate::task::task::lattice;
use crate::task::{Positions, Task};
use lamo_tensor::{Device, Precision};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// The file's name in a run folder.
pub const RECEIPT: &str = "receipt.json";
/// Raised whenever older versions of lamo could not read the file.
const FORMAT: u32 = 1;
/// Largest relative difference of the error on another kind of device, vector unit or system, where both compute in f32
/// but add in a different order.
const TOLERANCE: f64 = 1e-3;
/// Largest relative difference where a GPU computes in tf32 or bf16, which have 11 and 8 bits per factor.
const REDUCED: f64 = 2e-2;

/// SHA-256 of everything that the evaluation read, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hashes {
    /// All parameters end to end, as little-endian float32.
    pub weights: String,
    /// The keys of the experiment that differ from the defaults, without the data folder.
    pub experiment: String,
    /// The lists of training and test samples.
    pub split: String,
    /// Each array of the data set.
    pub data: BTreeMap<String, String>,
    /// The values of the test samples; empty in receipts of 0.1.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub test: String,
}

/// Where the evaluation took place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// Name of the GPU, if it is one.
    #[serde(rename = "card", default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Precision of products, convolutions and scans on a GPU.
    pub precision: String,
    /// Threads on the CPU; the numbers do not depend on them.
    pub threads: usize,
    /// Vector instructions of the CPU.
    pub vectors: String,
    /// Operating system and processor family.
    pub system: String,
}

/// Where the training took place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingDevice {
    /// `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// Name of the GPU, if it is one.
    #[serde(rename = "card", default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
}

/// What the run cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Numbers that were learned.
    pub parameters: usize,
    /// Optimiser steps.
    pub steps: usize,
    /// Samples per step.
    pub batch: usize,
    /// Wall time of the training, its tests included.
    pub training_seconds: f64,
    /// Part of the training time that tests and checkpoints took.
    #[serde(default)]
    pub paused_seconds: f64,
    /// Wall time of all predictions of the test samples.
    pub prediction_seconds: f64,
    /// Bytes on the device for a training step, without the samples. `None` in older runs, which did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_bytes: Option<usize>,
    /// Trainings that shared the device with this one, itself included, so that its seconds are not those of a training alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<usize>,
}

impl Costs {
    /// Wall time of a step.
    pub fn step_seconds(&self) -> f64 {
        (self.training_seconds - self.paused_seconds) / self.steps.max(1) as f64
    }
}

/// Contents of `receipt.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Version of this format.
    pub format: u32,
    /// Version of lamo.
    pub lamo: String,
    /// The commit that lamo was built from, if `LAMO_COMMIT` was set for the build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Name of the benchmark.
    pub benchmark: String,
    /// Name of the model.
    pub model: String,
    /// The preset of the experiment; `None` for your own data, and in receipts of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Keys that differ from the preset, as `--set` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Seed of the first parameters and of the order of samples.
    pub seed: u64,
    /// Seed of the data, if a solver made them.
    pub data_seed: u64,
    /// Epochs completed.
    pub epoch: usize,
    /// Steps at which the recipe was changed. The hash of the experiment is that of the recipe after the last change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<usize>,
    /// Number of symmetries whose predictions were averaged, if `--symmetries` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symmetries: Option<usize>,
    /// The grid of the training in words, where the test samples have another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained_on: Option<String>,
    /// What the run cost.
    pub costs: Costs,
    /// Where the training took place; `None` for checkpoint files, and in receipts of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained_with: Option<TrainingDevice>,
    /// Where the evaluation took place.
    pub machine: Machine,
    /// Hashes of everything that the evaluation read.
    pub hashes: Hashes,
    /// Errors on the test samples.
    pub evaluation: Evaluation,
}

impl Receipt {
    /// Receipt of an evaluation that took `seconds` in `environment`.
    pub fn new(
        trained: &Trained,
        dataset: &Dataset,
        (split, test): (&Split, &Samples),
        environment: &Environment,
        evaluation: Evaluation,
        seconds: f64,
    ) -> Result<Receipt, Error> {
        let Environment { device, gpu, threads, vectors, system, .. } = environment.clone();
        let experiment = &trained.experiment;
        let changes = experiment.changes();
        let manifest = dataset.manifest();
        let precision = if device == Device::Cpu.to_string() { Precision::F32 } else { trained.operator.precision };
        Ok(Receipt {
            format: FORMAT,
            lamo: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("LAMO_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
            benchmark: experiment.benchmark.clone(),
            model: experiment.model.name.clone(),
            preset: changes.is_some().then(|| experiment.preset.name().to_owned()),
            changes: changes.unwrap_or_default(),
            seed: experiment.seed,
            data_seed: manifest.seed,
            epoch: trained.epoch,
            changed: trained.changed.clone(),
            symmetries: None,
            trained_on: None,
            costs: Costs {
                parameters: trained.operator.parameters.len(),
                steps: trained.step,
                batch: experiment.train.batch,
                training_seconds: trained.seconds,
                paused_seconds: trained.paused,
                prediction_seconds: seconds,
                step_bytes: trained.step_bytes,
                together: environment.together,
            },
            trained_with: None,
            machine: Machine { precision: precision.to_string(), device, gpu, threads, vectors, system },
            hashes: Hashes {
                weights: hash_of_weights(&trained.operator),
                experiment: hash(experiment.essence().bytes()),
                split: split.hash(),
                data: manifest.fields.iter().map(|field| (field.name.clone(), field.sha256.clone())).collect(),
                test: hash_of_test(&trained.operator.task, test)?,
            },
            evaluation,
        })
    }

    /// The device of the training, whose seconds the receipt states, and the name of its GPU: that of the evaluation in receipts
    /// that do not state it.
    pub fn training_device(&self) -> TrainingDevice {
        let Machine { device, gpu, .. } = self.machine.clone();
        self.trained_with.clone().unwrap_or(TrainingDevice { device, gpu })
    }

    /// Reads a receipt.
    pub fn read(path: &Path) -> Result<Receipt, Error> {
        let text = files::read_to_string(path).map_err(|reason| Error::reading(path, reason))?;
        let damaged = |error: serde_json::Error| {
            Error::from(Refusal::about(path.display().to_string(), format!("is no receipt of lamo: {error}")))
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(FORMAT) => {
                let expected = format!("a receipt of format {FORMAT}");
                Err(Refusal::new(path.display().to_string(), expected, found.to_string()).into())
            }
            _ => serde_json::from_str(&text).map_err(damaged),
        }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a receipt is plain data") + "\n"
    }

    /// True when the receipt is of the weights of an operator, and of single predictions or, with `symmetric`, of their mean over the
    /// symmetries.
    pub fn is_of(&self, operator: &Operator, symmetric: bool) -> bool {
        self.symmetries.is_some() == symmetric && self.hashes.weights == hash_of_weights(operator)
    }

    /// True when both evaluations used the same test samples, in any folder.
    pub fn same_test(&self, other: &Receipt) -> bool {
        let (one, two) = (&self.hashes, &other.hashes);
        match one.test.is_empty() || two.test.is_empty() {
            true => (&one.split, &one.data) == (&two.split, &two.data),
            false => one.test == two.test,
        }
    }

    /// Allowed relative difference between the error of this evaluation and that of another. It is 0 for the same version of
    /// lamo on the same kind of device, precision, vector unit and system.
    pub fn tolerance(&self, again: &Receipt) -> f64 {
        let same_version = self.lamo == again.lamo;
        let other = &again.machine;
        let kind = |machine: &Machine| machine.device.split(':').next().unwrap_or_default().to_owned();
        let reduced = |machine: &Machine| kind(machine) != "cpu" && machine.precision != Precision::F32.to_string();
        let alike =
            |machine: &Machine| (kind(machine), machine.gpu.clone(), machine.vectors.clone(), machine.system.clone());
        match () {
            () if same_version && alike(&self.machine) == alike(other) && self.machine.precision == other.precision => {
                0.0
            }
            () if reduced(&self.machine) || reduced(other) => REDUCED,
            () => TOLERANCE,
        }
    }

    /// A sentence on the first difference between this receipt and a repetition. Times and sizes of memory may differ: they belong
    /// to the machine, not to the result.
    pub fn difference(&self, again: &Receipt) -> Option<String> {
        let (then, now) = (&self.hashes, &again.hashes);
        let hashes = [
            ("weights", &then.weights, &now.weights),
            ("experiment", &then.experiment, &now.experiment),
            ("split", &then.split, &now.split),
        ];
        for (what, expected, found) in hashes {
            if expected != found {
                return Some(format!("expected {what} of SHA-256 {expected}, found {found}"));
            }
        }
        let facts = |receipt: &Receipt| {
            let Receipt { benchmark, model, seed, data_seed, epoch, costs, .. } = receipt;
            format!(
                "{benchmark}, {model}, seed {seed}, data of seed {data_seed}, epoch {epoch}, {} parameters, {} steps of {}",
                costs.parameters, costs.steps, costs.batch
            )
        };
        if self.symmetries != again.symmetries {
            let words = |count: Option<usize>| {
                count.map_or("one prediction".into(), |count| format!("the mean over {count} symmetries"))
            };
            return Some(format!("expected {}, found {}", words(self.symmetries), words(again.symmetries)));
        }
        if facts(self) != facts(again) || self.changed != again.changed {
            return Some(format!("expected {}, found {}", facts(self), facts(again)));
        }
        if then.data != now.data {
            return Some(format!("expected data of SHA-256 {:?}, found {:?}", then.data, now.data));
        }
        // Earlier versions counted snapshots that are predicted all at once as channels.
        let alike = self.evaluation.snapshots.len() == again.evaluation.snapshots.len();
        let tolerance = if alike { self.tolerance(again) } else { self.tolerance(again).max(TOLERANCE) };
        let (expected, found) = (self.evaluation.relative_l2, again.evaluation.relative_l2);
        let near = (found - expected).abs() <= tolerance * expected.abs();
        match () {
            () if tolerance == 0.0 && self.evaluation != again.evaluation.as_stated_by(&self.evaluation) => {
                Some(format!(
                    "expected every number of the receipt bit for bit, mean relative L2 {expected:e}, found different ones, with mean \
                 relative L2 {found:e}"
                ))
            }
            () if !near => {
                Some(format!("expected mean relative L2 {expected:e} within {tolerance:e}, found {found:e}"))
            }
            () => None,
        }
    }
}

/// SHA-256 of all parameters and states end to end, as [`Hashes::weights`] has it.
pub fn hash_of_weights(operator: &Operator) -> String {
    let values = operator.parameters.iter().chain(&operator.states.values);
    hash(values.flat_map(|value| value.to_le_bytes()))
}

/// The hash of the test samples, however a model sees them: a time series has the same hash when it is predicted all at once,
/// and a lattice when its positions are scrambled.
fn hash_of_test(task: &Task, test: &Samples) -> Result<String, Refusal> {
    let series = Series::of(task, test).map(|series| series.samples);
    let test = series.as_ref().unwrap_or(test);
    Ok(match task.positions {
        Positions::Scrambled => hash_of_samples(&Samples { positions: lattice(test.grid, false)?, ..test.clone() }),
        Positions::Given | Positions::Lattice => hash_of_samples(test),
    })
}

/// SHA-256 of sizes, positions, inputs and targets.
fn hash_of_samples(samples: &Samples) -> String {
    let Samples { count, space, functions, times, outputs, .. } = *samples;
    let mut hash = Sha256::new();
    for number in [count, space, functions, times, outputs] {
        hash.update((number as u64).to_le_bytes());
    }
    for values in [&samples.positions, &samples.inputs, &samples.targets] {
        hash.update(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(bytes: impl Iterator<Item = u8>) -> String {
    Sha256::digest(bytes.collect::<Vec<u8>>()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(device: &str, precision: &str, vectors: &str) -> Machine {
        let [device, precision, vectors] = [device, precision, vectors].map(str::to_owned);
        Machine { device, gpu: None, precision, threads: 2, vectors, system: "linux-x86_64".into() }
    }

    fn receipt() -> Receipt {
        let mut tally = super::super::Tally::new(lamo_geometry::Grid::Cloud { points: 1 }, 1, 1);
        tally.add(7, &[1.5], &[1.0]);
        let costs = Costs {
            parameters: 1,
            steps: 4,
            batch: 1,
            training_seconds: 2.5,
            paused_seconds: 0.5,
            prediction_seconds: 0.1,
            step_bytes: Some(64),
            together: None,
        };
        let [weights, experiment, split] = ["w", "e", "s"].map(str::to_owned);
        Receipt {
            format: FORMAT,
            lamo: "0".into(),
            commit: None,
            benchmark: "own".into(),
            model: "lamo".into(),
            preset: None,
            changes: Vec::new(),
            seed: 1,
            data_seed: 2,
            epoch: 3,
            changed: Vec::new(),
            symmetries: None,
            trained_on: None,
            costs,
            trained_with: None,
            machine: machine("cpu", "f32", "avx512"),
            hashes: Hashes { weights, experiment, split, data: BTreeMap::new(), test: String::new() },
            evaluation: tally.finish(),
        }
    }

    #[test]
    fn the_same_machine_must_give_the_same_bits_and_another_nearly_so() {
        let first = receipt();
        let differs = |machine: Machine, error: f64| {
            let mut again = receipt();
            (again.machine, again.evaluation.relative_l2) = (machine, error);
            first.difference(&again)
        };
        assert_eq!(differs(Machine { threads: 64, ..first.machine.clone() }, 0.5), None);
        let close = 0.5 * (1.0 + 1e-15);
        assert_eq!(
            differs(first.machine.clone(), close).unwrap(),
            format!(
                "expected every number of the receipt bit for bit, mean relative L2 5e-1, found different ones, with mean relative L2 {close:e}"
            )
        );
        assert_eq!(differs(machine("cpu", "f32", "avx2"), 0.5004), None);
        assert_eq!(
            differs(machine("cpu", "f32", "avx2"), 0.501).unwrap(),
            "expected mean relative L2 5e-1 within 1e-3, found 5.01e-1"
        );
        assert_eq!(differs(machine("cuda:1", "tf32", "avx512"), 0.509), None);
        let [one, other] =
            ["one", "other"].map(|gpu| Machine { gpu: Some(gpu.into()), ..machine("cuda", "tf32", "avx512") });
        assert_eq!(
            Receipt { machine: one.clone(), ..receipt() }.tolerance(&Receipt { machine: one.clone(), ..receipt() }),
            0.0
        );
        assert_eq!(Receipt { machine: one, ..receipt() }.tolerance(&Receipt { machine: other, ..receipt() }), REDUCED);
        assert!(differs(machine("cuda", "tf32", "avx512"), 0.52).is_some());
        assert!(differs(machine("cuda", "f32", "avx512"), f64::NAN).is_some());
    }

    #[test]
    fn a_repeated_run_may_take_another_time_and_memory_and_must_have_the_same_steps() {
        let mut again = receipt();
        again.costs = Costs {
            training_seconds: 99.0,
            paused_seconds: 9.0,
            prediction_seconds: 3.0,
            step_bytes: None,
            together: Some(2),
            ..again.costs
        };
        assert_eq!(receipt().difference(&again), None);
        again.costs.steps = 5;
        let sentence = receipt().difference(&again).unwrap();
        assert!(sentence.contains("4 steps of 1") && sentence.ends_with("5 steps of 1"), "{sentence}");
    }

    #[test]
    fn other_weights_are_named_before_any_number() {
        let mut again = receipt();
        (again.hashes.weights, again.evaluation.relative_l2) = ("v".into(), 9.0);
        assert_eq!(receipt().difference(&again).unwrap(), "expected weights of SHA-256 w, found v");
    }

    #[test]
    fn a_receipt_that_states_less_still_verifies() {
        let (stated, mut again) = (receipt(), receipt());
        again.evaluation.trivial = Some(super::super::Trivial { mean: Some(0.3), ..Default::default() });
        assert_eq!(stated.difference(&again), None);
        assert!(again.difference(&stated).is_some(), "a number that is stated must be found");
    }

    #[test]
    fn a_receipt_is_read_as_it_was_written() {
        let mut receipt = receipt();
        receipt.evaluation.snapshots = vec![0.25, f64::INFINITY]; // a snapshot at rest has no relative error
        assert_eq!(serde_json::from_str::<Receipt>(&receipt.text()).unwrap(), receipt);
        assert_eq!(receipt.costs.step_seconds(), 0.5);
    }
}
