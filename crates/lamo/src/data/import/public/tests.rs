//! Every row of the catalogue, with fewer points: files as the public ones are laid out become the data set they should.

use super::super::catalogue::{self, CATALOGUE};
use super::*;
use crate::data::Recipe;
use crate::data::dataset::{Dataset, Normalise, Outcome, Role};
use crate::data::import::Transfer;
use crate::files::scratch::Folder;
use flate2::{Compression, write::ZlibEncoder};
use lamo_geometry::Grid;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;

fn leak<T>(items: impl IntoIterator<Item = T>) -> &'static [T] {
    Box::leak(items.into_iter().collect::<Box<[T]>>())
}

/// Fewer points along an axis; as many channels.
fn fewer(letter: char, extent: usize) -> usize {
    match (letter, extent) {
        ('c', _) | (_, 0) => extent,
        (_, 421) => 11,
        (_, 20) => 3,
        (_, 31 | 51) => 4,
        (_, 64 | 101 | 129) => 5,
        _ => 7,
    }
}

const SAMPLES: usize = 12;

/// The row with 12 samples: 6 to train on, 3 to test on.
fn tiny(row: &'static Row) -> Row {
    let kept = |kept| match kept {
        Selection::From(0, 200) => Selection::From(0, 3),
        Selection::From(0, _) => Selection::From(0, 6),
        Selection::From(..) => Selection::From(6, 3),
        Selection::Last(_) => Selection::Last(3),
    };
    let part = |part: &PartRow| PartRow {
        files: part.files,
        samples: if part.train.is_some() { 6 } else { 3 },
        train: part.train.map(kept),
        test: part.test.map(kept),
    };
    let piece = |piece: &PieceRow| PieceRow {
        shape: leak(piece.axes.chars().zip(piece.shape).map(|(letter, &extent)| fewer(letter, extent))),
        ..*piece
    };
    let field = |field: &FieldRow| FieldRow { pieces: leak(field.pieces.iter().map(piece)), ..*field };
    Row {
        grid: match row.grid {
            Grid::Plane { rows, columns } => Grid::Plane { rows: fewer('x', rows), columns: fewer('y', columns) },
            Grid::Cloud { points } => Grid::Cloud { points: fewer('p', points) },
            Grid::Line { .. } | Grid::Volume { .. } => panic!("benchmarks lie on planes and clouds"),
        },
        times: match row.times {
            Times::None => Times::None,
            Times::Even(_) => Times::Even(3),
            Times::Variable(name, _) => Times::Variable(name, 3),
        },
        parts: leak(row.parts.iter().map(part)),
        fields: leak(row.fields.iter().map(field)),
        ..*row
    }
}

/// A number that tells where it stands: file, variable, and the index along each axis by letter.
fn value(file: usize, variable: Option<&str>, index: &BTreeMap<char, usize>) -> f64 {
    let weight = |letter| match letter {
        'n' => 1.0,
        't' => 16.0,
        'x' => 64.0,
        'y' => 1024.0,
        'p' => 16384.0,
        _ => 131072.0,
    };
    let name = variable.map_or(0.0, |name| f64::from(name.as_bytes()[0]) / 128.0);
    index.iter().map(|(&letter, &place)| weight(letter) * place as f64).sum::<f64>() + file as f64 / 4.0 + name / 4.0
}

/// All values of an array in the order of a file, the first axis fastest or the last.
fn values(shape: &[usize], column_major: bool, mut value: impl FnMut(&[usize]) -> f64) -> Vec<u8> {
    let order: Vec<usize> = if column_major { (0..shape.len()).rev().collect() } else { (0..shape.len()).collect() };
    let mut index = vec![0; shape.len()];
    let mut bytes = Vec::new();
    for place in 0..shape.iter().product() {
        let mut rest: usize = place;
        for &axis in order.iter().rev() {
            (index[axis], rest) = (rest % shape[axis], rest / shape[axis]);
        }
        bytes.extend(value(&index).to_le_bytes());
    }
    bytes
}

/// NumPy, both orders.
fn npy(shape: &[usize], fortran: bool, value: impl FnMut(&[usize]) -> f64) -> Vec<u8> {
    let axes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': ({},), }}\n", axes.join(", "));
    let head = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    [head, values(shape, fortran, value)].concat()
}

/// One variable of a MAT v5 file, packed or not.
fn variable(name: &str, shape: &[usize], packed: bool, value: impl FnMut(&[usize]) -> f64) -> Vec<u8> {
    let part = |kind: u32, mut bytes: Vec<u8>| {
        let head = [kind.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        [head, bytes].concat()
    };
    let shape_bytes = shape.iter().flat_map(|&extent| (extent as u32).to_le_bytes()).collect();
    let parts = [
        part(6, [6u32.to_le_bytes(), [0; 4]].concat()),
        part(5, shape_bytes),
        part(1, name.as_bytes().to_vec()),
        part(9, values(shape, true, value)),
    ];
    let whole = part(14, parts.concat());
    if !packed {
        return whole;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&whole).unwrap();
    let packed = encoder.finish().unwrap();
    [15u32.to_le_bytes(), (packed.len() as u32).to_le_bytes()].concat().into_iter().chain(packed).collect()
}

/// How the files of a test differ from the public ones.
#[derive(Clone, Copy)]
struct Style {
    samples: usize,
    packed: bool,
    /// All axes in the opposite order, as h5py shows a MAT v7.3 file.
    reversed: bool,
    /// The last of the names a file goes by.
    last_name: bool,
    nan: bool,
}

const PLAIN: Style = Style { samples: SAMPLES, packed: false, reversed: false, last_name: false, nan: false };

/// Writes the files of a row; where they are.
fn write(row: &Row, folder: &Path, style: Style) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let mut written = Vec::new();
    for (number, part) in row.parts.iter().enumerate() {
        for (file, names) in part.files.iter().enumerate() {
            let pieces = || row.fields.iter().flat_map(|field| field.pieces).filter(|piece| piece.file == file);
            let mut contents = Vec::new();
            let mut seen = Vec::new();
            for piece in pieces() {
                if seen.contains(&piece.variable) {
                    continue; // several fields are channels of one array
                }
                seen.push(piece.variable);
                let samples = |&extent: &usize| if extent == 0 { style.samples } else { extent };
                let mut shape: Vec<_> = piece.shape.iter().map(samples).collect();
                let mut axes: Vec<_> = piece.axes.chars().collect();
                if style.reversed {
                    shape.reverse();
                    axes.reverse();
                }
                let at = |index: &[usize]| {
                    let index: BTreeMap<_, _> = axes.iter().copied().zip(index.iter().copied()).collect();
                    let bad = style.nan && number + 1 == row.parts.len() && index.values().all(|&place| place < 2);
                    if bad { f64::NAN } else { value(number * 8 + file, piece.variable, &index) }
                };
                contents.push(match piece.variable {
                    None => npy(&shape, style.packed, at),
                    Some(name) => variable(name, &shape, style.packed, at),
                });
            }
            if let Times::Variable(name, count) = row.times {
                contents.push(variable(name, &[1, count], style.packed, |index| index[1] as f64 / 2.0));
            }
            let matlab = pieces().all(|piece| piece.variable.is_some());
            let mut bytes = contents.concat();
            if matlab {
                let mut head = b"MATLAB 5.0 MAT-file, made up".to_vec();
                head.resize(124, b' ');
                bytes = [head, vec![0, 1, b'I', b'M'], bytes].concat();
            }
            let name = if style.last_name { names[names.len() - 1] } else { names[0] };
            let path = folder.join(format!("{name}.{}", if matlab { "mat" } else { "npy" }));
            fs::write(&path, bytes).unwrap();
            written.push(path);
        }
    }
    written
}

fn proceed(_: Transfer) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn imported(row: &Row, given: &[PathBuf], all: bool, target: &Path) -> Dataset {
    match row.import(given, all).unwrap().write(target, &proceed).unwrap() {
        Outcome::Made(dataset) => dataset,
        other => panic!("expected a new data set, found {other:?}"),
    }
}

/// Holds every value of the data set against where it must come from.
fn compare(row: &Row, dataset: &Dataset, origins: &[(usize, usize)]) {
    assert_eq!(dataset.samples(), origins.len(), "{}", row.name);
    for field in row.fields {
        let entry = dataset.field(field.name).unwrap();
        let span = dataset.on_grid(field.name).unwrap();
        assert_eq!((entry.role, entry.normalise), (field.role, field.normalise), "{}", field.name);
        let stored = dataset.read(field.name, 0..origins.len()).unwrap();
        let inner: Vec<char> = "txyp".chars().filter(|letter| field.pieces[0].axes.contains(*letter)).collect();
        let mut shape = entry.shape.clone();
        if shape.len() == inner.len() {
            shape.push(1);
        }
        assert_eq!(span.width(), *shape.last().unwrap(), "{} {}", row.name, field.name);
        let mut stored = stored.into_iter();
        for &(part, sample) in origins {
            for place in 0..shape.iter().product() {
                let (mut rest, mut index): (usize, _) = (place, BTreeMap::from([('n', sample)]));
                let channel = rest % shape[inner.len()];
                rest /= shape[inner.len()];
                for (&letter, extent) in inner.iter().zip(&shape).rev() {
                    let stride = if "xy".contains(letter) { row.stride } else { 1 };
                    index.insert(letter, rest % extent * stride);
                    rest /= extent;
                }
                let side_by_side = field.pieces.len() > 1;
                let piece = &field.pieces[if side_by_side { channel } else { 0 }];
                if piece.axes.contains('c') {
                    index.insert('c', piece.channel.unwrap_or(channel));
                }
                let expected = value(part * 8 + piece.file, piece.variable, &index) as f32;
                assert_eq!(stored.next(), Some(expected), "{} {} {index:?}", row.name, field.name);
            }
        }
    }
}

/// Where the samples of the official split come from: part and sample.
fn official(row: &Row) -> Vec<(usize, usize)> {
    match row.name {
        "darcy" => (0..6).map(|sample| (0, sample)).chain((0..3).map(|sample| (1, sample))).collect(),
        "airfoil" | "pipe" => (0..9).map(|sample| (0, sample)).collect(),
        _ => (0..6).chain(9..12).map(|sample| (0, sample)).collect(),
    }
}

#[test]
fn public_files_become_data_sets_with_the_official_split_and_every_value_in_its_place() {
    let folder = Folder::new("rows");
    for row in CATALOGUE {
        let row = tiny(row);
        for (number, style) in [
            PLAIN,
            Style { packed: true, last_name: true, ..PLAIN },
            Style { reversed: true, ..PLAIN },
            Style { reversed: true, packed: true, ..PLAIN },
        ]
        .into_iter()
        .enumerate()
        {
            let files = write(&row, &folder.at(&format!("{}-files-{number}", row.name)), style);
            let dataset = imported(&row, &files, false, &folder.at(&format!("{}-{number}", row.name)));
            dataset.verify().unwrap();
            compare(&row, &dataset, &official(&row));
            let split = dataset.split().unwrap();
            assert_eq!((split.train, split.test), ((0..6).collect(), (6..9).collect()));
            let sources: Vec<_> = dataset.manifest().sources.iter().map(|source| source.file.clone()).collect();
            let names = files.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
            assert_eq!(sources, names.collect::<Vec<_>>(), "{}", row.name);
            assert!(dataset.fields(Role::Output).any(|field| field.name == row.target));
        }
    }
}

#[test]
fn a_data_set_written_as_public_files_is_read_back_to_the_bit_and_other_grids_are_refused() {
    let folder = Folder::new("export");
    for row in CATALOGUE {
        let thinned = tiny(row);
        let whole = Row { stride: 1, ..tiny(row) };
        let given = write(&whole, &folder.at(&format!("{}-given", row.name)), PLAIN);
        let first = imported(&whole, &given, false, &folder.at(&format!("{}-first", row.name)));
        let out = folder.at(&format!("{}-public", row.name));
        let written = whole.export(&first, &out, &proceed).unwrap().unwrap();
        let names =
            |paths: &[PathBuf]| paths.iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&written), names(&given), "{}", row.name);
        let again = imported(&whole, &written, false, &folder.at(&format!("{}-again", row.name)));
        for (one, other) in first.manifest().fields.iter().zip(&again.manifest().fields) {
            assert_eq!((&one.name, &one.sha256), (&other.name, &other.sha256), "{}", row.name);
        }
        assert_eq!(first.manifest().times, again.manifest().times);
        assert_eq!(first.split().unwrap(), again.split().unwrap());
        let told = whole.export(&first, &out, &proceed).unwrap_err().to_string();
        assert!(told.contains("choose another folder"), "{told}");
        let stopped = folder.at(&format!("{}-stopped", row.name));
        assert!(whole.export(&first, &stopped, &|_| ControlFlow::Break(())).unwrap().is_none());
        assert_eq!(fs::read_dir(&stopped).unwrap().count(), 0, "a stopped export leaves no file");
        if thinned.stride > 1 {
            let coarse = imported(&thinned, &given, false, &folder.at(&format!("{}-coarse", row.name)));
            let told = whole.export(&coarse, &folder.at("none"), &proceed).unwrap_err().to_string();
            assert!(told.contains("stride=1") && told.contains("11 x 11"), "{told}");
        }
    }
}

#[test]
fn all_samples_are_kept_on_request_and_split_as_ever() {
    let folder = Folder::new("all");
    for row in CATALOGUE {
        let row = tiny(row);
        let files = write(&row, &folder.at(row.name), PLAIN);
        let dataset = imported(&row, &files, true, &folder.at(&format!("{}-set", row.name)));
        let everything: Vec<_> =
            (0..row.parts.len()).flat_map(|part| (0..SAMPLES).map(move |sample| (part, sample))).collect();
        compare(&row, &dataset, &everything);
        let split = dataset.split().unwrap();
        let chosen: Vec<_> = split.train.iter().chain(&split.test).map(|&sample| everything[sample]).collect();
        assert_eq!(chosen, official(&row), "{}", row.name);
    }
}

#[test]
fn files_are_found_in_folders_at_any_depth_and_named_when_they_are_missing_or_there_twice() {
    let folder = Folder::new("folders");
    let row = tiny(catalogue::find("elasticity").unwrap());
    let root = folder.at("downloads");
    write(&row, &root.join("geo/elasticity/Meshes"), PLAIN);
    fs::write(root.join("geo/elasticity/Meshes/Random_UnitCell_rr_10.npy"), "not asked for").unwrap();
    compare(&row, &imported(&row, std::slice::from_ref(&root), false, &folder.at("set")), &official(&row));
    let refusal = |given: &[PathBuf]| row.import(given, false).unwrap_err().to_string();
    let one = root.join("geo/elasticity/Meshes/Random_UnitCell_XY_10.npy");
    assert_eq!(
        refusal(std::slice::from_ref(&one)),
        format!(
            "elasticity: expected the file Random_UnitCell_sigma_10 too, found none of that name in {}; add it, or the \
             folder it is in",
            one.display()
        )
    );
    fs::create_dir(root.join("copy")).unwrap();
    fs::copy(&one, root.join("copy/Random_UnitCell_XY_10.npy")).unwrap();
    let twice = refusal(std::slice::from_ref(&root));
    assert!(twice.starts_with("Random_UnitCell_XY_10: expected it once, found ") && twice.contains(" and "), "{twice}");
    let other = refusal(&[root.join("geo/elasticity/Meshes/Random_UnitCell_rr_10.npy")]);
    assert!(
        other.contains("expected a file of elasticity: Random_UnitCell_XY_10, Random_UnitCell_sigma_10"),
        "{other}"
    );
    let nothing = refusal(&[folder.at("none")]);
    assert!(nothing.contains("none: expected a file of elasticity"), "{nothing}");
    let known = "darcy, navier-stokes, elasticity, plasticity, airfoil, pipe";
    assert_eq!(
        catalogue::find("darcies").err().unwrap().to_string(),
        format!(
            "benchmark: expected one of {known}, found `darcies`; choose one of these, or import arrays of your own"
        )
    );
}

#[test]
fn wrong_counts_shapes_variables_and_numbers_are_refused_in_a_sentence_and_leave_no_data_set() {
    let folder = Folder::new("wrong");
    let try_import = |row: &Row, files: &[PathBuf]| {
        let outcome = row.import(files, false).and_then(|import| import.write(&folder.at("set"), &proceed));
        let sentence = outcome.unwrap_err().to_string();
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        sentence
    };
    let darcy = tiny(catalogue::find("darcy").unwrap());
    let files = write(&darcy, &folder.at("fewer"), Style { samples: 5, ..PLAIN });
    assert!(
        try_import(&darcy, &files)
            .contains("smooth1.mat:coeff: expected at least 6 samples, found 5; import arrays of your own")
    );

    let pipe = tiny(catalogue::find("pipe").unwrap());
    let files = write(&pipe, &folder.at("pipe"), PLAIN);
    fs::write(&files[1], npy(&[11, 5, 5], false, |_| 0.0)).unwrap();
    let sentence = try_import(&pipe, &files);
    let expected = format!("expected 12 samples, as {} holds, found 11", files[0].display());
    assert!(sentence.contains("Pipe_Y.npy: ") && sentence.contains(&expected), "{sentence}");
    fs::write(&files[1], npy(&[12, 5, 6], false, |_| 0.0)).unwrap();
    let sentence = try_import(&pipe, &files);
    assert!(
        sentence.contains("Pipe_Y.npy: expected shape [samples, 5, 5], found [12, 5, 6]; check that"),
        "{sentence}"
    );
    fs::write(&files[1], "nothing like an array").unwrap();
    assert!(try_import(&pipe, &files).contains("Pipe_Y.npy: expected a file of format "));

    let block = tiny(catalogue::find("plasticity").unwrap());
    let files = write(&block, &folder.at("block"), PLAIN);
    let bytes = fs::read(&files[0]).unwrap();
    let place = bytes.windows(6).position(|window| window == b"output").unwrap();
    let renamed = [&bytes[..place], b"ootput", &bytes[place + 6..]].concat();
    fs::write(&files[0], renamed).unwrap();
    let sentence = try_import(&block, &files);
    assert!(sentence.contains("expected an array named `output`, found `input`, `ootput`"), "{sentence}");
    fs::write(&files[0], &bytes[..bytes.len() - 100]).unwrap();
    assert!(try_import(&block, &files).contains("the file is cut short or damaged"));

    let files = write(&darcy, &folder.at("nan"), Style { nan: true, ..PLAIN });
    let sentence = try_import(&darcy, &files);
    let expected = "smooth2.mat:coeff: sample 0 has NaN at [0, 0] of `permeability`, expected finite float32 values";
    assert!(sentence.contains(expected), "{sentence}");
    assert!(!folder.at("set").exists() && !folder.at("set.partial").exists(), "nothing is left behind");
    fs::write(folder.at("file"), "text").unwrap();
    let good = write(&darcy, &folder.at("good"), PLAIN);
    let import = darcy.import(&good, false).unwrap();
    let sentence = import.write(&folder.at("file/set"), &proceed).unwrap_err().to_string();
    assert!(sentence.contains("cannot be written: ") && sentence.ends_with("may write to"), "{sentence}");
}

#[test]
fn an_import_stopped_in_the_middle_resumes_to_the_same_bytes_and_refuses_other_files() {
    let folder = Folder::new("resume");
    let row = tiny(catalogue::find("darcy").unwrap());
    let files = write(&row, &folder.at("files"), PLAIN);
    let import = row.import(&files, false).unwrap();
    imported(&row, &files, false, &folder.at("whole"));
    let target = folder.at("pieces");
    match import.write(&target, &|_| ControlFlow::Break(())).unwrap() {
        Outcome::Stopped(progress) => assert_eq!((progress.complete, progress.samples), (6, 9)),
        other => panic!("expected a stop, found {other:?}"),
    }
    assert!(!target.exists() && folder.at("pieces.partial").exists());
    let original = fs::read(&files[1]).unwrap();
    let mut changed = original.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&files[1], changed).unwrap();
    let stale = import.write(&target, &proceed).unwrap_err();
    assert!(matches!(&stale, Error::Changed { path } if *path == files[1]), "{stale}");
    let import = || row.import(&files, false).unwrap();
    let sentence = import().write(&target, &proceed).unwrap_err().to_string();
    assert!(sentence.contains("pieces.partial holds an unfinished data set: expected source files "), "{sentence}");
    fs::write(&files[1], original).unwrap();
    let heard = std::cell::Cell::new(Transfer { done: 0, total: 1 });
    let listen = |transfer: Transfer| {
        assert!(transfer.done >= heard.get().done && transfer.done <= transfer.total);
        heard.set(transfer);
        ControlFlow::Continue(())
    };
    assert!(matches!(import().write(&target, &listen).unwrap(), Outcome::Made(_)));
    assert_eq!(heard.get().done, heard.get().total, "progress ends at its end");
    assert!(matches!(import().write(&target, &proceed).unwrap(), Outcome::AlreadyThere(_)));
    for name in ["dataset.toml", "permeability.npy", "pressure.npy"] {
        assert_eq!(fs::read(target.join(name)).unwrap(), fs::read(folder.at("whole").join(name)).unwrap(), "{name}");
    }
}

#[test]
fn the_catalogue_agrees_with_the_benchmarks_and_with_the_solvers() {
    for row in CATALOGUE {
        let benchmark = crate::experiment::benchmarks::find(row.name).unwrap_or_else(|error| panic!("{error:?}"));
        let task = benchmark.task();
        assert_eq!(thinned(row.grid, row.stride), task.grid, "{}", row.name);
        let count = |kept: Option<Selection>| kept.map_or(0, |kept| kept.range(0, 5000).len());
        let train: usize = row.parts.iter().map(|part| count(part.train)).sum();
        let test: usize = row.parts.iter().map(|part| count(part.test)).sum();
        assert_eq!([train, test], benchmark.samples, "{}", row.name);
        let target = row.fields.iter().find(|field| field.name == row.target).unwrap();
        let channels = target.pieces[0].axes.find('c').filter(|_| target.pieces[0].channel.is_none());
        assert_eq!(channels.map_or(1, |axis| target.pieces[0].shape[axis]), task.output_channels(), "{}", row.name);
        let Ok(solver) = lamo_physics::problems::find(row.name) else { continue };
        let recipe = Recipe::named(row.name, solver.small, 0, 1).unwrap();
        let made = &recipe.manifest().fields;
        for field in row.fields {
            let twin = made.iter().find(|made| made.name == field.name).map(|made| made.role);
            assert!(twin.is_none_or(|role| role == field.role), "{} {}", row.name, field.name);
        }
        assert!(made.iter().any(|made| made.name == row.target), "the solver of {} makes no {}", row.name, row.target);
    }
    assert_eq!(catalogue::normalise("darcy", "pressure"), Normalise::Channels);
    assert_eq!(catalogue::normalise("airfoil", "mach"), Normalise::None);
    assert_eq!(catalogue::normalise("heat", "temperature"), Normalise::None);
}

#[test]
fn files_are_known_by_their_names_whatever_folder_and_ending() {
    let names = ["plas_N987_T20", "buri_plas_N987_time"];
    for path in ["plas_N987_T20.mat", "a/b/buri_plas_N987_time.mat", "PLAS_N987_T20.h5", "plas_N987_T20"] {
        assert!(has_name(Path::new(path), &names), "{path}");
    }
    for path in ["plas_N987_T20.mat.part", "plas_N987_T20.zip", "xplas_N987_T20.mat", "plas_N987.mat"] {
        assert!(!has_name(Path::new(path), &names), "{path}");
    }
    assert!(has_name(Path::new("NavierStokes_V1e-5_N1200_T20"), &["NavierStokes_V1e-5_N1200_T20"]));
}
