//! `lamo bench step`: what a training step or a forward pass of a benchmark costs.

use super::{ceilings, median, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::experiment::Experiment;
use lamo::layers::Parameters;
use lamo::loss::relative_l2_sum;
use lamo::models::{self, Input};
use lamo::optimiser::AdamW;
use lamo::schedule::Pace;
use lamo_tensor::{Graph, PARAMETERS, Program};
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
    /// Samples per batch; the recipe's unless given.
    #[arg(long)]
    batch: Option<usize>,
    /// The forward pass alone.
    #[arg(long)]
    infer: bool,
    /// Where to compute.
    #[arg(long, default_value = "cpu", value_parser = ["cpu"])]
    device: String,
    /// Threads.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
    /// Timed runs after one that does not count; the median counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
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
    threads: usize,
    batch: usize,
    infer: bool,
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
    if options.repeat == 0 || options.batch == Some(0) {
        bail!("--repeat and --batch must be at least 1");
    }
    let name = match (&options.experiment, &options.benchmark) {
        (Some(name), _) => name.clone(),
        (None, Some(benchmark)) => format!("{benchmark}-{}", options.model),
        (None, None) => bail!("--benchmark or --experiment is needed"),
    };
    let experiment = Experiment::shipped(&name)?;
    let batch = options.batch.unwrap_or(experiment.train.batch);
    let mut program = compile(&experiment, batch, options.infer)?;
    program.run();
    if options.kernels {
        return show_kernels(&mut program);
    }
    let times = (0..options.repeat).map(|_| {
        let start = Instant::now();
        program.run();
        start.elapsed().as_secs_f64()
    });
    let seconds = median(times.collect());
    let flops = program.flops();
    let report = Report {
        experiment: name,
        device: options.device.clone(),
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
        fraction_of_gemm: flops * 1e-9 / seconds / ceilings::gemm_gflops(),
    };
    if options.json {
        print(&serde_json::to_string_pretty(&report)?);
    } else {
        say(&report);
    }
    Ok(())
}

/// The step on made-up data; the loss is relative L2 of the whole field for every benchmark.
fn compile(experiment: &Experiment, batch: usize, infer: bool) -> Result<Program> {
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
    let mut program = Program::compile(&graph);
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
    print(&format!(
        "{}, {kind}, batch {}, {} on {} threads",
        report.experiment, report.batch, report.device, report.threads
    ));
    print(&format!("  time        {:.1} ms, {:.2} samples/s", report.median_seconds * 1e3, report.samples_per_second));
    print(&format!(
        "  arithmetic  {:.1} GFLOP, {:.0} GFLOP/s, {:.0} % of a large matrix product",
        report.flops * 1e-9,
        report.gflops_per_second,
        report.fraction_of_gemm * 100.0
    ));
    print(&format!("  memory      {:.0} MB planned", report.program_bytes as f64 * 1e-6));
    print(&format!("  program     {} kernels, {} parameters", report.kernels, report.parameters));
}

fn show_kernels(program: &mut Program) -> Result<()> {
    for (kernel, seconds) in program.profile() {
        print(&format!("{:9.3} ms  {kernel}", seconds * 1e3));
    }
    Ok(())
}
