//! Kernels as modules on a GPU: compiled side by side, or read from the cache, and loaded.

use super::compiler::{fingerprint, machine_code};
use super::gpu::{Gpu, outside_recordings};
use super::kernel::{Family, Kernel};
use super::library::Handle;
use crate::device::DeviceError;
use crate::limits::poll;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::Arc;

/// Compiled kernels, each of them once however often it is launched.
pub(crate) struct Modules {
    modules: Vec<Handle>,
    functions: HashMap<String, Handle>,
    gpu: Arc<Gpu>,
}

/// Name of a kernel: the hash of everything that defines it.
fn name(kernel: &Kernel) -> String {
    format!("k{}", fingerprint(format!("{:?}{}{}", kernel.family, kernel.before, kernel.text)))
}

/// Kernels per module: modules compile side by side.
const PER_MODULE: usize = 8;

/// A source, and the name and shared memory of each kernel in it.
type Source = (String, Vec<(String, u32)>);

/// The sources of all kernels, each kernel once.
fn sources(kernels: &[&Kernel]) -> Vec<Source> {
    let mut unique: BTreeMap<(Family, String), &Kernel> = BTreeMap::new();
    for kernel in kernels {
        unique.insert((kernel.family, name(kernel)), kernel);
    }
    let mut sources = Vec::new();
    for family in Family::ALL {
        let own: Vec<_> = unique.iter().filter(|((of, _), _)| *of == family).collect();
        for part in own.chunks(if family == Family::Loop { PER_MODULE } else { 2 }) {
            let mut source = family.source();
            for ((_, name), kernel) in part {
                let text = format!(
                    "{}extern \"C\" __global__ void __launch_bounds__({}, {}) ${}",
                    kernel.before,
                    kernel.block,
                    kernel.resident,
                    kernel.text.replacen('{', "{ await_turn();", 1)
                );
                source.push_str(&text.replace('$', name));
            }
            sources.push((source, part.iter().map(|((_, name), kernel)| (name.clone(), kernel.shared)).collect()));
        }
    }
    sources
}

/// Compiles kernels side by side, or reads them from the cache.
pub(crate) fn machine_codes(kernels: &[&Kernel], architecture: u32) -> Result<Vec<(Vec<u8>, Source)>, DeviceError> {
    let mut sources = sources(kernels);
    let mut codes = Vec::with_capacity(sources.len());
    // Some modules per thread at a time: in between, the caller can stop.
    while !sources.is_empty() {
        poll()?;
        let rest = sources.split_off(sources.len().min(4 * rayon::current_num_threads()));
        let part = std::mem::replace(&mut sources, rest).into_par_iter();
        let compiled: Result<Vec<_>, DeviceError> =
            part.map(|source| Ok((machine_code(&source.0, architecture)?, source))).collect();
        codes.append(&mut compiled?);
    }
    Ok(codes)
}

impl Modules {
    pub(crate) fn compile(gpu: &Arc<Gpu>, kernels: &[&Kernel]) -> Result<Modules, DeviceError> {
        let codes = machine_codes(kernels, gpu.architecture)?;
        let mut modules = Modules { modules: Vec::new(), functions: HashMap::new(), gpu: gpu.clone() };
        gpu.enter()?;
        let _outside = outside_recordings();
        for (code, (_, names)) in &codes {
            let mut module = ptr::null_mut();
            // SAFETY: the code was made for this GPU; names are those in the source.
            unsafe {
                gpu.check(
                    (gpu.driver.module_load)(&raw mut module, code.as_ptr().cast()),
                    "loading kernels (the driver must be as new as the CUDA libraries)",
                )?;
                modules.modules.push(module);
                for (name, shared) in names {
                    let mut function = ptr::null_mut();
                    let text = CString::new(name.as_str()).expect("names are hexadecimal");
                    gpu.check((gpu.driver.function)(&raw mut function, module, text.as_ptr()), "finding a kernel")?;
                    if *shared > 0 {
                        // 9: the share of shared memory in percent, the rest is cache; 8: the most dynamic shared memory
                        // that a block may ask for
                        gpu.check((gpu.driver.function_set)(function, 9, 100), "reserving shared memory")?;
                        gpu.check((gpu.driver.function_set)(function, 8, *shared as c_int), "reserving shared memory")?;
                    }
                    modules.functions.insert(name.clone(), function);
                }
            }
        }
        Ok(modules)
    }

    pub(crate) fn function(&self, kernel: &Kernel) -> Handle {
        self.functions[&name(kernel)]
    }
}

impl Drop for Modules {
    fn drop(&mut self) {
        if self.gpu.enter_to_free() {
            let _outside = outside_recordings();
            for module in &self.modules {
                // SAFETY: loaded once, unloaded once.
                unsafe { (self.gpu.driver.module_unload)(*module) };
            }
        }
    }
}
