//! A compiled program: write inputs, run, read outputs; states live inside from run to run.

use crate::compile::plan::{Plan, Role};
use crate::compile::{self};
use crate::cpu::Cpu;
use crate::device::{Device, Unavailable};
use crate::graph::{Graph, PARAMETERS, Section};
use crate::ops::Precision;
use std::collections::HashMap;

pub use crate::compile::Options;

/// A graph compiled for the CPU.
pub struct Program {
    backend: Cpu,
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
        Program::on_cpu(graph, compile::compile(graph, options))
    }

    /// Compiles for a device; what the device lacks is said in a sentence. `precision` is that of products, convolutions
    /// and scans on a card; a CPU computes in f32 whatever it says.
    pub fn compile_on(graph: &Graph, device: Device, precision: Precision) -> Result<Program, Unavailable> {
        let _ = precision;
        match device {
            Device::Cpu => Ok(Program::compile(graph)),
            Device::Cuda(_) => {
                Err(Unavailable("this lamo was built without CUDA; build it with --features cuda".into()))
            }
        }
    }

    fn on_cpu(graph: &Graph, plan: Plan) -> Program {
        let named = plan.buffers.iter().enumerate();
        let names = named.filter_map(|(id, buffer)| Some((buffer.name.clone()?, id))).collect();
        Program { backend: Cpu::new(plan), names, sections: graph.sections() }
    }

    fn plan(&self) -> &Plan {
        self.backend.plan()
    }

    fn buffer(&self, name: &str) -> usize {
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
        self.backend.values_mut(id).copy_from_slice(values);
    }

    /// Sets an index input. Rows are checked against the gathered axis when the program runs.
    pub fn write_index(&mut self, name: &str, rows: &[u32]) {
        let id = self.buffer(name);
        let buffer = &self.plan().buffers[id];
        assert!(buffer.role == Role::IndexInput, "{name} is no index input");
        let length = buffer.length;
        assert_eq!(rows.len(), length, "{name} holds {length} rows, got {}", rows.len());
        for (value, row) in self.backend.values_mut(id).iter_mut().zip(rows) {
            *value = f32::from_bits(*row);
        }
    }

    /// The value of an output, a state or an input.
    pub fn read(&self, name: &str) -> &[f32] {
        self.backend.values(self.buffer(name))
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
        self.backend.values_mut(theta)[range].copy_from_slice(values);
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
        self.backend.run();
    }

    /// Runs and looks at every kernel's result; the first that is not finite is described. Slow: for explaining a loss
    /// that has become NaN, after the state before the step was restored.
    pub fn run_checked(&mut self) -> Result<(), String> {
        self.backend.run_checked()
    }

    /// Bytes of memory the program holds for values, parameters and scratch.
    pub fn bytes(&self) -> usize {
        self.backend.bytes()
    }

    /// Number of kernels per run.
    pub fn kernels(&self) -> usize {
        self.plan().steps.len()
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
        self.backend.profile()
    }
}
