//! A card: its context, its stream, its memory, and the modules loaded on it.

use super::compiler::{fingerprint, machine_code};
use super::kernel::{Family, Kernel};
use super::library::{self, Address, Driver, Handle, Products};
use crate::device::Unavailable;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, Weak};

/// Oldest driver API that serves: CUDA 12.4.
const OLDEST: c_int = 12040;

pub(crate) struct Card {
    pub(crate) driver: Driver,
    pub(crate) products: Products,
    pub(crate) stream: Handle,
    /// cuBLASLt's own.
    pub(crate) multiplier: Handle,
    number: c_int,
    pub(crate) name: String,
    /// Compute capability, 90 for 9.0.
    pub(crate) architecture: u32,
    /// Bytes of shared memory that a block may have.
    pub(crate) shared: usize,
    context: Handle,
}

// SAFETY: the driver's functions may be called from any thread that made the context current.
unsafe impl Send for Card {}
unsafe impl Sync for Card {}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: created once in `open`.
        unsafe {
            (self.driver.set_current)(self.context);
            (self.products.destroy)(self.multiplier);
            (self.driver.stream_destroy)(self.stream);
            (self.driver.release)(self.number);
        }
    }
}

/// What a status means, in the driver's words.
fn meaning(driver: &Driver, status: c_int) -> String {
    let mut text = ptr::null();
    // SAFETY: the driver owns the text it points to.
    unsafe {
        (driver.error_text)(status, &raw mut text);
        if text.is_null() { format!("error {status}") } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

impl Card {
    /// The card with this number, opened once and shared.
    pub(crate) fn open(number: usize) -> Result<Arc<Card>, Unavailable> {
        static OPEN: Mutex<BTreeMap<usize, Weak<Card>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().expect("nothing panics while it is held");
        if let Some(card) = open.get(&number).and_then(Weak::upgrade) {
            return Ok(card);
        }
        let card = Arc::new(Card::new(number)?);
        open.insert(number, Arc::downgrade(&card));
        Ok(card)
    }

    fn new(number: usize) -> Result<Card, Unavailable> {
        let driver = initialised()?;
        let products = library::products()?.functions;
        library::compiler()?;
        let count = device_count(&driver)?;
        if number >= count {
            return Err(Unavailable(format!("device cuda:{number} does not exist; the driver knows {count} card(s)")));
        }
        let fails = |status: c_int, what: &str| match status {
            0 => Ok(()),
            _ => Err(Unavailable(format!("cuda:{number}: {what} failed: {}", meaning(&driver, status)))),
        };
        let (mut device, mut context, mut stream, mut handle) = (0, ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: every pointer is valid for its call.
        unsafe {
            fails((driver.device)(&raw mut device, number as c_int), "opening the card")?;
            fails((driver.retain)(&raw mut context, device), "opening the card")?;
            fails((driver.set_current)(context), "opening the card")?;
            fails((driver.stream_create)(&raw mut stream, 1), "making a stream")?; // 1: does not wait for stream 0
            if (products.create)(&raw mut handle) != 0 {
                return Err(Unavailable(format!(
                    "cuda:{number}: cuBLASLt could not start; is another process using all memory of the card?"
                )));
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
            return Err(Unavailable(format!(
                "cuda:{number} ({name}) has compute capability {}.{}; 8.0 (Ampere) or newer is needed",
                architecture / 10,
                architecture % 10
            )));
        }
        let shared = attribute(97) as usize; // the most that a block may ask for
        Ok(Card { driver, products, stream, multiplier: handle, number: device, name, architecture, shared, context })
    }

    /// Whether a kernel can come on the card before the one ahead of it is done, and wait there.
    pub(crate) fn starts_early(&self) -> bool {
        self.architecture >= 90
    }

    pub(crate) fn make_current(&self) {
        // SAFETY: the context lives as long as self.
        unsafe { (self.driver.set_current)(self.context) };
    }

    pub(crate) fn check(&self, status: c_int, what: &str) -> Result<(), Unavailable> {
        match status {
            0 => Ok(()),
            _ => Err(Unavailable(format!("{what} failed on {}: {}", self.name, meaning(&self.driver, status)))),
        }
    }

    pub(crate) fn synchronise(&self) -> Result<(), Unavailable> {
        // SAFETY: the stream is ours.
        self.check(unsafe { (self.driver.synchronise)(self.stream) }, "the program")
    }

    pub(crate) fn write<T: Copy>(&self, to: Address, values: &[T]) -> Result<(), Unavailable> {
        // SAFETY: the caller's address has room; pageable memory is staged before the call returns.
        let status = unsafe { (self.driver.to_device)(to, values.as_ptr().cast(), size_of_val(values), self.stream) };
        self.check(status, "writing to the card")
    }

    pub(crate) fn read(&self, from: Address, values: &mut [f32]) -> Result<(), Unavailable> {
        // SAFETY: the caller's address has as many values; the copy is waited for.
        let status = unsafe {
            (self.driver.to_host)(values.as_mut_ptr().cast::<c_void>(), from, size_of_val(values), self.stream)
        };
        self.check(status, "reading from the card")?;
        self.synchronise()
    }

    /// Copies from one place on the card to another.
    pub(crate) fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<(), Unavailable> {
        // SAFETY: both of the caller's addresses have as many bytes.
        self.check(unsafe { (self.driver.within)(to, from, bytes, self.stream) }, "copying on the card")
    }

    /// Seconds between two events around `work`.
    pub(crate) fn time(&self, work: impl FnOnce()) -> f64 {
        let (mut start, mut end, mut milliseconds) = (ptr::null_mut(), ptr::null_mut(), 0.0);
        // SAFETY: events are created, recorded and destroyed here.
        unsafe {
            (self.driver.event_create)(&raw mut start, 0);
            (self.driver.event_create)(&raw mut end, 0);
            (self.driver.event_record)(start, self.stream);
            work();
            (self.driver.event_record)(end, self.stream);
            (self.driver.synchronise)(self.stream);
            (self.driver.event_elapsed)(&raw mut milliseconds, start, end);
            (self.driver.event_destroy)(start);
            (self.driver.event_destroy)(end);
        }
        f64::from(milliseconds) * 1e-3
    }
}

/// The driver, started and new enough.
fn initialised() -> Result<Driver, Unavailable> {
    let driver = library::driver()?.functions;
    let mut version = 0;
    // SAFETY: the pointer is valid.
    let status = unsafe {
        (driver.version)(&raw mut version);
        (driver.init)(0)
    };
    if status != 0 {
        return Err(Unavailable(format!(
            "the NVIDIA driver does not start: {}; is there a card?",
            meaning(&driver, status)
        )));
    }
    if version < OLDEST {
        return Err(Unavailable(format!(
            "the NVIDIA driver serves CUDA {}.{}; 12.4 or newer is needed: install driver 550 or newer",
            version / 1000,
            version % 1000 / 10
        )));
    }
    Ok(driver)
}

fn device_count(driver: &Driver) -> Result<usize, Unavailable> {
    let mut count = 0;
    // SAFETY: the pointer is valid.
    match unsafe { (driver.device_count)(&raw mut count) } {
        0 => Ok(count as usize),
        status => Err(Unavailable(format!("the NVIDIA driver lists no cards: {}", meaning(driver, status)))),
    }
}

fn device_name(driver: &Driver, device: c_int) -> String {
    let mut name = [0; 128];
    // SAFETY: the driver writes at most as many bytes, zero-terminated.
    unsafe {
        (driver.device_name)(name.as_mut_ptr(), name.len() as c_int, device);
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    }
}

/// Streams that a run is recorded on. They are its own: another thread may be using the card's meanwhile.
pub(crate) struct Streams {
    handles: Vec<Handle>,
    card: Arc<Card>,
}

impl Streams {
    pub(crate) fn new(card: &Arc<Card>) -> Result<Streams, Unavailable> {
        let mut streams = Streams { handles: Vec::new(), card: card.clone() };
        for _ in 0..super::STREAMS {
            let mut stream = ptr::null_mut();
            // SAFETY: the pointer is valid; 1: does not wait for stream 0.
            card.check(unsafe { (card.driver.stream_create)(&raw mut stream, 1) }, "making a stream")?;
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
        for stream in &self.handles {
            // SAFETY: created once, destroyed once.
            unsafe { (self.card.driver.stream_destroy)(*stream) };
        }
    }
}

/// A point on a stream that others can wait for.
pub(crate) struct Event {
    handle: Handle,
    card: Arc<Card>,
}

impl Event {
    pub(crate) fn record(card: &Arc<Card>, stream: Handle) -> Result<Event, Unavailable> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid; 2: no timing.
        unsafe {
            card.check((card.driver.event_create)(&raw mut handle, 2), "making an event")?;
            let event = Event { handle, card: card.clone() };
            card.check((card.driver.event_record)(handle, stream), "recording an event")?;
            Ok(event)
        }
    }

    /// What is put on `stream` from now on waits for this.
    pub(crate) fn hold(&self, stream: Handle) -> Result<(), Unavailable> {
        // SAFETY: both handles live.
        self.card.check(unsafe { (self.card.driver.wait)(stream, self.handle, 0) }, "waiting for an event")
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.card.driver.event_destroy)(self.handle) };
    }
}

/// Memory on a card.
pub(crate) struct Memory {
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    card: Arc<Card>,
}

impl Memory {
    /// This many zeroed floats.
    pub(crate) fn zeros(card: &Arc<Card>, count: usize) -> Result<Memory, Unavailable> {
        let bytes = count * 4;
        let mut address = 0;
        // SAFETY: the pointers are valid; the memory is new.
        unsafe {
            if (card.driver.allocate)(&raw mut address, bytes) != 0 {
                let (mut free, mut total) = (0, 0);
                (card.driver.memory_info)(&raw mut free, &raw mut total);
                let gigabytes = |bytes: usize| bytes as f64 / f64::from(1 << 30);
                return Err(Unavailable(format!(
                    "{} has {:.2} of {:.2} GiB free, the program needs {:.2} GiB more; use a smaller batch, or end the other processes on the card",
                    card.name,
                    gigabytes(free),
                    gigabytes(total),
                    gigabytes(bytes)
                )));
            }
            card.check((card.driver.fill)(address, 0, count, card.stream), "clearing memory")?;
        }
        Ok(Memory { address, bytes, card: card.clone() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.card.make_current();
        // SAFETY: allocated once, freed once.
        unsafe { (self.card.driver.free)(self.address) };
    }
}

/// Compiled kernels, each once however often it is launched.
pub(crate) struct Modules {
    modules: Vec<Handle>,
    functions: HashMap<String, Handle>,
    card: Arc<Card>,
}

/// Name of a kernel: the hash of all that it is.
fn name(kernel: &Kernel) -> String {
    format!("k{}", fingerprint(format!("{:?}{}{}", kernel.family, kernel.before, kernel.text)))
}

/// Kernels per module: modules compile side by side.
const PER_MODULE: usize = 8;

/// A source with the kernels in it and their shared memory.
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

/// Compiles kernels side by side, or takes them from the cache.
pub(crate) fn machine_codes(kernels: &[&Kernel], architecture: u32) -> Result<Vec<(Vec<u8>, Source)>, Unavailable> {
    sources(kernels).into_par_iter().map(|source| Ok((machine_code(&source.0, architecture)?, source))).collect()
}

impl Modules {
    pub(crate) fn compile(card: &Arc<Card>, kernels: &[&Kernel]) -> Result<Modules, Unavailable> {
        let codes = machine_codes(kernels, card.architecture)?;
        let mut modules = Modules { modules: Vec::new(), functions: HashMap::new(), card: card.clone() };
        card.make_current();
        for (code, (_, names)) in &codes {
            let mut module = ptr::null_mut();
            // SAFETY: the code was made for this card; names are those in the source.
            unsafe {
                card.check(
                    (card.driver.module_load)(&raw mut module, code.as_ptr().cast()),
                    "loading kernels (a driver older than the CUDA libraries?)",
                )?;
                modules.modules.push(module);
                for (name, shared) in names {
                    let mut function = ptr::null_mut();
                    let text = CString::new(name.as_str()).expect("names are hexadecimal");
                    card.check((card.driver.function)(&raw mut function, module, text.as_ptr()), "finding a kernel")?;
                    if *shared > 0 {
                        // 8: the most dynamic shared memory a block may ask for; 9: all of it is shared, none cache
                        card.check((card.driver.function_set)(function, 9, 100), "reserving shared memory")?;
                        card.check(
                            (card.driver.function_set)(function, 8, *shared as c_int),
                            "reserving shared memory",
                        )?;
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
        self.card.make_current();
        for module in &self.modules {
            // SAFETY: loaded once, unloaded once.
            unsafe { (self.card.driver.module_unload)(*module) };
        }
    }
}

/// A card as `lamo doctor` shows it.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    /// What NVIDIA calls it.
    pub name: String,
    /// Major and minor compute capability.
    pub capability: [u32; 2],
    /// Bytes of memory.
    pub memory: usize,
}

/// What this machine has for CUDA: each library with its file, or the sentence that says what to install.
#[derive(Clone, Debug)]
pub struct CudaReport {
    /// libcuda, nvrtc and cublasLt.
    pub libraries: Vec<(&'static str, Result<String, Unavailable>)>,
    /// CUDA version the driver serves.
    pub driver: Result<[u32; 2], Unavailable>,
    /// Every card.
    pub devices: Vec<CudaDevice>,
}

/// The name of a card that can be used.
pub(crate) fn card_name(number: usize) -> Option<String> {
    Card::open(number).ok().map(|card| card.name.clone())
}

/// Looks at the machine; starts nothing on the cards.
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
