//! The `lamo` command: reads the arguments, calls the library, prints what it reports.
//!
//! It is a library, so that other programs (the Python module) can offer the same command ([`run`]) and its pages ([`pages`]).

mod commands;
mod failure;
pub mod pages;
mod plot;
mod report;
mod text;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Neural operators learn to solve partial differential equations from examples. This command makes the data, trains
/// models, evaluates them and predicts with them.
///
/// Examples:
///   lamo train darcy
///   lamo evaluate runs/darcy-lamo-1
///   lamo predict runs/darcy-lamo-1 --input permeability.npy --output pressure.npy
#[derive(Parser)]
#[command(name = "lamo", version, arg_required_else_help = true, verbatim_doc_comment)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model: make the data, train, save checkpoints, evaluate.
    ///
    /// Examples:
    ///   lamo train darcy
    ///   lamo train airfoil --model transolver --preset paper --device cuda
    ///   lamo train darcy --set train.epochs=50 --set model.settings.width=64
    ///   lamo train my-data --out runs/mine
    ///   lamo train elasticity --model lamo,transolver --minutes 5 --device cuda
    ///   lamo train --resume runs/darcy-lamo-1
    #[command(verbatim_doc_comment)]
    Train(commands::train::Train),
    /// Predict fields with a trained or imported model.
    ///
    /// Examples:
    ///   lamo predict runs/darcy-lamo-1 --input permeability.npy --output pressure.npy
    ///   lamo predict darcy --input permeability.npy
    ///   lamo predict runs/airfoil-lamo-1 --input meshes.npz --output mach.npz
    ///   lamo predict runs/mine-lamo-1 --input a=flow.mat:perm --input b=load.npy --output u.npy
    ///   lamo predict runs/navier-stokes-lamo-1 --input start.npy --frames 40 --output vorticity.npy
    ///   lamo predict runs/flow-lamo-1 --input new.vtu --scalars new.csv --derive sdf=body.stl --output out.vtu
    ///   lamo predict runs/flow-lamo-1 --input 'new/*.vtu' --scalars new.csv --derive sdf=body.stl --output 'out/*.vtu'
    #[command(verbatim_doc_comment)]
    Predict(commands::predict::Predict),
    /// Serve models over HTTP: predictions for programs, and a page to try them in a browser.
    ///
    /// Programs speak the Open Inference Protocol (Triton's and KServe's clients), or send an npy, npz or vtu file and get one
    /// back, the same as lamo predict writes. Requests that come at the same time are computed together. Ctrl-C stops after
    /// the requests that run. docs/serve.md has the routes and the limits.
    ///
    /// Examples:
    ///   lamo serve darcy
    ///   lamo serve darcy runs/elasticity-lamo-1 mine=runs/x@2 --port 9000 --log json
    ///   lamo serve runs/darcy-lamo-1 --device cuda --batch 32
    ///   LAMO_TOKEN=secret lamo serve darcy --host 0.0.0.0
    ///   curl --data-binary @a.npy -H 'Content-Type: application/x-npy' http://127.0.0.1:8080/v1/models/darcy/predict -o u.npy
    #[command(verbatim_doc_comment)]
    Serve(commands::serve::Serve),
    /// Make, import and check data sets.
    ///
    /// Examples:
    ///   lamo data make darcy --samples 1200 --out data/darcy
    ///   lamo data check data/darcy
    #[command(subcommand, verbatim_doc_comment)]
    Data(commands::data::Data),
    /// Measure speed and memory.
    ///
    /// Examples:
    ///   lamo bench step --benchmark darcy
    ///   lamo bench points --to 100000
    #[command(subcommand, verbatim_doc_comment)]
    Bench(commands::bench::Bench),
    /// Evaluate a run on its test samples; write a report with pictures, and a receipt.
    ///
    /// The error is the mean relative L2 error over the test samples, as papers report it. The numbers of a receipt can
    /// be computed again. They are the same bit for bit on the same kind of device, GPU, vector unit and system. On another
    /// kind they agree within 0.1 %. Earlier versions predicted in tf32 on a GPU; such numbers agree within 2 % unless the model is
    /// very accurate.
    ///
    /// Examples:
    ///   lamo evaluate runs/darcy-lamo-1
    ///   lamo evaluate runs/darcy-lamo-1 --data data/other --out other
    ///   lamo evaluate --verify runs/darcy-lamo-1/receipt.json
    #[command(verbatim_doc_comment)]
    Evaluate(commands::evaluate::Evaluate),
    /// Compare runs: error, parameters, step time and memory, in a table and a picture.
    ///
    /// Examples:
    ///   lamo compare runs/darcy-lamo-1 runs/darcy-fno-1 --out compare.png
    #[command(verbatim_doc_comment)]
    Compare(commands::compare::Compare),
    /// Print the receipts of a folder as one table, with the published numbers beside them.
    ///
    /// Examples:
    ///   lamo results
    ///   lamo results results --out docs/results.md
    #[command(verbatim_doc_comment)]
    Results(commands::results::Results),
    /// Carry a run to another machine in one file; make a small file of its model.
    ///
    /// Examples:
    ///   lamo run pack runs/darcy-lamo-1 --out darcy.tar.gz
    ///   lamo run unpack darcy.tar.gz --out runs/darcy-lamo-1
    ///   lamo run shrink runs/darcy-lamo-1 --out models/darcy.safetensors
    #[command(subcommand, verbatim_doc_comment)]
    Run(commands::run::Run),
    /// Compare models with the authors' code; fail if a difference exceeds the tolerance of its fixture.
    ///
    /// Each line names a fixture and its largest errors, relative to the largest expected element: the output, the loss and
    /// the gradients in float32, and the output in float64, once more with the hidden matrices of lamo explain in place of the
    /// mixings.
    ///
    /// Examples:
    ///   lamo parity fixtures/regular_grid_b
    ///   lamo parity fixtures
    ///   lamo parity fixtures/ops/mixer_hydra_a.json --json
    #[command(verbatim_doc_comment)]
    Parity(commands::parity::Parity),
    /// Show what a model does with one of its test samples: hidden attention matrices, tokens, errors, influences.
    ///
    /// Writes explain.html, one page that needs no network, explain.json, and arrays as .npy files. The matrices are computed in
    /// f64 from what the layers of the same program show; in place of the scans they give the same outputs. Models that do not
    /// mix tokens have errors and influences alone.
    ///
    /// Examples:
    ///   lamo explain runs/darcy-lamo-1
    ///   lamo explain runs/elasticity-transolver-1 --sample 3 --out explained
    ///   lamo explain runs/darcy-lamo-1 --point 1200 --json
    #[command(verbatim_doc_comment)]
    Explain(commands::explain::Explain),
    /// Write a model for other runtimes: an ONNX file, or a C program that needs nothing but libm.
    ///
    /// Fields go in and come out in their units: positions on a lattice, normalisers and the trend are inside. What is written is
    /// compared with the predictions of lamo before it gets its name, and says how far it differs.
    ///
    /// Examples:
    ///   lamo export darcy --onnx darcy.onnx
    ///   lamo export runs/darcy-lamo-1 --c model.c
    ///   lamo export runs/flow-lamo-1 --grid cloud:5000 --onnx flow.onnx --json
    #[command(verbatim_doc_comment)]
    Export(commands::export::Export),
    /// Make the tables and figures of the LaMO paper, ours beside the published values.
    ///
    /// Examples:
    ///   lamo paper list
    ///   lamo paper run --grid quick --budget 25m
    ///   lamo paper show --html paper.html
    #[command(subcommand, verbatim_doc_comment)]
    Paper(commands::paper::Paper),
    /// Show what this machine can compute with: processor, GPU, driver, libraries, and what is missing.
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
    /// The file must hold exactly the model's parameters; otherwise nothing is written. The folder works with lamo predict
    /// and lamo export-weights. A state dict has no normalisers: add them to the configuration if the model was
    /// trained with some. lamo evaluate needs --data DIR.
    ///
    /// Examples:
    ///   lamo import airfoil.safetensors --config airfoil.toml --out models/airfoil
    ///   lamo predict models/airfoil --input meshes.npz --output mach.npz
    #[command(verbatim_doc_comment, after_long_help = commands::weights::CONFIGURATION)]
    Import(commands::weights::Import),
    /// Write the state dict of a model folder or a run in float32, bit for bit as it was trained or imported.
    ///
    /// Examples:
    ///   lamo export-weights models/airfoil --out airfoil.safetensors
    ///   lamo export-weights runs/darcy-lamo-1 --out darcy.safetensors
    #[command(verbatim_doc_comment)]
    ExportWeights(commands::weights::Export),
}

impl Command {
    /// Whether a script asked for JSON on standard output.
    fn json(&self) -> bool {
        match self {
            Command::Train(train) => train.json,
            Command::Data(data) => data.json(),
            Command::Bench(bench) => bench.json(),
            Command::Evaluate(evaluate) => evaluate.json,
            Command::Compare(compare) => compare.json,
            Command::Parity(parity) => parity.json,
            Command::Explain(explain) => explain.json,
            Command::Export(export) => export.json,
            Command::Paper(paper) => paper.json(),
            Command::Doctor(doctor) => doctor.json,
            Command::List(list) => list.json,
            Command::Predict(_)
            | Command::Serve(_)
            | Command::Results(_)
            | Command::Run(_)
            | Command::Import(_)
            | Command::ExportWeights(_) => false,
        }
    }

    fn run(&self) -> anyhow::Result<()> {
        match self {
            Command::Train(train) => commands::train::run(train),
            Command::Predict(predict) => commands::predict::run(predict),
            Command::Serve(serve) => commands::serve::run(serve),
            Command::Data(data) => commands::data::run(data),
            Command::Bench(bench) => commands::bench::run(bench),
            Command::Evaluate(evaluate) => commands::evaluate::run(evaluate),
            Command::Compare(compare) => commands::compare::run(compare),
            Command::Results(results) => commands::results::run(results),
            Command::Run(run) => commands::run::run(run),
            Command::Parity(parity) => commands::parity::run(parity),
            Command::Explain(explain) => commands::explain::run(explain),
            Command::Export(export) => commands::export::run(export),
            Command::Paper(paper) => commands::paper::run(paper),
            Command::Doctor(doctor) => commands::doctor::run(doctor),
            Command::List(list) => commands::list::run(list),
            Command::Import(import) => commands::weights::import(import),
            Command::ExportWeights(export) => commands::weights::export(export),
        }
    }
}

/// Runs the command with its arguments, of which the first is the name of the program; how it ended.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments.command,
        Err(answer) => {
            let _ = answer.print(); // help, the version or what is wrong; a closed terminal changes nothing
            return if answer.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error, command.json()),
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_every_command_has_examples() {
        let mut commands = vec![Arguments::command()];
        while let Some(mut command) = commands.pop() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:\n  lamo "), "{help}");
            commands.extend(command.get_subcommands().filter(|command| command.get_name() != "help").cloned());
        }
    }
}
