//! Failures with `--json`: one line of JSON on standard output with the kind, beside the sentence on standard error.

use crate::support::{Folder, contains, sentence};
use serde_json::Value;
use std::process::Output;

/// The error line of a failed job, which is the last line of its standard output.
fn error_line(output: &Output) -> Value {
    let message = sentence(output);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&line["event"], &line["message"]), (&"error".into(), &message.into()), "{text}");
    line
}

#[test]
fn a_failure_has_its_kind_and_its_sentence_in_one_line_of_json() {
    let folder = Folder::new("errors");
    folder.make_darcy("0", "set");
    folder.write("text.npy", "text");
    for (arguments, kind) in [
        (&["train", "dracy"][..], "missing"),
        (&["train", "darcy", "--set=train.epoch=3"], "bad-input"),
        (&["train", "darcy", "--save-every=-1"], "bad-input"),
        (&["train", "set", "--out=set"], "conflict"),
        (&["train", "darcy", "--device=cuda:99"], "device"),
        (&["train", "--resume=nowhere"], "missing"),
        (&["evaluate", "nowhere"], "missing"),
        (&["evaluate", "nowhere", "--out=set"], "conflict"),
        (&["evaluate", "--verify=nowhere.json"], "missing"),
        (&["compare", "nowhere"], "missing"),
        (&["compare", "nowhere", "--out=x.jpg"], "bad-input"),
        (&["data", "check", "nowhere"], "missing"),
        (&["data", "check", "text.npy"], "bad-input"),
        (&["data", "check", "set", "--picture=no/set.png"], "missing"),
        (&["bench", "points", "--from=0"], "bad-input"),
        (&["bench", "step", "--benchmark=dracy"], "missing"),
    ] {
        let output = folder.run(&[arguments, &["--json"]].concat());
        let line = error_line(&output);
        assert_eq!(line["kind"], kind, "{arguments:?}: {line}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1, "{arguments:?}");
        let plain = folder.run(arguments);
        assert!(plain.stdout.is_empty(), "without --json there is no JSON: {plain:?}");
        assert_eq!(line["message"].as_str(), Some(sentence(&plain).as_str()));
    }
}

#[test]
fn a_report_that_describes_the_failure_is_the_only_object() {
    let folder = Folder::new("one-object");
    let output = folder.run(&["parity", "nowhere", "--json"]);
    contains(&sentence(&output), &["nowhere"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["passed"], &report["fixtures"][0]["verdict"]), (&false.into(), &"broken".into()));
}

#[test]
fn wrong_usage_exits_with_2_and_prints_no_json() {
    let folder = Folder::new("usage");
    for arguments in [&["evaluate", "--json"][..], &["train", "--json"], &["train", "darcy", "--device=gpu", "--json"]]
    {
        let output = folder.run(arguments);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments:?}");
    }
}
