//! Mesh files as arrays: points, and what is known at points and cells. `crate::data::mesh` reads them.
//!
//! The mesh that was read last stays in memory while its file is open, because several arrays of it are read one after the other. Memory
//! holds one mesh at a time: a mesh leaves it when another file is read.

use super::array::{ElementKind, Found, Layout, Tick, Wanted};
use super::entry::{Entry, Numbers, OpenArray, of_values};
use super::error::Error;
use super::source::Opened;
use crate::data::mesh::{self, named};
use crate::error::Refusal;
use crate::files::memory;
use std::cell::RefCell;
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

/// The times of a list of files.
const TIMES: &str = "times";

pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let slot = Slot::default();
    let mesh = mesh_of(opened, &slot)?;
    let times = mesh::times_of(&opened.path).map_err(|refusal| fails(opened, refusal))?;
    let mut entries: Vec<Entry> = named::listed(&mesh)
        .into_iter()
        .map(|listed| {
            let changes = !times.is_empty() && named::is_stored(&mesh, &listed.name);
            let snapshots = changes.then_some(times.len());
            let shape = snapshots.into_iter().chain(listed.shape).collect();
            let constant = if !changes && listed.name.starts_with(named::WHOLE) { times.len() } else { 0 };
            let numbers = OnMesh { slot: Arc::clone(&slot), snapshots, constant };
            let entry = entry(listed.name, shape, listed.kind, numbers);
            if listed.hidden { entry.hide() } else { entry }
        })
        .collect();
    if !times.is_empty() && entries.iter().all(|entry| entry.name != TIMES) {
        entries.push(entry(TIMES.to_owned(), vec![times.len()], ElementKind::F64, Times(times)));
    }
    Ok(entries)
}

/// An array that needs another file, such as `sdf=body.stl`.
pub(super) fn derive(entries: &[Entry], name: &str) -> Option<Entry> {
    let shape_of = |name: &str| {
        let entry = entries.iter().find(|entry| entry.name == name)?;
        Some(entry.holds.as_ref().ok()?.shape.clone())
    };
    let shape = named::shape_with_file(name, shape_of)?;
    let numbers = OnMesh { slot: Slot::default(), snapshots: None, constant: 0 };
    Some(entry(name.to_owned(), shape, ElementKind::F64, numbers))
}

fn entry(name: String, shape: Vec<usize>, kind: ElementKind, numbers: impl Numbers + 'static) -> Entry {
    let layout = Layout { shape, kind, stored: kind, big_endian: false, column_major: false, pairs: false };
    Entry::new(name, Ok(layout), numbers)
}

/// The times of a list of files, in their order.
struct Times(Vec<f64>);

impl Numbers for Times {
    fn check(&self, _array: &OpenArray) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        of_values(array, &self.0, wanted, tick)
    }

    fn visit(&self, _array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        take(&self.0);
        Ok(())
    }
}

/// An array of a mesh.
struct OnMesh {
    slot: Slot,
    /// How many times a list of files has, where the array is that of all times, one after another.
    snapshots: Option<usize>,
    /// How many times must have the same numbers; 0 where the array is read at the first time alone.
    constant: usize,
}

impl OnMesh {
    /// The array of a mesh, or of the mesh of each time.
    fn of_meshes(&self, array: &OpenArray) -> Result<Vec<f64>, Error> {
        let opened = array.opened;
        let of = |mesh: &mesh::Mesh| {
            named::values(mesh, &opened.path, array.name).map_err(|refusal| {
                let within = format!("array `{}`", array.name.escape_debug());
                fails(opened, if array.name.contains('=') { refusal } else { refusal.within(within) })
            })
        };
        let Some(snapshots) = self.snapshots else { return of(&*mesh_of(opened, &self.slot)?) };
        let count = array.layout.count().unwrap_or(0);
        let wanted = Wanted { order: &[], rows: 0..count, single: false };
        let mut values = memory::reserve(count).map_err(|_| array.too_large(&wanted))?;
        let first = mesh_of(opened, &self.slot)?;
        for number in 0..snapshots {
            let mesh = mesh::read_time(&opened.path, number).map_err(|refusal| fails(opened, refusal))?;
            let found = of(&mesh)?;
            if found.len() * snapshots != count {
                let expected = format!("{} numbers of `{}` at each time", count / snapshots, array.name.escape_debug());
                let refusal = Refusal::new(format!("time number {number}"), expected, found.len().to_string())
                    .advise("a time series has the same points at all times");
                return Err(fails(opened, refusal));
            }
            if mesh.shape != first.shape {
                let refusal = Refusal::new(
                    format!("time number {number}"),
                    "the points and cells of the first time",
                    "points at other places, or in another order, or other cells",
                );
                let advice = "where a mesh moves, store its displacement as an array on the mesh of the first time";
                return Err(fails(opened, refusal.advise(advice)));
            }
            values.extend(found);
        }
        Ok(values)
    }

    /// Refuses an array of the whole file that changes in time: it would be that of the first time.
    fn check_constant(&self, array: &OpenArray, values: &[f64]) -> Result<(), Error> {
        let opened = array.opened;
        for number in 1..self.constant {
            let of_time = |mesh: mesh::Mesh| named::values(&mesh, &opened.path, array.name);
            let found = mesh::read_time(&opened.path, number).and_then(of_time);
            let found = found.map_err(|refusal| fails(opened, refusal))?;
            if found != values {
                let expected = format!("`{}` as at the first time, {values:?}", array.name.escape_debug());
                let refusal = Refusal::new(format!("time number {number}"), expected, format!("{found:?}"));
                let advice = "a number of the whole file is one for all times: store it as an array on the points";
                return Err(fails(opened, refusal.advise(advice)));
            }
        }
        Ok(())
    }

    fn values(&self, array: &OpenArray) -> Result<Vec<f64>, Error> {
        let opened = array.opened;
        let values = self.of_meshes(array)?;
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
        self.check_constant(array, &values)?;
        of_values(array, &values, wanted, tick)
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        self.values(array)?.chunks(1 << 13).for_each(take);
        Ok(())
    }
}
