//! The rounds of the sort: in each a piece of every rank travels, while the piece before is merged.

use super::elements::{Elements, Kept};
use super::kernels::Kernels;
use crate::device::exchange::split;
use crate::device::transport::DeviceTransport;
use crate::error::{Result, WORDS, agree, fault};
use crate::{Cause, Transport, TransportError};
use gpu::{Event, Slice, SliceMut, Stream};
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

    /// Returns what goes to each rank in a round: ranges of the sorted elements of this one.
    fn sent(&self, piece: usize) -> Vec<Range<usize>> {
        let own = &self.all[self.rank * self.ranks * self.pieces..];
        let range = |to: usize| {
            let part = to * self.pieces + piece;
            let start: usize = own[..part].iter().sum();
            start..start + own[part]
        };
        (0..self.ranks).map(range).collect()
    }
}

/// Memory for what comes in two rounds, and for runs between two levels of merges.
#[derive(Default)]
pub(super) struct Pieces {
    came: [Kept; 2],
    spare: Kept,
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
    /// Runs between two levels of merges.
    spare: Elements<'a>,
    sorted: Elements<'a>,
    merged: usize,
}

impl<'a> Rounds<'a> {
    /// Reserves what the rounds need. The streams are that of the elements, and one to merge on.
    pub(super) fn new(
        (stream, merging): (&'a Stream, &'a Stream),
        kernels: Kernels,
        (own, pieces): (Elements<'a>, &'a mut Pieces),
        sorted: Elements<'a>,
        counts: &Counts,
    ) -> Result<Self, Cause> {
        let longest = counts.of_rounds().max().unwrap_or(0);
        let between = if counts.ranks > 2 { longest } else { 0 };
        let form = own.form;
        let [first, second] = &mut pieces.came;
        Ok(Self {
            came: [
                (first.reserve(stream, longest, form)?, None),
                (second.reserve(stream, longest, form)?, None),
            ],
            spare: pieces.spare.reserve(stream, between, form)?,
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

    /// Queues the merges of the runs that came in a round: a tree, whose last merge goes to the
    /// result.
    pub(super) fn merge(&mut self, counts: &Counts, piece: usize) -> Result<(), Cause> {
        let mut ends = vec![0];
        for count in counts.received(piece) {
            ends.push(ends[ends.len() - 1] + count);
        }
        self.merging.wait(&self.stream.record()?)?;
        let (mut from, mut to) = (&self.came[0].0, &self.spare);
        while ends.len() > 3 {
            let mut merged = vec![0];
            for pair in ends[1..].chunks(2) {
                let (begin, end) = (merged[merged.len() - 1], pair[pair.len() - 1]);
                let runs = (from, [begin, pair[0], end]);
                self.kernels.merge(self.merging, runs, (to, begin))?;
                merged.push(end);
            }
            ends = merged;
            (from, to) = (to, from);
        }
        if let [begin, middle, end] = ends[..] {
            let runs = (from, [begin, middle, end]);
            self.kernels
                .merge(self.merging, runs, (&self.sorted, self.merged))?;
            self.merged += end;
        }
        self.came[0].1 = Some(self.merging.record()?);
        Ok(())
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
