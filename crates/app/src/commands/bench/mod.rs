//! `lamo bench`: speed as ratios. Both sides are checked equal, then alternate in one run; times alone mean little on a
//! machine that other work shares.

mod cases;
mod ceilings;
mod points;
mod rival;
mod step;

use anyhow::{Context, Result, bail};
use cases::Case;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use lamo_tensor::{Device, Precision};
use rival::Rival;
use serde::Serialize;
use std::time::Instant;

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Operators and a training step on the CPU, against PyTorch where it is installed.
    ///
    /// Examples:
    ///   lamo bench cpu
    ///   lamo bench cpu --case scan --case step --repeat 21
    ///   lamo bench cpu --json > cpu.json
    #[command(verbatim_doc_comment)]
    Cpu(Cpu),
    /// Time and memory of one LaMO forward pass against the number of points, at fixed tokens.
    ///
    /// Examples:
    ///   lamo bench points
    ///   lamo bench points --from 10000 --to 1000000 --json
    #[command(verbatim_doc_comment)]
    Points(points::Points),
    /// One training step, or one forward pass, of a benchmark's model on made-up data of the real shapes.
    ///
    /// Examples:
    ///   lamo bench step --benchmark darcy
    ///   lamo bench step --benchmark airfoil --model transolver --infer
    ///   lamo bench step --experiment navier-stokes-lamo-paper --batch 4 --json
    #[command(verbatim_doc_comment)]
    Step(step::Step),
}

/// `lamo bench cpu`
#[derive(Args)]
pub(crate) struct Cpu {
    /// Threads on both sides.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from), value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    threads: usize,
    /// Timed runs of each side; the median counts.
    #[arg(long, default_value_t = 11)]
    repeat: usize,
    /// Measure this case only; may be given several times.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Do not look for PyTorch.
    #[arg(long)]
    alone: bool,
    /// Show where the time of a case goes, kernel by kernel.
    #[arg(long)]
    kernels: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Cpu(cpu) => run_cpu(&cpu),
        Bench::Points(points) => points::run(&points),
        Bench::Step(step) => step::run(&step),
    }
}

/// Each turn begins with runs that do not count, for this many seconds: the other side has had the caches, and its idle
/// threads spin for a while before they sleep.
const WARM_UP: f64 = 0.03;

/// What one case showed.
#[derive(Serialize)]
struct Row {
    case: &'static str,
    sizes: serde_json::Value,
    /// Median seconds.
    lamo_seconds: f64,
    torch_seconds: Option<f64>,
    /// PyTorch's time divided by ours.
    ratio: Option<f64>,
    gflops: Option<f64>,
    fraction_of_gemm: Option<f64>,
    gigabytes_per_second: f64,
    fraction_of_copy: f64,
    lamo_peak_bytes: Option<u64>,
    torch_peak_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Report {
    threads: usize,
    vector_unit: String,
    torch: Option<String>,
    gemm_gflops: f64,
    copy_gigabytes_per_second: f64,
    rows: Vec<Row>,
}

fn run_cpu(options: &Cpu) -> Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global().context("starting threads")?;
    if options.repeat == 0 {
        bail!("--repeat 0: at least one run is needed");
    }
    for name in &options.cases {
        if !cases::CASES.iter().any(|case| case.name == name) {
            let mut known: Vec<_> = cases::CASES.iter().map(|case| case.name).collect();
            known.dedup(); // a case may have several sizes
            bail!("--case {name}: no such case; there are {}", known.join(", "));
        }
    }
    let wanted = |case: &&Case| options.cases.is_empty() || options.cases.iter().any(|name| name == case.name);
    let chosen: Vec<&Case> = cases::CASES.iter().filter(wanted).collect();
    if options.kernels {
        return show_kernels(&chosen, options);
    }
    // Memory first, while nothing else has touched the process.
    let memory = chosen.iter().find(|case| case.measures_memory).map(|case| peak_memory(case, options)).transpose()?;
    let mut rival = if options.alone { None } else { Rival::start(options.threads)? };
    let mut report = Report {
        threads: options.threads,
        vector_unit: format!("{:?}", lamo_tensor::level()),
        torch: rival.as_ref().map(|rival| rival.version.clone()),
        gemm_gflops: ceilings::gemm_gflops(Device::Cpu, Precision::F32)?,
        copy_gigabytes_per_second: ceilings::copy_gigabytes_per_second(),
        rows: Vec::new(),
    };
    if !options.json {
        print_head(&report, options.alone);
    }
    for case in chosen {
        let mut row = measure(case, rival.as_mut(), options.repeat, &report)?;
        if case.measures_memory {
            (row.lamo_peak_bytes, row.torch_peak_bytes) = memory.unwrap_or_default();
        }
        if !options.json {
            print_row(&row);
        }
        report.rows.push(row);
    }
    if options.json {
        print(&serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Checks both sides equal, then times them in turns.
fn measure(case: &Case, mut rival: Option<&mut Rival>, repeat: usize, ceilings: &Report) -> Result<Row> {
    let mut ours = (case.build)();
    ours.run();
    let check = ours.check();
    if let Some(rival) = rival.as_deref_mut() {
        let theirs = rival.check(case)?;
        let error = (check - theirs).abs();
        if error.is_nan() || error > case.tolerance {
            bail!(
                "{}: our result {check} and PyTorch's {theirs} differ by {error:.1e}, so timing means nothing",
                case.name
            );
        }
    }
    let (mut our_seconds, mut their_seconds) = (Vec::new(), Vec::new());
    for _ in 0..repeat {
        if let Some(rival) = rival.as_deref_mut() {
            // As many runs as fill the warm-up, then one that counts.
            let last = their_seconds.last().copied().unwrap_or(WARM_UP);
            their_seconds.push(rival.seconds(case, 1 + (WARM_UP / last).ceil() as usize)?);
        }
        let turn = Instant::now();
        while turn.elapsed().as_secs_f64() < WARM_UP {
            ours.run();
        }
        let start = Instant::now();
        ours.run();
        our_seconds.push(start.elapsed().as_secs_f64());
    }
    let lamo_seconds = median(our_seconds);
    let torch_seconds = (!their_seconds.is_empty()).then(|| median(their_seconds));
    let gflops = (case.gflop > 0.0).then_some(case.gflop / lamo_seconds);
    let gigabytes_per_second = case.megabytes * 1e-3 / lamo_seconds;
    Ok(Row {
        case: case.name,
        sizes: case.sizes(),
        lamo_seconds,
        torch_seconds,
        ratio: torch_seconds.map(|theirs| theirs / lamo_seconds),
        gflops,
        fraction_of_gemm: gflops.map(|gflops| gflops / ceilings.gemm_gflops),
        gigabytes_per_second,
        fraction_of_copy: gigabytes_per_second / ceilings.copy_gigabytes_per_second,
        lamo_peak_bytes: None,
        torch_peak_bytes: None,
    })
}

/// Growth of the process from before the case is built to its highest point, on both sides.
fn peak_memory(case: &Case, options: &Cpu) -> Result<(Option<u64>, Option<u64>)> {
    let before = ceilings::resident_bytes();
    let mut ours = (case.build)();
    (0..3).for_each(|_| ours.run());
    let ours = ceilings::peak_bytes().zip(before).map(|(peak, before)| peak.saturating_sub(before));
    let theirs = match if options.alone { None } else { Rival::start(options.threads)? } {
        Some(mut rival) => {
            let before = rival.memory()?.resident_bytes;
            rival.seconds(case, 3)?;
            Some(rival.memory()?.peak_bytes.saturating_sub(before))
        }
        None => None,
    };
    Ok((ours, theirs))
}

/// A line on standard output; without a reader there is no point in measuring on.
fn print(text: &str) {
    if let Err(error) = super::say(text) {
        super::say_error(&error);
        std::process::exit(1);
    }
}

fn print_head(report: &Report, asked_alone: bool) {
    let against = match &report.torch {
        Some(version) => format!("against PyTorch {version}"),
        None if asked_alone => "alone".to_owned(),
        None => "alone: python3 with torch was not found".to_owned(),
    };
    print(&format!("{} threads, {}, {against}", report.threads, report.vector_unit));
    print(&format!(
        "ceilings here: matrix product {:.0} GFLOP/s, copy {:.1} GB/s\n",
        report.gemm_gflops, report.copy_gigabytes_per_second
    ));
    print("case              lamo      torch    ratio   GFLOP/s  of gemm     GB/s  of copy");
}

fn print_row(row: &Row) {
    let milliseconds = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    print(&format!(
        "{:<12} {:>10} {:>10} {:>8} {:>9} {:>8} {:>8.1} {:>8}",
        row.case,
        milliseconds(row.lamo_seconds),
        or_dash(row.torch_seconds.map(milliseconds)),
        or_dash(row.ratio.map(|ratio| format!("{ratio:.2}x"))),
        or_dash(row.gflops.map(|gflops| format!("{gflops:.1}"))),
        or_dash(row.fraction_of_gemm.map(|fraction| format!("{:.0} %", 100.0 * fraction))),
        row.gigabytes_per_second,
        format!("{:.0} %", 100.0 * row.fraction_of_copy),
    ));
    if let Some(ours) = row.lamo_peak_bytes {
        let theirs =
            row.torch_peak_bytes.map_or(String::new(), |bytes| format!(", torch {:.0} MB", bytes as f64 * 1e-6));
        print(&format!("            peak memory: lamo {:.0} MB{theirs}", ours as f64 * 1e-6));
    }
}

fn show_kernels(chosen: &[&Case], options: &Cpu) -> Result<()> {
    for case in chosen {
        let mut ours = (case.build)();
        ours.run();
        let profiles: Vec<_> = (0..options.repeat).map(|_| ours.profile()).collect();
        let mut total = 0.0;
        print(&format!("{} {}", case.name, case.sizes()));
        for kernel in 0..profiles[0].len() {
            let seconds = median(profiles.iter().map(|profile| profile[kernel].1).collect());
            total += seconds;
            print(&format!("{:9.3} ms  {}", seconds * 1e3, profiles[0][kernel].0));
        }
        print(&format!("{:9.3} ms  in all", total * 1e3));
    }
    Ok(())
}
