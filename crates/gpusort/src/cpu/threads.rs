//! The threads that parallel steps run on, in a process that was forked too.
//!
//! A fork copies the thread that calls it and no other. The child's global pool of `rayon` is then a list of threads that do
//! not exist, and whoever waits for one waits for ever. So the global pool is used in the process that is known to have its
//! threads; a child makes a pool of its own, once.

use crate::Result;

/// Runs `f` on a thread of the current pool, else of the global one, else of a pool made in this forked process.
///
/// # Errors
///
/// [`crate::Error::NoThreads`] where a pool is needed and the system gives it no thread.
#[doc(hidden)]
pub fn on_threads<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    if rayon::current_thread_index().is_some() {
        return Ok(f());
    }
    #[cfg(unix)]
    if let Some(pool) = forked::pool()? {
        return Ok(pool.install(f));
    }
    Ok(rayon::scope(|_| f()))
}

/// Runs `f` on this thread where its parallel steps find threads of a pool, else as [`on_threads`].
///
/// # Errors
///
/// As [`on_threads`].
#[doc(hidden)]
pub fn with_threads<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    #[cfg(unix)]
    if rayon::current_thread_index().is_none()
        && let Some(pool) = forked::pool()?
    {
        return Ok(pool.install(f));
    }
    Ok(f())
}

#[cfg(unix)]
mod forked {
    use crate::{Error, Result};
    use rayon::{ThreadPool, ThreadPoolBuilder};
    use std::error::Error as _;
    use std::process;
    use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    /// The process whose global pool has answered; 0 before any has.
    static ANSWERED: AtomicU32 = AtomicU32::new(0);

    /// The pool made last, by this process or by one that this is a fork of. Never freed: its threads may be in use. No lock
    /// guards it, since a fork would copy a lock that another thread holds.
    static OWN: AtomicPtr<Own> = AtomicPtr::new(std::ptr::null_mut());

    struct Own {
        process: u32,
        pool: ThreadPool,
    }

    /// How long the global pool has to begin a job before it counts as lost. Threads begin one within 0.1 ms; a pool that is
    /// busy for longer costs a second pool and nothing else.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// The pool to use in place of the global one; none where that has its threads.
    pub(super) fn pool() -> Result<Option<&'static ThreadPool>> {
        let process = process::id();
        let answered = ANSWERED.load(Ordering::Acquire);
        if answered == process {
            return Ok(None);
        }
        // SAFETY: a pointer stored there came from `Box::into_raw`, and is never freed.
        let own = unsafe { OWN.load(Ordering::Acquire).as_ref() };
        if let Some(own) = own.filter(|own| own.process == process) {
            return Ok(Some(&own.pool));
        }
        if answered == 0 && own.is_none() && answers() {
            ANSWERED.store(process, Ordering::Release);
            return Ok(None);
        }
        let new = Box::into_raw(Box::new(Own {
            process,
            pool: build()?,
        }));
        let before = own.map_or(std::ptr::null_mut(), |own| {
            std::ptr::from_ref(own).cast_mut()
        });
        match OWN.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => Ok(Some(unsafe { &(*new).pool })),
            Err(other) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as above; another thread of this process stored it.
                Ok(Some(unsafe { &(*other).pool }))
            }
        }
    }

    /// Whether the global pool has its threads. Starts it where nobody has.
    fn answers() -> bool {
        match ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            // The system gives no threads.
            Err(error) if error.source().is_some() => false,
            // Started before: by this process, or by one that this is a fork of.
            Err(_) => {
                let (sender, receiver) = mpsc::channel();
                // Nobody may listen any more.
                rayon::spawn(move || sender.send(()).unwrap_or_default());
                receiver.recv_timeout(PATIENCE).is_ok()
            }
        }
    }

    /// As many threads as `rayon` wants, or else one.
    fn build() -> Result<ThreadPool> {
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
        pool(0)
            .or_else(|_| pool(1))
            .map_err(|error| Error::NoThreads {
                reason: error.to_string(),
            })
    }
}
