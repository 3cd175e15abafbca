//! `lamo bench step`: what a training step or a forward pass of a benchmark costs.

use super::{ceilings, median, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use lamo::data::Samples;
use lamo::experiment::{Experiment, Preset, Request, shipped_text};
use lamo::network::models;
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo::training::StepProgram;
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
    /// Any key of the experiment; may be repeated, the last one wins.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Samples per batch; the recipe's unless given. A training step takes all snapshots of each.
    #[arg(long)]
    batch: Option<usize>,
    /// The forward pass alone.
    #[arg(long)]
    infer: bool,
    /// Where to compute.
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// What products, convolutions and scans round to on a GPU: f32, tf32 or bf16, which leaves scans in tf32.
    #[arg(long, default_value = "tf32")]
    precision: Precision,
    /// Threads.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from), value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    threads: usize,
    /// Timed runs after one that does not count; the median counts. 5 on a CPU and 50 on a GPU unless given.
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
    let experiment = experiment(options)?;
    let began = Instant::now();
    let mut timed = Timed::compile(&experiment, options)?;
    timed.run()?;
    let first = began.elapsed().as_secs_f64();
    if options.kernels {
        return show_kernels(timed.program());
    }
    let repeat = options.repeat.unwrap_or(if options.device == Device::Cpu { 5 } else { 50 });
    let mut times = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        let start = Instant::now();
        timed.run()?;
        times.push(start.elapsed().as_secs_f64());
    }
    let (seconds, batch) = (median(times), timed.batch);
    let program = timed.program();
    let flops = program.flops();
    let report = Report {
        experiment: format!("{}-{}", experiment.benchmark, experiment.model.name),
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

/// The experiment to measure: the published recipe, changed by `--set`, `--batch` and `--precision`.
fn experiment(options: &Step) -> Result<Experiment> {
    let mut changes = vec![format!("precision={}", options.precision)];
    changes.extend(options.batch.map(|batch| format!("train.batch={batch}")));
    changes.extend(options.set.iter().cloned());
    let request = Request { changes: &changes, ..Request::default() };
    Ok(match (&options.experiment, &options.benchmark) {
        (Some(name), _) => Request { file: Some((name, shipped_text(name)?)), ..request }.resolve()?,
        (None, Some(benchmark)) => {
            let (benchmark, model) = (Some(benchmark.as_str()), Some(options.model.as_str()));
            Request { benchmark, model, preset: Some(Preset::Paper), ..request }.resolve()?
        }
        (None, None) => bail!("--benchmark or --experiment is needed"),
    })
}

/// A compiled program with made-up data.
struct Timed {
    kind: Kind,
    /// Samples per run; the snapshots of a teacher-forced series count one by one.
    batch: usize,
}

enum Kind {
    /// The trainer's own program.
    Step(Box<StepProgram>),
    Forward(Box<Program>),
}

fn wave(count: usize) -> Vec<f32> {
    (0..count).map(|i| 0.5 + 0.5 * (0.37 * i as f32).sin()).collect()
}

impl Timed {
    fn compile(experiment: &Experiment, options: &Step) -> Result<Timed> {
        let (task, batch) = (experiment.benchmark()?.task(), experiment.train.batch);
        if options.infer {
            let kind = Kind::Forward(Box::new(forward(experiment, &task, batch, options.device)?));
            return Ok(Timed { kind, batch });
        }
        let samples = made_up(&task, batch)?;
        let task = experiment.task(&samples)?;
        let step = StepProgram::new(experiment, &task, &samples, options.device)?;
        Ok(Timed { kind: Kind::Step(Box::new(step)), batch: batch * task.time.windows() })
    }

    /// One run, to its end.
    fn run(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Step(step) => {
                step.run(0)?;
                step.program().try_synchronise()?;
            }
            Kind::Forward(program) => {
                program.try_run()?;
                program.try_synchronise()?;
            }
        }
        Ok(())
    }

    fn program(&mut self) -> &mut Program {
        match &mut self.kind {
            Kind::Step(step) => step.program(),
            Kind::Forward(program) => program,
        }
    }
}

/// A batch of samples as the benchmark has them: points that differ where no function is given, else a lattice.
fn made_up(task: &Task, batch: usize) -> Result<Samples> {
    let (points, functions, outputs) = (task.grid.points(), task.input_channels(), task.output_channels());
    let times = task.time.count();
    let lattice = task.grid.lattice(false).filter(|_| functions > 0);
    Ok(Samples {
        count: batch,
        grid: task.grid,
        space: task.space,
        positions: lattice.unwrap_or_else(|| wave(batch * points * task.space)),
        functions,
        inputs: wave(batch * points * functions),
        times,
        outputs,
        targets: wave(batch * times * points * outputs),
    })
}

fn forward(experiment: &Experiment, task: &Task, batch: usize, device: Device) -> Result<Program> {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = models::find(&experiment.model.name)?.build(&parameters, task, &experiment.model.settings)?;
    graph.output("out", model.forward(&Input::declare(&graph, task, batch), Mode::Inference));
    let mut program = Program::compile_on(&graph, device, experiment.precision)?;
    parameters.initialise(&mut program, 0);
    let points = task.grid.points();
    program.try_write("positions", &wave(batch * points * task.space))?;
    if task.input_channels() > 0 {
        program.try_write("functions", &wave(batch * points * task.input_channels()))?;
    }
    if task.time.is_input() {
        program.try_write("time", &wave(batch))?;
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
