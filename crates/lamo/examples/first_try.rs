//! What a first try gives: imports ten data sets, trains on each with the defaults, and prints the errors beside those of
//! predictors that learn nothing and of a kernel fit.
//!
//! `cargo run --release -p lamo --example first_try -- target/release/lamo OUT [REAL] [--minutes M] [--device D] [--only NAME]`
//!
//! Six data sets are made from formulas. `REAL` is a folder with files of others: `burgers_{train,test}_16_y.npy` and
//! `darcy_{train,test}_16_{x,y}.npy` of neuraloperator, as arrays of NumPy, and `real_{burgers_shock,KdV}.mat` of the PINNs
//! repository; data sets whose files are missing are left out. A PyTorch file becomes arrays of NumPy by
//! `python -c "import sys, torch, numpy; [numpy.save(f'{sys.argv[2]}_{k}.npy', v) for k, v in torch.load(sys.argv[1]).items()]" FILE NAME`.
#![allow(clippy::print_stdout)]

use lamo::data::Dataset;
use lamo::experiment::{self, Experiment};
use lamo::{Samples, run};
use serde_json::Value;
use std::error::Error;
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A data set: its name, what it is, and the arguments of `lamo data import`.
struct Set {
    name: &'static str,
    what: &'static str,
    import: Vec<String>,
}

fn main() -> Result<()> {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| {
        let place = given.iter().position(|word| word == name)?;
        let value = given.get(place + 1).cloned();
        given.drain(place..(place + 2).min(given.len()));
        value
    };
    let [minutes, device, only] = ["--minutes", "--device", "--only"].map(&mut option);
    let [lamo, out, real @ ..] = &given[..] else {
        return Err("expected the command lamo and a folder to work in".into());
    };
    let (lamo, out) = (std::path::absolute(lamo)?, PathBuf::from(out));
    std::fs::create_dir_all(&out)?;
    let mut sets = made(&out)?;
    sets.extend(real.first().map(|folder| of_others(Path::new(folder))).unwrap_or_default());
    sets.retain(|set| only.as_ref().is_none_or(|only| only == set.name));
    println!("| data set | samples, points | model, epochs × steps | time | error | best trivial | kernel ridge |");
    println!("|---|---|---|---|---|---|---|");
    for set in &sets {
        println!("{}", row(&lamo, &out, set, minutes.as_deref(), device.as_deref())?);
    }
    Ok(())
}

/// Runs a command and returns what it prints.
fn output(command: &mut Command) -> Result<String> {
    let done = command.output()?;
    if !done.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// One line of the table.
fn row(lamo: &Path, out: &Path, set: &Set, minutes: Option<&str>, device: Option<&str>) -> Result<String> {
    let data = out.join(format!("{}-data", set.name));
    let folder = out.join(format!("{}-run{}", set.name, minutes.unwrap_or_default()));
    if !data.exists() {
        output(Command::new(lamo).args(["data", "import", "--out"]).arg(&data).args(&set.import))?;
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut train = Command::new(lamo);
    train.arg("train").arg(&data).args(["--json", "--out"]).arg(&folder);
    train.args(device.map(|device| ["--device", device]).into_iter().flatten());
    train.args(minutes.map(|minutes| ["--minutes", minutes]).into_iter().flatten());
    let text = output(&mut train)?;
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>();
    let end = events.iter().find(|event| event["event"] == "end").ok_or("the training has no end")?;
    let (dataset, (_, experiment, _)) = (Dataset::open(&data)?, run::Run::open(&folder)?);
    let groups = end["outputs"].as_array().map_or(1, Vec::len).max(1);
    let (train, test) =
        (experiment::train_samples(&experiment, &dataset)?, experiment::test_samples(&experiment, &dataset)?);
    let trivial =
        end["trivial"].as_object().into_iter().flatten().filter_map(|(name, error)| Some((name, error.as_f64()?)));
    let trivial = trivial.min_by(|one, other| one.1.total_cmp(&other.1));
    let trivial = trivial.map_or_else(|| "none".to_owned(), |(name, error)| format!("{} ({name})", percent(error)));
    let kernel = kernel::error(&train, &test, groups).map_or_else(|| "none".to_owned(), percent);
    Ok(format!(
        "| {} | {} + {}, {} | {} | {:.0} s | {} | {trivial} | {kernel} |",
        set.what,
        train.count + experiment.data.validation,
        test.count,
        test.grid,
        length(&experiment, &train),
        end["seconds"].as_f64().unwrap_or(f64::NAN),
        percent(end["test"].as_f64().unwrap_or(f64::NAN)),
    ))
}

fn length(experiment: &Experiment, train: &Samples) -> String {
    let steps = train.count.div_ceil(experiment.train.batch);
    format!("{}, {} × {steps}", experiment.model.name, experiment.train.epochs)
}

fn percent(error: f64) -> String {
    format!("{:.2} %", 100.0 * error)
}

/// Writes `[shape]` numbers as an array of NumPy.
fn save(path: &Path, shape: &[usize], values: impl Iterator<Item = f64>) -> Result<String> {
    let axes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", axes.join(", "));
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend(values.flat_map(f64::to_le_bytes));
    std::fs::write(path, bytes)?;
    Ok(path.display().to_string())
}

/// A number from 0 to 1 for each pair of numbers, as good as random.
fn random(sample: usize, number: usize) -> f64 {
    let mut state = ((sample as u64) << 32) | number as u64;
    for _ in 0..3 {
        state = (state ^ (state >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x632b_e59b_d9b4_e019);
    }
    (state >> 11) as f64 / (1u64 << 53) as f64
}

/// Waves along one axis and along two, as multiples of 2π.
const LINE: &[[i32; 2]] = &[[1, 0], [2, 0], [3, 0], [4, 0], [5, 0]];
const PLANE: &[[i32; 2]] = &[[1, 0], [2, 0], [0, 1], [0, 2], [1, 1], [2, 1], [1, 2]];

/// Σ a sin(2π k·x + φ) with random a and φ; each wave is multiplied by `factor(|k|)`, and its phase is shifted by `shift(|k|)`.
fn waves(
    modes: &[[i32; 2]],
    sample: usize,
    place: [f64; 2],
    factor: impl Fn(f64) -> f64,
    shift: impl Fn(f64) -> f64,
) -> f64 {
    let wave = |(number, mode): (usize, &[i32; 2])| {
        let [k, l] = mode.map(f64::from);
        let length = k.hypot(l);
        let (height, phase) = (random(sample, 2 * number) - 0.5, TAU * random(sample, 2 * number + 1));
        height * factor(length) * (TAU * (k * place[0] + l * place[1]) + phase + shift(length)).sin()
    };
    modes.iter().enumerate().map(wave).sum()
}

/// Six data sets from formulas.
fn made(out: &Path) -> Result<Vec<Set>> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let array = |name: &str, shape: &[usize], value: &dyn Fn(&[usize]) -> f64| {
        let count = shape.iter().product::<usize>();
        let index = |flat: usize| {
            let mut rest = flat;
            let mut index: Vec<usize> = shape.iter().rev().map(|&n| (rest % n, rest /= n).0).collect();
            index.reverse();
            index
        };
        save(&out.join(format!("{name}.npy")), shape, (0..count).map(|flat| value(&index(flat))))
    };
    let line = |i: usize, n: usize| [i as f64 / n as f64, 0.0];
    let plane = |i: &[usize], n: usize| [i[1] as f64 / n as f64, i[2] as f64 / n as f64];
    let unchanged = |_: f64| 1.0;
    let still = |_: f64| 0.0;

    // −u″ / (2π)² + u³ = f: u is a sum of waves, and f follows from it.
    let source = array("line-f", &[200, 64], &|i| {
        let u = waves(LINE, i[0], line(i[1], 64), |k| 1.0 / (1.0 + k), still);
        waves(LINE, i[0], line(i[1], 64), |k| k * k / (1.0 + k), still) + u.powi(3)
    })?;
    let solution = array("line-u", &[200, 64], &|i| waves(LINE, i[0], line(i[1], 64), |k| 1.0 / (1.0 + k), still))?;

    let before = array("plane-a", &[100, 16, 16], &|i| waves(PLANE, i[0], plane(i, 16), unchanged, still))?;
    let after = array("plane-u", &[100, 16, 16], &|i| {
        waves(PLANE, i[0], plane(i, 16), |k| (-0.1 * k * k).exp(), still).tanh()
    })?;

    // Speed of a potential flow around a cylinder with random centre and radius, at random points outside of it.
    let cylinder = |sample: usize| {
        let of = |number: usize| random(sample, 1_000_000 + number);
        ([0.3 + 0.4 * of(0), 0.3 + 0.4 * of(1)], 0.1 + 0.15 * of(2))
    };
    let point = |sample: usize, number: usize| {
        let (centre, radius) = cylinder(sample);
        let mut tries = (0..100).map(|k| [0, 1].map(|axis| random(sample, 200 * number + 2 * k + axis)));
        tries.find(|p| (p[0] - centre[0]).hypot(p[1] - centre[1]) > radius)
    };
    let position = array("cloud-x", &[100, 256, 2], &|i| point(i[0], i[1]).map_or(0.0, |place| place[i[2]]))?;
    let speed = array("cloud-s", &[100, 256], &|i| {
        let (centre, radius) = cylinder(i[0]);
        let place = point(i[0], i[1]).unwrap_or(centre);
        let [x, y] = [place[0] - centre[0], place[1] - centre[1]];
        let (r, angle) = (x.hypot(y), y.atan2(x));
        let q = (radius / r).powi(2);
        ((1.0 - q) * angle.cos()).hypot((1.0 + q) * angle.sin())
    })?;

    // Waves that travel and decay, the faster the shorter they are.
    let series = array("series-u", &[100, 11, 32], &|i| {
        let t = i[1] as f64 / 10.0;
        waves(LINE, i[0], line(i[2], 32), |k| (-0.2 * k * k * t).exp(), |k| 3.0 * k * t) + 0.5
    })?;

    let viscosity = array("sweep-mu", &[80], &|i| 0.02 + 0.2 * i[0] as f64 / 79.0)?;
    let layer = array("sweep-u", &[80, 64], &|i| {
        let (mu, x) = (0.02 + 0.2 * i[0] as f64 / 79.0, i[1] as f64 / 63.0);
        x - ((x - 1.0) / mu).exp() + (-1.0 / mu).exp() // −μ u″ + u′ = 1, u = 0 at both ends
    })?;

    let load = array("plate-q", &[200, 16, 16], &|i| waves(PLANE, i[0], plane(i, 16), unchanged, still))?;
    let pressure = array("plate-p", &[200, 16, 16], &|i| {
        1e5 + 1e4 * waves(PLANE, i[0], plane(i, 16), |k| 1.0 / (1.0 + k * k), still)
    })?;
    let deflection = array("plate-w", &[200, 16, 16], &|i| {
        let load = waves(PLANE, i[0], plane(i, 16), |k| 1.0 / (1.0 + k * k), |k| 0.5 * k);
        1e-3 * load + 4e-4 * load * load
    })?;
    let set = |name, what, import: String| Set { name, what, import: words(&import) };
    Ok(vec![
        set(
            "line",
            "source to solution of −u″ + u³ = f (1-D)",
            format!("--input f={source} --output u={solution} --grid line:64"),
        ),
        set("plane", "heat with saturation (2-D)", format!("--input a={before} --output u={after} --grid 16x16")),
        set(
            "cloud",
            "flow around a cylinder (cloud)",
            format!("--positions {position} --output s={speed} --grid cloud:256"),
        ),
        set("series", "travelling waves (time series)", format!("--output u={series} --grid line:32")),
        set("sweep", "boundary layer (sweep)", format!("--input mu={viscosity} --output u={layer} --grid line:64")),
        set(
            "plate",
            "pressure and deflection (two outputs)",
            format!("--input q={load} --output p={pressure} --output w={deflection} --grid 16x16"),
        ),
    ])
}

/// Data sets of files of others, where these files are.
fn of_others(folder: &Path) -> Vec<Set> {
    let find = |name: &str| {
        let places = ["", "neuraloperator", "pinns_mat"].map(|part| folder.join(part).join(name));
        places.into_iter().find(|path| path.is_file()).map(|path| path.display().to_string())
    };
    let both = |flag: &str, name: &str, file: &str| {
        let files = ["train", "test"].map(|part| find(&file.replace("PART", part)));
        let [train, test] = files;
        Some([flag.into(), format!("{name}={}", train?), flag.into(), format!("{name}={}", test?)])
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let burgers = || Some([both("--output", "u", "burgers_PART_16_y.npy")?.to_vec(), words("--grid line:16")].concat());
    let darcy = || {
        let [a, u] = [("--input", "a", "x"), ("--output", "u", "y")]
            .map(|(flag, name, last)| both(flag, name, &format!("darcy_PART_16_{last}.npy")));
        Some([a?.to_vec(), u?.to_vec(), words("--grid 16x16")].concat())
    };
    let windows = |file: &str, variable: &str, points: usize| {
        let words = words(&format!("--grid line:{points} --window 5 --horizon 5 --stride 1"));
        Some([vec!["--output".into(), format!("u={}:{variable}", find(file)?)], words].concat())
    };
    let sets = [
        ("burgers", "Burgers' equation (neuraloperator)", burgers()),
        ("darcy", "Darcy flow (neuraloperator)", darcy()),
        ("shock", "one series of Burgers' equation (MATLAB)", windows("real_burgers_shock.mat", "usol", 256)),
        ("kdv", "one series of the KdV equation (MATLAB)", windows("real_KdV.mat", "uu", 512)),
    ];
    sets.into_iter().filter_map(|(name, what, import)| Some(Set { name, what, import: import? })).collect()
}

/// Kernel ridge regression: u(x) = Σ αᵢ exp(−|x − xᵢ|² / 2ℓ²), (K + λ I) α = u, on normalised inputs. A tenth of the
/// training samples chooses ℓ and λ.
mod kernel {
    use lamo::Samples;

    /// Lengths as multiples of the median distance of two samples.
    const LENGTHS: [f64; 4] = [0.5, 1.0, 3.0, 10.0];
    const RIDGES: [f64; 4] = [1e-10, 1e-7, 1e-4, 1e-1];

    /// Mean relative L2 on the test samples, with the mean over `groups` outputs; `None` where no fit succeeds.
    pub(super) fn error(train: &Samples, test: &Samples, groups: usize) -> Option<f64> {
        let [mut inputs, mut others] = [train, test].map(features);
        let scales = normalise(&mut inputs, None);
        normalise(&mut others, Some(&scales));
        let targets: Vec<&[f32]> = (0..train.count).map(|sample| train.target_of(sample)).collect();
        let truth: Vec<&[f32]> = (0..test.count).map(|sample| test.target_of(sample)).collect();
        let held = (train.count / 10).max(1);
        let kept = train.count - held;
        let distances = pairs(&inputs, &inputs);
        let mut all: Vec<f64> = distances.iter().flatten().copied().filter(|distance| *distance > 0.0).collect();
        all.sort_by(f64::total_cmp);
        let median = *all.get(all.len() / 2)?;
        let choices =
            LENGTHS.iter().flat_map(|length| RIDGES.iter().map(move |ridge| (length * length * median, *ridge)));
        let tried = choices.filter_map(|choice| {
            let new: Vec<_> = distances[kept..].iter().map(|row| row[..kept].to_vec()).collect();
            let old: Vec<_> = distances[..kept].iter().map(|row| row[..kept].to_vec()).collect();
            let found = predict(&old, &targets[..kept], &new, choice)?;
            Some((score(&found, &targets[kept..], groups), choice))
        });
        let (_, choice) = tried.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let found = predict(&distances, &targets, &pairs(&others, &inputs), choice)?;
        Some(score(&found, &truth, groups))
    }

    /// The inputs of each sample, with its positions where they differ between samples.
    fn features(samples: &Samples) -> Vec<Vec<f64>> {
        let own = |sample: usize| if samples.share_positions() { &[][..] } else { samples.positions_of(sample) };
        let of =
            |sample: usize| samples.input_of(sample).iter().chain(own(sample)).map(|&value| f64::from(value)).collect();
        (0..samples.count).map(of).collect()
    }

    /// Mean 0 and deviation 1 for each value, or the mean and deviation given.
    fn normalise(rows: &mut [Vec<f64>], given: Option<&[(f64, f64)]>) -> Vec<(f64, f64)> {
        let count = rows.len() as f64;
        let scale = |place: usize| {
            let mean = rows.iter().map(|row| row[place]).sum::<f64>() / count;
            let deviation = (rows.iter().map(|row| (row[place] - mean).powi(2)).sum::<f64>() / count).sqrt();
            (mean, if deviation > 0.0 { deviation } else { 1.0 })
        };
        let width = rows.first().map_or(0, Vec::len);
        let scales: Vec<_> = given.map_or_else(|| (0..width).map(scale).collect(), <[_]>::to_vec);
        for row in rows {
            row.iter_mut().zip(&scales).for_each(|(value, (mean, deviation))| *value = (*value - mean) / deviation);
        }
        scales
    }

    /// Squared distances.
    fn pairs(rows: &[Vec<f64>], columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let distance = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
        rows.iter().map(|row| columns.iter().map(|column| distance(row, column)).collect()).collect()
    }

    /// Predictions for new samples; `None` where the matrix is not positive definite.
    fn predict(old: &[Vec<f64>], targets: &[&[f32]], new: &[Vec<f64>], choice: (f64, f64)) -> Option<Vec<Vec<f64>>> {
        let (length, ridge) = choice;
        let kernel = |distance: &f64| (-0.5 * distance / length).exp();
        let mut matrix: Vec<Vec<f64>> = old.iter().map(|row| row.iter().map(kernel).collect()).collect();
        (0..matrix.len()).for_each(|k| matrix[k][k] += ridge);
        let width = targets.first()?.len();
        let mean: Vec<f64> = (0..width)
            .map(|place| targets.iter().map(|row| f64::from(row[place])).sum::<f64>() / targets.len() as f64)
            .collect();
        let centred = |row: &&[f32]| row.iter().zip(&mean).map(|(&value, mean)| f64::from(value) - mean).collect();
        let weights = solve(matrix, targets.iter().map(centred).collect())?;
        let predicted = |row: &Vec<f64>| {
            let mut sum = mean.clone();
            for (distance, weights) in row.iter().zip(&weights) {
                let factor = kernel(distance);
                sum.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += factor * weight);
            }
            sum
        };
        Some(new.iter().map(predicted).collect())
    }

    /// Solves a symmetric positive definite system for several right-hand sides by Cholesky's factors.
    fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
        let count = matrix.len();
        for row in 0..count {
            for column in 0..=row {
                let (above, below) = matrix.split_at(row);
                let known = if column < row { &above[column] } else { &below[0] };
                let sum: f64 = below[0][..column].iter().zip(&known[..column]).map(|(a, b)| a * b).sum();
                let rest = matrix[row][column] - sum;
                if column == row && rest <= 0.0 {
                    return None;
                }
                matrix[row][column] = if column == row { rest.sqrt() } else { rest / matrix[column][column] };
            }
        }
        let take = |right: &mut Vec<Vec<f64>>, row: usize, other: usize, factor: f64| {
            let from = std::mem::take(&mut right[other]);
            right[row].iter_mut().zip(&from).for_each(|(value, from)| *value -= factor * from);
            right[other] = from;
        };
        for row in 0..count {
            (0..row).for_each(|other| take(&mut right, row, other, matrix[row][other]));
            right[row].iter_mut().for_each(|value| *value /= matrix[row][row]);
        }
        for row in (0..count).rev() {
            (row + 1..count).for_each(|other| take(&mut right, row, other, matrix[other][row]));
            right[row].iter_mut().for_each(|value| *value /= matrix[row][row]);
        }
        Some(right)
    }

    /// The relative L2 of each output, its mean over the samples and outputs.
    fn score(found: &[Vec<f64>], truth: &[&[f32]], groups: usize) -> f64 {
        let relative = |found: &[f64], truth: &[f32], group: usize| {
            let values = found.iter().zip(truth).skip(group).step_by(groups);
            let (miss, size) = values.fold((0.0, 0.0), |(miss, size), (found, &truth)| {
                let truth = f64::from(truth);
                (miss + (found - truth) * (found - truth), size + truth * truth)
            });
            (miss / size).sqrt()
        };
        let pairs = found.iter().zip(truth).flat_map(|pair| (0..groups).map(move |group| (pair, group)));
        pairs.map(|((found, truth), group)| relative(found, truth, group)).sum::<f64>() / (found.len() * groups) as f64
    }
}
