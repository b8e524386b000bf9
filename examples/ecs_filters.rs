//! Filters in a world of `bevy_ecs`: two teams of ships fire at each other through a field of
//! rocks. A shot hits rocks and ships of the other team, never its own, and a query finds the
//! closest enemy in front of a ship.
//!
//! `cargo run --release -p radsweep --features ecs --example ecs_filters`

use bevy_ecs::prelude::*;
use radsweep::ecs::{self, BroadPhase, BroadPhaseSystems, Collider, Moved, PairStarted};
use radsweep::{Aabb, Config, Filter, OverlapRule, Shape};

/// Layers: the ships of each team, their shots, and rocks.
const SHIPS: [u32; 2] = [1, 2];
const SHOTS: [u32; 2] = [4, 8];
const ROCK: u32 = 16;

const ROWS: u32 = 40;
const STEPS: u32 = 120;

#[derive(Component, Clone, Copy, PartialEq)]
struct Team(usize);

#[derive(Component)]
struct Ship {
    row: u32,
    hits: u32,
}

#[derive(Component)]
struct Shot;

#[derive(Component)]
struct Rock;

#[derive(Resource, Default)]
struct Score {
    step: u32,
    fired: u32,
    /// Shots that hit a ship of the other team, a ship of their own, and a rock.
    enemy: u32,
    friend: u32,
    rock: u32,
    /// Overlaps of a shot with a ship of its own team, found without filters.
    spared: u32,
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut world = World::new();
    ecs::install(&mut world, Config::default())?;
    world.init_resource::<Score>();
    for row in 0..ROWS {
        let y = 3.0 * row as f32;
        for team in [0, 1] {
            // Each team has a ship in the first line and one behind it, which fires past the first.
            for line in [40.0, 46.0] {
                let x = if team == 0 { -line } else { line };
                // A ship pairs with the shots of the other team, not with rocks and ships.
                let collider =
                    Collider::new([1.0; 3]).with_filter(only(SHIPS[team], SHOTS[1 - team]));
                world.spawn((
                    Ship { row, hits: 0 },
                    Team(team),
                    collider,
                    Moved([x, y, 0.0]),
                ));
            }
        }
        if row.is_multiple_of(3) {
            let collider =
                Collider::new([1.5, 1.0, 1.0]).with_filter(only(ROCK, SHOTS[0] | SHOTS[1]));
            world.spawn((Rock, collider.fixed(), Moved([0.0, y, 0.0])));
        }
    }

    let mut schedule = Schedule::default();
    schedule.add_systems((
        ecs::systems(),
        (fire, fly).chain().before(BroadPhaseSystems::Write),
        (hit, spare).chain().after(BroadPhaseSystems::Update),
    ));
    for _ in 0..STEPS {
        schedule.run(&mut world);
        if let Some(error) = world.resource::<BroadPhase>().error() {
            return Err(error.to_string().into());
        }
    }
    report(&mut world)
}

fn only(layers: u32, mask: u32) -> Filter {
    Filter {
        layers,
        mask,
        ..Filter::default()
    }
}

/// Lets the ships of one row fire in each step.
fn fire(mut score: ResMut<Score>, ships: Query<(&Ship, &Team, &Moved)>, mut commands: Commands) {
    for (ship, &Team(team), moved) in &ships {
        if ship.row == score.step % ROWS {
            let collider =
                Collider::new([0.2; 3]).with_filter(only(SHOTS[team], SHIPS[1 - team] | ROCK));
            commands.spawn((Shot, Team(team), collider, *moved));
            score.fired += 1;
        }
    }
    score.step += 1;
}

/// Moves the shots towards the other team.
fn fly(mut shots: Query<(&Team, &mut Moved), With<Shot>>) {
    for (team, mut moved) in &mut shots {
        moved.0[0] += if team.0 == 0 { 1.5 } else { -1.5 };
    }
}

/// Removes the shots that hit something, and counts what they hit.
fn hit(
    mut started: MessageReader<PairStarted>,
    shots: Query<&Team, With<Shot>>,
    rocks: Query<&Rock>,
    mut ships: Query<(&Team, &mut Ship)>,
    mut score: ResMut<Score>,
    mut commands: Commands,
) {
    for &PairStarted([a, b]) in started.read() {
        let (shot, target) = if shots.contains(a) { (a, b) } else { (b, a) };
        let Ok(&team) = shots.get(shot) else { continue };
        if let Ok((other, mut ship)) = ships.get_mut(target) {
            ship.hits += 1;
            score.friend += u32::from(*other == team);
            score.enemy += u32::from(*other != team);
        } else if rocks.contains(target) {
            score.rock += 1;
        }
        commands.entity(shot).try_despawn();
    }
}

/// Counts the shots that are inside a ship of their own team: the pairs that the filters leave out.
fn spare(
    shots: Query<(&Team, &Collider, &Moved), With<Shot>>,
    ships: Query<(&Team, &Collider, &Moved), With<Ship>>,
    mut score: ResMut<Score>,
) {
    for (team, shot, at) in &shots {
        let own = ships.iter().filter(|(other, ..)| *other == team);
        let shot = placed(shot, at);
        let inside =
            own.filter(|(_, ship, at)| shot.overlaps(&placed(ship, at), OverlapRule::Closed));
        score.spared += inside.count() as u32;
    }
}

fn placed(collider: &Collider, moved: &Moved) -> Aabb {
    let add = |corner: [f32; 3]| [0, 1, 2].map(|axis| corner[axis] + moved.0[axis]);
    Aabb::new(add(collider.bounds.min), add(collider.bounds.max))
}

fn report(world: &mut World) -> Result<(), Box<dyn std::error::Error>> {
    // What is in front of a ship? A ray, for ships of the other team only, as a shot would hit.
    let mut seen = 0;
    let mut ships = world.query::<(&Ship, &Team, &Moved)>();
    let broad_phase = world.resource::<BroadPhase>();
    for (_, &Team(team), moved) in ships.iter(world) {
        let towards = if team == 0 { 1.0 } else { -1.0 };
        let ray = Shape::Ray {
            origin: moved.0,
            dir: [towards, 0.0, 0.0],
            max_t: 200.0,
        };
        let enemies = only(SHOTS[team], SHIPS[1 - team]);
        let hit = broad_phase.query(ray).filter(enemies).closest()?;
        let other = hit.and_then(|hit| world.get::<Team>(hit.entity));
        seen += u32::from(other.is_some_and(|other| other.0 != team));
    }
    let most = ships.iter(world).max_by_key(|(ship, ..)| ship.hits);
    let score = world.resource::<Score>();
    println!(
        "{} shots: {} hit the other team, {} a rock, {} their own team",
        score.fired, score.enemy, score.rock, score.friend
    );
    println!(
        "{} times a shot was inside a ship of its own team, and the filter left the pair out",
        score.spared
    );
    println!(
        "{seen} of {} ships see the other team by a ray that skips their own",
        4 * ROWS
    );
    if let Some((ship, team, _)) = most {
        println!(
            "hit most often: a ship of team {} in row {}, {} times",
            team.0, ship.row, ship.hits
        );
    }
    if score.friend != 0 || score.spared == 0 || score.enemy == 0 || seen != 4 * ROWS {
        return Err("the filters do not do what this example says".into());
    }
    Ok(())
}
