//! Shipped experiments are what they say.

use crate::numbers::loads;
use crate::support::Folder;
use crate::validation::two_outputs;
use lamo::data::Recipe;
use lamo::experiment::benchmarks::{self, BENCHMARKS};
use lamo::experiment::{EXPERIMENTS, Experiment, OWN, Preset, Request, Shipped};
use lamo::network::models::{self, MODELS};
use lamo::network::{Input, Mode, Parameters};
use lamo::task::{Field, Task};
use lamo::workflow::{self, ImportRequest, ImportSource, Session, TrainRequest};
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Program};
use std::ffi::OsString;

/// Columns of docs/models.md.
const COLUMNS: [&str; 6] = ["darcy", "navier-stokes", "elasticity", "plasticity", "airfoil", "pipe"];

/// Parameters of the official classes. A complex number counts twice; the library's own counter counts it once.
const OFFICIAL: &[(&str, usize)] = &[
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
    ("darcy-fno", 9_466_817),
    ("navier-stokes-fno", 9_467_969),
    ("airfoil-fno", 9_466_689),
    ("pipe-fno", 9_466_689),
    ("elasticity-ffno", 25_279_875),
    ("navier-stokes-ffno", 155_381),
    ("darcy-ffno", 6_357_889),
    ("plasticity-ffno", 6_375_428),
    ("airfoil-ffno", 396_577),
    ("pipe-ffno", 6_342_273),
    ("elasticity-resnet", 1_395_235),
    ("navier-stokes-resnet", 2_416_257),
    ("darcy-resnet", 2_429_825),
    ("plasticity-resnet", 2_447_364),
    ("airfoil-resnet", 2_413_697),
    ("pipe-resnet", 2_413_697),
    ("elasticity-unet", 5_574_531),
    ("navier-stokes-unet", 276_964_353),
    ("darcy-unet", 69_257_473),
    ("plasticity-unet", 69_275_012),
    ("airfoil-unet", 4_331_137),
    ("pipe-unet", 69_241_857),
    ("elasticity-lsm", 6_056_163),
    ("navier-stokes-lsm", 19_197_121),
    ("darcy-lsm", 19_195_969),
    ("plasticity-lsm", 4_815_140),
    ("airfoil-lsm", 4_812_769),
    ("pipe-lsm", 4_812_769),
    ("elasticity-ufno", 233_162_121),
    ("navier-stokes-ufno", 44_100_675),
    ("darcy-ufno", 11_041_251),
    ("plasticity-ufno", 176_448_780),
    ("airfoil-ufno", 11_029_155),
    ("pipe-ufno", 176_349_315),
    ("elasticity-uno", 38_040_919),
    ("navier-stokes-uno", 84_217_237),
    ("darcy-uno", 36_801_557),
    ("plasticity-uno", 159_569_432),
    ("airfoil-uno", 21_068_885),
    ("pipe-uno", 883_053_333),
    ("darcy-galerkin", 1_112_193),
    ("navier-stokes-galerkin", 4_391_681),
    ("elasticity-galerkin", 1_096_065),
    ("plasticity-galerkin", 866_564),
    ("airfoil-galerkin", 832_897),
    ("darcy-gnot", 1_889_674),
    ("navier-stokes-gnot", 1_891_978),
    ("elasticity-gnot", 4_870_553),
    ("plasticity-gnot", 2_925_212),
    ("airfoil-gnot", 2_891_161),
    ("darcy-factformer", 1_782_913),
    ("navier-stokes-factformer", 7_064_321),
    ("plasticity-factformer", 1_537_284),
    ("airfoil-factformer", 97_505),
    ("darcy-oformer", 2_556_321),
    ("navier-stokes-oformer", 1_851_361),
    ("elasticity-oformer", 2_556_225),
    ("plasticity-oformer", 1_851_076),
    ("airfoil-oformer", 2_556_225),
    ("pipe-oformer", 2_556_225),
    ("darcy-swin", 7_464_321),
    ("navier-stokes-swin", 7_450_753),
    ("plasticity-swin", 7_482_244),
    ("darcy-htnet", 13_368_532),
    ("navier-stokes-htnet", 1_062_710),
    ("darcy-ono", 2_029_137),
    ("navier-stokes-ono", 1_116_161),
    ("elasticity-ono", 1_104_833),
    ("plasticity-ono", 77_476),
    ("plasticity-ono-authors", 1_136_644),
    ("airfoil-ono", 837_265),
    ("pipe-galerkin", 1_096_577),
    ("pipe-gnot", 4_871_065),
    ("pipe-factformer", 1_767_297),
    ("pipe-ono", 1_599_297),
    ("airfoil-swin", 7_448_705),
    ("pipe-swin", 7_448_705),
    ("elasticity-mwt", 186_604),
    ("navier-stokes-mwt", 70_890),
    ("darcy-mwt", 45_674),
    ("plasticity-mwt", 32_630),
    ("airfoil-mwt", 26_186),
    ("pipe-mwt", 30_058),
    ("elasticity-deeponet", 1_025_025),
    ("navier-stokes-deeponet", 11_013_121),
    ("darcy-deeponet", 2_376_961),
    ("plasticity-deeponet", 5_316_612),
    ("airfoil-deeponet", 6_298_113),
    ("pipe-deeponet", 9_047_553),
];

#[test]
fn every_shipped_experiment_builds_and_the_official_classes_have_as_many_parameters() {
    for Shipped { name, .. } in EXPERIMENTS.iter() {
        let count = Experiment::shipped(name).and_then(|experiment| experiment.parameter_count());
        let count = count.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        if let Some((_, official)) = OFFICIAL.iter().find(|(known, _)| known == name) {
            assert_eq!(count, *official, "{name}");
        }
    }
    for (name, _) in OFFICIAL.iter().copied() {
        assert!(EXPERIMENTS.iter().any(|shipped| shipped.name == name), "{name} is not shipped");
    }
}

#[test]
fn the_essence_of_an_experiment_has_what_was_chosen_and_nothing_that_goes_without_saying() {
    let of = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        Request { benchmark: Some("darcy"), changes: &changes, ..Request::default() }.resolve().unwrap().essence()
    };
    let plain = of(&[]);
    for default in ["symmetries", "balanced", "evaluate", "alpha", "convolution", "folder"] {
        assert!(!plain.contains(default), "{default} goes without saying in {plain}");
    }
    assert!(plain.contains("epochs = 500") && plain.contains("canonical = true"), "{plain}");
    assert_eq!(of(&["data.folder=elsewhere", "train.clip=0.1"]), plain);
    let others =
        ["train.balanced=true", "data.settings.alpha=3.0", "model.settings.depth=2", "seed=1", "precision=f32"];
    for change in others {
        assert_ne!(of(&[change]), plain, "{change}");
    }
}

#[test]
fn every_file_of_the_folder_of_experiments_is_that_of_a_benchmark_or_of_your_own_data() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../experiments";
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    found.sort();
    let names = BENCHMARKS.iter().map(|row| row.name).chain([OWN]);
    let mut expected: Vec<_> = names.map(|name| OsString::from(format!("{name}.toml"))).collect();
    expected.sort();
    assert_eq!(found, expected);
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
fn the_classes_have_their_published_counts_on_other_tasks() {
    let plane = |side: usize| Grid::Plane { rows: side, columns: side };
    let cloud = Grid::Cloud { points: 50 };
    for (model, settings, task, expected) in [
        ("gnot", "width = 256\ndepth = 8\nmlp_ratio = 2", Task::plain(cloud, 3, 7, 4), 19_385_116), // cars
        (
            "oformer", // Plasticity with all times at once
            "width = 96\ndepth = 5\nheads = 1\nlatent = 384\nsteps = 20",
            Task::plain(plane(31), 2, 1, 80),
            1_851_076,
        ),
        (
            "htnet", // Navier–Stokes, one commit before the sizes of the recipe
            "width = 20\ndepths = [2, 4, 2]\nlayers = 4\ncoordinates = false",
            Task::plain(plane(64), 2, 10, 1),
            1_219_389,
        ),
    ] {
        let count = models::find(model).unwrap().parameter_count(&task, &settings.parse().unwrap()).unwrap();
        assert_eq!(count, expected, "{model}");
    }
}

#[test]
fn illegal_settings_are_refused_in_one_sentence_that_names_them() {
    for (name, changes, sentence) in [
        ("darcy-lamo", "colour = 3", "unknown field `colour`"),
        ("darcy-lamo", "mixer = \"fourier\"", "setting mixer: unknown variant `fourier`"),
        ("darcy-lamo", "width = -8", "model lamo: setting width: invalid value: integer `-8`"),
        ("darcy-lamo", "directions = 3", "expected 1, 2, 4 or 6 directions, found 3"),
        ("darcy-lamo", "directions = 6", "a plane is scanned in 1, 2 or 4 directions, found 6; set directions = 4"),
        ("darcy-lamo", "scan_heads = 7", "128 inner channels do not divide into 7 scan heads"),
        ("darcy-lamo", "mixer = \"hydra\"", "scans patches in 1 or 2 directions, found 4"),
        ("darcy-lamo", "padded = [84, 88]", "must cover 85 × 85"),
        ("darcy-lamo", "padded = [89, 88]", "in patches of 2"),
        ("darcy-lamo", "depth = 0", "depth must be at least 1"),
        ("darcy-lamo", "convolution = 4", "its width is odd, found 4"),
        ("elasticity-lamo", "latent = \"patches\"", "patches need a line, a plane or a volume"),
        ("elasticity-lamo", "mixer = \"cross\"", "slices have no rows and columns"),
        ("elasticity-lamo", "slice_heads = 7", "width 128 does not divide into 7 slice heads"),
        ("elasticity-lamo", "head_width = 48", "do not divide into heads of 48"),
        ("elasticity-lamo", "directions = 4\ntokens = 32", "tokens that fill a square, such as 64, found 32"),
        ("plasticity-lamo", "latent = \"patches\"\nmixer = \"cross\"", "neither a time nor unified positions"),
        ("pipe-transolver", "unified_positions = 1", "has 2 to 256 points a side, found 1"),
        ("pipe-galerkin", "heads = 7", "width 128 does not divide into 7 heads"),
        ("pipe-factformer", "extents = [43, 43, 9]", "extents: expected [0, 0, 0] for a grid that has axes"),
        ("darcy-oformer", "latent = 3", "latent: expected a multiple of 2, found 3"),
        ("navier-stokes-oformer", "steps = 3", "steps: expected a divisor of the 1 outputs, found 3"),
        ("darcy-oformer", "width = 3", "width: expected at least 4 channels in a head, found 3"),
        ("airfoil-htnet", "coordinates = false", "needs coordinates = true"),
        ("airfoil-htnet", "windows = [64, 4, 4]", "window: expected at most 32 points a side, found 64"),
        ("airfoil-htnet", "windows = [31, 29, 27]", "windows: expected sides that fit into planes of 4096 tokens"),
        ("airfoil-swin", "window = 1000", "window: expected at most 32 points a side, found 1000"),
        ("airfoil-htnet", "modes = 40", "modes: expected at most 35 on this grid, found 40"),
        ("airfoil-htnet", "stride = 4", "stride: expected at most patch = 3"),
        ("airfoil-htnet", "stride = 2", "patch = 3, stride = 2 and padding = 5"),
        ("airfoil-htnet", "depths = [1, 1]", "depths: expected one positive number for each level"),
        ("pipe-galerkin", "depth = 0", "model galerkin: depth: expected at least 1, found 0"),
        ("pipe-ono", "heads = 7", "model ono: width 128 does not divide into 7 heads"),
        ("pipe-ono", "basis = 65", "model ono: basis is at most 64, found 65"),
        ("pipe-ono", "landmarks = 0", "model ono: landmarks must be at least 1, found 0"),
    ] {
        let mut experiment = Experiment::shipped(name).unwrap();
        experiment.model.settings.extend(changes.parse::<models::Settings>().unwrap());
        let refusal = experiment.parameter_count().unwrap_err().to_string();
        assert!(refusal.contains(sentence) && !refusal.contains('\n'), "{name} with {changes}: {refusal:?}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    for (text, sentence) in [
        ("[train]\nepoch = 3", "experiment mine: unknown key train.epoch; did you mean train.epochs?"),
        ("epochs = 3", "experiment mine: unknown key epochs; did you mean train.epochs?"),
        (
            "[data]\nsettings = { resolutoin = 5 }",
            "experiment mine: unknown key data.settings.resolutoin; did you mean data.settings.resolution?",
        ),
        (
            "[model]\nsettings = { wdith = 5 }",
            "experiment mine: unknown key model.settings.wdith; did you mean model.settings.width?",
        ),
        ("[data]\nfoldr = \"here\"", "experiment mine: unknown key data.foldr; did you mean data.folder?"),
        ("seeed = 3", "experiment mine: unknown key seeed; did you mean seed?"),
        ("[model]\nwidth = 5", "experiment mine: unknown key model.width; did you mean model.settings.width?"),
        ("[trian]\nepochs = 5", "experiment mine: unknown key trian.epochs; did you mean train.epochs?"),
        ("foo = 3", "experiment mine: unknown key foo; an experiment has benchmark, data, model, precision, preset, "),
        ("[train]\nbogus = 3", "experiment mine: unknown key train.bogus; train has average, balanced, batch, clip, "),
        (
            "[model]\nsettings = { turbulence = 5 }",
            "experiment mine: unknown key model.settings.turbulence; model.settings has ",
        ),
        ("[train]\nbatch = 0", "experiment mine: train.batch: expected a number from 1 to 1000000000, found 0"),
        ("[train]\nrate = -1.0", "train.rate: expected a number above 0, found -1"),
        (
            "[train]\nrate = \"fast\"",
            "experiment mine: invalid type: string \"fast\", expected a number, in `train.rate`",
        ),
        (
            "[best.lamo.train]\nepochs = 3",
            "experiment mine: unknown key best.lamo.train.epochs; presets are shipped with a benchmark: lamo train BENCHMARK ",
        ),
        ("train = 3", "experiment mine: train is a table, expected a value for one of its keys: average, balanced, "),
        ("[train\nbatch = 0", "experiment mine, line 2: unclosed table"),
        ("precision = \"f8\"", "precision \"f8\" does not exist"),
        ("[data]\nproblem = \"darcyy\"", "data.problem: unknown problem `darcyy`: expected one of darcy, "),
        (
            "[data]\npast = 4",
            "data.past: expected 1 unless train.loss = relative-l2-of-frames or data.time = roll-out, found 4",
        ),
    ] {
        let refusal = Experiment::parse("mine", &format!("benchmark = \"darcy\"\n{text}")).unwrap_err().to_string();
        assert!(refusal.contains(sentence) && !refusal.contains('\n'), "{text:?}: {refusal:?}");
    }
}

#[test]
fn a_number_too_large_is_refused_with_the_largest() {
    for change in ["seed=18446744073709551615", "train.epochs=99999999999999999999"] {
        let request = Request { benchmark: Some("darcy"), changes: &[change.to_owned()], ..Request::default() };
        let (key, value) = change.split_once('=').unwrap();
        let expected = format!("{key}: expected a whole number, 9223372036854775807 at most, found {value}");
        assert_eq!(request.resolve().unwrap_err().to_string(), expected);
    }
}

#[test]
fn layers_count_from_defaults_to_single_changes() {
    let resolve = |preset: Preset, text: Option<&str>, changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let file = text.map(|text| ("mine", text));
        Request { benchmark: Some("darcy"), preset: Some(preset), file, changes: &changes, ..Request::default() }
            .resolve()
            .unwrap()
    };
    let paper = resolve(Preset::Paper, None, &[]);
    let shipped = Experiment::shipped("darcy-lamo").unwrap();
    assert_eq!(paper, shipped);
    assert_eq!((paper.data.train, paper.data.test, paper.train.epochs), (1000, 200, 500));
    assert_eq!(paper.data.settings["resolution"].as_integer(), Some(421));
    let quick = resolve(Preset::Quick, None, &[]);
    assert!(quick.train.epochs < 100 && quick.data.settings["resolution"].as_integer() < Some(100));
    let filed = resolve(Preset::Quick, Some("seed = 3\n[train]\nepochs = 7"), &["train.epochs=9"]);
    assert_eq!((filed.seed, filed.train.epochs, filed.train.batch), (3, 9, quick.train.batch));
    for experiment in [&paper, &quick, &filed] {
        assert_eq!(
            Experiment::parse("again", &experiment.text()).unwrap(),
            *experiment,
            "what is printed is the whole"
        );
    }
}

/// A table `best` in the file of a benchmark must come with its measurement: see docs/results.md.
#[test]
fn the_preset_best_is_refused_where_nothing_was_chosen_and_differs_from_the_recipe_where_it_was() {
    for name in BENCHMARKS.iter().map(|row| row.name) {
        let request = |preset| Request { benchmark: Some(name), preset: Some(preset), ..Request::default() };
        let paper = request(Preset::Paper).resolve().unwrap();
        match request(Preset::Best).resolve() {
            Ok(best) => assert_ne!((&best.train, &best.model), (&paper.train, &paper.model), "{name}: a silent copy"),
            Err(refusal) => {
                let told = refusal.to_string();
                assert!(
                    told.contains(&format!("{name} has no preset best")) && told.contains("--preset paper"),
                    "{told}"
                );
            }
        }
        // A run of another time with this preset still opens.
        let record = Experiment { preset: Preset::Best, ..paper };
        let text = record.text();
        let opened = Request { file: Some(("record", &text)), recorded: true, ..Request::default() }.resolve();
        assert_eq!(opened.unwrap(), record);
    }
}

#[test]
fn every_benchmark_has_a_quick_preset_for_every_model_it_has_a_recipe_for() {
    for name in EXPERIMENTS.iter().map(|shipped| &shipped.name) {
        let full = Experiment::shipped(name).unwrap();
        let (benchmark, model) = (full.benchmark.as_str(), full.model.name.as_str());
        let request = Request {
            benchmark: Some(benchmark),
            model: Some(model),
            preset: Some(Preset::Quick),
            ..Request::default()
        };
        let quick = request.resolve().unwrap();
        assert!(quick.parameter_count().unwrap() < full.parameter_count().unwrap() / 3, "{name} is not quick");
        let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let settings = quick.data.settings.iter().map(|(key, value)| format!("{key}={}", text(value)));
        let settings: Vec<String> = settings.collect();
        let grid = Recipe::named(&quick.data.problem, &settings, 0, 1).unwrap().manifest().grid;
        let task = quick.benchmark().unwrap().task().on(grid);
        let built = models::find(model).unwrap().parameter_count(&task, &quick.model.settings);
        assert!(built.is_ok(), "{name} on its quick data: {}", built.unwrap_err());
    }
}

#[test]
fn a_benchmark_without_a_recipe_for_a_model_names_the_models_that_have_one() {
    for (row, benchmark) in MODELS.iter().flat_map(|row| BENCHMARKS.iter().map(move |benchmark| (row, benchmark.name)))
    {
        let request = Request { benchmark: Some(benchmark), model: Some(row.name), ..Request::default() };
        if (row.recipe)(benchmark).is_some() {
            continue;
        }
        if !benchmarks::find(benchmark).unwrap().published {
            continue; // models have the sizes for a user's data
        }
        let able = MODELS.iter().filter(|row| (row.recipe)(benchmark).is_some()).map(|row| row.name);
        let able = able.collect::<Vec<_>>().join(", ");
        let expected = format!("{benchmark}: there is no recipe for model {}; there are {able}", row.name);
        assert_eq!(request.resolve().unwrap_err().to_string(), expected);
    }
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
        (Grid::Line { points: 9 }, patches, "directions = 2\nconvolution = 5"),
        (Grid::Line { points: 9 }, patches, "mixer = \"hydra\"\ndirections = 1\npatch = 4"),
    ] {
        let mut settings: models::Settings = base.parse().unwrap();
        settings.extend(change.parse::<models::Settings>().unwrap());
        let task = Task::plain(grid, 2, 1, 2);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = models::find("lamo").unwrap().build(&parameters, &task, &settings).unwrap();
        let out = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
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

/// Runs with fewer or more training samples than published are tested on the published test samples.
#[test]
fn another_number_of_training_samples_leaves_the_test_samples_as_they_are() {
    let data = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let request = Request { benchmark: Some("darcy"), changes: &changes, ..Request::default() };
        request.resolve().unwrap().data
    };
    assert_eq!((data(&[]).train, data(&[]).first_test), (1000, 0), "the last samples, from 1000 on");
    for train in [200, 1500] {
        let changed = data(&[&format!("data.train={train}")]);
        assert_eq!((changed.train, changed.test, changed.first_test), (train, 200, 1000));
    }
    let own = data(&["data.folder=somewhere", "data.train=8", "data.test=4"]);
    assert_eq!(own.first_test, 0, "a data set of your own has its own last samples");
}

#[test]
fn the_page_of_models_has_every_model_with_its_parameters() {
    let page = std::fs::read_to_string(std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../docs/models.md").unwrap();
    for row in MODELS {
        let start = format!("| `{}` |", row.name);
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{start} is missing"));
        let found: Vec<_> = line.split('|').skip(4).map(|cell| cell.trim().replace(',', "")).collect();
        let expected = COLUMNS.map(|benchmark| {
            let count = Experiment::shipped(&format!("{benchmark}-{}", row.name)).ok();
            count.map_or("–".to_owned(), |experiment| experiment.parameter_count().unwrap().to_string())
        });
        assert_eq!(found[..6], expected, "docs/models.md: {}", row.name);
    }
}

/// `lamo train --keys > docs/keys.md` writes the page again.
#[test]
fn the_page_of_keys_is_the_reference_that_the_command_prints() {
    let page = std::fs::read_to_string(std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../docs/keys.md").unwrap();
    let reference = lamo::experiment::reference();
    let lines = page.lines().zip(reference.lines()).enumerate();
    let differs = lines.filter(|(_, (found, expected))| found != expected).map(|(line, _)| line + 1).next();
    assert_eq!(differs, None, "docs/keys.md is out of date in this line: run lamo train --keys > docs/keys.md");
    assert_eq!(page, reference);
    for key in ["`data.validation`", "`train.patience`", "`relative-l2-per-channel`", "`model.settings.modes`"] {
        assert!(reference.contains(key), "{key}");
    }
    for (key, preset) in [("train.epochs", "to `500` by darcy"), ("data.past", "to `10` by navier-stokes")] {
        let row = reference.split("\n- ").find(|row| row.starts_with(&format!("`{key}`"))).unwrap();
        assert!(row.contains(preset), "{row}");
    }
}

#[test]
fn an_experiment_file_knows_the_grid_of_the_data_it_names_as_their_folder_does() {
    let folder = Folder::new("file-grid");
    let plate = two_outputs(&folder, 30); // 5 x 4 points
    let source = ImportSource::Own(Box::new(loads(&folder)));
    workflow::import(&ImportRequest { source, out: folder.at("loads") }, &Session::default()).unwrap(); // 16 points
    let model = |request: TrainRequest| {
        let request = TrainRequest { preset: Some(Preset::Quick), ..request };
        let experiment = request.experiment().unwrap_or_else(|error| panic!("{}: {error}", request.what));
        (experiment.model.name, experiment.model.settings)
    };
    std::fs::create_dir(folder.at("sub")).unwrap();
    let file = |text: &str| {
        std::fs::write(folder.at("sub/mine.toml"), text).unwrap();
        TrainRequest::new(folder.at("sub/mine.toml").to_str().unwrap())
    };
    for (data, name) in [("plate", "fno"), ("plate", "lamo"), ("plate", "transolver"), ("loads", "fno")] {
        let named = TrainRequest { model: Some(name.into()), ..TrainRequest::new(folder.at(data).to_str().unwrap()) };
        let text = format!("[data]\nfolder = \"../{data}\"\n[model]\nname = \"{name}\"\n");
        assert_eq!(model(file(&text)), model(named), "{name} on {data}");
    }
    assert_eq!(model(file("[data]\nfolder = \"../loads\"\n")).0, "fno", "the default on a line");
    assert_eq!(model(file("[data]\nfolder = \"../plate\"\n")).0, "lamo", "the default on a plane");
    // --data and --set name the data set in place of the file.
    let other = TrainRequest { data: Some(plate.clone()), ..file("[model]\nname = \"fno\"\n") };
    assert_eq!(model(other).1["modes"].as_integer(), Some(8), "5 x 4 points are padded to 16 x 16");
    let change = vec![format!("data.folder={}", toml::Value::String(plate.to_str().unwrap().into()))];
    let set = TrainRequest { changes: change, ..file("[data]\nfolder = \"../loads\"\n[model]\nname = \"fno\"\n") };
    assert_eq!(model(set).1["modes"].as_integer(), Some(8));
    // Without its data set, or on a benchmark, a file has the usual settings.
    let absent = file("[data]\nfolder = \"../gone\"\n[model]\nname = \"fno\"\n");
    assert_eq!(model(absent).1["modes"].as_integer(), Some(12));
}

/// Height and velocities have different sizes: the error of all as one would be that of the height.
#[test]
fn the_headline_is_the_mean_over_outputs_except_on_published_benchmarks() {
    for row in BENCHMARKS {
        let experiment = Request { benchmark: Some(row.name), ..Request::default() }.resolve().unwrap();
        let outputs = experiment.data.outputs.len();
        let fields: Vec<Field> = experiment.data.outputs.iter().map(|name| Field::plain(name, 1)).collect();
        let groups = experiment.output_groups(&Task { outputs: fields, ..row.task() }).len();
        assert_eq!(groups, if row.published { 1 } else { outputs }, "{}", row.name);
    }
}
