//! What an update found on all ranks, and at what cost.

use crate::transport::Traffic;
use sap::BroadPhase;
use sap::InvalidReason;
use sap::internals::has_list;
use std::fmt;
use std::time::Instant;

/// Milliseconds of the steps of an update on one rank, the waits for other ranks included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Checking the boxes, and new cuts.
    pub plan: f64,
    /// Sending boxes to the ranks whose cells they reach.
    pub send: f64,
    /// Finding the pairs of the cell, or the wait for them if they are found meanwhile.
    pub search: f64,
    /// Sending pairs to the ranks that own them.
    pub return_pairs: f64,
    /// Putting the pairs in order, and events.
    pub order: f64,
}

impl Timings {
    /// Returns the steps by name, in the order they run.
    #[must_use]
    pub const fn steps(&self) -> [(&'static str, f64); 5] {
        [
            ("plan", self.plan),
            ("send", self.send),
            ("search", self.search),
            ("return", self.return_pairs),
            ("order", self.order),
        ]
    }
}

/// Measures the steps of an update.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the nanoseconds since the last lap.
    pub(crate) fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let since = now - self.0;
        self.0 = now;
        since.as_nanos() as u64
    }
}

/// What a search tested.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tested {
    pub(crate) tests: u64,
    /// Whether these are the candidates of a neighbour list.
    pub(crate) by_list: bool,
}

/// What a rank tells the others of an update: the words of its [`RankReport`].
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) boxes: usize,
    /// Homes, copies and tests.
    pub(crate) cell: [u64; 3],
    /// Whether the tests are those of a neighbour list.
    pub(crate) by_list: bool,
    /// The lengths of the lists of pairs, and of those that started and ended.
    pub(crate) lists: [u64; 3],
    pub(crate) before: Traffic,
    pub(crate) after: Traffic,
    /// Nanoseconds by step.
    pub(crate) times: [u64; 5],
}

impl Tested {
    /// What an engine tested in its last update.
    pub(crate) fn of(engine: &BroadPhase, tests: u64) -> Self {
        let by_list = tests > 0 && has_list(engine);
        Self { tests, by_list }
    }
}

impl Work {
    /// Adds the search of the homes.
    pub(crate) const fn add(&mut self, tested: Tested) {
        self.cell[2] += tested.tests;
        self.by_list = tested.by_list;
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let sent = [
            self.after.messages - self.before.messages,
            self.after.bytes - self.before.bytes,
        ];
        let (boxes, by_list) = ([self.boxes as u64], [u64::from(self.by_list)]);
        let counts = [&boxes[..], &self.cell, &self.lists, &sent].concat();
        [&counts[..], &by_list, &self.times].concat()
    }
}

/// What an update did on one rank.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RankReport {
    /// Boxes that the rank brought.
    pub boxes: u64,
    /// Boxes whose home is the cell of the rank.
    pub homes: u64,
    /// Copies of other boxes that reach the cell.
    pub copies: u64,
    /// Tests of the engine among the homes, on devices among the boxes of the rank if few have
    /// their home elsewhere. Where copies take part, the pairs that were found stand for tests.
    pub tests: u64,
    /// Whether a neighbour list served. Then `tests` counts its candidates, which are fewer.
    pub by_list: bool,
    /// Pairs that the rank owns.
    pub pairs: u64,
    /// Pairs that it owns and that the update before did not have.
    pub started: u64,
    /// Pairs that it owned and that only the update before had.
    pub ended: u64,
    /// Messages that it sent to other ranks.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Its time by step.
    pub timings: Timings,
}

impl RankReport {
    pub(crate) const WORDS: usize = 15;

    /// Reads the words of a row: nine counts, a flag and five times in nanoseconds.
    pub(crate) fn read(words: &[u64]) -> Self {
        let &[
            boxes,
            homes,
            copies,
            tests,
            pairs,
            started,
            ended,
            messages,
            bytes,
            by_list,
            ref times @ ..,
        ] = words
        else {
            return Self::default();
        };
        let ms = |i: usize| times.get(i).map_or(0.0, |&ns| ns as f64 * 1e-6);
        Self {
            boxes,
            homes,
            copies,
            tests,
            by_list: by_list != 0,
            pairs,
            started,
            ended,
            messages,
            bytes,
            timings: Timings {
                plan: ms(0),
                send: ms(1),
                search: ms(2),
                return_pairs: ms(3),
                order: ms(4),
            },
        }
    }
}

/// The invalid boxes of a frame that were skipped.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Invalid {
    /// Their number, on all ranks.
    pub count: u64,
    /// The smallest id among them.
    pub first: u64,
    /// What is wrong with the box of that id.
    pub reason: InvalidReason,
}

/// What an update found: the same on all ranks. Its `Display` is a table with a line for each rank.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Boxes of all ranks.
    pub boxes: u64,
    /// Pairs of all ranks.
    pub pairs: u64,
    /// Pairs that the update before did not have; 0 with events off.
    pub started: u64,
    /// Pairs that only the update before had; 0 with events off.
    pub ended: u64,
    /// The invalid boxes that were skipped, if there were any.
    pub invalid: Option<Invalid>,
    /// The axes that are cut, 0, 1, 2 for x, y, z: one, or two where slabs would be thin.
    pub axes: Vec<usize>,
    /// The number of slabs on the first axis.
    pub slabs: usize,
    /// Whether this update made new cuts.
    pub new_cuts: bool,
    /// What each rank did.
    pub ranks: Vec<RankReport>,
}

impl Report {
    /// Returns the work of the busiest rank as a multiple of the mean: 1 is the best. Work is boxes
    /// read and tests made.
    ///
    /// ```
    /// assert_eq!(sap_dist::Report::default().balance(), 1.0);
    /// ```
    #[must_use]
    pub fn balance(&self) -> f64 {
        match (self.works().max(), self.works().sum::<u64>()) {
            (Some(max), sum) if sum > 0 => (max * self.ranks.len() as u64) as f64 / sum as f64,
            _ => 1.0,
        }
    }

    /// Tells whether a neighbour list served some ranks and others not. Then their tests cannot be
    /// compared.
    fn is_mixed(&self) -> bool {
        let first = self.ranks.first().is_some_and(|rank| rank.by_list);
        self.ranks.iter().any(|rank| rank.by_list != first)
    }

    /// Returns the work of the ranks, by which cuts are balanced: what each read and what it
    /// tested, or found where tests cannot be compared.
    pub(crate) fn works(&self) -> impl Iterator<Item = u64> {
        let is_mixed = self.is_mixed();
        self.ranks.iter().map(move |rank| {
            let tests = if is_mixed { rank.pairs } else { rank.tests };
            rank.homes + rank.copies + tests
        })
    }

    /// Tells whether the busiest rank has a tenth more work than the mean, or a half more where
    /// pairs stand for tests.
    pub(crate) fn is_unbalanced(&self) -> bool {
        let tenths = if self.is_mixed() { 15 } else { 11 };
        let work = || self.works().map(u128::from);
        let max = work().max().unwrap_or(0);
        max * 10 * self.ranks.len() as u128 > work().sum::<u128>() * tenths
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COUNTS: [&str; 7] = [
            "boxes", "homes", "copies", "tests", "pairs", "messages", "bytes",
        ];
        write!(f, "rank")?;
        COUNTS
            .iter()
            .try_for_each(|name| write!(f, " {name:>10}"))?;
        let steps = Timings::default().steps();
        steps
            .iter()
            .try_for_each(|(name, _)| write!(f, " {name:>8}"))?;
        writeln!(f, " ms")?;
        for (i, rank) in self.ranks.iter().enumerate() {
            let RankReport {
                boxes,
                homes,
                copies,
                tests,
                pairs,
                messages,
                bytes,
                ..
            } = *rank;
            write!(f, "{i:4}")?;
            let counts = [boxes, homes, copies, tests, pairs, messages, bytes];
            counts
                .iter()
                .try_for_each(|count| write!(f, " {count:10}"))?;
            let steps = rank.timings.steps();
            steps
                .iter()
                .try_for_each(|(_, ms)| write!(f, " {ms:8.3}"))?;
            writeln!(f)?;
        }
        let cuts = if self.new_cuts { ", new cuts" } else { "" };
        write!(
            f,
            "balance {:.2}, axes {:?}, slabs {}{cuts}",
            self.balance(),
            self.axes,
            self.slabs
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unbalanced(ranks: [(u64, u64, bool); 2]) -> bool {
        let ranks = ranks.map(|(homes, tests, by_list)| RankReport {
            homes,
            tests,
            by_list,
            pairs: homes,
            ..RankReport::default()
        });
        let report = Report {
            ranks: ranks.to_vec(),
            ..Report::default()
        };
        report.is_unbalanced()
    }

    #[test]
    fn tests_of_a_list_are_not_compared_with_others() {
        assert!(!unbalanced([(1000, 3000, true), (1000, 3000, true)]));
        assert!(unbalanced([(1000, 3000, true), (1000, 9000, true)]));
        assert!(unbalanced([(1000, 3000, false), (1000, 35_000, false)]));
        assert!(!unbalanced([(1000, 3000, true), (1000, 35_000, false)]));
        // But homes are.
        assert!(unbalanced([(100, 300, true), (1900, 35_000, false)]));
    }
}
