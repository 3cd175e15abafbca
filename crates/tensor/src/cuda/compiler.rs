//! CUDA C++ to machine code by NVRTC. Machine code is cached on disk under a hash of the source, the compiler and the target.

use super::library::{Handle, compiler};
use crate::cache;
use crate::device::{DeviceError, DeviceErrorKind};
use std::ffi::{CString, c_char, c_int};
use std::hash::Hasher;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Machine code for compute capability `architecture` (90 for 9.0).
pub(crate) fn machine_code(source: &str, architecture: u32) -> Result<Vec<u8>, DeviceError> {
    let opened = compiler()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers are valid.
    unsafe { (opened.functions.version)(&raw mut major, &raw mut minor) };
    let key =
        fingerprint(format!("{} nvrtc {major}.{minor} {}\n{source}", env!("CARGO_PKG_VERSION"), target(architecture)));
    let file = cache::cache_folder().map(|folder| folder.join("kernels").join(format!("{key}.cubin")));
    if let Some(code) = file.as_ref().and_then(|file| std::fs::read(file).ok()).and_then(verified) {
        return Ok(code);
    }
    let code = compile(source, architecture)?;
    if let Some(file) = file {
        store(&file, &code);
    }
    Ok(code)
}

/// The code in a file of the cache, without the fingerprint at its end; `None` if the file is truncated or damaged.
fn verified(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let end = file.split_off(file.len().checked_sub(FINGERPRINT)?);
    (end == fingerprint(&file).as_bytes()).then_some(file)
}

/// Writes code to the cache. Errors are ignored: without the cache the kernel is compiled again next time.
fn store(file: &Path, code: &[u8]) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0); // two threads may compile the same kernel
    let Some(folder) = file.parent() else { return };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = file.with_extension(format!("{}-{number}.partial", std::process::id()));
    let signed = [code, fingerprint(code).as_bytes()].concat();
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&partial, signed));
    if written.and_then(|()| std::fs::rename(&partial, file)).is_err() {
        let _ = std::fs::remove_file(&partial);
    }
}

/// Digits of a fingerprint.
const FINGERPRINT: usize = 32;

/// 128 bits by two differently seeded passes of FNV-1a.
pub(crate) fn fingerprint(text: impl AsRef<[u8]>) -> String {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|&byte| self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }
    let pass = |seed: u64| {
        let mut hasher = Fnv(seed);
        hasher.write(text.as_ref());
        hasher.finish()
    };
    format!("{:016x}{:016x}", pass(0xcbf2_9ce4_8422_2325), pass(0x9e37_79b9_7f4a_7c15))
}

/// The target of the compiler. Products of warp groups (wgmma) exist in `sm_90a` only.
fn target(architecture: u32) -> String {
    format!("sm_{architecture}{}", if architecture == 90 { "a" } else { "" })
}

fn compile(source: &str, architecture: u32) -> Result<Vec<u8>, DeviceError> {
    let nvrtc = &compiler()?.functions;
    let text = CString::new(source).expect("sources have no zero byte");
    // Without the last option, older compilers treat lambdas with `auto` parameters as host functions.
    let options = [
        format!("--gpu-architecture={}", target(architecture)),
        "--std=c++17".into(),
        "--device-as-default-execution-space".into(),
    ]
    .map(|option| CString::new(option).expect("options have no zero byte"));
    let options = options.each_ref().map(|option| option.as_ptr());
    let mut program: Handle = ptr::null_mut();
    // SAFETY: every pointer is valid for its call, and the program is destroyed once.
    unsafe {
        (nvrtc.create)(&raw mut program, text.as_ptr(), c"lamo.cu".as_ptr(), 0, ptr::null(), ptr::null());
        let status = (nvrtc.compile)(program, options.len() as c_int, options.as_ptr());
        let mut code = Vec::new();
        if status == 0 {
            let mut size = 0;
            (nvrtc.code_size)(program, &raw mut size);
            code = vec![0_u8; size];
            (nvrtc.code)(program, code.as_mut_ptr().cast::<c_char>());
        }
        let mut size = 0;
        (nvrtc.log_size)(program, &raw mut size);
        let mut log = vec![0_u8; size.max(1)];
        (nvrtc.log)(program, log.as_mut_ptr().cast::<c_char>());
        (nvrtc.destroy)(&raw mut program);
        if status != 0 || code.is_empty() {
            let log = String::from_utf8_lossy(&log);
            let first: Vec<&str> = log.lines().filter(|line| line.contains("error")).take(3).collect();
            return Err(failure(status, &first.join("; ")));
        }
        Ok(code)
    }
}

/// A kernel that does not compile; the status is one of `nvrtcResult`.
fn failure(status: c_int, log: &str) -> DeviceError {
    let (kind, advice) = match status {
        1 => (DeviceErrorKind::OutOfMemory, "end other processes that use the memory of this machine"),
        5 => (DeviceErrorKind::Unavailable, "install a CUDA toolkit that knows this GPU, or set LAMO_CUDA_LIBRARIES"),
        _ => (DeviceErrorKind::Failed, "please report this message with the command that led to it"),
    };
    DeviceError::new(kind, format!("NVRTC could not compile a kernel (status {status}: {log}); {advice}"))
}

#[cfg(test)]
mod tests {
    use super::{DeviceErrorKind, failure, fingerprint, verified};

    #[test]
    fn a_kernel_that_does_not_compile_fails_with_the_status_and_advice() {
        let old = failure(5, "invalid value for --gpu-architecture");
        assert_eq!(old.kind(), DeviceErrorKind::Unavailable);
        assert!(old.to_string().contains("status 5") && old.to_string().contains("CUDA toolkit"), "{old}");
        assert_eq!(failure(6, "").kind(), DeviceErrorKind::Failed);
    }

    #[test]
    fn a_truncated_or_damaged_file_of_the_cache_is_not_used() {
        let code = b"machine code".to_vec();
        let file = [&code[..], fingerprint(&code).as_bytes()].concat();
        assert_eq!(verified(file.clone()), Some(code));
        for cut in 0..file.len() {
            assert_eq!(verified(file[..cut].to_vec()), None, "{cut} bytes");
        }
        let mut damaged = file;
        damaged[3] ^= 1;
        assert_eq!(verified(damaged), None);
    }
}
