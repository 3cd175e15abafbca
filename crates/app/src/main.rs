//! The program `lamo`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lamo_app::run(std::env::args_os())
}
