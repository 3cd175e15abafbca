//! `lamo data`: make, import and check data sets.

mod check;
mod export;
mod file;
mod import;
pub(crate) mod make;

use anyhow::Result;
use clap::Subcommand;

/// `lamo data`
#[derive(Subcommand)]
pub(crate) enum Data {
    /// Make a data set with a verified solver. The same command continues after an interruption.
    ///
    /// Sample k depends only on the problem, its parameters, the seed and k. So the same command makes the same bytes on any
    /// number of threads, interrupted or not. The folder holds dataset.toml and one NumPy array per field.
    ///
    /// Examples:
    ///   lamo data make darcy --samples 1200 --set stride=5 --out data/darcy
    ///   lamo data make darcy --samples 64 --resolution 85 --seed 7 --out data/darcy-85
    ///   lamo data make navier-stokes --samples 1200 --set viscosity=1e-4 --out data/ns
    #[command(verbatim_doc_comment, after_long_help = make::problems_and_parameters())]
    Make(make::Make),
    /// Make a data set from public benchmark files, from your own arrays, or from mesh files.
    ///
    /// An ARRAY is FILE, or FILE:VARIABLE if the file holds several. Files are npy, npz, MAT v5 and v7.3, HDF5, safetensors,
    /// PyTorch or CSV. A pattern such as 'case_*.npz:p' is one file after another, 'all.h5:*/data' one array after another.
    /// The same command continues after an interruption.
    /// The folder has the same format as that of lamo data make; it also records the source files and their hashes.
    ///
    /// The training and test samples are drawn with a seed. Files with train and test in their names keep their samples;
    /// windows of one time series are split in time; --ordered takes the first and the last.
    ///
    /// Examples:
    ///   lamo data import piececonst_r421_N1024_smooth1.mat piececonst_r421_N1024_smooth2.mat --as darcy --out data/darcy
    ///   lamo data import downloads --as elasticity --out data/elasticity
    ///   lamo data import --input a=perm.npy --output u=flow.mat:sol --grid 64x64 --train 800 --test 200 --out data/own
    ///   lamo data import --positions xy.npy --output s=stress.npy --axes s=pn --grid cloud --out data/own
    ///   lamo data import --positions 'car_*.npz:vertices' --output 'p=car_*.npz:press' --grid cloud --out data/cars
    ///   lamo data import --output u=AC.mat:uu --grid line:512 --window 10 --horizon 10 --stride 1 --out data/ac
    ///   lamo data import --input mu=runs.csv:mu --output u=runs.csv:u --grid line:64 --out data/runs
    ///   lamo data import --input a=darcy.pt:x --output u=darcy.pt:y --grid 16x16 --out data/darcy
    ///   lamo data import 'runs/*.pvd' --output T --window 2 --horizon 5 --out data/heat
    ///   lamo data import 'cases/*.vtu' --output p,U --input region --scalars cases.csv --derive sdf=body.stl --out data/flow
    #[command(verbatim_doc_comment, after_long_help = import::public_files())]
    Import(Box<import::Import>),
    /// Write a data set as the public files of a benchmark, for the loaders of other codes.
    ///
    /// The files have the names, variables, axes and types of the public ones; lamo data import reads them back to the bit. The
    /// data set must have the grid of the public files: make Darcy with stride=1, as its loaders take every fifth point
    /// themselves. Darcy's files are one for training and one for testing; all other files hold all samples in their order.
    ///
    /// Examples:
    ///   lamo data make darcy --samples 1200 --set canonical=true --out data/darcy-421
    ///   lamo data export data/darcy-421 --as darcy --out public/darcy
    ///   lamo data export data/elasticity --out public/elasticity
    #[command(verbatim_doc_comment, after_long_help = import::public_files())]
    Export(export::Export),
    /// Check a data set, or list the arrays of a file.
    ///
    /// Verifies the hashes of a data set, prints shapes, ranges and NaN counts, and draws a few samples. Of a file it prints
    /// and draws the arrays.
    ///
    /// Examples:
    ///   lamo data check data/darcy
    ///   lamo data check data/darcy --picture darcy.png
    ///   lamo data check NavierStokes_V1e-5_N1200_T20.mat
    ///   lamo data check data/darcy --converge 4
    ///   lamo data check data/darcy --json
    #[command(verbatim_doc_comment)]
    Check(check::Check),
}

impl Data {
    /// Whether a script asked for JSON on standard output.
    pub(crate) fn json(&self) -> bool {
        matches!(self, Data::Check(check) if check.json)
    }
}

pub(crate) fn run(data: &Data) -> Result<()> {
    match data {
        Data::Make(make) => make::run(make),
        Data::Import(import) => import::run(import),
        Data::Export(export) => export::run(export),
        Data::Check(check) => check::run(check),
    }
}
