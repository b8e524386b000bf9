//! What the arguments of all families share (`kernels/common/sort_args.cuh`).

/// Flag of a family's `Args`: input and output are one buffer.
pub(super) const IN_PLACE: u32 = 1;
/// Flag of a family's `Args`: the sorted keys need not be written. A family's own flags begin at 4.
pub(super) const DROP_KEYS: u32 = 2;
