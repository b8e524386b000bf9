//! Queries: which boxes of the last update a shape meets.

use crate::query::{Labels, Lookup, Probe, Sieve, Tree, TreeQuery, threads_for};
#[cfg(cuda)]
use crate::query::{Question, hits};
use crate::{Aabb, BroadPhase, Filter, Hit, OverlapRule, Result, Shape, try_alloc};
use std::ops::ControlFlow;

/// A query of the boxes of the last update; [`BroadPhase::query`] returns it.
///
/// It is a value, so it can be copied and used several times. The calls that end a query, such as
/// [`Query::collect`], search the boxes each time.
///
/// ```
/// use sap::{Aabb, BroadPhase, Config, Filter, Frame, Hit, Shape};
///
/// const WALL: u32 = 1;
/// const GHOST: u32 = 2;
/// let boxes = [3.0, 1.0, 5.0].map(|x| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]));
/// let filters = [WALL, GHOST, WALL].map(|layers| Filter { layers, ..Filter::default() });
/// let mut broad_phase = BroadPhase::new(Config::default())?;
/// broad_phase.update(Frame::boxes(&boxes).filters(&filters))?;
///
/// let ray = Shape::Ray { origin: [0.0, 0.5, 0.5], dir: [1.0, 0.0, 0.0], max_t: 100.0 };
/// let walls = broad_phase.query(ray).filter(Filter { mask: WALL, ..Filter::default() });
/// assert_eq!(walls.closest()?, Some(Hit::new(0, 3.0)));
/// assert_eq!(walls.collect()?, [0, 2]);
/// assert_eq!(broad_phase.query(ray).closest()?, Some(Hit::new(1, 1.0)));
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct Query<'a> {
    broad_phase: &'a BroadPhase,
    shape: Shape,
    filter: Option<Filter>,
    world: Option<u32>,
    rule: OverlapRule,
}

/// Where a query looks.
enum Source<'a> {
    Tree(TreeQuery<'a>),
    /// All hits, by distance, then index.
    #[cfg_attr(not(cuda), expect(dead_code, reason = "no device that finds them"))]
    List(Vec<Hit>),
    Nothing,
}

/// The error that a visitor breaks with when memory is refused.
type Flow = ControlFlow<crate::Error>;

impl<'a> Query<'a> {
    /// Leaves out the boxes that would not pair with a box of this filter ([`Filter::allows`]):
    /// layers and masks, groups, and flags. Boxes of an update without filters have the default
    /// one. Without this call filters do not matter, not even a mask of 0.
    pub const fn filter(self, filter: Filter) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }

    /// Leaves out the boxes of other worlds. Boxes of an update without worlds are in world 0.
    /// Without this call worlds do not matter.
    pub const fn world(self, world: u32) -> Self {
        Self {
            world: Some(world),
            ..self
        }
    }

    /// Sets whether touching boxes count, instead of [`Config::rule`](crate::Config::rule). Rays
    /// and casts meet borders by either rule.
    pub const fn rule(self, rule: OverlapRule) -> Self {
        Self { rule, ..self }
    }

    /// Returns the indices of the boxes that are met, in order.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn collect(&self) -> Result<Vec<u32>> {
        let mut indices = Vec::new();
        self.collect_into(&mut indices)?;
        Ok(indices)
    }

    /// Replaces the contents of a list by what [`Query::collect`] returns. It
    /// allocates only if the capacity of the list is too small. The list is empty after an error.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config};
    /// # let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([4.0; 3], [5.0; 3])])?;
    /// let mut near = Vec::new();
    /// for x in [0.5, 4.5] {
    ///     broad_phase.query(Aabb::new([x; 3], [9.0; 3])).collect_into(&mut near)?;
    ///     assert_eq!(near, if x < 1.0 { vec![0, 1] } else { vec![1] });
    /// }
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn collect_into(&self, indices: &mut Vec<u32>) -> Result<()> {
        self.gather(indices, |hit| hit.index)?;
        indices.sort_unstable();
        Ok(())
    }

    /// Returns the boxes that are met with their distances, by distance, then by index.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn hits(&self) -> Result<Vec<Hit>> {
        let mut hits = Vec::new();
        self.hits_into(&mut hits)?;
        Ok(hits)
    }

    /// Replaces the contents of a list by what [`Query::hits`] returns, as [`Query::collect_into`].
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn hits_into(&self, hits: &mut Vec<Hit>) -> Result<()> {
        self.gather(hits, |hit| hit)?;
        hits.sort_unstable_by_key(Hit::rank);
        Ok(())
    }

    /// Returns the first of [`Query::hits`] without finding the others: what a ray or a cast hits
    /// first, or the box nearest to the center of a sphere. It visits few boxes beyond that one.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config, Hit, Shape};
    /// # let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([4.0; 3], [5.0; 3]), Aabb::new([1.0; 3], [2.0; 3])])?;
    /// let within = |radius| broad_phase.query(Shape::Sphere { center: [3.0, 1.5, 1.5], radius });
    /// assert_eq!(within(10.0).closest()?, Some(Hit::new(1, 1.0)));
    /// assert_eq!(within(0.5).closest()?, None);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn closest(&self) -> Result<Option<Hit>> {
        Ok(match self.source()? {
            Source::Tree(search) => search.closest(),
            Source::List(hits) => hits.first().copied(),
            Source::Nothing => None,
        })
    }

    /// Tells whether any box is met. It stops at the first one.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn any(&self) -> Result<bool> {
        Ok(match self.source()? {
            Source::Tree(search) => search.each(&mut |_| ControlFlow::Break(())).is_break(),
            Source::List(hits) => !hits.is_empty(),
            Source::Nothing => false,
        })
    }

    /// Hands one hit after the other to a visitor until it breaks, and returns what it broke with.
    /// The hits of a ray, a cast or a sphere come in the order of [`Query::hits`], and are searched
    /// for one by one. Those of a box or a point come in no particular order.
    ///
    /// A narrow phase can thus test what a ray meets until no nearer box is left:
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config, Shape};
    /// # use std::ops::ControlFlow::{Break, Continue};
    /// # let mut broad_phase = BroadPhase::new(Config::default())?;
    /// # let boxes = [1.0, 2.0, 3.0, 4.0].map(|x| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]));
    /// # let exact = |index: u32| [None, Some(2.5), Some(3.5), Some(4.5)][index as usize];
    /// broad_phase.update(&boxes)?;
    /// let ray = Shape::Ray { origin: [0.0, 0.5, 0.5], dir: [1.0, 0.0, 0.0], max_t: 100.0 };
    /// let mut nearest: Option<(f32, u32)> = None;
    /// broad_phase.query(ray).visit(|hit| {
    ///     if nearest.is_some_and(|(t, _)| hit.t > t) {
    ///         return Break(()); // all other boxes begin farther away
    ///     }
    ///     if let Some(t) = exact(hit.index) // where the ray hits what is in the box, if it does
    ///         && nearest.is_none_or(|(nearest, _)| t < nearest)
    ///     {
    ///         nearest = Some((t, hit.index));
    ///     }
    ///     Continue(())
    /// })?;
    /// assert_eq!(nearest, Some((2.5, 1)));
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn visit<B>(&self, mut f: impl FnMut(Hit) -> ControlFlow<B>) -> Result<Option<B>> {
        let flow = match self.source()? {
            Source::Tree(search) if self.shape.has_distances() => search.nearest_first(f)?,
            Source::Tree(search) => search.each(&mut f),
            Source::List(hits) => hits.into_iter().try_for_each(f),
            Source::Nothing => ControlFlow::Continue(()),
        };
        Ok(flow.break_value())
    }

    /// Fills a list with something of each hit, in no particular order.
    fn gather<T>(&self, list: &mut Vec<T>, of: impl Fn(Hit) -> T) -> Result<()> {
        list.clear();
        let mut take = |hit| match try_alloc::push(list, of(hit)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => Flow::Break(error),
        };
        let flow = match self.source()? {
            Source::Tree(search) => search.each(&mut take),
            Source::List(hits) => hits.into_iter().try_for_each(take),
            Source::Nothing => ControlFlow::Continue(()),
        };
        flow.break_value().map_or(Ok(()), |error| {
            list.clear();
            Err(error)
        })
    }

    fn source(&self) -> Result<Source<'a>> {
        let Some(probe) = Probe::new(&self.shape, self.rule) else {
            return Ok(Source::Nothing);
        };
        let broad_phase = self.broad_phase;
        let is_sifted = self.filter.is_some() || self.world.is_some();
        let sieve = || -> Result<Option<Sieve<'a>>> {
            let sieve = |labels| Sieve::new(self.filter, self.world, labels);
            is_sifted
                .then(|| broad_phase.kept_labels().map(sieve))
                .transpose()
        };
        #[cfg(cuda)]
        if broad_phase.lookup.takes_scan()
            && let Some(near) = broad_phase
                .engine()
                .near_boxes(Question::from(&self.shape))?
        {
            return Ok(Source::List(hits(&near, &probe, sieve()?.as_ref())?));
        }
        let tree = broad_phase.tree()?;
        let of_tree = |sieve: Sieve<'a>| broad_phase.pool().run(|| sieve.of(tree));
        let sieve = sieve()?.map(of_tree).transpose()?;
        Ok(Source::Tree(TreeQuery { tree, probe, sieve }))
    }
}

impl BroadPhase {
    /// Begins a query of the boxes of the last update that a shape meets: a box, or a [`Shape`].
    /// Its results are the same on every backend.
    ///
    /// The query sees the boxes as they were given, without margin. A swept box is the union of its
    /// start and end, an `f64` box is rounded outward to `f32`. Invalid boxes are never met.
    /// Several threads may query at once.
    ///
    /// The first query after an update builds a tree, O(n log n). A query then visits O(log n +
    /// results) boxes if few tree nodes without a result intersect the shape. That is so for boxes
    /// of any sizes at any positions, even if a few of them are far away, huge or infinite. No tree
    /// of boxes does better than O(n^(2/3) + results) for every input. Filters and worlds leave out
    /// whole nodes of the tree; their first use after an update takes O(n). On CUDA the first 16
    /// queries scan all boxes on the device, unless they find more than 16,384; after them the tree
    /// is built.
    ///
    /// If a thread of a rayon pool asks while another thread of that pool is building the tree, it
    /// builds a tree of its own. So make one query before many threads do.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config};
    ///
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([4.0; 3], [5.0; 3])])?;
    /// let near = Aabb::new([0.5; 3], [2.0; 3]);
    /// assert_eq!(broad_phase.query(near).collect()?, [0]);
    /// assert!(broad_phase.query(near).any()?);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// From the calls that end a query: [`Error::OutOfMemory`](crate::Error::OutOfMemory),
    /// [`Error::Sort`](crate::Error::Sort) if the system grants no thread to build the tree, and
    /// errors of the device if the boxes are there. The next query tries again.
    pub fn query(&self, shape: impl Into<Shape>) -> Query<'_> {
        Query {
            broad_phase: self,
            shape: shape.into(),
            filter: None,
            world: None,
            rule: self.config().rule,
        }
    }

    /// Returns the boxes that overlap this one, as [`Query::collect`] does.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn query_box(&self, query: &Aabb) -> Result<Vec<u32>> {
        self.query(query).collect()
    }

    /// Returns the boxes that contain this point, as [`Query::collect`] of [`Shape::Point`] does.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn query_point(&self, point: [f32; 3]) -> Result<Vec<u32>> {
        self.query(Shape::Point(point)).collect()
    }

    /// Returns the boxes within `radius` of `center`, as [`Query::collect`] of [`Shape::Sphere`]
    /// does.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn query_sphere(&self, center: [f32; 3], radius: f32) -> Result<Vec<u32>> {
        self.query(Shape::Sphere { center, radius }).collect()
    }

    /// Returns the boxes that a ray meets, the nearest first, as [`Query::hits`] of [`Shape::Ray`]
    /// does.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query`].
    pub fn query_ray(&self, origin: [f32; 3], dir: [f32; 3], max_t: f32) -> Result<Vec<Hit>> {
        self.query(Shape::Ray { origin, dir, max_t }).hits()
    }

    /// The tree over the boxes of the last update, built by the first query that needs it.
    fn tree(&self) -> Result<&Tree> {
        let Lookup { tree, .. } = &self.lookup;
        self.pool().run(|| {
            tree.get_or_make(threads_for(self.report().n), |threads| {
                Tree::new(
                    &self.engine().boxes()?,
                    &self.kept_labels()?.worlds,
                    threads,
                )
            })
        })
    }

    /// The filters and worlds of the last update, copied from a device once.
    fn kept_labels(&self) -> Result<Labels<'_>> {
        let kept = &self.lookup.labels;
        if let Some(labels) = kept.get() {
            return Ok(labels.borrowed());
        }
        let labels = self.engine().labels()?;
        if labels.is_borrowed() {
            return Ok(labels);
        }
        Ok(kept.keep(labels.into_owned()?).borrowed())
    }
}
