//! Compares two manifests: whether they describe the same samples with the same meaning, and the first difference if
//! not.

use super::{FieldEntry, Manifest, OriginEntry};
use lamo_geometry::Grid;

impl Manifest {
    /// The first property in which two data sets differ: its name, the value here and the value in `other`. The version
    /// of lamo does not count.
    pub(super) fn difference(&self, other: &Manifest) -> Option<(String, String, String)> {
        let (here, there) = (self.summary(), other.summary());
        let value = |summary: &[(String, String)], name: &String| {
            let found = summary.iter().find(|(known, _)| known == name);
            found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
        };
        let names = here.iter().chain(&there).map(|(name, _)| name);
        let mut pairs = names.map(|name| (name.clone(), value(&here, name), value(&there, name)));
        pairs.find(|(_, here, there)| here != there)
    }

    /// Every property that two equal data sets share, by name, the most important first.
    fn summary(&self) -> Vec<(String, String)> {
        let split = self.split.split(self.samples).map(|split| split.hash()).unwrap_or_default();
        let names: Vec<_> = self.fields.iter().map(|field| field.name.as_str()).collect();
        let mut summary = vec![
            ("problem".to_owned(), self.problem.clone()),
            ("generator version".into(), self.generator.to_string()),
            ("seed".into(), self.seed.to_string()),
            ("samples".into(), self.samples.to_string()),
            ("split".into(), self.split.to_string()),
            ("split with hash".into(), split), // lists of the same lengths have the same text
            ("source files".into(), super::fields::listed(&self.sources)),
        ];
        let parameters = self.parameters.iter().filter(|(key, _)| !Manifest::is_new_parameter(key));
        summary.extend(parameters.map(|(key, value)| (format!("parameter {key}"), value.to_string())));
        summary.push(("grid".into(), shown(self.grid)));
        let ragged = self.ragged.as_ref().map(|ragged| ("offsets with hash".to_owned(), ragged.sha256.clone()));
        summary.extend(ragged);
        summary.extend(self.triangles.as_ref().map(|_| ("cells".to_owned(), "kept".to_owned())));
        summary.push(("times".into(), format!("{:?}", self.times)));
        summary.push(("fields".into(), names.join(", ")));
        for field in &self.fields {
            summary.extend(self.properties(field).map(|(what, value)| (format!("{what} of `{}`", field.name), value)));
        }
        summary
    }

    fn properties(&self, field: &FieldEntry) -> [(&'static str, String); 6] {
        let FieldEntry { role, unit, shape, axes, normalise, origin, .. } = field;
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
            ("shape", axes.as_ref().map_or(format!("{shape:?}"), |axes| format!("{shape:?} with axes {axes}"))),
            ("unit", unit.clone()),
            ("role", format!("{role:?}").to_lowercase()),
            ("normalisation", format!("{normalise:?}").to_lowercase()),
            ("origin", if unknown { "nothing on record".into() } else { arrays }),
            ("source files", format!("{sources:?}")), // two source files may have the same name
        ]
    }
}

fn shown(grid: Grid) -> String {
    match grid {
        Grid::Line { points } => format!("line of {points}"),
        Grid::Plane { rows, columns } => format!("plane of {rows} x {columns}"),
        Grid::Volume { rows, columns, layers } => format!("volume of {rows} x {columns} x {layers}"),
        Grid::Cloud { points } => format!("cloud of {points}"),
    }
}
