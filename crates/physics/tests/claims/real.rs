//! Against numbers made by others: public statistics and the neuraloperator Darcy files under `../shared/real`.

#![allow(clippy::print_stdout)] // a test that finds no data says so

use std::path::PathBuf;

use lamo_physics::problems::{self, darcy::Volumes};

use super::{norm, relative_error};

/// The bytes of a file of real data; `None`, and a sentence, where the data are not at hand.
fn real(path: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real");
    let bytes = std::fs::read(root.join(path)).ok();
    if bytes.is_none() {
        println!("skipped: {path} is not under ../shared/real, seen from the workspace");
    }
    bytes
}

/// The number that follows `"key":`.
fn number(text: &str, key: &str) -> f64 {
    let (_, rest) = text.split_once(&format!("\"{key}\": ")).unwrap_or_else(|| panic!("no {key} in the statistics"));
    rest.split([',', '}']).next().unwrap().trim().parse().unwrap()
}

/// Mean of |u| on the border, its maximum there, and the root mean square inside.
fn statistics(pressure: &[f64], points: usize) -> [f64; 3] {
    let (mut border, mut inside) = (Vec::new(), Vec::new());
    for (place, value) in pressure.iter().enumerate() {
        let edge = [place / points, place % points].iter().any(|&index| index == 0 || index == points - 1);
        if edge { border.push(value.abs()) } else { inside.push(*value) }
    }
    let mean = border.iter().sum::<f64>() / border.len() as f64;
    let most = border.iter().copied().fold(0.0, f64::max);
    [mean, most, norm(&inside) / (inside.len() as f64).sqrt()]
}

#[test]
fn canonical_samples_have_the_statistics_of_the_public_darcy_file() {
    let Some(bytes) = real("reference/public_dataset_statistics.json") else { return };
    let text = String::from_utf8(bytes).unwrap();
    let keys = ["boundary_abs_u_mean", "boundary_abs_u_mean_of_max", "interior_rms_u"];
    let count = 12;
    let problem = problems::find("darcy").unwrap().problem(&["canonical=true"]).unwrap();
    let samples = problems::samples(problem.as_ref(), 0, 0..count).unwrap();
    let found: Vec<[f64; 3]> = samples.iter().map(|sample| statistics(&sample.fields[1].values, 421)).collect();
    for (which, key) in keys.into_iter().enumerate() {
        let mean = found.iter().map(|values| values[which]).sum::<f64>() / count as f64;
        let variance = found.iter().map(|values| (values[which] - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
        let error = (variance / count as f64).sqrt();
        let published = number(&text, key);
        println!("{key}: {mean:.3e} ± {error:.1e}, published {published:.3e}");
        assert!((mean - published).abs() < 3.0 * error, "{key}: {mean:e} ± {error:e}, published {published:e}");
    }
}

/// The part of an npy file after its header, which must mention `description`.
fn npy<'a>(bytes: &'a [u8], description: &str) -> &'a [u8] {
    let length = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..length]);
    assert!(header.contains(description) && header.contains("(50, 32, 32)"), "unexpected header {header}");
    &bytes[length..]
}

/// A plane of 32² values at ((16 j + 1/2) / 512) seen bilinearly at `place`, in units of the spacing.
fn bilinear(plane: &[f64], points: usize, row: f64, column: f64) -> f64 {
    let locate = |place: f64| {
        let place = place.clamp(0.0, (points - 1) as f64);
        let first = (place as usize).min(points - 2);
        (first, place - first as f64)
    };
    let ((i, down), (j, across)) = (locate(row), locate(column));
    let along = |i: usize| (1.0 - across) * plane[i * points + j] + across * plane[i * points + j + 1];
    (1.0 - down) * along(i) + down * along(i + 1)
}

/// The pressure of a phase map at its own points, the interface drawn where the interpolated phase passes `threshold`.
fn pressure(volumes: &Volumes, cells: usize, phase: &[f64], threshold: f64) -> Vec<f64> {
    let place = |cell: usize| (2 * cell) as f64 / 16.0 + 0.5 / 16.0; // (cell + 1/2) / 256 among ((16 j + 1/2) / 512)
    let solid = |k: usize| bilinear(phase, 32, place(k / cells), place(k % cells)) >= threshold;
    let permeability: Vec<f64> = (0..cells * cells).map(|k| if solid(k) { 18.0 } else { 1.0 }).collect();
    let solved = volumes.solve(&permeability, &vec![50.0; cells * cells]).unwrap();
    let at = |k: usize| {
        let place = |j: usize| 8.0 * j as f64 - 0.25; // their points among our cell centres
        let wall = |j: usize| if j == 0 { 0.5 } else { 1.0 }; // the first lies half way from the wall to a centre
        wall(k / 32) * wall(k % 32) * bilinear(&solved, cells, place(k / 32), place(k % 32))
    };
    (0..1024).map(at).collect()
}

/// Files of neuraloperator: a = 1 or 18, f = 50. Between their points the interface is unknown, and that is the error:
/// it must stay below the distance of two answers whose interfaces lie a quarter of the phase step to either side. An
/// independent prototype had 2.25 % on the same samples; ours may differ from it by as much as the mean of ten is worth.
#[test]
fn phase_maps_of_neuraloperator_give_their_pressures_as_well_as_their_interfaces_are_known() {
    let (Some(phases), Some(pressures)) =
        (real("neuraloperator/darcy_test_32_x.npy"), real("neuraloperator/darcy_test_32_y.npy"))
    else {
        return;
    };
    let phases: Vec<f64> = npy(&phases, "|u1").iter().map(|&value| f64::from(value)).collect();
    let values = npy(&pressures, "<f4").chunks_exact(4);
    let pressures: Vec<f64> =
        values.map(|bytes| f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))).collect();
    let (cells, samples) = (256, 10);
    let volumes = Volumes::new(cells).unwrap();
    let (mut errors, mut unknown) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        let [phase, theirs] = [&phases, &pressures].map(|all| &all[sample * 1024..][..1024]);
        let [early, middle, late] = [0.25, 0.5, 0.75].map(|threshold| pressure(&volumes, cells, phase, threshold));
        errors.push(relative_error(&middle, theirs));
        unknown.push(relative_error(&early, &late));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / samples as f64;
    let (error, unknown) = (mean(&errors), mean(&unknown));
    let variance = errors.iter().map(|value| (value - error).powi(2)).sum::<f64>() / (samples - 1) as f64;
    let worth = 2.0 * (variance / samples as f64).sqrt();
    let percent = |value: f64| 100.0 * value;
    println!(
        "neuraloperator's phase maps: {:.2} % ± {:.2}, the interface leaves {:.2} % open",
        percent(error),
        percent(worth),
        percent(unknown)
    );
    assert!(error < unknown, "mean relative error {error}, the interface leaves {unknown} open");
    assert!((error - 0.0225).abs() < worth, "mean relative error {error} ± {worth}, the prototype had 0.0225");
}
