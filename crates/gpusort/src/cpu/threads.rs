//! The threads that parallel steps run on, also in a forked process.
//!
//! A fork copies only the thread that calls it. The threads of the child's global pool of `rayon`
//! therefore do not exist, and a wait for one of them never ends. So the global pool is used only
//! in a process that is known to have its threads. A forked child makes its own pool, once.

use crate::Result;

/// Runs `f` on a thread of the current pool, else of the global one, else of a pool made in this
/// forked process.
///
/// # Errors
///
/// [`Error::NoThreads`](crate::Error::NoThreads) if a pool is needed and the system refuses to
/// start a thread.
#[doc(hidden)]
pub fn on_threads<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    if rayon::current_thread_index().is_some() {
        return Ok(f());
    }
    on_pool(f)
}

/// Runs `f` on this thread if its parallel steps find the threads of a pool, else as [`on_threads`]
/// does.
///
/// # Errors
///
/// As for [`on_threads`].
#[doc(hidden)]
pub fn with_threads<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    #[cfg(unix)]
    if rayon::current_thread_index().is_none() && forked::pool()?.is_some() {
        return on_pool(f);
    }
    Ok(f())
}

fn on_pool<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    let (mut f, mut result) = (Some(f), None);
    call_on_pool(&mut || result = f.take().map(|f| f()))?;
    Ok(result.unwrap_or_else(|| unreachable!("it was called")))
}

/// Calls `f` on a thread of the global pool, or of one made in this forked process. It is compiled
/// once, and not for each `f`.
fn call_on_pool(f: &mut (dyn FnMut() + Send)) -> Result<()> {
    #[cfg(unix)]
    if let Some(pool) = forked::pool()? {
        pool.install(f);
        return Ok(());
    }
    rayon::scope(|_| f());
    Ok(())
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

    /// The id of the process whose global pool has answered; 0 before one has.
    static ANSWERED: AtomicU32 = AtomicU32::new(0);

    /// The pool that was made last, by this process or one that it was forked from. It is never
    /// freed, because its threads may be in use. No lock guards it, because a fork would copy a
    /// lock that another thread holds.
    static FORKED_POOL: AtomicPtr<ForkedPool> = AtomicPtr::new(std::ptr::null_mut());

    struct ForkedPool {
        process: u32,
        pool: ThreadPool,
    }

    /// The time in which the global pool must begin a job, or it counts as missing. Threads begin
    /// one within 0.1 ms. A pool that is busy for longer costs a second pool, and nothing else.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// Returns the pool to use in place of the global one, or `None` if the global one has its
    /// threads.
    pub(super) fn pool() -> Result<Option<&'static ThreadPool>> {
        let process = process::id();
        let answered = ANSWERED.load(Ordering::Acquire);
        if answered == process {
            return Ok(None);
        }
        // SAFETY: a stored pointer came from `Box::into_raw`, and is never freed.
        let own = unsafe { FORKED_POOL.load(Ordering::Acquire).as_ref() };
        if let Some(own) = own.filter(|own| own.process == process) {
            return Ok(Some(&own.pool));
        }
        if answered == 0 && own.is_none() && answers() {
            ANSWERED.store(process, Ordering::Release);
            return Ok(None);
        }
        let new = Box::into_raw(Box::new(ForkedPool {
            process,
            pool: build()?,
        }));
        let before = own.map_or(std::ptr::null_mut(), |own| {
            std::ptr::from_ref(own).cast_mut()
        });
        match FORKED_POOL.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `new` came from `Box::into_raw`, and is never freed once it is stored.
            Ok(_) => Ok(Some(unsafe { &(*new).pool })),
            Err(other) => {
                // SAFETY: `new` came from `Box::into_raw`, and was not stored, so nothing else
                // refers to it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread of this process stored `other`, which is never freed.
                Ok(Some(unsafe { &(*other).pool }))
            }
        }
    }

    /// Tells whether the global pool has its threads. It starts the pool if it was not started
    /// before.
    fn answers() -> bool {
        match ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            // The system refuses to start threads.
            Err(error) if error.source().is_some() => false,
            // It was started before, by this process or one that it was forked from.
            Err(_) => {
                let (sender, receiver) = mpsc::channel();
                // The receiver may have timed out.
                rayon::spawn(move || sender.send(()).unwrap_or_default());
                receiver.recv_timeout(PATIENCE).is_ok()
            }
        }
    }

    /// Makes a pool with the default number of threads, or with one if that fails.
    fn build() -> Result<ThreadPool> {
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
        pool(0)
            .or_else(|_| pool(1))
            .map_err(|error| Error::NoThreads {
                reason: error.to_string(),
            })
    }
}
