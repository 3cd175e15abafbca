//! Values set aside on the device they live on.

use crate::device::Unavailable;
use crate::program::{Backend, Program};

#[cfg(feature = "cuda")]
use crate::cuda::Aside;

/// Room for the value of one state, beside its program and on the same device.
pub struct Kept {
    name: String,
    room: Room,
}

enum Room {
    Cpu(Vec<f32>),
    #[cfg(feature = "cuda")]
    Cuda(Aside),
}

impl Kept {
    /// Room for a state of a program; zero until [`Kept::take`].
    pub fn room(program: &Program, name: &str) -> Result<Kept, Unavailable> {
        let id = program.buffer(name);
        let room = match &program.backend {
            Backend::Cpu(cpu) => Room::Cpu(vec![0.0; cpu.values(id).len()]),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => Room::Cuda(cuda.aside(id)?),
        };
        Ok(Kept { name: name.to_owned(), room })
    }

    /// Copies the state as it is after the runs asked for so far.
    pub fn take(&mut self, from: &Program) {
        let id = from.buffer(&self.name);
        match (&mut self.room, &from.backend) {
            #[cfg(feature = "cuda")]
            (Room::Cuda(aside), Backend::Cuda(cuda)) => cuda.set_aside(id, aside),
            (Room::Cpu(values), Backend::Cpu(cpu)) => values.copy_from_slice(cpu.values(id)),
            #[cfg(feature = "cuda")]
            _ => panic!("{} is kept on another device than the program's", self.name),
        }
    }

    /// Sets the state of the same name, of this program or another on the device.
    pub fn give(&self, to: &mut Program) {
        let id = to.buffer(&self.name);
        match (&self.room, &mut to.backend) {
            #[cfg(feature = "cuda")]
            (Room::Cuda(aside), Backend::Cuda(cuda)) => cuda.put_back(id, aside),
            (Room::Cpu(values), Backend::Cpu(cpu)) => cpu.write(id, values),
            #[cfg(feature = "cuda")]
            _ => panic!("{} is kept on another device than the program's", self.name),
        }
    }

    /// The values.
    pub fn read(&self) -> Vec<f32> {
        match &self.room {
            Room::Cpu(values) => values.clone(),
            #[cfg(feature = "cuda")]
            Room::Cuda(aside) => aside.read(),
        }
    }
}
