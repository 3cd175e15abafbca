//! `lamo paper`: the smoke grid brings out every artifact, continues where it was killed, and finds receipts wherever they lie.

use crate::support::{Folder, contains};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// One training after the other on one thread, so that a kill hits a cell.
const RUN: &[&str] = &["paper", "run", "--grid=smoke", "--threads=1"];

fn cells(list: &Value) -> (usize, usize) {
    let cells = list["cells"].as_array().unwrap();
    (cells.len(), cells.iter().filter(|cell| cell["done"] == true).count())
}

#[test]
fn the_smoke_grid_brings_out_every_artifact_and_every_drawing() {
    let folder = Folder::new("paper");
    contains(&folder.ok(RUN), &["cells, 0 done", "cells are done"]);
    let list = folder.ok_json(&["paper", "list", "--json"]);
    let (count, done) = cells(&list);
    assert_eq!((list["grid"].as_str(), done), (Some("smoke"), count), "the grid with finished cells is found");
    let shown = folder.ok_json(&["paper", "show", "--json", "--html=paper.html", "--pictures=figures"]);
    let artifacts = shown["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), list["artifacts"].as_array().unwrap().len());
    let page = folder.text("paper.html");
    for artifact in artifacts {
        let id = artifact["id"].as_str().unwrap();
        contains(&page, &[&format!("<section id=\"{id}\">")]);
        let file = |ending: &str| folder.at(&format!("figures/{id}{ending}"));
        assert!(file(".svg").is_file() || artifact["content"]["gap"].is_string(), "{id}");
        if file(".svg").is_file() {
            assert!(folder.is_png(&format!("figures/{id}.png")) && folder.is_png(&format!("figures/{id}-dark.png")));
        }
    }
    for id in ["F9", "F10", "F11", "theory"] {
        assert!(folder.at(&format!("figures/{id}.svg")).is_file(), "{id} is drawn");
    }
    let found = |id: &str| artifacts.iter().find(|artifact| artifact["id"] == id).unwrap();
    for id in ["F9", "F10"] {
        let models = found(id)["content"].as_array().unwrap();
        assert_eq!(models.len(), 2, "{id} has both models");
        for layer in models.iter().flat_map(|model| model["layers"].as_array().unwrap()) {
            assert!((0.0..=1.0).contains(&layer["row_entropy"].as_f64().unwrap()), "{id}: {layer}");
        }
        assert!(folder.text(&format!("figures/{id}.csv")).lines().count() > 2, "{id} as numbers");
    }
    let panels = found("F11")["content"].as_array().unwrap();
    assert!(panels.len() == 2 && panels.iter().all(|panel| panel["ours"].as_array().unwrap().len() == 2));
    for proposition in found("theory")["content"].as_array().unwrap() {
        for check in proposition["checks"].as_array().unwrap() {
            assert_eq!(check["holds"], true, "{}: {check}", proposition["title"]);
        }
    }
    // Pictures are text as well, in which any three letters may stand.
    let gaps = ["<i>missing</i>", ">NaN", "NaN "].map(|gap| page.contains(gap));
    assert_eq!(gaps, [false; 3], "every cell of the grid has a value");
    for address in ["src=\"http", "href=\"http", "url(http"] {
        assert!(!page.contains(address), "the page needs no network");
    }
}

#[test]
fn a_killed_run_continues_and_receipts_alone_count_as_done() {
    let folder = Folder::new("paper-killed");
    let chosen = [RUN, &["T2", "--benchmark=darcy", "--save-every=0"]].concat();
    let mut child = folder.command(&chosen).spawn().unwrap();
    let started = Instant::now();
    let receipts = || fs::read_dir(folder.at("results/paper")).map_or(0, Iterator::count);
    while receipts() < 2 {
        assert!(started.elapsed() < Duration::from_secs(120), "no receipts after two minutes");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap(); // SIGKILL cannot be handled
    child.wait().unwrap();
    let text = folder.ok(&chosen);
    assert!(!text.contains("8 cells, 0 done") && text.contains("all 8 cells are done"), "{text}");
    contains(&folder.ok(&chosen), &["8 cells, 8 done"]);
    fs::remove_dir_all(folder.at("runs")).unwrap();
    contains(&folder.ok(&chosen), &["8 cells, 8 done"]);
    contains(&folder.ok(&["paper", "show", "T2"]), &["grid smoke; epochs: darcy 1; seeds: 0; CPU", "0.0045"]);
    fs::rename(folder.at("results"), folder.at("elsewhere")).unwrap();
    contains(&folder.ok(&[&chosen[..], &["--known=elsewhere/paper"]].concat()), &["8 cells, 8 done"]);
}

#[test]
fn a_budget_stops_cleanly_and_the_same_command_continues() {
    let folder = Folder::new("paper-budget");
    let begun = Instant::now();
    let text = folder.ok(&[RUN, &["--budget=2s"]].concat());
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    if text.contains("the same command runs the rest") {
        let list = folder.ok_json(&["paper", "list", "--grid=smoke", "--json"]);
        let (count, done) = cells(&list);
        assert!(done < count);
        contains(&folder.ok(&[RUN, &["T1", "--benchmark=darcy"]].concat()), &["all 3 cells are done"]);
    }
    contains(&folder.fails(&["paper", "run", "T99"]), &["T99: expected one of T1"]);
    contains(&folder.fails(&["paper", "run", "--budget=soon"]), &["--budget: expected a time such as 90s"]);
    contains(&folder.fails(&["paper", "run", "--benchmark=burgers"]), &["a benchmark of the paper", "burgers"]);
    contains(&folder.fails(&["paper", "run", "--benchmark=darci"]), &["darci"]);
}

#[test]
fn cells_that_train_side_by_side_give_the_numbers_of_cells_one_by_one() {
    let numbers = |together: &str| {
        let folder = Folder::new(&format!("paper-together-{together}"));
        folder.ok(&[RUN, &["T2", "--benchmark=darcy", "--together", together]].concat());
        let files = fs::read_dir(folder.at("results/paper")).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.ends_with(".view.json"));
        names.sort();
        let error = |name: String| {
            let receipt = folder.json(&format!("results/paper/{name}"));
            (receipt["evaluation"]["relative_l2"].as_f64().map(f64::to_bits), name)
        };
        names.into_iter().map(error).collect::<Vec<_>>()
    };
    let (one_by_one, side_by_side) = (numbers("1"), numbers("3"));
    assert!(one_by_one.len() >= 8 && one_by_one.iter().all(|(error, _)| error.is_some()), "{one_by_one:?}");
    assert_eq!(one_by_one, side_by_side);
}
