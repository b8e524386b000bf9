//! The rounds of the sort: in each a piece of every rank travels, while the piece before is merged.

use super::elements::{Elements, Kept};
use super::kernels::Kernels;
use crate::device::abi::Run;
use crate::device::exchange::split;
use crate::device::transport::{DeviceTransport, Lent};
use crate::error::{Result, WORDS, agree, fault};
use crate::{Cause, Transport, TransportError};
use gpu::{Event, Scratch, Slice, SliceMut, Stream};
use std::mem;
use std::ops::Range;

/// The elements of each rank in each part of all elements.
pub(super) struct Counts {
    rank: usize,
    ranks: usize,
    pieces: usize,
    /// By rank, then by part: the pieces of the first rank, those of the second, and so on.
    all: Vec<usize>,
}

impl Counts {
    /// Tells all ranks where the parts of this one end, or that it failed.
    pub(super) fn agree(
        transport: &mut dyn Transport,
        ends: &Result<Vec<u64>, Cause>,
        pieces: usize,
    ) -> Result<Self> {
        let (rank, ranks) = (transport.rank(), transport.size());
        let parts = ranks * pieces;
        let mut start = 0;
        let mut row = fault(ends).to_vec();
        row.extend(
            ends.iter()
                .flatten()
                .map(|end| end.saturating_sub(mem::replace(&mut start, *end))),
        );
        row.resize(WORDS + parts, 0);
        let rows = transport.all_gather(&row)?;
        agree(&rows, WORDS + parts, (rank, ends))?;
        let of_ranks = rows.chunks_exact(WORDS + parts);
        let all = of_ranks.flat_map(|row| &row[WORDS..]);
        Ok(Self {
            rank,
            ranks,
            pieces,
            all: all.map(|&count| count as usize).collect(),
        })
    }

    /// Makes one piece of all pieces of a rank.
    pub(super) fn in_one_piece(self) -> Self {
        let of_ranks = self.all.chunks_exact(self.pieces);
        Self {
            pieces: 1,
            all: of_ranks.map(|pieces| pieces.iter().sum()).collect(),
            ..self
        }
    }

    /// Returns the elements of a rank in a piece of another.
    fn between(&self, from: usize, to: usize, piece: usize) -> usize {
        self.all[(from * self.ranks + to) * self.pieces + piece]
    }

    /// Returns the number of rounds.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns how much comes in each round.
    pub(super) fn of_rounds(&self) -> impl Iterator<Item = usize> {
        (0..self.pieces).map(|piece| self.received(piece).iter().sum())
    }

    /// Returns what comes from each rank in a round.
    fn received(&self, piece: usize) -> Vec<usize> {
        let ranks = 0..self.ranks;
        ranks
            .map(|from| self.between(from, self.rank, piece))
            .collect()
    }

    /// Returns which of the sorted elements of a rank go to another in a round.
    fn range(&self, from: usize, to: usize, piece: usize) -> Range<usize> {
        let of_rank = &self.all[from * self.ranks * self.pieces..];
        let part = to * self.pieces + piece;
        let start: usize = of_rank[..part].iter().sum();
        start..start + of_rank[part]
    }

    /// Returns what goes to each rank in a round.
    fn sent(&self, piece: usize) -> Vec<Range<usize>> {
        let ranks = 0..self.ranks;
        ranks.map(|to| self.range(self.rank, to, piece)).collect()
    }
}

/// Memory for what comes in two rounds, and for runs between two levels of merges.
#[derive(Default)]
pub(super) struct Pieces {
    came: [Kept; 2],
    spare: Kept,
    /// The splits of a merge.
    splits: Scratch,
}

/// What a rank sorted itself, what comes, and what it makes of that.
pub(super) struct Rounds<'a> {
    stream: &'a Stream,
    /// Merges while the next round travels.
    merging: &'a Stream,
    kernels: Kernels,
    own: Elements<'a>,
    /// What came in this round, and in the one before, with the end of its merges.
    came: [(Elements<'a>, Option<Event>); 2],
    /// What the other ranks have sorted, if this one can read it there. Then nothing comes.
    lent: Option<Lent>,
    /// Runs between two levels of merges.
    spare: Elements<'a>,
    splits: SliceMut<'a, u64>,
    sorted: Elements<'a>,
    merged: usize,
}

impl<'a> Rounds<'a> {
    /// Reserves what the rounds need. The streams are that of the elements, and one to merge on.
    pub(super) fn new(
        (stream, merging): (&'a Stream, &'a Stream),
        kernels: Kernels,
        (own, lent): (Elements<'a>, Option<Lent>),
        pieces: &'a mut Pieces,
        sorted: Elements<'a>,
        counts: &Counts,
    ) -> Result<Self, Cause> {
        let longest = counts.of_rounds().max().unwrap_or(0);
        let if_used = |used| if used { longest } else { 0 };
        let form = own.form;
        let comes = lent.is_none();
        let [first, second] = &mut pieces.came;
        Ok(Self {
            came: [
                // Above four ranks, also for runs between levels.
                (
                    first.reserve(stream, if_used(comes || counts.ranks > 4), form)?,
                    None,
                ),
                (second.reserve(stream, if_used(comes), form)?, None),
            ],
            spare: pieces
                .spare
                .reserve(stream, if_used(counts.ranks > 2), form)?,
            splits: pieces
                .splits
                .reserve(stream, 8 * kernels.splits(longest))?
                .cast()?,
            lent,
            sorted,
            stream,
            merging,
            kernels,
            own,
            merged: 0,
        })
    }

    /// Exchanges a piece of each rank.
    pub(super) fn exchange(
        &mut self,
        transport: &mut dyn DeviceTransport,
        counts: &Counts,
        piece: usize,
    ) -> Result<(), TransportError> {
        if self.lent.is_some() {
            return Ok(());
        }
        self.came.swap(0, 1);
        let (sent, received) = (counts.sent(piece), counts.received(piece));
        let (came, merged) = &mut self.came[0];
        if let Some(merged) = merged.take() {
            self.stream.wait(&merged)?;
        }
        let form = self.own.form;
        for (bytes, own, came) in [
            (form.key_bytes(), &self.own.keys, &mut came.keys),
            (form.value_bytes, &self.own.values, &mut came.values),
        ] {
            if bytes > 0 {
                let (from, to) = ((own.as_slice(), &*sent), (came.reborrow(), &*received));
                exchange(transport, self.stream, bytes, from, to)?;
            }
        }
        Ok(())
    }

    /// Queues the merges of the runs of a round: a tree, whose last merge goes to the result.
    pub(super) fn merge(&mut self, counts: &Counts, piece: usize) -> Result<(), Cause> {
        let (form, came) = (self.own.form, &self.came[0].0);
        let mut start = 0;
        let run = |from: usize| {
            let range = counts.range(from, counts.rank, piece);
            let at = start;
            start += range.len();
            match &self.lent {
                Some(lent) => {
                    let all = [0, 1].map(|list| lent.address(from, list));
                    form.run(all, range.start, range.len())
                }
                None => came.run(at, range.len()),
            }
        };
        let mut runs: Vec<Run> = (0..counts.ranks).map(run).collect();
        self.merging.wait(&self.stream.record()?)?;
        let all = [came, &self.spare, &self.sorted, &self.own];
        let memory: Result<Vec<_>, _> = all.iter().map(|elements| elements.memory()).collect();
        let memory = [memory?.concat(), vec![self.splits.memory()?]].concat();
        let splits = self.splits.device_ptr();
        let merge = |runs: &[Run], (to, at): (&Elements, usize)| {
            let length = runs.iter().map(|run| run.length as usize).sum();
            let merged = to.run(at, length);
            // SAFETY: the runs are those above or merged ones, and there is memory for as many.
            // What is lent is not freed before `finish` has waited.
            unsafe { (self.kernels).merge(self.merging, form, (runs, splits), merged)? };
            Ok::<_, gpu::Error>(merged)
        };
        let merged = self.merging.using(&memory, || {
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
            merge(&runs, (&self.sorted, self.merged))
        })?;
        self.merged += merged.length as usize;
        self.came[0].1 = Some(self.merging.record()?);
        Ok(())
    }

    /// Waits for all merges.
    pub(super) fn finish(self) -> Result<(), Cause> {
        Ok(self.merging.synchronize()?)
    }
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
