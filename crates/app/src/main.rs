//! The `lamo` command: what was typed, handed to the library.

mod commands;
mod plot;
mod report;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Neural operators, which learn to solve partial differential equations from examples: make data, train, judge, predict.
#[derive(Parser)]
#[command(name = "lamo", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model: make the data, learn, keep checkpoints.
    ///
    /// Examples:
    ///   lamo train darcy
    ///   lamo train airfoil --model transolver --preset paper --device cuda
    ///   lamo train darcy --set train.epochs=50 --set model.settings.width=64
    ///   lamo train my-data --out runs/mine
    ///   lamo train --resume runs/darcy-lamo-1
    #[command(verbatim_doc_comment)]
    Train(commands::train::Train),
    /// Predict fields with a trained model.
    ///
    /// Examples:
    ///   lamo predict runs/darcy-lamo-1 --input permeability.npy --output pressure.npy
    ///   lamo predict runs/airfoil-lamo-1 --input meshes.npz --output mach.npz
    #[command(verbatim_doc_comment)]
    Predict(commands::predict::Predict),
    /// Make data sets, and look at them.
    #[command(subcommand)]
    Data(commands::data::Data),
    /// Measure speed and memory.
    #[command(subcommand)]
    Bench(commands::bench::Bench),
    /// Judge a run on its test samples: errors, where they are, a report with pictures, a receipt.
    ///
    /// The error is the mean relative L2 over the test samples, as papers report it. The numbers of a receipt come out
    /// bit for bit on the same kind of device, card, vector unit and system; elsewhere within 0.1 %, within 2 % where a card
    /// computes in tf32 or bf16.
    ///
    /// Examples:
    ///   lamo evaluate runs/darcy-lamo-1
    ///   lamo evaluate runs/darcy-lamo-1 --data data/other --out other
    ///   lamo evaluate --verify runs/darcy-lamo-1/receipt.json
    #[command(verbatim_doc_comment)]
    Evaluate(commands::evaluate::Evaluate),
    /// Runs side by side: accuracy, parameters, step time, memory; a table and a picture.
    ///
    /// Examples:
    ///   lamo compare runs/darcy-lamo-1 runs/darcy-fno-1 --out compare.png
    #[command(verbatim_doc_comment)]
    Compare(commands::compare::Compare),
    /// Compare models with what the authors' code computed; fails beyond the fixtures' tolerances.
    ///
    /// Each line names a fixture and its worst errors relative to the largest expected element: of the output, the loss
    /// and the gradients in float32, and of the output in float64.
    ///
    /// Examples:
    ///   lamo parity fixtures/regular_grid_b
    ///   lamo parity fixtures
    ///   lamo parity fixtures/ops/mixer_hydra_a.json --json
    #[command(verbatim_doc_comment)]
    Parity(commands::parity::Parity),
    /// What this machine has for computing: processor, card, driver, libraries, and what is missing.
    ///
    /// Examples:
    ///   lamo doctor
    ///   lamo doctor --json
    #[command(verbatim_doc_comment)]
    Doctor(commands::doctor::Doctor),
    /// List models, benchmarks and experiments.
    ///
    /// Examples:
    ///   lamo list
    ///   lamo list --json
    #[command(verbatim_doc_comment)]
    List(commands::list::List),
    /// Make a model folder from a state dict of the authors' code.
    ///
    /// The file must hold exactly the model's parameters; nothing is written otherwise. The folder is for lamo
    /// export-weights alone: a state dict has no normalisers, so lamo predict and lamo evaluate take trained runs only.
    ///
    /// Examples:
    ///   lamo import airfoil.safetensors --config airfoil.toml --out models/airfoil
    #[command(verbatim_doc_comment, after_long_help = commands::weights::CONFIGURATION)]
    Import(commands::weights::Import),
    /// Write the state dict of a model folder or a run in float32: what was trained or imported in it, bit for bit.
    ///
    /// Examples:
    ///   lamo export-weights models/airfoil --out airfoil.safetensors
    ///   lamo export-weights runs/darcy-lamo-1 --out darcy.safetensors
    #[command(verbatim_doc_comment)]
    ExportWeights(commands::weights::Export),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Train(train) => commands::train::run(&train),
        Command::Predict(predict) => commands::predict::run(&predict),
        Command::Data(data) => commands::data::run(&data),
        Command::Bench(bench) => commands::bench::run(bench),
        Command::Evaluate(evaluate) => commands::evaluate::run(&evaluate),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Parity(parity) => commands::parity::run(&parity),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::List(list) => commands::list::run(&list),
        Command::Import(import) => commands::weights::import(&import),
        Command::ExportWeights(export) => commands::weights::export(&export),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            commands::say_error(&error);
            ExitCode::FAILURE
        }
    }
}
