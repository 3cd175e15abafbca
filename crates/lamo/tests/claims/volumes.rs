//! Regular grids of three axes: LaMO's patches and slices, the Fourier operators, and the U-Nets.

use lamo::network::models::{Settings, find};
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo::training::loss::relative_l2_sum;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, PARAMETERS, Program};

/// Allowed error relative to the largest element, as for the models of the authors.
const GRADIENT: f64 = 3e-4;

fn volume(rows: usize, columns: usize, layers: usize) -> Grid {
    Grid::Volume { rows, columns, layers }
}

fn settings(text: &str) -> Settings {
    text.parse().unwrap()
}

fn wave(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|i| (0.4 + pace * i as f64).sin()).collect()
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn check(what: &str, found: &[f64], expected: &[f64], allowed: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= allowed * largest, "{what}: {found} and {expected}");
    }
}

/// Along one direction in the space of all parameters, with the step that agrees best: a long one rounds less, a short one crosses
/// fewer kinks of max(0, x) and bends less, as in norms over few points.
#[test]
fn the_gradients_of_models_in_volumes_equal_finite_differences_in_f64_and_the_cpu_equals_them() {
    const STEPS: [f64; 3] = [1e-5, 1e-7, 1e-8];
    const SLICES: &str =
        "latent = \"slices\"\nmixer = \"hydra\"\ndirections = 2\nslice_heads = 2\ntokens = 4\nhead_width = 8\n";
    const SIZES: &str = "width = 16\nstates = 4\ndepth = 1\nmlp_ratio = 1\n";
    let task = Task::plain(volume(3, 5, 4), 3, 1, 1);
    let count = 2 * task.grid.points();
    for (name, chosen) in [
        ("fno", "width = 4\nmodes = 2\ndepth = 2".to_owned()),
        ("fno", "width = 4\nmodes = 1\ndepth = 2\npadded = [3, 5, 4]".to_owned()),
        ("lamo", format!("{SIZES}directions = 6\npatch = 2")),
        ("lamo", format!("{SIZES}directions = 6\npatch = 1\nspectral_modes = 2")),
        ("lamo", format!("{SIZES}directions = 2\npatch = 2\nlattice = [4, 4, 4]")),
        ("lamo", format!("{SIZES}{SLICES}spectral_modes = 2\ninitial = \"fan-in\"")),
        (
            "transolver",
            "width = 16\ndepth = 1\nslice_heads = 2\ntokens = 4\nmlp_ratio = 1\ninitial = \"fan-in\"".to_owned(),
        ),
        ("factformer", "width = 16\ndepth = 1\nheads = 2\nmlp_ratio = 1".to_owned()),
        ("ffno", "width = 4\ndepth = 2\nmodes = 2".to_owned()),
        ("mwt", "width = 4\ndepth = 2\npolynomials = 2".to_owned()),
        ("uno", "width = 1\nmodes = 2\nnorm = \"instance\"\npadded = [16, 16, 32]".to_owned()),
        ("lsm", "width = 2\nheads = 2\nmodes = 2\nnorm = \"instance\"\npadded = [16, 32, 16]".to_owned()),
    ] {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = find(name).unwrap().build(&parameters, &task, &settings(&chosen)).unwrap();
        let output = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
        let loss = relative_l2_sum(output, graph.input("target", output.shape()));
        let gradient = graph.gradient(loss, &[graph.parameters()])[0].unwrap();
        graph.output("gradient", gradient);
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 3);
        let inputs = [("positions", 3 * count, 0.37), ("functions", count, 1.13), ("target", count, 0.71)];
        inputs.iter().for_each(|(input, count, pace)| program.write(input, &floats(&wave(*count, *pace))));
        program.run();

        let theta = doubles(program.read(PARAMETERS));
        let direction = wave(theta.len(), 2.3);
        let at = |step: f64| -> Bindings<'_> {
            let moved = theta.iter().zip(&direction).map(|(value, slope)| value + step * slope).collect();
            let mut bindings: Bindings<'_> = Bindings::from([(PARAMETERS, moved)]);
            let given = inputs.iter().map(|(input, count, pace)| (*input, doubles(&floats(&wave(*count, *pace)))));
            bindings.extend(given);
            bindings
        };
        let loss_at = |step: f64| reference::evaluate(&graph, &at(step), &[loss])[0].values[0];
        let exact = reference::evaluate(&graph, &at(0.0), &[gradient])[0].values.clone();
        let along: f64 = exact.iter().zip(&direction).map(|(slope, direction)| slope * direction).sum();
        let differences = STEPS.map(|step| (loss_at(step) - loss_at(-step)) / (2.0 * step));
        let off = differences.iter().fold(f64::INFINITY, |least: f64, found| least.min((along - found).abs()));
        let about = format!("{name} with {chosen}");
        assert!(off < 1e-6 * along.abs().max(1.0), "{about}: {along} and {differences:?}");
        check(&format!("{about}: gradient on the CPU"), &doubles(program.read("gradient")), &exact, GRADIENT);
    }
}

/// The output of LaMO for one sample with the parameters that `values` gives by name and number of elements.
fn patches(task: &Task, chosen: &str, channels: &[f64], values: &dyn Fn(&str, usize) -> Vec<f64>) -> Vec<f64> {
    let graph = Graph::new();
    let model = find("lamo").unwrap().build(&Parameters::new(&graph), task, &settings(chosen)).unwrap();
    let out = model.forward(&Input::declare(&graph, task, 1), Mode::Inference);
    let mut theta = vec![0.0; graph.parameters().shape().count()];
    for section in graph.sections() {
        theta[section.range()].copy_from_slice(&values(&section.name, section.shape.count()));
    }
    let (points, space) = (task.grid.points(), task.space);
    let rows = channels.chunks_exact(channels.len() / points);
    let positions = rows.clone().flat_map(|row| row[..space].to_vec()).collect();
    let functions = rows.flat_map(|row| row[space..].to_vec()).collect();
    let bindings = Bindings::from([(PARAMETERS, theta), ("positions", positions), ("functions", functions)]);
    reference::evaluate(&graph, &bindings, &[out])[0].values.clone()
}

/// Values that depend on the name alone, for any number of elements.
fn drawn(name: &str, count: usize) -> Vec<f64> {
    let phase: u32 = name.bytes().map(u32::from).sum();
    (0..count).map(|n| 0.5 * (f64::from(phase) + 12.9898 * n as f64).sin()).collect()
}

const SMALL: &str = "width = 16\nstates = 4\ndepth = 2\nmlp_ratio = 1\n";

#[test]
fn lamo_in_a_volume_of_one_row_is_lamo_on_a_plane_whose_kernels_are_the_middle_slabs() {
    let plane = Task::plain(Grid::Plane { rows: 4, columns: 3 }, 3, 1, 1);
    let flat = Task::plain(volume(1, 4, 3), 3, 1, 1);
    let (chosen, channels) = (format!("{SMALL}directions = 2\npatch = 1"), wave(48, 0.9));
    let expected = patches(&plane, &chosen, &channels, &drawn);
    let found = patches(&flat, &chosen, &channels, &|name, count| {
        if !name.contains("conv3d.1.weight") {
            return drawn(&name.replace("conv3d", "conv2d"), count);
        }
        let kernels = drawn(&name.replace("conv3d", "conv2d"), count / 3); // [inner, 1, 3, 3] of the plane
        kernels.chunks_exact(9).flat_map(|slab| [vec![7.0; 9], slab.to_vec(), vec![-5.0; 9]].concat()).collect()
    });
    check("a volume of one row", &found, &expected, 1e-12);
}

/// The three orders of axes and their reverses are the same set in every order of the axes.
#[test]
fn lamo_with_six_equal_directions_does_not_tell_the_axes_of_a_volume_apart() {
    let task = Task::plain(volume(3, 3, 3), 3, 1, 1);
    let chosen = format!("{SMALL}directions = 6\npatch = 1");
    let alike = |name: &str, count: usize| -> Vec<f64> {
        let each = |parts: usize| drawn(name, count / parts).repeat(parts); // the same in every direction
        match name.rsplit('.').next() {
            Some("x_proj_weight" | "Ds" | "A_logs" | "dt_projs_bias") => each(6),
            Some("pos_embed1") => drawn(name, 16).repeat(count / 16),
            _ if name.contains("conv3d.1.weight") => {
                let taps = drawn(name, count / 27);
                taps.into_iter().flat_map(|tap| vec![tap; 27]).collect()
            }
            _ => drawn(name, count),
        }
    };
    let channels = wave(27 * 4, 0.9);
    let turned = |values: &[f64], width: usize| -> Vec<f64> {
        let place = |n: usize| [n / 9, n / 3 % 3, n % 3];
        let from = |n: usize| {
            let [x, y, z] = place(n);
            (y * 3 + z) * 3 + x
        };
        (0..27).flat_map(|n| values[from(n) * width..][..width].to_vec()).collect()
    };
    let found = patches(&task, &chosen, &turned(&channels, 4), &alike);
    let expected = turned(&patches(&task, &chosen, &channels, &alike), 1);
    check("turned axes", &found, &expected, 1e-10);
    let two = chosen.replace("directions = 6", "directions = 2");
    let six_of_two = |name: &str, count: usize| match name.rsplit('.').next() {
        Some("x_proj_weight" | "Ds" | "A_logs" | "dt_projs_bias") => drawn(name, count / 2).repeat(2),
        _ => alike(name, count),
    };
    let found = patches(&task, &two, &turned(&channels, 4), &six_of_two);
    let expected = turned(&patches(&task, &two, &channels, &six_of_two), 1);
    assert!(found.iter().zip(&expected).any(|(a, b)| (a - b).abs() > 1e-6), "two directions tell the axes apart");
}

#[test]
fn patches_of_eight_points_are_points_with_eight_times_the_channels_and_odd_sides_end_in_zeros() {
    let task = Task::plain(volume(4, 2, 6), 1, 1, 1);
    let blocks = Task::plain(volume(2, 1, 3), 8, 8, 8);
    let channels = wave(48 * 2, 0.9); // [48 points, position and function]
    let corner = |block: usize| [block / 3 * 2, 0, block % 3 * 2];
    let point = |block: usize, part: usize| {
        let [x, y, z] = corner(block);
        ((x + part / 4) * 2 + y + part / 2 % 2) * 6 + z + part % 2
    };
    let value = |block: usize, channel: usize, part: usize| channels[point(block, part) * 2 + channel];
    let of_blocks: Vec<f64> = (0..6)
        .flat_map(|block| (0..16).map(move |place| (block, place / 8, place % 8)))
        .map(|(block, channel, part)| value(block, channel, part))
        .collect();
    let (pairs, whole) = (format!("{SMALL}directions = 6\npatch = 2"), format!("{SMALL}directions = 6\npatch = 1"));
    let found = patches(&task, &pairs, &channels, &drawn);
    let expected = patches(&blocks, &whole, &of_blocks, &drawn);
    let found: Vec<f64> = (0..6)
        .flat_map(|block| (0..8).map(move |part| (block, part)))
        .map(|(block, part)| found[point(block, part)])
        .collect();
    check("points with eight times the channels", &found, &expected, 1e-12);
    // A volume with an odd side ends in zeros that the model sees and the output does not have.
    let odd = Task::plain(volume(3, 2, 6), 1, 1, 1);
    let found = patches(&odd, &pairs, &channels[..72], &drawn);
    let padded = [&channels[..72], &[0.0; 24]].concat();
    let even = patches(&task, &pairs, &padded, &drawn);
    check("an odd side", &found, &even[..36], 1e-12);
}

#[test]
fn settings_that_do_not_fit_a_volume_are_refused_with_a_sentence() {
    let task = Task::plain(volume(5, 4, 3), 3, 1, 1);
    for (model, text, expected) in [
        ("lamo", "", "model lamo: a volume is scanned in 1, 2 or 6 directions, found 4; set directions = 6"),
        (
            "lamo",
            "directions = 6\npadded = [8, 8]",
            "model lamo: padded has 3 numbers on a volume, found [8, 8]; set padded = [0, 0]",
        ),
        (
            "lamo",
            "directions = 6\npadded = [4, 4, 4]",
            "model lamo: padded = [4, 4, 4] must cover 5 × 4 × 3 in patches of 2; set padded = [0, 0]",
        ),
        (
            "lamo",
            "latent = \"slices\"\nmixer = \"hydra\"\ndirections = 6",
            "model lamo: six directions are those of mixer = \"cross\" over patches of a volume; set directions = 2",
        ),
        (
            "fno",
            "",
            "model fno: a padded volume of 16 × 16 × 16 points carries at most 9 modes, found 12; set modes = 9",
        ),
        (
            "unet",
            "width = 2\npadded = [16, 16]",
            "model unet: padded has 3 numbers on a volume, found [16, 16]; set padded = [0, 0]",
        ),
        (
            "lsm",
            "norm = \"instance\"",
            "model lsm: the norm of a sample needs more than one pixel at the coarsest level, found an image of \
             16 × 16 × 16; set padded = [32, 32, 32]",
        ),
        (
            "ffno",
            "modes = 12",
            "model ffno: an image of 16 × 16 × 16 points carries at most 9 modes, found 12; set modes = 9",
        ),
        (
            "fno",
            "modes = 2\npadded = [8, 8]",
            "model fno: padded has 3 numbers on a volume, found [8, 8]; set padded = [0, 0]",
        ),
        (
            "fno",
            "modes = 2\npadded = [8, 2, 8]",
            "model fno: padded = [8, 2, 8] must cover [5, 4, 3] points; set padded = [0, 0]",
        ),
        (
            "transolver",
            "unified_positions = 41",
            "model transolver: a lattice of unified positions has 2 to 40 points a side, found 41",
        ),
    ] {
        let found = find(model).unwrap().parameter_count(&task, &settings(text)).unwrap_err().to_string();
        assert_eq!(found, expected, "{text}");
    }
    let cloud = Task::plain(Grid::Cloud { points: 60 }, 3, 1, 1);
    let found = find("transolver").unwrap().parameter_count(&cloud, &settings("unified_positions = 4")).unwrap_err();
    assert_eq!(
        found.to_string(),
        "model transolver: unified positions of a cloud need 2 coordinates, found 3; set unified_positions = 0"
    );
    let plane = Task::plain(Grid::Plane { rows: 4, columns: 4 }, 2, 1, 1);
    for (model, text) in [("lamo", "padded = [0, 4, 4]"), ("fno", "modes = 2\npadded = [0, 4, 4]")] {
        let found = find(model).unwrap().parameter_count(&plane, &settings(text)).unwrap_err().to_string();
        assert!(found.contains("padded has 2 numbers on a plane"), "{found}");
    }
    let refused = find("resnet").unwrap().parameter_count(&task, &Settings::new()).unwrap_err().to_string();
    assert!(refused.starts_with("model resnet: expected a plane or a flat cloud, found a volume of shape [5, 4, 3]"));
    assert!(
        ["lamo", "fno", "transolver", "factformer", "deeponet", "unet", "ufno", "uno", "ffno", "lsm", "mwt"]
            .iter()
            .all(|able| refused.contains(able)),
        "{refused}"
    );
}
