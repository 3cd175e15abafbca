//! Mesh files of an import: their cells, and the other files that arrays of meshes are made with.

use super::own::{ArrayName, OwnField};
use super::sources::Sources;
use super::write::Import;
use crate::data::dataset::partial::Partial;
use crate::data::dataset::{Corners, Error, Role, TriangleWriter, Triangles};
use crate::data::formats;
use crate::data::mesh::{self, Boundary, boundary, named};
use crate::error::{Kind, Refusal};
use crate::files::memory;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Names of the positions of all points of a mesh, and of the centres of all cells; how many coordinates they have.
const PLACES: [(&str, usize, bool); 4] =
    [("points", 3, false), ("points-xy", 2, false), ("centres/points", 3, true), ("centres/points-xy", 2, true)];

/// Mesh files whose points, or cells, are the points of the samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Meshes {
    /// The file of each sample, or the one of all samples.
    files: Vec<PathBuf>,
    /// Coordinates of a point.
    space: usize,
    /// Whether the points of the samples are the centres of cells.
    at_centres: bool,
}

impl Meshes {
    /// Those of an import; none where the positions are not those of all points or cells of meshes.
    pub(super) fn of(fields: &[OwnField]) -> Option<Meshes> {
        let field = fields.iter().find(|field| field.role == Role::Position)?;
        let mut meshes = Meshes::default();
        for arrays in &field.arrays {
            let [ArrayName { path, variable: Some(name) }] = &arrays[..] else { return None };
            let (_, space, at_centres) = PLACES.into_iter().find(|(known, ..)| known == name)?;
            mesh::is_mesh(path).then_some(())?;
            (meshes.space, meshes.at_centres) = (space, at_centres);
            meshes.files.push(path.clone());
        }
        Some(meshes)
    }

    /// Those of the windows of time series: each file for so many samples. `None` where the files are not those of the series.
    pub(super) fn repeated(self, counts: &[usize]) -> Option<Meshes> {
        let fits = self.files.len() == counts.len();
        let repeat = |(file, &count): (&PathBuf, &usize)| std::iter::repeat_n(file.clone(), count);
        let files = self.files.iter().zip(counts).flat_map(repeat).collect();
        fits.then_some(Meshes { files, ..self })
    }

    /// The triangles of the data set, before they are written.
    pub(super) fn unwritten(&self) -> Triangles {
        Triangles::unwritten(self.at_centres.then(|| Corners::unwritten(self.space)))
    }

    fn triangles(&self, path: &Path) -> Result<Drawn, Error> {
        let short = |reason: std::io::Error| Refusal::said(reason.to_string()).of(Kind::of_io(&reason));
        let found = || -> Result<_, Refusal> {
            let mesh = mesh::read_file(path)?;
            let cells = mesh.shape.cells().map_err(short)?;
            let Boundary { triangles, owners, .. } = boundary(&cells, false)?;
            if !self.at_centres {
                return Ok((triangles, Vec::new(), cells.len()));
            }
            let positions = mesh.shape.positions().map_err(short)?;
            let mut corners = memory::reserve(9 * triangles.len()).map_err(short)?;
            for &point in triangles.as_flattened() {
                corners.extend(positions[3 * point as usize..][..self.space].iter().map(|&place| place as f32));
            }
            Ok((owners.into_iter().map(|cell| [cell; 3]).collect(), corners, cells.len()))
        };
        found().map_err(|refusal| formats::Error::Mesh { path: path.to_owned(), refusal: Box::new(refusal) }.into())
    }
}

/// The triangles of a file by the points of its sample, the positions of their corners where these are no points, and the number of
/// the cells.
type Drawn = (Vec<[u32; 3]>, Vec<f32>, usize);

/// The files, beside meshes, that arrays of meshes are made with: surfaces of distances, tables of scalars, and files that mesh files
/// name; each once.
pub(super) fn files_beside(fields: &[OwnField]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut known = HashSet::new();
    for array in fields.iter().flat_map(|field| &field.arrays).flatten() {
        let file = array.variable.as_deref().and_then(named::other_file);
        if let Some(file) = file.filter(|file| found.iter().all(|known| known != file) && mesh::is_mesh(&array.path)) {
            found.push(file.to_owned());
        }
        for part in if known.insert(&array.path) { mesh::parts(&array.path) } else { Vec::new() } {
            if found.iter().all(|known| *known != part) {
                found.push(part);
            }
        }
    }
    found
}

impl Import {
    /// Writes the triangles of all samples.
    pub(super) fn write_triangles(&self, partial: &Partial, sources: &mut Sources) -> Result<(), Error> {
        let Some(meshes) = &self.meshes else { return Ok(()) };
        let mut writer = TriangleWriter::new(partial.folder(), meshes.at_centres.then_some(meshes.space))?;
        let mut last: Option<(&PathBuf, Drawn)> = None; // windows of one time series come one after another
        for path in &meshes.files {
            let (triangles, corners, cells) = match last.filter(|(other, _)| *other == path) {
                Some((_, drawn)) => drawn,
                None => {
                    sources.file(path)?; // refuses a file that has changed
                    meshes.triangles(path)?
                }
            };
            writer.add(triangles.clone(), corners.clone(), cells)?;
            last = Some((path, (triangles, corners, cells)));
        }
        partial.set_triangles(writer.finish()?);
        Ok(())
    }
}
