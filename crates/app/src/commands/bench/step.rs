//! `lamo bench step`: time and memory of a training step or a forward pass of a benchmark.

use super::{ceilings, median, ragged, refuse};
use crate::commands::{say, start_threads};
use anyhow::Result;
use clap::Args;
use lamo::data::Samples;
use lamo::error::{Refusal, counted};
use lamo::experiment::{Experiment, Preset, Request, shipped_text};
use lamo::network::models;
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo::training::StepProgram;
use lamo_tensor::{Device, Graph, PARAMETERS, Precision, Program};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::time::Instant;

/// `lamo bench step`
#[derive(Args)]
pub(crate) struct Step {
    /// The benchmark; lamo list names them all.
    #[arg(long, value_name = "NAME", required_unless_present = "experiment")]
    benchmark: Option<String>,
    /// The model, with its published recipe for the benchmark.
    #[arg(long, value_name = "M", default_value = "lamo")]
    model: String,
    /// The name of a shipped experiment, instead of benchmark and model.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["benchmark", "model"])]
    experiment: Option<String>,
    /// Set any key of the experiment; may be repeated, the last one wins.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Samples per batch; as in the recipe unless given. A training step takes all snapshots of each sample.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Measure the forward pass only.
    #[arg(long)]
    infer: bool,
    /// Compare the cost of a point in training with that at equal size: clouds from (1 - S) to (1 + S) times the points of the
    /// benchmark, S below 1.
    #[arg(long, value_name = "S", conflicts_with_all = ["infer", "kernels"])]
    ragged: Option<f64>,
    /// Compare the rate of this many trainings side by side with that of one.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(2..), conflicts_with_all = ["infer", "kernels", "ragged"])]
    together: Option<u8>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    pub(super) device: Device,
    /// Precision of products, convolutions and scans on a GPU: f32, tf32 or bf16. With bf16, scans compute in tf32.
    #[arg(long, value_name = "P", default_value = "tf32")]
    pub(super) precision: Precision,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Timed runs after a first one that does not count; the result is their median. 5 on a CPU and 50 on a GPU unless given.
    #[arg(long, value_name = "N")]
    pub(super) repeat: Option<usize>,
    /// Print the time of each kernel.
    #[arg(long)]
    kernels: bool,
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Report {
    experiment: String,
    device: String,
    precision: String,
    threads: usize,
    batch: usize,
    infer: bool,
    /// Time to compile, allocate and run once.
    first_seconds: f64,
    parameters: usize,
    kernels: usize,
    median_seconds: f64,
    samples_per_second: f64,
    /// Memory of the program: values, parameters and scratch.
    program_bytes: usize,
    /// Largest memory of the process, if the system tells it.
    peak_bytes: Option<u64>,
    flops: f64,
    gflops_per_second: f64,
    /// Speed relative to that of a large matrix product, measured in the same process.
    fraction_of_gemm: f64,
}

pub(super) fn run(options: &Step) -> Result<()> {
    let threads = start_threads(options.threads)?;
    refuse(options.repeat == Some(0), "--repeat", "at least 1", "0")?;
    refuse(options.batch == Some(0), "--batch", "at least 1", "0")?;
    let experiment = experiment(options)?;
    if let Some(spread) = options.ragged {
        return ragged::run(options, &experiment, spread);
    }
    if let Some(count) = options.together {
        return together(options, &experiment, usize::from(count));
    }
    let started = Instant::now();
    let mut timed = Timed::compile(&experiment, options)?;
    timed.run()?;
    let first = started.elapsed().as_secs_f64();
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
        threads,
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
    if options.json { say(&serde_json::to_string_pretty(&report)?) } else { show(&report) }
}

/// Steps per second of `count` trainings, each in a thread of its own, and of one alone.
fn together(options: &Step, experiment: &Experiment, count: usize) -> Result<()> {
    let repeat = options.repeat.unwrap_or(if options.device == Device::Cpu { 5 } else { 300 });
    let rate = |count: usize| -> Result<f64> {
        let ready = Barrier::new(count);
        let seconds = std::thread::scope(|scope| -> Result<f64> {
            let one = || -> Result<f64> {
                let first = || Timed::compile(experiment, options).and_then(|mut timed| timed.run().map(|()| timed));
                let timed = catch_unwind(AssertUnwindSafe(first));
                ready.wait(); // also after an error or a panic: the others wait
                let timed = timed.unwrap_or_else(|panic| resume_unwind(panic));
                let (mut timed, start) = (timed?, Instant::now());
                timed.steps(repeat)?;
                Ok(start.elapsed().as_secs_f64())
            };
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(one)).collect();
            let ends = threads.into_iter().map(|thread| thread.join().expect("a training does not panic"));
            ends.collect::<Result<Vec<f64>>>().map(|ends| ends.into_iter().fold(0.0, f64::max))
        })?;
        Ok((count * repeat) as f64 / seconds)
    };
    let (alone, all) = (rate(1)?, rate(count)?);
    if options.json {
        let report = serde_json::json!({ "experiment": format!("{}-{}", experiment.benchmark, experiment.model.name),
            "device": options.device.to_string(), "trainings": count, "steps_per_second_alone": alone,
            "steps_per_second_together": all, "ratio": all / alone });
        return say(&serde_json::to_string_pretty(&report)?);
    }
    say(&format!(
        "{}-{}: {alone:.1} steps/s alone, {all:.1} steps/s of {count} trainings side by side, {:.2} times",
        experiment.benchmark,
        experiment.model.name,
        all / alone
    ))
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
        (None, None) => return Err(Refusal::said("--benchmark or --experiment is needed").into()), // clap requires one
    })
}

/// A compiled program with synthetic data.
struct Timed {
    kind: Kind,
    /// Samples per run; each snapshot of a teacher-forced time series counts as one.
    batch: usize,
}

enum Kind {
    /// The trainer's own program.
    Step(Box<StepProgram>),
    Forward(Box<Program>),
}

/// Synthetic values from 0 to 1.
pub(super) fn wave(count: usize) -> Vec<f32> {
    (0..count).map(|i| 0.5 + 0.5 * (0.37 * i as f32).sin()).collect()
}

impl Timed {
    fn compile(experiment: &Experiment, options: &Step) -> Result<Timed> {
        let (task, batch) = (experiment.benchmark()?.task(), experiment.train.batch);
        if options.infer {
            let kind = Kind::Forward(Box::new(forward(experiment, &task, batch, options.device)?));
            return Ok(Timed { kind, batch });
        }
        let samples = synthetic(&task, batch.max(2)); // a sample alone would share its points with all
        let task = experiment.task(&samples)?;
        let step = StepProgram::new(experiment, &task, &samples, options.device)?;
        Ok(Timed { kind: Kind::Step(Box::new(step)), batch: batch * task.time.windows() })
    }

    /// Runs the program once and waits for its end.
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

    /// Runs the program several times as a training does, which waits at the end alone.
    fn steps(&mut self, count: usize) -> Result<()> {
        if let Kind::Step(step) = &mut self.kind {
            (0..count).try_for_each(|_| step.run(0))?;
        }
        Ok(self.program().try_synchronise()?)
    }

    fn program(&mut self) -> &mut Program {
        match &mut self.kind {
            Kind::Step(step) => step.program(),
            Kind::Forward(program) => program,
        }
    }
}

/// A batch of samples of the shapes of the benchmark. Without input functions each sample has its own positions.
fn synthetic(task: &Task, batch: usize) -> Samples {
    let (points, functions, outputs) = (task.grid.points(), task.input_channels(), task.output_channels());
    let times = task.time.count();
    let lattice = task.grid.lattice(false).filter(|_| functions > 0);
    Samples {
        offsets: Vec::new(),
        count: batch,
        grid: task.grid,
        space: task.space,
        positions: lattice.unwrap_or_else(|| wave(batch * points * task.space)),
        functions,
        inputs: wave(batch * points * functions),
        times,
        outputs,
        targets: wave(batch * times * points * outputs),
    }
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

/// Prints the report as text.
fn show(report: &Report) -> Result<()> {
    let kind = if report.infer { "forward pass" } else { "training step" };
    let device = match report.device.as_str() {
        "cpu" => format!("cpu on {}", counted(report.threads, "thread")),
        gpu => format!("{gpu} in {}", report.precision),
    };
    say(&format!("{}, {kind}, batch {}, {device}", report.experiment, report.batch))?;
    say(&format!(
        "  time        {:.3} ms, {:.2} samples/s; the first run ended after {:.1} s",
        report.median_seconds * 1e3,
        report.samples_per_second,
        report.first_seconds
    ))?;
    say(&format!(
        "  arithmetic  {:.1} GFLOP, {:.0} GFLOP/s, {:.0} % of a large matrix product",
        report.flops * 1e-9,
        report.gflops_per_second,
        report.fraction_of_gemm * 100.0
    ))?;
    say(&format!("  memory      {:.0} MB", report.program_bytes as f64 * 1e-6))?;
    say(&format!("  program     {} kernels, {} parameters", report.kernels, report.parameters))
}

/// Prints the time of the kernels, those of the same kind together, slowest first.
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
    say("   share  total ms  times  each us  kernel")?;
    for (kernel, count, seconds) in alike {
        let (share, milliseconds, each) = (seconds / total * 100.0, seconds * 1e3, seconds * 1e6 / count as f64);
        say(&format!("{share:6.1} % {milliseconds:9.4} {count:6} {each:8.1}  {kernel}"))?;
    }
    say(&format!("{:9.4} ms in {} kernels, each timed alone", total * 1e3, kernels.len()))
}

/// The description of a kernel without the numbers of its buffers and registers.
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
