//! Tests that a failed update is logged, for those who do not read `BroadPhase::error`.

#![allow(clippy::unwrap_used)]

use bevy_ecs::prelude::*;
use log::{Level, LevelFilter, Log, Metadata, Record};
use sap::Config;
use sap_ecs::{BroadPhase, BroadPhaseSchedule, Collider, Moved};
use std::sync::Mutex;

static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// Keeps the lines of `radsweep-ecs`.
struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        if record.target().starts_with("sap_ecs") {
            let line = (record.level(), record.args().to_string());
            LINES.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

/// Runs the schedule and returns what it logged.
fn logged(world: &mut World) -> Vec<(Level, String)> {
    world.run_schedule(BroadPhaseSchedule);
    std::mem::take(&mut *LINES.lock().unwrap())
}

/// Moves an entity on y.
fn lift(world: &mut World, entity: Entity, y: f32) {
    world.get_mut::<Moved>(entity).unwrap().0[1] = y;
}

#[test]
fn a_failed_update_is_logged_once() {
    log::set_logger(&Lines).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let mut world = World::new();
    sap_ecs::install(&mut world, Config::default()).unwrap();
    let [first, second] = [0, 1].map(|_| world.spawn(Collider::new([1.0; 3])).id());
    let line = |entity| {
        let reason = format!("the box of entity {entity} is invalid: min y is NaN");
        let text =
            format!("the broad phase keeps the pairs of its last successful update: {reason}");
        (Level::Error, text)
    };
    assert_eq!(logged(&mut world), []);

    lift(&mut world, second, f32::NAN);
    assert_eq!(logged(&mut world), [line(second)]);
    assert_eq!(logged(&mut world), [], "the same failure again");
    assert!(world.resource::<BroadPhase>().error().is_some());

    lift(&mut world, first, f32::NAN);
    assert_eq!(logged(&mut world), [line(first)], "another entity");
    lift(&mut world, first, 0.0);
    assert_eq!(logged(&mut world), [line(second)], "the first one mended");

    lift(&mut world, second, 0.0);
    assert_eq!(logged(&mut world), [], "all mended");
    lift(&mut world, second, f32::NAN);
    assert_eq!(logged(&mut world), [line(second)], "broken again");
}
