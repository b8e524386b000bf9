//! What an update found on all ranks, and at what cost.

use crate::transport::Traffic;
use sap::InvalidReason;
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

/// What a rank tells the others of an update: the words of its [`RankReport`].
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) boxes: usize,
    /// Homes, copies and tests.
    pub(crate) cell: [u64; 3],
    /// The lengths of the lists of pairs, and of those that started and ended.
    pub(crate) lists: [u64; 3],
    pub(crate) before: Traffic,
    pub(crate) after: Traffic,
    /// Nanoseconds by step.
    pub(crate) times: [u64; 5],
}

impl Work {
    pub(crate) fn words(&self) -> Vec<u64> {
        let sent = [
            self.after.messages - self.before.messages,
            self.after.bytes - self.before.bytes,
        ];
        let boxes = [self.boxes as u64];
        [&boxes[..], &self.cell, &self.lists, &sent, &self.times].concat()
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
    pub(crate) const WORDS: usize = 14;

    /// Reads the words of a row: nine counts and five times in nanoseconds.
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

    /// Returns the work of the rank, by which cuts are balanced: what it read and what it tested.
    pub(crate) const fn work(&self) -> u64 {
        self.homes + self.copies + self.tests
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
        let work = || self.ranks.iter().map(RankReport::work);
        match (work().max(), work().sum::<u64>()) {
            (Some(max), sum) if sum > 0 => (max * self.ranks.len() as u64) as f64 / sum as f64,
            _ => 1.0,
        }
    }

    /// Tells whether the busiest rank has a tenth more work than the mean.
    pub(crate) fn is_unbalanced(&self) -> bool {
        let work = || self.ranks.iter().map(|rank| u128::from(rank.work()));
        let max = work().max().unwrap_or(0);
        max * 10 * self.ranks.len() as u128 > work().sum::<u128>() * 11
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
