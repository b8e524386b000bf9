//! How much travels between devices, and the exchange itself.

use super::transport::DeviceTransport;
use crate::error::{Result, WORDS, agree, fault};
use crate::{Cause, Error, Transport, TransportError};
use bytemuck::Pod;
use gpu::{Scratch, Slice, SliceMut, Stream};

/// Units that each rank sends to each: `kinds` numbers for each of all pairs of ranks.
pub(crate) struct Flow {
    rank: usize,
    ranks: usize,
    kinds: usize,
    counts: Vec<u64>,
}

/// The memory in which units of some bytes arrive, on the device of a stream.
pub(crate) struct Inbox<'a> {
    pub(crate) memory: &'a mut Scratch,
    pub(crate) stream: &'a Stream,
    pub(crate) unit: usize,
}

impl Inbox<'_> {
    fn reserve(&mut self, units: u64) -> Result<(), Cause> {
        self.memory
            .reserve(self.stream, units as usize * self.unit)?;
        Ok(())
    }
}

impl Flow {
    /// Tells all ranks what this one sends to each, `kinds` numbers a rank, or that it failed. If
    /// it succeeds, it does on all ranks, and the memory of each suffices for what comes.
    ///
    /// Ranks also tell their capacities, so that one more gather is needed only where some
    /// must grow.
    pub(crate) fn agree<S>(
        transport: &mut dyn Transport,
        state: Result<S, Cause>,
        (counts, kinds): (impl Fn(&S) -> Vec<u64>, usize),
        inbox: &mut Inbox,
    ) -> Result<(Self, S)> {
        let (rank, ranks) = (transport.rank(), transport.size());
        let capacity = (inbox.memory.capacity() / inbox.unit) as u64;
        let mut row = [&fault(&state)[..], &[capacity]].concat();
        row.extend(state.as_ref().map_or_else(|_| Vec::new(), counts));
        let width = WORDS + 1 + ranks * kinds;
        row.resize(width, 0);
        let rows = transport.all_gather(&row)?;
        agree(&rows, width, (rank, &state))?;
        let state = state.map_err(|cause| Error::Rank { rank, cause })?;
        let rows = || rows.chunks_exact(width);
        let flow = Self {
            rank,
            ranks,
            kinds,
            counts: rows().flat_map(|row| &row[WORDS + 1..]).copied().collect(),
        };
        let grows = |(rank, row): (usize, &[u64])| row[WORDS] < flow.received_by(rank);
        if rows().enumerate().any(grows) {
            let state = match flow.received_by(rank) {
                units if units > capacity => inbox.reserve(units),
                _ => Ok(()),
            };
            let rows = transport.all_gather(&fault(&state))?;
            agree(&rows, WORDS, (rank, &state))?;
        }
        Ok((flow, state))
    }

    /// Returns what one rank sends to another, by kind.
    pub(crate) fn between(&self, from: usize, to: usize) -> &[u64] {
        let start = (from * self.ranks + to) * self.kinds;
        &self.counts[start..start + self.kinds]
    }

    /// Returns what comes from a rank, by kind.
    pub(crate) fn from(&self, rank: usize) -> &[u64] {
        self.between(rank, self.rank)
    }

    /// Returns what comes from all ranks, of a kind.
    pub(crate) fn received(&self, kind: usize) -> u64 {
        (0..self.ranks).map(|rank| self.from(rank)[kind]).sum()
    }

    /// Returns what travels in all, of a kind.
    pub(crate) fn all(&self, kind: usize) -> u64 {
        self.counts.iter().skip(kind).step_by(self.kinds).sum()
    }

    fn received_by(&self, rank: usize) -> u64 {
        let from = |other| self.between(other, rank).iter().sum::<u64>();
        (0..self.ranks).map(from).sum()
    }

    /// Sends what lies on the device, side by side in the order of the ranks, to the
    /// inboxes, and returns what came in the same order. Nothing travels if no rank sends anything.
    pub(crate) fn exchange<'a>(
        &self,
        transport: &mut dyn DeviceTransport,
        outgoing: Slice<impl Pod>,
        inbox: Inbox<'a>,
    ) -> Result<Slice<'a, u8>, TransportError> {
        let bytes = |units: &[u64]| units.iter().sum::<u64>() as usize * inbox.unit;
        let ranks = 0..self.ranks;
        let received: Vec<usize> = ranks.clone().map(|rank| bytes(self.from(rank))).collect();
        let mut all = inbox.memory.reserve(inbox.stream, received.iter().sum())?;
        if self.counts.iter().any(|&count| count > 0) {
            let mut left = outgoing.cast::<u8>()?;
            let mut sent = Vec::with_capacity(self.ranks);
            for to in ranks {
                let end = bytes(self.between(self.rank, to));
                sent.push(left.range(..end)?);
                left = left.range(end..)?;
            }
            let mut incoming = split(all.reborrow(), &received)?;
            transport.exchange_device(inbox.stream, &sent, &mut incoming)?;
        }
        Ok(all.into_slice())
    }
}

/// Divides memory into parts of these lengths.
pub(crate) fn split<'a, T: Pod>(
    memory: SliceMut<'a, T>,
    lengths: &[usize],
) -> gpu::Result<Vec<SliceMut<'a, T>>> {
    let mut left = memory;
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (part, rest) = left.split_at(length)?;
        parts.push(part);
        left = rest;
    }
    Ok(parts)
}
