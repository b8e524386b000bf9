//! The transport by NCCL. On GPUs the trials use the library of the machine, if it has one and two
//! GPUs. With the emulated driver they use `fake/nccl.rs`, which also fails on demand: a process
//! binds the library once, so each trial then runs in a process of its own.

use super::devices::{lists, same_lists_over};
use super::pairs::sequence;
use super::{Check, Moment, check_over, divide, divide_mut, unless_quick};
use crate::common::churn::some_filter;
use crate::common::random::{Random, uniform_in};
use crate::common::{LIMIT, Scene};
use gpu::{Device, Stream};
use libtest_mimic::{Failed, Trial};
use sap::{Backend, BroadPhase};
use sap_dist::{
    Config, DeviceTransport, Devices, Error, Nccl, Threads, Traffic, Transport, TransportError,
    TransportKind,
};
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
    ("nccl::devices::same_lists", || {
        same_lists_over(TransportKind::Nccl, 2..=count().min(4))
    }),
    ("nccl::devices::take_what_there_is", take_what_there_is),
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
        "nccl::devices::go_on_over_the_host",
        &[(PLAN, "ncclGroupEnd 1 3 2")],
        go_on_over_the_host,
    ),
    (
        "nccl::devices::do_without",
        &[(PLAN, "ncclCommInitRankConfig 1 0 2")],
        do_without,
    ),
    (
        "nccl::devices::a_device_fails",
        &[("RADSWEEP_EMULATE_FAULT", "cuDeviceGetUuid 2 999")],
        a_device_fails,
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
        Ok(2..) => match Devices::over(TransportKind::Nccl, Config::default(), 0..2).err() {
            Some(Error::Transport(
                error @ (TransportError::NoNccl { .. } | TransportError::OldNccl { .. }),
            )) => Some(error.to_string()),
            _ => None,
        },
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

/// The byte at `k` of what goes from one rank to another in a round.
fn byte(round: usize, from: usize, to: usize, k: usize) -> u8 {
    (k + 31 * from + 57 * to + 101 * round) as u8
}

/// Makes an exchange and checks what came, and that nothing beside it was written.
fn exchange(
    transport: &mut impl DeviceTransport,
    stream: &Stream,
    round: usize,
    length: impl Fn(usize, usize) -> usize,
) -> Result<(), Failed> {
    const BESIDE: [u8; 3] = [7; 3];
    let (rank, ranks) = (transport.rank(), transport.size());
    let message = |from, to| (0..length(from, to)).map(move |k| byte(round, from, to, k));
    let [to, from] = [true, false].map(|out| -> Vec<usize> {
        let one = |other| {
            if out {
                length(rank, other)
            } else {
                length(other, rank)
            }
        };
        (0..ranks).map(one).collect()
    });
    let sent: Vec<u8> = (0..ranks).flat_map(|to| message(rank, to)).collect();
    let expected: Vec<u8> = (0..ranks).flat_map(|from| message(from, rank)).collect();
    let expected = [&BESIDE[..], &expected, &BESIDE].concat();
    let sent = stream.from_slice(&sent)?;
    let mut got = stream.from_slice(&vec![7_u8; expected.len()])?;
    let end = expected.len() - BESIDE.len();
    let outgoing = divide(sent.slice(), &to)?;
    let mut incoming = divide_mut(got.range_mut(BESIDE.len()..end)?, &from)?;
    transport.exchange_device(stream, &outgoing, &mut incoming)?;
    assert!(stream.to_vec(got.slice())? == expected, "round {round}");
    Ok(())
}

fn every_length() -> Result<(), Failed> {
    let long = unless_quick(300_000_001, 300_001);
    with_transports(LIMIT, |mut transport, stream| {
        let (rank, ranks) = (transport.rank(), transport.size());
        let before = transport.traffic();
        for (round, unit) in [0, 1, 13, 4096, long / ranks].into_iter().enumerate() {
            // Unequal ones, some of them empty, also to the rank itself.
            let length = |from: usize, to: usize| (from + 2 * to + round) % 3 * unit;
            exchange(&mut transport, stream, round, length)?;
            assert_eq!(transport.all_gather(&[9])?, vec![9; ranks]);
        }
        let sent = |round, unit| (0..ranks).map(move |to| (to, (rank + 2 * to + round) % 3 * unit));
        let units = [0, 1, 13, 4096, long / ranks].into_iter().enumerate();
        let to_others = units.flat_map(|(round, unit)| sent(round, unit));
        let to_others: Vec<usize> = to_others
            .filter(|&(to, bytes)| to != rank && bytes > 0)
            .map(|(_, bytes)| bytes)
            .collect();
        let traffic: Traffic = transport.traffic();
        assert_eq!(traffic.exchanges - before.exchanges, 5);
        assert_eq!(traffic.messages - before.messages, to_others.len() as u64);
        assert_eq!(
            traffic.bytes - before.bytes,
            to_others.iter().sum::<usize>() as u64
        );
        // Messages of the host go over the transport below.
        let message = |to| vec![rank as u8, to as u8];
        let got = transport.exchange((0..ranks).map(message).collect())?;
        assert!((0..ranks).all(|from| got[from] == [from as u8, rank as u8]));
        Ok(())
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
        check_over(TransportKind::Nccl, &moments, ranks, &Config::default())?;
        check_over(TransportKind::Nccl, &labelled, ranks, &Config::default())?;
    }
    Ok(())
}

fn take_what_there_is() -> Result<(), Failed> {
    let kind = |devices: &[usize]| -> Result<TransportKind, Failed> {
        let mut made = Devices::new(Config::default(), devices.iter().copied())?;
        let kind = made.transport();
        made.update(&uniform_in(100, [4.0; 3], 1))?;
        assert_eq!(made.transport(), kind);
        Ok(kind)
    };
    assert_eq!(kind(&[1, 0])?, TransportKind::Nccl);
    assert_eq!(kind(&[0])?, TransportKind::Staged);
    assert_eq!(kind(&[0, 1, 1])?, TransportKind::Staged);
    let made = Devices::new(Config::default(), 0..2)?;
    assert_eq!(made.without_nccl(), None);
    let failed = Devices::over(TransportKind::Nccl, Config::default(), [1, 1]).err();
    let expected = TransportError::SharedDevice { rank: 0, other: 1 };
    assert_eq!(failed, Some(Error::Transport(expected)));
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
    let devices = Devices::new(Config::default(), 0..2)?;
    assert_eq!(devices.transport(), TransportKind::Staged);
    let why = devices.without_nccl();
    assert!(why.is_some_and(|error| error.to_string().contains(reason)));
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

/// The update after one that failed finds the pairs of one engine, and its events.
fn go_on_over_the_host() -> Result<(), Failed> {
    let mut devices = Devices::new(Config::default(), 0..count())?;
    let mut one = BroadPhase::new(sap::Config {
        backend: Backend::Cpu,
        ..sap::Config::default()
    })?;
    let mut failed = None;
    for seed in 0..8 {
        let boxes = uniform_in(600, [8.0; 3], seed);
        let kind = devices.transport();
        match devices.update(&boxes) {
            Ok(report) => {
                let expected = one.update(&boxes)?;
                assert_eq!(
                    [report.pairs, report.started, report.ended],
                    [expected.pairs, expected.started, expected.ended]
                );
                let pairs = lists(&devices)?[0].clone();
                let same =
                    |(x, y): (&sap_dist::Pair, &sap::Pair)| (x.a, x.b) == (y.a.into(), y.b.into());
                assert!(pairs.iter().zip(one.pairs()).all(same));
            }
            Err(error) => {
                assert_eq!((kind, failed), (TransportKind::Nccl, None), "{error}");
                failed = Some(error);
                assert_eq!(devices.transport(), TransportKind::Staged);
            }
        }
    }
    let expected = TransportError::Nccl {
        rank: 1,
        call: "ncclGroupEnd",
        code: 2,
    };
    assert_eq!(failed, Some(Error::Transport(expected)));
    Ok(())
}

fn do_without() -> Result<(), Failed> {
    let start = Instant::now();
    let mut devices = Devices::new(Config::default(), 0..2)?;
    assert_eq!(devices.transport(), TransportKind::Staged);
    let why = devices.without_nccl();
    assert!(matches!(why, Some(TransportError::Nccl { code: 2, .. })));
    devices.update(&uniform_in(100, [4.0; 3], 1))?;
    assert!(start.elapsed() < LIMIT / 2);
    Ok(())
}

/// The fault of a device is not hidden: it would be there in an update too.
fn a_device_fails() -> Result<(), Failed> {
    let failed = Devices::new(Config::default(), 0..2).err();
    let is_device = |error| matches!(error, Error::Transport(TransportError::Device { .. }));
    assert!(failed.is_some_and(is_device));
    Ok(())
}
