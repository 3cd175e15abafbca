//! `lamo list`, `lamo doctor`, `lamo parity`, and wrong usage.

use crate::support::{Folder, contains, ok, sentence};
use crate::weights::{FIXTURE, fixtures, put_together, take_apart};
use std::fs;

#[test]
fn the_list_names_every_model_and_wrong_usage_exits_with_2() {
    let folder = Folder::new("list");
    let text = folder.ok(&["list"]);
    let models = lamo::network::models::MODELS;
    assert!(models.iter().all(|row| text.contains(row.summary)), "{text}");
    let report = folder.ok_json(&["list", "--json"]);
    assert_eq!(report["models"].as_array().unwrap().len(), models.len());
    for arguments in [&["parity"][..], &["import", "file"], &["export-weights"], &["lits"], &["list", "--jsno"]] {
        assert_eq!(folder.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn doctor_says_whether_a_gpu_can_be_used() {
    let folder = Folder::new("doctor");
    contains(&folder.ok(&["doctor"]), &["cpu", "thread", "--device cuda"]);
    let report = folder.ok_json(&["doctor", "--json"]);
    assert!(report["threads"].as_u64().unwrap() > 0 && report["gpus"].is_array(), "{report}");
    assert_eq!(report["cards"], report["gpus"], "the name of 0.1 still works");
}

/// The path of a fixture of the repository.
fn fixture(name: &str) -> String {
    fixtures().join(name).display().to_string()
}

#[test]
fn parity_holds_for_models_and_operators_and_skips_unknown_fixtures() {
    let folder = Folder::new("parity");
    folder.write("unknown.json", fs::read_to_string(fixture("ops/rel_l2.json")).unwrap().replace("rel_l2", "unknown"));
    folder.write("unknown.safetensors", fs::read(fixture("ops/rel_l2.safetensors")).unwrap());
    let lines = folder.ok(&["parity", &fixture(FIXTURE), &fixture("ops/mixer_ss2d_a.json"), "unknown.json"]);
    let verdicts: Vec<_> = lines.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert!(verdicts[..2] == ["pass", "pass"] && verdicts[2].starts_with("skip: "), "{lines}");

    let report = folder.ok_json(&["parity", &fixture(FIXTURE), "--json"]);
    assert_eq!(report["passed"], true);
    let measures = report["fixtures"][0]["measures"].as_array().unwrap();
    let subjects: Vec<_> = measures.iter().map(|measure| &measure["subject"]).collect();
    assert_eq!(subjects, ["output", "loss", "gradient", "double", "matrices"]);
}

/// Copies the fixture and changes one of its files, or removes it.
fn tamper(folder: &Folder, file: &str, change: impl Fn(Vec<u8>) -> Option<Vec<u8>>) {
    fs::create_dir_all(folder.at("fixture")).unwrap();
    for name in ["config.json", "params.safetensors", "io.safetensors"] {
        let bytes = fs::read(fixtures().join(FIXTURE).join(name)).unwrap();
        let bytes = if name == file { change(bytes) } else { Some(bytes) };
        match bytes {
            Some(bytes) => folder.write(&format!("fixture/{name}"), bytes),
            None => drop(fs::remove_file(folder.at(&format!("fixture/{name}")))),
        }
    }
}

#[test]
fn parity_on_a_broken_fixture_gives_one_sentence() {
    let folder = Folder::new("broken");
    let replaced = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| Some(String::from_utf8(bytes).unwrap().replace(from, to).into_bytes())
    };
    let without = |name: &'static str| {
        move |bytes: Vec<u8>| {
            let (header, mut tensors) = take_apart(&bytes);
            tensors.remove(name).unwrap();
            Some(put_together(&header, &tensors))
        }
    };
    type Change = Box<dyn Fn(Vec<u8>) -> Option<Vec<u8>>>;
    let changes: [(&str, Change, &str); 9] = [
        ("config.json", Box::new(|_| None), "config.json"),
        ("config.json", Box::new(replaced("irregular_unshared", "regular_unshared")), "regular_unshared"),
        ("config.json", Box::new(replaced("n_hidden", "n_hide")), "n_hidden"),
        ("config.json", Box::new(replaced("{", "")), "config.json"),
        ("params.safetensors", Box::new(|_| None), "params.safetensors"),
        ("params.safetensors", Box::new(without("blocks.0.ln_1.bias")), "blocks.0.ln_1.bias"),
        ("io.safetensors", Box::new(|bytes| Some(bytes[..bytes.len() / 2].to_vec())), "short"),
        ("io.safetensors", Box::new(without("target")), "target"),
        ("io.safetensors", Box::new(without("grad.param.blocks.0.ln_1.bias")), "grad.param.blocks.0.ln_1.bias"),
    ];
    for (file, change, word) in changes {
        tamper(&folder, file, change);
        contains(&folder.fails(&["parity", "fixture"]), &[word]);
    }
    contains(&folder.fails(&["parity", "absent"]), &["absent"]);
}

#[test]
fn parity_fails_beyond_its_tolerance_and_names_the_subject() {
    let folder = Folder::new("tolerance");
    for (key, subject) in
        [("out_f64", "output"), ("loss", "loss"), ("grad.param.placeholder", "gradient"), ("grad.in.x", "gradient")]
    {
        tamper(&folder, "io.safetensors", |bytes| {
            let (header, mut tensors) = take_apart(&bytes);
            let last = tensors[key].len() - 1;
            tensors.get_mut(key).unwrap()[last] ^= 0x80; // the sign of the last element
            Some(put_together(&header, &tensors))
        });
        let output = folder.run(&["parity", "fixture"]);
        assert_eq!(sentence(&output), "1 of 1 fixtures fail: fixture", "{key}");
        let line = String::from_utf8(output.stdout).unwrap();
        assert!(line.trim_end().ends_with("FAIL"), "{key}: {line}");
        let found = line.split("  ").find(|part| part.trim().starts_with(subject)).unwrap_or_default();
        assert!(found.contains(" > "), "{key}: {line}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_one_sentence() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return }; // Linux only
    let folder = Folder::new("full");
    let output = folder.command(&["list"]).stdout(full).output().unwrap();
    contains(&sentence(&output), &["standard output: cannot be written", "No space left"]);
    ok(&folder.run(&["list"]));
}
