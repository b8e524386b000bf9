//! The transport by copies of the driver, and exchanges for any transport between devices.

use super::devices::lists;
use super::pairs::sequence;
use super::{Check, Way, check_over, device_of, divide, divide_mut, unless_quick};
use crate::common::random::uniform_in;
use crate::common::{LIMIT, Scene};
use gpu::{Device, Stream};
use libtest_mimic::Failed;
use sap::{Backend, BroadPhase};
use sap_dist::{
    Config, DeviceTransport, Devices, Peers, Threads, Traffic, Transport, TransportError,
};

pub const ALL: &[(&str, Check)] = &[
    ("peers::every_length", every_length),
    ("peers::same_pairs", same_pairs),
    ("peers::other_lengths", other_lengths),
    ("peers::another_process", another_process),
];

/// The ranks of these trials, some of them on one device.
const RANKS: usize = 5;

/// The byte at `k` of what goes from one rank to another in a round.
fn byte(round: usize, from: usize, to: usize, k: usize) -> u8 {
    (k + 31 * from + 57 * to + 101 * round) as u8
}

/// Makes an exchange and checks what came, and that nothing beside it was written.
pub(super) fn exchange(
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

/// Makes exchanges of many lengths, and checks what they count.
pub(super) fn exchange_every_length(
    transport: &mut impl DeviceTransport,
    stream: &Stream,
) -> Result<(), Failed> {
    let long = unless_quick(300_000_001, 300_001);
    let (rank, ranks) = (transport.rank(), transport.size());
    let before = transport.traffic();
    for (round, unit) in [0, 1, 13, 4096, long / ranks].into_iter().enumerate() {
        // Unequal ones, some of them empty, also to the rank itself.
        let length = |from: usize, to: usize| (from + 2 * to + round) % 3 * unit;
        exchange(transport, stream, round, length)?;
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
}

/// Runs `f` as each rank with its transport.
fn with_transports<R: Send>(
    f: impl Fn(Peers<&mut Threads>, &Stream) -> Result<R, Failed> + Sync,
) -> Result<Vec<R>, Failed> {
    let run = |threads: &mut Threads| {
        let device = Device::open(device_of(threads.rank()))?;
        let stream = Stream::new(&device)?;
        f(Peers::new(threads, &device)?, &stream)
    };
    Threads::run(RANKS, LIMIT, run)?.into_iter().collect()
}

fn every_length() -> Result<(), Failed> {
    with_transports(|mut transport, stream| exchange_every_length(&mut transport, stream)).map(drop)
}

fn same_pairs() -> Result<(), Failed> {
    let n = unless_quick(100_000, 800);
    let mut moments = sequence(Scene::dealt(uniform_in(n, [(n as f32).cbrt(); 3], 2)), 6);
    for (moment, share) in moments.iter_mut().zip([100, 100, 0, 150, 40, 40]) {
        moment.share = share;
    }
    for ranks in 1..=RANKS {
        check_over(Way::Driver, &moments, ranks, &Config::default())?;
    }
    Ok(())
}

/// A rank sends less than it said.
fn other_lengths() -> Result<(), Failed> {
    let errors = with_transports(|mut transport, stream| {
        let (rank, ranks) = (transport.rank(), transport.size());
        exchange(&mut transport, stream, 0, |_, _| 5)?;
        let length = if rank == 1 { 4 } else { 5 };
        let sent = stream.from_slice(&vec![1_u8; length * ranks])?;
        let mut got = stream.alloc_zeroed::<u8>(5 * ranks)?;
        let mut errors = Vec::new();
        for _ in 0..2 {
            let outgoing = divide(sent.slice(), &vec![length; ranks])?;
            let mut incoming = divide_mut(got.slice_mut(), &vec![5; ranks])?;
            errors.push(transport.exchange_device(stream, &outgoing, &mut incoming));
        }
        errors.push(transport.barrier());
        let error = errors[0].clone().err().ok_or("the exchange is bad")?;
        assert_eq!(errors, vec![Err(error.clone()); 3], "it stays broken");
        Ok(error)
    })?;
    let expected = TransportError::Lengths {
        rank: 1,
        expected: 5,
        given: 4,
    };
    assert_eq!(errors[0], expected);
    Ok(())
}

/// A transport that leads to another process, of which a number that it gathers first tells.
struct Elsewhere<'a>(&'a mut Threads);

impl Transport for Elsewhere<'_> {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        let mut words = words.to_vec();
        words[0] += u64::from(self.rank() == 2);
        self.0.all_gather(&words)
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        self.0.exchange(outgoing)
    }

    fn traffic(&self) -> Traffic {
        self.0.traffic()
    }
}

fn another_process() -> Result<(), Failed> {
    let failed = Threads::run(3, LIMIT, |threads| {
        let device = Device::open(device_of(threads.rank()))?;
        Peers::new(Elsewhere(threads), &device).map(drop)
    })?;
    let expected = TransportError::OtherProcess { rank: 2 };
    assert_eq!(failed, vec![Err(expected); 3]);
    Ok(())
}

/// All ranks learn of a copy that fails.
pub(super) fn a_copy_fails() -> Result<(), Failed> {
    let failed = with_transports(|mut transport, stream| {
        let failed = exchange(&mut transport, stream, 0, |_, _| 5).err();
        let barrier = transport.barrier();
        assert!(failed.is_some());
        Ok(barrier)
    })?;
    let own = |failed: &&Result<(), _>| matches!(failed, Err(TransportError::Device { .. }));
    let elsewhere =
        |failed: &&Result<_, _>| matches!(failed, Err(TransportError::Elsewhere { .. }));
    let counts = [
        failed.iter().filter(own).count(),
        failed.iter().filter(elsewhere).count(),
    ];
    assert_eq!(counts, [1, RANKS - 1], "{failed:?}");
    Ok(())
}

/// The update after one that failed finds the pairs of one engine, and its events.
pub(super) fn devices_go_on() -> Result<(), Failed> {
    let mut devices = Devices::new(Config::default(), (0..3).map(device_of))?;
    let mut one = BroadPhase::new(sap::Config {
        backend: Backend::Cpu,
        ..sap::Config::default()
    })?;
    let mut failed = None;
    for seed in 0..8 {
        let boxes = uniform_in(600, [8.0; 3], seed);
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
                assert_eq!(failed, None, "{error}");
                failed = Some(error);
            }
        }
    }
    let text = failed.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("cuMemcpyPeerAsync"), "{text}");
    Ok(())
}
