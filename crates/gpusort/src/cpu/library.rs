//! The choice of a library by the number of keys.

use super::tuning::{PARALLEL, SMALL};

/// A library that sorts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    Std,
    Radsort,
    Rdst,
}

impl Library {
    pub(super) fn pick(n: usize) -> Self {
        match n {
            0..=SMALL => Self::Std,
            _ if parallel(n) => Self::Rdst,
            _ => Self::Radsort,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Std => "cpu-std",
            Self::Radsort => "cpu-radsort",
            Self::Rdst => "cpu-rdst",
        }
    }
}

/// Tells whether `n` elements are worth more than one thread.
pub(super) fn parallel(n: usize) -> bool {
    n >= PARALLEL && rayon::current_num_threads() > 1
}

/// Tells whether `n` elements must be sorted on a thread of a pool, and this thread is none.
pub(super) fn needs_threads(n: usize) -> bool {
    n >= PARALLEL && rayon::current_thread_index().is_none()
}
