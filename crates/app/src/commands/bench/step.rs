//! `lamo bench step`: what a training step or a forward pass of a benchmark costs.

use super::{ceilings, median, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use lamo::experiment::{Experiment, Loss};
use lamo::layers::Parameters;
use lamo::loss::relative_l2_sum;
use lamo::models::{self, Input};
use lamo::optimiser::AdamW;
use lamo::schedule::Pace;
use lamo_tensor::{Device, Graph, PARAMETERS, Precision, Program};
use serde::Serialize;
use std::time::Instant;

/// `lamo bench step`
#[derive(Args)]
pub(crate) struct Step {
    /// One of the six benchmarks.
    #[arg(long, required_unless_present = "experiment")]
    benchmark: Option<String>,
    /// The model of its official experiment.
    #[arg(long, default_value = "lamo")]
    model: String,
    /// A shipped experiment by name, instead of benchmark and model.
    #[arg(long, conflicts_with_all = ["benchmark", "model"])]
    experiment: Option<String>,
    /// Samples per batch; the recipe's unless given. A training step takes all frames of each.
    #[arg(long)]
    batch: Option<usize>,
    /// The forward pass alone.
    #[arg(long)]
    infer: bool,
    /// Where to compute.
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// What products, convolutions and scans round to on a card: f32, tf32 or bf16, which leaves scans in tf32.
    #[arg(long, default_value = "tf32")]
    precision: Precision,
    /// Threads.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from), value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    threads: usize,
    /// Timed runs after one that does not count; the median counts. 5 on a CPU and 50 on a card unless given.
    #[arg(long)]
    repeat: Option<usize>,
    /// Show where the time goes, kernel by kernel.
    #[arg(long)]
    kernels: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    experiment: String,
    device: String,
    precision: String,
    threads: usize,
    batch: usize,
    infer: bool,
    /// From nothing to the end of the first run: compiling, allocating, running.
    first_seconds: f64,
    parameters: usize,
    kernels: usize,
    median_seconds: f64,
    samples_per_second: f64,
    /// What the program holds for values, parameters and scratch.
    program_bytes: usize,
    /// Highest memory of the process, where the system tells.
    peak_bytes: Option<u64>,
    flops: f64,
    gflops_per_second: f64,
    /// Of a large matrix product measured in the same run.
    fraction_of_gemm: f64,
}

pub(super) fn run(options: &Step) -> Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global().context("starting threads")?;
    if options.repeat == Some(0) || options.batch == Some(0) {
        bail!("--repeat and --batch must be at least 1");
    }
    let name = match (&options.experiment, &options.benchmark) {
        (Some(name), _) => name.clone(),
        (None, Some(benchmark)) => format!("{benchmark}-{}", options.model),
        (None, None) => bail!("--benchmark or --experiment is needed"),
    };
    let experiment = Experiment::shipped(&name)?;
    // The ten teacher-forced frames of a sample are ten samples of one step.
    let frames = if experiment.train.loss == Loss::RelativeL2OfFrames { 10 } else { 1 };
    let batch = options.batch.unwrap_or(experiment.train.batch) * if options.infer { 1 } else { frames };
    let began = Instant::now();
    let mut program = compile(&experiment, batch, options)?;
    program.run();
    program.synchronise();
    let first = began.elapsed().as_secs_f64();
    if options.kernels {
        return show_kernels(&mut program);
    }
    let repeat = options.repeat.unwrap_or(if options.device == Device::Cpu { 5 } else { 50 });
    let times = (0..repeat).map(|_| {
        let start = Instant::now();
        program.run();
        program.synchronise();
        start.elapsed().as_secs_f64()
    });
    let seconds = median(times.collect());
    let flops = program.flops();
    let report = Report {
        experiment: name,
        device: options.device.to_string(),
        precision: if options.device == Device::Cpu { Precision::F32 } else { options.precision }.to_string(),
        first_seconds: first,
        threads: options.threads,
        batch,
        infer: options.infer,
        parameters: program.read(PARAMETERS).len(),
        kernels: program.kernels(),
        median_seconds: seconds,
        samples_per_second: batch as f64 / seconds,
        program_bytes: program.bytes(),
        peak_bytes: ceilings::peak_bytes(),
        flops,
        gflops_per_second: flops * 1e-9 / seconds,
        fraction_of_gemm: flops * 1e-9 / seconds / ceilings::gemm_gflops(options.device, options.precision)?,
    };
    if options.json {
        print(&serde_json::to_string_pretty(&report)?);
    } else {
        say(&report);
    }
    Ok(())
}

/// The step on made-up data; the loss is relative L2 of the whole field for every benchmark.
fn compile(experiment: &Experiment, batch: usize, options: &Step) -> Result<Program> {
    let infer = options.infer;
    let task = experiment.benchmark()?.task(batch);
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = models::find(&experiment.model.name)?.build(&parameters, &task, &experiment.model.settings)?;
    let out = model.forward(&Input::declare(&graph, &task));
    let target = (!infer).then(|| graph.input("target", out.shape()));
    let adamw = AdamW::default();
    match target {
        Some(target) => {
            let loss = relative_l2_sum(out, target);
            graph.output("loss", loss);
            adamw.minimise(&graph, loss);
        }
        None => graph.output("out", out),
    }
    let mut program = Program::compile_on(&graph, options.device, options.precision)?;
    parameters.initialise(&mut program, 0);
    let points = task.grid.points();
    let wave = |count: usize| -> Vec<f32> { (0..count).map(|i| 0.5 + 0.5 * (0.37 * i as f32).sin()).collect() };
    program.write("positions", &wave(batch * points * task.space));
    if task.functions > 0 {
        program.write("functions", &wave(batch * points * task.functions));
    }
    if task.time {
        program.write("time", &wave(batch));
    }
    if !infer {
        program.write("target", &wave(batch * points * task.outputs));
        adamw.pace(&mut program, 0, Pace { rate: 1e-4, beta1: 0.9 });
    }
    Ok(program)
}

fn say(report: &Report) {
    let kind = if report.infer { "forward pass" } else { "training step" };
    let place = match report.device.as_str() {
        "cpu" => format!("cpu on {} threads", report.threads),
        card => format!("{card} in {}", report.precision),
    };
    print(&format!("{}, {kind}, batch {}, {place}", report.experiment, report.batch));
    print(&format!(
        "  time        {:.3} ms, {:.2} samples/s; the first after {:.1} s",
        report.median_seconds * 1e3,
        report.samples_per_second,
        report.first_seconds
    ));
    print(&format!(
        "  arithmetic  {:.1} GFLOP, {:.0} GFLOP/s, {:.0} % of a large matrix product",
        report.flops * 1e-9,
        report.gflops_per_second,
        report.fraction_of_gemm * 100.0
    ));
    print(&format!("  memory      {:.0} MB planned", report.program_bytes as f64 * 1e-6));
    print(&format!("  program     {} kernels, {} parameters", report.kernels, report.parameters));
}

/// Kernels by what they do, dearest first, then one by one.
fn show_kernels(program: &mut Program) -> Result<()> {
    let kernels = program.profile();
    let total: f64 = kernels.iter().map(|(_, seconds)| seconds).sum();
    let mut alike: Vec<(&str, usize, f64)> = Vec::new();
    for (kernel, seconds) in &kernels {
        match alike.iter_mut().find(|(known, ..)| shape_of(known) == shape_of(kernel)) {
            Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + seconds),
            None => alike.push((kernel, 1, *seconds)),
        }
    }
    alike.sort_by(|a, b| b.2.total_cmp(&a.2));
    print("   share  total ms  times  each us  kernel");
    for (kernel, count, seconds) in alike {
        print(&format!(
            "{:6.1} % {:9.4} {count:6} {:8.1}  {kernel}",
            seconds / total * 100.0,
            seconds * 1e3,
            seconds * 1e6 / count as f64
        ));
    }
    print(&format!("{:9.4} ms in {} kernels one by one", total * 1e3, kernels.len()));
    Ok(())
}

/// A kernel's description without the numbers of its buffers and registers.
fn shape_of(kernel: &str) -> String {
    let mut shape = String::new();
    let mut skipping = false;
    for character in kernel.chars() {
        skipping = (skipping && character.is_ascii_digit()) || character == '#';
        if !skipping || character == '#' {
            shape.push(character);
        }
    }
    shape
}
