//! The broad phase over all ranks.

use crate::config::Config;
use crate::error::Result;
use crate::protocol::{Facts, Protocol, sampled};
use crate::report::{Clock, Report, Work};
use crate::results::{Brought, Results};
use crate::search::Search;
use crate::wire::{self, Cell, Lists};
use crate::{Cause, Error, Frame, Pair, Transport};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sap::{Aabb, Backend};
use std::num::NonZero;

/// Finds the overlapping pairs of boxes that several ranks bring: the same pairs, bit for bit, as
/// one engine finds that has all boxes.
///
/// Every rank has one, and calls it with its [`Transport`]. Space is cut into a cell for each rank;
/// boxes travel to the cells that they reach, and pairs travel back to the rank that brought the
/// box of the smaller id, which owns them. A rank that brings boxes of its own cell sends little:
/// [`Distributed::home`] tells where a box belongs. Cuts follow the work of the last update.
///
/// ```
/// use sap::Aabb;
/// use sap_dist::{Config, Distributed, Frame, Pair, Threads, Transport};
/// use std::time::Duration;
///
/// // Three ranks, each with two boxes of a row in which neighbours touch.
/// let results = Threads::run(3, Duration::from_secs(10), |transport| {
///     let first = 2 * transport.rank() as u64;
///     let at = |x: u64| Aabb::new([x as f32, 0.0, 0.0], [x as f32 + 1.0, 1.0, 1.0]);
///     let mut broad_phase = Distributed::new(Config::default())?;
///     broad_phase.update(transport, Frame::from_id(first, &[at(first), at(first + 1)]))?;
///     assert_eq!(broad_phase.report().pairs, 5); // on all ranks
///     Ok::<Vec<Pair>, sap_dist::Error>(broad_phase.pairs().to_vec())
/// })?;
/// assert_eq!(results[1], Ok(vec![Pair { a: 2, b: 3 }, Pair { a: 3, b: 4 }]));
/// # Ok::<(), sap_dist::Error>(())
/// ```
pub struct Distributed {
    protocol: Protocol,
    search: Search,
    results: Results,
    brought: Brought,
    /// The pool of [`Config::threads`].
    pool: Option<ThreadPool>,
}

impl Distributed {
    /// Creates the broad phase of a rank, without boxes.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] with rank 0 if the engine refuses the configuration, or the system the
    /// threads.
    pub fn new(config: Config) -> Result<Self> {
        let failed = |cause| Error::Rank { rank: 0, cause };
        Ok(Self {
            search: Search::new(config.engine(Backend::Cpu, None)).map_err(failed)?,
            pool: config.threads.map(pool).transpose().map_err(failed)?,
            protocol: Protocol::on_host(config),
            results: Results::default(),
            brought: Brought::default(),
        })
    }

    /// Takes the boxes of this rank and finds the pairs of all. All ranks call it.
    ///
    /// ```
    /// use sap::Aabb;
    /// use sap_dist::{Cause, Config, Distributed, Error, Frame, Threads, Transport};
    /// use std::time::Duration;
    ///
    /// let good = [Aabb::new([0.0; 3], [1.0; 3])];
    /// let bad = [Aabb::new([f32::NAN; 3], [1.0; 3])];
    /// let results = Threads::run(2, Duration::from_secs(10), |transport| {
    ///     let rank = transport.rank();
    ///     let mut broad_phase = Distributed::new(Config::default())?;
    ///     broad_phase.update(transport, Frame::from_id(rank as u64, &good))?;
    ///     let boxes = [&good, &bad][rank];
    ///     let failed = broad_phase.update(transport, Frame::from_id(rank as u64, boxes)).err();
    ///     assert_eq!(broad_phase.report().pairs, 1); // as it was
    ///     Ok::<Option<Error>, Error>(failed)
    /// })?;
    /// for result in results {
    ///     let Some(Error::Rank { rank: 1, cause }) = result? else { panic!() }; // on both ranks
    ///     assert!(matches!(cause, Cause::InvalidAabb { id: 1, .. }));
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] on all ranks if one fails: the last result stays on all, and the ranks can
    /// go on. [`Error::Transport`] if a rank is missing: the last result stays, and the transport
    /// cannot be used again. If that happens in the very last step of an update, other ranks may
    /// have the new result already. The next update then fails with [`Cause::OutOfStep`].
    pub fn update<T: Transport>(&mut self, transport: &mut T, frame: Frame) -> Result<&Report> {
        let (mut clock, mut work) = (Clock::start(), Work::default());
        let (rank, ranks) = (transport.rank(), transport.size());
        (work.boxes, work.before) = (frame.len(), transport.traffic());
        let brought = Brought::of(&frame);
        let facts = Facts {
            boxes: frame.len(),
            first_id: frame.ids.first(),
            lists: Lists {
                filters: frame.filters.is_some(),
                worlds: frame.worlds.is_some(),
            },
            other_ids: brought.as_ref().is_ok_and(|ids| *ids != self.brought),
            invalid: match (frame.check(), &brought) {
                (Err(cause), _) => Err(cause),
                (_, Err(cause)) => Err(cause.clone()),
                _ => Ok(frame.invalid()),
            },
        };
        let outline = self.protocol.outline(transport, &facts)?;
        let brought = brought.map_err(|cause| Error::Rank { rank, cause })?;
        let sample = |count| {
            let indices = sampled(frame.len(), count);
            let sample = |index: Option<usize>| index.map_or(Aabb::EMPTY, |i| frame.boxes[i]);
            indices.map(sample).collect()
        };
        let (layout, new_cuts) = self.protocol.cut(transport, &outline, sample)?;
        work.times[0] = clock.lap();

        // From here on a rank that fails sends nothing and joins every call up to the last one,
        // which tells all.
        let written = wire::write(&frame, outline.lists, &layout, ranks);
        let (messages, written) = split(written, ranks);
        let boxes = transport.exchange(messages)?;
        work.times[1] = clock.lap();

        let cell = written.and_then(|()| Cell::read(&boxes, outline.lists, &layout, rank));
        drop(boxes);
        let found = cell.and_then(|cell| {
            work.cell = [cell.home.len() as u64, cell.copies() as u64, 0];
            let search = || self.search.run(cell, outline.lists, ranks);
            let found = on_threads(&self.pool, search)?;
            work.add(found.tested);
            Ok(found.messages)
        });
        work.times[2] = clock.lap();
        let (messages, found) = split(found, ranks);
        let pairs = transport.exchange(messages)?;
        work.times[3] = clock.lap();

        let events = self.protocol.config.events;
        let last = events.then_some(&*self.results.pairs);
        let order = || Results::new(pairs, &frame, last);
        let results = found.and_then(|()| on_threads(&self.pool, order));
        let (mut results, state) = match results {
            Ok(results) => (results, Ok(())),
            Err(cause) => (Results::default(), Err(cause)),
        };
        if events && self.protocol.updates > 0 && outline.has_other_ids() {
            results.settle(transport, [&self.brought.sorted(), &brought.sorted()])?;
        }
        work.times[4] = clock.lap();

        work.lists = results.lengths();
        work.after = transport.traffic();
        let cuts = (&layout, new_cuts);
        self.protocol
            .conclude(transport, &outline, cuts, (&state, &work))?;
        self.results = results;
        self.brought = brought;
        Ok(self.report())
    }

    /// Returns the pairs of the last update that this rank owns, sorted: those whose box `a` it
    /// brought.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        &self.results.pairs
    }

    /// Returns the pairs that this rank owns and that no rank had in the update before, sorted.
    /// They are none with [`Config::events`] off.
    #[must_use]
    pub fn started(&self) -> &[Pair] {
        &self.results.started
    }

    /// Returns the pairs that this rank owned in the update before and that no rank has now,
    /// sorted. They are none with [`Config::events`] off.
    #[must_use]
    pub fn ended(&self) -> &[Pair] {
        &self.results.ended
    }

    /// Returns what the last update did on all ranks.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.protocol.report
    }

    /// Returns the rank in whose cell the `min` of a box lies, by the cuts of the last update. An
    /// update sends fewest bytes if each rank brings the boxes that have their home there. Nothing
    /// before the first update, and for boxes that are empty or invalid.
    ///
    /// ```
    /// # use sap::Aabb;
    /// # use sap_dist::{Config, Distributed, Frame, Threads, Transport};
    /// # use std::time::Duration;
    /// let at = |x: usize| Aabb::new([x as f32, 0.0, 0.0], [x as f32 + 0.5, 1.0, 1.0]);
    /// let homes = Threads::run(2, Duration::from_secs(10), |transport| {
    ///     // Rank 0 brings all boxes.
    ///     let boxes: Vec<_> = (0..1000).filter(|_| transport.rank() == 0).map(at).collect();
    ///     let mut broad_phase = Distributed::new(Config::default())?;
    ///     broad_phase.update(transport, Frame::from_id(0, &boxes))?;
    ///     Ok::<_, sap_dist::Error>([broad_phase.home(&at(0)), broad_phase.home(&at(999))])
    /// })?;
    /// assert!(homes.into_iter().all(|homes| homes == Ok([Some(0), Some(1)])));
    /// # Ok::<(), sap_dist::Error>(())
    /// ```
    #[must_use]
    pub fn home(&self, b: &Aabb) -> Option<usize> {
        self.protocol.home(b)
    }

    /// Forgets the last update and its cuts. After [`Cause::OutOfStep`] all ranks call it.
    pub fn clear(&mut self) {
        self.search.clear();
        self.protocol.clear();
        self.results = Results::default();
        self.brought = Brought::default();
    }
}

fn pool(threads: NonZero<usize>) -> Result<ThreadPool, Cause> {
    let built = ThreadPoolBuilder::new()
        .num_threads(threads.get())
        .thread_name(|i| format!("radsweep-{i}"))
        .build();
    built.map_err(|error| {
        let reason = error.to_string();
        gpusort::Error::NoThreads { reason }.into()
    })
}

/// Runs `f` in a pool if there is one, else on this thread.
fn on_threads<T: Send>(pool: &Option<ThreadPool>, f: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => pool.install(f),
        None => f(),
    }
}

/// Separates messages from the state of their rank: one that failed sends empty ones.
fn split(messages: Result<Vec<Vec<u8>>, Cause>, ranks: usize) -> (Vec<Vec<u8>>, Result<(), Cause>) {
    match messages {
        Ok(messages) => (messages, Ok(())),
        Err(cause) => (vec![Vec::new(); ranks], Err(cause)),
    }
}
