//! Where programs run.

use crate::ops::Precision;
use std::fmt;
use std::str::FromStr;

/// A machine that runs programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// This process, all threads of the rayon pool.
    #[default]
    Cpu,
    /// The NVIDIA card with this number.
    Cuda(usize),
}

impl Device {
    /// The name of the card, where there is one.
    pub fn card(self) -> Option<String> {
        match self {
            Device::Cpu => None,
            #[cfg(feature = "cuda")]
            Device::Cuda(number) => crate::cuda::card_name(number),
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => None,
        }
    }
}

/// A sentence: why a device cannot run a program, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

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
    type Err = Unavailable;

    fn from_str(text: &str) -> Result<Self, Unavailable> {
        let number = match text {
            "cpu" => return Ok(Device::Cpu),
            "cuda" => Some(0),
            _ => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        number.map(Device::Cuda).ok_or_else(|| {
            Unavailable(format!("device {text:?} does not exist; there are cpu, cuda and, with several cards, cuda:1"))
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
    type Err = Unavailable;

    fn from_str(text: &str) -> Result<Self, Unavailable> {
        match text {
            "f32" => Ok(Precision::F32),
            "tf32" => Ok(Precision::Tf32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err(Unavailable(format!("precision {text:?} does not exist; there are f32, tf32 and bf16"))),
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
            assert!(text.parse::<Device>().unwrap_err().to_string().contains(&format!("{text:?}")));
        }
    }
}
