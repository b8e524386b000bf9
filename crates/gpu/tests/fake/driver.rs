//! A driver without a device, compiled by the tests. It checks that handles are used while they
//! live, on threads that made the context current, and are released once. Misuse that a real driver
//! would not survive aborts the process. Kernels do not run.
//!
//! With `--cfg old` it has no memory pools and lacks the newer functions.

mod order;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;
use std::thread::ThreadId;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Context,
    Pool,
    /// A stream, with the number of the capture that it is part of, or 0.
    Stream {
        capture: u64,
    },
    /// An event, with the number of the capture that it was recorded in, or 0.
    Event {
        capture: u64,
    },
    Module,
    Memory {
        bytes: usize,
    },
    /// Memory that was freed in stream order. It is available again after the context was
    /// synchronised and the pool trimmed.
    Pending {
        bytes: usize,
        synchronised: bool,
    },
    Host {
        bytes: usize,
    },
    Graph,
    Exec,
}

static LIVE: Mutex<Option<HashMap<u64, Kind>>> = Mutex::new(None);
/// The thread that began each capture so far.
static CAPTURES: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
/// The memory that captures (by number), graphs and executable graphs use.
static NODES: Mutex<Option<HashMap<u64, Vec<(u64, usize)>>>> = Mutex::new(None);
/// A function that is called once, before the driver function of that name.
static HOOK: Mutex<Option<(CString, extern "C" fn())>> = Mutex::new(None);
thread_local!(static CURRENT: Cell<u64> = const { Cell::new(0) });

fn live<R>(f: impl FnOnce(&mut HashMap<u64, Kind>) -> R) -> R {
    f(LIVE.lock().unwrap().get_or_insert_default())
}

fn nodes<R>(f: impl FnOnce(&mut HashMap<u64, Vec<(u64, usize)>>) -> R) -> R {
    f(NODES.lock().unwrap().get_or_insert_default())
}

/// Runs the test's hook before this function, if one is set.
fn hooked(function: &str) {
    let mut hook = HOOK.lock().unwrap();
    if let Some((_, call)) = hook.take_if(|(name, _)| name.as_bytes() == function.as_bytes()) {
        drop(hook);
        call();
    }
}

/// Returns the code that the test asks of this function, if any.
fn ordered(function: &str) -> i32 {
    let orders = std::env::var("FAKE_CODES").unwrap_or_default();
    let code = orders.split(',').find_map(|order| {
        order
            .strip_prefix(function)?
            .strip_prefix('=')?
            .parse()
            .ok()
    });
    code.unwrap_or(0)
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

unsafe fn make(kind: Kind, out: *mut u64) -> i32 {
    let handle = Box::into_raw(Box::new(0u64)) as u64;
    live(|live| live.insert(handle, kind));
    unsafe { *out = handle };
    0
}

#[track_caller]
fn end(handle: u64) -> i32 {
    bound();
    live(|live| {
        live.remove(&handle)
            .expect("released twice, or never made")
    });
    0
}

/// Fails unless the context is current on this thread, as every call needs.
#[track_caller]
fn bound() {
    assert!(
        matches!(kind(CURRENT.get()), Some(Kind::Context)),
        "the context is not current"
    );
}

fn kind(handle: u64) -> Option<Kind> {
    live(|live| live.get(&handle).copied())
}

#[track_caller]
fn capture(stream: u64) -> u64 {
    bound();
    match kind(stream) {
        Some(Kind::Stream { capture }) => capture,
        _ => panic!("no stream"),
    }
}

#[track_caller]
fn idle_stream(stream: u64) {
    assert_eq!(capture(stream), 0, "invalidates the capture");
}

/// Returns the capture that the stream is part of, if any. Only the capturing thread may queue work
/// on it.
#[track_caller]
fn own_capture(stream: u64) -> u64 {
    let capture = capture(stream);
    if capture != 0 {
        let thread = CAPTURES.lock().unwrap()[capture as usize - 1];
        assert_eq!(thread, std::thread::current().id(), "the work of another thread is captured");
    }
    capture
}

/// Returns true if the stream does this work, on that memory, now. Otherwise the work became part
/// of a graph.
#[track_caller]
fn now(stream: u64, places: &[(u64, usize)]) -> bool {
    let capture = own_capture(stream);
    let used: Vec<u64> = places.iter().map(|&(ptr, bytes)| memory(ptr, bytes)).collect();
    if capture == 0 {
        order::used(stream, &used);
    } else {
        nodes(|nodes| nodes.entry(capture).or_default().extend(places));
    }
    capture == 0
}

/// Fails if a graph would use host memory that is not pinned, because that is lent for the call
/// only.
#[track_caller]
fn host(stream: u64, ptr: u64, bytes: usize) {
    let pinned = |(&at, kind): (&u64, &Kind)| matches!(*kind, Kind::Host { bytes: len } if at <= ptr && ptr + bytes as u64 <= at + len as u64);
    assert!(capture(stream) == 0 || live(|live| live.iter().any(pinned)), "a copy of borrowed memory is captured");
}

/// Returns where the live memory begins that contains `bytes` at `ptr`.
#[track_caller]
fn memory(ptr: u64, bytes: usize) -> u64 {
    let within = |(&at, kind): (&u64, &Kind)| {
        let inside = matches!(*kind, Kind::Memory { bytes: len } if at <= ptr && ptr + bytes as u64 <= at + len as u64);
        inside.then_some(at)
    };
    let found = live(|live| live.iter().find_map(within));
    found.unwrap_or_else(|| panic!("{bytes} bytes at {ptr:#x} are not allocated"))
}

fn allocate(stream: u64, bytes: usize, out: *mut u64) -> i32 {
    bound();
    let used: usize = live(|live| {
        live.values()
            .map(|kind| {
                if let Kind::Memory { bytes } | Kind::Pending { bytes, .. } = kind {
                    *bytes
                } else {
                    0
                }
            })
            .sum()
    });
    if used.saturating_add(bytes) > number("FAKE_MEMORY", 1 << 20) {
        return 2;
    }
    let ptr =
        Box::leak(vec![0u128; bytes.div_ceil(16) + 16].into_boxed_slice()).as_mut_ptr() as u64;
    let ptr = ptr.next_multiple_of(256);
    live(|live| live.insert(ptr, Kind::Memory { bytes }));
    order::made(stream, ptr);
    unsafe { *out = ptr };
    0
}

macro_rules! driver {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> i32 {
            hooked(stringify!($name));
            match ordered(stringify!($name)) {
                0 => unsafe { $body },
                code => code,
            }
        }
    )*};
}

/// Returns the number of live handles of all kinds, without memory whose free only waits for the
/// pool.
#[unsafe(no_mangle)]
pub extern "C" fn fake_live() -> i32 {
    live(|live| {
        live.retain(|_, kind| !matches!(kind, Kind::Pending { .. }));
        if !live.is_empty() {
            eprintln!("left: {live:?}");
        }
        live.len() as i32
    })
}

/// Sets `hook` to be called before the next call of the function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_hook(function: *const c_char, hook: extern "C" fn()) {
    *HOOK.lock().unwrap() = Some((unsafe { CStr::from_ptr(function) }.to_owned(), hook));
}

driver! {
    fn cuInit(_flags: u32) { 0 }
    fn cuDriverGetVersion(out: *mut i32) { *out = 12_040; 0 }
    fn cuDeviceGetCount(out: *mut i32) { *out = number("FAKE_DEVICES", 1) as i32; 0 }
    fn cuDeviceGet(out: *mut i32, _ordinal: i32) { *out = 40; 0 }
    fn cuDeviceGetName(out: *mut c_char, _len: i32, _device: i32) { *out = b'F' as c_char; *out.add(1) = 0; 0 }
    fn cuDeviceTotalMem_v2(out: *mut usize, _device: i32) { *out = number("FAKE_MEMORY", 1 << 20); 0 }
    fn cuDeviceGetAttribute(out: *mut i32, attribute: i32, _device: i32) {
        if attribute > 110 && cfg!(old) {
            return 1;
        }
        *out = match attribute { 115 => i32::from(cfg!(not(old))), 75 => 9, 76 => 0, 1 => 1024, 8 => 48 << 10, 97 => 227 << 10, 120 => 1, _ => 1000 };
        0
    }
    fn cuDevicePrimaryCtxRetain(out: *mut u64, device: i32) { assert_eq!(device, 40); make(Kind::Context, out) }
    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        assert_eq!(device, 40);
        live(|live| live.retain(|_, kind| *kind != Kind::Context));
        0
    }
    fn cuCtxSetCurrent(context: u64) { assert_eq!(kind(context), Some(Kind::Context)); CURRENT.set(context); 0 }
    fn cuCtxSynchronize() {
        bound();
        let mut streams = Vec::new();
        live(|live| live.iter_mut().for_each(|(&handle, kind)| match kind {
            Kind::Stream { capture } => {
                assert_eq!(*capture, 0, "invalidates the capture");
                streams.push(handle);
            }
            Kind::Pending { synchronised, .. } => *synchronised = true,
            _ => {}
        }));
        order::done(&streams);
        0
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) { bound(); (*free, *total) = (4096, number("FAKE_MEMORY", 1 << 20)); 0 }
    fn cuMemAlloc_v2(out: *mut u64, bytes: usize) { allocate(0, bytes, out) }
    fn cuMemFree_v2(ptr: u64) { order::freed(0, ptr); end(ptr) }
    fn cuMemHostAlloc(out: *mut *mut c_void, bytes: usize, _flags: u32) {
        bound();
        if bytes > 1 << 20 {
            return 2;
        }
        *out = Box::leak(vec![0xa5u8; bytes].into_boxed_slice()).as_mut_ptr().cast();
        live(|live| live.insert(*out as u64, Kind::Host { bytes }));
        0
    }
    fn cuMemFreeHost(ptr: u64) { end(ptr) }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) {
        host(stream, from, bytes);
        if now(stream, &[(to, bytes)]) { std::ptr::copy(from as *const u8, to as *mut u8, bytes); }
        0
    }
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) {
        host(stream, to, bytes);
        if now(stream, &[(from, bytes)]) { std::ptr::copy(from as *const u8, to as *mut u8, bytes); }
        0
    }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) {
        if now(stream, &[(to, bytes), (from, bytes)]) { std::ptr::copy(from as *const u8, to as *mut u8, bytes); }
        0
    }
    fn cuMemsetD8Async(to: u64, byte: u8, count: usize, stream: u64) {
        if now(stream, &[(to, count)]) { std::ptr::write_bytes(to as *mut u8, byte, count); }
        0
    }
    fn cuMemsetD32Async(to: u64, word: u32, count: usize, stream: u64) {
        if now(stream, &[(to, count * 4)]) { std::slice::from_raw_parts_mut(to as *mut u32, count).fill(word); }
        0
    }
    fn cuStreamCreate(out: *mut u64, flags: u32) { bound(); assert_eq!(flags, 1, "not non-blocking"); make(Kind::Stream { capture: 0 }, out) }
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) { bound(); *least = 0; *greatest = -5; 0 }
    fn cuStreamCreateWithPriority(out: *mut u64, flags: u32, priority: i32) { bound(); assert_eq!((flags, priority), (1, -5), "not non-blocking, or not the greatest"); make(Kind::Stream { capture: 0 }, out) }
    fn cuStreamDestroy_v2(stream: u64) { idle_stream(stream); end(stream) }
    fn cuStreamSynchronize(stream: u64) { idle_stream(stream); order::done(&[stream]); 0 }
    fn cuStreamQuery(stream: u64) { idle_stream(stream); order::done(&[stream]); 0 }
    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) {
        let Some(Kind::Event { capture: of_event }) = kind(event) else { panic!("no event") };
        let of_stream = own_capture(stream);
        if of_event == 0 {
            assert_eq!(of_stream, 0, "invalidates the capture");
            order::waited(stream, event);
        } else {
            assert!([0, of_event].contains(&of_stream), "two captures meet");
            live(|live| live.insert(stream, Kind::Stream { capture: of_event }));
        }
        0
    }
    fn cuStreamBeginCapture_v2(stream: u64, _mode: i32) {
        idle_stream(stream);
        let mut captures = CAPTURES.lock().unwrap();
        captures.push(std::thread::current().id());
        live(|live| live.insert(stream, Kind::Stream { capture: captures.len() as u64 }));
        0
    }
    fn cuStreamEndCapture(stream: u64, out: *mut u64) {
        let ended = own_capture(stream);
        assert_ne!(ended, 0);
        live(|live| live.values_mut().for_each(|kind| match kind {
            Kind::Stream { capture } if *capture == ended => *capture = 0,
            _ => {}
        }));
        let places = nodes(|nodes| nodes.remove(&ended)).unwrap_or_default();
        // An invalidated capture ends too, without a graph.
        let code = ordered("capture");
        if code != 0 {
            *out = 0;
            return code;
        }
        make(Kind::Graph, out);
        nodes(|nodes| nodes.insert(*out, places));
        0
    }
    fn cuStreamGetCaptureInfo(stream: u64, status: *mut i32, id: *mut u64) {
        let capture = capture(stream);
        (*status, *id) = ((capture != 0).into(), capture);
        0
    }
    fn cuEventCreate(out: *mut u64, _flags: u32) { bound(); make(Kind::Event { capture: 0 }, out) }
    fn cuEventRecord(event: u64, stream: u64) {
        assert!(matches!(kind(event), Some(Kind::Event { .. })));
        let capture = own_capture(stream);
        live(|live| live.insert(event, Kind::Event { capture }));
        if capture == 0 {
            order::recorded(event, stream);
        }
        0
    }
    fn cuEventQuery(event: u64) { assert_eq!(kind(event), Some(Kind::Event { capture: 0 })); 600 }
    fn cuEventSynchronize(event: u64) { assert_eq!(kind(event), Some(Kind::Event { capture: 0 })); 0 }
    fn cuEventDestroy_v2(event: u64) { end(event) }
    fn cuEventElapsedTime(out: *mut f32, _start: u64, _end: u64) { *out = 0.5; 0 }
    fn cuModuleLoadDataEx(out: *mut u64, image: *const u8, _count: u32, _options: *mut i32, values: *mut *mut u8) {
        bound();
        // An image "fail CODE text" fails with that code, and its text goes to the log.
        let text = std::ffi::CStr::from_ptr(image.cast()).to_string_lossy().into_owned();
        if let Some((code, log)) = text.strip_prefix("fail ").and_then(|rest| rest.split_once(' ')) {
            let room = *values.add(1) as usize;
            let len = log.len().min(room);
            std::ptr::copy(log.as_ptr(), *values, len);
            return code.parse().unwrap();
        }
        make(Kind::Module, out)
    }
    fn cuModuleUnload(module: u64) { end(module) }
    fn cuModuleGetFunction(out: *mut u64, module: u64, _name: *const c_char) { bound(); assert_eq!(kind(module), Some(Kind::Module)); *out = module; 0 }
    fn cuFuncGetAttribute(out: *mut i32, _attribute: i32, function: u64) { assert_eq!(kind(function), Some(Kind::Module)); *out = 512; 0 }
    fn cuFuncSetAttribute(function: u64, _attribute: i32, _value: i32) { assert_eq!(kind(function), Some(Kind::Module)); 0 }
    fn cuLaunchKernel(function: u64, _gx: u32, _gy: u32, _gz: u32, _bx: u32, _by: u32, _bz: u32, shared: u32, stream: u64, params: *const *const u64, _extra: u64) {
        // A launch with shared memory stands for a kernel that uses so many bytes at its first
        // argument.
        if shared == 0 {
            now(stream, &[]);
        } else {
            now(stream, &[(**params, shared as usize)]);
        }
        assert_eq!(kind(function), Some(Kind::Module));
        0
    }
    fn cuGraphLaunch(exec: u64, stream: u64) {
        idle_stream(stream);
        assert_eq!(kind(exec), Some(Kind::Exec));
        now(stream, &nodes(|nodes| nodes[&exec].clone()));
        0
    }
    fn cuGraphExecDestroy(exec: u64) { nodes(|nodes| nodes.remove(&exec)); end(exec) }
    fn cuGraphDestroy(graph: u64) { nodes(|nodes| nodes.remove(&graph)); end(graph) }
    fn cuGetErrorName(code: i32, out: *mut *const c_char) {
        *out = if code == 700 { c"CUDA_ERROR_ILLEGAL_ADDRESS".as_ptr() } else { std::ptr::null() };
        i32::from((*out).is_null())
    }
}

#[cfg(not(old))]
driver! {
    fn cuMemPoolCreate(out: *mut u64, properties: *const i32) { assert_eq!(std::slice::from_raw_parts(properties, 4), [1, 0, 1, 0]); make(Kind::Pool, out) }
    fn cuMemPoolDestroy(pool: u64) { end(pool) }
    fn cuMemPoolSetAttribute(pool: u64, attribute: i32, value: *mut u64) { assert_eq!((kind(pool), attribute, *value), (Some(Kind::Pool), 4, u64::MAX)); 0 }
    fn cuMemPoolGetAttribute(_pool: u64, _attribute: i32, value: *mut u64) { *value = 0; 0 }
    fn cuMemPoolTrimTo(pool: u64, _keep: usize) {
        assert_eq!(kind(pool), Some(Kind::Pool));
        live(|live| live.retain(|_, kind| !matches!(kind, Kind::Pending { synchronised: true, .. })));
        0
    }
    fn cuMemAllocFromPoolAsync(out: *mut u64, bytes: usize, pool: u64, stream: u64) { idle_stream(stream); assert_eq!(kind(pool), Some(Kind::Pool)); allocate(stream, bytes, out) }
    fn cuMemFreeAsync(ptr: u64, stream: u64) {
        idle_stream(stream);
        let Some(Kind::Memory { bytes }) = kind(ptr) else { panic!("freed twice, or never allocated") };
        order::freed(stream, ptr);
        live(|live| live.insert(ptr, Kind::Pending { bytes, synchronised: false }));
        0
    }
    fn cuGraphInstantiateWithFlags(out: *mut u64, graph: u64, _flags: u64) {
        assert_eq!(kind(graph), Some(Kind::Graph));
        make(Kind::Exec, out);
        nodes(|nodes| {
            let places = nodes[&graph].clone();
            nodes.insert(*out, places)
        });
        0
    }
}
