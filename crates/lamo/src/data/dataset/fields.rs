//! What a field means to a training run: where its values lie, whether they are normalised, where they came from.

use super::{BLOCK, Dataset, Error, FieldEntry, Role};
use crate::task::{Field, Moments, Normaliser, normaliser_moments};
use serde::{Deserialize, Serialize};

/// What a training run does to a field before a model sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// Nothing.
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

/// A file the values of a set come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceEntry {
    /// Its name, without the folders it was in.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Of its contents, in hexadecimal.
    pub sha256: String,
}

/// An array that a field was taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginEntry {
    /// Which of the sources, counted from 0.
    pub source: usize,
    /// Its name in the file; empty where the file has no names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub array: String,
    /// A letter for each of its axes: n samples, t frames, x rows, y columns, p points, c channels.
    pub axes: String,
    /// The only channel taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<usize>,
}

/// Names and hashes in a sentence.
pub(super) fn listed(sources: &[SourceEntry]) -> String {
    let named = |source: &SourceEntry| format!("{} (SHA-256 {})", source.file, source.sha256);
    if sources.is_empty() { "none".into() } else { sources.iter().map(named).collect::<Vec<_>>().join(", ") }
}

impl FieldEntry {
    /// Rows of the array: one per sample, or one for all.
    pub(super) fn rows(&self, samples: usize) -> usize {
        if self.common { 1 } else { samples }
    }
}

impl Dataset {
    /// The fields of a role, in the order of the manifest.
    pub fn fields(&self, role: Role) -> impl Iterator<Item = &FieldEntry> {
        self.manifest().fields.iter().filter(move |field| field.role == role)
    }

    /// How the values of `field` lie over the grid.
    pub fn on_grid(&self, field: &str) -> Result<Field, Error> {
        let FieldEntry { name, unit, shape, .. } = self.field(field)?;
        let found = Field::on(self.manifest().grid, name, unit, shape);
        found.map_err(|refusal| Error::malformed(&self.folder().join(super::MANIFEST), refusal.to_string()))
    }

    /// The normaliser that the manifest asks for, fitted on the samples listed without loading them all; `None` where it
    /// asks for none. A field that does not lie over the grid is one channel.
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
