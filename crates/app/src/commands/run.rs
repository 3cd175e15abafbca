//! `lamo run`: a run as one file, and its model as a small one.

use super::{require_extension, say};
use crate::text::memory;
use anyhow::Result;
use clap::{Args, Subcommand};
use lamo::data::Storage;
use lamo::error::counted;
use lamo::run::{self, Moments, Packed, pretrained};
use std::path::PathBuf;

/// `lamo run`
#[derive(Subcommand)]
pub(crate) enum Run {
    /// Write a run folder to one compressed file, so that the training can go on on another machine.
    ///
    /// Examples:
    ///   lamo run pack runs/darcy-lamo-1 --out darcy.tar.gz
    ///   lamo run pack runs/darcy-lamo-1 --out darcy.tar.gz --moments last
    #[command(verbatim_doc_comment)]
    Pack(Pack),
    /// Make a run folder of a packed file.
    ///
    /// Examples:
    ///   lamo run unpack darcy.tar.gz --out runs/darcy-lamo-1
    ///   lamo train --resume runs/darcy-lamo-1
    #[command(verbatim_doc_comment)]
    Unpack(Unpack),
    /// Write the model of a run to one small file: a checkpoint without moments, its weights in 16 bits.
    ///
    /// The file works with lamo predict and lamo evaluate. In the folder that the variable LAMO_MODELS names, it is found by its
    /// name: lamo predict NAME.
    ///
    /// Examples:
    ///   lamo run shrink runs/darcy-lamo-1 --out models/darcy.safetensors
    ///   lamo evaluate models/darcy.safetensors --out darcy-rounded
    #[command(verbatim_doc_comment)]
    Shrink(Shrink),
}

/// `lamo run pack`
#[derive(Args)]
pub(crate) struct Pack {
    /// Run folder.
    run: PathBuf,
    /// File to write; it must not exist. It is a tar archive that gzip compressed.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Checkpoints that keep the moments of the optimiser: all; last, which halves the file and can be resumed as well; none,
    /// which can be evaluated and predicted with but not be resumed.
    #[arg(long, value_parser = ["all", "last", "none"], default_value = "all")]
    moments: String,
}

/// `lamo run unpack`
#[derive(Args)]
pub(crate) struct Unpack {
    /// File that lamo run pack wrote.
    file: PathBuf,
    /// Run folder to make; it must be empty or not exist.
    #[arg(long, value_name = "RUN")]
    out: PathBuf,
}

/// `lamo run shrink`
#[derive(Args)]
pub(crate) struct Shrink {
    /// Run folder or checkpoint file.
    run: PathBuf,
    /// Safetensors file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How the weights are stored: f16, bf16 or f32. f16 keeps three more bits than bf16, and changes the error less.
    #[arg(long, value_parser = ["f16", "bf16", "f32"], default_value = "f16")]
    bits: String,
}

pub(crate) fn run(command: &Run) -> Result<()> {
    match command {
        Run::Pack(pack) => {
            let moments = match pack.moments.as_str() {
                "last" => Moments::Last,
                "none" => Moments::None,
                _ => Moments::All,
            };
            let Packed { files, bytes: held, packed } = run::pack(&pack.run, &pack.out, moments)?;
            let (files, held) = (counted(files, "file"), size(held));
            say(&format!("{}: {files} with {held} in {}", pack.out.display(), size(packed)))
        }
        Run::Unpack(unpack) => {
            let Packed { files, bytes: held, .. } = run::unpack(&unpack.file, &unpack.out)?;
            say(&format!("{}: {} with {}", unpack.out.display(), counted(files, "file"), size(held)))
        }
        Run::Shrink(shrink) => {
            require_extension(&shrink.out, "safetensors").map_err(|refusal| refusal.within("--out"))?;
            let storage = match shrink.bits.as_str() {
                "bf16" => Storage::Bf16,
                "f32" => Storage::F32,
                _ => Storage::F16,
            };
            let stored = size(pretrained::shrink(&shrink.run, &shrink.out, storage)?);
            say(&format!("{}: {stored} with weights in {}", shrink.out.display(), storage.name()))
        }
    }
}

/// A number of bytes in words.
fn size(bytes: u64) -> String {
    memory(usize::try_from(bytes).ok())
}
