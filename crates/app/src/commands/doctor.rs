//! `lamo doctor`: what this machine can compute with, and what is missing for a GPU.

use super::say;
use anyhow::Result;
use clap::Args;
use lamo::error::counted;
use serde::Serialize;

/// `lamo doctor`
#[derive(Args)]
pub(crate) struct Doctor {
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Library {
    name: &'static str,
    /// The file that was opened.
    file: Option<String>,
    /// Why it was not opened, and what to do.
    missing: Option<String>,
}

#[derive(Clone, Serialize)]
struct Gpu {
    device: String,
    name: String,
    compute_capability: String,
    memory_bytes: usize,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    threads: usize,
    vector_unit: String,
    /// Whether this binary was built with the feature `cuda`.
    cuda_built_in: bool,
    /// The CUDA version of the driver.
    cuda_driver: Option<String>,
    libraries: Vec<Library>,
    gpus: Vec<Gpu>,
    /// The same list under the name that 0.1 gave it, for scripts that read it.
    cards: Vec<Gpu>,
    /// Why `--device cuda` does not work; empty if it works.
    obstacles: Vec<String>,
}

pub(crate) fn run(options: &Doctor) -> Result<()> {
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        vector_unit: format!("{:?}", lamo_tensor::level()),
        cuda_built_in: cfg!(feature = "cuda"),
        cuda_driver: None,
        libraries: Vec::new(),
        gpus: Vec::new(),
        cards: Vec::new(),
        obstacles: Vec::new(),
    };
    look_for_gpus(&mut report);
    report.cards.clone_from(&report.gpus);
    if options.json {
        return say(&serde_json::to_string_pretty(&report)?);
    }
    say(&format!("lamo {}", report.version))?;
    say(&format!("  cpu      {}, {} vectors", counted(report.threads, "thread"), report.vector_unit))?;
    for library in &report.libraries {
        let state = library.file.as_deref().or(library.missing.as_deref()).unwrap_or_default();
        say(&format!("  library  {:20} {state}", library.name))?;
    }
    if let Some(version) = &report.cuda_driver {
        say(&format!("  driver   CUDA {version}"))?;
    }
    for gpu in &report.gpus {
        let gibibytes = gpu.memory_bytes as f64 / f64::from(1 << 30);
        say(&format!(
            "  {:8} {}, {gibibytes:.0} GiB, compute capability {}",
            gpu.device, gpu.name, gpu.compute_capability
        ))?;
    }
    match report.obstacles.as_slice() {
        [] => say("--device cuda works here"),
        [first, ..] => say(&format!("--device cuda does not work here: {first}")),
    }
}

#[cfg(feature = "cuda")]
fn look_for_gpus(report: &mut Report) {
    let found = lamo_tensor::cuda_report();
    for (name, library) in found.libraries {
        let (file, missing) = match library {
            Ok(file) => (Some(file), None),
            Err(sentence) => (None, Some(sentence.to_string())),
        };
        report.obstacles.extend(missing.clone());
        report.libraries.push(Library { name, file, missing });
    }
    match found.driver {
        Ok([major, minor]) => report.cuda_driver = Some(format!("{major}.{minor}")),
        Err(sentence) if report.obstacles.is_empty() => report.obstacles.push(sentence.to_string()),
        Err(_) => {}
    }
    for (number, gpu) in found.devices.into_iter().enumerate() {
        let [major, minor] = gpu.capability;
        report.gpus.push(Gpu {
            device: lamo_tensor::Device::Cuda(number).to_string(),
            name: gpu.name,
            compute_capability: format!("{major}.{minor}"),
            memory_bytes: gpu.memory,
        });
    }
    if report.gpus.is_empty() && report.obstacles.is_empty() {
        report.obstacles.push("the driver found no GPU".to_owned());
    }
}

#[cfg(not(feature = "cuda"))]
fn look_for_gpus(report: &mut Report) {
    report.obstacles.push("this lamo was built without CUDA; build it with --features cuda".to_owned());
}
