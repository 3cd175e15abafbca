//! How programs behave when a GPU fails, with a driver whose functions do nothing and return the status that a test sets; and
//! once on a real GPU, where `LAMO_TEST_DEVICE` names one.

use super::gpu::{Gpu, Memory};
use super::library::{Address, Driver, Handle, Products};
use super::modules::Modules;
use super::record::ATTEMPTS;
use super::{Cuda, TRAITS, Work};
use crate::device::{Device, DeviceError, DeviceErrorKind};
use crate::program::Backend;
use crate::{Graph, Options, Precision, Program, Snapshot, compile};
use std::cell::{Cell, OnceCell};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

thread_local! {
    /// What the functions below return.
    static STATUS: Cell<c_int> = const { Cell::new(0) };
    /// What the launch of a run returns. A kernel usually fails later, while it runs.
    static LAUNCH: Cell<c_int> = const { Cell::new(0) };
    /// How often one of them was called.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static RELEASED: Cell<usize> = const { Cell::new(0) };
    /// How many recordings will be broken.
    static BROKEN: Cell<usize> = const { Cell::new(0) };
}

fn called() -> c_int {
    CALLS.set(CALLS.get() + 1);
    STATUS.get()
}

fn calls_during(action: impl FnOnce()) -> usize {
    let before = CALLS.get();
    action();
    CALLS.get() - before
}

unsafe extern "C" fn set_current(_: Handle) -> c_int {
    called()
}

unsafe extern "C" fn synchronise(_: Handle) -> c_int {
    called()
}

unsafe extern "C" fn graph_launch(_: Handle, _: Handle) -> c_int {
    CALLS.set(CALLS.get() + 1);
    LAUNCH.get()
}

unsafe extern "C" fn allocate(address: *mut Address, _: usize) -> c_int {
    // SAFETY: the caller's pointer.
    unsafe { *address = 1 << 20 };
    called()
}

unsafe extern "C" fn free(_: Address) -> c_int {
    called()
}

unsafe extern "C" fn memory_info(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe { (*free, *total) = (1 << 30, 4 << 30) };
    0
}

unsafe extern "C" fn to_host(_: *mut c_void, _: Address, _: usize, _: Handle) -> c_int {
    called()
}

unsafe extern "C" fn to_device(_: Address, _: *const c_void, _: usize, _: Handle) -> c_int {
    called()
}

unsafe extern "C" fn stream_destroy(_: Handle) -> c_int {
    called()
}

unsafe extern "C" fn executable_destroy(_: Handle) -> c_int {
    called()
}

unsafe extern "C" fn fill(_: Address, _: c_uint, _: usize, _: Handle) -> c_int {
    called()
}

unsafe extern "C" fn release(_: c_int) -> c_int {
    RELEASED.set(RELEASED.get() + 1);
    STATUS.get()
}

unsafe extern "C" fn error_text(_: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's pointer.
    unsafe { *text = c"the driver's words".as_ptr() };
    0
}

unsafe extern "C" fn create(handle: *mut Handle, _: c_uint) -> c_int {
    // SAFETY: the caller's pointer.
    unsafe { *handle = ptr::null_mut() };
    called()
}

unsafe extern "C" fn two(_: Handle, _: Handle) -> c_int {
    called()
}

unsafe extern "C" fn one(_: Handle) -> c_int {
    called()
}

unsafe extern "C" fn wait(_: Handle, _: Handle, _: c_uint) -> c_int {
    called()
}

unsafe extern "C" fn begin_capture(_: Handle, _: c_int) -> c_int {
    called()
}

unsafe extern "C" fn end_capture(_: Handle, _: *mut Handle) -> c_int {
    let left = BROKEN.get();
    BROKEN.set(left.saturating_sub(1));
    if left > 0 { 901 } else { called() }
}

unsafe extern "C" fn graph_instantiate(_: *mut Handle, _: Handle, _: u64) -> c_int {
    called()
}

fn gpu() -> Arc<Gpu> {
    STATUS.set(0);
    LAUNCH.set(0);
    let driver = Driver {
        set_current,
        synchronise,
        graph_launch,
        allocate,
        free,
        memory_info,
        to_host,
        to_device,
        stream_destroy,
        executable_destroy,
        fill,
        release,
        error_text,
        stream_create: create,
        event_create: create,
        event_record: two,
        event_destroy: one,
        wait,
        begin_capture,
        end_capture,
        graph_instantiate,
        graph_destroy: one,
        ..Driver::stub()
    };
    Arc::new(Gpu {
        driver,
        products: Products::stub(),
        stream: ptr::null_mut(),
        multiplier: ptr::null_mut(),
        number: 0,
        name: "a GPU".into(),
        architecture: 90,
        shared: 227 * 1024,
        context: ptr::null_mut(),
        broken: Arc::default(),
    })
}

/// y = 2 x + b and a state that counts, on a GPU whose kernels do nothing.
fn program(gpu: &Arc<Gpu>) -> Program {
    let graph = Graph::new();
    graph.output("y", graph.input("x", [3]) * 2.0 + graph.parameter("b", [3]));
    let count = graph.state("count", [1]);
    graph.assign(count, count + 1.0);
    let plan = compile::compile(&graph, Options::default(), TRAITS).unwrap();
    let zeros = |count: usize| Memory::zeros(gpu, count).unwrap();
    let cuda = Cuda {
        pieces: Vec::new(),
        arena: zeros(plan.arena),
        counters: zeros(1),
        _modules: Modules::compile(gpu, &[]).unwrap(),
        graph: Some(ptr::null_mut()),
        mirrors: plan.buffers.iter().map(|_| OnceCell::new()).collect(),
        _tables: zeros(1),
        gpu: gpu.clone(),
        plan,
    };
    Program::new(&graph, Backend::Cuda(cuda))
}

#[test]
fn a_failed_kernel_shows_at_the_next_call_that_waits_and_from_then_on_at_every_call_at_once() {
    let gpu = gpu();
    let (mut first, mut second) = (program(&gpu), program(&gpu));
    let mut snapshot = Snapshot::new(&first, &["count"]).unwrap();
    assert_eq!(first.try_run(), Ok(()));
    assert_eq!(first.try_read("y"), Ok(&[0.0; 3][..]));
    STATUS.set(700);
    let error = first.try_synchronise().unwrap_err();
    assert_eq!(error.kind(), DeviceErrorKind::IllegalAccess);
    STATUS.set(999); // an error of another kind does not replace the first
    let calls = calls_during(|| {
        assert_eq!(first.try_read("y"), Err(error.clone()));
        assert_eq!(first.try_write("x", &[0.0; 3]), Err(error.clone()));
        assert_eq!(first.run_checked(), Err(error.clone()));
        assert_eq!(first.try_read_parameter("b"), Err(error.clone()));
        assert_eq!(first.try_write_parameter("b", &[0.0; 3]), Err(error.clone()));
        assert_eq!(first.try_profile(), Err(error.clone()));
        assert_eq!(second.try_run(), Err(error.clone()));
        assert_eq!(second.try_synchronise(), Err(error.clone()));
        assert_eq!(snapshot.capture(&first), Err(error.clone()));
        assert_eq!(snapshot.restore(&mut second), Err(error.clone()));
        assert_eq!(snapshot.read("count"), Err(error.clone()));
        assert!(Snapshot::new(&second, &["count"]).is_err());
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| second.run())).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>(), Some(&error.to_string()));
    });
    assert_eq!(calls, 0, "the driver was called on a broken context");
}

#[test]
fn the_sentence_of_an_error_says_what_failed_where_and_what_to_do() {
    let gpu = gpu();
    let expected = [
        (700, DeviceErrorKind::IllegalAccess, "report it"),
        (2, DeviceErrorKind::OutOfMemory, "use a smaller batch"),
        (214, DeviceErrorKind::Lost, "reset the GPU"),
        (222, DeviceErrorKind::Unavailable, "install NVIDIA driver"),
        (400, DeviceErrorKind::Failed, "report this message"),
    ];
    for (status, kind, advice) in expected {
        let error = self::gpu().check(status, "running the program").unwrap_err();
        let sentence = error.to_string();
        assert_eq!(error.kind(), kind);
        let start = format!("running the program failed on a GPU: the driver's words (CUDA error {status}); ");
        assert!(sentence.starts_with(&start) && sentence.contains(advice), "{sentence}");
    }
    assert_eq!(gpu.usable(), Ok(()));
}

/// Lost devices, full memory, illegal accesses and hung kernels.
const FAULTS: [(c_int, DeviceErrorKind, &str); 6] = [
    (2, DeviceErrorKind::OutOfMemory, "use a smaller batch"),
    (46, DeviceErrorKind::Lost, "reset the GPU"),
    (214, DeviceErrorKind::Lost, "reset the GPU"),
    (700, DeviceErrorKind::IllegalAccess, "report it"),
    (702, DeviceErrorKind::Failed, "report this message"),
    (719, DeviceErrorKind::IllegalAccess, "report it"),
];

#[test]
fn a_fault_at_a_launch_or_at_a_wait_is_an_error_with_advice_and_stays_if_it_broke_the_context() {
    for (status, kind, advice) in FAULTS {
        for at_launch in [true, false] {
            let gpu = gpu();
            let mut program = program(&gpu);
            let found = if at_launch {
                LAUNCH.set(status);
                program.try_run()
            } else {
                program.try_run().unwrap();
                STATUS.set(status);
                program.try_synchronise()
            };
            let error = found.expect_err("the GPU failed");
            assert_eq!(error.kind(), kind, "status {status}");
            assert!(error.to_string().contains(advice), "{error}");
            STATUS.set(0);
            LAUNCH.set(0);
            let later = program.try_run().and_then(|()| program.try_synchronise());
            // Memory can become free again; the other faults break the context.
            assert_eq!(
                later,
                if kind == DeviceErrorKind::OutOfMemory { Ok(()) } else { Err(error) },
                "status {status}"
            );
        }
    }
}

#[test]
fn a_fault_while_a_program_is_written_read_copied_or_timed_is_an_error_with_advice() {
    for (status, kind, advice) in FAULTS {
        type Action = fn(&mut Program, &mut Snapshot) -> Result<(), DeviceError>;
        let actions: [Action; 7] = [
            |program, _| program.try_write("x", &[0.0; 3]),
            |program, _| program.try_write_parameter("b", &[0.0; 3]),
            |program, _| program.try_read("y").map(|_| ()),
            |program, _| program.try_read_parameter("b").map(|_| ()),
            |program, _| program.try_profile().map(|_| ()),
            |program, snapshot| snapshot.capture(program),
            |program, _| Snapshot::new(program, &["count"]).map(|_| ()),
        ];
        for (number, action) in actions.into_iter().enumerate() {
            let gpu = gpu();
            let mut program = program(&gpu);
            let mut snapshot = Snapshot::new(&program, &["count"]).unwrap();
            STATUS.set(status);
            let error = action(&mut program, &mut snapshot).expect_err("the GPU failed");
            assert_eq!(error.kind(), kind, "status {status}, action {number}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
    let gpu = gpu();
    STATUS.set(719);
    let error = gpu.time(|| Ok(())).unwrap_err();
    assert_eq!(error.kind(), DeviceErrorKind::IllegalAccess, "{error}");
}

#[test]
fn a_program_that_does_not_fit_the_gpu_is_refused_before_its_kernels_are_compiled() {
    let gpu = gpu();
    assert_eq!(gpu.has(1 << 28), Ok(()));
    for count in [(1 << 28) + 1, 3 << 28, usize::MAX] {
        assert_eq!(gpu.has(count).unwrap_err().kind(), DeviceErrorKind::OutOfMemory);
    }
    let sentence = gpu.has(3 << 28).unwrap_err().to_string();
    assert!(sentence.contains("1.00 of 4.00 GiB free, the program needs 3.00 GiB more"), "{sentence}");
    assert_eq!(Memory::zeros(&gpu, usize::MAX / 2).err().unwrap().kind(), DeviceErrorKind::OutOfMemory);
}

#[test]
fn a_gpu_whose_memory_is_full_can_still_be_used() {
    let gpu = gpu();
    let mut program = program(&gpu);
    STATUS.set(2);
    let error = Memory::zeros(&gpu, 3 << 28).err().unwrap();
    assert_eq!(error.kind(), DeviceErrorKind::OutOfMemory);
    let sentence = error.to_string();
    assert!(sentence.contains("1.00 of 4.00 GiB free, the program needs 3.00 GiB more"), "{sentence}");
    STATUS.set(0);
    assert_eq!(program.try_run().and_then(|()| program.try_synchronise()), Ok(()));
}

#[test]
fn dropping_what_belongs_to_a_broken_context_frees_nothing_and_returns() {
    for (status, released) in [(719, 1), (46, 0)] {
        let gpu = gpu();
        let program = program(&gpu);
        let snapshot = Snapshot::new(&program, &["count"]).unwrap();
        RELEASED.set(0);
        STATUS.set(status);
        assert!(program.try_synchronise().is_err());
        assert_eq!(calls_during(|| drop((program, snapshot, gpu))), 0, "status {status}");
        assert_eq!(RELEASED.get(), released, "status {status}"); // a lost GPU is not asked for anything
    }
}

#[test]
fn a_recording_that_another_thread_breaks_is_made_again_but_not_for_ever() {
    let gpu = gpu();
    let program = program(&gpu);
    let Backend::Cuda(cuda) = &program.backend else { unreachable!("made for CUDA") };
    for broken in [0, 1, ATTEMPTS - 1] {
        BROKEN.set(broken);
        assert!(cuda.capture().is_ok(), "after {broken} broken recordings");
    }
    BROKEN.set(ATTEMPTS);
    let error = cuda.capture().unwrap_err().to_string();
    assert!(error.starts_with("recording the program failed"), "{error}");
    assert_eq!((BROKEN.get(), gpu.usable()), (0, Ok(())));
}

#[test]
fn a_program_that_is_dropped_while_its_last_run_fails_frees_nothing_either() {
    let gpu = gpu();
    let mut program = program(&gpu);
    program.try_run().unwrap();
    STATUS.set(700);
    drop(program);
    assert_eq!(gpu.usable().unwrap_err().kind(), DeviceErrorKind::IllegalAccess);
}

/// An illegal access breaks the context of the whole process, so the test runs in a process of its own.
#[test]
#[allow(clippy::print_stdout)] // shown with --nocapture
fn an_illegal_access_on_a_real_gpu_is_an_error_and_not_a_panic() {
    const CHILD: &str = "LAMO_TEST_BREAKS_THE_GPU";
    let Ok(device) = std::env::var("LAMO_TEST_DEVICE") else { return };
    let Ok(Device::Cuda(number)) = device.parse() else { return };
    if std::env::var_os(CHILD).is_none() {
        let name = "cuda::tests::an_illegal_access_on_a_real_gpu_is_an_error_and_not_a_panic";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{told}");
        println!("{told}");
        return;
    }
    let graph = Graph::new();
    graph.output("y", graph.input("x", [3]) * 2.0);
    let compiled = || Program::compile_on(&graph, Device::Cuda(number), Precision::F32);
    let (mut program, other) = (compiled().unwrap(), compiled().unwrap());
    let Backend::Cuda(cuda) = &mut program.backend else { unreachable!("compiled for CUDA") };
    for work in cuda.pieces.iter_mut().flat_map(|piece| &mut piece.work) {
        if let Work::Kernel { arguments, .. } = work {
            arguments.fill(16); // an address that no allocation has
        }
    }
    let error = program.run_checked().unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), DeviceErrorKind::IllegalAccess);
    assert_eq!(program.try_run(), Err(error.clone()));
    assert_eq!(other.try_read("y"), Err(error.clone()));
    assert_eq!(compiled().err(), Some(error));
    drop((program, other));
    // The last program released the context; a new one works or says why not.
    match compiled() {
        Ok(mut program) => {
            program.write("x", &[1.0, 2.0, 3.0]);
            program.run();
            assert_eq!(program.read("y"), [2.0, 4.0, 6.0]);
            println!("the GPU works again");
        }
        Err(error) => println!("the GPU stays broken: {error}"),
    }
}
