//! A compiled program: write inputs, run, read outputs; states live inside from run to run.

use crate::compile::explain::describe;
use crate::compile::plan::{Plan, Role};
use crate::compile::{self};
use crate::cpu::Cpu;
#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
use crate::device::{Device, Unavailable};
use crate::graph::{Graph, PARAMETERS, Section};
use crate::ops::Precision;
use std::collections::HashMap;

pub use crate::compile::Options;

/// What runs a plan.
pub(crate) enum Backend {
    Cpu(Cpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

/// Calls the same method of whichever backend there is.
macro_rules! backend {
    ($program:expr, $backend:ident => $call:expr) => {
        match $program {
            Backend::Cpu($backend) => $call,
            #[cfg(feature = "cuda")]
            Backend::Cuda($backend) => $call,
        }
    };
}

/// A graph compiled for a device.
pub struct Program {
    pub(crate) backend: Backend,
    names: HashMap<String, usize>,
    sections: Vec<Section>,
}

impl Program {
    /// Compiles the outputs and assignments of a graph.
    pub fn compile(graph: &Graph) -> Program {
        Program::compile_with(graph, Options::default())
    }

    /// [`Program::compile`] with choices.
    pub fn compile_with(graph: &Graph, options: Options) -> Program {
        let plan = compile::compile(graph, options, 0);
        Program::new(graph, Backend::Cpu(Cpu::new(plan).unwrap_or_else(|full| panic!("{full}"))))
    }

    /// Compiles for a device; what the device lacks is said in a sentence. `precision` is that of products, convolutions
    /// and scans on a card; a CPU computes in f32 whatever it says.
    pub fn compile_on(graph: &Graph, device: Device, precision: Precision) -> Result<Program, Unavailable> {
        let plan = |slack: usize| compile::compile(graph, Options::default(), slack);
        let backend = match device {
            Device::Cpu => Backend::Cpu(Cpu::new(plan(0))?),
            #[cfg(feature = "cuda")]
            Device::Cuda(number) => Backend::Cuda(Cuda::new(plan(crate::cuda::SLACK), number, precision)?),
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => {
                let _ = (plan, precision);
                return Err(Unavailable("this lamo was built without CUDA; build it with --features cuda".into()));
            }
        };
        Ok(Program::new(graph, backend))
    }

    /// Compiles the kernels a graph needs on cards of compute capability `architecture` (90 for 9.0) into the cache, which
    /// takes the compiler but no card. Returns the bytes of code.
    #[cfg(feature = "cuda")]
    pub fn compile_kernels(graph: &Graph, precision: Precision, architecture: u32) -> Result<usize, Unavailable> {
        let plan = compile::compile(graph, Options::default(), crate::cuda::SLACK);
        crate::cuda::compile_kernels(&plan, precision, architecture)
    }

    fn new(graph: &Graph, backend: Backend) -> Program {
        let plan = backend!(&backend, backend => backend.plan());
        let named = plan.buffers.iter().enumerate();
        let names = named.filter_map(|(id, buffer)| Some((buffer.name.clone()?, id))).collect();
        Program { names, sections: graph.sections(), backend }
    }

    fn plan(&self) -> &Plan {
        backend!(&self.backend, backend => backend.plan())
    }

    pub(crate) fn buffer(&self, name: &str) -> usize {
        *self.names.get(name).unwrap_or_else(|| {
            let mut known: Vec<&str> = self.names.keys().map(String::as_str).collect();
            known.sort_unstable();
            panic!("the program has no input, state or output {name:?}; it has {known:?}")
        })
    }

    /// Sets an input or a state.
    pub fn write(&mut self, name: &str, values: &[f32]) {
        let id = self.buffer(name);
        let buffer = &self.plan().buffers[id];
        assert!(matches!(buffer.role, Role::Input | Role::State), "{name} is written by the program alone");
        let length = buffer.length;
        assert_eq!(values.len(), length, "{name} holds {length} values, got {}", values.len());
        backend!(&mut self.backend, backend => backend.write(id, values));
    }

    /// Sets an index input. Rows beyond the gathered axis are refused, here or when the program runs.
    pub fn write_index(&mut self, name: &str, rows: &[u32]) {
        let id = self.buffer(name);
        let buffer = &self.plan().buffers[id];
        assert!(buffer.role == Role::IndexInput, "{name} is no index input");
        let length = buffer.length;
        assert_eq!(rows.len(), length, "{name} holds {length} rows, got {}", rows.len());
        backend!(&mut self.backend, backend => backend.write_rows(id, rows));
    }

    /// The value of an output, a state or an input.
    pub fn read(&self, name: &str) -> &[f32] {
        let id = self.buffer(name);
        backend!(&self.backend, backend => backend.values(id))
    }

    /// Sets one parameter.
    pub fn write_parameter(&mut self, name: &str, values: &[f32]) {
        let section = self.section(name);
        assert_eq!(
            values.len(),
            section.shape.count(),
            "{name} has shape {}, got {} values",
            section.shape,
            values.len()
        );
        let range = section.range();
        let theta = self.buffer(PARAMETERS);
        backend!(&mut self.backend, backend => backend.write_part(theta, range.start, values));
    }

    /// One parameter.
    pub fn read_parameter(&self, name: &str) -> &[f32] {
        &self.read(PARAMETERS)[self.section(name).range()]
    }

    /// The named sections of θ.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    fn section(&self, name: &str) -> &Section {
        let found = self.sections.iter().find(|section| section.name == name);
        found.unwrap_or_else(|| panic!("the program has no parameter {name:?}"))
    }

    /// Runs every kernel once.
    pub fn run(&mut self) {
        backend!(&mut self.backend, backend => backend.run());
    }

    /// Runs and looks at every kernel's result; the first that is not finite is described. Slow: for explaining a loss
    /// that has become NaN, after the state before the step was restored.
    pub fn run_checked(&mut self) -> Result<(), String> {
        // A kernel may write a part of a buffer; what an earlier run left in the rest is none of its doing.
        let plan = self.plan();
        let mut stale: Vec<usize> = plan.steps.iter().flat_map(|step| step.buffers().1).collect();
        stale.retain(|&buffer| matches!(plan.buffers[buffer].role, Role::Temporary | Role::Output));
        stale.sort_unstable();
        stale.dedup();
        for buffer in stale {
            let zeros = vec![0.0; self.plan().buffers[buffer].length];
            backend!(&mut self.backend, backend => backend.write(buffer, &zeros));
        }
        let Err((position, value)) = backend!(&mut self.backend, backend => backend.run_checked()) else {
            return Ok(());
        };
        let near = self.parameters_near(position).map(|near| format!(" {near}")).unwrap_or_default();
        Err(format!("kernel {position}{near} made {value}: {}", describe(&self.plan().steps[position])))
    }

    /// The parameters that a kernel reads, or that the last one before it with any did.
    fn parameters_near(&self, position: usize) -> Option<String> {
        let theta = *self.names.get(PARAMETERS)?;
        for (back, step) in self.plan().steps[..=position].iter().rev().enumerate() {
            let [read, _] = step.stretches();
            let ranges: Vec<_> = read.into_iter().filter(|part| part.buffer == theta).filter_map(|p| p.range).collect();
            let met = |section: &&Section| {
                let own = section.range();
                ranges.iter().any(|range| range.start < own.end && own.start < range.end)
            };
            let names: Vec<&str> = self.sections.iter().filter(met).map(|section| section.name.as_str()).collect();
            if let [first, rest @ ..] = names.as_slice() {
                let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                return Some(format!("{} {first}{others}", if back == 0 { "with" } else { "after" }));
            }
        }
        None
    }

    /// Bytes of memory the program holds for values, parameters and scratch.
    pub fn bytes(&self) -> usize {
        backend!(&self.backend, backend => backend.bytes())
    }

    /// Number of kernels per run.
    pub fn kernels(&self) -> usize {
        backend!(&self.backend, backend => backend.launches())
    }

    /// Waits for the runs asked for so far; on a CPU they are over when [`Program::run`] returns.
    pub fn synchronise(&self) {
        backend!(&self.backend, backend => backend.synchronise());
    }

    /// Floating-point operations per run in products, convolutions and scans; a multiply-add counts twice.
    pub fn flops(&self) -> f64 {
        compile::cost::flops(self.plan())
    }

    /// Kernels and buffers in words, for people.
    pub fn explain(&self) -> String {
        compile::explain::explain(self.plan())
    }

    /// Runs once and returns each kernel's name and time in seconds.
    pub fn profile(&mut self) -> Vec<(String, f64)> {
        backend!(&mut self.backend, backend => backend.profile())
    }
}
