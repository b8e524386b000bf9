//! The broad phase over all ranks.

use crate::error::{Result, WORDS, agree, fault};
use crate::frame::InvalidBoxes;
use crate::layout::{Bounds, Layout, Sample};
use crate::outline::{Header, Outline};
use crate::report::{Clock, RankReport, Report};
use crate::results::{Brought, Results};
use crate::search::Search;
use crate::wire::{self, Cell, Lists};
use crate::{Cause, Error, Frame, Pair, Transport};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sap::{Backend, OnInvalid, OverlapRule, Strategy};
use std::num::NonZero;

/// How a [`Distributed`] works. It is the same on all ranks, except for memory and threads.
///
/// ```
/// use sap_dist::Config;
///
/// let config = Config { rule: sap::OverlapRule::Open, ..Config::default() };
/// assert!(config.events);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Whether touching boxes overlap.
    pub rule: OverlapRule,
    /// What becomes of invalid boxes.
    pub on_invalid: OnInvalid,
    /// How each rank finds the pairs of its cell.
    pub strategy: Strategy,
    /// Whether [`Distributed::started`] and [`Distributed::ended`] are computed.
    pub events: bool,
    /// The max memory of the engine of a rank for its list of pairs, as in
    /// [`sap::Config::pair_memory`]. `None` is half of what is available, on each rank.
    pub pair_memory: Option<u64>,
    /// The number of threads of a rank, which makes a pool of its own. `None` means the pool of
    /// `rayon` that the caller is in, else the global one. Ranks may have different numbers.
    pub threads: Option<NonZero<usize>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rule: OverlapRule::Closed,
            on_invalid: OnInvalid::Error,
            strategy: Strategy::Auto,
            events: true,
            pair_memory: None,
            threads: None,
        }
    }
}

impl Config {
    fn engine(&self) -> sap::Config {
        sap::Config {
            backend: Backend::Cpu,
            strategy: self.strategy,
            rule: self.rule,
            on_invalid: OnInvalid::Error, // invalid boxes stay behind
            events: false,
            pair_memory: self.pair_memory,
            ..sap::Config::default()
        }
    }

    /// What must be the same on all ranks.
    fn word(&self) -> u64 {
        u64::from(self.rule == OverlapRule::Open)
            | u64::from(self.on_invalid == OnInvalid::Skip) << 1
            | u64::from(self.events) << 2
    }
}

/// Samples that a rank gives for new cuts. With 512, a slab of 4 ranks has its share of the work to
/// some 5 %; with many ranks fewer, since every rank reads those of all.
fn samples_of_rank(ranks: usize) -> usize {
    (65536 / ranks.max(1)).clamp(64, 512)
}

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
    config: Config,
    search: Search,
    layout: Option<Layout>,
    results: Results,
    brought: Brought,
    updates: u64,
    report: Report,
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
            search: Search::new(config.engine()).map_err(failed)?,
            pool: config.threads.map(pool).transpose().map_err(failed)?,
            config,
            layout: None,
            results: Results::default(),
            brought: Brought::default(),
            updates: 0,
            report: Report::default(),
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
        let (mut clock, mut times) = (Clock::start(), [0; 5]);
        let (rank, ranks) = (transport.rank(), transport.size());
        let before = transport.traffic();
        let brought = Brought::of(&frame);
        let outline = self.outline(transport, &frame, brought != self.brought)?;
        let (layout, new_cuts) = self.cut(transport, &frame, &outline)?;
        times[0] = clock.lap();

        // From here on a rank that fails sends nothing and joins every call up to the last one,
        // which tells all.
        let written = wire::write(&frame, outline.lists, &layout, ranks);
        let (messages, written) = split(written, ranks);
        let boxes = transport.exchange(messages)?;
        times[1] = clock.lap();

        let cell = written.and_then(|()| Cell::read(&boxes, outline.lists, &layout, rank));
        drop(boxes);
        let mut counts = [0; 3];
        let found = cell.and_then(|cell| {
            counts = [cell.home.len() as u64, cell.copies() as u64, 0];
            let search = || self.search.run(cell, outline.lists, ranks);
            let found = on_threads(&self.pool, search)?;
            counts[2] = found.tests;
            Ok(found.messages)
        });
        times[2] = clock.lap();
        let (messages, found) = split(found, ranks);
        let pairs = transport.exchange(messages)?;
        times[3] = clock.lap();

        let last = self.config.events.then_some(&*self.results.pairs);
        let order = || Results::new(&pairs, frame.excluded, last);
        let results = found.and_then(|()| on_threads(&self.pool, order));
        drop(pairs);
        let (mut results, state) = match results {
            Ok(results) => (results, Ok(())),
            Err(cause) => (Results::default(), Err(cause)),
        };
        let others = outline.headers.iter().any(|header| header.other_ids);
        if self.config.events && self.updates > 0 && others {
            results.settle(transport, [&self.brought.sorted(), &brought.sorted()])?;
        }
        times[4] = clock.lap();

        let traffic = transport.traffic();
        let lists =
            [&results.pairs, &results.started, &results.ended].map(|list| list.len() as u64);
        let sent = [
            traffic.messages - before.messages,
            traffic.bytes - before.bytes,
        ];
        let row: Vec<u64> = [
            &fault(&state)[..],
            &[frame.len() as u64],
            &counts,
            &lists,
            &sent,
            &times,
        ]
        .concat();
        let rows = transport.all_gather(&row)?;
        agree(&rows, WORDS + RankReport::WORDS, (rank, &state))?;
        self.report = outline.report(&rows, &layout, new_cuts);
        self.results = results;
        self.brought = brought;
        self.updates += 1;
        Ok(&self.report)
    }

    /// Tells all ranks about this one's frame, and checks what must hold for all frames.
    fn outline<T: Transport>(
        &self,
        transport: &mut T,
        frame: &Frame,
        other_ids: bool,
    ) -> Result<Outline> {
        let state = frame.check();
        let invalid = match state {
            Ok(()) => frame.invalid(),
            Err(_) => InvalidBoxes::default(),
        };
        let header = Header {
            boxes: frame.len() as u64,
            ids: frame.first_id().map_or([0; 2], |first| [first, 1]),
            lists: Lists {
                filters: frame.filters.is_some(),
                worlds: frame.worlds.is_some(),
            },
            config: self.config.word(),
            updates: self.updates,
            layout: self.layout.as_ref().map_or(0, Layout::fingerprint),
            other_ids,
            invalid: invalid.count,
        };
        let fault = match (&state, self.config.on_invalid) {
            (Ok(()), OnInvalid::Error) => invalid.fault(),
            _ => fault(&state),
        };
        let rows = transport.all_gather(&header.words(fault, invalid.fault()))?;
        agree(&rows, Header::WIDTH, (transport.rank(), &state))?;
        Outline::new(&rows)
    }

    /// Makes new cuts if there are none, if the work of the last update was not balanced, or if
    /// there are more than twice as many boxes. Returns the cuts, and whether they changed.
    ///
    /// All ranks decide the same, because all read the same.
    fn cut<T: Transport>(
        &mut self,
        transport: &mut T,
        frame: &Frame,
        outline: &Outline,
    ) -> Result<(Layout, bool)> {
        let ranks = transport.size();
        let same = |header: &Header| header.layout == outline.headers[0].layout;
        if !outline.headers.iter().all(same) {
            self.layout = None; // an update failed midway
        }
        let grown = outline.boxes > 2 * self.report.boxes;
        if let Some(last) = self.layout.clone()
            && !grown
            && !self.report.is_unbalanced()
        {
            return Ok((last, false));
        }
        let gathered = transport.all_gather(&self.sample(frame, samples_of_rank(ranks)))?;
        let samples = self.weighed(&gathered, outline);
        let new = Layout::choose(&samples, ranks);
        // Boxes that change their home cost more than a slight gain.
        let gain = |last: &Layout| new.cost(&samples, ranks) * 20 < last.cost(&samples, ranks) * 19;
        match self.layout.clone() {
            Some(last) if !gain(&last) => Ok((last, false)),
            _ => {
                self.layout = Some(new.clone());
                Ok((new, true))
            }
        }
    }

    /// Returns three words of each sample: one box of each of `count` equal parts of the frame.
    fn sample(&self, frame: &Frame, count: usize) -> Vec<u64> {
        let mut words = Vec::with_capacity(3 * count);
        for part in 0..count as u128 {
            let border = |part: u128| (part * frame.len() as u128 / count as u128) as usize;
            let (from, to) = (border(part), border(part + 1));
            // Not the same place in every part: boxes may come in a regular order.
            let place = (part as usize).wrapping_mul(0x9e37_79b9) % (to - from).max(1);
            let found = frame.boxes[from..to].get(place);
            let b = found.filter(|b| b.check().is_ok()).copied();
            words.extend(bytemuck::cast::<_, [u64; 3]>(b.unwrap_or(sap::Aabb::EMPTY)));
        }
        words
    }

    /// Returns the samples of all ranks with their weights: each stands for a part of the boxes of
    /// its rank, and for as much work as such boxes took where it lies now.
    fn weighed(&self, gathered: &[u64], outline: &Outline) -> Vec<Sample> {
        let width = gathered.len() / outline.headers.len().max(1);
        let of_rank = gathered.chunks_exact(width.max(1)).zip(&outline.headers);
        let samples = of_rank.flat_map(|(words, header)| {
            let boxes = header.boxes.div_ceil((width / 3).max(1) as u64);
            words.as_chunks::<3>().0.iter().map(move |words| Sample {
                bounds: Bounds::of(&bytemuck::cast(*words)),
                boxes,
                work: boxes,
            })
        });
        let mut samples: Vec<Sample> = samples.filter(|sample| !sample.bounds.is_empty()).collect();
        if let Some(layout) = &self.layout {
            for sample in &mut samples {
                let rank = self.report.ranks.get(layout.home(&sample.bounds));
                let Some(rank) = rank.filter(|rank| rank.homes > 0) else {
                    continue;
                };
                let work = u128::from(sample.boxes) * u128::from(rank.work());
                sample.work = (work / u128::from(rank.homes)) as u64;
            }
        }
        samples
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
        &self.report
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
    pub fn home(&self, b: &sap::Aabb) -> Option<usize> {
        let layout = self.layout.as_ref()?;
        let searched = b.check().is_ok() && !b.is_empty();
        searched.then(|| layout.home(&Bounds::of(b)))
    }

    /// Forgets the last update and its cuts. After [`Cause::OutOfStep`] all ranks call it.
    pub fn clear(&mut self) {
        self.search.clear();
        self.layout = None;
        self.results = Results::default();
        self.brought = Brought::default();
        self.updates = 0;
        self.report = Report::default();
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
