//! How an import of mesh files made each field of a data set: `dataset.toml` names the array of each file.
//!
//! ```text
//! reg, cells/reg, stored/distance    an array that the files hold
//! distance, derived/distance         made from the mesh alone
//! distance=wall.stl, sdf=body.stl    made from the mesh and another file
//! scalar=cases.csv:alpha             a column of a table
//! ```
//! Before lamo wrote `stored/`, a record `distance` also meant an array of that name; [`Making::Derived`] is both.

use super::meshes::name_and_unit;
use crate::data::dataset::{FieldEntry, Manifest, OriginEntry};
use crate::data::mesh::is_mesh_name;
use crate::data::mesh::named::{CENTRES, DERIVED, DERIVED_PREFIX, LATTICE, STORED, WHOLE};
use std::collections::BTreeMap;
use std::path::Path;

/// How a field was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Making {
    /// From the array of this name.
    Stored(String),
    /// From the mesh alone: `distance` or `normals`.
    Derived(String),
    /// From the mesh and another file, whose name this is, without the folder.
    WithFile(String),
    /// From a table of numbers, whose column has this unit; `1` where its head states none.
    Scalar(String),
}

/// How the fields of a data set were made; fields that did not come from mesh files are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded(BTreeMap<String, Making>);

impl Recorded {
    /// What a manifest says.
    pub fn of(manifest: &Manifest) -> Recorded {
        let is_mesh = |origin: &OriginEntry| {
            let source = manifest.sources.get(origin.source);
            source.is_some_and(|source| is_mesh_name(Path::new(&source.file))) && origin.channel.is_none()
        };
        let made = |field: &FieldEntry| {
            let first = field.origin.first()?;
            let alike = field.origin.iter().all(|origin| is_mesh(origin) && origin.array == first.array);
            alike.then(|| (field.name.clone(), Making::of(&first.array)))
        };
        Recorded(manifest.fields.iter().filter_map(made).collect())
    }

    /// How a field was made, where it is known.
    pub fn making(&self, field: &str) -> Option<&Making> {
        self.0.get(field)
    }
}

impl Making {
    /// What the name of an array says.
    fn of(array: &str) -> Making {
        let without = |name, prefix| str::strip_prefix(name, prefix).unwrap_or(name);
        let name = without(without(array, LATTICE), CENTRES);
        match name.split_once('=') {
            Some(("distance" | "sdf", file)) => {
                let own = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
                return Making::WithFile(own.unwrap_or_else(|| file.to_owned()));
            }
            Some(("scalar", table)) => {
                let column = table.rsplit_once(':').map_or(table, |(_, column)| column);
                return Making::Scalar(name_and_unit(column).1);
            }
            _ => {}
        }
        let derived = without(name, DERIVED_PREFIX);
        match DERIVED.contains(&derived) {
            true => Making::Derived(derived.to_owned()),
            false => Making::Stored(without(without(without(name, STORED), "cells/"), WHOLE).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_array_tells_how_a_field_was_made() {
        let stored = |name: &str| Making::Stored(name.into());
        for (array, making) in [
            ("reg", stored("reg")),
            ("Distance", stored("Distance")),
            ("stored/distance", stored("distance")),
            ("lattice/centres/stored/distance", stored("distance")),
            ("cells/p", stored("p")),
            ("field/mach", stored("mach")),
            ("distance", Making::Derived("distance".into())),
            ("centres/derived/distance", Making::Derived("distance".into())),
            ("lattice/normals", Making::Derived("normals".into())),
            ("distance=mesh/wall.stl", Making::WithFile("wall.stl".into())),
            ("centres/sdf=body.stl", Making::WithFile("body.stl".into())),
            ("scalar=cases.csv:alpha", Making::Scalar("1".into())),
            ("scalar=cases.csv:alpha [deg]", Making::Scalar("deg".into())),
        ] {
            assert_eq!(Making::of(array), making, "{array}");
        }
    }
}
