//! Shipped experiments are what they say.

use lamo::experiment::{EXPERIMENTS, Experiment};
use lamo::layers::Parameters;
use lamo::models;
use lamo_physics::Grid;
use lamo_tensor::{Graph, Program};

#[test]
fn every_shipped_experiment_builds_with_the_parameter_count_of_the_official_classes() {
    for (name, expected) in [
        ("darcy-lamo", 1_145_986),
        ("navier-stokes-lamo", 10_061_314),
        ("elasticity-lamo", 1_953_577),
        ("plasticity-lamo", 3_791_044),
        ("airfoil-lamo", 1_144_825),
        ("pipe-lamo", 4_020_545),
        ("navier-stokes-lamo-paper", 3_130_114),
        ("elasticity-lamo-paper", 1_954_597),
        ("airfoil-lamo-paper", 2_215_721),
        ("pipe-lamo-paper", 4_028_705),
        ("darcy-transolver", 2_826_945),
        ("navier-stokes-transolver", 11_232_321),
        ("elasticity-transolver", 713_665),
        ("plasticity-transolver", 2_844_484),
        ("airfoil-transolver", 2_810_817),
        ("pipe-transolver", 3_073_985),
    ] {
        let found = Experiment::shipped(name).unwrap().parameter_count().unwrap();
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(EXPERIMENTS.len(), 16, "a shipped experiment is missing above");
}

#[test]
fn every_experiment_file_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(EXPERIMENTS.iter().any(|(known, _)| *known == name), "{name} has no row");
    }
}

#[test]
fn other_counts_of_the_authors_classes_agree_too() {
    for (name, changes, expected) in [
        ("darcy-lamo", "width = 128", 3_242_242),
        (
            "airfoil-lamo",
            "encoder = \"own\"\nmixer = \"mamba2\"\nhead_width = 32\ngroups = 1\nstates = 64\nexpand = 2",
            3_757_377,
        ),
        ("airfoil-lamo", "states = 64", 1_741_561),
        ("pipe-lamo", "mlp_ratio = 1", 3_757_377),
        ("elasticity-lamo", "encoder = \"own\"\nexpand = 1", 1_718_257),
    ] {
        let mut experiment = Experiment::shipped(name).unwrap();
        experiment.model.settings.extend(changes.parse::<models::Settings>().unwrap());
        assert_eq!(experiment.parameter_count().unwrap(), expected, "{name} with {changes}");
    }
}

#[test]
fn illegal_settings_are_refused_in_one_sentence_that_names_them() {
    for (name, changes, sentence) in [
        ("darcy-lamo", "colour = 3", "unknown field `colour`"),
        ("darcy-lamo", "mixer = \"fourier\"", "unknown variant `fourier`"),
        ("darcy-lamo", "directions = 3", "scans in [1, 2, 4] directions, found 3"),
        ("darcy-lamo", "padded = [84, 88]", "must cover 85 × 85"),
        ("darcy-lamo", "padded = [89, 88]", "in patches of 2"),
        ("darcy-lamo", "depth = 0", "depth must be at least 1"),
        ("darcy-lamo", "convolution = 4", "its width is odd, found 4"),
        ("elasticity-lamo", "latent = \"patches\"", "patches need a plane"),
        ("elasticity-lamo", "mixer = \"cross\"", "slices have no rows and columns"),
        ("elasticity-lamo", "slice_heads = 7", "width 128 does not divide into 7 slice heads"),
        ("elasticity-lamo", "head_width = 48", "do not divide into heads of 48"),
        ("elasticity-lamo", "directions = 4", "scans in [1, 2] directions, found 4"),
        ("plasticity-lamo", "latent = \"patches\"\nmixer = \"cross\"", "neither a time nor unified positions"),
        ("pipe-transolver", "unified_positions = 1", "at least 2 points a side"),
    ] {
        let mut experiment = Experiment::shipped(name).unwrap();
        experiment.model.settings.extend(changes.parse::<models::Settings>().unwrap());
        let refusal = experiment.parameter_count().unwrap_err().to_string();
        assert!(refusal.contains(sentence) && !refusal.contains('\n'), "{name} with {changes}: {refusal:?}");
    }
    let refusal = Experiment::parse("mine", "benchmark = \"darcy\"\nspeed = 1").unwrap_err().to_string();
    assert!(refusal.starts_with("experiment mine: unknown field `speed`"), "{refusal}");
}

/// The paper's switches, each turned once away from an official variant.
#[test]
fn every_switch_gives_a_model_with_finite_output_and_gradient() {
    let slices =
        "latent = \"slices\"\ndirections = 2\nwidth = 16\ndepth = 2\ntokens = 5\nslice_heads = 2\nhead_width = 8\n";
    let patches = "width = 16\ndepth = 2\nstates = 5\nhead_width = 8\n";
    let plane = Grid::Plane { rows: 7, columns: 5 };
    for (grid, base, change) in [
        (plane, patches, "directions = 1"),
        (plane, patches, "directions = 2"),
        (plane, patches, "discretisation = \"zoh\""),
        (plane, patches, "convolution = 5"),
        (plane, patches, "patch = 3"),
        (plane, patches, "mixer = \"hydra\"\ndirections = 2"),
        (plane, patches, "mixer = \"mamba2\"\ndirections = 1"),
        (plane, slices, "mixer = \"hydra\"\ndecoder = \"own\""),
        (plane, slices, "mixer = \"mamba2\"\nencoder = \"shared\"\ndecoder = \"own\""),
        (plane, slices, "mixer = \"hydra\"\nunified_positions = 3"),
        (Grid::Cloud { points: 11 }, slices, "mixer = \"hydra\"\ndirections = 1"),
        (Grid::Cloud { points: 11 }, slices, "mixer = \"mamba2\"\ndiscretisation = \"zoh\"\nconvolution = 4"),
        (Grid::Line { points: 9 }, slices, "mixer = \"mamba2\"\ntokens = 1"),
    ] {
        let mut settings: models::Settings = base.parse().unwrap();
        settings.extend(change.parse::<models::Settings>().unwrap());
        let task = models::Task { batch: 2, grid, space: 2, functions: 1, outputs: 2, time: false };
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = models::find("lamo").unwrap().build(&parameters, &task, &settings).unwrap();
        let out = model.forward(&models::Input::declare(&graph, &task));
        assert_eq!(out.shape().dims(), [2, grid.points(), 2], "{change}");
        graph.output("out", out);
        graph.output("gradient", graph.gradient(out.square().sum_all(), &[graph.parameters()])[0].unwrap());
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 2);
        let wave = |count: usize| -> Vec<f32> { (0..count).map(|i| (0.9 * i as f32).sin()).collect() };
        program.write("positions", &wave(4 * grid.points()));
        program.write("functions", &wave(2 * grid.points()));
        program.run();
        let finite = |name: &str| program.read(name).iter().all(|value| value.is_finite());
        assert!(finite("out") && finite("gradient"), "{change}");
        assert!(program.read("gradient").iter().any(|&slope| slope != 0.0), "{change}");
    }
}
