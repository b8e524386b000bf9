//! What was tuned, or chosen without a measurement.

use std::time::Duration;

/// Two axes may be cut once the copies with one axis exceed a part of the boxes, one in `THIN`. In
/// 64 slabs of 10 million uniform boxes 20 % are copies, by the formula of `docs/distributed.md`.
/// The time is not measured.
pub(crate) const THIN: u128 = 5;
/// The samples that a rank gives for new cuts: with 512, a slab of 4 ranks has its share of the
/// work to some 5 %.
pub(crate) const MAX_SAMPLES: usize = 512;
/// The samples that a rank gives where there are many ranks, all of which read the samples of all.
/// Not measured.
pub(crate) const MIN_SAMPLES: usize = 64;
/// The samples of all ranks together, between these bounds. Not measured.
pub(crate) const ALL_SAMPLES: usize = 65536;
/// How long a rank looks for the others before it sleeps, if each has a core. On four H200s with
/// 2.5 million boxes each an update by NCCL took 1.86 ms instead of 2.25 (2026-11-28).
pub(crate) const EAGER: Duration = Duration::from_micros(500);
