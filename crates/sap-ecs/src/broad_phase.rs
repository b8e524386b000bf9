//! The resource [`BroadPhase`]: the pairs by entity, and the queries.

use crate::Error;
use crate::slots::Slots;
use bevy_ecs::prelude::*;
use sap::{Aabb, Filter, Hit, OverlapRule, Pair, Report, Shape};
use std::ops::ControlFlow;

/// An entity whose box a query hits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct EntityHit {
    /// The entity.
    pub entity: Entity,
    /// The distance to its box; see [`sap::Hit::t`].
    pub t: f32,
}

impl EntityHit {
    /// Returns a hit of the box of that entity, at that distance.
    #[must_use]
    pub const fn new(entity: Entity, t: f32) -> Self {
        Self { entity, t }
    }
}

/// The broad phase of a world, created by [`install`](crate::install).
///
/// Pairs and queries are those of the last successful update. They refer to the entities of that
/// time, some of which may have been despawned since.
#[derive(Resource)]
pub struct BroadPhase {
    engine: sap::BroadPhase,
    pub(crate) slots: Slots,
    written: usize,
    error: Option<Error>,
}

impl BroadPhase {
    pub(crate) fn new(config: sap::Config) -> Result<Self, Error> {
        Ok(Self {
            engine: sap::BroadPhase::new(config)?,
            slots: Slots::default(),
            written: 0,
            error: None,
        })
    }

    /// Returns the pairs of entities whose boxes overlap, sorted by [`BoxIndex`](crate::BoxIndex),
    /// the smaller first. O(1) each.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = [Entity; 2]> {
        self.named(self.engine.pairs())
    }

    pub(crate) fn started(&self) -> impl ExactSizeIterator<Item = [Entity; 2]> {
        self.named(self.engine.started())
    }

    pub(crate) fn ended(&self) -> impl ExactSizeIterator<Item = [Entity; 2]> {
        self.named(self.engine.ended())
    }

    fn named(&self, pairs: &[Pair]) -> impl ExactSizeIterator<Item = [Entity; 2]> {
        pairs
            .iter()
            .map(|pair| [pair.a, pair.b].map(|index| self.slots.entity(index)))
    }

    /// Returns the error of the last run of the schedule, if it failed. The first of equal errors
    /// in a row is logged too, by the crate `log` as an error.
    #[must_use]
    pub const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Returns the report of the last update. A run of the schedule without changes makes no
    /// update.
    #[must_use]
    pub const fn report(&self) -> &Report {
        self.engine.report()
    }

    /// Returns the number of boxes that the last run of the schedule wrote.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.written
    }

    /// Returns the number of colliders.
    #[must_use]
    pub fn colliders(&self) -> usize {
        self.slots.counts().0
    }

    /// Returns the inner broad phase, whose boxes have the indices of
    /// [`BoxIndex`](crate::BoxIndex).
    #[must_use]
    pub const fn engine(&self) -> &sap::BroadPhase {
        &self.engine
    }

    /// Returns the entity that has the box of this index, or had it at the last update.
    #[must_use]
    pub fn entity(&self, index: u32) -> Option<Entity> {
        ((index as usize) < self.slots.counts().1).then(|| self.slots.entity(index))
    }

    /// Starts a query of the entities whose boxes a shape hits; see [`sap::BroadPhase::query`].
    /// Several systems may query at once, with `Res<BroadPhase>`.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use sap_ecs::{BroadPhase, BroadPhaseSchedule, Collider, EntityHit, Moved};
    /// # use sap_ecs::sap::{Aabb, Config, Filter, Shape};
    /// # let mut world = World::new();
    /// sap_ecs::install(&mut world, Config::default())?;
    /// let ball = world.spawn((Collider::new([0.5; 3]), Moved([4.0; 3]))).id();
    /// world.run_schedule(BroadPhaseSchedule);
    /// let broad_phase = world.resource::<BroadPhase>();
    /// assert_eq!(broad_phase.query(Aabb::new([4.2; 3], [9.0; 3])).collect()?, [ball]);
    /// let ray = Shape::Ray { origin: [0.0, 4.0, 4.0], dir: [1.0, 0.0, 0.0], max_t: 100.0 };
    /// let hit = broad_phase.query(ray).filter(Filter { mask: 1, ..Filter::default() }).closest()?;
    /// assert_eq!(hit, Some(EntityHit::new(ball, 3.5)));
    /// # Ok::<(), sap_ecs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// From the calls that end it, as [`sap::BroadPhase::query`].
    pub fn query(&self, shape: impl Into<Shape>) -> EntityQuery<'_> {
        EntityQuery {
            query: self.engine.query(shape),
            slots: &self.slots,
        }
    }

    /// Returns the entities whose boxes overlap this one, by [`BoxIndex`](crate::BoxIndex).
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn query_box(&self, query: &Aabb) -> Result<Vec<Entity>, Error> {
        self.query(query).collect()
    }

    /// Returns the entities whose boxes contain this point; see [`sap::BroadPhase::query_point`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn query_point(&self, point: [f32; 3]) -> Result<Vec<Entity>, Error> {
        self.query(Shape::Point(point)).collect()
    }

    /// Returns the entities whose boxes are within `radius` of `center`; see
    /// [`sap::BroadPhase::query_sphere`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn query_sphere(&self, center: [f32; 3], radius: f32) -> Result<Vec<Entity>, Error> {
        self.query(Shape::Sphere { center, radius }).collect()
    }

    /// Returns the entities whose boxes the ray hits, the nearest first; see
    /// [`sap::BroadPhase::query_ray`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn query_ray(
        &self,
        origin: [f32; 3],
        dir: [f32; 3],
        max_t: f32,
    ) -> Result<Vec<EntityHit>, Error> {
        self.query(Shape::Ray { origin, dir, max_t }).hits()
    }

    pub(crate) const fn count_written(&mut self, written: usize) {
        self.written = written;
    }

    /// Finds the pairs if anything changed, and returns whether it did. [`BroadPhase::error`] has
    /// the failure.
    pub(crate) fn update(&mut self) -> bool {
        if !self.slots.has_changed() {
            return false;
        }
        let error = match self.engine.update(self.slots.frame()) {
            Ok(_) => None,
            Err(sap::Error::InvalidAabb { index, reason }) => Some(Error::InvalidCollider {
                // A frame has fewer boxes than a u32 can count.
                entity: self.slots.entity(index as u32),
                reason,
            }),
            Err(error) => Some(error.into()),
        };
        if let Some(error) = &error {
            self.log(error);
        }
        self.error = error;
        self.error.is_none()
    }

    /// Logs an error, unless the run before failed with the same: a broken entity fails every run
    /// until it is fixed.
    fn log(&self, error: &Error) {
        let text = error.to_string();
        if self.error.as_ref().map(ToString::to_string) != Some(text) {
            log::error!("the broad phase keeps the pairs of its last successful update: {error}");
        }
    }
}

/// A query of the entities of the last update; [`BroadPhase::query`] begins it. It is like
/// [`sap::Query`], with entities instead of indices.
#[derive(Clone, Copy)]
#[must_use]
pub struct EntityQuery<'a> {
    query: sap::Query<'a>,
    slots: &'a Slots,
}

impl EntityQuery<'_> {
    /// Leaves out the entities that would not pair with one of this filter; see
    /// [`sap::Query::filter`].
    pub const fn filter(self, filter: Filter) -> Self {
        Self {
            query: self.query.filter(filter),
            ..self
        }
    }

    /// Sets whether touching boxes count; see [`sap::Query::rule`].
    pub const fn rule(self, rule: OverlapRule) -> Self {
        Self {
            query: self.query.rule(rule),
            ..self
        }
    }

    /// Returns the entities that are met, by [`BoxIndex`](crate::BoxIndex).
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn collect(&self) -> Result<Vec<Entity>, Error> {
        let found = self.query.collect()?.into_iter();
        Ok(found.map(|index| self.slots.entity(index)).collect())
    }

    /// Returns the entities that are met with their distances, the nearest first.
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn hits(&self) -> Result<Vec<EntityHit>, Error> {
        let found = self.query.hits()?.into_iter();
        Ok(found.map(|hit| self.named(hit)).collect())
    }

    /// Returns the first of [`EntityQuery::hits`]; see [`sap::Query::closest`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn closest(&self) -> Result<Option<EntityHit>, Error> {
        Ok(self.query.closest()?.map(|hit| self.named(hit)))
    }

    /// Tells whether any entity is met.
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn any(&self) -> Result<bool, Error> {
        Ok(self.query.any()?)
    }

    /// Hands one hit after the other to a visitor until it breaks; see [`sap::Query::visit`], also
    /// for the order.
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query`].
    pub fn visit<B>(
        &self,
        mut f: impl FnMut(EntityHit) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        Ok(self.query.visit(|hit| f(self.named(hit)))?)
    }

    fn named(&self, hit: Hit) -> EntityHit {
        EntityHit {
            entity: self.slots.entity(hit.index),
            t: hit.t,
        }
    }
}
