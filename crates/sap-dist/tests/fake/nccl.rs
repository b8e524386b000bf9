//! An NCCL made for the tests: it moves bytes between the ranks of one process whose device memory
//! is host memory, which is that of the emulated driver. It aborts the process if it is misused.
//!
//! `FAKE_NCCL="ncclSend 1 3 5"`: on rank 1, the calls of that function after the third return 5.
//! With `hang` instead of a code, they never end, until the communicator is aborted.
//! `FAKE_NCCL_VERSION` is the version that it reports.

#![allow(non_snake_case, clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::env;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const INVALID_ARGUMENT: c_int = 4;
const IN_PROGRESS: c_int = 7;

unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn misused(what: &str) -> ! {
    eprintln!("fake NCCL: {what}");
    std::process::abort()
}

/// What a call does on a rank.
enum Fate {
    Works,
    Fails(c_int),
    Hangs,
}

fn fate(call: &str, rank: c_int, calls: &AtomicU64) -> Fate {
    let plan = env::var("FAKE_NCCL").unwrap_or_default();
    let words: Vec<&str> = plan.split(' ').collect();
    let &[name, who, after, how] = &words[..] else {
        return Fate::Works;
    };
    if name != call || who.parse() != Ok(rank) {
        return Fate::Works;
    }
    match how.parse() {
        _ if calls.fetch_add(1, SeqCst) < after.parse().unwrap() => Fate::Works,
        Ok(code) => Fate::Fails(code),
        Err(_) => Fate::Hangs,
    }
}

/// What the ranks of a communicator share.
#[derive(Default)]
struct World {
    inbox: Mutex<Inbox>,
    changed: Condvar,
}

#[derive(Default)]
struct Inbox {
    joined: HashSet<c_int>,
    aborted: HashSet<c_int>,
    messages: HashMap<(c_int, c_int), VecDeque<Vec<u8>>>,
}

impl World {
    /// Waits for `ready` on a rank; returns nothing if that is aborted.
    fn wait<R>(&self, rank: c_int, mut ready: impl FnMut(&mut Inbox) -> Option<R>) -> Option<R> {
        let mut inbox = self.inbox.lock().unwrap();
        loop {
            if inbox.aborted.contains(&rank) {
                return None;
            }
            if let Some(result) = ready(&mut inbox) {
                return Some(result);
            }
            inbox = self.changed.wait(inbox).unwrap();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Inbox)) {
        change(&mut self.inbox.lock().unwrap());
        self.changed.notify_all();
    }
}

static WORLDS: LazyLock<Mutex<HashMap<[u8; 128], Arc<World>>>> = LazyLock::new(Mutex::default);
static LIVE: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

pub struct Comm {
    world: Arc<World>,
    rank: c_int,
    ranks: c_int,
    state: Arc<AtomicI32>,
    thread: Option<JoinHandle<()>>,
    calls: [AtomicU64; 4],
}

impl Comm {
    /// Runs `work` in the background, and then stores what it returns as the state.
    fn start(&mut self, work: impl FnOnce(&World) -> Option<c_int> + Send + 'static) {
        self.join();
        self.state.store(IN_PROGRESS, SeqCst);
        let (world, state) = (self.world.clone(), self.state.clone());
        self.thread = Some(thread::spawn(move || {
            if let Some(code) = work(&world) {
                let _ = state.compare_exchange(IN_PROGRESS, code, SeqCst, SeqCst);
            }
        }));
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn of(comm: *mut Comm) -> &'static mut Comm {
    if !LIVE.lock().unwrap().contains(&(comm as usize)) {
        misused("this is no live communicator");
    }
    unsafe { &mut *comm }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Id([u8; 128]);

#[repr(C)]
pub struct Options {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    let wanted = env::var("FAKE_NCCL_VERSION").map(|version| version.parse().unwrap());
    unsafe { *version = wanted.unwrap_or(22_304) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(id: *mut Id) -> c_int {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if let Fate::Fails(code) = fate("ncclGetUniqueId", 0, &AtomicU64::new(0)) {
        return code;
    }
    let next = NEXT.fetch_add(1, SeqCst);
    unsafe { *id = Id(std::array::from_fn(|i| (next + i as u64) as u8)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    comm: *mut *mut Comm,
    ranks: c_int,
    id: Id,
    rank: c_int,
    options: *const Options,
) -> c_int {
    let options = unsafe { &*options };
    let given = (options.size, options.magic, options.version, options.blocking);
    assert_eq!(given, (24, 0xcafe_beef, 21_400, 0), "other options");
    unsafe { *comm = std::ptr::null_mut() };
    let what = fate("ncclCommInitRankConfig", rank, &AtomicU64::new(0));
    if let Fate::Fails(code) = what {
        return code;
    }
    let world = WORLDS.lock().unwrap().entry(id.0).or_default().clone();
    let mut made = Box::new(Comm {
        world,
        rank,
        ranks,
        state: Arc::default(),
        thread: None,
        calls: Default::default(),
    });
    made.start(move |world| {
        if matches!(what, Fate::Works) {
            world.change(|inbox| _ = inbox.joined.insert(rank));
        }
        world.wait(rank, |inbox| (inbox.joined.len() == ranks as usize).then_some(0))
    });
    let made = Box::into_raw(made);
    LIVE.lock().unwrap().insert(made as usize);
    unsafe { *comm = made };
    IN_PROGRESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: *mut Comm, state: *mut c_int) -> c_int {
    if comm.is_null() {
        return INVALID_ARGUMENT;
    }
    unsafe { *state = of(comm).state.load(SeqCst) };
    0
}

fn end(comm: *mut Comm) {
    of(comm).join();
    LIVE.lock().unwrap().remove(&(comm as usize));
    drop(unsafe { Box::from_raw(comm) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommDestroy(comm: *mut Comm) -> c_int {
    if of(comm).state.load(SeqCst) != 0 {
        misused("a communicator is destroyed that failed or is at work");
    }
    end(comm);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommAbort(comm: *mut Comm) -> c_int {
    let this = of(comm);
    let rank = this.rank;
    this.world.change(|inbox| _ = inbox.aborted.insert(rank));
    end(comm);
    0
}

/// The number of communicators that were not ended.
#[unsafe(no_mangle)]
pub extern "C" fn fake_live() -> c_int {
    LIVE.lock().unwrap().len() as c_int
}

struct Operation {
    sends: bool,
    at: usize,
    count: usize,
    peer: c_int,
}

/// The operations of the group that a thread has begun.
#[derive(Default)]
struct Group {
    comm: usize,
    stream: usize,
    operations: Vec<Operation>,
    failed: c_int,
}

thread_local! {
    static GROUP: RefCell<Option<Group>> = const { RefCell::new(None) };
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    if GROUP.replace(Some(Group::default())).is_some() {
        misused("a group begins within another");
    }
    0
}

fn add(comm: *mut Comm, stream: usize, operation: Operation) -> c_int {
    GROUP.with_borrow_mut(|group| {
        let Some(group) = group else {
            misused("an operation outside of a group");
        };
        if comm.is_null() {
            group.failed = INVALID_ARGUMENT;
            return INVALID_ARGUMENT;
        }
        let this = of(comm);
        if this.state.load(SeqCst) != 0 || !(0..this.ranks).contains(&operation.peer) {
            misused("an operation of a communicator at work, or with a rank that it has not");
        }
        let (name, calls) = match operation.sends {
            true => ("ncclSend", &this.calls[0]),
            false => ("ncclRecv", &this.calls[1]),
        };
        if let Fate::Fails(code) = fate(name, this.rank, calls) {
            group.failed = code;
            return code;
        }
        (group.comm, group.stream) = (comm as usize, stream);
        group.operations.push(operation);
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclSend(
    from: *const c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: *mut Comm,
    stream: *mut c_void,
) -> c_int {
    assert_eq!(kind, 1, "not bytes");
    let (sends, at) = (true, from as usize);
    add(comm, stream as usize, Operation { sends, at, count, peer })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclRecv(
    to: *mut c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: *mut Comm,
    stream: *mut c_void,
) -> c_int {
    assert_eq!(kind, 1, "not bytes");
    let (sends, at) = (false, to as usize);
    add(comm, stream as usize, Operation { sends, at, count, peer })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> c_int {
    let Some(group) = GROUP.take() else {
        misused("no group has begun");
    };
    if group.failed != 0 || group.operations.is_empty() {
        return group.failed;
    }
    let comm = of(group.comm as *mut Comm);
    let hangs = match fate("ncclGroupEnd", comm.rank, &comm.calls[2]) {
        Fate::Fails(code) => return code,
        Fate::Hangs => true,
        Fate::Works => false,
    };
    // A code that comes later than the call, as of a network.
    let late = match fate("later", comm.rank, &comm.calls[3]) {
        Fate::Fails(code) => code,
        _ => 0,
    };
    let stream = group.stream;
    let work = Box::new(Work {
        group,
        world: comm.world.clone(),
        state: comm.state.clone(),
        rank: comm.rank,
        hangs,
        late,
    });
    comm.start(move |_| {
        thread::sleep(Duration::from_millis(1));
        launch(stream, work);
        Some(0)
    });
    IN_PROGRESS
}

/// What runs on a stream.
struct Work {
    group: Group,
    world: Arc<World>,
    state: Arc<AtomicI32>,
    rank: c_int,
    hangs: bool,
    late: c_int,
}

impl Work {
    /// Moves the bytes, unless the communicator is aborted meanwhile.
    fn run(&self) -> Option<()> {
        let (world, rank) = (&self.world, self.rank);
        if self.hangs {
            return world.wait(rank, |_| None);
        }
        for sent in self.group.operations.iter().filter(|one| one.sends) {
            let bytes = unsafe { std::slice::from_raw_parts(sent.at as *const u8, sent.count) };
            let key = (rank, sent.peer);
            world.change(|inbox| inbox.messages.entry(key).or_default().push_back(bytes.to_vec()));
        }
        for got in self.group.operations.iter().filter(|one| !one.sends) {
            let key = (got.peer, rank);
            let message = world.wait(rank, |inbox| inbox.messages.get_mut(&key)?.pop_front())?;
            if message.len() != got.count {
                misused("a message has another length");
            }
            let to = unsafe { std::slice::from_raw_parts_mut(got.at as *mut u8, got.count) };
            to.copy_from_slice(&message);
        }
        Some(())
    }
}

/// Queues work on a stream of the driver that the process uses.
fn launch(stream: usize, work: Box<Work>) {
    extern "C" fn run(work: *mut Work) {
        let work = unsafe { Box::from_raw(work) };
        if work.late != 0 {
            while work.state.load(SeqCst) == IN_PROGRESS {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(20));
            work.state.store(work.late, SeqCst);
            work.world.wait(work.rank, |_| None::<()>);
        } else {
            work.run();
        }
    }
    unsafe {
        let call = dlsym(dlopen(c"libcuda.so.1".as_ptr(), 2), c"cuLaunchHostFunc".as_ptr());
        let call: unsafe extern "C" fn(usize, extern "C" fn(*mut Work), *mut Work) -> c_int =
            std::mem::transmute(call);
        assert_eq!(call(stream, run, Box::into_raw(work)), 0);
    }
}
