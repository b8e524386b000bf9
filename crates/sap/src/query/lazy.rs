//! A value that is made by the first call that needs it.

use crate::Result;
use crate::threads::{Threads, in_pool, on_threads};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// A value that is made once, whichever thread asks first; an attempt that fails leaves no trace.
///
/// A thread of a pool never waits for one that may need the pool: while its own parallel steps
/// wait, it takes other work, so it would find itself waiting for a value that it is making. Where
/// the value is being made on all threads, such a thread makes it alone, and whichever is done
/// first is kept.
pub(crate) struct Lazy<T> {
    value: OnceLock<T>,
    /// Held by who makes it on all threads.
    on_all: Mutex<()>,
    /// Held by who makes it alone, which needs nobody: all may wait for it.
    alone: Mutex<()>,
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self {
            value: OnceLock::new(),
            on_all: Mutex::default(),
            alone: Mutex::default(),
        }
    }
}

impl<T: Send> Lazy<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Keeps a value, unless there is one.
    pub(crate) fn keep(&self, value: T) -> &T {
        self.value.get_or_init(|| value)
    }

    /// The value; `make` gets the threads that it may use, at most these.
    pub(crate) fn get_or_make(
        &self,
        threads: Threads,
        make: impl FnOnce(Threads) -> Result<T> + Send,
    ) -> Result<&T> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let (_guard, threads) = self.lock(threads);
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let made = match threads {
            Threads::All => on_threads(|| make(threads))?,
            Threads::One => make(threads)?,
        };
        Ok(self.keep(made))
    }

    /// Waits for the right to make the value, on as many threads as it then may.
    fn lock(&self, threads: Threads) -> (MutexGuard<'_, ()>, Threads) {
        if threads == Threads::All {
            let guard = match self.on_all.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
                Err(TryLockError::WouldBlock) if in_pool() => None,
                Err(TryLockError::WouldBlock) => {
                    Some(self.on_all.lock().unwrap_or_else(PoisonError::into_inner))
                }
            };
            if let Some(guard) = guard {
                return (guard, Threads::All);
            }
        }
        let guard = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        (guard, Threads::One)
    }
}
