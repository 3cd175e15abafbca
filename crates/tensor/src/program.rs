//! A compiled program: write inputs, run, read outputs; states keep their values from run to run.

use crate::compile::explain::{arithmetic, summary};
use crate::compile::plan::{Plan, Role};
use crate::compile::{self, DeviceTraits};
use crate::cpu::Cpu;
#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
use crate::device::{Device, DeviceError, or_panic};
use crate::graph::{Graph, PARAMETERS, Section};
use crate::limits::refuse;
use crate::memory;
use crate::ops::Precision;
use std::collections::HashMap;
use std::fmt;

pub use crate::compile::Options;

/// A plan on the device that runs it.
pub(crate) enum Backend {
    Cpu(Cpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

/// Calls the same method of the program's backend.
macro_rules! backend {
    ($program:expr, $backend:ident => $call:expr) => {
        match $program {
            Backend::Cpu($backend) => $call,
            #[cfg(feature = "cuda")]
            Backend::Cuda($backend) => $call,
        }
    };
}

/// The kernel of a run that made the first number that is not finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// Its position among the kernels of a run.
    pub kernel: usize,
    /// The parameters it reads, `with NAME and 2 more`, or those of the last kernel before it that reads any, `after NAME`.
    pub parameters: Option<String>,
    /// NaN or an infinity.
    pub value: f32,
    /// What it computes, in a few words: `matmul [4, 8] × [8, 2]`.
    pub description: String,
    /// The instructions of a fused loop; empty for other kernels.
    pub arithmetic: String,
}

impl Culprit {
    /// The sentence of `Display` without the arithmetic.
    pub fn summary(&self) -> String {
        let parameters = self.parameters.as_ref().map(|near| format!(" {near}")).unwrap_or_default();
        format!("kernel {}{parameters} made {}: {}", self.kernel, self.value, self.description)
    }
}

impl fmt::Display for Culprit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.summary())?;
        if self.arithmetic.is_empty() { Ok(()) } else { write!(formatter, ":{}", self.arithmetic) }
    }
}

/// A graph compiled for a device.
pub struct Program {
    pub(crate) backend: Backend,
    names: HashMap<String, usize>,
    sections: Vec<Section>,
    state_sections: Vec<Section>,
}

impl Program {
    /// Compiles the outputs and assignments of a graph for the CPU. Panics if the memory is full; inside
    /// [`attempt`](crate::attempt), this ends the attempt.
    pub fn compile(graph: &Graph) -> Program {
        Program::compile_with(graph, Options::default())
    }

    /// [`Program::compile`] with options.
    pub fn compile_with(graph: &Graph, options: Options) -> Program {
        let compiled = compile::compile(graph, options, crate::cpu::TRAITS).and_then(Cpu::new);
        Program::new(graph, Backend::Cpu(compiled.unwrap_or_else(|error| refuse(error))))
    }

    /// Compiles for a device. `precision` is that of products, convolutions and scans on a GPU; a CPU computes in f32
    /// always.
    ///
    /// Fails before it allocates if the program needs more memory than there is. Inside [`attempt`](crate::attempt) it can be
    /// interrupted.
    pub fn compile_on(graph: &Graph, device: Device, precision: Precision) -> Result<Program, DeviceError> {
        let plan = |traits: DeviceTraits| compile::compile(graph, Options::default(), traits);
        let backend = match device {
            Device::Cpu => Backend::Cpu(Cpu::new(plan(crate::cpu::TRAITS)?)?),
            #[cfg(feature = "cuda")]
            Device::Cuda(number) => Backend::Cuda(Cuda::new(plan(crate::cuda::TRAITS)?, number, precision)?),
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => {
                let _ = (plan, precision);
                return Err(DeviceError::unavailable(
                    "this lamo was built without CUDA; build it with --features cuda",
                ));
            }
        };
        Ok(Program::new(graph, backend))
    }

    /// Compiles the kernels of a graph into the cache, for GPUs of compute capability `architecture` (90 for 9.0). This needs
    /// the compiler, but no GPU. Returns the bytes of code.
    #[cfg(feature = "cuda")]
    pub fn compile_kernels(graph: &Graph, precision: Precision, architecture: u32) -> Result<usize, DeviceError> {
        let plan = compile::compile(graph, Options::default(), crate::cuda::TRAITS)?;
        crate::cuda::compile_kernels(&plan, precision, architecture)
    }

    pub(crate) fn new(graph: &Graph, backend: Backend) -> Program {
        let plan = backend!(&backend, backend => backend.plan());
        let named = plan.buffers.iter().enumerate();
        let names = named.filter_map(|(id, buffer)| Some((buffer.name.clone()?, id))).collect();
        Program { names, sections: graph.sections(), state_sections: graph.state_sections(), backend }
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

    /// The buffer of a state.
    pub(crate) fn state(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().filter(|&id| self.plan().buffers[id].role == Role::State)
    }

    /// Names of all states in alphabetical order; θ is [`PARAMETERS`], the model states are [`MODEL_STATES`](crate::MODEL_STATES).
    pub fn states(&self) -> Vec<String> {
        let mut states: Vec<String> = self.names.keys().filter(|name| self.state(name).is_some()).cloned().collect();
        states.sort_unstable();
        states
    }

    /// Whether the program reads an input of this name.
    pub fn has_input(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|&id| self.plan().buffers[id].role == Role::Input)
    }

    /// Sets an input or a state. Panics if the device fails, as do all methods that have a `try_` twin.
    pub fn write(&mut self, name: &str, values: &[f32]) {
        or_panic(self.try_write(name, values));
    }

    /// Sets an input or a state.
    ///
    /// Errors of a GPU stay: once a method returned one of kind `Lost` or `IllegalAccess`, every later `try_` method of
    /// every program on that GPU returns the same error at once. A CPU does not fail.
    pub fn try_write(&mut self, name: &str, values: &[f32]) -> Result<(), DeviceError> {
        let id = self.buffer(name);
        let buffer = &self.plan().buffers[id];
        assert!(matches!(buffer.role, Role::Input | Role::State), "{name} is written by the program alone");
        let length = buffer.length;
        assert_eq!(values.len(), length, "{name} holds {length} values, got {}", values.len());
        self.write_buffer(id, 0, values)
    }

    fn write_buffer(&mut self, id: usize, start: usize, values: &[f32]) -> Result<(), DeviceError> {
        match &mut self.backend {
            Backend::Cpu(cpu) => cpu.write_part(id, start, values),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.write_part(id, start, values)?,
        }
        Ok(())
    }

    /// Sets an index input.
    pub fn write_index(&mut self, name: &str, rows: &[u32]) {
        or_panic(self.try_write_index(name, rows));
    }

    /// Sets an index input. A row beyond the gathered axis is a bug of the caller and panics, here or when the program
    /// runs.
    pub fn try_write_index(&mut self, name: &str, rows: &[u32]) -> Result<(), DeviceError> {
        let id = self.buffer(name);
        let buffer = &self.plan().buffers[id];
        assert!(buffer.role == Role::IndexInput, "{name} is no index input");
        let length = buffer.length;
        assert_eq!(rows.len(), length, "{name} holds {length} rows, got {}", rows.len());
        match &mut self.backend {
            Backend::Cpu(cpu) => cpu.write_rows(id, rows),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.write_rows(id, rows)?,
        }
        Ok(())
    }

    /// The value of an output, a state or an input.
    pub fn read(&self, name: &str) -> &[f32] {
        or_panic(self.try_read(name))
    }

    /// The value of an output, a state or an input. Waits for the runs that make it.
    pub fn try_read(&self, name: &str) -> Result<&[f32], DeviceError> {
        let id = self.buffer(name);
        match &self.backend {
            Backend::Cpu(cpu) => Ok(cpu.values(id)),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.values(id),
        }
    }

    /// Sets one parameter.
    pub fn write_parameter(&mut self, name: &str, values: &[f32]) {
        or_panic(self.try_write_parameter(name, values));
    }

    /// Sets one parameter.
    pub fn try_write_parameter(&mut self, name: &str, values: &[f32]) -> Result<(), DeviceError> {
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
        self.write_buffer(theta, range.start, values)
    }

    /// One parameter.
    pub fn read_parameter(&self, name: &str) -> &[f32] {
        or_panic(self.try_read_parameter(name))
    }

    /// One parameter. Waits for the runs that make it.
    pub fn try_read_parameter(&self, name: &str) -> Result<&[f32], DeviceError> {
        let range = self.section(name).range();
        Ok(&self.try_read(PARAMETERS)?[range])
    }

    /// The named sections of θ.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The named sections of the model states.
    pub fn state_sections(&self) -> &[Section] {
        &self.state_sections
    }

    fn section(&self, name: &str) -> &Section {
        let found = self.sections.iter().find(|section| section.name == name);
        found.unwrap_or_else(|| panic!("the program has no parameter {name:?}"))
    }

    /// Runs every kernel once.
    pub fn run(&mut self) {
        or_panic(self.try_run());
    }

    /// Runs every kernel once. On a GPU this returns before the kernels are done: a failure may show at the next call that
    /// waits.
    pub fn try_run(&mut self) -> Result<(), DeviceError> {
        match &mut self.backend {
            Backend::Cpu(cpu) => cpu.run(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.run()?,
        }
        Ok(())
    }

    /// Runs, looks at every kernel's result, and returns the first kernel whose result is not finite; `None` if all are.
    /// Slow: for explaining a loss that has become NaN, after the state before the step was restored.
    pub fn run_checked(&mut self) -> Result<Option<Culprit>, DeviceError> {
        // A kernel may write a part of a buffer only; the rest must not hold what an earlier run left there.
        let plan = self.plan();
        let mut stale: Vec<usize> = plan.steps.iter().flat_map(|step| step.buffers().1).collect();
        stale.retain(|&buffer| matches!(plan.buffers[buffer].role, Role::Temporary | Role::Output));
        stale.sort_unstable();
        stale.dedup();
        for buffer in stale {
            let zeros = memory::zeros(self.plan().buffers[buffer].length, "looking at every kernel's result")?;
            self.write_buffer(buffer, 0, &zeros)?;
        }
        let found = match &mut self.backend {
            Backend::Cpu(cpu) => cpu.run_checked(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.run_checked()?.map(|(kernel, value)| (kernel, 0, value)),
        };
        Ok(found.map(|(kernel, member, value)| {
            let step = &self.plan().steps[kernel].members()[member];
            let (description, arithmetic) = (summary(step), arithmetic(step));
            Culprit { kernel, parameters: self.parameters_near(kernel, member), value, description, arithmetic }
        }))
    }

    /// The parameters that a kernel reads, or else those that the last kernel before it with parameters reads.
    fn parameters_near(&self, position: usize, member: usize) -> Option<String> {
        let theta = *self.names.get(PARAMETERS)?;
        let steps = &self.plan().steps;
        let own = steps[position].members()[..=member].iter().rev();
        let before = steps[..position].iter().rev().flat_map(|step| step.members().iter().rev());
        for (back, step) in own.chain(before).enumerate() {
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

    /// Bytes of memory that the program uses for values, parameters and scratch.
    pub fn bytes(&self) -> usize {
        backend!(&self.backend, backend => backend.bytes())
    }

    /// Number of kernels per run.
    pub fn kernels(&self) -> usize {
        backend!(&self.backend, backend => backend.launches())
    }

    /// Waits until all runs are done; on a CPU they are done when [`Program::run`] returns.
    pub fn synchronise(&self) {
        or_panic(self.try_synchronise());
    }

    /// Waits until all runs are done; on a CPU they are done when [`Program::run`] returns.
    pub fn try_synchronise(&self) -> Result<(), DeviceError> {
        match &self.backend {
            Backend::Cpu(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.synchronise(),
        }
    }

    /// Floating-point operations per run in products, convolutions and scans; a multiply-add counts twice.
    pub fn flops(&self) -> f64 {
        compile::cost::flops(self.plan())
    }

    /// All kernels in words, and how much memory they use.
    pub fn explain(&self) -> String {
        compile::explain::explain(self.plan())
    }

    /// Runs once and returns each kernel's name and time in seconds.
    pub fn profile(&mut self) -> Vec<(String, f64)> {
        or_panic(self.try_profile())
    }

    /// Runs once and returns each kernel's name and time in seconds.
    pub fn try_profile(&mut self) -> Result<Vec<(String, f64)>, DeviceError> {
        match &mut self.backend {
            Backend::Cpu(cpu) => Ok(cpu.profile()),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.profile(),
        }
    }
}
