//! Where programs run, and how a device fails.

use crate::ops::Precision;
use std::fmt;
use std::str::FromStr;

/// A machine that runs programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// This process, all threads of the rayon pool.
    #[default]
    Cpu,
    /// The NVIDIA GPU with this number.
    Cuda(usize),
}

impl Device {
    /// The name of the GPU, as NVIDIA gives it; `None` for a CPU and for a GPU that cannot be used.
    pub fn gpu_name(self) -> Option<String> {
        match self {
            Device::Cpu => None,
            #[cfg(feature = "cuda")]
            Device::Cuda(number) => crate::cuda::gpu_name(number),
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => None,
        }
    }
}

/// A device that cannot run a program, or failed while it ran one.
///
/// `Display` writes one sentence: what happened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    kind: DeviceErrorKind,
    message: String,
}

/// What sort of failure a [`DeviceError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceErrorKind {
    /// The device, its driver, a library or a feature does not exist or is too old; also a name that no device has.
    Unavailable,
    /// The memory of the device is full, or that of the system where the device is a CPU.
    OutOfMemory,
    /// A shape with more elements than any memory has, or a graph of too many operators.
    TooLarge,
    /// The caller of [`attempt`](crate::attempt) stopped it.
    Interrupted,
    /// The device stopped working: it fell off the bus, was reset, or its memory has an uncorrectable error.
    Lost,
    /// A kernel read or wrote an address outside its memory, or did another thing that the hardware forbids.
    IllegalAccess,
    /// Any other failure.
    Failed,
}

impl DeviceError {
    /// An error with one sentence that says what happened and what to do.
    pub fn new(kind: DeviceErrorKind, message: impl Into<String>) -> DeviceError {
        DeviceError { kind, message: message.into() }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> DeviceErrorKind {
        self.kind
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> DeviceError {
        DeviceError::new(DeviceErrorKind::Unavailable, message)
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for DeviceError {}

/// The value, or a panic with the error's sentence.
pub(crate) fn or_panic<T>(result: Result<T, DeviceError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => formatter.write_str("cpu"),
            Device::Cuda(0) => formatter.write_str("cuda"),
            Device::Cuda(number) => write!(formatter, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let number = match text {
            "cpu" => return Ok(Device::Cpu),
            "cuda" => Some(0),
            _ => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        number.map(Device::Cuda).ok_or_else(|| {
            DeviceError::unavailable(format!(
                "device {text:?} does not exist; there are cpu, cuda and, with several GPUs, cuda:1"
            ))
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        match text {
            "f32" => Ok(Precision::F32),
            "tf32" => Ok(Precision::Tf32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err(DeviceError::unavailable(format!(
                "precision {text:?} does not exist; there are f32, tf32 and bf16"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_as_it_is_written() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for text in ["gpu", "cuda:", "cuda:-1", ""] {
            let error = text.parse::<Device>().unwrap_err();
            assert_eq!(error.kind(), DeviceErrorKind::Unavailable);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_precision_is_read_as_it_is_written() {
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        let error = "f16".parse::<Precision>().unwrap_err();
        assert_eq!(error.to_string(), "precision \"f16\" does not exist; there are f32, tf32 and bf16");
    }
}
