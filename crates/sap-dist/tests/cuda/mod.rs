//! The trials of ranks on devices. Without a device all are ignored, and the reason is printed;
//! with `RADSWEEP_REQUIRE_CUDA=1` that is a failure.

mod cost;
mod devices;
mod faults;
mod ids;
pub mod nccl;
mod pairs;
mod peers;
mod sort;

use crate::common::{LIMIT, Part, Scene, compare};
use gpu::{Slice, SliceMut};
use libtest_mimic::{Failed, Trial};
use sap_dist::{
    Config, DeviceDistributed, DeviceFrame, DeviceTransport, Nccl, Peers, Report, Result, Staged,
    Threads, Transport,
};
use std::sync::OnceLock;

/// A check.
type Check = fn() -> Result<(), Failed>;

/// Opens all devices.
fn open() -> gpu::Result<Vec<gpu::Device>> {
    let first = gpu::Device::first()?;
    let others = (0..gpu::Device::count()?).map(gpu::Device::open);
    Ok([first].into_iter().chain(others.flatten()).collect())
}

pub fn trials() -> Vec<Trial> {
    let all = pairs::ALL.iter().chain(ids::ALL).chain(faults::ALL);
    let all = all
        .chain(cost::ALL)
        .chain(devices::ALL)
        .chain(peers::ALL)
        .chain(sort::ALL);
    let mut trials: Vec<Trial> = all.map(|&(name, check)| Trial::test(name, check)).collect();
    trials.extend(nccl::trials());
    let error = match open() {
        Ok(devices) => {
            // The ranks of a check are threads that come and go. While the process keeps the
            // devices open, none of them is closed and opened again.
            static KEPT: OnceLock<Vec<gpu::Device>> = OnceLock::new();
            KEPT.get_or_init(|| devices);
            return trials;
        }
        Err(error) => error,
    };
    if std::env::var("RADSWEEP_REQUIRE_CUDA").is_ok_and(|value| value == "1") {
        return vec![Trial::test("device", move || {
            Err(format!("no CUDA device: {error}").into())
        })];
    }
    eprintln!("all trials are ignored: {error}");
    trials
        .into_iter()
        .map(|trial| trial.with_kind("no CUDA device").with_ignored_flag(true))
        .collect()
}

/// Returns `full`, or `short` in a quick run.
fn unless_quick<T>(full: T, short: T) -> T {
    let quick = std::env::var_os("RADSWEEP_QUICK").is_some_and(|value| value == "1");
    if quick { short } else { full }
}

/// Divides memory into parts of these lengths.
fn divide<'a>(memory: Slice<'a, u8>, lengths: &[usize]) -> gpu::Result<Vec<Slice<'a, u8>>> {
    let mut start = 0;
    let part = |&length: &usize| {
        start += length;
        memory.range(start - length..start)
    };
    lengths.iter().map(part).collect()
}

/// Does the same with memory that is written.
fn divide_mut<'a>(
    memory: SliceMut<'a, u8>,
    lengths: &[usize],
) -> gpu::Result<Vec<SliceMut<'a, u8>>> {
    let mut left = Some(memory);
    let mut part = |&length: &usize| {
        let (part, rest) = left.take().expect("memory is left").split_at(length)?;
        left = Some(rest);
        Ok(part)
    };
    lengths.iter().map(&mut part).collect()
}

/// Returns the device of a rank.
fn device_of(rank: usize) -> usize {
    rank % gpu::Device::count().unwrap_or(1).max(1)
}

/// How memory goes from device to device.
#[derive(Clone, Copy)]
enum Way {
    Driver,
    Nccl,
    Host,
}

/// How ranks bring their boxes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bring {
    /// Boxes side by side, whose ids are their indices.
    Consecutive,
    /// The same, but odd ranks list the ids.
    OddByIds,
    /// Those whose origin they are, with any ids.
    ByIds,
}

/// A frame of all boxes, and how the ranks divide it.
#[derive(Clone)]
struct Moment {
    scene: Scene,
    bring: Bring,
    /// The share of the first rank, in percent of an equal one.
    share: usize,
    /// Where the boxes of each rank end, instead of equal shares.
    ends: Option<Vec<usize>>,
}

impl Moment {
    fn new(scene: Scene) -> Self {
        Self {
            scene,
            bring: Bring::Consecutive,
            share: 100,
            ends: None,
        }
    }

    /// What a rank brings: boxes side by side.
    fn range(&self, rank: usize, ranks: usize) -> std::ops::Range<usize> {
        if let Some(ends) = &self.ends {
            return rank.checked_sub(1).map_or(0, |before| ends[before])..ends[rank];
        }
        let n = self.scene.boxes.len();
        let first = (n * self.share / 100 / ranks).min(n);
        let border = |rank: usize| match rank {
            0 => 0,
            _ => first + (n - first) * (rank - 1) / (ranks - 1).max(1),
        };
        border(rank)..if rank + 1 == ranks {
            n
        } else {
            border(rank + 1)
        }
    }

    /// What a rank brings, by ascending ids.
    fn part(&self, rank: usize, ranks: usize) -> Scene {
        if self.bring == Bring::ByIds {
            return self.scene.part(rank, ranks).ascending();
        }
        let range = self.range(rank, ranks);
        let mut scene = self.scene.clone();
        scene.origins = (0..scene.boxes.len())
            .map(|i| if range.contains(&i) { rank } else { ranks })
            .collect();
        scene.part(rank, ranks + 1)
    }
}

/// What a rank brings, on its device.
struct OnDevice {
    part: Scene,
    ids: Option<gpu::Buffer<u64>>,
    boxes: gpu::Buffer<sap::Aabb>,
    filters: Option<gpu::Buffer<sap::Filter>>,
    worlds: Option<gpu::Buffer<u32>>,
}

impl OnDevice {
    fn new(stream: &gpu::Stream, moment: &Moment, rank: usize, ranks: usize) -> gpu::Result<Self> {
        let part = moment.part(rank, ranks);
        let lists_ids = match moment.bring {
            Bring::Consecutive => false,
            Bring::OddByIds => rank % 2 == 1,
            Bring::ByIds => true,
        };
        let (filters, worlds) = (part.filters.as_ref(), part.worlds.as_ref());
        Ok(Self {
            ids: lists_ids
                .then(|| stream.from_slice(&part.ids))
                .transpose()?,
            boxes: stream.from_slice(&part.boxes)?,
            filters: filters.map(|all| stream.from_slice(all)).transpose()?,
            worlds: worlds.map(|all| stream.from_slice(all)).transpose()?,
            part,
        })
    }

    fn frame(&self) -> DeviceFrame<'_> {
        let boxes = self.boxes.slice();
        let frame = match &self.ids {
            Some(ids) => DeviceFrame::with_ids(ids.slice(), boxes),
            None => DeviceFrame::from_id(self.part.ids.first().copied().unwrap_or(0), boxes),
        };
        let mut frame = frame.excluded(&self.part.excluded);
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters.slice());
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds.slice());
        }
        frame
    }
}

/// Returns a rank's lists on the host.
fn lists(broad_phase: &DeviceDistributed) -> gpu::Result<[Vec<sap_dist::Pair>; 3]> {
    let stream = broad_phase.stream();
    Ok([
        stream.to_vec(broad_phase.pairs())?,
        stream.to_vec(broad_phase.started())?,
        stream.to_vec(broad_phase.ended())?,
    ])
}

/// Runs the frames on a rank.
fn run<T: DeviceTransport>(
    transport: &mut T,
    broad_phase: &mut DeviceDistributed,
    moments: &[Moment],
) -> Result<Vec<Part>, Failed> {
    let (rank, ranks) = (transport.rank(), transport.size());
    let stream = broad_phase.stream().clone();
    let mut parts = Vec::new();
    for moment in moments {
        let own = OnDevice::new(&stream, moment, rank, ranks)?;
        let report = broad_phase.update(transport, own.frame())?.clone();
        let lists = lists(broad_phase)?;
        for pair in lists.iter().take(2).flatten() {
            if own.part.ids.binary_search(&pair.a).is_err() {
                return Err(format!("{pair:?} belongs to another rank than {rank}").into());
            }
        }
        parts.push(Part { lists, report });
    }
    Ok(parts)
}

/// Runs the frames on some ranks and compares all with one engine on the CPU.
fn check(moments: &[Moment], ranks: usize, config: &Config) -> Result<Vec<Report>, Failed> {
    check_over(Way::Host, moments, ranks, config)
}

/// Does so with memory that goes from device to device in a given way.
fn check_over(
    way: Way,
    moments: &[Moment],
    ranks: usize,
    config: &Config,
) -> Result<Vec<Report>, Failed> {
    let one = |threads: &mut Threads| -> Result<Vec<Part>, Failed> {
        let mut broad_phase = DeviceDistributed::new(config.clone(), device_of(threads.rank()))?;
        match way {
            Way::Driver => {
                let device = broad_phase.stream().device().clone();
                run(
                    &mut Peers::new(threads, &device)?,
                    &mut broad_phase,
                    moments,
                )
            }
            Way::Nccl => {
                let mut transport = Nccl::new(threads, broad_phase.stream(), LIMIT)?;
                run(&mut transport, &mut broad_phase, moments)
            }
            Way::Host => run(&mut Staged::new(threads), &mut broad_phase, moments),
        }
    };
    let parts: Result<Vec<_>, Failed> = Threads::run(ranks, LIMIT, one)?.into_iter().collect();
    let scenes: Vec<Scene> = moments.iter().map(|moment| moment.scene.clone()).collect();
    Ok(compare(&parts?, &scenes, config))
}
