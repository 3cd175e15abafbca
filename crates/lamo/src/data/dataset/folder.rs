//! An open data set. Opening checks the sizes; values are read when they are needed; `verify` compares the hashes.

use super::npy::Array;
use super::{Error, FieldEntry, MANIFEST, Manifest, Split, file_hash};
use crate::error::{counted, shown};
use crate::files::{irregular, memory};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A data set on disk. It is complete, and its arrays have the sizes of the manifest.
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
    manifest: Manifest,
    arrays: Vec<Array>,
}

impl Dataset {
    /// Reads the manifest and the headers of all arrays, and compares their sizes.
    pub fn open(folder: &Path) -> Result<Dataset, Error> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Err(Error::NotADataset { path: folder.to_owned(), found: what_is_at(folder) });
        }
        let mut manifest = Manifest::read(&path, false)?;
        manifest.read_offsets(folder)?;
        manifest.read_triangles(folder)?;
        let open = |field: &FieldEntry| {
            let (rows, shape) = manifest.layout(field);
            Array::open(folder.join(&field.file), rows, &shape, false)
        };
        let arrays = manifest.fields.iter().map(open).collect::<Result<_, _>>()?;
        let split = manifest.split.split(manifest.samples);
        let split = split.map_err(|error| match error {
            Error::Memory { .. } => error,
            error => Error::malformed(&path, error.to_string()),
        });
        let hash = split?.hash();
        if !manifest.split_sha256.is_empty() && !manifest.split_sha256.eq_ignore_ascii_case(&hash) {
            let reason = format!("expected a split with SHA-256 {}, found {hash}", manifest.split_sha256);
            return Err(Error::malformed(&path, reason));
        }
        Ok(Dataset { folder: folder.to_owned(), manifest, arrays })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The contents of `dataset.toml`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.manifest.samples
    }

    /// The split of the manifest, without windows at rest.
    pub fn split(&self) -> Result<Split, Error> {
        Ok(self.manifest.split.split(self.samples())?.without(&self.manifest.at_rest))
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Result<&FieldEntry, Error> {
        Ok(&self.manifest.fields[self.index(name)?])
    }

    /// Whether the values come from files and not from a solver.
    pub fn is_imported(&self) -> bool {
        !self.manifest.sources.is_empty()
    }

    fn index(&self, name: &str) -> Result<usize, Error> {
        self.manifest.fields.iter().position(|field| field.name == name).ok_or_else(|| {
            let names: Vec<_> = self.manifest.fields.iter().map(|field| field.name.as_str()).collect();
            Error::UnknownField { path: self.folder.clone(), expected: names.join(", "), found: name.into() }
        })
    }

    fn within(&self, sample: usize) -> Result<(), Error> {
        let expected = self.samples();
        if sample < expected {
            return Ok(());
        }
        Err(Error::UnknownSample { path: self.folder.clone(), expected, found: sample })
    }

    /// `[samples, ...shape]` the values of `field` of consecutive samples; the values of a common field are repeated.
    pub fn read(&self, field: &str, samples: Range<usize>) -> Result<Vec<f32>, Error> {
        let index = self.index(field)?;
        if samples.is_empty() {
            return Ok(Vec::new());
        }
        self.within(samples.end - 1)?;
        if self.manifest.fields[index].common {
            return self.gather(field, &samples.collect::<Vec<_>>());
        }
        if self.manifest.is_ragged_field(&self.manifest.fields[index]) {
            return self.gather(field, &samples.collect::<Vec<_>>());
        }
        let array = &self.arrays[index];
        let mut values = self.room(array, samples.len())?;
        array.read(samples.start, samples.len(), &mut values)?;
        Ok(values)
    }

    /// An empty vector with room for samples of an array.
    fn room(&self, array: &Array, samples: usize) -> Result<Vec<f32>, Error> {
        let room = memory::reserve(samples.saturating_mul(array.count()));
        room.map_err(|reason| {
            Error::memory(format!("{} of {}", counted(samples, "sample"), shown(&array.path)), reason)
        })
    }

    /// `[samples, ...shape]` the values of `field` of the samples listed, in the order of the list; each with its own points
    /// where the samples are ragged.
    pub fn gather(&self, field: &str, samples: &[usize]) -> Result<Vec<f32>, Error> {
        let index = self.index(field)?;
        samples.iter().try_for_each(|&sample| self.within(sample))?;
        let (array, common) = (&self.arrays[index], self.manifest.fields[index].common);
        if self.manifest.is_ragged_field(&self.manifest.fields[index]) {
            let points = samples.iter().map(|&sample| self.points_of(sample)).sum();
            let mut values = self.room(array, points)?;
            samples.iter().try_for_each(|&sample| self.read_ragged(array, sample, &mut values))?;
            return Ok(values);
        }
        let mut values = self.room(array, samples.len())?;
        for &sample in samples {
            array.read(if common { 0 } else { sample }, 1, &mut values)?;
        }
        Ok(values)
    }

    /// Reads every byte of every array and compares its hash with the manifest.
    pub fn verify(&self) -> Result<(), Error> {
        self.verify_offsets()?;
        self.verify_triangles()?;
        for (field, array) in self.manifest.fields.iter().zip(&self.arrays) {
            let found = file_hash(&array.path, &mut |_| {})?;
            if !found.eq_ignore_ascii_case(&field.sha256) {
                return Err(Error::Hash { path: array.path.clone(), expected: field.sha256.clone(), found });
            }
        }
        Ok(())
    }
}

/// What is at a path instead of a data set.
fn what_is_at(path: &Path) -> String {
    let partial = super::partial::beside(path).filter(|partial| partial.is_dir());
    match (std::fs::metadata(path), partial) {
        (Err(_), Some(partial)) => {
            format!("an unfinished data set in {}, repeat the command that began it", partial.display())
        }
        (Err(reason), None) if reason.kind() != std::io::ErrorKind::NotFound => reason.to_string(),
        (Err(_), None) => "nothing".into(),
        (Ok(data), _) if data.is_dir() => "a folder without it".into(),
        (Ok(data), _) => irregular(&data).unwrap_or("a file").into(),
    }
}
