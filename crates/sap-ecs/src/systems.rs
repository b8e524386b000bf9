//! The schedule, its systems and their messages.

use crate::{BoxIndex, BroadPhase, Collider, Error, Moved};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{ScheduleConfigs, ScheduleLabel};
use bevy_ecs::system::ScheduleSystem;

/// The message that two boxes overlap that did not in the update before. Messages are in the order
/// of the boxes.
#[derive(Message, Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairStarted(pub [Entity; 2]);

/// The message that two boxes no longer overlap, or one was removed. Its entity may have been
/// despawned.
#[derive(Message, Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairEnded(pub [Entity; 2]);

/// The schedule that [`install`] creates. Run it once per frame, or add [`systems`] to a schedule
/// of your own.
#[derive(ScheduleLabel, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BroadPhaseSchedule;

/// The system sets of a run, in order. Systems that move entities go before `Write`, systems that
/// read pairs after `Update`.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BroadPhaseSystems {
    /// Writes the boxes of changed entities.
    Write,
    /// Finds the pairs and sends the messages.
    Update,
}

/// Creates the resource [`BroadPhase`] and the schedule [`BroadPhaseSchedule`], and replaces
/// earlier ones. Existing colliders get their boxes.
///
/// Messages can be read for two runs. O(colliders).
///
/// # Errors
///
/// As [`sap::BroadPhase::new`]; the world is then unchanged.
pub fn install(world: &mut World, config: sap::Config) -> Result<(), Error> {
    let mut broad_phase = BroadPhase::new(config)?;
    let mut colliders = world.query::<(Entity, &mut BoxIndex, Option<&Collider>, Option<&Moved>)>();
    for (entity, mut index, collider, moved) in colliders.iter_mut(world) {
        index.set(collider.map(|collider| {
            let slot = broad_phase.slots.take(entity);
            // Without a `Moved` the box stays empty until there is one.
            if let Some(moved) = moved {
                let placed = collider.placed(moved);
                broad_phase.slots.write(slot, placed, collider.filter);
            }
            slot
        }));
    }
    world.insert_resource(broad_phase);
    world.insert_resource(Messages::<PairStarted>::default());
    world.insert_resource(Messages::<PairEnded>::default());
    let mut schedule = Schedule::new(BroadPhaseSchedule);
    schedule.add_systems(systems());
    world.add_schedule(schedule);
    Ok(())
}

/// Returns the systems, in the sets [`BroadPhaseSystems`]. Call [`install`] first.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use sap_ecs::{BroadPhase, BroadPhaseSystems, Collider, Moved};
///
/// fn fall(mut bodies: Query<&mut Moved>) {
///     for mut moved in &mut bodies {
///         moved.0[1] -= 1.0;
///     }
/// }
///
/// let mut world = World::new();
/// sap_ecs::install(&mut world, sap_ecs::sap::Config::default())?;
/// world.spawn((Collider::new([0.5; 3]), Moved([0.0, 2.0, 0.0])));
/// world.spawn(Collider::from_aabb(sap_ecs::sap::Aabb::new([-1.0; 3], [1.0, 0.0, 1.0])));
/// let mut step = Schedule::default();
/// step.add_systems((sap_ecs::systems(), fall.before(BroadPhaseSystems::Write)));
/// step.run(&mut world);
/// assert_eq!(world.resource::<BroadPhase>().written(), 2);
/// # Ok::<(), sap_ecs::Error>(())
/// ```
pub fn systems() -> ScheduleConfigs<ScheduleSystem> {
    (
        write.in_set(BroadPhaseSystems::Write),
        update.in_set(BroadPhaseSystems::Update),
    )
        .chain()
}

type AnyChange = Or<(Changed<Collider>, Changed<Moved>)>;

fn write(
    mut broad_phase: ResMut<BroadPhase>,
    changed: Query<(&Collider, &Moved, &BoxIndex), AnyChange>,
) {
    let mut written = 0;
    for (collider, moved, index) in &changed {
        if let Some(index) = index.get() {
            let bounds = collider.placed(moved);
            broad_phase.slots.write(index, bounds, collider.filter);
            written += 1;
        }
    }
    broad_phase.count_written(written);
}

fn update(
    mut broad_phase: ResMut<BroadPhase>,
    mut started: ResMut<Messages<PairStarted>>,
    mut ended: ResMut<Messages<PairEnded>>,
) {
    started.update();
    ended.update();
    if broad_phase.update() {
        started.write_batch(broad_phase.started().map(PairStarted));
        ended.write_batch(broad_phase.ended().map(PairEnded));
        broad_phase.slots.settle();
    }
}
