//! Measures a frame by the share of its entities that move:
//! `cargo bench -p radsweep-ecs --bench bench_moving`.

use bevy_ecs::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sap::{Backend, Config};
use sap_ecs::{BroadPhase, BroadPhaseSchedule, Collider, Moved};
use std::time::Instant;

const ENTITIES: usize = 10_000;
const FRAMES: usize = 301;

fn main() -> Result<(), sap_ecs::Error> {
    println!("{ENTITIES} entities, medians of {FRAMES} frames, milliseconds on the CPU");
    println!("   moving   written    a frame   of it in sap   the rest    pairs");
    for moving in [0, 1, 100, 1_000, 10_000] {
        measure(moving)?;
    }
    Ok(())
}

/// Measures frames in which `moving` of the unit boxes jitter. A box overlaps about two others.
fn measure(moving: usize) -> Result<(), sap_ecs::Error> {
    let config = Config {
        backend: Backend::Cpu,
        ..Config::default()
    };
    let mut world = World::new();
    sap_ecs::install(&mut world, config)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    let bodies: Vec<Entity> = (0..ENTITIES)
        .map(|_| {
            let place = Moved(std::array::from_fn(|_| rng.random_range(0.0..33.0)));
            world.spawn((Collider::new([0.5; 3]), place)).id()
        })
        .collect();
    world.run_schedule(BroadPhaseSchedule);

    let mut times = Vec::new();
    for frame in 0..FRAMES {
        for at in 0..moving {
            let body = bodies[(at * (ENTITIES / moving) + frame) % ENTITIES];
            if let Some(mut moved) = world.get_mut::<Moved>(body) {
                moved.0[frame % 3] += rng.random_range(-0.1..0.1);
            }
        }
        let start = Instant::now();
        world.run_schedule(BroadPhaseSchedule);
        let total = start.elapsed().as_secs_f64() * 1e3;
        let inside = if moving > 0 {
            world.resource::<BroadPhase>().report().stats.timings.total
        } else {
            0.0
        };
        times.push((total, inside, total - inside));
    }
    let median = |pick: fn(&(f64, f64, f64)) -> f64| {
        let mut values: Vec<f64> = times.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[FRAMES / 2]
    };
    let broad_phase = world.resource::<BroadPhase>();
    println!(
        "{moving:9} {:9} {:10.4} {:15.4} {:10.4} {:8}",
        broad_phase.written(),
        median(|time| time.0),
        median(|time| time.1),
        median(|time| time.2),
        broad_phase.pairs().len()
    );
    Ok(())
}
