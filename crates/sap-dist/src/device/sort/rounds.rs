//! The rounds of the sort: in each a piece of every rank travels, while the piece before becomes a
//! part of the result.

use super::counts::Counts;
use super::elements::{Elements, Kept};
use super::kernels::Kernels;
use super::segments::{Cuts, Segments};
use crate::device::abi::{Run, Source};
use crate::device::exchange::split;
use crate::device::transport::DeviceTransport;
use crate::{Cause, TransportError};
use gpu::{Event, Grow, Scratch, Slice, SliceMut, Stream};
use std::ops::Range;

/// Memory for what comes in two rounds, and for runs between two levels of merges.
#[derive(Default)]
pub(super) struct Pieces {
    came: [Kept; 2],
    spare: Kept,
    /// The splits of a merge.
    splits: Scratch,
    sources: Grow<Source>,
}

/// How what all ranks have sorted becomes one run.
pub(super) enum Join<'a> {
    Merges(Kernels),
    Segments(&'a Segments, Cuts<'a>),
}

/// What a rank sorted itself, what comes, and what it makes of that.
pub(super) struct Rounds<'a> {
    /// Even rounds travel on the first and odd ones on the other: so a round need not wait until
    /// the senders know that the one before has come.
    streams: [&'a Stream; 2],
    /// Joins what has come, while the next round travels.
    merging: &'a Stream,
    join: Join<'a>,
    own: Elements<'a>,
    /// What came in even rounds and in odd ones, with the end of what was made of it.
    came: [(Elements<'a>, Option<Event>); 2],
    /// Runs between two levels of merges.
    spare: Elements<'a>,
    splits: SliceMut<'a, u64>,
    /// For each round the elements of each rank, if they are joined by segments.
    sources: SliceMut<'a, Source>,
    sorted: Elements<'a>,
    merged: usize,
}

impl<'a> Rounds<'a> {
    /// Reserves what the rounds need. The streams are that of the elements, one for odd rounds, and
    /// one to merge on.
    pub(super) fn new(
        [stream, odd, merging]: [&'a Stream; 3],
        (own, join): (Elements<'a>, Join<'a>),
        pieces: &'a mut Pieces,
        sorted: Elements<'a>,
        counts: &Counts,
    ) -> Result<Self, Cause> {
        let longest = counts.of_rounds().max().unwrap_or(0);
        // What a rank keeps stays where it is.
        let most = (0..counts.pieces).map(|piece| counts.come(piece)).max();
        let form = own.form;
        let (between, splits) = match &join {
            Join::Merges(kernels) => (longest, kernels.splits(longest)),
            Join::Segments(..) => (0, 0),
        };
        // Of more than two runs, merges take turns with two pieces of memory.
        let between = if counts.ranks > 2 { between } else { 0 };
        let most = most.unwrap_or(0).max(between);
        let [first, second] = &mut pieces.came;
        let came = [
            (first.reserve(stream, most, form)?, None),
            (second.reserve(stream, most, form)?, None),
        ];
        let sources: Vec<_> = match &join {
            Join::Merges(_) => Vec::new(),
            Join::Segments(segments, cuts) => (0..counts.pieces)
                .flat_map(|piece| {
                    let runs = runs(&own, &came[piece % 2].0, counts, piece);
                    segments.sources(cuts, (counts.rank, piece), &runs)
                })
                .collect(),
        };
        let mut on_device = pieces.sources.reserve(stream, sources.len())?;
        stream.upload(on_device.reborrow(), &sources)?;
        let spare = pieces.spare.reserve(stream, between, form)?;
        let splits = pieces.splits.reserve(stream, 8 * splits)?.cast()?;
        odd.wait(&stream.record()?)?;
        Ok(Self {
            came,
            spare,
            splits,
            sources: on_device,
            sorted,
            streams: [stream, odd],
            merging,
            join,
            own,
            merged: 0,
        })
    }

    /// Makes the result of this rank. Fails for an exchange that does, and returns whether the
    /// device did.
    pub(super) fn run(
        mut self,
        transport: &mut dyn DeviceTransport,
        counts: &Counts,
    ) -> Result<Result<(), Cause>, TransportError> {
        let mut state = Ok(());
        for piece in 0..counts.pieces {
            // A rank whose device fails still takes part, so that no other waits for it.
            let is_free = self.wait_for_memory(piece);
            self.exchange(transport, counts, piece)?;
            state = state.and(is_free).and_then(|()| self.join(counts, piece));
        }
        Ok(state.and(self.merging.synchronize().map_err(Cause::from)))
    }

    /// Has a round wait until what came two rounds before, to the same memory, is joined.
    fn wait_for_memory(&mut self, piece: usize) -> Result<(), Cause> {
        match self.came[piece % 2].1.take() {
            Some(joined) => Ok(self.streams[piece % 2].wait(&joined)?),
            None => Ok(()),
        }
    }

    /// Exchanges a piece of each rank. What a rank keeps stays where it is.
    fn exchange(
        &mut self,
        transport: &mut dyn DeviceTransport,
        counts: &Counts,
        piece: usize,
    ) -> Result<(), TransportError> {
        let (mut sent, mut received) = (counts.sent(piece), counts.received(piece));
        (sent[counts.rank], received[counts.rank]) = (0..0, 0);
        let (came, stream) = (&mut self.came[piece % 2].0, self.streams[piece % 2]);
        let form = self.own.form;
        for (bytes, own, came) in [
            (form.key_bytes(), &self.own.keys, &mut came.keys),
            (form.value_bytes, &self.own.values, &mut came.values),
        ] {
            if bytes > 0 {
                let (from, to) = ((own.as_slice(), &*sent), (came.reborrow(), &*received));
                exchange(transport, stream, bytes, from, to)?;
            }
        }
        Ok(())
    }

    /// Queues what makes one run of those of a round: behind those of the rounds before.
    fn join(&mut self, counts: &Counts, piece: usize) -> Result<(), Cause> {
        let came = &self.came[piece % 2].0;
        let runs = runs(&self.own, came, counts, piece);
        let length: u64 = runs.iter().map(|run| run.length).sum();
        self.merging.wait(&self.streams[piece % 2].record()?)?;
        let all = [came, &self.spare, &self.sorted, &self.own];
        let memory: Result<Vec<_>, _> = all.iter().map(|elements| elements.memory()).collect();
        let others = vec![self.splits.memory()?, self.sources.memory()?];
        let memory = [memory?.concat(), others].concat();
        self.merging.using(&memory, || match &self.join {
            Join::Merges(kernels) => self.merge(kernels, came, runs),
            Join::Segments(segments, cuts) => {
                let sources = self.sources.as_slice();
                let sources = sources.range(piece * counts.ranks..(piece + 1) * counts.ranks)?;
                let part = (counts.rank, piece);
                // SAFETY: the sources are made of these runs, the result has memory for all, and
                // the stream uses `memory`, so that none of it is freed before.
                unsafe { segments.finish(self.merging, cuts, part, (sources, &self.sorted)) }
            }
        })?;
        self.merged += length as usize;
        self.came[piece % 2].1 = Some(self.merging.record()?);
        Ok(())
    }

    /// Queues the merges of runs: a tree, whose last merge goes to the result.
    fn merge(&self, kernels: &Kernels, came: &Elements, mut runs: Vec<Run>) -> gpu::Result<()> {
        let form = self.own.form;
        let splits = self.splits.device_ptr();
        let merge = |runs: &[Run], (to, at): (&Elements, usize)| {
            let length = runs.iter().map(|run| run.length as usize).sum();
            let merged = to.run(at, length);
            // SAFETY: the runs are those that came or merged ones, there is memory for as many, and
            // the stream uses all of it (`join`), so that none is freed before.
            unsafe { kernels.merge(self.merging, form, (runs, splits), merged)? };
            Ok::<_, gpu::Error>(merged)
        };
        let (mut to, mut next) = (&self.spare, came);
        while runs.len() > 2 {
            let mut at = 0;
            let two = runs.chunks(2).map(|two| {
                let merged = merge(two, (to, at))?;
                at += merged.length as usize;
                Ok(merged)
            });
            runs = two.collect::<gpu::Result<_>>()?;
            (to, next) = (next, to);
        }
        merge(&runs, (&self.sorted, self.merged)).map(|_| ())
    }
}

/// Returns the elements of each rank in a round. Those of the others lie side by side.
fn runs(own: &Elements, came: &Elements, counts: &Counts, piece: usize) -> Vec<Run> {
    let mut start = 0;
    let run = |from: usize| {
        let range = counts.range(from, counts.rank, piece);
        if from == counts.rank {
            return own.run(range.start, range.len());
        }
        let at = start;
        start += range.len();
        came.run(at, range.len())
    };
    (0..counts.ranks).map(run).collect()
}

/// Exchanges ranges of a list whose elements have some bytes. They come side by side.
fn exchange(
    transport: &mut dyn DeviceTransport,
    stream: &Stream,
    bytes: usize,
    (from, sent): (Slice<u8>, &[Range<usize>]),
    (to, received): (SliceMut<u8>, &[usize]),
) -> Result<(), TransportError> {
    let part = |range: &Range<usize>| from.range(range.start * bytes..range.end * bytes);
    let outgoing: gpu::Result<Vec<Slice<u8>>> = sent.iter().map(part).collect();
    let received: Vec<usize> = received.iter().map(|count| count * bytes).collect();
    let mut incoming = split(to, &received)?;
    transport.exchange_device(stream, &outgoing?, &mut incoming)
}
