//! Which library sorts.

use super::tuning::{PARALLEL, SMALL};

/// Who sorts.
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

/// Whether so many elements are worth more than one thread.
pub(super) fn parallel(n: usize) -> bool {
    n >= PARALLEL && rayon::current_num_threads() > 1
}

/// Whether so many elements are to be sorted on threads of a pool, and this is none.
pub(super) fn needs_threads(n: usize) -> bool {
    n >= PARALLEL && rayon::current_thread_index().is_none()
}
