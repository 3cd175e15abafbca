//! The `lamo` command: what was typed, handed to the library.

mod commands;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Neural operators: train, evaluate, explain and serve.
#[derive(Parser)]
#[command(name = "lamo", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure speed and memory.
    #[command(subcommand)]
    Bench(commands::bench::Bench),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Bench(bench) => commands::bench::run(bench),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            commands::say_error(&error);
            ExitCode::FAILURE
        }
    }
}
