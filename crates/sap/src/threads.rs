//! Runs calls whose parallel steps need the threads of a pool: see [`gpusort::cpu::on_threads`].

use crate::Result;

/// Which threads a step may use.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Threads {
    /// Those of the pool.
    #[default]
    All,
    /// The one that it runs on: it waits for no other, and takes no other work meanwhile.
    One,
}

/// Runs `f` on a thread of a pool, so that its parallel steps cost no change of threads each.
pub(crate) fn on_threads<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    gpusort::cpu::on_threads(f)?
}

/// Runs `f` on this thread, or as [`on_threads`] where its parallel steps would find no threads.
pub(crate) fn with_threads<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    gpusort::cpu::with_threads(f)?
}

/// Tells whether this is a thread of a pool. Steps that are called outside of a pool belong to a
/// small frame and stay on this thread.
pub(crate) fn in_pool() -> bool {
    rayon::current_thread_index().is_some()
}
