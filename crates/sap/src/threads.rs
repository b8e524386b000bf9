//! Runs calls whose parallel steps need the threads of a pool: see [`gpusort::cpu::on_threads`].

use crate::Result;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::cell::RefCell;
use std::num::NonZero;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    /// The pool of the engine that this thread is in a call of, if it has one of its own.
    static POOL: RefCell<Option<Arc<LazyPool>>> = const { RefCell::new(None) };
}

/// The pool of an engine with [`Config::threads`](crate::Config::threads), or none.
#[derive(Default)]
pub(crate) struct OwnPool(Option<Arc<LazyPool>>);

/// A pool that is made when it is needed first, and again in a forked process, which has none of
/// its threads.
struct LazyPool {
    threads: NonZero<usize>,
    made: Mutex<Option<Made>>,
}

struct Made {
    process: u32,
    pool: Arc<ThreadPool>,
}

/// Ends the use of a pool on this thread; the one before is in use again.
struct Scope(Option<Arc<LazyPool>>);

impl Drop for Scope {
    fn drop(&mut self) {
        POOL.replace(self.0.take());
    }
}

impl OwnPool {
    pub(crate) fn new(threads: Option<NonZero<usize>>) -> Self {
        Self(threads.map(|threads| {
            Arc::new(LazyPool {
                threads,
                made: Mutex::default(),
            })
        }))
    }

    /// Runs a call whose parallel steps use this pool, if there is one.
    pub(crate) fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let scope = self.0.clone().map(|pool| Scope(POOL.replace(Some(pool))));
        let done = f();
        drop(scope);
        done
    }
}

impl LazyPool {
    fn get(&self) -> Result<Arc<ThreadPool>> {
        let process = process::id();
        // A thread that panicked leaves a pool or none.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Made { pool, .. }) = made.as_ref().filter(|made| made.process == process) {
            return Ok(Arc::clone(pool));
        }
        let builder = ThreadPoolBuilder::new()
            .num_threads(self.threads.get())
            .thread_name(|i| format!("radsweep-{i}"));
        let no_threads = |error: ThreadPoolBuildError| gpusort::Error::NoThreads {
            reason: error.to_string(),
        };
        let pool = Arc::new(builder.build().map_err(no_threads)?);
        let new = Made {
            process,
            pool: Arc::clone(&pool),
        };
        // The pool of another process has no threads here that its end could wait for.
        std::mem::forget(made.replace(new));
        Ok(pool)
    }
}

/// Returns the pool of the engine that this thread is in a call of, unless the thread is in a pool
/// already.
fn own_pool() -> Result<Option<Arc<ThreadPool>>> {
    if in_pool() {
        return Ok(None);
    }
    let pool = POOL.with_borrow(Clone::clone);
    pool.map(|pool| pool.get()).transpose()
}

/// The threads that a step may use.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Threads {
    /// All threads of the pool.
    #[default]
    All,
    /// The thread that it runs on: it waits for no other, and takes no other work meanwhile.
    One,
}

/// Runs `f` on a thread of a pool, so that its parallel steps cost no change of threads each.
pub(crate) fn on_threads<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match own_pool()? {
        Some(pool) => pool.install(f),
        None => gpusort::cpu::on_threads(f)?,
    }
}

/// Runs `f` on this thread, or as [`on_threads`] where its parallel steps would find no threads.
pub(crate) fn with_threads<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match own_pool()? {
        Some(pool) => pool.install(f),
        None => gpusort::cpu::with_threads(f)?,
    }
}

/// Tells whether this is a thread of a pool. Steps that are called outside of a pool belong to a
/// small frame and stay on this thread.
pub(crate) fn in_pool() -> bool {
    rayon::current_thread_index().is_some()
}
