//! Array files: what NumPy, SciPy, h5py and MATLAB write is read as they show it; damage ends in a sentence.
//!
//! The files are in `tests/arrays`, a folder per format.

#![allow(clippy::print_stdout)] // a test that finds no data says so

use crate::support::{Folder, alone};
use lamo::data::formats::{self, Array, ArrayFile, ElementKind, Error, Values};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

const SHAPE: [usize; 3] = [3, 4, 5];
const KINDS: [(&str, ElementKind); 12] = [
    ("f2", ElementKind::F16),
    ("f4", ElementKind::F32),
    ("f8", ElementKind::F64),
    ("i1", ElementKind::I8),
    ("i2", ElementKind::I16),
    ("i4", ElementKind::I32),
    ("i8", ElementKind::I64),
    ("u1", ElementKind::U8),
    ("u2", ElementKind::U16),
    ("u4", ElementKind::U32),
    ("u8", ElementKind::U64),
    ("b1", ElementKind::Bool),
];

/// A file of `tests/arrays`.
fn file(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/arrays").join(name)
}

/// As in `make.py`.
fn made_up(kind: &str, count: usize) -> Vec<f64> {
    let integer = |n: usize| (7 * n % 23) as f64 - 5.0;
    let value = |n: usize| match &kind[..1] {
        "f" => integer(n) / 4.0,
        "u" => integer(n) + 5.0,
        "b" => f64::from(integer(n) > 0.0),
        _ => integer(n),
    };
    (0..count).map(value).collect()
}

/// The axes in another order are those of the transposed array.
fn check_orders(path: &Path, name: Option<&str>, shape: &[usize], expected: &[f64]) {
    let [first, second, third] = [shape[0], shape[1], shape[2]];
    for order in [[2, 0, 1], [1, 2, 0], [2, 1, 0], [0, 2, 1]] {
        let rows = shape[order[0]] / 2..shape[order[0]];
        let array = formats::read_ordered(path, name, &order, rows.clone(), &mut |_| {}).unwrap();
        assert_eq!(array.shape, [rows.len(), shape[order[1]], shape[order[2]]]);
        let mut index = [0; 3];
        for (place, value) in array.values.into_f64().into_iter().enumerate() {
            index[order[0]] = rows.start + place / (array.shape[1] * array.shape[2]);
            index[order[1]] = place / array.shape[2] % array.shape[1];
            index[order[2]] = place % array.shape[2];
            let [i, j, k] = index;
            assert!(i < first && k < third);
            assert_eq!(value, expected[(i * second + j) * third + k], "{} {name:?} {order:?}", path.display());
        }
    }
    let mut seen = 0;
    formats::visit(path, name, |values| seen += values.len()).unwrap();
    assert_eq!(seen, expected.len());
}

fn check(path: &Path, name: Option<&str>, kind: &str, shape: &[usize]) {
    let array = formats::read(path, name).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(array.shape, shape, "{} {name:?}", path.display());
    assert_eq!(matches!(array.values, Values::F32(_)), matches!(kind, "f2" | "f4"), "{} {name:?}", path.display());
    let expected = made_up(kind, shape.iter().product());
    assert_eq!(array.values.clone().into_f64(), expected, "{} {name:?}", path.display());
    if shape.len() == 3 {
        check_orders(path, name, shape, &expected);
    }
    let height = shape.first().copied().unwrap_or(1);
    let width = expected.len() / height.max(1);
    for rows in [0..height, 0..1.min(height), height / 2..height, height..height] {
        let some = formats::read_rows(path, name, rows.clone()).unwrap_or_else(|error| panic!("{error}"));
        let values = some.values.into_f64();
        assert_eq!(values, expected[rows.start * width..rows.end * width], "{} {name:?} {rows:?}", path.display());
        assert!(shape.is_empty() || some.shape[0] == rows.len() && some.shape[1..] == shape[1..]);
    }
}

#[test]
fn every_type_byte_order_axis_order_and_packing_reads_as_its_writer_shows_it() {
    for (name, arrays) in [
        ("npz/stored.npz", 48),
        ("npz/deflated.npz", 48),
        ("mat5/plain.mat", 11),
        ("mat5/packed.mat", 11),
        ("mat5/small_types.mat", 15),
        ("mat5/big_endian.mat", 15),
        ("hdf5/plain.h5", 12),
        ("mat73/all.mat", 11),
        ("safetensors/many.safetensors", 12),
        ("pytorch/types.pt", 9),
    ] {
        let path = file(name);
        let mut seen = 0;
        for info in formats::list(&path).unwrap() {
            let Some((kind, element)) = KINDS.iter().find(|(kind, _)| info.name.starts_with(kind)) else { continue };
            let in_integers = info.name.contains("_in_"); // doubles that MATLAB writes as integers
            assert_eq!((info.kind, info.shape.as_slice()), (*element, &SHAPE[..]), "{name} {}", info.name);
            if !in_integers {
                check(&path, Some(&info.name), kind, &SHAPE);
            } else {
                let array = formats::read(&path, Some(&info.name)).unwrap();
                assert_eq!(matches!(array.values, Values::F32(_)), *kind == "f4", "{}", info.name);
                assert_eq!(array.values.into_f64(), made_up("i1", 60), "{name} {}", info.name);
            }
            seen += 1;
        }
        assert_eq!(seen, arrays, "{name}");
    }
}

#[test]
fn lone_lines_versions_chunks_and_filters_read_as_their_writer_shows_them() {
    for (name, array, kind, shape) in [
        ("npy/c.npy", None, "f8", &SHAPE[..]),
        ("npy/version2.npy", None, "f8", &SHAPE),
        ("npy/version3.npy", None, "f8", &SHAPE),
        ("npy/fortran.npy", None, "f4", &SHAPE),
        ("npy/big_endian_fortran.npy", None, "i2", &SHAPE),
        ("npy/line.npy", None, "f4", &[7]),
        ("npy/empty.npy", None, "f8", &[0, 3]),
        ("npz/odd.npz", Some("numbers"), "f8", &SHAPE),
        ("npz/one.npz", Some("field"), "f4", &SHAPE),
        ("npz/zip64.npz", Some("field"), "f4", &SHAPE),
        ("mat5/one.mat", Some("field"), "f4", &SHAPE),
        ("mat5/packed.mat", Some("line"), "f8", &[1, 7]),
        ("mat5/packed.mat", Some("tiny"), "u1", &[1, 3]),
        ("mat5/plain.mat", Some("tiny"), "u1", &[1, 3]),
        ("mat5/plain.mat", Some("empty"), "f8", &[0, 3]),
        ("hdf5/plain.h5", Some("big_endian"), "f8", &SHAPE),
        ("hdf5/plain.h5", Some("line"), "f4", &[7]),
        ("hdf5/plain.h5", Some("group/inner/field"), "f4", &SHAPE),
        ("hdf5/chunked.h5", Some("chunked"), "f4", &SHAPE),
        ("hdf5/chunked.h5", Some("gzip"), "f4", &SHAPE),
        ("hdf5/chunked.h5", Some("shuffle"), "f8", &SHAPE),
        ("hdf5/chunked.h5", Some("fletcher"), "i4", &SHAPE),
        ("hdf5/latest.h5", None, "f4", &SHAPE),
        ("mat73/all.mat", Some("empty"), "f8", &[0, 3]),
        ("safetensors/half.safetensors", Some("bf16"), "f4", &SHAPE),
        ("pytorch/views.pt", Some("transposed"), "f4", &SHAPE),
        ("pytorch/views.pt", Some("sliced"), "f8", &SHAPE),
        ("pytorch/views.pt", Some("rows"), "f4", &SHAPE),
        ("pytorch/views.pt", Some("bf16"), "f4", &SHAPE),
        ("pytorch/views.pt", Some("u2"), "u2", &SHAPE),
    ] {
        check(&file(name), array, kind, shape);
    }
    for (name, array, shape, value) in [
        ("npy/scalar.npy", None, &[][..], 2.5),
        ("hdf5/plain.h5", Some("scalar"), &[], 2.5),
        ("mat5/small_types.mat", Some("a"), &[1, 1], 10.0),
        ("mat5/big_endian.mat", Some("a"), &[1, 1], 10.0),
    ] {
        let expected = Array { shape: shape.to_vec(), values: Values::F64(vec![value]) };
        assert_eq!(formats::read(file(name), array).unwrap(), expected, "{name}");
    }
}

#[test]
fn only_arrays_of_real_numbers_are_listed_and_other_arrays_are_refused_on_request() {
    for (name, others) in [
        ("mat5/plain.mat", &[("text", "text"), ("cell", "a cell"), ("structure", "a structure")][..]),
        ("mat5/packed.mat", &[("sparse", "a sparse matrix")]),
        ("npz/odd.npz", &[("text", "<U1"), ("readme.txt", "not npy")]),
        ("hdf5/plain.h5", &[("text", "text")]),
        ("mat73/all.mat", &[("text", "text"), ("cell", "a cell")]),
        ("safetensors/half.safetensors", &[("f8_e4m3", "F8_E4M3")]),
        ("npy/records.npy", &[("", "records")]),
        ("mat5/structures.mat", &[("run", "a structure"), ("run.note", "text"), ("list", "a cell")]),
        ("pytorch/views.pt", &[("repeated", "a view that repeats its numbers")]),
        ("pytorch/lazy.pt", &[("conjugated", "a conjugated or negated view"), ("negated", ".resolve_neg()")]),
    ] {
        let listed = formats::list(file(name)).unwrap();
        for (other, found) in others {
            assert!(listed.iter().all(|info| info.name != *other), "{name} lists {other}");
            let error = formats::read(file(name), Some(other)).unwrap_err();
            assert!(matches!(error, Error::WrongType { .. }), "{name}: {error}");
            assert!(error.to_string().contains(found), "{name}: {error}");
        }
    }
}

fn npy(header: &str) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat()
}

#[test]
fn what_is_wrong_is_said_in_one_sentence_with_file_expected_found_and_remedy() {
    let folder = Folder::new("readers");
    let scratch = folder.at("wrong");
    let wrong = |bytes: &[u8]| {
        fs::write(&scratch, bytes).unwrap();
        formats::read(&scratch, None).unwrap_err()
    };
    let absurd = "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 1152921504606846976), }";
    let promised = "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }";
    let packed = fs::read(file("mat5/one.mat")).unwrap();
    let twice = fs::read(file("mat5/one.mat")).map(|bytes| [&bytes[..], &bytes[128..]].concat()).unwrap();
    for (error, sentence) in [
        (formats::list(file("npy/none.npy")).unwrap_err(), "expected a file, found nothing; check the path"),
        (formats::list(file("")).unwrap_err(), "expected a file, found a folder; name a file instead"),
        (wrong(b""), "found an empty file; save it in one of these formats"),
        (wrong(b"version https://git-lfs.github.com/spec/v1"), "found a Git LFS pointer without its file"),
        (
            wrong(b"\x80\x04stuff"),
            "found a pickle of Python (save its arrays with numpy.savez); save it in one of these formats",
        ),
        (wrong(&npy(absurd)), "promises shape [1152921504606846976, 1152921504606846976], more than its"),
        (wrong(&npy(promised)), "promises 9223372036854775808 bytes, found 0; the file is cut short"),
        (wrong(&npy("{'descr': '<f8', 'shape': (1,), }")), "expected the keys descr, fortran_order and shape"),
        (wrong(&npy("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}")), "expected `False` in the npy header"),
        (wrong(&packed[..packed.len() - 9]), "bytes, found"),
        (
            formats::read(file("mat5/plain.mat"), Some("coeff")).unwrap_err(),
            "array named `coeff`, found `structure.x`, `complex`, `f4`, `f8`, `i1`",
        ),
        (formats::read(file("mat5/plain.mat"), None).unwrap_err(), "expected the name of one array"),
        (formats::read(file("npy/c.npy"), Some("x")).unwrap_err(), "found one array without a name"),
        (formats::read(file("hdf5/chunked.h5"), Some("lzf")).unwrap_err(), "expected dataset `lzf` packed by gzip"),
        (formats::read_rows(file("npy/c.npy"), None, 2..4).unwrap_err(), "to have rows 2..4, found 3 rows"),
        (
            formats::read_ordered(file("npy/c.npy"), None, &[0, 0, 1], 0..1, &mut |_| {}).unwrap_err(),
            "to have the axes [0, 0, 1], found 3 axes; list each of them once",
        ),
        (wrong(&twice), "expected each array once, found \"field\" twice"),
    ] {
        let text = error.to_string();
        assert!(text.contains(sentence) && text.contains("; ") && !text.contains('\n'), "{text}");
        let files = [file(""), folder.path().to_owned()];
        assert!(files.iter().any(|place| text.starts_with(place.to_str().unwrap())), "{text}");
    }
}

#[test]
fn files_that_matlab_wrote_read_as_scipy_reads_them() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../../shared/real/pinns_mat");
    if !folder.is_dir() {
        println!("{} is not here, so its files are not read", folder.display());
        return;
    }
    // shape, an index, the value there and Σ value · cos(position), by SciPy 1.17
    for (name, array, shape, [row, column], value, sum) in [
        ("real_AC.mat", "uu", [512, 201], [10, 20], -0.9666302614005279, 24.30324074354051),
        ("real_KS.mat", "uu", [513, 201], [10, 20], 0.0877883917227883, -3.992109278542337),
        ("real_KdV.mat", "uu", [512, 201], [10, 20], -0.9125596054703332, 7.153687846031069),
        ("real_NLS.mat", "tt", [1, 201], [0, 20], 0.15707963267948966, -0.8772504923960547),
        ("real_burgers_shock.mat", "x", [256, 1], [10, 0], -0.9215686274509804, -1.410510495693636),
        ("real_burgers_shock.mat", "usol", [256, 100], [10, 20], 0.15060388855321122, 2.268854233482064),
        ("real_cylinder_nektar_t0_vorticity.mat", "modes", [1, 1], [0, 0], 10.0, 10.0),
        ("real_cylinder_nektar_t0_vorticity.mat", "nel", [1, 1], [0, 0], 412.0, 412.0),
        ("real_cylinder_nektar_t0_vorticity.mat", "w", [1, 49852], [0, 20], 5.0, -9.886431720437486),
        ("real_cylinder_nektar_t0_vorticity.mat", "x", [1, 49852], [0, 20], 0.01008328111467, 182.48736540484504),
    ] {
        let path = folder.join(name);
        assert!(
            formats::list(&path).unwrap().iter().any(|info| info.name == array && info.shape == shape),
            "{name} {array}"
        );
        let read = formats::read(&path, Some(array)).unwrap();
        assert_eq!(read.shape, shape, "{name} {array}");
        let values = read.values.into_f64();
        assert_eq!(values[row * shape[1] + column], value, "{name} {array}");
        let found: f64 = values.iter().enumerate().map(|(n, value)| value * (n as f64).cos()).sum();
        let size: f64 = values.iter().map(|value| value.abs()).sum();
        // both sums round: at most one unit in the last place of the largest partial sum per term
        assert!((found - sum).abs() <= 2e-16 * size * values.len() as f64, "{name} {array}: {found} is not {sum}");
        let rows = formats::read_rows(&path, Some(array), row..row + 1).unwrap();
        assert_eq!(rows.values.into_f64(), values[row * shape[1]..][..shape[1]], "{name} {array}");
    }
    // The solution of the nonlinear Schrödinger equation begins with 2 / cosh(x), at rest.
    let positions = formats::read(folder.join("real_NLS.mat"), Some("x")).unwrap().values.into_f64();
    let complex =
        formats::read_ordered(folder.join("real_NLS.mat"), Some("uu"), &[1, 0, 2], 0..1, &mut |_| {}).unwrap();
    assert_eq!(complex.shape, [1, 256, 2]);
    for (x, number) in positions.iter().zip(complex.values.into_f64().chunks(2)) {
        assert!((number[0] - 2.0 / x.cosh()).abs() < 1e-14 && number[1] == 0.0, "{number:?} at {x}");
    }
}

#[test]
fn complex_numbers_are_read_with_one_more_axis_for_their_parts() {
    for (name, array, shape) in [
        ("mat5/plain.mat", Some("complex"), &[2, 2, 2][..]),
        ("mat5/packed.mat", Some("complex"), &[2, 2, 2]),
        ("npz/odd.npz", Some("complex"), &[2, 2]),
        ("hdf5/plain.h5", Some("complex"), &[2, 2]),
        ("npy/complex.npy", None, &[2, 2, 2]),
    ] {
        let info = formats::describe(file(name), array).unwrap();
        assert_eq!((&info.shape[..], info.kind), (shape, ElementKind::C128), "{name}");
        let count: usize = shape.iter().product();
        let imaginary = if name.starts_with("mat5") { 1.0 } else { 0.0 }; // as in `make.py`
        let expected: Vec<f64> = (0..count).map(|place| if place % 2 == 1 { imaginary } else { 0.0 }).collect();
        assert_eq!(formats::read(file(name), array).unwrap().values.into_f64(), expected, "{name}");
        let parts_first: Vec<_> = [shape.len() - 1].into_iter().chain(0..shape.len() - 1).collect();
        let second = formats::read_ordered(file(name), array, &parts_first, 1..2, &mut |_| {}).unwrap();
        assert_eq!(second.values.into_f64(), vec![imaginary; count / 2], "{name}");
        let (mut seen, mut sum) = (0, 0.0);
        formats::visit(file(name), array, |values| {
            seen += values.len();
            sum += values.iter().sum::<f64>();
        })
        .unwrap();
        assert_eq!((seen, sum), (count, imaginary * (count / 2) as f64), "{name}");
    }
    let folder = Folder::new("complex");
    let numbers: Vec<f32> = (0..12).map(|number| number as f32).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    for (order, expected) in
        [("False", numbers.clone()), ("True", vec![0., 1., 4., 5., 8., 9., 2., 3., 6., 7., 10., 11.])]
    {
        let header = npy(&format!("{{'descr': '<c8', 'fortran_order': {order}, 'shape': (2, 3), }}"));
        fs::write(folder.at("c.npy"), [header, bytes.clone()].concat()).unwrap();
        let found = formats::read(folder.at("c.npy"), None).unwrap();
        assert_eq!(found, Array { shape: vec![2, 3, 2], values: Values::F32(expected.clone()) }, "{order}");
        let row = formats::read_rows(folder.at("c.npy"), None, 1..2).unwrap();
        assert_eq!(row.values, Values::F32(expected[6..].to_vec()), "{order}");
    }
}

#[test]
fn tables_are_read_by_column_and_numbered_columns_are_one_array() {
    let folder = Folder::new("tables");
    let table = |text: &str| {
        fs::write(folder.at("table"), text).unwrap();
        folder.at("table")
    };
    let shapes = |path: &Path| -> Vec<(String, Vec<usize>)> {
        formats::list(path).unwrap().into_iter().map(|info| (info.name, info.shape)).collect()
    };
    let values = |path: &Path, name: Option<&str>| formats::read(path, name).unwrap().values.into_f64();
    let path = table("case, mu,u_0,u_1,u_2\nfirst, 0.5,1,2,3\n\n# a comment\nsecond,-1e2,4,5,6\n");
    assert_eq!(shapes(&path), [("mu".to_owned(), vec![2]), ("u".to_owned(), vec![2, 3])]);
    assert_eq!(values(&path, Some("mu")), [0.5, -100.0]);
    assert_eq!(values(&path, Some("u")), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(values(&path, Some("u_1")), [2.0, 5.0], "a column of a group has its own name");
    let turned = formats::read_ordered(&path, Some("u"), &[1, 0], 1..3, &mut |_| {}).unwrap();
    assert_eq!((turned.shape, turned.values.into_f64()), (vec![2, 2], vec![2.0, 5.0, 3.0, 6.0]));
    let text = formats::read(&path, Some("case")).unwrap_err().to_string();
    assert!(text.contains("array `case` to hold real numbers, found text in line 2: `first`"), "{text}");
    for text in
        ["1;2,5\n3;4\n", "1\t2.5\r\n3\t4\r\n", "A title of three\n 1.0 2.5D0\n 3 4", "# written by hand\n1,2.5\n3,4\n"]
    {
        let path = table(text);
        assert_eq!(shapes(&path), [(String::new(), vec![2, 2])], "{text:?}");
        assert_eq!(values(&path, None), [1.0, 2.5, 3.0, 4.0], "{text:?}");
        assert_eq!(values(&path, Some("2")), [2.5, 4.0], "{text:?}");
    }
    assert_eq!(shapes(&table("# x y\n1 2\n")), [("x".to_owned(), vec![1]), ("y".to_owned(), vec![1])]);
    assert!(values(&table("x,y\n1,\n2,NaN\n"), Some("y")).iter().all(|value| value.is_nan()));
    let ragged = formats::list(table("x,y\n1,2\n3\n")).unwrap_err().to_string();
    assert!(
        ragged.ends_with("expected 2 cells in each row, as in line 2, found 1 in line 3; correct the line"),
        "{ragged}"
    );
    let several = formats::read(table("x,y\n1,2\n"), None).unwrap_err().to_string();
    assert!(several.contains("the file holds `x`, `y`; name one of them"), "{several}");
}

/// Names and shapes of the arrays of a file.
fn names(path: &Path) -> Vec<(String, Vec<usize>)> {
    formats::list(path).unwrap().into_iter().map(|info| (info.name, info.shape)).collect()
}

#[test]
fn tensors_of_pytorch_are_named_by_the_keys_and_places_around_them() {
    let expected = [("train/x", vec![2, 3, 2]), ("train/y/0", vec![3, 2]), ("3", vec![3, 2])];
    assert_eq!(names(&file("pytorch/nested.pt")), expected.map(|(name, shape)| (name.to_owned(), shape)));
    let inner = formats::read(file("pytorch/nested.pt"), Some("train/y/0")).unwrap();
    assert_eq!(inner.values, Values::F64((0..6).map(f64::from).collect()));
    assert_eq!(names(&file("pytorch/one.pt")), [(String::new(), vec![2, 3, 2])]);
    let upload = ArrayFile::in_memory("upload", fs::read(file("pytorch/one.pt")).unwrap()).unwrap_err().to_string();
    assert!(upload.contains("expected a file of format npy or npz, found a file of PyTorch"), "{upload}");
    let complex = formats::read(file("pytorch/views.pt"), Some("complex")).unwrap();
    let pairs: Vec<f64> = made_up("f4", 60).into_iter().flat_map(|value| [value, -value]).collect();
    assert_eq!((complex.shape, complex.values.into_f64()), (vec![3, 4, 5, 2], pairs));
}

#[test]
fn a_file_of_pytorch_without_tensors_is_answered_with_the_command_that_converts_it() {
    for name in ["pytorch/others.pt", "pytorch/old.pt"] {
        let told = formats::list(file(name)).unwrap_err().to_string();
        assert!(told.contains("convert them with: python -c \"import sys, numpy, torch; "), "{told}");
        assert!(told.ends_with(".npz") && told.lines().count() == 1, "{told}");
    }
}

#[test]
fn fields_of_a_structure_are_arrays_that_its_name_begins() {
    let expected = [("run.u", vec![3, 2]), ("run.mesh.x", vec![2, 3, 2])];
    assert_eq!(names(&file("mat5/structures.mat")), expected.map(|(name, shape)| (name.to_owned(), shape)));
    for name in ["mat5/structures.mat", "mat5/structures_packed.mat"] {
        let values = formats::read(file(name), Some("run.u")).unwrap().values.into_f64();
        assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{name}");
    }
    let inner = formats::read(file("mat5/structures.mat"), Some("run.mesh.x")).unwrap().values.into_f64();
    assert_eq!(inner, (0..12).map(|n| f64::from(n) / 4.0).collect::<Vec<_>>());
    let complex = formats::read(file("mat5/structures_packed.mat"), Some("run.c")).unwrap();
    assert_eq!(complex.values.into_f64()[..4], [0.0, 1.0, 1.0, 1.0]);
}

/// Lists a file and reads everything in it.
fn read_all(path: &Path) -> Vec<Array> {
    let mut arrays = Vec::new();
    for info in formats::list(path).unwrap_or_default() {
        arrays.extend(formats::read(path, Some(&info.name)));
        let _ = formats::read_rows(path, Some(&info.name), 1..2);
    }
    arrays
}

/// Lists a file and reads one of its arrays.
fn read_one(path: &Path, which: usize) -> Option<Array> {
    let listed = formats::list(path).ok()?;
    let info = listed.get(which % listed.len().max(1))?;
    let _ = formats::read_rows(path, Some(&info.name), 1..2);
    formats::read(path, Some(&info.name)).ok()
}

#[test]
fn a_file_cut_short_at_any_byte_is_refused_or_reads_as_the_whole_one() {
    let folder = Folder::new("readers");
    let scratch = folder.at("short");
    for name in [
        "npy/fortran.npy",
        "npy/version3.npy",
        "npz/one.npz",
        "npz/zip64.npz",
        "mat5/one.mat",
        "mat5/small_types.mat",
        "hdf5/latest.h5",
        "safetensors/half.safetensors",
    ] {
        let whole = read_all(&file(name));
        assert!(!whole.is_empty(), "{name}");
        fs::copy(file(name), &scratch).unwrap();
        let writer = fs::OpenOptions::new().write(true).open(&scratch).unwrap();
        for length in (0..fs::metadata(file(name)).unwrap().len()).rev() {
            writer.set_len(length).unwrap();
            let found = read_all(&scratch);
            assert!(found.iter().all(|array| whole.contains(array)), "{name} cut to {length} bytes");
        }
    }
}

/// Changes a few bytes the way disks, transfers and mischief do.
fn damage(bytes: &mut [u8], random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
            _ => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = random.random()),
        }
    }
}

/// The most memory this process has ever mapped.
fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmPeak:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}

#[test]
fn some_rows_of_a_file_larger_than_memory_take_memory_for_those_rows() {
    if !alone("readers::some_rows_of_a_file_larger_than_memory_take_memory_for_those_rows", &[]) {
        return;
    }
    let rows = |order: &str| npy(&format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': (1048576, 1024), }}"));
    let part = |kind: u32, bytes: u32| [kind.to_le_bytes(), bytes.to_le_bytes()].concat();
    let shape = [1 << 20, 500u32].map(u32::to_le_bytes).concat();
    let mut matlab = fs::read(file("mat5/one.mat")).unwrap()[..128].to_vec(); // 1048576 x 500 doubles, not packed
    matlab.extend([part(14, 56 + 500 * (8 << 20)), part(6, 8), part(6, 0), part(5, 8), shape].concat());
    matlab.extend([part(1, 5), b"field\0\0\0".to_vec(), part(9, 500 * (8 << 20))].concat());
    for (name, start, columns) in [("c", rows("False"), 1024), ("fortran", rows("True"), 1024), ("matlab", matlab, 500)]
    {
        let folder = Folder::new("readers");
        let scratch = folder.at(name);
        fs::write(&scratch, &start).unwrap();
        let whole = fs::OpenOptions::new().write(true).open(&scratch).unwrap();
        whole.set_len(start.len() as u64 + columns * (8 << 20)).unwrap(); // a hole: no disk is used
        let before = peak();
        let array = formats::read_rows(&scratch, None, 700_000..700_003).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (array.shape, array.values.into_f64()),
            (vec![3, columns as usize], vec![0.0; 3 * columns as usize])
        );
        let grown = before.zip(peak()).map(|(before, after)| after - before);
        assert!(grown.is_none_or(|grown| grown < 1 << 20), "{name}: {grown:?} bytes");
    }
}

#[test]
fn damage_never_panics_and_never_takes_more_memory_than_the_size_of_the_file_allows() {
    if !alone("readers::damage_never_panics_and_never_takes_more_memory_than_the_size_of_the_file_allows", &[]) {
        return;
    }
    let folder = Folder::new("readers");
    let scratch = folder.at("damaged");
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for (name, checked) in [
        ("npy/fortran.npy", false),
        ("npz/one.npz", true),
        ("npz/zip64.npz", true),
        ("npz/odd.npz", true),
        ("mat5/one.mat", true),
        ("mat5/packed.mat", false),
        ("mat5/big_endian.mat", false),
        ("safetensors/half.safetensors", false),
        ("safetensors/many.safetensors", false),
        ("hdf5/latest.h5", false),
        ("hdf5/chunked.h5", false),
        ("mat73/all.mat", false),
    ] {
        let whole = read_all(&file(name));
        let bytes = fs::read(file(name)).unwrap();
        fs::write(&scratch, &bytes).unwrap();
        let mut writer = fs::OpenOptions::new().write(true).open(&scratch).unwrap();
        let before = peak();
        let rounds = if bytes.len() > 1000 { 500 } else { 2000 };
        for round in 0..rounds {
            let mut damaged = bytes.clone();
            damage(&mut damaged, &mut random);
            writer.rewind().unwrap(); // in place: to truncate first would wait for the disk
            writer.write_all(&damaged).unwrap();
            let found = read_one(&scratch, round);
            // a checksum covers these, so that wrong numbers cannot pass
            assert!(!checked || found.iter().all(|array| whole.contains(array)), "{name}, damage {round}");
        }
        // deflate packs 1032 bytes into one at best, a byte becomes a double, and the allocator keeps some
        let allowed = bytes.len() * 1032 * 8 + (16 << 20);
        let grown = before.zip(peak()).map(|(before, after)| after - before);
        assert!(grown.is_none_or(|grown| grown <= allowed), "{name}: {grown:?} bytes, allowed {allowed}");
    }
}
