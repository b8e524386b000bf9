//! Finds all pairs of boxes, list by list where one list is too long.

use super::search::{Arranged, PackedList, Searcher, StoredPairs};
use super::tuning::EXPECTED_GROWTH_SHARE;
use crate::cpu::shared::Clock;
use crate::{Result, Sorts};
use gpusort::wgpu::ReportDownload;
use std::ops::Range;

/// The pairs of boxes that were arranged: counted, and stored as far as the capacity went.
pub(super) struct PairLists<'a> {
    search: &'a mut Searcher,
    arranged: Arranged,
    found: StoredPairs,
    /// How often the capacity was too small.
    pub(super) regrown: u32,
    /// The reports of the sorts of pairs.
    sorts: Vec<ReportDownload>,
}

impl<'a> PairLists<'a> {
    /// Finds the pairs, of which about `expected` are there.
    pub(super) fn new(search: &'a mut Searcher, arranged: Arranged, expected: u64) -> Result<Self> {
        let wanted = expected + expected / EXPECTED_GROWTH_SHARE;
        let capacity = wanted.max(search.pair_capacity()).min(search.max_list);
        let found = search.find(&arranged, &arranged.prepared.rows(), capacity)?;
        Ok(Self {
            regrown: 0,
            sorts: Vec::new(),
            search,
            arranged,
            found,
        })
    }

    pub(super) const fn search(&mut self) -> &mut Searcher {
        self.search
    }

    /// Tells whether the boxes are in columns.
    pub(super) const fn in_columns(&self) -> bool {
        self.arranged.prepared.in_columns
    }

    /// Returns the number of tests, each counted once.
    pub(super) const fn tests(&self) -> u64 {
        self.arranged.tests
    }

    /// Returns the number of entries: of boxes, or of their copies.
    pub(super) const fn copies(&self) -> u64 {
        self.arranged.copies
    }

    /// Returns the exact number of pairs.
    pub(super) const fn count(&self) -> u64 {
        self.found.count
    }

    /// Finds all pairs in order, in lists of at most `max` pairs, or of the pairs of one box. `f`
    /// takes each list, which has some.
    pub(super) fn deliver(
        &mut self,
        max: u64,
        clock: &mut Clock,
        mut f: impl FnMut(&mut Searcher, PackedList, &mut Clock) -> Result<()>,
    ) -> Result<()> {
        let StoredPairs { count, capacity } = self.found;
        let max = max.min(self.search.max_list);
        if count > max {
            let rows = self.search.count_rows(&self.arranged)?;
            for range in ranges(&rows, max) {
                let wanted = rows[range.start as usize..range.end as usize].iter();
                let wanted = wanted.map(|&pairs| u64::from(pairs)).sum();
                self.find_again(&range, wanted)?;
                let packed = self.order(wanted, clock)?;
                f(self.search, packed, clock)?;
            }
            return Ok(());
        }
        if count > capacity {
            self.regrown += 1;
            self.find_again(&self.arranged.prepared.rows(), count)?;
        }
        if count > 0 {
            let packed = self.order(count, clock)?;
            f(self.search, packed, clock)?;
        }
        Ok(())
    }

    /// Returns what all sorts did.
    pub(super) fn sorts(self) -> Result<Sorts> {
        let mut sorts = Sorts::default();
        for report in self.arranged.sort.into_iter().chain(self.sorts) {
            sorts += (&report.wait()?).into();
        }
        Ok(sorts)
    }

    /// Puts the pairs in order that were found last.
    fn order(&mut self, pairs: u64, clock: &mut Clock) -> Result<PackedList> {
        clock.lap(|timings| &mut timings.sweep);
        let index_bits = self.arranged.prepared.index_bits();
        self.sorts.extend(self.search.order(pairs, index_bits)?);
        clock.lap(|timings| &mut timings.order);
        Ok(PackedList { pairs, index_bits })
    }

    /// Finds the pairs of a range of rows, with the capacity for all.
    fn find_again(&mut self, rows: &Range<u32>, count: u64) -> Result<()> {
        self.search.find(&self.arranged, rows, count)?;
        Ok(())
    }
}

/// Cuts rows, given by their numbers of pairs, into ranges of at most `max` pairs, or of one row.
/// Rows without pairs at the end are left out.
fn ranges(rows: &[u32], max: u64) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    let mut pairs = 0;
    for (row, &count) in (0_u32..).zip(rows) {
        if count == 0 {
            continue;
        }
        pairs += u64::from(count);
        match ranges.last_mut() {
            Some(last) if pairs <= max => last.end = row + 1,
            last => {
                let start = last.map_or(0, |last| last.end);
                ranges.push(start..row + 1);
                pairs = count.into();
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_fits_or_one_row() {
        assert_eq!(ranges(&[], 5), []);
        assert_eq!(ranges(&[0, 0], 5), []);
        assert_eq!(
            ranges(&[0, 2, 3, 0, 1, 9, 0, 4, 0], 5),
            [0..3, 3..5, 5..6, 6..8]
        );
        assert_eq!(ranges(&[u32::MAX, u32::MAX, 5], 1 << 33), [0..2, 2..3]);
        assert_eq!(ranges(&[1, 1, 1], 0), [0..1, 1..2, 2..3]);
    }
}
