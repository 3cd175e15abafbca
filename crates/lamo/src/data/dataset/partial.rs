//! A data set while it is being made: `NAME.partial` beside its future place.
//!
//! ```text
//! recipe.toml   the manifest without hashes: what is being made
//! progress      one character per sample: how often it was drawn, once its values are on the disk (9 stands for more), `0`
//!               before
//! lock          held by the process at work
//! *.npy         arrays of full length
//! dataset.toml  the manifest, once all arrays are as they will stay
//! ```
//! A sample is marked only after its values have been synced, so a mark can be believed after a power failure too.
//!
//! A set goes one way: begun, finished (the folder has `dataset.toml`), named (the folder has been renamed). Whoever
//! works on one that is only begun holds the lock, and has looked how far the set is since it was given the lock: another
//! process may have come to the end meanwhile. The lock goes away with a finished set, or with one that its maker takes
//! away because a source was refused; who waited for the lock then begins anew. To name a set no lock is needed, as nothing
//! is written any more: whoever comes first does it, and the others, who fail to, look and find it named.

use super::npy::Array;
use super::{Dataset, Error, FieldEntry, MANIFEST, Manifest, Outcome, Progress, file_hash};
use crate::files::{atomic, lock};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const RECIPE: &str = "recipe.toml";
const PROGRESS: &str = "progress";
const LOCK: &str = "lock";
/// Finished samples wait for their marks at most so long, and so many at a time: syncing is slow.
const PATIENCE: Duration = Duration::from_secs(1);
const PENDING: usize = 256;

/// The partial folder of a data set, if the target has a name.
pub(in crate::data) fn beside(target: &Path) -> Option<PathBuf> {
    let mut name = target.file_name()?.to_owned();
    name.push(".partial");
    Some(target.with_file_name(name))
}

/// Makes the set that `manifest` describes in `target`, or what an earlier attempt left missing of it: `fill` does.
pub(in crate::data) fn make(
    target: &Path,
    manifest: &Manifest,
    fill: impl FnOnce(&Partial) -> Result<Progress, Error>,
) -> Result<Outcome, Error> {
    if let Some(dataset) = already_there(target, manifest)? {
        return Ok(Outcome::AlreadyThere(dataset));
    }
    let Some(folder) = beside(target) else {
        return Err(Error::Occupied { path: target.to_owned(), found: "a path without a last name" });
    };
    match attempt(&folder, target, manifest, fill) {
        Ok(Some(outcome)) => Ok(outcome),
        // Another process may have finished the set meanwhile, and have renamed the folder while this one looked at it.
        other => match already_there(target, manifest) {
            Ok(Some(dataset)) => {
                leave(&folder, target);
                Ok(Outcome::AlreadyThere(dataset))
            }
            looked => Err(other.err().or(looked.err()).unwrap_or(Error::InUse { path: folder })),
        },
    }
}

/// Nothing if the set has got its name from another process.
fn attempt(
    folder: &Path,
    target: &Path,
    manifest: &Manifest,
    fill: impl FnOnce(&Partial) -> Result<Progress, Error>,
) -> Result<Option<Outcome>, Error> {
    if !is_finished(folder) {
        let lock = enter(folder)?;
        // Here first, then there: in this direction a set moves.
        if !is_finished(folder) {
            if already_there(target, manifest)?.is_some() {
                return Ok(None);
            }
            let partial = Partial::open(folder.to_owned(), manifest.clone(), lock)?;
            let progress = fill(&partial)?;
            if progress.complete < progress.samples {
                return Ok(Some(Outcome::Stopped(progress)));
            }
            partial.finish()?;
        }
    }
    give_name(folder, manifest, target)?;
    Dataset::open(target).map(|dataset| Some(Outcome::Made(dataset)))
}

fn is_finished(folder: &Path) -> bool {
    folder.join(MANIFEST).exists()
}

/// The lock of the partial folder, which is created unless it is there.
fn enter(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    loop {
        std::fs::create_dir_all(folder).map_err(|reason| Error::writing(folder, reason))?;
        if !is_ours(folder)? {
            return Err(Error::Occupied { path: folder.to_owned(), found: "other files" });
        }
        let lock = lock::lock(&path).map_err(|reason| Error::writing(&path, reason))?;
        let lock = lock.ok_or_else(|| Error::InUse { path: folder.to_owned() })?;
        // Whoever held it may have named the folder or taken it away, and then this is the lock of nothing.
        if path.exists() {
            return Ok(lock);
        }
    }
}

/// Takes away what [`enter`] made, wherever it is now that the set is in `target`.
fn leave(folder: &Path, target: &Path) {
    for path in [folder.join(LOCK), target.join(LOCK)] {
        let _ = std::fs::remove_file(path); // if it is there
    }
    let _ = std::fs::remove_dir(folder); // succeeds for an empty folder only
}

/// Whether the folder holds a set, or at most what a process killed at its very start leaves.
fn is_ours(folder: &Path) -> Result<bool, Error> {
    let entries = std::fs::read_dir(folder).map_err(|reason| Error::reading(folder, reason))?;
    let fresh = entries.flatten().map(|entry| entry.file_name()).all(|name| name == LOCK || atomic::is_partial(&name));
    // Looked for in the order in which a set that others work on comes to have them.
    Ok(fresh || folder.join(RECIPE).exists() || is_finished(folder))
}

fn already_there(target: &Path, manifest: &Manifest) -> Result<Option<Dataset>, Error> {
    let occupied = |found| Err(Error::Occupied { path: target.to_owned(), found });
    match std::fs::symlink_metadata(target) {
        Err(_) => return Ok(None), // whoever creates the folder learns why it cannot
        Ok(data) if !data.is_dir() => return occupied("a file"),
        Ok(_) => {}
    }
    if target.join(MANIFEST).exists() {
        let dataset = Dataset::open(target)?;
        same(target, "holds another data set", manifest, dataset.manifest())?;
        return Ok(Some(dataset));
    }
    let mut entries = std::fs::read_dir(target).map_err(|reason| Error::reading(target, reason))?;
    if entries.next().is_some() { occupied("a folder with other files") } else { Ok(None) }
}

/// The folder, open for writing by this process alone.
#[derive(Debug)]
pub(in crate::data) struct Partial {
    folder: PathBuf,
    manifest: Manifest,
    arrays: Vec<Array>,
    journal: Mutex<Journal>,
    _lock: File,
}

#[derive(Debug)]
struct Journal {
    file: File,
    /// Draws of each sample that is complete, else 0.
    draws: Vec<u8>,
    pending: Vec<(usize, u8)>,
    last: Instant,
}

impl Partial {
    /// Begins, or goes on where the same recipe was interrupted; the lock is that of the folder.
    fn open(folder: PathBuf, manifest: Manifest, lock: File) -> Result<Partial, Error> {
        atomic::sweep(&folder, Duration::ZERO);
        let recipe = folder.join(RECIPE);
        if recipe.exists() {
            same(&folder, "holds an unfinished data set", &manifest, &Manifest::read(&recipe, true)?)?;
        } else {
            manifest.write(&recipe)?;
        }
        let (arrays, journal) = match folder.join(PROGRESS).exists() {
            true => resume(&folder, &manifest)?,
            false => begin(&folder, &manifest)?,
        };
        Ok(Partial { folder, manifest, arrays, journal: Mutex::new(journal), _lock: lock })
    }

    /// Samples still to be made.
    pub(in crate::data) fn missing(&self) -> Vec<usize> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        (0..journal.draws.len()).filter(|&sample| journal.draws[sample] == 0).collect()
    }

    /// Stores one sample that was drawn so often: its fields in the manifest's order.
    pub(in crate::data) fn write(&self, sample: usize, fields: &[Vec<f32>], draws: usize) -> Result<(), Error> {
        for (field, values) in fields.iter().enumerate() {
            self.store(field, sample, values)?;
        }
        self.mark_drawn(sample..sample + 1, draws.clamp(1, 9) as u8)
    }

    /// Stores consecutive samples of one field; they count once they are marked.
    pub(in crate::data) fn store(&self, field: usize, first: usize, values: &[f32]) -> Result<(), Error> {
        self.arrays[field].write(first, values)
    }

    /// All fields of these samples have been stored.
    pub(in crate::data) fn mark(&self, samples: Range<usize>) -> Result<(), Error> {
        self.mark_drawn(samples, 1)
    }

    fn mark_drawn(&self, samples: Range<usize>, draws: u8) -> Result<(), Error> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.pending.extend(samples.map(|sample| (sample, draws)));
        if journal.pending.len() >= PENDING || journal.last.elapsed() >= PATIENCE {
            self.commit(&mut journal)?;
        }
        Ok(())
    }

    /// Marks everything written so far.
    pub(in crate::data) fn save(&self) -> Result<(), Error> {
        self.commit(&mut self.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn commit(&self, journal: &mut Journal) -> Result<(), Error> {
        self.arrays.iter().try_for_each(Array::sync)?;
        let failed = |reason| Error::writing(&self.folder.join(PROGRESS), reason);
        for (sample, draws) in std::mem::take(&mut journal.pending) {
            journal.file.seek(SeekFrom::Start(sample as u64)).map_err(failed)?;
            journal.file.write_all(&[b'0' + draws]).map_err(failed)?;
            journal.draws[sample] = draws;
        }
        journal.file.sync_data().map_err(failed)?;
        journal.last = Instant::now();
        Ok(())
    }

    /// Takes away what no later attempt can complete. The recipe goes after all that it describes.
    pub(in crate::data) fn discard(&self) {
        let at = |name: &str| self.folder.join(name);
        let arrays = self.arrays.iter().map(|array| array.path.clone());
        for path in [at(PROGRESS)].into_iter().chain(arrays).chain([at(RECIPE), at(LOCK)]) {
            let _ = std::fs::remove_file(path); // best effort: what made it necessary is the error to tell
        }
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Hashes the arrays and writes the manifest last of all. Closes all files: some systems rename no folder with open
    /// ones.
    fn finish(mut self) -> Result<(), Error> {
        for (field, array) in self.manifest.fields.iter_mut().zip(&self.arrays) {
            field.sha256 = file_hash(&array.path, &mut |_| {})?;
        }
        let journal = self.journal.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.manifest.redrawn = journal.draws.iter().map(|&draws| usize::from(draws.saturating_sub(1))).sum();
        self.manifest.write(&self.folder.join(MANIFEST))
    }
}

/// Refuses unless both manifests describe the same samples.
fn same(folder: &Path, state: &'static str, ours: &Manifest, theirs: &Manifest) -> Result<(), Error> {
    match ours.difference(theirs) {
        None => Ok(()),
        Some((what, expected, found)) => {
            Err(Error::Different { path: folder.to_owned(), state, what, expected, found })
        }
    }
}

/// Gives a finished folder the name of the set.
fn give_name(folder: &Path, manifest: &Manifest, target: &Path) -> Result<(), Error> {
    same(folder, "holds a finished data set", manifest, &Manifest::read(&folder.join(MANIFEST), false)?)?;
    for name in [RECIPE, PROGRESS, LOCK] {
        let _ = std::fs::remove_file(folder.join(name)); // may be gone from an earlier attempt
    }
    let _ = std::fs::remove_dir(target); // succeeds for an empty folder only
    std::fs::rename(folder, target).map_err(|reason| Error::writing(target, reason))?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(parent).and_then(|parent| parent.sync_all()); // not all systems can sync folders
    Ok(())
}

fn begin(folder: &Path, manifest: &Manifest) -> Result<(Vec<Array>, Journal), Error> {
    let create =
        |field: &FieldEntry| Array::create(folder.join(&field.file), field.rows(manifest.samples), &field.shape);
    let arrays = manifest.fields.iter().map(create).collect::<Result<_, _>>()?;
    let path = folder.join(PROGRESS);
    let written = atomic::replace(&path, &vec![b'0'; manifest.samples]);
    let file = written.and_then(|()| File::options().write(true).open(&path));
    let file = file.map_err(|reason| Error::writing(&path, reason))?;
    let draws = vec![0; manifest.samples];
    Ok((arrays, Journal { file, draws, pending: Vec::new(), last: Instant::now() }))
}

fn resume(folder: &Path, manifest: &Manifest) -> Result<(Vec<Array>, Journal), Error> {
    let open =
        |field: &FieldEntry| Array::open(folder.join(&field.file), field.rows(manifest.samples), &field.shape, true);
    let arrays = manifest.fields.iter().map(open).collect::<Result<_, _>>()?;
    let path = folder.join(PROGRESS);
    let marks = std::fs::read(&path).map_err(|reason| Error::reading(&path, reason))?;
    let (expected, found) = (manifest.samples as u64, marks.len() as u64);
    if expected != found {
        return Err(Error::Length { path, expected, found });
    }
    let file = File::options().write(true).open(&path).map_err(|reason| Error::writing(&path, reason))?;
    let digit = |mark: &u8| if mark.is_ascii_digit() { mark - b'0' } else { 0 };
    let draws = marks.iter().map(digit).collect();
    Ok((arrays, Journal { file, draws, pending: Vec::new(), last: Instant::now() }))
}

#[cfg(test)]
mod tests;
