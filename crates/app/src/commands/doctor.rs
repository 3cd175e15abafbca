//! `lamo doctor`: what this machine has, and what to install for more.

use super::say;
use anyhow::Result;
use clap::Args;
use serde::Serialize;

/// `lamo doctor`
#[derive(Args)]
pub(crate) struct Doctor {
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Library {
    name: &'static str,
    /// The file it was opened as.
    file: Option<String>,
    /// What to do where it is missing.
    missing: Option<String>,
}

#[derive(Serialize)]
struct Card {
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
    /// Whether this binary knows cards at all.
    cuda_built_in: bool,
    /// CUDA version the driver serves.
    cuda_driver: Option<String>,
    libraries: Vec<Library>,
    cards: Vec<Card>,
    /// What keeps `--device cuda` from working; nothing where it works.
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
        cards: Vec::new(),
        obstacles: Vec::new(),
    };
    look_for_cards(&mut report);
    if options.json {
        return say(&serde_json::to_string_pretty(&report)?);
    }
    say(&format!("lamo {}", report.version))?;
    say(&format!("  cpu      {} threads, {} vectors", report.threads, report.vector_unit))?;
    for library in &report.libraries {
        let state = library.file.as_deref().or(library.missing.as_deref()).unwrap_or_default();
        say(&format!("  library  {:20} {state}", library.name))?;
    }
    if let Some(version) = &report.cuda_driver {
        say(&format!("  driver   serves CUDA {version}"))?;
    }
    for card in &report.cards {
        let gigabytes = card.memory_bytes as f64 / f64::from(1 << 30);
        say(&format!(
            "  {:8} {}, {gigabytes:.0} GiB, compute capability {}",
            card.device, card.name, card.compute_capability
        ))?;
    }
    match report.obstacles.as_slice() {
        [] => say("--device cuda works here"),
        [first, ..] => say(&format!("--device cuda does not work here: {first}")),
    }
}

#[cfg(feature = "cuda")]
fn look_for_cards(report: &mut Report) {
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
    for (number, card) in found.devices.into_iter().enumerate() {
        let [major, minor] = card.capability;
        report.cards.push(Card {
            device: lamo_tensor::Device::Cuda(number).to_string(),
            name: card.name,
            compute_capability: format!("{major}.{minor}"),
            memory_bytes: card.memory,
        });
    }
    if report.cards.is_empty() && report.obstacles.is_empty() {
        report.obstacles.push("the driver knows no card".to_owned());
    }
}

#[cfg(not(feature = "cuda"))]
fn look_for_cards(report: &mut Report) {
    report.obstacles.push("this lamo was built without CUDA; build it with --features cuda".to_owned());
}
