//! Crafted files under a limit of memory and time: each ends in exit code 1 and one sentence that names the file.

use crate::bombs::{Bomb, SIDE, bombs};
use crate::support::{Folder, TINY, contains, sentence, wave_npy, write_npy};
use std::process::{Command, Output, Stdio};

/// Runs the command with at most this much memory, in kB, and a minute of time.
fn limited(folder: &Folder, memory: usize, arguments: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v $1 && shift && exec timeout 60 \"$@\"", "sh", &memory.to_string()]);
    shell.arg(env!("CARGO_BIN_EXE_lamo")).args(arguments);
    shell.env("LAMO_CACHE", folder.at("cache")).current_dir(&folder.0).stdout(Stdio::null()).output().unwrap()
}

/// The sentence of a job that fails under 8 GB.
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    sentence(&limited(folder, 8_000_000, arguments))
}

fn trained(test: &str) -> Folder {
    let folder = Folder::new(test);
    folder.make_darcy("0", "set");
    folder.ok(&["train", "set", TINY, "--set=train.epochs=1", "--threads=1", "--out=run"]);
    folder
}

#[test]
fn crafted_files_are_refused_by_check_import_and_predict() {
    let folder = trained("crafted");
    let grid = format!("--grid={SIDE}x{SIDE}");
    for Bomb { name, array, bytes } in bombs() {
        folder.write(name, bytes);
        let source = array.map_or(name.to_owned(), |array| format!("{name}:{array}"));
        let output = format!("--output=u={source}");
        for arguments in [
            &["data", "check", name][..],
            &["data", "import", &output, &grid, "--train=0", "--test=1", "--out=imported"],
            &["predict", "run", "--input", &source, "--output=prediction.npy"],
        ] {
            let told = refused(&folder, arguments);
            assert!(told.contains(name), "{arguments:?}: {told}");
        }
        assert!(!folder.at("imported").exists() && !folder.at("imported.partial").exists(), "{name}");
    }
}

#[test]
fn values_are_not_read_before_the_program_for_their_grid_fits_into_memory() {
    let folder = trained("grid-first");
    let packed = bombs().into_iter().find(|bomb| bomb.name == "packed.mat").unwrap();
    folder.write("packed.mat", packed.bytes);
    let told = refused(&folder, &["predict", "run", "--input=packed.mat", "--output=prediction.npy"]);
    contains(&told, &["packed.mat: the program needs ", " GiB of memory"]);
}

#[test]
fn memory_that_is_not_there_is_a_sentence() {
    let folder = Folder::new("memory");
    let told = refused(&folder, &["data", "make", "darcy", "--samples=1000000000", "--out=set"]);
    contains(&told, &["split: expected ", " GB of memory, found too little"]);
    let side = 9000;
    write_npy(&folder.at("u.npy"), &[1, side, side], std::iter::empty()); // one sample of 324 MB, which is 0 everywhere
    let file = std::fs::File::options().write(true).open(folder.at("u.npy")).unwrap();
    file.set_len(file.metadata().unwrap().len() + (4 * side * side) as u64).unwrap();
    let grid = format!("--grid={side}x{side}");
    let import = ["data", "import", "--output=u=u.npy", &grid, "--train=0", "--test=1", "--out=set"];
    let told = sentence(&limited(&folder, 300_000, &import));
    contains(&told, &["1 sample of u.npy: expected 324.0 MB of memory, found too little"]);
    assert_eq!(folder.names(), ["u.npy"]);
    assert!(limited(&folder, 600_000, &import).status.success(), "one copy of the sample is enough");
}

#[test]
fn named_pipes_are_refused_and_not_waited_for() {
    let folder = trained("pipes");
    let pipe = |name: &str| {
        let _ = std::fs::remove_file(folder.at(name));
        assert!(Command::new("mkfifo").arg(folder.at(name)).status().unwrap().success());
    };
    pipe("pipe.npy");
    for arguments in [
        &["data", "check", "pipe.npy"][..],
        &["data", "import", "--output=u=pipe.npy", "--grid=4x4", "--out=imported"],
        &["predict", "run", "--input=pipe.npy", "--output=prediction.npy"],
    ] {
        contains(&refused(&folder, arguments), &["pipe.npy", "a named pipe"]);
    }
    pipe("set/pressure.npy");
    contains(&refused(&folder, &["data", "check", "set"]), &["set/pressure.npy", "a named pipe"]);
    contains(&refused(&folder, &["evaluate", "run"]), &["set/pressure.npy", "a named pipe"]);
    pipe("set/dataset.toml");
    contains(&refused(&folder, &["data", "check", "set"]), &["set/dataset.toml", "a named pipe"]);
}

#[test]
fn a_newline_in_a_name_does_not_break_the_sentence() {
    let folder = Folder::new("newline");
    folder.write("a\nb.npy", "text");
    contains(&folder.fails(&["data", "check", "a\nb.npy"]), &["a\\nb.npy"]);
    contains(&folder.fails(&["data", "check", "c\nd"]), &["c\\nd"]);
    contains(&folder.fails(&["train", "e\nf"]), &["e\\nf"]);
    wave_npy(&folder.at("u.npy"), &[5, 6, 4]);
    contains(&folder.fails(&["data", "import", "--output=u\nv=u.npy", "--grid=6x4", "--out=set"]), &["u\\nv"]);
}
