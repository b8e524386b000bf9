//! The end of a sort by segments (`kernels/dist/segments.cu`): the keys of all ranks that have the
//! same highest bits, by which each rank has sorted its own.

use super::counts::Counts;
use super::elements::{Elements, Form};
use crate::device::abi::{self, Run, Source};
use crate::device::exchange::split;
use crate::device::kernels::THREADS;
use crate::device::transport::DeviceTransport;
use crate::device::tuning::{NOT_TRIED, SEGMENT_SHAPES};
use crate::error::{Result, WORDS, agree, failed, fault};
use crate::{Cause, TransportError};
use bytemuck::Zeroable;
use gpu::{ByValue, Device, Grow, Kernel, Launch, Memory, Slice, SliceMut, Stream, args, blocks};
use gpusort::internals::KeyOrder;
use gpusort::{KeyType, Order};
use std::ops::Range;

/// The bits of a segment: those of two digits of a sort.
const BITS: Range<u32> = 9..17;
/// Bytes of shared memory for each rank.
const RANK_BYTES: usize = 24;

/// The kernels for a form of elements.
pub(super) struct Segments {
    starts: Kernel,
    cuts: Kernel,
    finishes: Vec<Finish>,
    order: KeyOrder,
    form: Form,
    ranks: usize,
    /// The next sorts that are not tried by segments.
    not_tried: u32,
}

/// The kernel for a shape.
struct Finish {
    kernel: Kernel,
    threads: u32,
    places: u32,
    shared: u32,
}

/// How elements are divided, which all ranks know.
#[derive(Clone, Copy)]
pub(super) struct Division {
    /// The bits of a segment.
    pub(super) bits: u32,
    /// The parts of each rank.
    pieces: usize,
    /// The most elements of a segment.
    places: u64,
}

impl Division {
    /// Returns how `n` elements of all ranks are divided, if there are `least` and a block could
    /// sort a mean segment with some to spare. That has `mean` keys or up to twice as many, if the
    /// bits allow it. Blocks of all devices have room for `places`.
    pub(super) fn new(
        form: Form,
        n: u64,
        (least, mean): (u64, u64),
        (places, pieces): (u64, usize),
    ) -> Option<Self> {
        let bits = (n / mean.max(1)).max(1).ilog2();
        let bits = bits.clamp(BITS.start, BITS.end - 1);
        // With values, what a block sorts is words of 32 bits: those of a key below its segment's,
        // and where it is in the segment, for which that leaves `bits`.
        let places = if form.value_bytes > 0 {
            places.min(1 << bits)
        } else {
            places
        };
        let possible = places > 0 && n >= least.max(1) && n >> bits <= places / 16 * 15;
        possible.then_some(Self {
            bits,
            pieces,
            places,
        })
    }
}

/// What is kept for later sorts: the kernels for each form that was sorted, and memory.
#[derive(Default)]
pub(super) struct Prepared {
    kernels: Vec<Segments>,
    memory: Tables,
}

/// Memory for the tables.
#[derive(Default)]
struct Tables {
    starts: Grow<u32>,
    cuts: Grow<u64>,
}

/// Where segments begin in the elements of each rank, and which each rank gets.
pub(super) struct Cuts<'a> {
    /// For each rank where its segments begin.
    starts: SliceMut<'a, u32>,
    /// For each part, and behind the last: its first segment, then where that begins on each rank.
    cuts: Vec<u64>,
    /// The bits of a segment.
    bits: u32,
    ranks: usize,
    pieces: usize,
    shape: usize,
}

impl Prepared {
    /// Returns the most elements of a segment that a block of the device sorts, or 0 if elements of
    /// that form are not sorted by segments, or not this time.
    pub(super) fn places(&mut self, device: &Device, form: Form, ranks: usize) -> u64 {
        if form.key.bits() != 32 || (form.value_bytes == 0 && form.key == KeyType::F32) {
            return 0;
        }
        if let Some(kernels) = self.kernels_for(form, ranks).filter(|k| k.not_tried > 0) {
            kernels.not_tried -= 1;
            return 0;
        }
        let places = shapes(device, form, ranks).map(|(threads, items, _)| threads * items);
        places.max().unwrap_or(0).into()
    }

    /// Elements of that form were sorted by segments in vain. That costs two thirds of a sort, so
    /// the next ones, which may be alike, are not tried.
    pub(super) fn was_vain(&mut self, form: Form, ranks: usize) {
        if let Some(kernels) = self.kernels_for(form, ranks) {
            kernels.not_tried = NOT_TRIED;
        }
    }

    fn kernels_for(&mut self, form: Form, ranks: usize) -> Option<&mut Segments> {
        let mut kernels = self.kernels.iter_mut();
        kernels.find(|kernels| kernels.are_for(form, ranks))
    }
}

impl Segments {
    fn new(device: &Device, form: Form, ranks: usize) -> gpu::Result<Self> {
        let image = match form.value_bytes {
            0 => &radsweep_kernels::DIST_SEGMENTS_0,
            4 => &radsweep_kernels::DIST_SEGMENTS_4,
            _ => &radsweep_kernels::DIST_SEGMENTS_8,
        };
        let module = device.load(image.name, image.ptx())?;
        let kind = if form.key == KeyType::F32 {
            "float"
        } else {
            "integer"
        };
        let finish = |(threads, items, shared)| -> gpu::Result<_> {
            let kernel =
                module.kernel(&format!("dist_segments_finish_{kind}_{threads}x{items}"))?;
            kernel.set_max_dynamic_shared(shared)?;
            Ok(Finish {
                kernel,
                threads,
                places: threads * items,
                shared,
            })
        };
        let finishes = shapes(device, form, ranks).map(finish);
        let finishes = finishes.collect::<gpu::Result<_>>()?;
        Ok(Self {
            starts: module.kernel("dist_segments_starts")?,
            cuts: module.kernel("dist_segments_cuts")?,
            finishes,
            order: KeyOrder::new(form.key, Order::Ascending, 0..form.key.bits()),
            form,
            ranks,
            not_tried: 0,
        })
    }

    /// Tells whether these are the kernels for a form of elements on so many ranks.
    fn are_for(&self, form: Form, ranks: usize) -> bool {
        let of = |form: Form| (form.key, form.value_bytes);
        of(self.form) == of(form) && self.ranks == ranks
    }

    /// Divides the segments of all ranks, whose elements are sorted by them, among the parts of
    /// each rank. Returns none, on all ranks, if a segment has more elements than a block sorts, or
    /// if a rank would get more than twice its share.
    pub(super) fn divide<'a>(
        transport: &mut dyn DeviceTransport,
        stream: &Stream,
        prepared: &'a mut Prepared,
        sorted: Result<&Elements, Cause>,
        division: Division,
    ) -> Result<Option<(&'a Self, Cuts<'a>)>> {
        let bits = division.bits;
        let (rank, ranks) = (transport.rank(), transport.size());
        let Prepared { kernels, memory } = prepared;
        let made = sorted.and_then(|own| {
            let segments = loaded(kernels, stream.device(), own.form, ranks)?;
            let width = (1 << bits) + 1;
            let starts = memory.starts.reserve(stream, ranks * width)?;
            let tables = abi::Tables {
                starts: starts.device_ptr(),
                bits,
                ..abi::Tables::zeroed()
            };
            let launch = Launch::linear(blocks(width, THREADS), THREADS);
            let (keys, n) = (own.keys(), own.len() as u32);
            stream.using(&[starts.memory()?], || {
                // SAFETY: a rank has a word for each segment, and one more.
                unsafe {
                    stream.launch(
                        &segments.starts,
                        &launch,
                        &args![
                            keys,
                            n,
                            ByValue(segments.order),
                            ByValue(tables),
                            rank as u32
                        ],
                    )
                }
            })?;
            Ok((segments, starts, width))
        });
        let rows = transport.all_gather(&fault(&made))?;
        agree(&rows, WORDS, (rank, &made))?;
        let (segments, mut starts, width) = made.map_err(failed(rank))?;
        exchange(transport, stream, starts.reborrow(), width)?;
        let found = segments.cut(stream, (starts, &mut memory.cuts), division);
        let rows = transport.all_gather(&fault(&found))?;
        agree(&rows, WORDS, (rank, &found))?;
        let cuts = found.map_err(failed(rank))?;
        Ok(cuts.map(|cuts| (segments, cuts)))
    }

    fn cut<'a>(
        &self,
        stream: &Stream,
        (starts, cuts): (SliceMut<'a, u32>, &mut Grow<u64>),
        division: Division,
    ) -> Result<Option<Cuts<'a>>, Cause> {
        let Division {
            bits,
            pieces,
            places,
        } = division;
        let ranks = self.ranks;
        let parts = ranks * pieces;
        let count = (parts + 1) * (ranks + 1);
        let mut cuts = cuts.reserve(stream, count + 1)?;
        stream.fill_bytes(cuts.reborrow(), 0)?;
        let (to, largest) = cuts.reborrow().split_at(count)?;
        let tables = abi::Tables {
            starts: starts.device_ptr(),
            cuts: to.device_ptr(),
            largest: largest.device_ptr(),
            bits,
            ranks: ranks as u32,
            parts: parts as u32,
            padding: 0,
        };
        let threads = (1_usize << bits).max(parts + 1);
        let launch = Launch::linear(blocks(threads, THREADS), THREADS);
        let memory = [starts.memory()?, cuts.memory()?];
        stream.using(&memory, || {
            // SAFETY: all ranks have a word for each segment, and one more, and there is memory for
            // the cuts.
            unsafe { stream.launch(&self.cuts, &launch, &args![ByValue(tables)]) }
        })?;
        let mut cuts = stream.to_vec(cuts.as_slice())?;
        let largest = cuts.pop().unwrap_or(0);
        let fits = |finish: &Finish| largest <= u64::from(finish.places);
        let found = self.finishes.iter().position(fits);
        let found = found.filter(|_| largest <= places).map(|shape| Cuts {
            starts,
            cuts,
            bits,
            ranks,
            pieces,
            shape,
        });
        Ok(found.filter(Cuts::are_fair))
    }

    /// Returns where the elements of each rank are, for [`Segments::finish`], if `runs` are those
    /// of a piece of a rank.
    pub(super) fn sources(
        &self,
        cuts: &Cuts,
        (rank, piece): (usize, usize),
        runs: &[Run],
    ) -> Vec<Source> {
        let part = cuts.of_part(rank * cuts.pieces + piece);
        let width = (1 << cuts.bits) + 1;
        let starts = cuts.starts.device_ptr();
        let source = |(rank, run): (usize, &Run)| {
            let run = self.form.element(*run, part[rank + 1]);
            Source {
                keys: run.keys,
                values: run.values,
                starts: starts.byte_add((4 * rank * width) as u64),
            }
        };
        runs.iter().enumerate().map(source).collect()
    }

    /// Sorts the segments of a piece of a rank, from their sources to the result of the rank.
    ///
    /// # Safety
    ///
    /// The sources have as many elements as the cuts say, and so has the result for all pieces.
    /// None of that memory is freed before the stream is done.
    pub(super) unsafe fn finish(
        &self,
        stream: &Stream,
        cuts: &Cuts,
        (rank, piece): (usize, usize),
        (sources, to): (Slice<Source>, &Elements),
    ) -> gpu::Result<()> {
        let [part, next] = [0, 1].map(|more| cuts.of_part(rank * cuts.pieces + piece + more));
        let (first, to) = (part[0] as u32, to.run(0, 0));
        let count = next[0] as u32 - first;
        if count == 0 {
            return Ok(());
        }
        let segments = abi::Segments {
            sources: sources.device_ptr(),
            keys: [to.keys; 3],
            values: [to.values; 3],
            order: self.order,
            before: cuts.before(rank * cuts.pieces),
            ranks: cuts.ranks as u32,
            first,
            segment_bits: cuts.bits,
            flags: 0,
            minus_one: u32::MAX,
            padding: 0,
        };
        let finish = &self.finishes[cuts.shape];
        let launch = Launch::linear(count, finish.threads).dynamic_shared(finish.shared);
        stream.using(&[cuts.memory()?], || {
            // SAFETY: the caller's promise; no segment has more elements than the shape.
            unsafe { stream.launch(&finish.kernel, &launch, &args![ByValue(segments)]) }
        })
    }
}

impl Cuts<'_> {
    fn of_part(&self, part: usize) -> &[u64] {
        let width = self.ranks + 1;
        &self.cuts[part * width..(part + 1) * width]
    }

    /// Returns the elements of all ranks before a part.
    fn before(&self, part: usize) -> u64 {
        self.of_part(part)[1..].iter().sum()
    }

    /// Tells whether no rank gets more than twice its share.
    fn are_fair(&self) -> bool {
        let ends: Vec<u64> = (0..=self.ranks)
            .map(|rank| self.before(rank * self.pieces))
            .collect();
        let most = (2 * ends[self.ranks]).div_ceil(self.ranks as u64);
        ends.windows(2).all(|ends| ends[1] - ends[0] <= most)
    }

    fn memory(&self) -> gpu::Result<Memory> {
        self.starts.memory()
    }

    /// Returns the elements of each rank in each part.
    pub(super) fn counts(&self, rank: usize) -> Counts {
        let all = (0..self.ranks).flat_map(|from| {
            let start = move |part: usize| self.of_part(part)[from + 1];
            (0..self.ranks * self.pieces).map(move |part| (start(part + 1) - start(part)) as usize)
        });
        Counts::new((rank, self.ranks), self.pieces, all.collect())
    }
}

/// Returns the kernels for a form, and loads them if that was not done.
fn loaded<'a>(
    kept: &'a mut Vec<Segments>,
    device: &Device,
    form: Form,
    ranks: usize,
) -> gpu::Result<&'a Segments> {
    let found = kept.iter().position(|kernels| kernels.are_for(form, ranks));
    let at = match found {
        Some(at) => at,
        None => {
            kept.push(Segments::new(device, form, ranks)?);
            kept.len() - 1
        }
    };
    Ok(&kept[at])
}

/// Tells all ranks where the segments of each begin: `width` words of each rank.
fn exchange(
    transport: &mut dyn DeviceTransport,
    stream: &Stream,
    starts: SliceMut<u32>,
    width: usize,
) -> Result<(), TransportError> {
    let (rank, ranks) = (transport.rank(), transport.size());
    let mut rows = split(starts, &vec![width; ranks])?;
    let (none, own) = rows.remove(rank).split_at(0)?;
    rows.insert(rank, none);
    let own = own.into_slice().cast::<u8>()?;
    let mut outgoing = vec![own; ranks];
    outgoing[rank] = own.range(..0)?;
    let incoming: gpu::Result<Vec<_>> = rows.into_iter().map(|row| row.cast::<u8>()).collect();
    transport.exchange_device(stream, &outgoing, &mut incoming?)
}

/// Returns the shapes that the device has the shared memory for: threads, keys of a thread, and the
/// bytes of shared memory.
fn shapes(
    device: &Device,
    form: Form,
    ranks: usize,
) -> impl Iterator<Item = (u32, u32, u32)> + use<> {
    let most = device.info().shared_per_block_optin;
    let shapes = SEGMENT_SHAPES.into_iter();
    let shapes = shapes.map(move |(threads, items)| {
        let shared = shared_bytes(threads, items, form.value_bytes, ranks);
        (threads, items, shared)
    });
    shapes.filter(move |&(_, _, shared)| shared <= most)
}

/// The bytes of `Shared` in `kernels/sort/onesweep_finish.cuh`, and of the ranks behind it.
fn shared_bytes(threads: u32, items: u32, value_bytes: usize, ranks: usize) -> u32 {
    let (warps, keys) = (threads / 32, threads * items);
    let counters = 4 * (warps * 256 + 32) + 4 * warps + 16;
    let exchange = (4 * (keys + 16)).max(keys * value_bytes as u32);
    counters + exchange + 16 + (ranks * RANK_BYTES) as u32
}
