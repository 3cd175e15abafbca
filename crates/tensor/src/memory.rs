//! The memory of the system: how much a program may still take, and vectors that may fail.
//!
//! Linux grants memory that it does not have and ends the process when the memory is used. So large requests are compared
//! with what is available first: with `MemAvailable` and free swap, with the limits of the control groups of the process, and
//! with the limit of its address space (`ulimit -v`). Where a number cannot be read, it does not limit.

use crate::device::{DeviceError, DeviceErrorKind};

/// Requests below this many bytes are granted without a look at the system.
const SMALL: usize = 1 << 20;

/// The least that one of the limits leaves.
struct Available {
    bytes: u64,
    /// A clause with a verb: `this machine has 3.20 of 15.60 GiB free`.
    told: String,
}

fn gibibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// Fails if the system has fewer than `bytes` bytes. `what` is the subject of the sentence: `the program`.
pub(crate) fn check(bytes: usize, what: &str) -> Result<(), DeviceError> {
    if bytes < SMALL {
        return Ok(());
    }
    match available() {
        Some(available) if available.bytes < bytes as u64 => Err(full(bytes, what, Some(&available))),
        _ => Ok(()),
    }
}

/// The error of an allocation that the system refused.
pub(crate) fn refused(bytes: usize, what: &str) -> DeviceError {
    full(bytes, what, available().as_ref())
}

fn full(bytes: usize, what: &str, available: Option<&Available>) -> DeviceError {
    let told = available.map_or("more than the system gives", |available| &available.told);
    let needs = match bytes {
        usize::MAX => "more memory than can be addressed".to_owned(),
        _ => format!("{:.2} GiB of memory", gibibytes(bytes as u64)),
    };
    let sentence = format!("{what} needs {needs}, {told}; use a smaller batch or model");
    DeviceError::new(DeviceErrorKind::OutOfMemory, sentence)
}

/// `length` zeros, or an error of kind `OutOfMemory`.
pub(crate) fn zeros(length: usize, what: &str) -> Result<Vec<f32>, DeviceError> {
    let mut values = room(length, what)?;
    values.resize(length, 0.0);
    Ok(values)
}

/// An empty vector with room for `length` values, or an error of kind `OutOfMemory`.
pub(crate) fn room<T>(length: usize, what: &str) -> Result<Vec<T>, DeviceError> {
    let bytes = length.saturating_mul(size_of::<T>());
    check(bytes, what)?;
    let mut values = Vec::new();
    values.try_reserve_exact(length).map_err(|_| refused(bytes, what))?;
    Ok(values)
}

#[cfg(any(not(target_os = "linux"), miri))]
fn available() -> Option<Available> {
    None
}

#[cfg(all(target_os = "linux", not(miri)))]
fn available() -> Option<Available> {
    let limits = [linux::machine(), linux::control_group(), linux::address_space()];
    limits.into_iter().flatten().min_by_key(|limit| limit.bytes)
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use super::{Available, gibibytes};
    use std::fs::read_to_string;
    use std::path::Path;

    /// The number after `name` in lines of names and numbers.
    pub(super) fn number_after(text: &str, name: &str) -> Option<u64> {
        let mut lines = text.lines().map(str::split_whitespace);
        lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok()).flatten())
    }

    pub(super) fn machine() -> Option<Available> {
        let text = read_to_string("/proc/meminfo").ok()?;
        let bytes = |name: &str| Some(number_after(&text, name)? << 10);
        let swap = |name: &str| bytes(name).unwrap_or(0);
        let free = bytes("MemAvailable:")? + swap("SwapFree:");
        let total = bytes("MemTotal:")? + swap("SwapTotal:");
        let told = format!("this machine has {:.2} of {:.2} GiB free", gibibytes(free), gibibytes(total));
        Some(Available { bytes: free, told })
    }

    /// The tightest of the limits of this process's control group and of the groups around it.
    pub(super) fn control_group() -> Option<Available> {
        let text = read_to_string("/proc/self/cgroup").ok()?;
        let mut tightest: Option<Available> = None;
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            // Version 2 has one tree, version 1 one tree per controller.
            let found = if number == "0" && controllers.is_empty() {
                tree("/sys/fs/cgroup", path, "memory.max", &["anon", "shmem"])
            } else if controllers.split(',').any(|controller| controller == "memory") {
                tree("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", &["total_rss", "total_shmem"])
            } else {
                None
            };
            tightest = tightest.into_iter().chain(found).min_by_key(|limit| limit.bytes);
        }
        tightest
    }

    /// The group at `path` and all above it. The pages of files can be dropped, so they do not count as used.
    fn tree(root: &str, path: &str, limit: &str, used: &[&str]) -> Option<Available> {
        let left = |folder: &Path| {
            let limit: u64 = read_to_string(folder.join(limit)).ok()?.trim().parse().ok()?;
            let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let used = used.iter().filter_map(|name| number_after(&stat, name)).fold(0, u64::saturating_add);
            let bytes = limit.saturating_sub(used);
            let told = format!(
                "the control group (cgroup) of this process has {:.2} of {:.2} GiB free",
                gibibytes(bytes),
                gibibytes(limit)
            );
            Some(Available { bytes, told })
        };
        let inside = Path::new(path.trim_start_matches('/'));
        inside.ancestors().filter_map(|group| left(&Path::new(root).join(group))).min_by_key(|limit| limit.bytes)
    }

    pub(super) fn address_space() -> Option<Available> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is valid.
        let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
        if status != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
            return None;
        }
        let status = read_to_string("/proc/self/status").ok()?;
        let used = number_after(&status, "VmSize:")? << 10;
        let bytes = limit.rlim_cur.saturating_sub(used);
        let told = format!(
            "the limit of the address space (ulimit -v) leaves {:.2} of {:.2} GiB",
            gibibytes(bytes),
            gibibytes(limit.rlim_cur)
        );
        Some(Available { bytes, told })
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_beyond_the_machine_says_what_it_needs_and_what_there_is() {
        assert_eq!(check(1 << 10, "the program"), Ok(()));
        assert_eq!(check(SMALL, "the program"), Ok(()));
        let error = check(1 << 50, "the program").unwrap_err();
        assert_eq!(error.kind(), DeviceErrorKind::OutOfMemory);
        let sentence = error.to_string();
        assert!(sentence.starts_with("the program needs 1048576.00 GiB of memory, th"), "{sentence}");
        assert!(sentence.contains(" GiB free; use a smaller batch or model"), "{sentence}");
        assert!(zeros(usize::MAX, "a snapshot").unwrap_err().to_string().contains("can be addressed"));
    }

    #[test]
    fn numbers_are_read_from_lines_of_names_and_numbers() {
        let text = "MemTotal:       16 kB\nanon 1234\nanon_thp 5\nodd\n";
        assert_eq!(linux::number_after(text, "MemTotal:"), Some(16));
        assert_eq!(linux::number_after(text, "anon"), Some(1234));
        assert_eq!(linux::number_after(text, "odd"), None);
        assert_eq!(linux::number_after(text, "none"), None);
    }

    /// A limit holds for the whole process, so the test runs in a process of its own.
    #[test]
    fn a_limit_of_the_address_space_is_an_error_and_not_an_abort() {
        const CHILD: &str = "LAMO_TEST_LIMITS_ITS_MEMORY";
        if std::env::var_os(CHILD).is_none() {
            let name = "memory::tests::a_limit_of_the_address_space_is_an_error_and_not_an_abort";
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(CHILD, "1")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
            assert!(child.status.success(), "{told}");
            return;
        }
        let limit = libc::rlimit { rlim_cur: 4 << 30, rlim_max: 4 << 30 };
        // SAFETY: the pointer is valid.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let graph = crate::Graph::new();
        graph.output("y", graph.input("x", [1 << 30]) * 2.0);
        let error = crate::Program::compile_on(&graph, crate::Device::Cpu, crate::Precision::F32).err().unwrap();
        assert_eq!(error.kind(), DeviceErrorKind::OutOfMemory);
        let sentence = error.to_string();
        // The child runs on a machine that may have less than the limit leaves.
        assert!(sentence.contains("ulimit -v") || sentence.contains("GiB free"), "{sentence}");
    }
}
