//! Mesh files as arrays: points, and what is known at points and cells. `crate::data::mesh` reads them.
//!
//! The mesh that was read last stays in memory while its file is open, because several arrays of it are read one after the other. Memory
//! holds one mesh at a time: a mesh leaves it when another file is read.

use super::array::{ElementKind, Found, Gathering, Layout, Tick, Wanted};
use super::entry::{Entry, Numbers, OpenArray};
use super::error::Error;
use super::source::Opened;
use crate::data::mesh::{self, named};
use crate::error::Refusal;
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Where the mesh of an open file stays.
type Slot = Arc<Mutex<Option<Arc<mesh::Mesh>>>>;

thread_local! {
    /// The slot that has a mesh.
    static FILLED: RefCell<Weak<Mutex<Option<Arc<mesh::Mesh>>>>> = const { RefCell::new(Weak::new()) };
}

fn kept(slot: &Slot) -> std::sync::MutexGuard<'_, Option<Arc<mesh::Mesh>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mesh of a file, from its slot or read again.
fn mesh_of(opened: &Opened, slot: &Slot) -> Result<Arc<mesh::Mesh>, Error> {
    if let Some(mesh) = &*kept(slot) {
        return Ok(Arc::clone(mesh));
    }
    FILLED.with_borrow_mut(|filled| {
        if let Some(other) = filled.upgrade() {
            *kept(&other) = None;
        }
        *filled = Arc::downgrade(slot);
    });
    let mesh = Arc::new(mesh::read_file(&opened.path).map_err(|refusal| fails(opened, refusal))?);
    *kept(slot) = Some(Arc::clone(&mesh));
    Ok(mesh)
}

pub(super) fn sniff(start: &[u8], size: u64) -> bool {
    mesh::recognises(start, size)
}

fn fails(opened: &Opened, refusal: Refusal) -> Error {
    Error::Mesh { path: opened.path.clone(), refusal: Box::new(refusal) }
}

pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let slot = Slot::default();
    let mesh = mesh_of(opened, &slot)?;
    let entries = named::listed(&mesh).into_iter().map(|listed| {
        let entry = entry(listed.name, listed.shape, listed.kind, &slot);
        if listed.hidden { entry.hide() } else { entry }
    });
    Ok(entries.collect())
}

/// An array that needs another file, such as `sdf=body.stl`.
pub(super) fn derive(entries: &[Entry], name: &str) -> Option<Entry> {
    let shape_of = |name: &str| {
        let entry = entries.iter().find(|entry| entry.name == name)?;
        Some(entry.holds.as_ref().ok()?.shape.clone())
    };
    let shape = named::shape_with_file(name, shape_of)?;
    Some(entry(name.to_owned(), shape, ElementKind::F64, &Slot::default()))
}

fn entry(name: String, shape: Vec<usize>, kind: ElementKind, slot: &Slot) -> Entry {
    let layout = Layout { shape, kind, stored: kind, big_endian: false, column_major: false, pairs: false };
    Entry::new(name, Ok(layout), OnMesh { slot: Arc::clone(slot) })
}

/// An array of a mesh.
struct OnMesh {
    slot: Slot,
}

impl OnMesh {
    fn values(&self, array: &OpenArray) -> Result<Vec<f64>, Error> {
        let opened = array.opened;
        let mesh = mesh_of(opened, &self.slot)?;
        let values = named::values(&mesh, &opened.path, array.name);
        let values = values.map_err(|refusal| {
            let within =
                if array.name.contains('=') { String::new() } else { format!("array `{}`", array.name.escape_debug()) };
            fails(opened, if within.is_empty() { refusal } else { refusal.within(within) })
        })?;
        if Some(values.len()) != array.layout.count() {
            return Err(opened.damaged(format!("{:?} numbers", array.layout.count()), values.len().to_string()));
        }
        Ok(values)
    }
}

impl Numbers for OnMesh {
    /// The shape is that of a mesh that was read.
    fn check(&self, _array: &OpenArray) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        let values = self.values(array)?;
        let gathering = Gathering { layout: array.layout, wanted, tick };
        let (shape, axis) = (&array.layout.shape, wanted.order.first().copied());
        let (extent, after) = match axis {
            Some(axis) => (shape[axis], shape[axis + 1..].iter().product::<usize>()),
            None => (1, 1),
        };
        let rows = if axis.is_some() { wanted.rows.clone() } else { 0..1 };
        let each = |take: &mut dyn FnMut(&[f64])| -> io::Result<()> {
            values.chunks((extent * after).max(1)).for_each(|block| take(&block[rows.start * after..rows.end * after]));
            Ok(())
        };
        let found = match (array.layout.kind.is_single(), wanted.single) {
            (true, _) => gathering.run::<f32, io::Error>(|take| {
                let mut narrow = Vec::new();
                each(&mut |block| {
                    narrow.clear();
                    narrow.extend(block.iter().map(|&value| value as f32));
                    take(&narrow);
                })
            }),
            (false, true) => gathering.run_narrow(each),
            (false, false) => gathering.run::<f64, _>(each),
        };
        found.map_err(|_| array.too_large(wanted))
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        self.values(array)?.chunks(1 << 13).for_each(take);
        Ok(())
    }
}
