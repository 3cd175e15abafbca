//! What a machine has for CUDA, as `lamo doctor` shows it.

use super::gpu::{device_count, device_name, initialised};
use super::library;
use crate::device::DeviceError;
use std::ffi::c_int;

/// A GPU as `lamo doctor` shows it.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    /// The name that NVIDIA gives it.
    pub name: String,
    /// Major and minor compute capability.
    pub capability: [u32; 2],
    /// Bytes of memory.
    pub memory: usize,
}

/// What this machine has for CUDA: the file of each library, or the sentence that says what to install.
#[derive(Clone, Debug)]
pub struct CudaReport {
    /// libcuda, nvrtc and cublasLt.
    pub libraries: Vec<(&'static str, Result<String, DeviceError>)>,
    /// CUDA version that the driver supports.
    pub driver: Result<[u32; 2], DeviceError>,
    /// Every GPU.
    pub devices: Vec<CudaDevice>,
}

/// Looks at the machine; starts nothing on the GPUs.
pub fn report() -> CudaReport {
    let libraries = vec![
        ("driver (libcuda)", library::driver().map(|opened| opened.file.clone())),
        ("compiler (nvrtc)", library::compiler().map(|opened| opened.file.clone())),
        ("products (cublasLt)", library::products().map(|opened| opened.file.clone())),
    ];
    let driver = initialised();
    let version = driver.as_ref().map_err(Clone::clone).map(|driver| {
        let mut version = 0;
        // SAFETY: the pointer is valid.
        unsafe { (driver.version)(&raw mut version) };
        [version as u32 / 1000, version as u32 % 1000 / 10]
    });
    let mut devices = Vec::new();
    if let Ok(driver) = driver {
        for number in 0..device_count(&driver).unwrap_or(0) {
            let (mut device, mut memory, mut major, mut minor) = (0, 0, 0, 0);
            // SAFETY: the pointers are valid.
            unsafe {
                (driver.device)(&raw mut device, number as c_int);
                (driver.device_memory)(&raw mut memory, device);
                (driver.device_attribute)(&raw mut major, 75, device);
                (driver.device_attribute)(&raw mut minor, 76, device);
            }
            devices.push(CudaDevice {
                name: device_name(&driver, device),
                capability: [major as u32, minor as u32],
                memory,
            });
        }
    }
    CudaReport { libraries, driver: version, devices }
}
