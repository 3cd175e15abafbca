//! `lamo bench`: speed as ratios. Both sides are first checked to be equal, then timed in turns in one process, because
//! other work on the machine changes absolute times.

mod cases;
mod ceilings;
mod points;
mod ragged;
mod serve;
mod step;
mod torch;

use super::{say, start_threads};
use anyhow::Result;
use cases::Case;
use clap::{Args, Subcommand};
use lamo::Kind;
use lamo::error::{Refusal, counted};
use lamo_tensor::{Device, Precision};
use serde::Serialize;
use std::time::Instant;
use torch::Torch;

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Time operators and a training step on the CPU, and compare with PyTorch if it is installed.
    ///
    /// Examples:
    ///   lamo bench cpu
    ///   lamo bench cpu --case scan --case step --repeat 21
    ///   lamo bench cpu --json > cpu.json
    #[command(verbatim_doc_comment)]
    Cpu(Cpu),
    /// Time and memory of a forward pass for growing numbers of points, at a fixed number of tokens.
    ///
    /// Examples:
    ///   lamo bench points
    ///   lamo bench points --from 10000 --to 1000000 --json
    #[command(verbatim_doc_comment)]
    Points(points::Points),
    /// Time a training step or a forward pass of a benchmark, on synthetic data of the real shapes.
    ///
    /// Examples:
    ///   lamo bench step --benchmark darcy
    ///   lamo bench step --benchmark airfoil --model transolver --infer
    ///   lamo bench step --experiment navier-stokes-lamo-paper --batch 4 --json
    #[command(verbatim_doc_comment)]
    Step(step::Step),
    /// Load a server: throughput and waiting times of many clients and of one, each answer compared with that of a request by
    /// itself.
    ///
    /// Examples:
    ///   lamo bench serve darcy --clients 32 --seconds 60
    ///   lamo bench serve darcy --url http://127.0.0.1:8080 --json
    #[command(verbatim_doc_comment)]
    Serve(serve::Serve),
}

/// `lamo bench cpu`
#[derive(Args)]
pub(crate) struct Cpu {
    /// Number of threads of both sides; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Timed runs of each side; the result is their median.
    #[arg(long, value_name = "N", default_value_t = 11)]
    repeat: usize,
    /// Measure only this case; may be repeated.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Do not compare with PyTorch.
    #[arg(long)]
    alone: bool,
    /// Print the time of each kernel.
    #[arg(long)]
    kernels: bool,
    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

impl Bench {
    /// Whether a script asked for JSON on standard output.
    pub(crate) fn json(&self) -> bool {
        match self {
            Bench::Cpu(cpu) => cpu.json,
            Bench::Points(points) => points.json,
            Bench::Step(step) => step.json,
            Bench::Serve(serve) => serve.json,
        }
    }
}

pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Cpu(cpu) => run_cpu(cpu),
        Bench::Points(points) => points::run(points),
        Bench::Step(step) => step::run(step),
        Bench::Serve(serve) => serve::run(serve),
    }
}

/// Refuses the value of a flag if `wrong`.
fn refuse(wrong: bool, flag: &str, expected: &str, found: &str) -> Result<(), Refusal> {
    if wrong { Err(Refusal::new(flag, expected, found)) } else { Ok(()) }
}

/// Seconds of runs before each timed one. The other side has filled the caches, and its idle threads spin for a while before
/// they sleep.
const WARM_UP: f64 = 0.03;

/// The result of one case.
#[derive(Serialize)]
struct Row {
    case: &'static str,
    sizes: serde_json::Value,
    /// Median seconds.
    lamo_seconds: f64,
    torch_seconds: Option<f64>,
    /// The time of PyTorch divided by ours.
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
    let threads = start_threads(options.threads)?;
    refuse(options.repeat == 0, "--repeat", "at least 1", "0")?;
    let mut known: Vec<_> = cases::CASES.iter().map(|case| case.name).collect();
    known.dedup(); // a case may have several sizes
    for name in &options.cases {
        refuse(!known.contains(&name.as_str()), "--case", &format!("one of {}", known.join(", ")), name)?;
    }
    let wanted = |case: &&Case| options.cases.is_empty() || options.cases.iter().any(|name| name == case.name);
    let chosen: Vec<&Case> = cases::CASES.iter().filter(wanted).collect();
    if options.kernels {
        return show_kernels(&chosen, options);
    }
    let start_torch = || if options.alone { Ok(None) } else { Torch::start(threads) };
    // Memory comes first, because the peak of the process never falls.
    let memory = chosen.iter().find(|case| case.measures_memory);
    let memory = memory.map(|case| peak_memory(case, start_torch()?)).transpose()?;
    let mut torch = start_torch()?;
    let mut report = Report {
        threads,
        vector_unit: format!("{:?}", lamo_tensor::level()),
        torch: torch.as_ref().map(|torch| torch.version.clone()),
        gemm_gflops: ceilings::gemm_gflops(Device::Cpu, Precision::F32)?,
        copy_gigabytes_per_second: ceilings::copy_gigabytes_per_second(),
        rows: Vec::new(),
    };
    if !options.json {
        print_head(&report, options.alone)?;
    }
    for case in chosen {
        let mut row = measure(case, torch.as_mut(), options.repeat, &report)?;
        if case.measures_memory {
            (row.lamo_peak_bytes, row.torch_peak_bytes) = memory.unwrap_or_default();
        }
        if !options.json {
            print_row(&row)?;
        }
        report.rows.push(row);
    }
    if options.json { say(&serde_json::to_string_pretty(&report)?) } else { Ok(()) }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Checks that both sides are equal, then times them in turns.
fn measure(case: &Case, mut torch: Option<&mut Torch>, repeat: usize, ceilings: &Report) -> Result<Row> {
    let mut ours = (case.build)();
    ours.run();
    let check = ours.check();
    if let Some(torch) = torch.as_deref_mut() {
        let theirs = torch.check(case)?;
        let error = (check - theirs).abs();
        if error.is_nan() || error > case.tolerance {
            let expected = format!("our result {check} and that of PyTorch within {:.0e}", case.tolerance);
            let refusal = Refusal::new(case.name, expected, format!("{theirs}, which differs by {error:.1e}"));
            return Err(refusal.of(Kind::Failed).into());
        }
    }
    let (mut our_seconds, mut their_seconds) = (Vec::new(), Vec::new());
    for _ in 0..repeat {
        if let Some(torch) = torch.as_deref_mut() {
            // As many runs as fill the warm-up, then the timed one.
            let last = their_seconds.last().copied().unwrap_or(WARM_UP);
            their_seconds.push(torch.seconds(case, 1 + (WARM_UP / last).ceil() as usize)?);
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

/// How much the process grows from before the case is built to its peak, on both sides.
fn peak_memory(case: &Case, torch: Option<Torch>) -> Result<(Option<u64>, Option<u64>)> {
    let before = ceilings::resident_bytes();
    let mut ours = (case.build)();
    (0..3).for_each(|_| ours.run());
    let ours = ceilings::peak_bytes().zip(before).map(|(peak, before)| peak.saturating_sub(before));
    let theirs = match torch {
        Some(mut torch) => {
            let before = torch.memory()?.resident_bytes;
            torch.seconds(case, 3)?;
            Some(torch.memory()?.peak_bytes.saturating_sub(before))
        }
        None => None,
    };
    Ok((ours, theirs))
}

fn print_head(report: &Report, alone: bool) -> Result<()> {
    let against = match &report.torch {
        Some(version) => format!("compared with PyTorch {version}"),
        None if alone => "without PyTorch".to_owned(),
        None => "without PyTorch: python3 with torch was not found".to_owned(),
    };
    say(&format!("{}, {}, {against}", counted(report.threads, "thread"), report.vector_unit))?;
    say(&format!(
        "limits of this machine: matrix product {:.0} GFLOP/s, copy {:.1} GB/s\n",
        report.gemm_gflops, report.copy_gigabytes_per_second
    ))?;
    say("case              lamo      torch    ratio   GFLOP/s  of gemm     GB/s  of copy")
}

fn print_row(row: &Row) -> Result<()> {
    let milliseconds = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    say(&format!(
        "{:<12} {:>10} {:>10} {:>8} {:>9} {:>8} {:>8.1} {:>8}",
        row.case,
        milliseconds(row.lamo_seconds),
        or_dash(row.torch_seconds.map(milliseconds)),
        or_dash(row.ratio.map(|ratio| format!("{ratio:.2}x"))),
        or_dash(row.gflops.map(|gflops| format!("{gflops:.1}"))),
        or_dash(row.fraction_of_gemm.map(|fraction| format!("{:.0} %", 100.0 * fraction))),
        row.gigabytes_per_second,
        format!("{:.0} %", 100.0 * row.fraction_of_copy),
    ))?;
    let Some(ours) = row.lamo_peak_bytes else { return Ok(()) };
    let theirs = row.torch_peak_bytes.map_or(String::new(), |bytes| format!(", torch {:.0} MB", bytes as f64 * 1e-6));
    say(&format!("            peak memory: lamo {:.0} MB{theirs}", ours as f64 * 1e-6))
}

fn show_kernels(chosen: &[&Case], options: &Cpu) -> Result<()> {
    for case in chosen {
        let mut ours = (case.build)();
        ours.run();
        let profiles: Vec<_> = (0..options.repeat).map(|_| ours.profile()).collect();
        let mut total = 0.0;
        say(&format!("{} {}", case.name, case.sizes()))?;
        for kernel in 0..profiles[0].len() {
            let seconds = median(profiles.iter().map(|profile| profile[kernel].1).collect());
            total += seconds;
            say(&format!("{:9.3} ms  {}", seconds * 1e3, profiles[0][kernel].0))?;
        }
        say(&format!("{:9.3} ms  in total", total * 1e3))?;
    }
    Ok(())
}
