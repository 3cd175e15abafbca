//! Whether two manifests describe the same samples with the same meaning, and if not, what differs first.

use super::{FieldEntry, Manifest, OriginEntry};
use lamo_geometry::Grid;

impl Manifest {
    /// The first thing in which two sets differ: its name, ours and theirs. Who made them does not matter, nor when.
    pub(super) fn difference(&self, other: &Manifest) -> Option<(String, String, String)> {
        let (ours, theirs) = (self.summary(), other.summary());
        let value = |summary: &[(String, String)], name: &String| {
            let found = summary.iter().find(|(known, _)| known == name);
            found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
        };
        let names = ours.iter().chain(&theirs).map(|(name, _)| name);
        let mut pairs = names.map(|name| (name.clone(), value(&ours, name), value(&theirs, name)));
        pairs.find(|(_, ours, theirs)| ours != theirs)
    }

    /// Everything that makes it this set and no other, by name, the most telling first.
    fn summary(&self) -> Vec<(String, String)> {
        let split = self.split.split(self.samples).map(|split| split.hash()).unwrap_or_default();
        let names: Vec<_> = self.fields.iter().map(|field| field.name.as_str()).collect();
        let mut summary = vec![
            ("problem".to_owned(), self.problem.clone()),
            ("generator version".into(), self.generator.to_string()),
            ("seed".into(), self.seed.to_string()),
            ("samples".into(), self.samples.to_string()),
            ("split".into(), self.split.to_string()),
            ("split with hash".into(), split), // lists of the same lengths read the same
            ("source files".into(), super::fields::listed(&self.sources)),
        ];
        summary.extend(self.parameters.iter().map(|(key, value)| (format!("parameter {key}"), value.to_string())));
        summary.push(("grid".into(), shown(self.grid)));
        summary.push(("times".into(), format!("{:?}", self.times)));
        summary.push(("fields".into(), names.join(", ")));
        for field in &self.fields {
            summary.extend(self.properties(field).map(|(what, value)| (format!("{what} of `{}`", field.name), value)));
        }
        summary
    }

    fn properties(&self, field: &FieldEntry) -> [(&'static str, String); 6] {
        let FieldEntry { role, unit, shape, normalise, origin, .. } = field;
        let array = |origin: &OriginEntry| {
            let OriginEntry { source, array, axes, channel } = origin;
            let file = self.sources.get(*source).map_or("?", |source| source.file.as_str());
            let name = if array.is_empty() { String::new() } else { format!(":{array}") };
            let channel = channel.map_or_else(String::new, |channel| format!(", channel {channel}"));
            format!("{file}{name} with axes {axes}{channel}")
        };
        let unknown = !self.sources.is_empty() && origin.is_empty();
        let arrays = origin.iter().map(array).collect::<Vec<_>>().join(" and ");
        let sources: Vec<_> = origin.iter().map(|origin| origin.source).collect();
        [
            ("shape", format!("{shape:?}")),
            ("unit", unit.clone()),
            ("role", format!("{role:?}").to_lowercase()),
            ("normalisation", format!("{normalise:?}").to_lowercase()),
            ("origin", if unknown { "nothing on record".into() } else { arrays }),
            ("source files", format!("{sources:?}")), // two of them may have the same name
        ]
    }
}

fn shown(grid: Grid) -> String {
    match grid {
        Grid::Line { points } => format!("line of {points}"),
        Grid::Plane { rows, columns } => format!("plane of {rows} x {columns}"),
        Grid::Cloud { points } => format!("cloud of {points}"),
    }
}
