//! The broad phase in a world of `bevy_ecs`: 1 % of 10,000 sparks move in each frame, and a system
//! counts how often each was hit. Only the boxes of moved entities are written, and pairs and
//! messages refer to entities.
//!
//! `cargo run --release -p radsweep --features ecs --example ecs`

use bevy_ecs::prelude::*;
use radsweep::Config;
use radsweep::ecs::{self, BroadPhase, BroadPhaseSystems, Collider, Moved, PairEnded, PairStarted};

#[derive(Component, Default)]
struct Spark {
    number: u32,
    hits: u32,
}

#[derive(Resource, Default)]
struct Frame(u32);

/// Moves every hundredth spark, a different hundredth in each frame.
fn step(frame: Res<Frame>, mut sparks: Query<(&Spark, &mut Moved)>) {
    for (spark, mut moved) in &mut sparks {
        if spark.number % 100 == frame.0 % 100 {
            let angle = (spark.number + frame.0) as f32;
            moved.0[0] += angle.cos();
            moved.0[2] += angle.sin();
        }
    }
}

fn count_hits(mut started: MessageReader<PairStarted>, mut sparks: Query<&mut Spark>) {
    for PairStarted(pair) in started.read() {
        for &entity in pair {
            if let Ok(mut spark) = sparks.get_mut(entity) {
                spark.hits += 1;
            }
        }
    }
}

fn print(
    mut frame: ResMut<Frame>,
    broad_phase: Res<BroadPhase>,
    mut started: MessageReader<PairStarted>,
    mut ended: MessageReader<PairEnded>,
) {
    frame.0 += 1;
    println!(
        "{:5} {:13} {:7} {:8} {:8} {:9.3}",
        frame.0,
        broad_phase.written(),
        broad_phase.pairs().len(),
        started.read().count(),
        ended.read().count(),
        broad_phase.report().stats.timings.total
    );
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), ecs::Error> {
    let mut world = World::new();
    ecs::install(&mut world, Config::default())?;
    world.init_resource::<Frame>();
    world.spawn_batch((0..10_000_u32).map(|number| {
        let place = [number % 25, number / 625, number / 25 % 25].map(|cell| cell as f32 * 1.05);
        let spark = Spark { number, hits: 0 };
        (spark, Collider::new([0.5; 3]), Moved(place))
    }));

    let mut schedule = Schedule::default();
    schedule.add_systems((
        ecs::systems(),
        step.before(BroadPhaseSystems::Write),
        (count_hits, print).after(BroadPhaseSystems::Update),
    ));
    println!("frame boxes written   pairs  started    ended        ms");
    for _ in 0..10 {
        schedule.run(&mut world);
    }

    // A spark is despawned: its pairs end in the next frame, and a later spark reuses its box.
    let Some([gone, other]) = world.resource::<BroadPhase>().pairs().next() else {
        println!("no pair");
        return Ok(());
    };
    world.despawn(gone);
    schedule.run(&mut world);
    let ended = world.resource::<Messages<PairEnded>>();
    let mine = ended
        .iter_current_update_messages()
        .filter(|pair| pair.0.contains(&gone));
    println!(
        "{gone}, which overlapped {other}, was despawned: {} of its pairs ended",
        mine.count()
    );

    let mut sparks = world.query::<(Entity, &Spark)>();
    let most = sparks.iter(&world).max_by_key(|(_, spark)| spark.hits);
    if let Some((entity, spark)) = most {
        println!("most often hit: {entity}, {} times", spark.hits);
    }
    Ok(())
}
