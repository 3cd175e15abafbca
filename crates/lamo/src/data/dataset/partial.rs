//! A data set while it is being made: the folder `NAME.partial` beside the future folder `NAME`.
//!
//! ```text
//! recipe.toml   the manifest without hashes: what is being made
//! progress      one character per sample: `0` until its values are on the disk, then how often it was drawn, 9 at most
//! lock          held by the process that makes the data set
//! *.npy         arrays of full length
//! dataset.toml  the manifest, once all arrays are final
//! ```
//! A sample is marked only after its values have been synced to the disk, so a mark is true even after a power failure.
//! Where an array was cut or removed since, the marks of the samples it lost are taken back and the samples made again.
//!
//! A data set has three states, in this order: begun, finished (`NAME.partial` has `dataset.toml`), named
//! (`NAME.partial` is renamed to `NAME`). Several processes may make the same data set:
//!
//! - A process writes into a begun folder only while it holds the lock. Once it has the lock it checks the state again,
//!   because another process may have finished the data set in the meantime.
//! - The lock file is removed when the data set is named, and when an import deletes the folder because a source file
//!   was refused. A process that waited for the lock then finds no lock file and starts over.
//! - Naming needs no lock, because nothing is written any more. One process renames the folder. For all other processes
//!   the renaming fails, and they find the data set under its name.

use super::npy::Array;
use super::{Dataset, Error, FieldEntry, MANIFEST, Manifest, Outcome, Progress, Triangles, Warn, exchanged, file_hash};
use crate::error::{counted, shown};
use crate::files::{self, atomic, lock, memory};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const RECIPE: &str = "recipe.toml";
const PROGRESS: &str = "progress";
const LOCK: &str = "lock";
/// Syncing is slow, so finished samples are marked together: when this time has passed since the last sync,
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// or when this many samples are finished and not marked.
const MOST_PENDING: usize = 256;

/// The partial folder of a data set; `None` where the path of the target ends without a name.
pub(in crate::data) fn beside(target: &Path) -> Option<PathBuf> {
    let mut name = target.file_name()?.to_owned();
    name.push(".partial");
    Some(target.with_file_name(name))
}

/// Makes the data set that `manifest` describes in `target`; `fill` makes the samples that are still missing, `warn` is
/// told what was lost of an interrupted attempt.
pub(in crate::data) fn make(
    target: &Path,
    manifest: &Manifest,
    warn: Warn,
    fill: impl FnOnce(&Partial) -> Result<Progress, Error>,
) -> Result<Outcome, Error> {
    if let Some(dataset) = already_there(target, manifest)? {
        return Ok(Outcome::AlreadyThere(dataset));
    }
    let Some(folder) = beside(target) else {
        return Err(Error::Occupied { path: target.to_owned(), found: "a path that ends without a name".into() });
    };
    match attempt(&folder, target, manifest, warn, fill) {
        Ok(Some(outcome)) => Ok(outcome),
        // Another process may have finished the data set and renamed the folder during the attempt.
        other => match already_there(target, manifest) {
            Ok(Some(dataset)) => {
                clean_up(&folder, target);
                Ok(Outcome::AlreadyThere(dataset))
            }
            found => Err(other.err().or(found.err()).unwrap_or(Error::InUse { path: folder })),
        },
    }
}

/// One attempt; `None` if another process has named the data set.
fn attempt(
    folder: &Path,
    target: &Path,
    manifest: &Manifest,
    warn: Warn,
    fill: impl FnOnce(&Partial) -> Result<Progress, Error>,
) -> Result<Option<Outcome>, Error> {
    if !is_finished(folder) {
        let lock = acquire_lock(folder)?;
        // The partial folder first, then the target: a data set moves in this direction.
        if !is_finished(folder) {
            if already_there(target, manifest)?.is_some() {
                return Ok(None);
            }
            let partial = Partial::open(folder.to_owned(), manifest.clone(), lock, warn)?;
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

/// Creates the partial folder unless it exists, and acquires its lock.
fn acquire_lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    loop {
        std::fs::create_dir_all(folder).map_err(|reason| Error::writing(folder, reason))?;
        if let Some(name) = foreign_file(folder)? {
            return Err(Error::Occupied { path: folder.to_owned(), found: format!("a folder that holds `{name}`") });
        }
        let lock = lock::lock(&path).map_err(|reason| Error::writing(&path, reason))?;
        let lock = lock.ok_or_else(|| Error::InUse { path: folder.to_owned() })?;
        // The process that held the lock may have named or deleted the folder; then the lock belongs to no folder.
        if path.exists() {
            return Ok(lock);
        }
    }
}

/// Removes what [`acquire_lock`] created; another process may have renamed the folder to `target` since.
fn clean_up(folder: &Path, target: &Path) {
    for path in [folder.join(LOCK), target.join(LOCK)] {
        let _ = std::fs::remove_file(path); // one of the two may not exist
    }
    let _ = std::fs::remove_dir(folder); // succeeds for an empty folder only
}

/// The name of a file that does not belong to a data set; `None` where the folder holds a data set, or only files that
/// a process leaves when it is killed at its start.
fn foreign_file(folder: &Path) -> Result<Option<String>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|reason| Error::reading(folder, reason))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let foreign = names.filter(|name| name != LOCK && !atomic::is_partial(name)).min();
    // In this order: another process may create them at the same time, the recipe first.
    if folder.join(RECIPE).exists() || is_finished(folder) {
        return Ok(None);
    }
    Ok(foreign.map(|name| name.to_string_lossy().into_owned()))
}

/// The same data set under its name, if it exists; refuses anything else there but an empty folder.
fn already_there(target: &Path, manifest: &Manifest) -> Result<Option<Dataset>, Error> {
    let occupied = |found: String| Err(Error::Occupied { path: target.to_owned(), found });
    match std::fs::symlink_metadata(target) {
        Err(_) => return Ok(None), // if the path cannot be used, creating the folder reports the reason
        Ok(data) if !data.is_dir() => return occupied("a file".into()),
        Ok(_) => {}
    }
    if target.join(MANIFEST).exists() {
        let dataset = Dataset::open(target)?;
        same(target, "holds another data set", manifest, dataset.manifest())?;
        return Ok(Some(dataset));
    }
    let entries = std::fs::read_dir(target).map_err(|reason| Error::reading(target, reason))?;
    match entries.map(|entry| entry.map(|entry| entry.file_name()).unwrap_or_default()).min() {
        Some(name) => occupied(format!("a folder that holds `{}`", name.to_string_lossy())),
        None => Ok(None),
    }
}

/// A begun data set whose lock this process holds.
#[derive(Debug)]
pub(in crate::data) struct Partial {
    folder: PathBuf,
    manifest: Manifest,
    arrays: Vec<Array>,
    journal: Mutex<Journal>,
    /// The triangles, once they are written.
    triangles: Mutex<Option<Triangles>>,
    _lock: File,
}

/// Which samples are complete.
#[derive(Debug)]
struct Journal {
    file: File,
    /// How often each sample was drawn; 0 while it is not complete.
    draws: Vec<u8>,
    /// Stored samples without a mark, and how often each was drawn.
    pending: Vec<(usize, u8)>,
    /// Time of the last sync.
    synced: Instant,
}

impl Partial {
    /// Begins a data set, or resumes one of the same recipe; `lock` is the lock of the folder.
    fn open(folder: PathBuf, manifest: Manifest, lock: File, warn: Warn) -> Result<Partial, Error> {
        atomic::sweep(&folder, Duration::ZERO);
        let recipe = folder.join(RECIPE);
        if recipe.exists() {
            same(&folder, "holds an unfinished data set", &manifest, &Manifest::read(&recipe, true)?)?;
        } else {
            manifest.write(&recipe)?;
        }
        let (arrays, journal) = match folder.join(PROGRESS).exists() {
            true => resume(&folder, &manifest, warn)?,
            false => begin(&folder, &manifest)?,
        };
        Ok(Partial { folder, manifest, arrays, journal: Mutex::new(journal), triangles: Mutex::default(), _lock: lock })
    }

    /// Samples that are not complete.
    pub(in crate::data) fn missing(&self) -> Result<Vec<usize>, Error> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |sample: &usize| journal.draws[*sample] == 0;
        let count = (0..journal.draws.len()).filter(is_missing).count();
        let mut missing = memory::reserve(count).map_err(|reason| Error::memory("samples", reason))?;
        missing.extend((0..journal.draws.len()).filter(is_missing));
        Ok(missing)
    }

    /// Stores consecutive samples of one field, numbered as in the manifest; they count once they are marked.
    pub(in crate::data) fn store(&self, field: usize, first: usize, values: &[f32]) -> Result<(), Error> {
        self.arrays[field].write(first, values)
    }

    /// Stores one sample of a ragged field, `[snapshots?, points, channels?]`, point by point.
    pub(in crate::data) fn store_ragged(
        &self,
        number: usize,
        points: Range<usize>,
        values: &[f32],
    ) -> Result<(), Error> {
        let field = &self.manifest.fields[number];
        let axes = field.on(self.manifest.grid).ok();
        let snapshots = axes.map_or(1, |axes| axes.length());
        if snapshots == 1 {
            return self.store(number, points.start, values);
        }
        let channels = values.len() / (snapshots * points.len());
        self.store(number, points.start, &exchanged(values, [snapshots, points.len(), channels]))
    }

    /// Marks samples as complete: all their fields have been stored. `draws` is how often each was drawn.
    pub(in crate::data) fn mark(&self, samples: Range<usize>, draws: usize) -> Result<(), Error> {
        let draws = draws.clamp(1, 9) as u8;
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.pending.extend(samples.map(|sample| (sample, draws)));
        if journal.pending.len() >= MOST_PENDING || journal.synced.elapsed() >= SYNC_INTERVAL {
            self.commit(&mut journal)?;
        }
        Ok(())
    }

    /// Writes all marks to the disk.
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
        journal.synced = Instant::now();
        Ok(())
    }

    /// The folder, for files that are written once all samples are complete.
    pub(in crate::data) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records the triangles that have been written into the folder.
    pub(in crate::data) fn set_triangles(&self, triangles: Triangles) {
        *self.triangles.lock().unwrap_or_else(PoisonError::into_inner) = Some(triangles);
    }

    /// Deletes a data set that cannot be completed later, the recipe after all that it describes.
    pub(in crate::data) fn discard(&self) {
        let at = |name: &str| self.folder.join(name);
        let arrays = self.arrays.iter().map(|array| array.path.clone());
        let offsets = self.manifest.ragged.iter().map(|ragged| at(&ragged.file));
        let triangles = self.manifest.triangles.iter().flat_map(|triangles| triangles.paths(&self.folder));
        let data = arrays.chain(offsets).chain(triangles);
        for path in [at(PROGRESS)].into_iter().chain(data).chain([at(RECIPE), at(LOCK)]) {
            let _ = std::fs::remove_file(path); // the caller reports why the data set is deleted
        }
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Hashes the arrays, writes the manifest and closes all files: some systems do not rename a folder with open
    /// files.
    fn finish(mut self) -> Result<(), Error> {
        for (field, array) in self.manifest.fields.iter_mut().zip(&self.arrays) {
            field.sha256 = file_hash(&array.path, &mut |_| {})?;
        }
        let triangles = self.triangles.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.manifest.triangles = triangles;
        self.manifest.at_rest = self.manifest.windows_at_rest(&self.arrays)?;
        let journal = self.journal.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.manifest.redrawn = journal.draws.iter().map(|&draws| usize::from(draws.saturating_sub(1))).sum();
        self.manifest.write(&self.folder.join(MANIFEST))
    }
}

/// Refuses unless `found`, the manifest in `folder`, describes the same samples as `expected`.
fn same(folder: &Path, state: &'static str, expected: &Manifest, found: &Manifest) -> Result<(), Error> {
    match expected.difference(found) {
        None => Ok(()),
        Some((what, expected, found)) => {
            Err(Error::Different { path: folder.to_owned(), state, what, expected, found })
        }
    }
}

/// Renames a finished folder to the name of the data set.
fn give_name(folder: &Path, manifest: &Manifest, target: &Path) -> Result<(), Error> {
    same(folder, "holds a finished data set", manifest, &Manifest::read(&folder.join(MANIFEST), false)?)?;
    for name in [RECIPE, PROGRESS, LOCK] {
        let _ = std::fs::remove_file(folder.join(name)); // an earlier attempt may have removed it
    }
    let _ = std::fs::remove_dir(target); // succeeds for an empty folder only
    std::fs::rename(folder, target).map_err(|reason| Error::writing(target, reason))?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(parent).and_then(|parent| parent.sync_all()); // not all systems can sync folders
    Ok(())
}

/// Creates the arrays and the file of marks.
fn begin(folder: &Path, manifest: &Manifest) -> Result<(Vec<Array>, Journal), Error> {
    manifest.ragged.as_ref().map_or(Ok(()), |ragged| ragged.write(folder))?;
    let create = |field: &FieldEntry| {
        let (rows, shape) = manifest.layout(field);
        Array::create(folder.join(&field.file), rows, &shape)
    };
    let arrays = manifest.fields.iter().map(create).collect::<Result<_, _>>()?;
    let marks = memory::filled(b'0', manifest.samples).map_err(|reason| Error::memory("samples", reason))?;
    let path = folder.join(PROGRESS);
    atomic::replace(&path, &marks).map_err(|reason| Error::writing(&path, reason))?;
    Ok((arrays, Journal::open(&path, marks)?))
}

/// Opens the arrays and reads the marks of an interrupted attempt. Samples whose values are gone, because a file was cut
/// or removed, lose their marks and are made again.
fn resume(folder: &Path, manifest: &Manifest, warn: Warn) -> Result<(Vec<Array>, Journal), Error> {
    let path = folder.join(PROGRESS);
    let mut marks = files::read(&path).map_err(|reason| Error::reading(&path, reason))?;
    let mut lost = marks.len() != manifest.samples;
    if lost {
        let expected = counted(manifest.samples, "sample");
        warn(&format!("{}: expected marks of {expected}, found {}", shown(&path), marks.len()));
        marks.resize(manifest.samples, b'0');
    }
    manifest.ragged.as_ref().map_or(Ok(()), |ragged| ragged.write(folder))?;
    let mut whole = Vec::new();
    for field in &manifest.fields {
        let (file, (rows, shape)) = (folder.join(&field.file), manifest.layout(field));
        let found = Array::whole_samples(&file, rows, &shape)?;
        if found < rows {
            lost = true;
            let first = manifest.sample_at(field, found);
            // A row that all samples share is written together with any of them.
            let again = if field.common { &mut marks[..1] } else { &mut marks[first..] };
            warn(&format!("{}: cut short or removed; {} made again", shown(&file), counted(again.len(), "sample")));
            again.fill(b'0');
        }
        whole.push(found);
    }
    if lost {
        // Before the arrays get their length again: a mark must never stand for values that were lost.
        atomic::replace(&path, &marks).map_err(|reason| Error::writing(&path, reason))?;
    }
    let open = |(field, &found): (&FieldEntry, &usize)| {
        let (file, (rows, shape)) = (folder.join(&field.file), manifest.layout(field));
        match found {
            found if found == rows => Array::open(file, rows, &shape, true),
            0 => Array::create(file, rows, &shape),
            _ => Array::lengthen(file, rows, &shape),
        }
    };
    let arrays = manifest.fields.iter().zip(&whole).map(open).collect::<Result<_, _>>()?;
    Ok((arrays, Journal::open(&path, marks)?))
}

impl Journal {
    /// The journal in a file of marks.
    fn open(path: &Path, mut marks: Vec<u8>) -> Result<Journal, Error> {
        let file =
            files::open_with(path, File::options().write(true)).map_err(|reason| Error::writing(path, reason))?;
        marks.iter_mut().for_each(|mark| *mark = if mark.is_ascii_digit() { *mark - b'0' } else { 0 });
        Ok(Journal { file, draws: marks, pending: Vec::new(), synced: Instant::now() })
    }
}

#[cfg(test)]
mod tests;
