//! The resource: the pairs by entity, and the queries.

use crate::Error;
use crate::slots::Slots;
use bevy_ecs::prelude::*;
use sap::{Aabb, Pair, Report};

/// An entity whose box a ray meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntityHit {
    /// The entity.
    pub entity: Entity,
    /// Where the ray enters its box, in lengths of the direction; 0 when it starts inside.
    pub t: f32,
}

/// The broad phase of a world, made by [`crate::install`].
///
/// Pairs and queries are those of the last update that did not fail, with the entities of that time: one may have been despawned since.
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

    /// The pairs of entities whose boxes overlap, by [`crate::BoxIndex`], the smaller first. O(1) each.
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

    /// Why the last run of the schedule found no pairs; none where it did.
    #[must_use]
    pub const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// What the last update did. A run of the schedule in which nothing had changed makes none.
    #[must_use]
    pub const fn report(&self) -> &Report {
        self.engine.report()
    }

    /// How many boxes the last run of the schedule wrote.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.written
    }

    /// How many colliders there are.
    #[must_use]
    pub fn colliders(&self) -> usize {
        self.slots.counts().0
    }

    /// The broad phase inside, where boxes are numbered by [`crate::BoxIndex`].
    #[must_use]
    pub const fn engine(&self) -> &sap::BroadPhase {
        &self.engine
    }

    /// Which entity has, or had at the last update, the box of this number.
    #[must_use]
    pub fn entity(&self, index: u32) -> Option<Entity> {
        ((index as usize) < self.slots.counts().1).then(|| self.slots.entity(index))
    }

    /// The entities whose boxes overlap this one, by [`crate::BoxIndex`]. The first query after an update builds a tree, O(n log n);
    /// each then costs about O(log n + results).
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use sap_ecs::{BroadPhase, BroadPhaseSchedule, Collider, Moved, sap::{Aabb, Config}};
    /// # let mut world = World::new();
    /// sap_ecs::install(&mut world, Config::default())?;
    /// let ball = world.spawn((Collider::new([0.5; 3]), Moved([4.0; 3]))).id();
    /// world.run_schedule(BroadPhaseSchedule);
    /// let mut broad_phase = world.resource_mut::<BroadPhase>();
    /// assert_eq!(broad_phase.query_box(&Aabb::new([4.2; 3], [9.0; 3]))?, [ball]);
    /// # Ok::<(), sap_ecs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query_box`].
    pub fn query_box(&mut self, query: &Aabb) -> Result<Vec<Entity>, Error> {
        let found = self.engine.query_box(query)?;
        Ok(self.entities(found))
    }

    /// The entities whose boxes hold this point; see [`sap::BroadPhase::query_point`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query_box`].
    pub fn query_point(&mut self, point: [f32; 3]) -> Result<Vec<Entity>, Error> {
        let found = self.engine.query_point(point)?;
        Ok(self.entities(found))
    }

    /// The entities whose boxes are within `radius` of `center`; see [`sap::BroadPhase::query_sphere`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query_box`].
    pub fn query_sphere(&mut self, center: [f32; 3], radius: f32) -> Result<Vec<Entity>, Error> {
        let found = self.engine.query_sphere(center, radius)?;
        Ok(self.entities(found))
    }

    /// The entities whose boxes the ray meets, the nearest first; see [`sap::BroadPhase::query_ray`].
    ///
    /// # Errors
    ///
    /// As [`sap::BroadPhase::query_box`].
    pub fn query_ray(
        &mut self,
        origin: [f32; 3],
        dir: [f32; 3],
        max_t: f32,
    ) -> Result<Vec<EntityHit>, Error> {
        let found = self.engine.query_ray(origin, dir, max_t)?.into_iter();
        let named = found.map(|hit| EntityHit {
            entity: self.slots.entity(hit.index),
            t: hit.t,
        });
        Ok(named.collect())
    }

    fn entities(&self, found: Vec<u32>) -> Vec<Entity> {
        let named = found.into_iter().map(|index| self.slots.entity(index));
        named.collect()
    }

    pub(crate) const fn count_written(&mut self, written: usize) {
        self.written = written;
    }

    /// Finds the pairs, if anything changed. Tells whether it did; a failure is kept in [`BroadPhase::error`].
    pub(crate) fn update(&mut self) -> bool {
        if !self.slots.has_changed() {
            return false;
        }
        self.error = match self.engine.update(self.slots.frame()) {
            Ok(_) => None,
            Err(sap::Error::InvalidAabb { index, reason }) => Some(Error::InvalidCollider {
                // A frame has fewer boxes than a u32 counts.
                entity: self.slots.entity(index as u32),
                reason,
            }),
            Err(error) => Some(error.into()),
        };
        self.error.is_none()
    }
}
