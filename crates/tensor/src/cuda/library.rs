//! The three libraries that a GPU needs: the driver, the compiler (NVRTC) and the matrix products (cuBLASLt). They are found
//! and opened at run time, when a GPU is used for the first time. Nothing is linked: a machine without them still runs
//! programs on its CPU.

use crate::device::DeviceError;
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A pointer into the memory of a GPU.
pub(crate) type Address = u64;
/// Opaque handles of the libraries.
pub(crate) type Handle = *mut c_void;

/// Declares a table of functions and how to fill it from a library.
macro_rules! functions {
    ($(#[$about:meta])* $table:ident { $($name:ident = $symbol:literal ($($argument:ty),*);)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl $table {
            /// # Safety
            /// The library is the one whose header declares these functions.
            unsafe fn from_library(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller's promise.
                unsafe { Ok($table { $($name: *library.get($symbol)?,)* }) }
            }

            /// Functions that do nothing and return success.
            #[cfg(test)]
            #[allow(dead_code)] // tests need two of the three tables
            pub(crate) fn stub() -> Self {
                $table {
                    $($name: {
                        unsafe extern "C" fn succeed($(_: $argument),*) -> c_int {
                            0
                        }
                        succeed
                    },)*
                }
            }
        }
    };
}

/// How a kernel is launched.
#[repr(C)]
pub(crate) struct Launch {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: *const Attribute,
    pub(crate) count: c_uint,
}

/// A property of a launch: its number, and its value in the first bytes of a union.
#[repr(C, align(8))]
pub(crate) struct Attribute {
    pub(crate) number: c_int,
    pub(crate) value: [c_int; 17],
}

/// The kernel may be loaded before the one ahead of it on the stream is done (programmatic dependent launch).
pub(crate) static EARLY: Attribute = {
    let mut value = [0; 17];
    value[1] = 1; // the union begins at byte 8
    Attribute { number: 6, value }
};

functions! {
    /// `libcuda`: contexts, memory, streams, modules, graphs.
    Driver {
        init = b"cuInit" (c_uint);
        version = b"cuDriverGetVersion" (*mut c_int);
        device_count = b"cuDeviceGetCount" (*mut c_int);
        device = b"cuDeviceGet" (*mut c_int, c_int);
        device_name = b"cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_memory = b"cuDeviceTotalMem_v2" (*mut usize, c_int);
        device_attribute = b"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
        retain = b"cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
        release = b"cuDevicePrimaryCtxRelease_v2" (c_int);
        set_current = b"cuCtxSetCurrent" (Handle);
        memory_info = b"cuMemGetInfo_v2" (*mut usize, *mut usize);
        allocate = b"cuMemAlloc_v2" (*mut Address, usize);
        free = b"cuMemFree_v2" (Address);
        to_device = b"cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
        to_host = b"cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
        within = b"cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
        fill = b"cuMemsetD32Async" (Address, c_uint, usize, Handle);
        stream_create = b"cuStreamCreate" (*mut Handle, c_uint);
        stream_destroy = b"cuStreamDestroy_v2" (Handle);
        synchronise = b"cuStreamSynchronize" (Handle);
        module_load = b"cuModuleLoadData" (*mut Handle, *const c_void);
        module_unload = b"cuModuleUnload" (Handle);
        function = b"cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
        function_set = b"cuFuncSetAttribute" (Handle, c_int, c_int);
        launch = b"cuLaunchKernelEx" (*const Launch, Handle, *mut *mut c_void, *mut *mut c_void);
        begin_capture = b"cuStreamBeginCapture_v2" (Handle, c_int);
        end_capture = b"cuStreamEndCapture" (Handle, *mut Handle);
        graph_instantiate = b"cuGraphInstantiateWithFlags" (*mut Handle, Handle, u64);
        graph_launch = b"cuGraphLaunch" (Handle, Handle);
        graph_destroy = b"cuGraphDestroy" (Handle);
        executable_destroy = b"cuGraphExecDestroy" (Handle);
        event_create = b"cuEventCreate" (*mut Handle, c_uint);
        event_record = b"cuEventRecord" (Handle, Handle);
        wait = b"cuStreamWaitEvent" (Handle, Handle, c_uint);
        event_elapsed = b"cuEventElapsedTime" (*mut f32, Handle, Handle);
        event_destroy = b"cuEventDestroy_v2" (Handle);
        error_text = b"cuGetErrorString" (c_int, *mut *const c_char);
    }
}

functions! {
    /// `libnvrtc`: CUDA C++ to machine code.
    Compiler {
        version = b"nvrtcVersion" (*mut c_int, *mut c_int);
        create = b"nvrtcCreateProgram"
            (*mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
        destroy = b"nvrtcDestroyProgram" (*mut Handle);
        compile = b"nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
        log_size = b"nvrtcGetProgramLogSize" (Handle, *mut usize);
        log = b"nvrtcGetProgramLog" (Handle, *mut c_char);
        code_size = b"nvrtcGetCUBINSize" (Handle, *mut usize);
        code = b"nvrtcGetCUBIN" (Handle, *mut c_char);
    }
}

functions! {
    /// `libcublasLt`: matrix products.
    Products {
        create = b"cublasLtCreate" (*mut Handle);
        destroy = b"cublasLtDestroy" (Handle);
        multiply = b"cublasLtMatmul"
            (Handle, Handle, *const c_void, Address, Handle, Address, Handle, *const c_void, Address, Handle, Address, Handle,
             *const c_void, Address, usize, Handle);
        operation_create = b"cublasLtMatmulDescCreate" (*mut Handle, c_int, c_int);
        operation_set = b"cublasLtMatmulDescSetAttribute" (Handle, c_int, *const c_void, usize);
        operation_destroy = b"cublasLtMatmulDescDestroy" (Handle);
        layout_create = b"cublasLtMatrixLayoutCreate" (*mut Handle, c_int, u64, u64, i64);
        layout_set = b"cublasLtMatrixLayoutSetAttribute" (Handle, c_int, *const c_void, usize);
        layout_destroy = b"cublasLtMatrixLayoutDestroy" (Handle);
        preference_create = b"cublasLtMatmulPreferenceCreate" (*mut Handle);
        preference_set = b"cublasLtMatmulPreferenceSetAttribute" (Handle, c_int, *const c_void, usize);
        preference_destroy = b"cublasLtMatmulPreferenceDestroy" (Handle);
        choose = b"cublasLtMatmulAlgoGetHeuristic"
            (Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut c_void, *mut c_int);
    }
}

/// An open library: its functions, and the file it was opened from.
pub(crate) struct Opened<Table> {
    pub(crate) functions: Table,
    pub(crate) file: String,
    _library: Library,
}

/// A library to look for: the middle of its file name, and the package that contains it.
struct Wanted {
    stem: &'static str,
    package: &'static str,
}

const DRIVER: Wanted = Wanted { stem: "cuda", package: "the NVIDIA driver (550 or newer)" };
const COMPILER: Wanted =
    Wanted { stem: "nvrtc", package: "the CUDA toolkit 12.4 or newer, or pip install nvidia-cuda-nvrtc-cu12" };
const PRODUCTS: Wanted =
    Wanted { stem: "cublasLt", package: "the CUDA toolkit 12.4 or newer, or pip install nvidia-cublas-cu12" };

/// Variable with folders that are searched instead of the default path of the loader.
pub(crate) const FOLDER: &str = "LAMO_CUDA_LIBRARIES";

/// Folders of common installations, which are searched after the default path of the loader.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    if let Some(list) = std::env::var_os(FOLDER) {
        folders.extend(std::env::split_paths(&list));
    }
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        folders.extend(std::env::var_os(variable).map(|home| PathBuf::from(home).join("lib64")));
    }
    let fixed = [
        "/usr/local/cuda/lib64",
        "/usr/local/nvidia/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/wsl/lib",
        "/opt/cuda/lib64",
    ];
    folders.extend(fixed.map(PathBuf::from));
    // An active Python environment may contain the libraries as packages.
    let python = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os);
    for root in python.map(|root| PathBuf::from(root).join("lib")) {
        let children =
            |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        for site in children(root).map(|version| version.join("site-packages/nvidia")) {
            folders.extend(children(site).map(|package| package.join("lib")));
        }
    }
    folders
}

impl Wanted {
    fn open<Table>(
        &self,
        fill: unsafe fn(&Library) -> Result<Table, libloading::Error>,
    ) -> Result<Opened<Table>, DeviceError> {
        let stem = self.stem;
        let names = ["", ".13", ".12", ".1"].map(|version| format!("lib{stem}.so{version}"));
        let in_folders = folders().into_iter().flat_map(|folder| names.clone().map(|name| folder.join(name)));
        let candidates: Vec<PathBuf> = match std::env::var_os(FOLDER) {
            Some(_) => in_folders.collect(),
            None => names.iter().map(PathBuf::from).chain(in_folders).collect(),
        };
        let mut last = format!("lib{stem} was not found");
        for path in candidates {
            let shown = path.display();
            // SAFETY: these are NVIDIA's libraries, whose initialisers may be run.
            let library = match unsafe { Library::new(&path) } {
                Ok(library) => library,
                Err(error) => {
                    if path.exists() {
                        last = format!("{shown} cannot be opened ({error})");
                    }
                    continue;
                }
            };
            // SAFETY: the table declares the functions of this library.
            match unsafe { fill(&library) } {
                Ok(functions) => {
                    open_companions(&path, &format!("lib{stem}-"));
                    return Ok(Opened { functions, file: shown.to_string(), _library: library });
                }
                Err(error) => last = format!("{shown} is too old: it lacks a function ({error})"),
            }
        }
        let advice = format!("install {}, or name its folder in {FOLDER}", self.package);
        Err(DeviceError::unavailable(format!("{last}; {advice}")))
    }
}

/// Opens the files beside a library that it will load by name later: the libraries of some Python packages do not know their
/// own folder.
fn open_companions(path: &std::path::Path, prefix: &str) {
    let neighbours = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for entry in neighbours.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        // SAFETY: a file of NVIDIA's; it stays open as long as the library that uses it, which is never closed.
        if let Ok(companion) = unsafe { Library::new(entry.path()) } {
            std::mem::forget(companion);
        }
    }
}

pub(crate) fn driver() -> Result<&'static Opened<Driver>, DeviceError> {
    static OPENED: OnceLock<Result<Opened<Driver>, DeviceError>> = OnceLock::new();
    OPENED.get_or_init(|| DRIVER.open(Driver::from_library)).as_ref().map_err(Clone::clone)
}

pub(crate) fn compiler() -> Result<&'static Opened<Compiler>, DeviceError> {
    static OPENED: OnceLock<Result<Opened<Compiler>, DeviceError>> = OnceLock::new();
    OPENED.get_or_init(|| COMPILER.open(Compiler::from_library)).as_ref().map_err(Clone::clone)
}

pub(crate) fn products() -> Result<&'static Opened<Products>, DeviceError> {
    static OPENED: OnceLock<Result<Opened<Products>, DeviceError>> = OnceLock::new();
    OPENED.get_or_init(|| PRODUCTS.open(Products::from_library)).as_ref().map_err(Clone::clone)
}
