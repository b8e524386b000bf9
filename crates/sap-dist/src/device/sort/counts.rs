//! How many elements of each rank go to each rank in each round.

use crate::error::{Result, WORDS, agree, fault};
use crate::{Cause, Transport};
use std::mem;
use std::ops::Range;

/// The elements of each rank in each part of all elements.
pub(super) struct Counts {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    pub(super) pieces: usize,
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

    /// Counts that all ranks know.
    pub(super) fn new((rank, ranks): (usize, usize), pieces: usize, all: Vec<usize>) -> Self {
        Self {
            rank,
            ranks,
            pieces,
            all,
        }
    }

    /// Returns the elements of a rank in a piece of another.
    fn between(&self, from: usize, to: usize, piece: usize) -> usize {
        self.all[(from * self.ranks + to) * self.pieces + piece]
    }

    /// Returns how much comes in each round.
    pub(super) fn of_rounds(&self) -> impl Iterator<Item = usize> {
        (0..self.pieces).map(|piece| self.received(piece).iter().sum())
    }

    /// Returns what each rank has for this one in a round.
    pub(super) fn received(&self, piece: usize) -> Vec<usize> {
        let ranks = 0..self.ranks;
        ranks
            .map(|from| self.between(from, self.rank, piece))
            .collect()
    }

    /// Returns how much comes from other ranks in a round.
    pub(super) fn come(&self, piece: usize) -> usize {
        let received = self.received(piece);
        received.iter().sum::<usize>() - received[self.rank]
    }

    /// Returns which of the sorted elements of a rank go to another in a round.
    pub(super) fn range(&self, from: usize, to: usize, piece: usize) -> Range<usize> {
        let of_rank = &self.all[from * self.ranks * self.pieces..];
        let part = to * self.pieces + piece;
        let start: usize = of_rank[..part].iter().sum();
        start..start + of_rank[part]
    }

    /// Returns what goes to each rank in a round.
    pub(super) fn sent(&self, piece: usize) -> Vec<Range<usize>> {
        let ranks = 0..self.ranks;
        ranks.map(|to| self.range(self.rank, to, piece)).collect()
    }
}
