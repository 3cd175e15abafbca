//! Statistics of the public files of Darcy, Navier-Stokes and Elasticity, like for like: the same points, the same
//! definitions. The numbers come from the notebooks and figures of duasob/omni_hc at commit cdae2ef, which read those
//! files; the statistics of the airfoils are with the claims about airfoils.
//!
//! A tolerance is three standard errors of the difference, plus the accuracy with which a number is printed or can be read
//! off a figure.

#![allow(clippy::print_stdout)] // the tests print their measurements

use lamo_physics::problems;

use super::{mean_and_deviation, norm, problem};

/// A published mean.
struct Published {
    name: &'static str,
    mean: f64,
    /// Its standard error; half of the last printed digit is part of `reading`.
    error: f64,
    /// Half of the last digit, or the accuracy of a figure.
    reading: f64,
}

/// Compares the mean of `found`, one value per sample, with a published mean.
fn compare(published: &Published, found: &[f64]) {
    let Published { name, mean: wanted, error, reading } = *published;
    let (mean, deviation) = mean_and_deviation(found);
    let own = deviation / (found.len() as f64).sqrt();
    let allowed = 3.0 * own.hypot(error) + reading;
    println!("{name}: {mean:.4e} ± {own:.1e}, {} samples; public {wanted:.4e} ± {error:.1e}", found.len());
    assert!((mean - wanted).abs() < allowed, "{name}: {mean:e} ± {own:e}, public {wanted:e}, allowed {allowed:e}");
}

/// The residual div(−a ∇u) − 1 of the notebook at `points`² points that are taken as 1 / (points − 1) apart: central
/// differences, one-sided ones on the border.
fn residual(permeability: &[f64], pressure: &[f64], points: usize) -> Vec<f64> {
    let spacing = 1.0 / (points - 1) as f64;
    let derivative = |plane: &[f64], step: usize| -> Vec<f64> {
        let slope = |point: usize| {
            let place = point / step % points; // along the axis whose neighbours are `step` apart
            let (before, after) = (usize::from(place > 0), usize::from(place < points - 1));
            (plane[point + after * step] - plane[point - before * step]) / ((before + after) as f64 * spacing)
        };
        (0..points * points).map(slope).collect()
    };
    let outflow = |step: usize| {
        let slopes = derivative(pressure, step);
        let flux: Vec<f64> = permeability.iter().zip(&slopes).map(|(a, slope)| -a * slope).collect();
        derivative(&flux, step)
    };
    outflow(1).iter().zip(outflow(points)).map(|(across, down)| across + down - 1.0).collect()
}

/// Public means over 1024 samples of `smooth1`, residuals over 200 samples of `smooth2`. The standard errors follow from
/// the 95th percentiles of the table: 1.645 deviations above the mean; the residuals are listed sample by sample. The
/// interior mean square is the square of the published 6.95e-3, with our deviation between samples.
fn compare_darcy(count: u64) {
    const POINTS: usize = 85;
    let problem = problem("darcy", &["canonical=true", "stride=5"]);
    let samples = problems::samples(problem.as_ref(), 0, 0..count).unwrap();
    let mut found: [Vec<f64>; 6] = Default::default();
    for sample in &samples {
        let [permeability, pressure] = [0, 1].map(|field| &sample.fields[field].values);
        let on_border = |point: usize| [point / POINTS, point % POINTS].iter().any(|&k| k == 0 || k == POINTS - 1);
        let (border, inside): (Vec<usize>, Vec<usize>) = (0..POINTS * POINTS).partition(|&point| on_border(point));
        let border: Vec<f64> = border.into_iter().map(|point| pressure[point]).collect();
        let count = border.len() as f64;
        let mean = border.iter().sum::<f64>() / count;
        let residual = residual(permeability, pressure, POINTS);
        let values = [
            border.iter().map(|value| value.abs()).sum::<f64>() / count,
            border.iter().map(|value| value.abs()).fold(0.0, f64::max),
            (border.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt(),
            inside.iter().map(|&point| pressure[point].powi(2)).sum::<f64>() / inside.len() as f64,
            residual.iter().map(|value| value.abs()).sum::<f64>() / residual.len() as f64,
            norm(&residual) / (residual.len() as f64).sqrt(),
        ];
        found.iter_mut().zip(values).for_each(|(all, value)| all.push(value));
    }
    let (_, deviation) = mean_and_deviation(&found[3]);
    let published = |name, mean, error, reading| Published { name, mean, error, reading };
    let all = [
        published("mean |u| on the border", 5.17e-5, 1.8e-7, 5e-8),
        published("greatest |u| on the border", 1.28e-4, 1.8e-6, 5e-7),
        published("deviation of u on the border", 2.80e-5, 9.5e-8, 5e-8),
        published("mean square of u inside", 6.95e-3 * 6.95e-3, deviation / 1024f64.sqrt(), 2.0 * 6.95e-3 * 5e-6),
        published("mean |residual|", 0.3654, 0.0086, 5e-5),
        published("root mean square residual", 1.3740, 0.0238, 5e-5),
    ];
    all.iter().zip(&found).for_each(|(published, found)| compare(published, found));
}

#[test]
fn canonical_darcy_samples_have_the_statistics_of_the_public_file_at_its_85_points() {
    compare_darcy(12);
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture more_canonical_darcy`
#[test]
#[ignore = "a minute; prints measurements"]
fn more_canonical_darcy_samples_have_the_statistics_of_the_public_file() {
    compare_darcy(100);
}

/// Mean |ω| over the torus at t, with the 5th and 95th percentile between the 1200 public samples: read off a figure with
/// 0.0045 per pixel. The percentiles are 3.29 deviations apart.
const VORTICITY: [(usize, f64, [f64; 2]); 4] =
    [(1, 0.227, [0.154, 0.309]), (5, 0.480, [0.391, 0.564]), (10, 0.890, [0.804, 0.977]), (20, 1.569, [1.382, 1.739])];

fn compare_vorticity(changes: &[&str], frames: usize, count: u64) {
    let frames_setting = format!("frames={frames}");
    let changes: Vec<&str> = changes.iter().copied().chain([frames_setting.as_str()]).collect();
    let problem = problem("navier-stokes", &changes);
    let samples = problems::samples(problem.as_ref(), 0, 0..count).unwrap();
    for (time, mean, [low, high]) in VORTICITY.into_iter().filter(|&(time, ..)| time <= frames) {
        let magnitude = |sample: &problems::Sample| {
            let series = &sample.fields[1];
            let points = series.values.len() / frames;
            let frame = &series.values[(time - 1) * points..][..points];
            frame.iter().map(|value| value.abs()).sum::<f64>() / points as f64
        };
        let found: Vec<f64> = samples.iter().map(magnitude).collect();
        let deviation = (high - low) / 3.29;
        let name = "mean |vorticity|";
        println!("t = {time}: deviation between samples {:.3}, public {deviation:.3}", mean_and_deviation(&found).1);
        compare(&Published { name, mean, error: deviation / 1200f64.sqrt(), reading: 0.0045 }, &found);
    }
}

/// A coarse torus is enough for the first half: |ω| differs by less than the standard error.
#[test]
fn the_vorticity_of_the_first_ten_snapshots_has_the_public_magnitude() {
    compare_vorticity(&["resolution=64", "stride=1"], 10, 24);
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture the_vorticity_of_all`
#[test]
#[ignore = "two minutes; prints measurements"]
fn the_vorticity_of_all_snapshots_has_the_public_magnitude() {
    compare_vorticity(&[], 20, 24);
}

/// The histogram of all 2000 · 972 public stresses: counts in bins of width 17.97 from 1.3, read off a figure with 368 per
/// pixel; the last three quarters of the bins hold 3 %.
const STRESSES: [f64; 24] = [
    35000.0, 111263.0, 107579.0, 89526.0, 90632.0, 134474.0, 126737.0, 120474.0, 119737.0, 116789.0, 116421.0,
    110158.0, 102053.0, 90632.0, 77368.0, 66316.0, 54895.0, 45316.0, 36842.0, 31316.0, 25789.0, 21737.0, 17684.0,
    14737.0,
];

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture the_histogram_of_stresses`
#[test]
#[ignore = "prints measurements"]
fn the_histogram_of_stresses_is_printed() {
    let problem = problem("elasticity", &[]);
    let samples = problems::samples(problem.as_ref(), 0, 0..400).unwrap();
    let total = 2000.0 * 972.0;
    let (mut below, mut own_below) = (0.0, 0.0);
    for (bin, count) in STRESSES.into_iter().enumerate() {
        let (low, high) = (1.3 + 17.97 * bin as f64, 1.3 + 17.97 * (bin + 1) as f64);
        let share = |sample: &problems::Sample| {
            let stress = &sample.fields[1].values;
            stress.iter().filter(|&&value| (low..high).contains(&value)).count() as f64 / stress.len() as f64
        };
        let (mean, deviation) = mean_and_deviation(&samples.iter().map(share).collect::<Vec<_>>());
        below += count / total;
        own_below += mean;
        println!(
            "{low:6.1} to {high:6.1}: {mean:.4} ± {:.4}, public {:.4}; below {own_below:.4}, public {below:.4}",
            deviation / 20.0,
            count / total
        );
    }
}
