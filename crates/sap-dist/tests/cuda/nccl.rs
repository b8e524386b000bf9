//! The transport by NCCL. On GPUs the trials use the library of the machine, if it has one and two
//! GPUs. With the emulated driver they use `fake/nccl.rs`, which also fails on demand: a process
//! binds the library once, so each trial then runs in a process of its own.

use super::pairs::sequence;
use super::peers::{self, exchange, exchange_every_length};
use super::{Check, Moment, Way, check_over, divide, divide_mut, unless_quick};
use crate::common::churn::some_filter;
use crate::common::random::{Random, uniform_in};
use crate::common::{LIMIT, Scene};
use gpu::{Device, Stream};
use libtest_mimic::{Failed, Trial};
use sap_dist::{Config, DeviceTransport, Nccl, Threads, Transport, TransportError};
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, iter};

/// What NCCL really does.
const WORKING: &[(&str, Check)] = &[
    ("nccl::every_length", every_length),
    ("nccl::another_device", another_device),
    ("nccl::shared_device", shared_device),
    ("nccl::same_pairs", same_pairs),
];

/// Names, environment variables, and what then happens.
type Faults = (&'static str, &'static [(&'static str, &'static str)], Check);
const FAILING: &[Faults] = &[
    (
        "nccl::missing",
        &[(LIBRARY, "/nowhere/libnccl.so.2")],
        missing,
    ),
    ("nccl::another_library", &[(LIBRARY, "libm.so.6")], || {
        no_library("it has no ncclGetVersion")
    }),
    ("nccl::old", &[("FAKE_NCCL_VERSION", "22205")], old),
    ("nccl::no_id", &[(PLAN, "ncclGetUniqueId 0 0 3")], || {
        never_made(0, "ncclGetUniqueId", 3)
    }),
    (
        "nccl::a_rank_does_not_connect",
        &[(PLAN, "ncclCommInitRankConfig 1 0 5")],
        || never_made(1, "ncclCommInitRankConfig", 5),
    ),
    (
        "nccl::a_rank_hangs_at_first",
        &[(PLAN, "ncclCommInitRankConfig 1 0 hang")],
        hangs_at_first,
    ),
    ("nccl::a_send_fails", &[(PLAN, "ncclSend 1 4 4")], || {
        fails("ncclSend", 4)
    }),
    ("nccl::a_receive_fails", &[(PLAN, "ncclRecv 1 4 1")], || {
        fails("ncclRecv", 1)
    }),
    (
        "nccl::a_group_fails",
        &[(PLAN, "ncclGroupEnd 1 1 2")],
        || fails("ncclGroupEnd", 2),
    ),
    (
        "nccl::a_rank_fails_later",
        &[(PLAN, "later 1 1 6")],
        fails_later,
    ),
    (
        "nccl::a_rank_hangs",
        &[(PLAN, "ncclGroupEnd 1 1 hang")],
        hangs,
    ),
    (
        "nccl::a_device_fails",
        &[("RADSWEEP_EMULATE_FAULT", "cuDeviceGetUuid 2 999")],
        a_device_fails,
    ),
    (
        "peers::a_copy_fails",
        &[("RADSWEEP_EMULATE_FAULT", "cuMemcpyPeerAsync 3 1")],
        peers::a_copy_fails,
    ),
    (
        "peers::devices_go_on",
        &[("RADSWEEP_EMULATE_FAULT", "cuMemcpyPeerAsync 5 1")],
        peers::devices_go_on,
    ),
];

/// The variables that name NCCL, what the fake does, and the trial of a process.
const LIBRARY: &str = "NCCL_TEST_LIBRARY";
const PLAN: &str = "FAKE_NCCL";
const CASE: &str = "NCCL_TEST_CASE";
const FAKE_DEVICES: &str = "4";

/// The fake library, in a folder that is removed with it.
struct Fake(tempfile::TempDir);

impl Fake {
    fn compile() -> std::io::Result<Self> {
        let fake = Self(tempfile::tempdir()?);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nccl.rs");
        let compiled = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args([
                "--edition=2024",
                "--crate-type=cdylib",
                "--crate-name=fakenccl",
            ])
            .arg("-o")
            .args([fake.path().as_path(), source.as_path()])
            .status()?;
        assert!(compiled.success(), "the fake NCCL does not compile");
        Ok(fake)
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("libfakenccl.so")
    }
}

pub fn trials() -> Vec<Trial> {
    let listing = env::args().any(|argument| argument == "--list");
    let emulated = env::var_os("RADSWEEP_EMULATE_NVCC").is_some();
    if emulated && !listing {
        let fake = Arc::new(Fake::compile().expect("rustc starts"));
        let names = WORKING.iter().map(|&(name, _)| (name, &[][..]));
        return names
            .chain(FAILING.iter().map(|&(name, faults, _)| (name, faults)))
            .map(|(name, faults)| {
                let fake = Arc::clone(&fake);
                Trial::test(name, move || run_alone(name, &fake, faults))
            })
            .collect();
    }
    let why = match Device::count() {
        Ok(2..) => no_nccl().map(|error| error.to_string()),
        _ => Some("it needs two GPUs".to_owned()),
    };
    if let Some(why) = &why {
        eprintln!("the trials of NCCL are ignored: {why}");
    }
    let trial = |&(name, check): &(&'static str, Check)| {
        Trial::test(name, check).with_ignored_flag(why.is_some())
    };
    WORKING.iter().map(trial).collect()
}

/// Returns why the machine has no NCCL that can be used, if so.
fn no_nccl() -> Option<TransportError> {
    let made = Threads::run(2, LIMIT, |threads| {
        let stream = stream_of(threads.rank())?;
        Nccl::new(threads, &stream, LIMIT).map(drop)
    });
    let first = made.ok()?.swap_remove(0).err();
    first.filter(|error| {
        matches!(
            error,
            TransportError::NoNccl { .. } | TransportError::OldNccl { .. }
        )
    })
}

/// Runs the trial that this process was started for.
pub fn run_case() -> bool {
    let Ok(case) = env::var(CASE) else {
        return false;
    };
    let library = env::var_os(LIBRARY).expect("the library of the case");
    sap_dist::set_nccl_library(library).expect("nothing has used it");
    let failing = FAILING.iter().map(|&(name, _, check)| (name, check));
    let all = WORKING.iter().copied().chain(failing);
    let check = all
        .filter(|(name, _)| *name == case)
        .map(|(_, check)| check);
    for check in check {
        if let Err(failed) = check() {
            eprintln!("{}", failed.message().unwrap_or("it failed"));
            std::process::exit(1);
        }
    }
    assert_eq!(live(), 0, "communicators are left");
    true
}

fn run_alone(name: &str, fake: &Fake, faults: &[(&str, &str)]) -> Result<(), Failed> {
    let mut command = Command::new(env::current_exe()?);
    command
        .env(CASE, name)
        .env("RADSWEEP_EMULATE_DEVICES", FAKE_DEVICES)
        .env(LIBRARY, fake.path())
        .envs(faults.iter().copied());
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// Returns the communicators that the fake has; 0 without the fake.
fn live() -> c_int {
    unsafe extern "C" {
        fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    let name = env::var_os(LIBRARY).unwrap_or_default();
    let name = CString::new(name.as_bytes()).expect("the name has no zero");
    // SAFETY: both names are C strings, and the function of the fake has this type.
    unsafe {
        let library = dlopen(name.as_ptr(), 2);
        let found = match library.is_null() {
            true => library,
            false => dlsym(library, c"fake_live".as_ptr()),
        };
        match found.is_null() {
            true => 0,
            false => std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(found)(),
        }
    }
}

fn count() -> usize {
    Device::count().unwrap_or(0)
}

fn stream_of(device: usize) -> gpu::Result<Stream> {
    Stream::new(&Device::open(device)?)
}

/// Runs `f` as each rank, on a device of its own, with its transport.
fn with_transports<R: Send>(
    limit: Duration,
    f: impl Fn(Nccl<&mut Threads>, &Stream) -> Result<R, Failed> + Sync,
) -> Result<Vec<R>, Failed> {
    let run = |threads: &mut Threads| {
        let stream = stream_of(threads.rank())?;
        f(Nccl::new(threads, &stream, limit)?, &stream)
    };
    Threads::run(count(), LIMIT, run)?.into_iter().collect()
}

fn every_length() -> Result<(), Failed> {
    with_transports(LIMIT, |mut transport, stream| {
        exchange_every_length(&mut transport, stream)
    })
    .map(drop)
}

fn another_device() -> Result<(), Failed> {
    with_transports(LIMIT, |mut transport, _| {
        let other = (transport.rank() + 1) % transport.size();
        let failed = exchange(&mut transport, &stream_of(other)?, 0, |_, _| 1).err();
        let text = failed.and_then(|failed| failed.message().map(str::to_owned));
        let text = text.unwrap_or_default();
        let reason = match transport.rank() {
            0 => "the communicator belongs to device 0, but the stream to device 1",
            _ => "the error on rank 0 says more",
        };
        assert!(text.ends_with(reason), "{text}");
        Ok(())
    })
    .map(drop)
}

fn shared_device() -> Result<(), Failed> {
    let made = Threads::run(3, LIMIT, |threads| {
        let stream = stream_of([0, 1, 0][threads.rank()])?;
        Nccl::new(threads, &stream, LIMIT).map(drop)
    })?;
    let expected = TransportError::SharedDevice { rank: 0, other: 2 };
    assert_eq!(made, vec![Err(expected); 3]);
    Ok(())
}

fn same_pairs() -> Result<(), Failed> {
    let n = unless_quick(100_000, 800);
    let mut moments = sequence(Scene::dealt(uniform_in(n, [(n as f32).cbrt(); 3], 2)), 4);
    for (moment, share) in moments.iter_mut().zip([100, 0, 150, 40]) {
        moment.share = share;
    }
    let mut random = Random::new(3);
    let mut labelled: Vec<Moment> = moments.clone();
    for moment in &mut labelled {
        moment.scene.filters = Some(
            iter::repeat_with(|| some_filter(&mut random))
                .take(n)
                .collect(),
        );
        moment.scene.worlds = Some(
            iter::repeat_with(|| random.below(3) as u32)
                .take(n)
                .collect(),
        );
    }
    for ranks in 1..=count().min(5) {
        check_over(Way::Nccl, &moments, ranks, &Config::default())?;
        check_over(Way::Nccl, &labelled, ranks, &Config::default())?;
    }
    Ok(())
}

/// Returns the errors of all ranks when none can be made.
fn errors(limit: Duration) -> Result<Vec<TransportError>, Failed> {
    let made = Threads::run(count(), LIMIT, |threads| {
        let stream = stream_of(threads.rank())?;
        let failed = Nccl::new(&mut *threads, &stream, limit).map(drop);
        threads.barrier()?;
        failed
    })?;
    let errors = made
        .into_iter()
        .map(Result::err)
        .collect::<Option<Vec<_>>>();
    Ok(errors.ok_or("no rank can be connected")?)
}

fn no_library(reason: &str) -> Result<(), Failed> {
    for (own, error) in errors(LIMIT)?.into_iter().enumerate() {
        assert!(
            matches!(error, TransportError::NoNccl { rank: 0, .. }),
            "{error}"
        );
        let text = error.to_string();
        let library = env::var(LIBRARY)?;
        assert_eq!(
            text.contains(&library) && text.contains(reason),
            own == 0,
            "{text}"
        );
    }
    Ok(())
}

fn missing() -> Result<(), Failed> {
    no_library("cannot open shared object file")
}

fn old() -> Result<(), Failed> {
    let expected = TransportError::OldNccl {
        rank: 0,
        found: [2, 22, 5],
        needed: [2, 23, 0],
    };
    assert_eq!(
        expected.to_string(),
        "rank 0 has NCCL 2.22.5, but 2.23.0 or newer is needed"
    );
    assert_eq!(errors(LIMIT)?, vec![expected; count()]);
    Ok(())
}

fn never_made(rank: usize, call: &'static str, code: i32) -> Result<(), Failed> {
    let expected = TransportError::Nccl { rank, call, code };
    assert_eq!(errors(LIMIT)?, vec![expected; count()]);
    Ok(())
}

fn hangs_at_first() -> Result<(), Failed> {
    let start = Instant::now();
    let expected = TransportError::NcclTimeout {
        rank: 0,
        call: "ncclCommInitRankConfig",
        limit_ms: 300,
    };
    assert_eq!(errors(Duration::from_millis(300))?, vec![expected; count()]);
    assert!(start.elapsed() < LIMIT / 2);
    Ok(())
}

/// Makes a good exchange and a bad one; returns the errors of the bad one, which stay.
fn bad_exchange(limit: Duration) -> Result<Vec<TransportError>, Failed> {
    with_transports(limit, |mut transport, stream| {
        exchange(&mut transport, stream, 0, |_, _| 5)?;
        let ranks = transport.size();
        let sent = stream.from_slice(&vec![1_u8; ranks])?;
        let mut got = stream.alloc_zeroed::<u8>(ranks)?;
        let lengths = &vec![1; ranks];
        let mut errors = Vec::new();
        for _ in 0..2 {
            let outgoing = divide(sent.slice(), lengths)?;
            let mut incoming = divide_mut(got.slice_mut(), lengths)?;
            errors.push(transport.exchange_device(stream, &outgoing, &mut incoming));
        }
        errors.push(transport.barrier());
        let error = errors[0].clone().err().ok_or("the exchange is bad")?;
        assert_eq!(errors, vec![Err(error.clone()); 3], "it stays broken");
        Ok(error)
    })
}

/// All ranks learn of a call that fails when the exchange is queued.
fn fails(call: &'static str, code: i32) -> Result<(), Failed> {
    let rank = 1;
    let expected = TransportError::Nccl { rank, call, code };
    let text = format!("{call} failed on rank 1 with code {code} (");
    assert!(expected.to_string().starts_with(&text));
    assert_eq!(bad_exchange(LIMIT)?, vec![expected; count()]);
    Ok(())
}

/// Returns the errors of ranks that waited in vain.
fn late(limit_ms: u64) -> Vec<TransportError> {
    let late = |rank| TransportError::NcclTimeout {
        rank,
        call: "ncclGroupEnd",
        limit_ms,
    };
    (0..count()).map(late).collect()
}

/// What fails later ends the others by their time limit.
fn fails_later() -> Result<(), Failed> {
    let mut expected = late(600);
    expected[1] = TransportError::Nccl {
        rank: 1,
        call: "ncclGroupEnd",
        code: 6,
    };
    assert_eq!(bad_exchange(Duration::from_millis(600))?, expected);
    Ok(())
}

fn hangs() -> Result<(), Failed> {
    let start = Instant::now();
    let expected = late(600);
    assert_eq!(
        expected[1].to_string(),
        "ncclGroupEnd did not end on rank 1 within 600 ms"
    );
    assert_eq!(bad_exchange(Duration::from_millis(600))?, expected);
    assert!(start.elapsed() < LIMIT / 2);
    Ok(())
}

fn a_device_fails() -> Result<(), Failed> {
    let errors = errors(LIMIT)?;
    let is_own = |error: &&TransportError| matches!(error, TransportError::Device { .. });
    let Some(rank) = errors.iter().position(|error| is_own(&error)) else {
        return Err(format!("no rank has its own error: {errors:?}").into());
    };
    let mut others = errors
        .iter()
        .enumerate()
        .filter(|&(other, _)| other != rank);
    assert!(others.all(|(_, error)| *error == TransportError::Elsewhere { rank }));
    Ok(())
}
