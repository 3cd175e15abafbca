//! A GPU: its context, its stream, its memory.
//!
//! Errors of CUDA are sticky: after an illegal access or the loss of the device every later call on the context fails. All threads
//! share the context of a GPU. The first such error is stored for all of them; later calls return it without asking the driver,
//! and nothing is freed any more.

use super::library::{self, Address, Driver, Handle, Products};
use super::status;
use crate::device::{DeviceError, DeviceErrorKind};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::thread::ThreadId;

/// While one thread records a graph, a call of another that allocates, frees, loads or waits can break the recording. Such calls
/// hold this lock for reading, a recording holds it for writing.
static RECORDING: RwLock<()> = RwLock::new(());

/// Held by a call that must not fall into a recording of another thread.
pub(super) fn outside_recordings() -> RwLockReadGuard<'static, ()> {
    RECORDING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held while a graph is recorded.
pub(super) fn recording() -> RwLockWriteGuard<'static, ()> {
    RECORDING.write().unwrap_or_else(PoisonError::into_inner)
}

/// Oldest driver API that works: CUDA 12.4.
const OLDEST: c_int = 12040;

pub(crate) struct Gpu {
    pub(crate) driver: Driver,
    pub(crate) products: Products,
    pub(crate) stream: Handle,
    /// Handle of cuBLASLt.
    pub(crate) multiplier: Handle,
    pub(super) number: c_int,
    pub(crate) name: String,
    /// Compute capability, 90 for 9.0.
    pub(crate) architecture: u32,
    /// Bytes of shared memory that a block may have.
    pub(crate) shared: usize,
    pub(super) context: Handle,
    /// The first error that broke the context, which the threads share.
    pub(super) broken: Arc<OnceLock<DeviceError>>,
}

/// Gives back what was taken for a [`Gpu`], unless it was completed.
struct Taken<'a> {
    driver: &'a Driver,
    device: c_int,
    stream: Handle,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // SAFETY: the context was retained once and the stream, if there is one, created once.
        unsafe {
            if !self.stream.is_null() {
                (self.driver.stream_destroy)(self.stream);
            }
            (self.driver.release)(self.device);
        }
    }
}

// SAFETY: the driver's functions may be called from any thread that made the context current.
unsafe impl Send for Gpu {}
unsafe impl Sync for Gpu {}

impl Drop for Gpu {
    fn drop(&mut self) {
        match self.broken.get().map(DeviceError::kind) {
            // SAFETY: created once in `open`.
            None => unsafe {
                (self.driver.set_current)(self.context);
                (self.products.destroy)(self.multiplier);
                (self.driver.stream_destroy)(self.stream);
                (self.driver.release)(self.number);
            },
            // A call to a lost GPU may never return.
            Some(DeviceErrorKind::Lost) => {}
            // SAFETY: retained once in `open`. The driver frees whatever belongs to the broken context.
            Some(_) => unsafe {
                (self.driver.release)(self.number);
            },
        }
    }
}

/// What a status means, in the driver's words and by its number.
fn meaning(driver: &Driver, status: c_int) -> String {
    let mut text = ptr::null();
    // SAFETY: the driver owns the text it points to.
    unsafe {
        (driver.error_text)(status, &raw mut text);
        if text.is_null() {
            format!("CUDA error {status}")
        } else {
            format!("{} (CUDA error {status})", CStr::from_ptr(text).to_string_lossy())
        }
    }
}

impl Gpu {
    /// The GPU with this number, opened once by each thread: threads have streams of their own, so that their programs run side
    /// by side. Fails with the error that broke the context while a thread still holds it.
    pub(crate) fn open(number: usize) -> Result<Arc<Gpu>, DeviceError> {
        static OPEN: Mutex<Vec<(usize, ThreadId, Weak<Gpu>)>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock().expect("nothing panics while it is held");
        open.retain(|(.., gpu)| gpu.strong_count() > 0);
        let thread = std::thread::current().id();
        let known = open.iter().find(|(known, owner, _)| (*known, *owner) == (number, thread));
        if let Some(gpu) = known.and_then(|(.., gpu)| gpu.upgrade()) {
            return Ok(gpu);
        }
        let mut others = open.iter().filter(|(known, ..)| *known == number).filter_map(|(.., gpu)| gpu.upgrade());
        let broken = others.next().map(|gpu| gpu.broken.clone()).unwrap_or_default();
        if let Some(error) = broken.get() {
            return Err(error.clone());
        }
        let gpu = Arc::new(Gpu::new(number, broken)?);
        open.push((number, thread, Arc::downgrade(&gpu)));
        Ok(gpu)
    }

    fn new(number: usize, broken: Arc<OnceLock<DeviceError>>) -> Result<Gpu, DeviceError> {
        let driver = initialised()?;
        let products = library::products()?.functions;
        library::compiler()?;
        let count = device_count(&driver)?;
        if number >= count {
            return Err(DeviceError::unavailable(format!(
                "device cuda:{number} does not exist; the driver knows {count} GPU(s)"
            )));
        }
        let check = |status: c_int, what: &str| match status {
            0 => Ok(()),
            _ => {
                let (kind, meaning) = (status::opening_kind(status), meaning(&driver, status));
                let advice = status::advice(kind);
                Err(DeviceError::new(kind, format!("cuda:{number}: {what} failed: {meaning}; {advice}")))
            }
        };
        let (mut device, mut context, mut handle) = (0, ptr::null_mut(), ptr::null_mut());
        let mut taken;
        // SAFETY: every pointer is valid for its call.
        unsafe {
            check((driver.device)(&raw mut device, number as c_int), "opening the GPU")?;
            check((driver.retain)(&raw mut context, device), "opening the GPU")?;
            taken = Taken { driver: &driver, device, stream: ptr::null_mut() };
            check((driver.set_current)(context), "opening the GPU")?;
            check((driver.stream_create)(&raw mut taken.stream, 1), "making a stream")?; // 1: does not wait for stream 0
            let status = (products.create)(&raw mut handle);
            if status != 0 {
                return Err(DeviceError::new(
                    status::product_kind(status),
                    format!(
                        "cuda:{number}: cuBLASLt could not start (status {status}); end other processes that fill the GPU"
                    ),
                ));
            }
        }
        let attribute = |which: c_int| {
            let mut value = 0;
            // SAFETY: the pointer is valid.
            unsafe { (driver.device_attribute)(&raw mut value, which, device) };
            value as u32
        };
        let architecture = attribute(75) * 10 + attribute(76); // compute capability
        let name = device_name(&driver, device);
        if architecture < 80 {
            return Err(DeviceError::unavailable(format!(
                "cuda:{number} ({name}) has compute capability {}.{}; use a GPU of 8.0 (Ampere) or newer, or the CPU",
                architecture / 10,
                architecture % 10
            )));
        }
        let shared = attribute(97) as usize; // the most that a block may ask for
        let stream = taken.stream;
        std::mem::forget(taken);
        Ok(Gpu {
            driver,
            products,
            stream,
            multiplier: handle,
            number: device,
            name,
            architecture,
            shared,
            context,
            broken,
        })
    }

    /// Whether a kernel can be loaded before the one ahead of it is done, and wait on the GPU.
    pub(crate) fn starts_early(&self) -> bool {
        self.architecture >= 90
    }

    /// Fails with the error that broke the context, if one did.
    pub(crate) fn usable(&self) -> Result<(), DeviceError> {
        self.broken.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Makes the context current on this thread; fails at once if the context is broken.
    pub(crate) fn enter(&self) -> Result<(), DeviceError> {
        self.usable()?;
        // SAFETY: the context lives as long as self.
        self.check(unsafe { (self.driver.set_current)(self.context) }, "using the GPU")
    }

    /// [`Gpu::enter`] for `Drop`: whether there is anything to free. Nothing is freed in a broken context.
    pub(crate) fn enter_to_free(&self) -> bool {
        self.enter().is_ok()
    }

    pub(crate) fn check(&self, status: c_int, what: &str) -> Result<(), DeviceError> {
        if status == 0 {
            return Ok(());
        }
        let (kind, meaning) = (status::kind(status), meaning(&self.driver, status));
        let sentence = format!("{what} failed on {}: {meaning}; {}", self.name, status::advice(kind));
        let error = DeviceError::new(kind, sentence);
        if status::is_fatal(status) {
            return Err(self.broken.get_or_init(|| error).clone());
        }
        Err(error)
    }

    pub(crate) fn synchronise(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is ours.
        self.check(unsafe { (self.driver.synchronise)(self.stream) }, "the program")
    }

    pub(crate) fn write<T: Copy>(&self, to: Address, values: &[T]) -> Result<(), DeviceError> {
        let _outside = outside_recordings();
        // SAFETY: the caller's address holds as many bytes; pageable memory is staged before the call returns.
        let status = unsafe { (self.driver.to_device)(to, values.as_ptr().cast(), size_of_val(values), self.stream) };
        self.check(status, "writing to the GPU")
    }

    pub(crate) fn read(&self, from: Address, values: &mut [f32]) -> Result<(), DeviceError> {
        self.synchronise()?; // so that the lock is not held while programs run
        let outside = outside_recordings();
        // SAFETY: the caller's address has as many values; the copy is waited for.
        let status = unsafe {
            (self.driver.to_host)(values.as_mut_ptr().cast::<c_void>(), from, size_of_val(values), self.stream)
        };
        drop(outside);
        self.check(status, "reading from the GPU")?;
        self.synchronise()
    }

    /// Copies from one address on the GPU to another.
    pub(crate) fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: both of the caller's addresses have as many bytes.
        self.check(unsafe { (self.driver.within)(to, from, bytes, self.stream) }, "copying on the GPU")
    }

    /// Seconds between two events around `work`.
    pub(crate) fn time(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
        let start = Event::with(self, 0)?;
        let end = Event::with(self, 0)?;
        let mut milliseconds = 0.0;
        // SAFETY: the events live until the end of this function.
        unsafe {
            self.check((self.driver.event_record)(start.handle, self.stream), "timing a kernel")?;
            work()?;
            self.check((self.driver.event_record)(end.handle, self.stream), "timing a kernel")?;
            self.synchronise()?;
            let elapsed = (self.driver.event_elapsed)(&raw mut milliseconds, start.handle, end.handle);
            self.check(elapsed, "timing a kernel")?;
        }
        Ok(f64::from(milliseconds) * 1e-3)
    }

    /// Fails if the GPU has no room for this many floats.
    pub(crate) fn has(&self, count: usize) -> Result<(), DeviceError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are valid.
        let status = unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) };
        self.check(status, "asking for free memory")?;
        let bytes = count.saturating_mul(4);
        if bytes > free { Err(full(self, bytes)) } else { Ok(()) }
    }
}

/// The driver, started and new enough.
pub(super) fn initialised() -> Result<Driver, DeviceError> {
    let driver = library::driver()?.functions;
    let mut version = 0;
    // SAFETY: the pointer is valid.
    let status = unsafe {
        (driver.version)(&raw mut version);
        (driver.init)(0)
    };
    if status != 0 {
        return Err(DeviceError::unavailable(format!(
            "the NVIDIA driver does not start: {}; look at nvidia-smi to see whether there is a GPU",
            meaning(&driver, status)
        )));
    }
    if version < OLDEST {
        return Err(DeviceError::unavailable(format!(
            "the NVIDIA driver supports CUDA {}.{}, 12.4 or newer is needed; install driver 550 or newer",
            version / 1000,
            version % 1000 / 10
        )));
    }
    Ok(driver)
}

pub(super) fn device_count(driver: &Driver) -> Result<usize, DeviceError> {
    let mut count = 0;
    // SAFETY: the pointer is valid.
    match unsafe { (driver.device_count)(&raw mut count) } {
        0 => Ok(count as usize),
        status => Err(DeviceError::unavailable(format!(
            "the NVIDIA driver lists no GPUs: {}; {}",
            meaning(driver, status),
            status::advice(DeviceErrorKind::Unavailable)
        ))),
    }
}

pub(super) fn device_name(driver: &Driver, device: c_int) -> String {
    let mut name = [0; 128];
    // SAFETY: the driver writes at most as many bytes, zero-terminated.
    unsafe {
        (driver.device_name)(name.as_mut_ptr(), name.len() as c_int, device);
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    }
}

/// The name of a GPU, if there is one with this number.
pub(crate) fn gpu_name(number: usize) -> Option<String> {
    let driver = initialised().ok()?;
    let mut device = 0;
    // SAFETY: the pointer is valid.
    let status = unsafe { (driver.device)(&raw mut device, number as c_int) };
    (status == 0).then(|| device_name(&driver, device))
}

/// Streams that a run is recorded on. The GPU's own stream is not among them: another thread may use it meanwhile.
pub(crate) struct Streams {
    handles: Vec<Handle>,
    gpu: Arc<Gpu>,
}

impl Streams {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Streams, DeviceError> {
        let mut streams = Streams { handles: Vec::new(), gpu: gpu.clone() };
        for _ in 0..super::STREAMS {
            let mut stream = ptr::null_mut();
            // SAFETY: the pointer is valid; 1: does not wait for stream 0.
            gpu.check(unsafe { (gpu.driver.stream_create)(&raw mut stream, 1) }, "making a stream")?;
            streams.handles.push(stream);
        }
        Ok(streams)
    }

    pub(crate) fn handle(&self, number: usize) -> Handle {
        self.handles[number]
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        if self.gpu.usable().is_ok() {
            for stream in &self.handles {
                // SAFETY: created once, destroyed once.
                unsafe { (self.gpu.driver.stream_destroy)(*stream) };
            }
        }
    }
}

/// A point on a stream that other streams can wait for.
pub(crate) struct Event<'a> {
    handle: Handle,
    gpu: &'a Gpu,
}

impl<'a> Event<'a> {
    fn with(gpu: &'a Gpu, flags: c_uint) -> Result<Event<'a>, DeviceError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid.
        gpu.check(unsafe { (gpu.driver.event_create)(&raw mut handle, flags) }, "making an event")?;
        Ok(Event { handle, gpu })
    }

    pub(crate) fn record(gpu: &'a Gpu, stream: Handle) -> Result<Event<'a>, DeviceError> {
        let event = Event::with(gpu, 2)?; // 2: no timing
        // SAFETY: both handles live.
        gpu.check(unsafe { (gpu.driver.event_record)(event.handle, stream) }, "recording an event")?;
        Ok(event)
    }

    /// All work put on `stream` from now on waits for this event.
    pub(crate) fn hold(&self, stream: Handle) -> Result<(), DeviceError> {
        // SAFETY: both handles live.
        self.gpu.check(unsafe { (self.gpu.driver.wait)(stream, self.handle, 0) }, "waiting for an event")
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        if self.gpu.usable().is_ok() {
            // SAFETY: created once, destroyed once.
            unsafe { (self.gpu.driver.event_destroy)(self.handle) };
        }
    }
}

/// Memory on a GPU.
pub(crate) struct Memory {
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    gpu: Arc<Gpu>,
}

impl Memory {
    /// This many zeroed floats.
    pub(crate) fn zeros(gpu: &Arc<Gpu>, count: usize) -> Result<Memory, DeviceError> {
        let bytes = count.saturating_mul(4);
        if bytes > isize::MAX as usize {
            return Err(full(gpu, bytes));
        }
        let mut address = 0;
        let outside = outside_recordings();
        // SAFETY: the pointer is valid.
        let status = unsafe { (gpu.driver.allocate)(&raw mut address, bytes) };
        drop(outside);
        if status::kind(status) == DeviceErrorKind::OutOfMemory {
            return Err(full(gpu, bytes));
        }
        gpu.check(status, "allocating memory")?;
        let memory = Memory { address, bytes, gpu: gpu.clone() };
        // SAFETY: the memory is new and has this length.
        gpu.check(unsafe { (gpu.driver.fill)(address, 0, count, gpu.stream) }, "clearing memory")?;
        Ok(memory)
    }
}

/// The error of an allocation that does not fit.
fn full(gpu: &Gpu, bytes: usize) -> DeviceError {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the pointers are valid.
    unsafe { (gpu.driver.memory_info)(&raw mut free, &raw mut total) };
    let gigabytes = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    let sentence = format!(
        "{} has {:.2} of {:.2} GiB free, the program needs {:.2} GiB more; {}",
        gpu.name,
        gigabytes(free),
        gigabytes(total),
        gigabytes(bytes),
        status::advice(DeviceErrorKind::OutOfMemory)
    );
    DeviceError::new(DeviceErrorKind::OutOfMemory, sentence)
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.gpu.enter_to_free() {
            let _outside = outside_recordings();
            // SAFETY: allocated once, freed once.
            unsafe { (self.gpu.driver.free)(self.address) };
        }
    }
}
