//! Snapshots: the values of some states of a program, copied on the device that the program runs on.

use crate::device::DeviceError;
use crate::memory;
use crate::program::{Backend, Program};

#[cfg(feature = "cuda")]
use crate::cuda::BufferCopy;

/// Copies of named states, on the same device as their program. They stay the same while the program runs on.
///
/// ```
/// use lamo_tensor::{Graph, Program, Snapshot};
/// let graph = Graph::new();
/// let count = graph.state("count", [1]);
/// graph.assign(count, count + 1.0);
/// let mut program = Program::compile(&graph);
/// let mut snapshot = Snapshot::new(&program, &["count"])?;
/// program.run();
/// snapshot.capture(&program)?;
/// program.run();
/// snapshot.restore(&mut program)?;
/// assert_eq!(program.read("count"), [1.0]);
/// # Ok::<(), lamo_tensor::DeviceError>(())
/// ```
pub struct Snapshot {
    states: Vec<(String, Values)>,
}

/// The copy of one state.
enum Values {
    Cpu(Vec<f32>),
    #[cfg(feature = "cuda")]
    Cuda(BufferCopy),
}

impl Snapshot {
    /// Memory for copies of these states of a program; all values are zero until [`Snapshot::capture`].
    pub fn new(program: &Program, names: &[&str]) -> Result<Snapshot, DeviceError> {
        let states = names.iter().map(|&name| {
            let id = state(program, name);
            let values = match &program.backend {
                Backend::Cpu(cpu) => Values::Cpu(memory::zeros(cpu.values(id).len(), "a snapshot")?),
                #[cfg(feature = "cuda")]
                Backend::Cuda(cuda) => Values::Cuda(cuda.new_copy(id)?),
            };
            Ok((name.to_owned(), values))
        });
        Ok(Snapshot { states: states.collect::<Result<_, DeviceError>>()? })
    }

    /// Names of the states, in the order they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.states.iter().map(|(name, _)| name.as_str())
    }

    /// Copies the states as they are after all runs so far.
    pub fn capture(&mut self, from: &Program) -> Result<(), DeviceError> {
        for (name, values) in &mut self.states {
            let id = state(from, name);
            match (values, &from.backend) {
                (Values::Cpu(values), Backend::Cpu(cpu)) => {
                    let found = cpu.values(id);
                    assert_eq!(values.len(), found.len(), "the snapshot of {name} has another length than the state");
                    values.copy_from_slice(found);
                }
                #[cfg(feature = "cuda")]
                (Values::Cuda(copy), Backend::Cuda(cuda)) => cuda.copy_out(id, copy)?,
                #[cfg(feature = "cuda")]
                _ => panic!("the snapshot of {name} is on another device than the program"),
            }
        }
        Ok(())
    }

    /// Sets those of the states that the program has, by their names. The program may be another one on the same device.
    pub fn restore(&self, to: &mut Program) -> Result<(), DeviceError> {
        self.restore_as(to, |name| name)
    }

    /// The same, where `target` gives the name of a state in the program.
    pub fn restore_as(&self, to: &mut Program, target: impl Fn(&str) -> &str) -> Result<(), DeviceError> {
        for (name, values) in &self.states {
            let Some(id) = to.state(target(name)) else { continue };
            match (values, &mut to.backend) {
                (Values::Cpu(values), Backend::Cpu(cpu)) => {
                    let length = cpu.values(id).len();
                    assert_eq!(values.len(), length, "the snapshot of {name} has another length than the state");
                    cpu.write(id, values);
                }
                #[cfg(feature = "cuda")]
                (Values::Cuda(copy), Backend::Cuda(cuda)) => cuda.copy_in(id, copy)?,
                #[cfg(feature = "cuda")]
                _ => panic!("the snapshot of {name} is on another device than the program"),
            }
        }
        Ok(())
    }

    /// The captured values of one state.
    pub fn read(&self, name: &str) -> Result<Vec<f32>, DeviceError> {
        let Some((_, values)) = self.states.iter().find(|(known, _)| known == name) else {
            panic!("the snapshot has no state {name:?}; it has {:?}", self.names().collect::<Vec<_>>())
        };
        match values {
            Values::Cpu(values) => {
                let mut copy = memory::room(values.len(), "a copy of a snapshot")?;
                copy.extend_from_slice(values);
                Ok(copy)
            }
            #[cfg(feature = "cuda")]
            Values::Cuda(copy) => copy.read(),
        }
    }
}

fn state(program: &Program, name: &str) -> usize {
    program.state(name).unwrap_or_else(|| panic!("the program has no state {name:?}; it has {:?}", program.states()))
}
