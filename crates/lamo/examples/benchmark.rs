//! Trains on a benchmark, whose data make themselves, and evaluates: the program of the README.
//!
//! `cargo run --release -p lamo --example benchmark`
#![allow(clippy::print_stdout)]

use lamo::{EvaluateRequest, Event, Preset, Session, TrainRequest, evaluate, train};

fn main() -> Result<(), lamo::Error> {
    let show = |event: Event<'_>| {
        if let Event::Epoch(epoch) = event {
            println!("epoch {}: train {:.4}, test {:?}", epoch.epoch, epoch.train, epoch.test);
        }
    };
    let session = Session { listener: &show, ..Session::default() };
    // Quick trains in minutes on a CPU; Paper is the published recipe, for a GPU.
    let request = TrainRequest { preset: Some(Preset::Quick), ..TrainRequest::new("darcy") };
    let run = train(&request, &session)?;
    let request = EvaluateRequest { run: run.folder, data: None, symmetries: false, device: run.device };
    let evaluated = evaluate(&request, &session)?;
    println!("error {:.4}", evaluated.receipt.evaluation.headline());
    Ok(())
}
