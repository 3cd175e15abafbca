//! A run folder as one file, so that a training can go on on another machine.

use super::folder::{self, refuse};
use super::{BEST, CHECKPOINTS, Checkpoint, EXPERIMENT, LAST};
use crate::data::Storage;
use crate::error::{Error, Kind, Refusal, require};
use crate::files::archive::{self, Content};
use crate::files::{self, atomic};
use std::path::{Path, PathBuf};

/// Which checkpoints keep the moments of the optimiser, two numbers for each parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moments {
    /// All: the run comes back byte for byte.
    #[default]
    All,
    /// Only those of the last checkpoint, with which the training continues. The best checkpoint keeps its model alone.
    Last,
    /// None: the run can be evaluated and predicted with, and not be resumed.
    None,
}

/// What was packed or unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Number of files.
    pub files: usize,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of the archive.
    pub packed: u64,
}

/// Writes all files of a run to one new file. The run must not be in training.
pub fn pack(run: &Path, file: &Path, moments: Moments) -> Result<Packed, Error> {
    require(run.join(EXPERIMENT).is_file(), || {
        let found = if run.is_dir() { "a folder without it" } else { "no folder" };
        Refusal::new(run.display().to_string(), format!("a run folder with {EXPERIMENT}"), found).of(Kind::Missing)
    })?;
    require(!file.exists(), || {
        Refusal::about(file.display().to_string(), "exists already").advise("choose another name").of(Kind::Conflict)
    })?;
    let _lock = folder::take(run)?;
    let mut contents = Vec::new();
    for name in names(run, Path::new(""))? {
        contents.push((name.clone(), content(run, &name, moments)?));
    }
    let mut bytes = 0;
    let written = atomic::stream(file, |out| {
        bytes = archive::write(out, &contents)?;
        Ok(())
    });
    written.map_err(|reason| Error::writing(file, reason))?;
    Ok(Packed { files: contents.len(), bytes, packed: size(file) })
}

/// Makes a run folder, which must not exist or be empty, of a packed file.
pub fn unpack(file: &Path, run: &Path) -> Result<Packed, Error> {
    folder::free(run)?;
    let input = files::open(file).map_err(|reason| Error::reading(file, reason))?;
    let named = atomic::partial(run);
    let partial = named.ok_or_else(|| Refusal::about(run.display().to_string(), "names no folder to write"))?;
    std::fs::create_dir_all(&partial).map_err(|reason| Error::writing(run, reason))?;
    let unpacked = place(file, input, [&partial, run]);
    if unpacked.is_err() {
        let _ = std::fs::remove_dir_all(&partial); // best effort: the first error is the one to report
    }
    unpacked
}

/// Writes the files to the first folder, checks them, and gives it the name of the second.
fn place(file: &Path, input: std::fs::File, [partial, run]: [&Path; 2]) -> Result<Packed, Error> {
    let names = archive::read(input, partial).map_err(|reason| Error::reading(file, reason))?;
    require(names.iter().any(|name| name == EXPERIMENT), || {
        Refusal::new(file.display().to_string(), format!("a packed run with {EXPERIMENT}"), "other files")
    })?;
    folder::experiment(partial)?;
    for name in [LAST, BEST].map(|name| folder::checkpoint_path(partial, name)) {
        if name.is_file() {
            Checkpoint::read(&name)?;
        }
    }
    let bytes = names.iter().map(|name| size(&partial.join(name))).sum();
    let _ = std::fs::remove_dir(run); // it is empty, or the name is free; else the renaming tells
    std::fs::rename(partial, run).map_err(|reason| Error::writing(run, reason))?;
    Ok(Packed { files: names.len(), bytes, packed: size(file) })
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |found| found.len())
}

/// The plain files below a folder of the run in the order of their names, as paths with slashes.
fn names(run: &Path, below: &Path) -> Result<Vec<String>, Error> {
    let folder = run.join(below);
    let told = |reason| Error::reading(&folder, reason);
    let mut entries = std::fs::read_dir(&folder).map_err(told)?.collect::<Result<Vec<_>, _>>().map_err(told)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut names = Vec::new();
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type().map_err(told)?);
        let path = below.join(&name);
        if kind.is_dir() {
            names.extend(self::names(run, &path)?);
        } else if !kind.is_file() {
            let kind = if kind.is_symlink() { "a symbolic link" } else { "no plain file" };
            let about =
                format!("is {kind}, which a packed run cannot hold; put the file itself there, or move it elsewhere");
            return Err(refuse(&run.join(&path), &about));
        } else if !atomic::is_partial(&name) && path != Path::new(folder::LOCK) {
            let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
            let parts = parts.ok_or_else(|| refuse(&run.join(&path), "its name is not Unicode; give it another"))?;
            names.push(parts.join("/"));
        }
    }
    Ok(names)
}

/// A file of the run as it is, or a checkpoint without its moments.
fn content(run: &Path, name: &str, moments: Moments) -> Result<Content, Error> {
    let path: PathBuf = run.join(name);
    let slim = match moments {
        Moments::All => false,
        Moments::Last => name == format!("{CHECKPOINTS}/{BEST}") && folder::checkpoint_path(run, LAST).is_file(),
        Moments::None => name.starts_with(CHECKPOINTS),
    };
    match slim {
        true => Ok(Content::Bytes(Checkpoint::read(&path)?.model_bytes(&path, Storage::F32)?)),
        false => Ok(Content::Of(path)),
    }
}
