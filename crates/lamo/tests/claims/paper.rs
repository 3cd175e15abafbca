//! `lamo::paper`: every published number is there, every cell of every grid can be built, and equal cells are one.

use lamo::paper::{self, Content, Effort, Options, Results, published};
use lamo_tensor::Device;
use std::collections::HashSet;

fn artifacts(effort: Effort) -> Vec<paper::Artifact> {
    paper::artifacts(&Options { effort, seeds: 1 })
}

#[test]
fn the_artifacts_show_every_published_error() {
    let (listed, compared) = published::counts();
    assert_eq!((listed, compared), (511, 511), "numbers of the file, and numbers compared with the paper");
    let shown = |id: &str| -> usize {
        let found = artifacts(Effort::Full).into_iter().find(|artifact| artifact.id == id).unwrap();
        match found.content {
            Content::Table(table) => {
                table.rows.iter().flat_map(|row| &row.entries).filter(|entry| entry.published.is_some()).count()
            }
            Content::Curves(panels) => {
                panels.iter().flat_map(|panel| &panel.series).map(|series| series.published.len()).sum()
            }
            _ => 0,
        }
    };
    // Errors only: Table 1 has six increments, Tables 7 and 8 as many deviations, Figure 2 repeats ten values of Figure 8.
    let expected = [("T1", 106), ("F2", 39), ("T2", 24), ("T3", 18), ("T7", 24), ("T8", 12), ("F8", 60), ("T11", 8)];
    for (id, count) in expected {
        assert_eq!(shown(id), count, "{id}");
    }
}

#[test]
fn every_cell_of_every_grid_can_be_built_and_has_the_published_number_of_parameters() {
    for effort in Effort::ALL {
        let artifacts = artifacts(effort);
        let jobs = paper::plan(&artifacts, &Results::default(), Device::Cpu).unwrap();
        let keys: HashSet<&str> = jobs.iter().map(|job| job.cell.key.as_str()).collect();
        assert_eq!(keys.len(), jobs.len(), "{effort:?}: a cell is planned once");
        assert!(jobs.iter().all(|job| job.seconds.is_finite() && job.seconds > 0.0));
        let parameters = |command: &str| {
            let job = jobs.iter().find(|job| job.cell.cell.command().contains(command));
            job.unwrap_or_else(|| panic!("{effort:?} has no {command}")).cell.experiment.parameter_count().unwrap()
        };
        if effort == Effort::Full {
            for (command, count) in [
                ("patch=8 --set model.settings.states=1 --set model.settings.expand=1", 410_306),
                ("patch=2 --set model.settings.states=64 --set model.settings.expand=1", 769_154),
                ("darcy --model lamo --preset paper --set train.evaluate=50 --set model.settings.depth=24", 3_187_330),
                (
                    "darcy --model lamo --preset paper --set train.evaluate=50 --set model.settings.width=256",
                    10_285_570,
                ),
                (
                    "darcy --model transolver --preset paper --set train.evaluate=50 --set model.settings.depth=12",
                    4_215_265,
                ),
                (
                    "airfoil --model lamo --preset paper --set train.evaluate=50 --set model.settings.tokens=512",
                    1_152_441,
                ),
                (
                    "airfoil --model transolver --preset paper --set train.evaluate=50 --set model.settings.tokens=512",
                    2_871_745,
                ),
                (
                    "navier-stokes --model lamo --preset paper --set train.evaluate=50 --set model.settings.depth=6",
                    7_615_234,
                ),
                (
                    "elasticity --model lamo --preset paper --set train.evaluate=50 --set model.settings.directions=1",
                    1_679_145,
                ),
                (
                    "pipe --model lamo --preset paper --set train.evaluate=50 --set model.settings.encoder=shared",
                    1_946_697,
                ),
            ] {
                assert_eq!(parameters(command), count, "{command}");
            }
        }
        // Built on the grids of the benchmarks; another stride has another number of patches.
        for job in jobs.iter().filter(|job| !job.cell.cell.changes.iter().any(|change| change.contains("stride="))) {
            let built = job.cell.experiment.parameter_count();
            assert!(built.is_ok(), "{}: {:?}", job.cell.cell.command(), built.err());
        }
    }
}

#[test]
fn smaller_grids_share_their_test_samples_between_all_cells_of_a_benchmark() {
    for effort in Effort::ALL {
        for artifact in artifacts(effort).iter().filter(|artifact| ["F2", "F8", "T2", "T7"].contains(&artifact.id)) {
            for cell in artifact.cells() {
                let data = cell.resolve().unwrap().experiment.data;
                let first = if data.first_test == 0 { data.train } else { data.first_test };
                let whole = cell.benchmark != "darcy" || data.settings["canonical"].as_bool().is_some();
                assert!(whole && first >= data.train, "{}", cell.command());
                let base = Options { effort, seeds: 1 };
                let main = paper::artifacts(&base).into_iter().find(|artifact| artifact.id == "T8").unwrap();
                let reference =
                    main.cells().into_iter().find(|other| other.benchmark == cell.benchmark).unwrap().clone();
                let reference = reference.resolve().unwrap().experiment.data;
                let start = if reference.first_test == 0 { reference.train } else { reference.first_test };
                assert_eq!((first, data.test), (start, reference.test), "{}", cell.command());
            }
        }
    }
}

#[test]
fn a_receipt_counts_for_its_cell_however_often_the_run_was_tested() {
    let folder = crate::rooms::workspace().join("results");
    let results = Results::gather(&[folder]);
    let cell = |benchmark: &str, model: &str, seed: u64| {
        let main = artifacts(Effort::Full).into_iter().find(|artifact| artifact.id == "T1").unwrap();
        let found = main.cells().into_iter().find(|cell| (cell.benchmark, cell.model) == (benchmark, model)).cloned();
        found.unwrap().seeded(seed).resolve().unwrap()
    };
    // The cells are tested every 50 epochs. Of these runs of 500 epochs, the first was tested every 20 epochs, the second has the
    // split of its data, and the others were tested at their end.
    for (benchmark, model, error) in [
        ("airfoil", "lamo", 0.00375),
        ("darcy", "lamo", 0.00468),
        ("darcy", "transolver", 0.00535),
        ("elasticity", "lamo", 0.00479),
        ("elasticity", "transolver", 0.00572),
        ("airfoil", "transolver", 0.00458),
        ("pipe", "lamo", 0.00631),
    ] {
        let receipt = results.of(&cell(benchmark, model, 0));
        let receipt = receipt.unwrap_or_else(|| panic!("results/{benchmark}-{model}.json is a cell of Table 1"));
        assert!((receipt.evaluation.relative_l2 - error).abs() < 1e-5, "{benchmark} {model}");
        assert!(results.of(&cell(benchmark, model, 1)).is_none(), "another seed is another cell");
    }
}
