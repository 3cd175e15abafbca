//! `lamo data`: data sets made, and looked at.

mod check;
pub(crate) mod make;

use anyhow::Result;
use clap::Subcommand;

/// `lamo data`
#[derive(Subcommand)]
pub(crate) enum Data {
    /// Make a data set with a verified solver; the same command resumes an interrupted one.
    ///
    /// Sample k depends on the problem, its parameters, the seed and k alone: the same command makes the same bytes on
    /// any number of threads, interrupted or not. The folder holds `dataset.toml` and one NumPy array per field.
    ///
    /// Examples:
    ///   lamo data make darcy --samples 1200 --set stride=5 --out data/darcy
    ///   lamo data make darcy --samples 64 --resolution 85 --seed 7 --out data/darcy-85
    ///   lamo data make navier-stokes --samples 1200 --set viscosity=1e-4 --out data/ns
    #[command(verbatim_doc_comment, after_long_help = make::problems_and_parameters())]
    Make(make::Make),
    /// Verify the hashes of a data set, print shapes, ranges and NaN counts, and draw a few samples.
    ///
    /// Examples:
    ///   lamo data check data/darcy
    ///   lamo data check data/darcy --picture darcy.png
    #[command(verbatim_doc_comment)]
    Check(check::Check),
}

pub(crate) fn run(data: &Data) -> Result<()> {
    match data {
        Data::Make(make) => make::run(make),
        Data::Check(check) => check::run(check),
    }
}
