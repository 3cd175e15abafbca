//! The trainings of some artifacts, each once, in an order that fills tables early: all cells with the first seed before further
//! seeds, cheap benchmarks before expensive ones, and artifacts in their order.

use super::artifact::Artifact;
use super::cell::Resolved;
use super::{Results, cost};
use crate::error::Error;
use lamo_tensor::Device;
use std::collections::HashMap;

/// Benchmarks from cheap to expensive.
const CHEAP_FIRST: [&str; 6] = ["darcy", "elasticity", "airfoil", "pipe", "navier-stokes", "plasticity"];

/// One training, and who needs it.
#[derive(Clone, Debug)]
pub struct Job {
    /// The training.
    pub cell: Resolved,
    /// The artifacts that show it.
    pub artifacts: Vec<&'static str>,
    /// Estimated seconds of the whole training on the device.
    pub seconds: f64,
    /// Whether its receipt is there.
    pub done: bool,
    /// Whether it failed in this call.
    pub failed: bool,
    /// Whether it runs now.
    pub running: bool,
}

/// The trainings of the artifacts, each once.
pub fn plan(artifacts: &[Artifact], results: &Results, device: Device) -> Result<Vec<Job>, Error> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for artifact in artifacts {
        for cell in artifact.cells() {
            let cell = cell.resolve()?;
            match known.get(&cell.key) {
                Some(&place) => {
                    if !jobs[place].artifacts.contains(&artifact.id) {
                        jobs[place].artifacts.push(artifact.id);
                    }
                }
                None => {
                    known.insert(cell.key.clone(), jobs.len());
                    let (seconds, done) = (cost::seconds(&cell, device)?, results.of(&cell).is_some());
                    jobs.push(Job { cell, artifacts: vec![artifact.id], seconds, done, failed: false, running: false });
                }
            }
        }
    }
    calibrate(&mut jobs, results, device);
    let tier = |job: &Job| CHEAP_FIRST.iter().position(|name| *name == job.cell.cell.benchmark);
    jobs.sort_by_key(|job| (job.cell.cell.seed, tier(job))); // stable: artifacts keep their order
    Ok(jobs)
}

/// Multiplies the estimates by the median ratio of what finished trainings took on this kind of device.
fn calibrate(jobs: &mut [Job], results: &Results, device: Device) {
    let name = device.to_string();
    let ratio = |job: &Job| Some(results.speed(&job.cell, &name)? / job.seconds);
    let mut ratios: Vec<f64> =
        jobs.iter().filter_map(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect();
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        jobs.iter_mut().for_each(|job| job.seconds *= median);
    }
}

/// The next training to run within the seconds that are left: the first that fits, else the first of all.
pub(super) fn next(jobs: &[Job], left: Option<f64>) -> Option<usize> {
    let open =
        || jobs.iter().enumerate().filter(|(_, job)| !(job.done || job.failed || job.running)).map(|(place, _)| place);
    let fits = |place: &usize| left.is_none_or(|left| jobs[*place].seconds <= left);
    open().find(fits).or_else(|| open().next())
}
