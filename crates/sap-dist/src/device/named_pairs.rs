//! The pairs that a rank finds for others: named by ids, and grouped by the rank that owns them.

use super::abi::{self, Homes, Twice};
use super::kernels::{ITEMS, Kernels, THREADS};
use crate::Cause;
use gpu::{Buffer, ByValue, Launch, Slice, SliceMut, Stream, args, blocks};

/// Pairs by ids, and how many each rank owns.
pub(crate) struct Named {
    lists: Vec<Buffer<abi::Found>>,
    /// Behind the counts is what is found of boxes with the same id.
    owners: Buffer<u64>,
}

/// Pairs in groups by the rank that owns them, and how many each owns.
pub(crate) struct Grouped {
    pub(crate) pairs: Buffer<abi::Found>,
    pub(crate) owners: Vec<u64>,
}

impl Named {
    pub(crate) fn new(stream: &Stream, ranks: usize) -> gpu::Result<Self> {
        Ok(Self {
            lists: Vec::new(),
            owners: stream.alloc_zeroed(ranks + Twice::WORDS)?,
        })
    }

    /// Returns the counts, and what is behind them.
    fn owners(&mut self) -> gpu::Result<(SliceMut<'_, u64>, SliceMut<'_, u64>)> {
        let ranks = self.owners.len() - Twice::WORDS;
        self.owners.slice_mut().split_at(ranks)
    }

    /// Adds the pairs of two sets.
    pub(crate) fn add(
        &mut self,
        kernels: &Kernels,
        pairs: Slice<sap::Pair>,
        between: abi::Between,
    ) -> gpu::Result<u64> {
        let mut named = kernels.stream.alloc::<abi::Found>(pairs.len())?;
        let n = pairs.len() as u64;
        let between = ByValue(between);
        let (owners, twice) = self.owners()?;
        // SAFETY: the indices of the pairs are of these names, whose ranks have a count each.
        unsafe {
            kernels.for_each(
                &kernels.name,
                pairs.len(),
                &args![pairs, n, between, named.slice_mut(), owners, twice],
            )?
        };
        self.lists.push(named);
        Ok(n)
    }

    /// Adds the pairs among the homes of which not both boxes are of this rank, and returns the
    /// others.
    pub(crate) fn divide(
        &mut self,
        kernels: &Kernels,
        pairs: Slice<sap::Pair>,
        homes: Homes,
    ) -> gpu::Result<Buffer<sap::Pair>> {
        let (stream, n) = (&kernels.stream, pairs.len() as u64);
        let launch = Launch::linear(blocks(pairs.len(), ITEMS).max(1), THREADS);
        let mut counts = stream.alloc::<u32>(blocks(pairs.len(), ITEMS).max(1) as usize)?;
        // SAFETY: there is a count for each block.
        unsafe {
            stream.launch(
                &kernels.kept,
                &launch,
                &args![pairs, n, homes.own, counts.slice_mut()],
            )?
        };
        let before = kernels.sums(counts.slice())?;
        let kept = kernels.last(&before)?;
        let mut own = stream.alloc::<sap::Pair>(kept as usize)?;
        let mut named = stream.alloc::<abi::Found>((n - kept) as usize)?;
        let homes = ByValue(homes);
        let (owners, twice) = self.owners()?;
        // SAFETY: the kept pairs were counted, and the indices of the pairs are of these homes.
        unsafe {
            stream.launch(
                &kernels.keep,
                &launch,
                &args![
                    pairs,
                    n,
                    homes,
                    before.slice(),
                    own.slice_mut(),
                    named.slice_mut(),
                    owners,
                    twice
                ],
            )?
        };
        self.lists.push(named);
        Ok(own)
    }

    /// Groups all pairs by the rank that owns them. It is an error if the boxes of one have the
    /// same id.
    pub(crate) fn group(self, kernels: &Kernels) -> Result<Grouped, Cause> {
        let stream = &kernels.stream;
        let mut owners = stream.to_vec(self.owners.slice())?;
        Twice::check(&owners.split_off(owners.len() - Twice::WORDS))?;
        let mut sum = 0;
        let starts = owners.iter().map(|count| {
            sum += count;
            sum - count
        });
        let mut next = stream.from_slice(&starts.collect::<Vec<u64>>())?;
        let mut all = stream.alloc::<abi::Found>(sum as usize)?;
        for list in &self.lists {
            let n = list.len() as u64;
            // SAFETY: the counts of all lists give each owner's group its memory.
            unsafe {
                kernels.for_each(
                    &kernels.group,
                    list.len(),
                    &args![list.slice(), n, next.slice_mut(), all.slice_mut()],
                )?
            };
        }
        Ok(Grouped { pairs: all, owners })
    }
}
