//! Where calls run whose parallel steps need the threads of a pool: see [`gpusort::cpu::on_threads`].

use crate::Result;

/// Runs `f` on a thread of a pool, so that its parallel steps cost no change of threads each.
pub(crate) fn on_threads<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    gpusort::cpu::on_threads(f)?
}

/// Runs `f` on this thread, or as [`on_threads`] where its parallel steps would find no threads.
pub(crate) fn with_threads<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    gpusort::cpu::with_threads(f)?
}

/// Whether this is a thread of a pool. Steps that are called outside of one are of a small frame, and take no other thread.
pub(crate) fn in_pool() -> bool {
    rayon::current_thread_index().is_some()
}
