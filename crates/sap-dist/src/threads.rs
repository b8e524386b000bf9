//! The transport between threads of one process.

use crate::transport::{Traffic, Transport, TransportError};
use crate::tuning::EAGER;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What a rank brings to a call.
#[derive(Default)]
struct Parcel {
    words: Vec<u64>,
    messages: Vec<Vec<u8>>,
}

/// What must be the same on all ranks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather { words: usize },
    Exchange,
}

/// The parcels of a call. There are two: a rank that comes to a call has read those of the last,
/// so all ranks have read those of the call before it.
#[derive(Default)]
struct Slot {
    call: u64,
    /// The kind, and the rank that came first.
    kind: Option<(Kind, usize)>,
    parcels: Vec<Option<Parcel>>,
}

#[derive(Default)]
struct State {
    slots: [Slot; 2],
    broken: Option<TransportError>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// How often ranks have joined a call, all calls together.
    joined: AtomicU64,
    /// How long a rank looks for the others before it sleeps.
    eager: Duration,
    limit: Duration,
    size: usize,
}

impl Shared {
    /// Nothing panics while it has the lock, so a poisoned lock is as good as any other.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the first error and wakes all who wait. Returns the stored error.
    fn fail(&self, state: &mut State, error: TransportError) -> TransportError {
        self.changed.notify_all();
        state.broken.get_or_insert(error).clone()
    }

    /// Tells whether all ranks have joined a call: before that, none joins the next.
    fn have_joined(&self, call: u64) -> bool {
        self.joined.load(Ordering::Acquire) >= (call + 1) * self.size as u64
    }

    /// Waits a moment for all ranks to join a call: a thread that sleeps wakes up late.
    fn wait_eagerly(&self, call: u64) {
        let start = Instant::now();
        while !self.have_joined(call) && start.elapsed() < self.eager {
            thread::yield_now();
        }
    }
}

/// The transport of a rank that is a thread of this process. Messages are moved, not copied; only
/// gathered words are copied.
///
/// The others see its end: a rank that returns or panics while others still call it ends
/// their calls with [`TransportError::Left`].
///
/// ```
/// use sap_dist::{Threads, Transport, TransportError};
/// use std::time::Duration;
///
/// let results = Threads::run(2, Duration::from_secs(10), |transport| match transport.rank() {
///     0 => transport.barrier(),
///     _ => Ok(()), // does not join
/// })?;
/// assert_eq!(results[0], Err(TransportError::Left { rank: 1, call: 0 }));
/// # Ok::<(), TransportError>(())
/// ```
pub struct Threads {
    shared: Arc<Shared>,
    rank: usize,
    calls: u64,
    traffic: Traffic,
}

impl Threads {
    /// Creates the transports of all ranks, to be given to one thread each. `limit` is the time
    /// that a call waits for the other ranks.
    #[must_use]
    pub fn new(ranks: usize, limit: Duration) -> Vec<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            joined: AtomicU64::new(0),
            eager: if ranks > cores { Duration::ZERO } else { EAGER },
            limit,
            size: ranks,
        });
        let one = |rank| Self {
            shared: Arc::clone(&shared),
            rank,
            calls: 0,
            traffic: Traffic::default(),
        };
        (0..ranks).map(one).collect()
    }

    /// Runs `f` as each rank, on a thread each, and returns the results in the order of the ranks.
    /// A panic of `f` continues in the caller once all ranks have ended.
    ///
    /// # Errors
    ///
    /// [`TransportError::NoThread`] if the system starts no more threads.
    pub fn run<R: Send>(
        ranks: usize,
        limit: Duration,
        f: impl Fn(&mut Self) -> R + Sync,
    ) -> Result<Vec<R>, TransportError> {
        let results: Vec<_> = (0..ranks).map(|_| Mutex::new(None)).collect();
        Self::run_all(ranks, limit, &|transport| {
            let result = f(transport);
            *results[transport.rank]
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(result);
        })?;
        let result = |of: Mutex<_>| of.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(results.into_iter().filter_map(result).collect())
    }

    /// Runs `f` as each rank. It is compiled once, not for each `f`.
    fn run_all(
        ranks: usize,
        limit: Duration,
        f: &(dyn Fn(&mut Self) + Sync),
    ) -> Result<(), TransportError> {
        thread::scope(|scope| {
            let start = |mut transport: Self| {
                let rank = transport.rank;
                let thread = thread::Builder::new().name(format!("rank {rank}"));
                let started = thread.spawn_scoped(scope, move || f(&mut transport));
                started.map_err(|_| TransportError::NoThread { rank })
            };
            // All that start are joined, also if one does not: its transport is gone then, and the
            // others end with an error.
            let threads: Vec<_> = Self::new(ranks, limit).into_iter().map(start).collect();
            threads
                .into_iter()
                .try_for_each(|started| match started?.join() {
                    Ok(()) => Ok(()),
                    Err(panic) => std::panic::resume_unwind(panic),
                })
        })
    }

    /// Brings a parcel to a call, waits for those of all ranks, and reads them.
    fn meet<R>(
        &mut self,
        kind: Kind,
        parcel: Parcel,
        read: impl FnOnce(&mut [Option<Parcel>]) -> R,
    ) -> Result<R, TransportError> {
        let (shared, rank, call) = (&*self.shared, self.rank, self.calls);
        self.calls += 1;
        let which = (call % 2) as usize;
        let mut state = shared.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let slot = &mut state.slots[which];
        if slot.call != call || slot.kind.is_none() {
            *slot = Slot {
                call,
                parcels: (0..shared.size).map(|_| None).collect(),
                ..Slot::default()
            };
        }
        let (expected, other) = *slot.kind.get_or_insert((kind, rank));
        if expected != kind {
            let error = TransportError::Mismatch { rank, other, call };
            return Err(shared.fail(&mut state, error));
        }
        slot.parcels[rank] = Some(parcel);
        shared.joined.fetch_add(1, Ordering::Release);
        shared.changed.notify_all();
        drop(state);
        shared.wait_eagerly(call);
        let state = shared.lock();
        let waiting = |state: &mut State| !shared.have_joined(call) && state.broken.is_none();
        let waited = shared
            .changed
            .wait_timeout_while(state, shared.limit, waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let slot = &mut state.slots[which];
        if shared.have_joined(call) {
            return Ok(read(&mut slot.parcels));
        }
        let missing = slot
            .parcels
            .iter()
            .position(Option::is_none)
            .unwrap_or(rank);
        let error = TransportError::Timeout {
            rank: missing,
            call,
            limit_ms: shared.limit.as_millis() as u64,
        };
        Err(shared.fail(&mut state, error))
    }
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        self.traffic.gather(words.len(), self.shared.size);
        let kind = Kind::Gather { words: words.len() };
        let parcel = Parcel {
            words: words.to_vec(),
            ..Parcel::default()
        };
        self.meet(kind, parcel, |parcels| {
            let words = parcels.iter().flatten().flat_map(|parcel| &parcel.words);
            words.copied().collect()
        })
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        let (given, ranks) = (outgoing.len(), self.shared.size);
        if given != ranks {
            let error = TransportError::Messages { given, ranks };
            return Err(self.shared.fail(&mut self.shared.lock(), error));
        }
        let rank = self.rank;
        self.traffic.exchange(rank, &outgoing);
        let parcel = Parcel {
            messages: outgoing,
            ..Parcel::default()
        };
        self.meet(Kind::Exchange, parcel, |parcels| {
            let parcels = parcels.iter_mut().flatten();
            parcels
                .map(|parcel| std::mem::take(&mut parcel.messages[rank]))
                .collect()
        })
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let error = TransportError::Left {
            rank: self.rank,
            call: self.calls,
        };
        let mut state = self.shared.lock();
        self.shared.fail(&mut state, error);
    }
}
