//! Tests of what a real driver cannot show on demand: a missing driver or device, every error code,
//! an old driver, and that each handle is released once.
//!
//! A process binds the driver once, so every case runs in a process of its own: this binary starts
//! itself with the case's name. The driver that they bind is compiled from `fake/driver.rs`, and
//! aborts if it is misused.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu::{Buffer, Device, Error, Graph, Kernel, Launch, Pinned, Scratch, Stages, Stream, args};
use libtest_mimic::{Arguments, Failed, Trial};

mod races;

const CASE: &str = "GPU_TEST_CASE";
const LIBRARY: &str = "GPU_TEST_LIBRARY";

/// The name, the driver (`new` and `old` are compiled, others are file names), the codes that it
/// must return, and the function that runs in the process.
type Case = (&'static str, &'static str, &'static str, fn());
const CASES: [Case; 24] = [
    ("no_driver", "/nowhere/libcuda.so.1", "", no_driver),
    ("stub_library", "new", "cuInit=34", || {
        assert!(
            matches!(Device::first(), Err(Error::NoDriver { reason, .. }) if reason.contains("stub"))
        )
    }),
    ("init_finds_no_device", "new", "cuInit=100", no_device),
    ("init_fails", "new", "cuInit=803", || {
        assert_eq!(Device::first().unwrap_err().code(), Some(803))
    }),
    (
        "an_unknown_code",
        "new",
        "cuStreamCreate=4242",
        an_unknown_code,
    ),
    ("a_negative_code", "new", "cuStreamCreate=-7", || {
        assert_eq!(
            Stream::new(&Device::first().unwrap()).unwrap_err().code(),
            Some(-7)
        )
    }),
    (
        "a_dead_context",
        "new",
        "cuStreamSynchronize=700",
        a_dead_context,
    ),
    ("out_of_memory", "new", "", out_of_memory),
    ("scratch_of_two_streams", "new", "", scratch_of_two_streams),
    ("an_urgent_stream", "new", "", an_urgent_stream),
    (
        "no_urgent_stream",
        "new",
        "cuStreamCreateWithPriority=2",
        no_urgent_stream,
    ),
    ("images", "new", "", images),
    ("everything_is_released", "new", "", everything_is_released),
    ("images_are_shared", "new", "", images_are_shared),
    (
        "everything_is_released_old",
        "old",
        "",
        everything_is_released,
    ),
    (
        "errors_in_drop_are_ignored",
        "new",
        "cuMemFreeAsync=700,cuEventDestroy_v2=700,cuModuleUnload=700,cuMemPoolDestroy=1",
        drops,
    ),
    (
        "captures_release_everything",
        "new",
        "",
        captures_release_everything,
    ),
    ("an_invalidated_capture", "new", "capture=901", || {
        assert_eq!(capture_nothing().unwrap_err().code(), Some(901));
        nothing_left();
    }),
    ("old_driver", "old", "", old_driver),
    (
        "captures_are_of_one_thread",
        "new",
        "",
        races::captures_are_of_one_thread,
    ),
    (
        "graphs_keep_their_resources",
        "new",
        "",
        races::graphs_keep_their_resources,
    ),
    (
        "buffers_wait_for_other_streams",
        "new",
        "",
        races::buffers_wait_for_other_streams,
    ),
    (
        "measured_regions_are_refused",
        "new",
        "",
        races::measured_regions_are_refused,
    ),
    (
        "streams_dropped_in_captures",
        "new",
        "",
        races::streams_dropped_in_captures,
    ),
];
/// The prefix of a race's name in front of the function's.
const RACE: &str = "a_capture_begins_before_";
const JOIN: &str = "a_capture_is_joined_before_";

pub fn main() {
    if let Some(name) = std::env::var_os(CASE) {
        let name = name.to_str().unwrap();
        gpu::set_driver_library(std::env::var_os(LIBRARY).unwrap()).unwrap();
        for (prefix, joined) in [(RACE, false), (JOIN, true)] {
            if let Some(function) = name.strip_prefix(prefix) {
                return races::race(function, joined);
            }
        }
        let case = CASES.into_iter().find(|case| case.0 == name).unwrap();
        return case.3();
    }
    let arguments = Arguments::from_args();
    let folder = tempfile::tempdir().unwrap();
    let [new, old] = ["new", "old"].map(|name| {
        if arguments.list {
            PathBuf::new()
        } else {
            compile_fake(folder.path(), name)
        }
    });
    let races = [RACE, JOIN].into_iter().flat_map(|prefix| {
        let new = new.clone();
        races::RACES.map(|(function, _)| {
            let (name, new) = (format!("{prefix}{function}"), new.clone());
            Trial::test(name.clone(), move || run_alone(&name, &new, ""))
        })
    });
    let trials = CASES.into_iter().map(|(name, library, codes, _)| {
        let library = match library {
            "new" => new.clone(),
            "old" => old.clone(),
            path => path.into(),
        };
        Trial::test(name, move || run_alone(name, &library, codes))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.chain(races).collect());
    drop(folder);
    conclusion.exit();
}

fn run_alone(name: &str, library: &Path, codes: &str) -> Result<(), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command
        .env(CASE, name)
        .env(LIBRARY, library)
        .env("FAKE_CODES", codes)
        .output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
    }
}

fn compile_fake(folder: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/driver.rs");
    let library = folder.join(format!("lib{name}.so"));
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.args([
        "--edition",
        "2024",
        "--crate-type",
        "cdylib",
        "--crate-name",
        name,
        "--cfg",
        name,
        "-A",
        "warnings",
        "-o",
    ]);
    assert!(
        command
            .arg(&library)
            .arg(source)
            .status()
            .unwrap()
            .success(),
        "the fake driver does not compile"
    );
    library
}

/// Fails unless every handle and piece of memory was released.
fn nothing_left() {
    assert_eq!(live(), 0);
}

/// Returns how many handles and pieces of memory are not released.
fn live() -> c_int {
    // SAFETY: the fake driver's function of that type.
    unsafe { races::symbol::<extern "C" fn() -> c_int>(c"fake_live")() }
}

fn images_are_shared() {
    let device = Device::first().unwrap();
    let load = |name: &str, image: &[u8]| device.load(name, image).unwrap();
    let before = live();
    let first = load("image", b"text");
    let second = load("image", b"text");
    assert_eq!(live(), before + 1);
    let others = [load("other", b"text"), load("image", b"longer text")];
    assert_eq!(live(), before + 3);
    drop((first, others));
    assert_eq!(live(), before + 1, "the second handle keeps the module");
    let kernel = second.kernel("kernel").unwrap();
    drop(second);
    assert_eq!(live(), before + 1, "and so does a kernel");
    drop(kernel);
    assert_eq!(live(), before);
    assert_eq!(load("image", b"text").name(), "image", "loaded anew");
}

fn stream() -> Stream {
    Stream::new(&Device::first().unwrap()).unwrap()
}

fn kernel(device: &Device) -> Kernel {
    device
        .load("image", b"text")
        .unwrap()
        .kernel("kernel")
        .unwrap()
}

fn launch(stream: &Stream, kernel: &Kernel) -> gpu::Result<()> {
    // SAFETY: the fake driver runs nothing.
    unsafe { stream.launch(kernel, &Launch::linear(1, 32), &args![1u32]) }
}

fn no_driver() {
    for error in [
        Device::first().unwrap_err(),
        Device::count().unwrap_err(),
        gpu::driver_version().unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::NoDriver { looked_for, .. } if looked_for == "/nowhere/libcuda.so.1"),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .starts_with("no CUDA driver: looked for /nowhere/libcuda.so.1 (cannot open"),
            "{error}"
        );
    }
}

fn no_device() {
    assert_eq!(Device::count().unwrap(), 0);
    assert_eq!(
        [Device::first().unwrap_err(), Device::open(3).unwrap_err()],
        [Error::NoDevice, Error::NoDevice]
    );
}

fn an_unknown_code() {
    let error = Stream::new(&Device::first().unwrap()).unwrap_err();
    assert_eq!(error.code(), Some(4242));
    assert_eq!(
        error.to_string(),
        "cuStreamCreate failed: a code that this driver has no name for (4242)"
    );
    nothing_left();
}

/// The fake driver checks the priority.
fn an_urgent_stream() {
    let urgent = Stream::urgent(&Device::first().unwrap()).unwrap();
    let memory = urgent.from_slice(&[7_u8]).unwrap();
    assert_eq!(urgent.to_vec(memory.slice()).unwrap(), [7]);
    drop((memory, urgent));
    nothing_left();
}

fn no_urgent_stream() {
    let error = Stream::urgent(&Device::first().unwrap()).unwrap_err();
    assert_eq!(error.code(), Some(2));
    nothing_left();
}

fn a_dead_context() {
    let error = stream().from_slice(&[1u8]).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): a kernel did"
        ),
        "{error}"
    );
    nothing_left();
}

fn out_of_memory() {
    let stream = stream();
    let error = stream.alloc::<u64>(1 << 20).unwrap_err();
    assert_eq!(
        error,
        Error::OutOfMemory {
            requested: 8 << 20,
            free: 4096,
            total: 1 << 20
        }
    );
    // Memory whose free waits for its stream is collected; the allocation succeeds.
    for _ in 0..3 {
        stream.alloc::<u8>(1 << 20).unwrap();
    }
    assert_eq!(
        Pinned::<u8>::new(stream.device(), 2 << 20).unwrap_err(),
        Error::OutOfHostMemory { requested: 2 << 20 }
    );
    let mut scratch = Scratch::new();
    scratch.reserve(&stream, 700 << 10).unwrap();
    // Growth by half does not fit, the requested size does. After a failure the scratch memory is
    // empty.
    assert_eq!(
        scratch.reserve(&stream, 800 << 10).unwrap().len(),
        800 << 10
    );
    assert_eq!(scratch.capacity(), 800 << 10);
    scratch.reserve(&stream, 2 << 20).unwrap_err();
    assert_eq!(scratch.capacity(), 0);
    scratch.reserve(&stream, 1 << 20).unwrap();
    drop((stream, scratch));
    nothing_left();
}

fn scratch_of_two_streams() {
    let stream = stream();
    let other = Stream::new(stream.device()).unwrap();
    let mut scratch = Scratch::new();
    for _ in 0..4 {
        scratch.reserve(&stream, 1000).unwrap();
        scratch.reserve(&other, 10).unwrap();
    }
    assert_eq!(scratch.capacity(), 1000, "it grows only if it is too small");
    drop((stream, other, scratch));
    nothing_left();
}

fn images() {
    let device = Device::first().unwrap();
    let fail = |image: &str| device.load("image", image.as_bytes()).unwrap_err();
    let log_of = |error: &Error| match error {
        Error::ImageTooNew {
            driver: (12, 4),
            device: (9, 0),
            log,
            ..
        } => (true, log.clone()),
        Error::BadImage { log, .. } => (false, log.clone()),
        _ => panic!("{error}"),
    };
    for (image, too_new) in [
        (
            "fail 222 ptxas fatal: Unsupported .version 9.9; current version is '8.4'",
            true,
        ),
        ("fail 209 nothing for this device", true),
        ("fail 218 ptxas fatal: Unsupported .version 9.9", true),
        (
            "fail 218 ptxas error: Feature 'x' not supported on .target 'sm_75'",
            true,
        ),
        ("fail 218 line 7; error: Parsing error near 'x'", false),
        ("fail 200 damaged", false),
    ] {
        let error = fail(image);
        let log = image[9..].to_owned();
        assert_eq!(log_of(&error), (too_new, log.clone()));
        assert!(
            error
                .to_string()
                .ends_with(&format!("({}): {log}", &image[5..8])),
            "{error}"
        );
    }
    let long = fail(&format!("fail 218 {}", "x".repeat(10_000)));
    assert_eq!(
        log_of(&long).1.len(),
        4095,
        "the log is cut where its buffer ends"
    );
    assert_eq!(fail("fail 719 gone").code(), Some(719));
}

fn everything_is_released() {
    let stream = stream();
    let device = stream.device().clone();
    let kernel = kernel(&device);
    launch(&stream, &kernel).unwrap();
    let buffer = stream.from_slice(&[1u32, 2, 3]).unwrap();
    let other = stream.alloc_zeroed::<u64>(100).unwrap();
    let third: Buffer<u8> = stream.alloc(1).unwrap();
    let pinned = Pinned::<u32>::new(&device, 3).unwrap();
    assert_eq!(pinned[..], [0; 3], "pinned memory starts as zeros");
    let event = stream.record().unwrap();
    let mut stages = Stages::new();
    stages.mark(&stream, "stage").unwrap();
    assert_eq!(stages.finish(&stream).unwrap(), [("stage", 0.5)]);
    assert_eq!(
        (event.is_done().unwrap(), Device::first().unwrap() == device),
        (false, true)
    );
    drop((stream, device));
    std::thread::spawn(move || drop((kernel, buffer)))
        .join()
        .unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _owned = (other, pinned);
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    drop((event, stages));
    drop(third);
    nothing_left();
    // Everything works again from a fresh start.
    drop(self::stream());
    nothing_left();
}

fn drops() {
    let stream = stream();
    let kernel = kernel(stream.device());
    drop((
        stream.alloc::<u8>(1).unwrap(),
        stream.record().unwrap(),
        kernel,
    ));
    launch(&stream, &self::kernel(stream.device())).unwrap();
}

fn capture_nothing() -> gpu::Result<Graph> {
    stream().capture(|_| Ok(()))
}

fn captures_release_everything() {
    let stream = stream();
    let device = stream.device().clone();
    let mut buffer = Some(stream.alloc_zeroed::<u32>(10).unwrap());
    let mut scratch = Scratch::new();
    scratch.reserve(&stream, 100).unwrap();
    let graph = stream
        .capture(|stream| {
            let mut owned = buffer.take().unwrap();
            stream.fill_u32(owned.slice_mut(), 1)?;
            // The fake driver aborts on any call that would invalidate the capture.
            assert!(matches!(
                stream.alloc::<u8>(1),
                Err(Error::Capturing { .. })
            ));
            assert!(matches!(stream.synchronize(), Err(Error::Capturing { .. })));
            assert_eq!(
                scratch.reserve(stream, 200).unwrap_err(),
                Error::Capturing {
                    call: "growing a buffer"
                }
            );
            assert_eq!(
                scratch.reserve(stream, 100)?.len(),
                100,
                "the memory is kept"
            );
            launch(stream, &kernel(&device))?;
            std::thread::scope(|scope| scope.spawn(move || drop(owned)).join()).unwrap();
            Ok(())
        })
        .unwrap();
    graph.launch(&stream).unwrap();
    let failed = stream.capture(|stream| {
        launch(stream, &kernel(&device))?;
        drop(stream.record()?);
        Err(Error::NoDevice)
    });
    assert_eq!(failed.unwrap_err(), Error::NoDevice);
    let mut buffer = Some(stream.alloc_zeroed::<u32>(10).unwrap());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stream.capture(|_| {
            drop(buffer.take());
            std::panic::resume_unwind(Box::new(()))
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(
        stream
            .to_vec(stream.from_slice(&[1, 2]).unwrap().slice())
            .unwrap(),
        [1, 2]
    );
    drop((stream, device, scratch));
    drop(graph);
    nothing_left();
}

fn old_driver() {
    let stream = stream();
    let info = stream.device().info();
    assert!(!info.memory_pools);
    let error = capture_nothing().unwrap_err();
    assert_eq!(
        error,
        Error::MissingFunction {
            call: "cuGraphInstantiateWithFlags",
            driver: (12, 4)
        }
    );
    assert_eq!(stream.device().memory().unwrap(), (4096, 1 << 20));
    stream.device().trim().unwrap();
    assert!(matches!(
        stream.alloc::<u8>(2 << 20),
        Err(Error::OutOfMemory { .. })
    ));
    drop(stream);
    nothing_left();
}
