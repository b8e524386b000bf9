//! How ranks agree on the end of a step of an exchange: all can go on, or all return an error.

use crate::{Transport, TransportError};

/// The functions of NCCL that an error names. A rank tells the others the index.
pub(super) const CALLS: [&str; 7] = [
    "ncclGetUniqueId",
    "ncclCommInitRankConfig",
    "ncclCommGetAsyncError",
    "ncclGroupStart",
    "ncclSend",
    "ncclRecv",
    "ncclGroupEnd",
];

/// An error on the wire: its number from 1, and two figures. 0 is no error.
const WORDS: usize = 3;
/// The number of a wait that did not end. It may have been for a rank whose error says more.
const LATE: u64 = 4;

fn version(parts: [u32; 3]) -> u64 {
    parts
        .iter()
        .fold(0, |word, &part| word << 16 | u64::from(part))
}

fn encode(error: Option<&TransportError>) -> [u64; WORDS] {
    let index = |name| CALLS.iter().position(|&call| call == name).unwrap_or(0) as u64;
    match error {
        None => [0; WORDS],
        Some(TransportError::NoNccl { .. }) => [1, 0, 0],
        Some(&TransportError::OldNccl { found, needed, .. }) => {
            [2, version(found), version(needed)]
        }
        Some(&TransportError::Nccl { call, code, .. }) => [3, index(call), u64::from(code as u32)],
        Some(&TransportError::NcclTimeout { call, limit_ms, .. }) => [LATE, index(call), limit_ms],
        Some(_) => [5, 0, 0],
    }
}

fn decode(rank: usize, words: &[u64]) -> Option<TransportError> {
    let &[kind, a, b] = words else {
        return None;
    };
    let call = CALLS[a as usize % CALLS.len()];
    let parts = |word: u64| [word >> 32, word >> 16, word].map(|part| part as u32 & 0xffff);
    Some(match kind {
        0 => return None,
        1 => TransportError::NoNccl {
            rank,
            detail: format!("the error on rank {rank} says more"),
        },
        2 => TransportError::OldNccl {
            rank,
            found: parts(a),
            needed: parts(b),
        },
        3 => TransportError::Nccl {
            rank,
            call,
            code: b as i32,
        },
        LATE => TransportError::NcclTimeout {
            rank,
            call,
            limit_ms: b,
        },
        _ => TransportError::Elsewhere { rank },
    })
}

/// Tells all ranks whether this one can go on. If one cannot, all return the error of the first.
pub(super) fn agree<R>(
    transport: &mut dyn Transport,
    own: Result<R, TransportError>,
) -> Result<R, TransportError> {
    let rows = transport.all_gather(&encode(own.as_ref().err()))?;
    let failed = rows.chunks_exact(WORDS).enumerate();
    let failed = failed.filter(|(_, words)| words[0] != 0);
    match failed.min_by_key(|&(rank, words)| (words[0] == LATE, rank)) {
        // The error may say more than its words.
        Some((rank, words)) if rank != transport.rank() => match decode(rank, words) {
            Some(error) => Err(error),
            None => own,
        },
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;
    use std::time::Duration;

    #[test]
    fn all_fail_alike() {
        let rank = 1;
        let errors = [
            TransportError::OldNccl {
                rank,
                found: [2, 22, 3],
                needed: [2, 23, 0],
            },
            TransportError::Nccl {
                rank,
                call: "ncclSend",
                code: -5,
            },
            TransportError::NcclTimeout {
                rank,
                call: "ncclGroupEnd",
                limit_ms: u64::MAX,
            },
        ];
        for error in errors {
            let results = Threads::run(3, Duration::from_secs(10), |transport| {
                assert_eq!(agree(transport, Ok(7)), Ok(7));
                let own = match transport.rank() {
                    1 => Err(error.clone()),
                    _ => Ok(()),
                };
                agree(transport, own)
            });
            for result in results.expect("threads start") {
                assert_eq!(result, Err(error.clone()));
            }
        }
    }

    /// A rank that only waited for another says so last.
    #[test]
    fn causes_come_first() {
        let errors = [0, 2].map(|rank| TransportError::NcclTimeout {
            rank,
            call: "ncclSend",
            limit_ms: 5,
        });
        let cause = TransportError::Nccl {
            rank: 1,
            call: "ncclRecv",
            code: 2,
        };
        let all = [&errors[0], &cause, &errors[1]];
        let results = Threads::run(3, Duration::from_secs(10), |transport| {
            let own = Err(all[transport.rank()].clone());
            agree::<()>(transport, own)
        });
        for result in results.expect("threads start") {
            assert_eq!(result.as_ref(), Err(&cause));
        }
    }

    #[test]
    fn words_stay_on_their_rank() {
        let results = Threads::run(2, Duration::from_secs(10), |transport| {
            let own = match transport.rank() {
                1 => Err(TransportError::NoNccl {
                    rank: 1,
                    detail: "why".to_owned(),
                }),
                _ => Ok(()),
            };
            agree(transport, own).map_err(|error| error.to_string())
        });
        let texts = ["the error on rank 1 says more", "why"];
        for (result, text) in results.expect("threads start").into_iter().zip(texts) {
            assert_eq!(result, Err(format!("rank 1 has no NCCL: {text}")));
        }
    }
}
