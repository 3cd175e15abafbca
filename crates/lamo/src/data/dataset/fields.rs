//! A field of a data set: to which points its values belong, whether they are normalised, which files they come from.

use super::{BLOCK, Dataset, Error, FieldEntry, Role};
use crate::task::{Field, Moments, Normaliser, normaliser_moments};
use serde::{Deserialize, Serialize};

/// What a training run does to a field before a model sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// The values stay as they are.
    #[default]
    None,
    /// (v − μ) / σ per channel, fitted on the training split: see [`Normaliser`].
    Channels,
}

impl Normalise {
    pub(super) fn is_none(&self) -> bool {
        *self == Normalise::None
    }
}

/// A file from which an import read values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceEntry {
    /// Its name, without the folder.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its contents, in hexadecimal.
    pub sha256: String,
}

/// An array from which an import read a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginEntry {
    /// Index of its file among the sources.
    pub source: usize,
    /// Its name in the file; empty where the array has no name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub array: String,
    /// A letter for each of its axes: n samples, t snapshots, x rows, y columns, p points, c channels, 1 an unused axis.
    pub axes: String,
    /// The channel that was read, where it is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<usize>,
}

/// Names and hashes for a sentence.
pub(super) fn listed(sources: &[SourceEntry]) -> String {
    let named = |source: &SourceEntry| format!("{} (SHA-256 {})", source.file, source.sha256);
    if sources.is_empty() { "none".into() } else { sources.iter().map(named).collect::<Vec<_>>().join(", ") }
}

impl FieldEntry {
    /// Rows of the array: one per sample, or one for all samples.
    pub(super) fn rows(&self, samples: usize) -> usize {
        if self.common { 1 } else { samples }
    }
}

impl Dataset {
    /// The fields of a role, in the order of the manifest.
    pub fn fields(&self, role: Role) -> impl Iterator<Item = &FieldEntry> {
        self.manifest().fields.iter().filter(move |field| field.role == role)
    }

    /// The axes of `field` on the grid.
    pub fn on_grid(&self, field: &str) -> Result<Field, Error> {
        let found = self.field(field)?.on(self.manifest().grid);
        found.map_err(|refusal| Error::malformed(&self.folder().join(super::MANIFEST), refusal.to_string()))
    }

    /// The normaliser that the manifest asks for, fitted on the samples `train`, a few of which are in memory at a
    /// time; `None` where the values stay as they are. A field that is not on the grid counts as one channel.
    pub fn normaliser(&self, field: &str, train: &[usize]) -> Result<Option<Normaliser>, crate::Error> {
        let entry = self.field(field)?;
        if entry.normalise == Normalise::None {
            return Ok(None);
        }
        let channels = self.on_grid(field).map_or(1, |field| field.width());
        let count: usize = entry.shape.iter().product();
        let train = if entry.common { &train[..train.len().min(1)] } else { train };
        let mut total = vec![Moments::default(); channels];
        for few in train.chunks((BLOCK / count.max(1)).max(1)) {
            let found = normaliser_moments(&self.gather(field, few)?, channels)?;
            total.iter_mut().zip(found).for_each(|(total, found)| *total = total.and(found));
        }
        Ok(Some(Normaliser::of_moments(&total)?))
    }
}
