//! Status codes of the CUDA driver and of cuBLASLt: what kind of failure each is, whether the GPU can still be used after
//! it, and what to do.
//!
//! The codes are those of `CUresult` (CUDA driver API, "Data types used by CUDA driver") and `cublasStatus_t`.

use crate::device::DeviceErrorKind;
use std::ffi::c_int;

/// What a status of an open GPU means.
pub(crate) fn kind(status: c_int) -> DeviceErrorKind {
    match status {
        2 => DeviceErrorKind::OutOfMemory,
        // Not initialised, stub library, driver too old for the call, no licence; machine code that the driver cannot
        // load, PTX of another version, no JIT compiler; not supported, system not ready, driver and kernel module
        // differ, GPU too old for the driver.
        3 | 34 | 36 | 102 | 200 | 209 | 218 | 221 | 222 | 223 | 801 | 802 | 803 | 804 => DeviceErrorKind::Unavailable,
        // The driver shuts down; the GPU is unavailable, missing or unknown, although it was open; uncorrectable errors of
        // memory and NVLink, contained hardware error; the context is gone; unknown error.
        4 | 46 | 100 | 101 | 214 | 220 | 226 | 709 | 999 => DeviceErrorKind::Lost,
        // Illegal address, assertion, hardware stack error, illegal instruction, misaligned address, invalid address
        // space, invalid program counter, launch failed, tensor memory leak.
        700 | 710 | 714..=719 | 721 => DeviceErrorKind::IllegalAccess,
        _ => DeviceErrorKind::Failed,
    }
}

/// What a status means while a GPU is opened: it cannot be used, whatever the reason.
pub(crate) fn opening_kind(status: c_int) -> DeviceErrorKind {
    match status {
        2 => DeviceErrorKind::OutOfMemory,
        214 | 220 | 226 => DeviceErrorKind::Lost,
        _ => DeviceErrorKind::Unavailable,
    }
}

/// Whether every later call on the same context fails too.
pub(crate) fn is_fatal(status: c_int) -> bool {
    // Launch timeout, MPS client terminated, error of an external device.
    matches!(kind(status), DeviceErrorKind::Lost | DeviceErrorKind::IllegalAccess) || [702, 810, 911].contains(&status)
}

/// What a status of cuBLASLt means.
pub(crate) fn product_kind(status: c_int) -> DeviceErrorKind {
    match status {
        1 | 8 => DeviceErrorKind::Unavailable, // not initialised, architecture without this feature
        3 => DeviceErrorKind::OutOfMemory,
        11 => DeviceErrorKind::IllegalAccess, // a mapping of memory failed
        _ => DeviceErrorKind::Failed,
    }
}

/// What the user can do about it.
pub(crate) fn advice(kind: DeviceErrorKind) -> &'static str {
    match kind {
        DeviceErrorKind::Unavailable => {
            "install NVIDIA driver 550 or newer, and look at nvidia-smi to see which GPUs there are"
        }
        DeviceErrorKind::OutOfMemory => "use a smaller batch or model, or end the other processes on the GPU",
        DeviceErrorKind::TooLarge => "use smaller sizes",
        DeviceErrorKind::Interrupted => "start lamo again",
        DeviceErrorKind::Lost => {
            "start lamo again; if it happens again, look at nvidia-smi, reset the GPU or restart the machine"
        }
        DeviceErrorKind::IllegalAccess => {
            "start lamo again; if it happens again, this is a bug in lamo: please report it with the command that led to it"
        }
        DeviceErrorKind::Failed => {
            "start lamo again; if it happens again, please report this message with the command that led to it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeviceErrorKind::{Failed, IllegalAccess, Interrupted, Lost, OutOfMemory, TooLarge, Unavailable};

    #[test]
    fn every_status_has_its_kind_and_those_that_break_the_context_are_fatal() {
        let rows = [
            (1, Failed, false), // invalid value
            (2, OutOfMemory, false),
            (3, Unavailable, false),
            (4, Lost, true),
            (36, Unavailable, false),
            (46, Lost, true),
            (100, Lost, true),
            (101, Lost, true),
            (201, Failed, false), // invalid context
            (209, Unavailable, false),
            (214, Lost, true),
            (220, Lost, true),
            (226, Lost, true),
            (400, Failed, false), // invalid handle
            (700, IllegalAccess, true),
            (701, Failed, false), // too many registers for a launch
            (702, Failed, true),
            (709, Lost, true),
            (710, IllegalAccess, true),
            (714, IllegalAccess, true),
            (715, IllegalAccess, true),
            (716, IllegalAccess, true),
            (717, IllegalAccess, true),
            (718, IllegalAccess, true),
            (719, IllegalAccess, true),
            (720, Failed, false), // cooperative launch too large
            (803, Unavailable, false),
            (810, Failed, true),
            (900, Failed, false), // not permitted while a stream is captured
            (911, Failed, true),
            (999, Lost, true),
        ];
        for (status, expected, fatal) in rows {
            assert_eq!((kind(status), is_fatal(status)), (expected, fatal), "status {status}");
        }
    }

    #[test]
    fn a_gpu_that_cannot_be_opened_is_unavailable_unless_its_memory_is_full_or_faulty() {
        for (status, expected) in
            [(2, OutOfMemory), (46, Unavailable), (101, Unavailable), (214, Lost), (999, Unavailable)]
        {
            assert_eq!(opening_kind(status), expected, "status {status}");
        }
    }

    #[test]
    fn a_product_that_finds_no_memory_is_out_of_memory() {
        for (status, expected) in [(1, Unavailable), (3, OutOfMemory), (8, Unavailable), (13, Failed), (15, Failed)] {
            assert_eq!(product_kind(status), expected, "status {status}");
        }
    }

    #[test]
    fn every_kind_comes_with_advice_of_its_own() {
        let kinds = [Unavailable, OutOfMemory, TooLarge, Interrupted, Lost, IllegalAccess, Failed];
        let advice: std::collections::HashSet<&str> = kinds.map(advice).into();
        assert_eq!(advice.len(), kinds.len());
    }
}
