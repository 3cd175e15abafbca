//! Fuzzing: whatever bytes a reader meets, it answers with arrays that are what they say or with one sentence.
//!
//! The seeds are in `tests/arrays`, a folder per reader, and in `tests/mesh/files`; a run changes them, a little or a lot, and reads the result.
//! `LAMO_FUZZ_SECONDS=600 cargo test -p lamo --test claims --release fuzz` runs for ten minutes per reader, with
//! changes that no earlier second has tried; without it the run is short and always the same.

#![allow(clippy::print_stdout)] // a long run says how far it came

use crate::bombs::{Bomb, bombs};
use crate::support::Folder;
use lamo::data::dataset::Dataset;
use lamo::data::{formats, mesh};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Changed files per reader in a short run.
const ROUNDS: usize = 1500;

/// Files larger than this are no seeds: most changes would hit their numbers, which are all alike to a reader.
const LARGEST: u64 = 8 << 10;

/// The files of a folder whose names end so.
fn corpus(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    seeds(&format!("arrays/{folder}"), ending)
}

/// A folder beside the claims.
fn tests(folder: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests").join(folder)
}

fn seeds(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(tests(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.metadata().unwrap().len() <= LARGEST && path.to_str().unwrap().ends_with(ending));
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Numbers that headers stumble over.
const EXTREMES: [u64; 8] = [0, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1 << 60, i64::MAX as u64, u64::MAX];

/// One change: of a bit, a byte, a number, a length, a piece.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        bytes.extend(&seeds[random.random_range(0..seeds.len())]);
    }
    let at = random.random_range(0..bytes.len());
    let end = (at + random.random_range(1..64)).min(bytes.len());
    match random.random_range(0..10) {
        0 => bytes[at] ^= 1 << random.random_range(0..8),
        1 => bytes[at] = random.random(),
        2 | 3 => {
            let number = EXTREMES[random.random_range(0..EXTREMES.len())];
            let number = if random.random() { number.to_le_bytes() } else { number.to_be_bytes() };
            let width = [1, 2, 4, 8][random.random_range(0..4)];
            bytes[at..].iter_mut().zip(&number[..width]).for_each(|(byte, &new)| *byte = new);
        }
        4 => drop(bytes.drain(at..end)),
        5 => bytes.truncate(at),
        6 => {
            let piece = bytes[at..end].to_vec();
            let place = random.random_range(0..=bytes.len());
            bytes.splice(place..place, piece);
        }
        7 => {
            let other = &seeds[random.random_range(0..seeds.len())];
            let from = random.random_range(0..other.len());
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        8 => {
            // a number in a text
            let digits = bytes.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).map(|(place, _)| place);
            let digits: Vec<_> = digits.collect();
            if !digits.is_empty() {
                let place = digits[random.random_range(0..digits.len())];
                let number = EXTREMES[random.random_range(0..EXTREMES.len())].to_string();
                bytes.splice(place..place + 1, number.into_bytes());
            }
        }
        _ => {
            let piece: Vec<u8> = (0..random.random_range(1..9)).map(|_| random.random()).collect();
            bytes.splice(at..at, piece);
        }
    }
}

/// Changes the seeds and lets `read` meet them: a few rounds, or as many seconds as the environment says.
fn fuzz(target: &str, seeds: &[Vec<u8>], read: impl Fn(&Path, &[u8])) {
    let seconds = std::env::var("LAMO_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let limit = seconds.map(Duration::from_secs);
    let mut random = ChaCha8Rng::seed_from_u64(seconds.unwrap_or(0));
    let (folder, start) = (Folder::in_memory("fuzz"), Instant::now());
    let mut rounds = 0;
    while limit.map_or(rounds < ROUNDS, |limit| start.elapsed() < limit) {
        let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
        for _ in 0..random.random_range(1..5) {
            change(&mut bytes, seeds, &mut random);
        }
        let survived = catch_unwind(AssertUnwindSafe(|| read(folder.path(), &bytes)));
        if survived.is_err() {
            let kept = std::env::temp_dir().join(format!("lamo-fuzz-{target}"));
            fs::write(&kept, &bytes).unwrap();
            panic!("{target} fails in round {rounds} on {}; add the file to tests/arrays", kept.display());
        }
        rounds += 1;
    }
    if limit.is_some() {
        println!("{target}: {rounds} inputs");
    }
}

/// Every error is one sentence.
fn sentence(error: &dyn std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.lines().count() == 1, "not one sentence: {text:?}");
}

/// Lists and reads everything in every way there is.
fn read_everything(path: &Path) {
    let listed = match formats::list(path) {
        Ok(listed) => listed,
        Err(error) => return sentence(&error),
    };
    for info in listed.iter().take(8) {
        let (name, count) = (Some(info.name.as_str()), info.shape.iter().product::<usize>());
        let rows = info.shape.first().copied().unwrap_or(1);
        let back: Vec<_> = (0..info.shape.len()).rev().collect();
        let last = back.first().map_or(1, |&axis| info.shape[axis]);
        let mut seen = 0;
        match formats::read(path, name) {
            Ok(array) => assert_eq!((array.shape, array.values.len()), (info.shape.clone(), count)),
            Err(error) => sentence(&error),
        }
        match formats::read_rows(path, name, rows / 2..rows) {
            Ok(array) => assert_eq!(array.values.len(), array.shape.iter().product::<usize>()),
            Err(error) => sentence(&error),
        }
        match formats::read_ordered(path, name, &back, 0..last.min(1), &mut |_| {}) {
            Ok(array) => assert_eq!(array.values.len(), array.shape.iter().product::<usize>()),
            Err(error) => sentence(&error),
        }
        match formats::visit(path, name, |values| seen += values.len()) {
            Ok(()) => assert_eq!(seen, count),
            Err(error) => sentence(&error),
        }
    }
}

fn fuzz_reader(folder: &str) {
    fuzz(folder, &corpus(folder, ""), |scratch, bytes| {
        let path = scratch.join("file");
        fs::write(&path, bytes).unwrap();
        read_everything(&path);
    });
}

#[test]
fn npy_files_of_any_bytes_are_read_or_refused() {
    fuzz_reader("npy");
}

#[test]
fn npz_files_of_any_bytes_are_read_or_refused() {
    fuzz_reader("npz");
}

#[test]
fn mat5_files_of_any_bytes_are_read_or_refused() {
    fuzz_reader("mat5");
}

#[test]
fn mat73_files_of_any_bytes_are_read_or_refused() {
    fuzz_reader("mat73");
}

#[test]
fn hdf5_files_of_any_bytes_are_read_or_refused() {
    fuzz_reader("hdf5");
}

#[test]
fn safetensors_files_of_any_bytes_are_read_or_refused() {
    fuzz_reader("safetensors");
}

#[test]
fn files_of_pytorch_of_any_bytes_are_read_or_refused() {
    fuzz_reader("pytorch");
}

#[test]
fn tables_of_any_bytes_are_read_or_refused() {
    fuzz_reader("csv");
}

/// Lists of files with their times.
const LISTS: [&str; 2] = [
    "<VTKFile type=\"Collection\"><Collection><DataSet timestep=\"0\" file=\"cells_ascii.vtu\"/>\
     <DataSet timestep=\"1.5\" file=\"surface_ascii.vtp\"/></Collection></VTKFile>",
    "{\"file-series-version\": \"1.0\", \"files\": [{\"name\": \"cells_ascii.vtu\", \"time\": 0}, {\"name\": \"surface_ascii.vtp\", \"time\": 1}]}",
];

/// Changes the small mesh files with some endings.
fn fuzz_meshes(target: &str, endings: &[&str]) {
    let mut seeds: Vec<_> = endings.iter().flat_map(|ending| seeds("mesh/files", ending)).collect();
    if target == "vtk-parts" {
        seeds.extend(LISTS.map(|list| list.as_bytes().to_vec()));
    }
    fuzz(target, &seeds, |scratch, bytes| {
        let path = scratch.join("file");
        fs::write(&path, bytes).unwrap();
        for part in ["cells_ascii.vtu", "surface_ascii.vtp"].iter().filter(|_| target == "vtk-parts") {
            if !scratch.join(part).exists() {
                fs::copy(tests("mesh/files").join(part), scratch.join(part)).unwrap();
            }
        }
        if target == "vtk-parts" {
            read_everything(&path);
        }
        match mesh::read(&path) {
            Ok(mesh) => {
                mesh.check().unwrap();
                if mesh.point_count().max(mesh.cell_count()) < 1 << 16 {
                    assert_eq!(mesh.shape.positions().unwrap().len(), 3 * mesh.point_count());
                    let cells = mesh.shape.cells().unwrap();
                    mesh::boundary(&cells, true).unwrap();
                    mesh.cell_data.iter().for_each(|array| drop(mesh::to_points(array, &cells, mesh.point_count())));
                    mesh::write(&scratch.join("copy.vtu"), &mesh, &mesh::Options::default()).unwrap();
                    assert_eq!(mesh::read(&scratch.join("copy.vtu")).unwrap().cell_count(), mesh.cell_count());
                }
            }
            Err(error) => sentence(&error),
        }
    });
}

#[test]
fn xml_meshes_of_any_bytes_are_read_or_refused() {
    fuzz_meshes("vtk-xml", &[".vtu", ".vtp", ".vti", ".vtr", ".vts"]);
}

#[test]
fn files_of_any_bytes_that_name_other_files_are_read_or_refused() {
    fuzz_meshes("vtk-parts", &[".vtm"]);
}

#[test]
fn older_vtk_meshes_of_any_bytes_are_read_or_refused() {
    fuzz_meshes("vtk", &[".vtk"]);
}

#[test]
fn gmsh_meshes_of_any_bytes_are_read_or_refused() {
    fuzz_meshes("gmsh", &[".msh"]);
}

#[test]
fn surfaces_of_any_bytes_are_read_or_refused() {
    fuzz_meshes("surface", &[".stl", ".obj"]);
}

/// Opens a data set and reads what it offers.
fn read_dataset(folder: &Path) {
    let dataset = match Dataset::open(folder) {
        Ok(dataset) => dataset,
        Err(error) => return sentence(&error),
    };
    let split = dataset.split().unwrap();
    if let Err(error) = dataset.verify() {
        sentence(&error);
    }
    for field in &dataset.manifest().fields {
        let count: usize = field.shape.iter().product();
        assert_eq!(dataset.gather(&field.name, &split.test).unwrap().len(), split.test.len() * count);
        dataset.statistics(&field.name).unwrap();
        if let Err(error) = dataset.on_grid(&field.name) {
            sentence(&error);
        }
        if let Err(error) = dataset.normaliser(&field.name, &split.train) {
            sentence(&error);
        }
    }
}

#[test]
fn manifests_of_any_bytes_are_read_or_refused() {
    let (manifests, array) = (corpus("dataset", ".toml"), corpus("dataset", ".npy").remove(0));
    fuzz("manifest", &manifests, |scratch, bytes| {
        fs::write(scratch.join("u.npy"), &array).unwrap();
        fs::write(scratch.join("dataset.toml"), bytes).unwrap();
        read_dataset(scratch);
    });
}

#[test]
fn arrays_of_a_data_set_of_any_bytes_are_read_or_refused() {
    let (manifests, arrays) = (corpus("dataset", ".toml"), corpus("dataset", ".npy"));
    fuzz("array", &arrays, |scratch, bytes| {
        fs::write(scratch.join("u.npy"), bytes).unwrap();
        fs::write(scratch.join("dataset.toml"), &manifests[bytes.len() % manifests.len()]).unwrap();
        read_dataset(scratch);
    });
}

#[test]
fn the_seeds_themselves_are_read() {
    for reader in ["npy", "npz", "mat5", "mat73", "hdf5", "safetensors", "pytorch"] {
        let folder = Folder::in_memory("seeds");
        let mut read = 0; // all seeds except those without real numbers and those of old bugs
        for bytes in corpus(reader, "") {
            fs::write(folder.at("file"), bytes).unwrap();
            read += usize::from(formats::list(folder.at("file")).is_ok_and(|arrays| !arrays.is_empty()));
            read_everything(&folder.at("file"));
        }
        assert!(read > 0, "{reader}");
    }
    let (folder, array) = (Folder::in_memory("seeds"), corpus("dataset", ".npy").remove(0));
    fs::write(folder.at("u.npy"), array).unwrap();
    for manifest in corpus("dataset", ".toml") {
        fs::write(folder.at("dataset.toml"), manifest).unwrap();
        Dataset::open(folder.path()).unwrap_or_else(|error| panic!("{error}")).verify().unwrap();
    }
}

#[test]
fn crafted_files_are_refused_in_one_sentence_that_names_them() {
    let folder = Folder::in_memory("bombs");
    for Bomb { name, array, bytes } in bombs() {
        let path = folder.at(name);
        fs::write(&path, bytes).unwrap();
        read_everything(&path);
        let told = formats::visit(&path, array, |_| {}).unwrap_err().to_string();
        assert!(told.contains(name) && told.lines().count() == 1, "{name}: {told}");
    }
}

#[test]
fn an_empty_array_may_have_extents_that_no_number_can_count() {
    let folder = Folder::in_memory("empty");
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0, 4611686018427387904), }\n";
    let header = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    fs::write(folder.at("file"), header).unwrap();
    assert!(formats::read(folder.at("file"), None).unwrap().values.is_empty());
    formats::visit(folder.at("file"), None, |_| panic!("there are no numbers")).unwrap();
}

#[test]
fn an_open_file_does_not_read_its_directory_again() {
    let folder = Folder::in_memory("directory");
    let path = folder.at("many.npz");
    let arrays: Vec<_> = (0..300)
        .map(|number| formats::Named { name: format!("a{number}"), shape: vec![2], values: vec![number as f32; 2] })
        .collect();
    formats::write(&path, &arrays).unwrap();
    let file = formats::ArrayFile::open(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    let directory = whole.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let mut gone = whole.clone();
    gone[directory..].fill(0);
    fs::write(&path, gone).unwrap();
    for array in &arrays {
        assert_eq!(file.read(Some(&array.name)).unwrap().values.into_f32(), array.values);
    }
    assert!(formats::ArrayFile::open(&path).is_err(), "the directory is gone");
}
