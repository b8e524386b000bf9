//! What ranks tell each other about their frames, before anything is sent.

use crate::error::{Result, WORDS, decode_invalid};
use crate::layout::Layout;
use crate::report::{Invalid, RankReport, Report};
use crate::wire::Lists;
use crate::{Cause, Error, List};

/// What a rank says about its frame, as words for all.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) boxes: u64,
    /// The first id, and 1 if ids are consecutive.
    pub(crate) ids: [u64; 2],
    pub(crate) lists: Lists,
    pub(crate) config: u64,
    pub(crate) updates: u64,
    pub(crate) layout: u64,
    /// Whether the ids differ from those of the last update.
    pub(crate) other_ids: bool,
    pub(crate) invalid: u64,
}

impl Header {
    pub(crate) const WIDTH: usize = 2 * WORDS + 8;

    /// Returns the words of this header, after those of the fault and of the first invalid box.
    pub(crate) fn words(&self, fault: [u64; WORDS], invalid: [u64; WORDS]) -> Vec<u64> {
        let flags = [self.lists.filters, self.lists.worlds, self.other_ids];
        let flags = flags
            .iter()
            .rev()
            .fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        let own = [
            self.boxes,
            self.ids[0],
            self.ids[1],
            flags,
            self.config,
            self.updates,
            self.layout,
            self.invalid,
        ];
        [&fault[..], &invalid, &own].concat()
    }

    fn read(row: &[u64]) -> Self {
        let own = &row[2 * WORDS..];
        Self {
            boxes: own[0],
            ids: [own[1], own[2]],
            lists: Lists {
                filters: own[3] & 1 != 0,
                worlds: own[3] & 2 != 0,
            },
            other_ids: own[3] & 4 != 0,
            config: own[4],
            updates: own[5],
            layout: own[6],
            invalid: own[7],
        }
    }
}

/// What all ranks know of all frames.
pub(crate) struct Outline {
    pub(crate) headers: Vec<Header>,
    pub(crate) lists: Lists,
    pub(crate) invalid: Option<Invalid>,
    pub(crate) boxes: u64,
}

impl Outline {
    /// Reads the headers of all ranks, and checks what must hold for all.
    pub(crate) fn new(rows: &[u64]) -> Result<Self> {
        let rows = || rows.chunks_exact(Header::WIDTH);
        let headers: Vec<Header> = rows().map(Header::read).collect();
        let any = |list: fn(&Lists) -> bool| headers.iter().any(|h| h.boxes > 0 && list(&h.lists));
        let lists = Lists {
            filters: any(|lists| lists.filters),
            worlds: any(|lists| lists.worlds),
        };
        for (rank, header) in headers.iter().enumerate() {
            if let Err(cause) = header.check(&headers[0], lists) {
                return Err(Error::Rank { rank, cause });
            }
        }
        check_ids(&headers)?;
        let first = rows().filter_map(|row| decode_invalid(&row[WORDS..2 * WORDS]));
        let first = first.min_by_key(|&(id, _)| id);
        Ok(Self {
            lists,
            invalid: first.map(|(first, reason)| Invalid {
                count: headers.iter().map(|header| header.invalid).sum(),
                first,
                reason,
            }),
            boxes: headers.iter().map(|header| header.boxes).sum(),
            headers,
        })
    }

    /// Tells whether a rank brings boxes with ids that are not consecutive.
    #[cfg(cuda)]
    pub(crate) fn has_listed_ids(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.boxes > 0 && header.ids[1] == 0)
    }

    /// Tells whether a rank brings other boxes than in its last update.
    pub(crate) fn has_other_ids(&self) -> bool {
        self.headers.iter().any(|header| header.other_ids)
    }

    /// Returns the report of an update from the rows of all ranks.
    pub(crate) fn report(&self, rows: &[u64], (layout, new_cuts): (&Layout, bool)) -> Report {
        let rows = rows.chunks_exact(WORDS + RankReport::WORDS);
        let ranks: Vec<RankReport> = rows.map(|row| RankReport::read(&row[WORDS..])).collect();
        let sum = |of: fn(&RankReport) -> u64| ranks.iter().map(of).sum();
        Report {
            boxes: self.boxes,
            pairs: sum(|rank| rank.pairs),
            started: sum(|rank| rank.started),
            ended: sum(|rank| rank.ended),
            invalid: self.invalid,
            axes: layout.axes().to_vec(),
            slabs: layout.slabs(),
            new_cuts,
            ranks,
        }
    }
}

impl Header {
    fn check(&self, of_rank_0: &Self, lists: Lists) -> Result<(), Cause> {
        let (updates, expected) = (self.updates, of_rank_0.updates);
        if self.config != of_rank_0.config {
            return Err(Cause::Config);
        }
        if updates != expected {
            return Err(Cause::OutOfStep { updates, expected });
        }
        let lacks = |all: bool, own: bool| all && !own && self.boxes > 0;
        if lacks(lists.filters, self.lists.filters) {
            return Err(Cause::MissingList {
                what: List::Filters,
            });
        }
        if lacks(lists.worlds, self.lists.worlds) {
            return Err(Cause::MissingList { what: List::Worlds });
        }
        Ok(())
    }
}

/// Checks that the ranges of consecutive ids are disjoint.
fn check_ids(headers: &[Header]) -> Result<()> {
    let ranks = headers.iter().enumerate();
    let ranges = ranks.filter(|(_, header)| header.ids[1] == 1 && header.boxes > 0);
    let mut ranges: Vec<_> = ranges
        .map(|(rank, header)| (header.ids[0], header.boxes, rank))
        .collect();
    ranges.sort_unstable();
    for two in ranges.windows(2) {
        let [(first, boxes, _), (id, _, rank)] = [two[0], two[1]];
        if first + boxes > id {
            let cause = Cause::DuplicateId { id };
            return Err(Error::Rank { rank, cause });
        }
    }
    Ok(())
}
