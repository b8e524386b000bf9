//! The errors of this crate, and how the ranks agree on one.

use crate::{Pair, TransportError};
use bytemuck::cast;
use sap::{Aabb, InvalidReason};
use std::fmt;

/// The result of a fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says why a call failed. After [`Error::Rank`] it failed on all ranks, and the last result is
/// unchanged. After [`Error::Transport`] other ranks may have the new result: make a new transport
/// on all ranks, and call `clear` on all before the next update.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rank failed. All ranks return this error, and all can go on.
    #[error("rank {rank} failed: {cause}")]
    Rank {
        /// The rank. If several failed, the one with the cause that comes first in [`Cause`].
        rank: usize,
        /// Why it failed.
        cause: Cause,
    },
    /// The ranks can no longer talk to each other.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// A list with one entry for each box or key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum List {
    /// The ids of the boxes.
    Ids,
    /// The filters of the boxes.
    Filters,
    /// The worlds of the boxes.
    Worlds,
    /// The values of keys.
    Values,
}

impl List {
    const ALL: [Self; 4] = [Self::Ids, Self::Filters, Self::Worlds, Self::Values];
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ids => "ids",
            Self::Filters => "filters",
            Self::Worlds => "worlds",
            Self::Values => "values",
        })
    }
}

/// Says why a rank failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The rank has another configuration than rank 0.
    #[error("its configuration differs from that of rank 0")]
    Config,
    /// The rank made another number of successful updates than rank 0. Clear all ranks.
    #[error("it made {updates} updates, and rank 0 made {expected}")]
    OutOfStep {
        /// The updates of the rank.
        updates: u64,
        /// The updates of rank 0.
        expected: u64,
    },
    /// A list that needs one entry for each box or key has another length.
    #[error("it gave {given} {what}, but must give {expected}")]
    LengthMismatch {
        /// The list.
        what: List,
        /// The number of boxes or keys.
        expected: u64,
        /// The number of entries in the list.
        given: u64,
    },
    /// Another rank gave this list and the rank did not, though it has boxes.
    #[error("it gave no {what}, but another rank did")]
    MissingList {
        /// The list.
        what: List,
    },
    /// The excluded pairs are not sorted by `(a, b)`, or one has `a >= b`.
    #[error("its excluded pair {index} ({}, {}) is out of order", pair.a, pair.b)]
    ExcludedOrder {
        /// The index of the first pair that is out of order.
        index: u64,
        /// That pair.
        pair: Pair,
    },
    /// The ids exceed `u64`.
    #[error("{boxes} boxes with ids from {first} on exceed ids of 64 bits")]
    IdRange {
        /// The first id.
        first: u64,
        /// The number of boxes.
        boxes: u64,
    },
    /// Two boxes have the same id.
    #[error("two boxes have the id {id}")]
    DuplicateId {
        /// The id.
        id: u64,
    },
    /// A box is NaN or inverted. Of all ranks' boxes this is the one of the smallest id.
    #[error("box {id} is invalid: {reason}")]
    InvalidAabb {
        /// The id of the box.
        id: u64,
        /// What is wrong with it.
        reason: InvalidReason,
    },
    /// The pairs that a rank found do not fit in the memory allowed for them.
    #[error(
        "there are {count} pairs, but the memory for them holds {limit}: allow more by `pair_memory` if the machine has it"
    )]
    TooManyPairs {
        /// The number of pairs.
        count: u64,
        /// The number of pairs that fit.
        limit: u64,
    },
    /// The system refused memory.
    #[error("out of host memory: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// The requested size.
        bytes: u64,
    },
    /// There are more ranks than a rank on a device can count boxes for.
    #[error("there are {ranks} ranks, but devices work on at most {limit}")]
    TooManyRanks {
        /// The number of ranks.
        ranks: u64,
        /// The max number.
        limit: u64,
    },
    /// The engine or the sort failed for another reason.
    #[error("{detail}")]
    Engine {
        /// The error in words, on the rank that failed.
        detail: String,
    },
    /// The ids that a rank brings on a device are not ascending.
    #[error("its id {id} at index {index} is not above the id before it")]
    IdOrder {
        /// The index of the first id that is not above the one before.
        index: u64,
        /// That id.
        id: u64,
    },
}

/// A cause on the wire: its number from 1, and its figures. 0 is no failure.
pub(crate) const WORDS: usize = 5;

const INVALID: u64 = 8;

impl Cause {
    fn encode(&self) -> [u64; WORDS] {
        match *self {
            Self::Config => [1, 0, 0, 0, 0],
            Self::OutOfStep { updates, expected } => [2, updates, expected, 0, 0],
            Self::LengthMismatch {
                what,
                expected,
                given,
            } => [3, what as u64, expected, given, 0],
            Self::MissingList { what } => [4, what as u64, 0, 0, 0],
            Self::ExcludedOrder { index, pair } => [5, index, pair.a, pair.b, 0],
            Self::IdRange { first, boxes } => [6, first, boxes, 0, 0],
            Self::DuplicateId { id } => [7, id, 0, 0, 0],
            // The reason is found in the box, which `InvalidBoxes::fault` sends.
            Self::InvalidAabb { id, .. } => [INVALID, id, 0, 0, 0],
            Self::TooManyPairs { count, limit } => [9, count, limit, 0, 0],
            Self::OutOfMemory { bytes } => [10, bytes, 0, 0, 0],
            Self::TooManyRanks { ranks, limit } => [11, ranks, limit, 0, 0],
            Self::Engine { .. } => [12, 0, 0, 0, 0],
            Self::IdOrder { index, id } => [13, index, id, 0, 0],
        }
    }

    fn decode(words: &[u64]) -> Option<Self> {
        let &[code, a, b, c, d] = words else {
            return None;
        };
        let what = List::ALL[a as usize % List::ALL.len()];
        Some(match code {
            0 => return None,
            1 => Self::Config,
            2 => Self::OutOfStep {
                updates: a,
                expected: b,
            },
            3 => Self::LengthMismatch {
                what,
                expected: b,
                given: c,
            },
            4 => Self::MissingList { what },
            5 => Self::ExcludedOrder {
                index: a,
                pair: Pair { a: b, b: c },
            },
            6 => Self::IdRange { first: a, boxes: b },
            7 => Self::DuplicateId { id: a },
            INVALID => match cast::<[u64; 3], Aabb>([b, c, d]).check() {
                Err(reason) => Self::InvalidAabb { id: a, reason },
                Ok(()) => return None,
            },
            9 => Self::TooManyPairs { count: a, limit: b },
            10 => Self::OutOfMemory { bytes: a },
            11 => Self::TooManyRanks { ranks: a, limit: b },
            13 => Self::IdOrder { index: a, id: b },
            _ => Self::Engine {
                detail: "its engine failed: the error on that rank says more".to_owned(),
            },
        })
    }
}

impl From<sap::Error> for Cause {
    fn from(error: sap::Error) -> Self {
        match error {
            sap::Error::TooManyPairs { count, limit } => Self::TooManyPairs { count, limit },
            sap::Error::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            #[cfg(cuda)]
            sap::Error::Gpu(error) => error.into(),
            #[cfg(cuda)]
            sap::Error::Sort(error) => error.into(),
            other => Self::Engine {
                detail: other.to_string(),
            },
        }
    }
}

impl From<gpusort::Error> for Cause {
    fn from(error: gpusort::Error) -> Self {
        match error {
            #[cfg(cuda)]
            gpusort::Error::Gpu(error) => error.into(),
            other => Self::Engine {
                detail: other.to_string(),
            },
        }
    }
}

#[cfg(cuda)]
impl From<gpu::Error> for Cause {
    fn from(error: gpu::Error) -> Self {
        match error {
            gpu::Error::OutOfMemory { requested, .. }
            | gpu::Error::OutOfHostMemory { requested } => Self::OutOfMemory { bytes: requested },
            other => Self::Engine {
                detail: other.to_string(),
            },
        }
    }
}

/// Says that a rank failed.
#[cfg(cuda)]
pub(crate) fn failed<E: Into<Cause>>(rank: usize) -> impl Fn(E) -> Error {
    move |error| Error::Rank {
        rank,
        cause: error.into(),
    }
}

/// Returns the words of a state: all 0 if it is good.
pub(crate) fn fault<T>(state: &Result<T, Cause>) -> [u64; WORDS] {
    match state {
        Ok(_) => [0; WORDS],
        Err(cause) => cause.encode(),
    }
}

/// Returns the words of an invalid box.
pub(crate) fn invalid_fault(id: u64, b: &Aabb) -> [u64; WORDS] {
    let [x, y, z]: [u64; 3] = cast(*b);
    [INVALID, id, x, y, z]
}

/// Returns the id of an invalid box and what is wrong with it.
pub(crate) fn decode_invalid(words: &[u64]) -> Option<(u64, InvalidReason)> {
    match Cause::decode(words) {
        Some(Cause::InvalidAabb { id, reason }) => Some((id, reason)),
        _ => None,
    }
}

/// Fails on all ranks alike if a row of `width` words begins with a fault.
pub(crate) fn agree<T>(rows: &[u64], width: usize, own: (usize, &Result<T, Cause>)) -> Result<()> {
    let faults = rows
        .chunks_exact(width)
        .map(|row| &row[..WORDS])
        .enumerate();
    let failed = faults.filter(|(_, words)| words[0] != 0);
    // The first cause; of invalid boxes the one of the smallest id.
    let first = failed.min_by_key(|(rank, words)| {
        let second = if words[0] == INVALID { words[1] } else { 0 };
        (words[0], second, *rank)
    });
    let Some((rank, words)) = first else {
        return Ok(());
    };
    let cause = match own {
        (own, Err(cause)) if own == rank => Some(cause.clone()),
        _ => Cause::decode(words),
    };
    cause.map_or(Ok(()), |cause| Err(Error::Rank { rank, cause }))
}

/// Appends an element.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Result<(), Cause> {
    if list.len() == list.capacity() {
        reserve(list, list.len().max(64))?;
    }
    list.push(value);
    Ok(())
}

/// Copies a list.
pub(crate) fn copy<T: Copy>(list: &[T]) -> Result<Vec<T>, Cause> {
    let mut copy = Vec::new();
    reserve(&mut copy, list.len())?;
    copy.extend_from_slice(list);
    Ok(copy)
}

/// Reserves memory for `more` elements.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), Cause> {
    list.try_reserve_exact(more)
        .map_err(|_| Cause::OutOfMemory {
            bytes: (more as u64).saturating_mul(size_of::<T>() as u64),
        })
}
