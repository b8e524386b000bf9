//! Tests of streams that threads share, of buffers that streams share, and of the resources of
//! graphs. The fake driver aborts if borrowed memory or another thread's work becomes part of a
//! graph, and if memory is used before its allocation or freed before its last use.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gpu::{Buffer, Error, Graph, Kernel, Launch, Layout, Pinned, Slice, SliceMut, Stream, args};

use super::{kernel, nothing_left, stream};

/// A call that a thread makes while another begins a capture.
pub struct Shared {
    stream: Stream,
    buffer: Mutex<Buffer<u32>>,
    kernel: Kernel,
    graph: Graph,
}

/// A use of the first buffer, or of both, by a stream.
type Use = fn(&Stream, &Kernel, &mut Buffer<u32>, &mut Buffer<u32>) -> gpu::Result<()>;
type Call = fn(&Shared, &mut Buffer<u32>) -> gpu::Result<()>;

/// The driver's function before which the other thread may run, and the call that reaches it.
pub const RACES: [(&str, Call); 14] = [
    ("cuMemcpyDtoHAsync_v2", |on, buffer| {
        on.stream.download(buffer.slice(), &mut [0; 4])
    }),
    ("cuMemcpyHtoDAsync_v2", |on, buffer| {
        on.stream.upload(buffer.slice_mut(), &[7; 4])
    }),
    // Between the copy and the wait for it.
    ("cuStreamSynchronize", |on, buffer| {
        on.stream.to_vec(buffer.slice()).map(drop)
    }),
    ("cuStreamQuery", |on, _| on.stream.is_idle().map(drop)),
    ("cuMemsetD32Async", |on, buffer| {
        on.stream.fill_u32(buffer.slice_mut(), 7)
    }),
    ("cuMemsetD8Async", |on, buffer| {
        on.stream.fill_bytes(buffer.slice_mut(), 7)
    }),
    ("cuMemcpyDtoDAsync_v2", |on, buffer| {
        let mut parts = buffer.slice_mut().split_at(2)?;
        on.stream.copy(parts.0.reborrow(), parts.1.as_slice())
    }),
    ("cuLaunchKernel", |on, buffer| {
        touch(&on.stream, &on.kernel, buffer)
    }),
    ("cuEventRecord", |on, _| on.stream.record().map(drop)),
    ("cuStreamWaitEvent", |on, _| {
        on.stream.wait(&Stream::new(on.stream.device())?.record()?)
    }),
    ("cuMemAllocFromPoolAsync", |on, _| {
        on.stream.alloc::<u8>(1).map(drop)
    }),
    ("cuMemFreeAsync", |on, _| on.stream.alloc::<u8>(1).map(drop)),
    ("cuGraphLaunch", |on, _| on.graph.launch(&on.stream)),
    ("cuStreamBeginCapture_v2", |on, _| {
        on.stream.capture(|_| Ok(())).map(drop)
    }),
];

static SHARED: Mutex<Option<std::sync::Arc<Shared>>> = Mutex::new(None);
static CAPTURING: AtomicBool = AtomicBool::new(false);
static CALLED: AtomicBool = AtomicBool::new(false);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the flag for a short time. In a correct library it is not set before this ends.
fn wait_for(flag: &AtomicBool, long: Duration) {
    let start = Instant::now();
    while !flag.load(Ordering::SeqCst) && start.elapsed() < long {
        thread::yield_now();
    }
}

/// Captures the stream until the call is over, as soon as no other capture is in the way.
fn capture(on: &Shared) {
    while again(on.stream.capture(|_| {
        until_called();
        Ok(())
    })) {}
}

/// Captures another stream, whose capture the stream joins and leaves.
fn join_capture(on: &Shared) {
    let own = Stream::new(on.stream.device()).unwrap();
    while again(own.capture(|own| {
        on.stream.wait(&own.record()?)?;
        until_called();
        own.wait(&on.stream.record()?)
    })) {}
}

fn again(captured: gpu::Result<Graph>) -> bool {
    let again = matches!(captured, Err(Error::Capturing { .. }));
    assert!(again || captured.is_ok(), "{captured:?}");
    again
}

fn until_called() {
    CAPTURING.store(true, Ordering::SeqCst);
    wait_for(&CALLED, Duration::from_secs(20));
}

extern "C" fn start_capture() {
    start(capture);
}

extern "C" fn start_joined_capture() {
    start(join_capture);
}

fn start(capture: fn(&Shared)) {
    let shared = lock(&SHARED).clone().unwrap();
    thread::spawn(move || capture(&shared));
    wait_for(&CAPTURING, Duration::from_millis(100));
}

/// Makes the call, while another thread begins a capture of its stream.
pub fn race(function: &str, joined: bool) {
    let stream = stream();
    let kernel = kernel(stream.device());
    let shared = std::sync::Arc::new(Shared {
        buffer: Mutex::new(stream.from_slice(&[1, 2, 3, 4]).unwrap()),
        graph: stream.capture(|_| Ok(())).unwrap(),
        kernel,
        stream,
    });
    *lock(&SHARED) = Some(shared.clone());
    let hook = if joined {
        start_joined_capture
    } else {
        start_capture
    };
    let name = CString::new(function).unwrap();
    // SAFETY: the fake driver's function of that type.
    unsafe {
        let set = symbol::<extern "C" fn(*const c_char, extern "C" fn())>(c"fake_hook");
        set(name.as_ptr(), hook);
    }
    let call = RACES.iter().find(|race| race.0 == function).unwrap().1;
    let outcome = call(&shared, &mut lock(&shared.buffer));
    CALLED.store(true, Ordering::SeqCst);
    // The call is done as if there were no capture, or refused because of the capture, which
    // continues in both cases.
    assert!(
        matches!(outcome, Ok(()) | Err(Error::Capturing { .. })),
        "{outcome:?}"
    );
    wait_for(&CAPTURING, Duration::from_secs(20));
    assert!(CAPTURING.load(Ordering::SeqCst), "no other thread captured");
    drop((shared, lock(&SHARED).take()));
    let start = Instant::now();
    while super::live() != 0 && start.elapsed() < Duration::from_secs(20) {
        thread::yield_now();
    }
    nothing_left();
}

/// Uses the first bytes of the buffer in a kernel.
fn touch(stream: &Stream, kernel: &Kernel, buffer: &mut Buffer<u32>) -> gpu::Result<()> {
    let launch = Launch::linear(1, 1).dynamic_shared(buffer.slice().bytes() as u32);
    // SAFETY: the fake driver runs nothing.
    unsafe { stream.launch(kernel, &launch, &args![buffer.slice_mut()]) }
}

fn refused<T>(result: gpu::Result<T>) {
    let error = result.err().unwrap();
    assert!(matches!(error, Error::Capturing { .. }), "{error}");
}

/// Only the capturing thread may use the stream. Work of other threads is refused, because it would
/// not run and is not meant for the graph.
pub fn captures_are_of_one_thread() {
    let (stream, other) = (stream(), stream());
    let mut buffer = stream.alloc_zeroed::<u32>(4).unwrap();
    let mut second = stream.alloc_zeroed::<u32>(4).unwrap();
    let dropped = stream.alloc_zeroed::<u32>(4).unwrap();
    let mut pinned = Pinned::<u32>::new(stream.device(), 4).unwrap();
    let kernel = kernel(stream.device());
    let before = stream.record().unwrap();
    let idle = stream.capture(|_| Ok(())).unwrap();
    let graph = stream.capture(|stream| {
        let within = stream.record()?;
        other.wait(&within)?;
        thread::scope(|scope| {
            let elsewhere = scope.spawn(|| {
                for stream in [stream, &other] {
                    refused(stream.fill_u32(second.slice_mut(), 1));
                    refused(stream.fill_bytes(second.slice_mut(), 1));
                    refused(touch(stream, &kernel, &mut second));
                    refused(stream.record());
                    refused(stream.record_into(&before));
                    refused(stream.wait(&before));
                    refused(stream.upload(second.slice_mut(), &[1; 4]));
                    refused(stream.to_vec(second.slice()));
                    refused(stream.alloc::<u8>(1));
                    refused(stream.synchronize());
                    refused(stream.capture(|_| Ok(())));
                    refused(idle.launch(stream));
                    refused(idle.upload(stream));
                    // SAFETY: the stream has no work that could use either side.
                    refused(unsafe { stream.upload_pinned(second.slice_mut(), &pinned) });
                    // SAFETY: the stream has no work that could use either side.
                    refused(unsafe { stream.download_pinned(second.slice(), &mut pinned) });
                }
                drop(dropped);
                // The thread's own stream does not join the capture either, and still works.
                let own = Stream::new(stream.device()).unwrap();
                refused(own.wait(&within));
                assert_eq!(
                    own.to_vec(own.from_slice(&[5]).unwrap().slice()),
                    Ok(vec![5])
                );
            });
            elsewhere.join().unwrap();
        });
        stream.fill_u32(buffer.slice_mut(), 1)?;
        stream.wait(&other.record()?)
    });
    graph.unwrap().launch(&stream).unwrap();
    drop((stream, other, buffer, second, kernel, pinned, before, idle));
    nothing_left();
}

/// Buffers and kernels that a graph uses live as long as the graph, no matter when and where they
/// are dropped.
pub fn graphs_keep_their_resources() {
    let (stream, other) = (stream(), stream());
    let kernel = kernel(stream.device());
    let new = |on: &Stream| on.alloc_zeroed::<u32>(4).unwrap();
    let (mut filled, mut zeroed, mut touched) = (new(&stream), new(&other), new(&stream));
    let (mut to, from, mut foreign) = (new(&stream), new(&stream), new(&other));
    let mut layout = new(&stream);
    let graph = stream
        .capture(|stream| {
            stream.fill_u32(filled.range_mut(1..3)?, 1)?;
            stream.fill_bytes(zeroed.slice_mut(), 1)?;
            stream.copy(to.slice_mut(), from.slice())?;
            touch(stream, &kernel, &mut touched)?;
            touch(stream, &kernel, &mut foreign)?;
            let mut layout = Layout::over(layout.slice_mut().cast()?)?;
            stream.fill_bytes(layout.take::<u64>(2)?.split_at(1)?.1, 1)
        })
        .unwrap();
    drop((filled, zeroed, touched, to, from, foreign, layout));
    graph.launch(&stream).unwrap();
    // A stream that is not ordered after the allocations, and that is dropped before they are
    // freed.
    graph.launch(&self::stream()).unwrap();
    graph.launch(&other).unwrap();
    // The graph's streams are captured while it may run, so its memory is freed later. (A module
    // would stay loaded.)
    let second = other.capture(|_| {
        drop(graph);
        Ok(())
    });
    drop((stream, other, kernel));
    drop(second);
    nothing_left();
}

/// Other streams use a buffer only after its allocation, and it is freed only after their work.
pub fn buffers_wait_for_other_streams() {
    let (stream, other) = (stream(), stream());
    let kernel = kernel(stream.device());
    let new = || stream.alloc::<u32>(4).unwrap();
    let uses: [Use; 7] = [
        |other, _, a, _| other.fill_u32(a.slice_mut(), 1),
        |other, _, a, _| other.fill_bytes(a.range_mut(1..)?, 1),
        |other, _, a, b| other.copy(a.slice_mut(), b.slice()),
        |other, kernel, a, _| touch(other, kernel, a),
        |other, _, a, _| other.upload(a.slice_mut(), &[1; 4]),
        |other, _, a, _| other.to_vec(a.slice()).map(drop),
        |other, _, a, b| {
            let memory = [a.slice().memory()?, b.slice().memory()?];
            other.using(&memory, || other.fill_u32(raw(a), 1))
        },
    ];
    for used in uses {
        let (mut a, mut b) = (new(), new());
        used(&other, &kernel, &mut a, &mut b).unwrap();
        used(&other, &kernel, &mut a, &mut b).unwrap();
        drop((a, b));
    }
    // More streams than an allocation keeps, most of them dropped.
    let mut a = new();
    for _ in 0..30 {
        let passing = self::stream();
        passing.fill_u32(a.slice_mut(), 1).unwrap();
        other.fill_u32(a.slice_mut(), 1).unwrap();
    }
    assert!(
        super::live() < 30,
        "streams are kept for as long as the buffer"
    );
    drop(a);
    // A buffer that is dropped while the other stream is captured is freed with that graph.
    let mut a = new();
    other.fill_u32(a.slice_mut(), 1).unwrap();
    let graph = other.capture(|_| {
        drop(a);
        Ok(())
    });
    graph.unwrap().launch(&stream).unwrap();
    // The first use by another stream is refused while the buffer's own stream is captured.
    let mut a = new();
    let captured = stream.capture(|_| {
        refused(other.fill_u32(a.slice_mut(), 1));
        Ok(())
    });
    captured.unwrap();
    other.fill_u32(a.slice_mut(), 1).unwrap();
    drop((stream, other, kernel, a));
    nothing_left();
}

/// Returns a slice that does not know its buffer, like an address inside a struct.
fn raw(buffer: &mut Buffer<u32>) -> SliceMut<'_, u32> {
    // SAFETY: the slice is the whole buffer, which is borrowed.
    unsafe { SliceMut::from_raw(buffer.ptr(), buffer.len()) }
}

/// A measured region has an address, 0 or another, but no memory.
pub fn measured_regions_are_refused() {
    let stream = stream();
    let kernel = kernel(stream.device());
    let mut buffer = stream.alloc_zeroed::<u8>(4).unwrap();
    let at = buffer.ptr() as usize;
    let region = || -> SliceMut<'_, u8> {
        let all = Layout::measure().take::<u8>(isize::MAX as usize - 255);
        all.unwrap().range(at..at + 4).unwrap()
    };
    let mut host = [1; 4];
    let read = |_: Slice<'_, u8>| region().into_slice();
    let measured = |result: gpu::Result<()>| assert_eq!(result, Err(Error::Measured));
    measured(stream.fill_bytes(region(), 1));
    measured(stream.fill_u32(region().cast().unwrap(), 1));
    measured(stream.copy(region(), buffer.slice()));
    let source = read(buffer.slice());
    measured(stream.copy(buffer.slice_mut(), source));
    measured(stream.upload(region(), &host));
    measured(stream.download(source, &mut host));
    measured(
        stream
            .to_vec(region().split_at(2).unwrap().1.as_slice())
            .map(drop),
    );
    // SAFETY: the call is refused.
    unsafe {
        measured(stream.upload_pinned(region(), &host));
        measured(stream.download_pinned(source, &mut host));
        let launch = Launch::linear(1, 1);
        measured(stream.launch(&kernel, &launch, &args![region()]));
        measured(stream.launch(&kernel, &launch, &args![Some(source)]));
    }
    measured(region().as_slice().memory().map(drop));
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), [0; 4]);
}

/// Streams may be dropped while they are part of a capture.
pub fn streams_dropped_in_captures() {
    let stream = stream();
    let graph = stream.capture(|stream| {
        let joined = Stream::new(stream.device())?;
        joined.wait(&stream.record()?)?;
        stream.wait(&joined.record()?)
    });
    drop((graph.unwrap(), stream));
    nothing_left();
}

/// Returns a function of the fake driver, which is open already.
///
/// # Safety
///
/// `F` is the function's type.
pub unsafe fn symbol<F: Copy>(name: &CStr) -> F {
    unsafe extern "C" {
        fn dlopen(path: *const c_char, mode: i32) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    let path = CString::new(std::env::var(super::LIBRARY).unwrap()).unwrap();
    // SAFETY: both names are C strings, and the caller promises the type.
    unsafe {
        let function = dlsym(dlopen(path.as_ptr(), 2), name.as_ptr());
        assert!(!function.is_null());
        std::mem::transmute_copy(&function)
    }
}
