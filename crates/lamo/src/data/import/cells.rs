//! Mesh files of an import: their cells, and the other files that arrays of meshes are made with.

use super::own::{ArrayName, OwnField};
use super::sources::Sources;
use super::write::Import;
use crate::data::dataset::partial::Partial;
use crate::data::dataset::{Error, Role, TriangleWriter};
use crate::data::formats;
use crate::data::mesh::{self, boundary, named};
use crate::error::{Kind, Refusal};
use std::path::{Path, PathBuf};

/// Names of the positions of all points of a mesh.
const POINTS: [&str; 2] = ["points", "points-xy"];

/// The mesh file of each sample, or the one of all samples; none where the positions are not those of the points of meshes.
pub(super) fn mesh_files(fields: &[OwnField]) -> Vec<PathBuf> {
    let Some(field) = fields.iter().find(|field| field.role == Role::Position) else { return Vec::new() };
    let file = |arrays: &Vec<ArrayName>| match &arrays[..] {
        [ArrayName { path, variable: Some(name) }] if POINTS.contains(&name.as_str()) && mesh::is_mesh(path) => {
            Some(path.clone())
        }
        _ => None,
    };
    field.arrays.iter().map(file).collect::<Option<_>>().unwrap_or_default()
}

/// The files, beside meshes, that arrays of meshes are made with: surfaces of distances, tables of scalars; each once.
pub(super) fn files_beside(fields: &[OwnField]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for array in fields.iter().flat_map(|field| &field.arrays).flatten() {
        let file = array.variable.as_deref().and_then(named::other_file);
        if let Some(file) = file.filter(|file| found.iter().all(|known| known != file) && mesh::is_mesh(&array.path)) {
            found.push(file.to_owned());
        }
    }
    found
}

/// The triangles of a mesh file, and the number of its cells.
fn triangles(path: &Path) -> Result<(Vec<[u32; 3]>, usize), Error> {
    let found = || -> Result<(Vec<[u32; 3]>, usize), Refusal> {
        let mesh = mesh::read_file(path)?;
        let cells = mesh.shape.cells().map_err(|reason| Refusal::said(reason.to_string()).of(Kind::of_io(&reason)))?;
        Ok((boundary(&cells, false)?.triangles, cells.len()))
    };
    found().map_err(|refusal| formats::Error::Mesh { path: path.to_owned(), refusal: Box::new(refusal) }.into())
}

impl Import {
    /// Writes the triangles of all samples.
    pub(super) fn write_triangles(&self, partial: &Partial, sources: &mut Sources) -> Result<(), Error> {
        if self.meshes.is_empty() {
            return Ok(());
        }
        let mut writer = TriangleWriter::new(partial.folder())?;
        for path in &self.meshes {
            sources.file(path)?; // refuses a file that has changed
            let (triangles, cells) = triangles(path)?;
            writer.add(triangles, cells)?;
        }
        partial.set_triangles(writer.finish()?);
        Ok(())
    }
}
