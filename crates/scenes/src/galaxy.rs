//! The scene `galaxy`: two galaxies meet. Bodies attract each other by gravity and bounce where
//! they touch.
//!
//! Gravity is summed by a tree, on the CPU ([`super::barnes_hut`]) and on CUDA
//! (`kernels/demo/gravity.cuh`); on `wgpu`, over all bodies. The integration is leapfrog (half a
//! kick, a step, the other half), which conserves the energy of orbits; bodies bounce between the
//! halves.

use super::act::{Action, Added, Blast, Held, Refusal};
use super::barnes_hut::Tree;
use super::neighbours::Neighbours;
use super::picture::{Instance, Picture};
use super::scene::{Boxes, Pairs, Scene, schedule};
use bevy_ecs::prelude::*;
use bytemuck::{Pod, Zeroable};
use glam::{Quat, Vec3, Vec4, Vec4Swizzles};
use radsweep::Aabb;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use rayon::prelude::*;

/// Mass of a galaxy, for a gravitational constant of 1. A body half way out has an orbit of five
/// seconds.
const MASS: f32 = 25_000.0;
/// Share of the mass in the body at the centre; the other bodies share the rest evenly.
const CORE: f32 = 0.4;
/// Inner and outer radius of the disc.
const DISC: [f32; 2] = [5.0, 50.0];
/// Radius of a body times the cube root of their number. In the discs, one body in ten touches
/// another.
const RADIUS: f32 = 4.0;
/// Radius of the bodies at the centres.
const CORE_RADIUS: f32 = 1.0;
/// Bodies per task.
const GRAIN: usize = 256;

/// The parameters of the simulation, passed to the kernels.
#[repr(C)]
#[derive(Resource, Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Rules {
    /// Duration of a frame in seconds.
    pub frame: f32,
    /// Softening length, below which gravity grows no further.
    pub softening: f32,
}

pub(super) const RULES: Rules = Rules {
    frame: 1.0 / 60.0,
    softening: 2.0,
};

/// The bodies, by index.
#[derive(Resource, Debug, Default)]
pub(super) struct Bodies {
    /// Positions and masses.
    pub at: Vec<Vec4>,
    /// Velocities and radii.
    pub moves: Vec<Vec4>,
    /// Accelerations.
    pulls: Vec<Vec3>,
    /// Velocities and radii before the collisions.
    before: Vec<Vec4>,
    /// The index of the body that each one bounces off, or its own index for none.
    partners: Vec<u32>,
    tree: Tree,
}

/// Mass of a thrown ball: that of a hundred bodies of the default scene.
const BALL_MASS: f32 = 400.0;

/// Creates two discs, the second one tilted, that fall towards each other and pass.
pub(super) fn start(count: usize, rng: &mut Rng) -> Bodies {
    let mut bodies = Bodies::default();
    let radius = RADIUS / (count as f32).cbrt();
    let counts = [count.div_ceil(2), count / 2];
    let tilts = [Quat::from_rotation_x(0.25), Quat::from_rotation_z(1.0)];
    let [apart, speed] = [Vec3::new(62.0, 8.0, 22.0), Vec3::new(-9.0, 0.0, 2.0)];
    for (galaxy, sign) in [1.0_f32, -1.0].into_iter().enumerate() {
        let members = counts[galaxy];
        for member in 0..members {
            let (at, velocity, mass, radius) = if member == 0 {
                let mass = if members > 1 { CORE * MASS } else { MASS };
                (Vec3::ZERO, Vec3::ZERO, mass, CORE_RADIUS)
            } else {
                let mass = (1.0 - CORE) * MASS / (members - 1) as f32;
                // Uniform in the radius: the density falls as 1/r, and the mass inside grows as r.
                let part: f32 = rng.random();
                let out = DISC[0] + part * (DISC[1] - DISC[0]);
                let (sin, cos) = rng.random_range(0.0..std::f32::consts::TAU).sin_cos();
                let inside = MASS * (CORE + part * (1.0 - CORE));
                let soft = out * out + RULES.softening * RULES.softening;
                let round = (inside * out * out / (soft * soft.sqrt())).sqrt();
                let thick = 0.02 * DISC[1] * (rng.random::<f32>() - rng.random::<f32>());
                let at = Vec3::new(out * cos, thick, out * sin);
                (at, Vec3::new(-sin, 0.0, cos) * round, mass, radius)
            };
            let tilt = tilts[galaxy];
            bodies.at.push((tilt * at + apart * sign).extend(mass));
            bodies
                .moves
                .push((tilt * velocity + speed * sign).extend(radius));
        }
    }
    // Relative to the common centre of mass, which then does not move.
    let weight: f32 = bodies.at.iter().map(|at| at.w).sum();
    let momenta = bodies.at.iter().zip(&bodies.moves);
    let drift = momenta.map(|(at, moves)| moves.xyz() * at.w).sum::<Vec3>() / weight;
    for moves in &mut bodies.moves {
        *moves -= drift.extend(0.0);
    }
    bodies.before.clone_from(&bodies.moves);
    bodies.pulls = vec![Vec3::ZERO; count];
    bodies
}

pub(super) fn scene(count: usize, rng: &mut Rng) -> Scene {
    let mut world = World::new();
    world.insert_resource(Boxes::new(count));
    world.insert_resource(RULES);
    world.insert_resource(start(count, rng));
    world.insert_resource(Added(rng.clone()));
    world.init_resource::<Held>();
    world.init_resource::<Pairs>();
    world.init_resource::<Neighbours>();
    let respond = vec![
        ("gravity", schedule(gravity)),
        ("neighbours", schedule(find_neighbours)),
        ("collide", schedule(collide)),
    ];
    let place = schedule((drag, place).chain());
    Scene::on_host(world, place, respond, draw).acting(act)
}

fn act(world: &mut World, action: &Action) -> Result<(), Refusal> {
    match *action {
        Action::Throw {
            from,
            velocity,
            radius,
        } => {
            world.resource::<Boxes>().check_capacity(1)?;
            let (from, velocity) = (Vec3::from(from), Vec3::from(velocity));
            add(world, from.extend(BALL_MASS), velocity.extend(radius));
        }
        Action::Add { count } => {
            world.resource::<Boxes>().check_capacity(count)?;
            add_ring(world, count);
        }
        Action::Grab { .. } | Action::Drag { .. } | Action::Release => {
            world.resource_scope(|world, mut held: Mut<Held>| {
                let all = &world.resource::<Bodies>().at;
                held.act(action, |body| all.get(body).map(|at| at.xyz()))
            })?;
        }
        Action::Explode { at, speed, radius } => {
            let at = at.into();
            let blast = Blast { at, speed, radius };
            let Bodies { at, moves, .. } = &mut *world.resource_mut::<Bodies>();
            for (at, moves) in at.iter().zip(moves) {
                *moves += blast.gain(at.xyz()).unwrap_or_default().extend(0.0);
            }
        }
    }
    Ok(())
}

/// Adds a body: its position and mass, its velocity and radius.
fn add(world: &mut World, at: Vec4, moves: Vec4) {
    let mut bodies = world.resource_mut::<Bodies>();
    bodies.at.push(at);
    bodies.moves.push(moves);
    bodies.before.push(moves);
    bodies.pulls.push(Vec3::ZERO);
    world.resource_mut::<Boxes>().aabbs.push(Aabb::EMPTY);
}

/// Adds bodies of median mass and radius, in a ring around the centre of mass, without a velocity.
fn add_ring(world: &mut World, count: usize) {
    world.resource_scope(|world, mut added: Mut<Added>| {
        let bodies = world.resource::<Bodies>();
        let mut masses: Vec<f32> = bodies.at.iter().map(|at| at.w).collect();
        let mut radii: Vec<f32> = bodies.moves.iter().map(|moves| moves.w).collect();
        let middle = masses.len() / 2;
        let [mass, radius] = [&mut masses, &mut radii]
            .map(|list| *list.select_nth_unstable_by(middle, f32::total_cmp).1);
        for _ in 0..count {
            let out = added.0.random_range(DISC[1]..1.4 * DISC[1]);
            let (sin, cos) = added.0.random_range(0.0..std::f32::consts::TAU).sin_cos();
            let high = added.0.random_range(-1.0..1.0);
            let at = Vec3::new(out * cos, high, out * sin);
            add(world, at.extend(mass), Vec3::ZERO.extend(radius));
        }
    });
}

/// Sets the velocity of the held body, so that it follows its target.
fn drag(held: Res<Held>, mut bodies: ResMut<Bodies>, rules: Res<Rules>) {
    if let Some(body) = held.body() {
        let motion = held.motion(bodies.at[body].xyz());
        bodies.moves[body] = (motion / rules.frame).extend(bodies.moves[body].w);
        bodies.pulls[body] = Vec3::ZERO;
    }
}

fn place(mut bodies: ResMut<Bodies>, mut boxes: ResMut<Boxes>, rules: Res<Rules>) {
    let Bodies {
        at, moves, pulls, ..
    } = &mut *bodies;
    let half = rules.frame / 2.0;
    for (((at, moves), pull), aabb) in at.iter_mut().zip(moves).zip(pulls).zip(&mut boxes.aabbs) {
        *moves += (*pull * half).extend(0.0);
        *at += (moves.xyz() * rules.frame).extend(0.0);
        *aabb = Aabb::new((at.xyz() - moves.w).into(), (at.xyz() + moves.w).into());
    }
}

/// Computes the acceleration of each body by all others.
fn gravity(mut bodies: ResMut<Bodies>, rules: Res<Rules>) {
    let Bodies {
        at,
        moves,
        pulls,
        tree,
        ..
    } = &mut *bodies;
    tree.accelerations(at, rules.softening, pulls);
    for (moves, pull) in moves.iter_mut().zip(pulls) {
        *moves += (*pull * (rules.frame / 2.0)).extend(0.0);
    }
}

fn find_neighbours(pairs: Res<Pairs>, bodies: Res<Bodies>, mut found: ResMut<Neighbours>) {
    found.rebuild(bodies.at.len(), &pairs.0);
}

/// Lets touching bodies that approach each other bounce without loss.
///
/// Each body selects the one that it overlaps most. Two bodies that select each other bounce and
/// exchange momentum; all others wait for the next frame.
fn collide(mut bodies: ResMut<Bodies>, neighbours: Res<Neighbours>) {
    let Bodies {
        at,
        moves,
        before,
        partners,
        ..
    } = &mut *bodies;
    std::mem::swap(moves, before);
    let body = |index: usize| [at[index], before[index]];
    (0..at.len())
        .into_par_iter()
        .with_min_len(GRAIN)
        .map(|index| partner(index, neighbours.of(index), body))
        .collect_into_vec(partners);
    let met = |(index, moves): (usize, &mut Vec4)| {
        let other = partners[index] as usize;
        let agreed = other != index && partners[other] as usize == index;
        *moves = if agreed {
            bounced(body(index), body(other))
        } else {
            before[index]
        };
    };
    moves
        .par_iter_mut()
        .with_min_len(GRAIN)
        .enumerate()
        .for_each(met);
}

/// Returns the touching, approaching neighbour that a body overlaps most, or the body itself if
/// there is none.
///
/// A body is its position and mass, and its velocity and radius. `kernels/demo/galaxy.cuh` takes
/// the same steps.
fn partner(index: usize, row: &[u32], body: impl Fn(usize) -> [Vec4; 2]) -> u32 {
    let own = body(index);
    let (mut found, mut least) = (index as u32, 1.0);
    for &other in row {
        let met = body(other as usize);
        let apart = own[0].xyz() - met[0].xyz();
        let closing = (own[1].xyz() - met[1].xyz()).dot(apart);
        let reach = own[1].w + met[1].w;
        let part = apart.dot(apart) / (reach * reach);
        if closing < 0.0 && part < least {
            (found, least) = (other, part);
        }
    }
    found
}

/// Returns the velocity and radius of a body after it bounced off another.
fn bounced(own: [Vec4; 2], other: [Vec4; 2]) -> Vec4 {
    let apart = own[0].xyz() - other[0].xyz();
    let closing = (own[1].xyz() - other[1].xyz()).dot(apart);
    let share = other[0].w / (own[0].w + other[0].w);
    let change = apart * (-2.0 * share * closing / apart.dot(apart));
    own[1] + change.extend(0.0)
}

fn draw(world: &World, picture: &mut Picture) {
    let bodies = world.resource::<Bodies>();
    let instances = bodies.at.iter().zip(&bodies.moves).zip(0..);
    picture.spheres.extend(
        instances
            .map(|((at, moves), body)| Instance::of_ball(at.xyz().extend(moves.w), *moves, body)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Options};
    use radsweep::{Backend, BroadPhase, Config};

    fn scene(bodies: usize) -> (Scene, BroadPhase) {
        let options = Options {
            bodies: Some(bodies),
            ..Options::default()
        };
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let scene = Scene::new(Kind::Galaxy, &options).expect("a scene");
        (scene, BroadPhase::new(config).expect("the CPU is there"))
    }

    /// Returns the momentum, and the sum of the bodies' absolute momenta.
    fn momentum(bodies: &Bodies) -> (Vec3, f32) {
        let each = bodies.at.iter().zip(&bodies.moves);
        let each = each.map(|(at, moves)| moves.xyz() * at.w);
        each.fold((Vec3::ZERO, 0.0), |(sum, size), one| {
            (sum + one, size + one.length())
        })
    }

    /// Returns the kinetic and potential energy.
    fn energy(bodies: &Bodies) -> f64 {
        let soft = RULES.softening * RULES.softening;
        let of_one = |index: usize| {
            let (at, moves) = (bodies.at[index], bodies.moves[index].xyz());
            let others = bodies.at[..index].iter().map(|other| {
                let apart = (at - *other).xyz();
                f64::from(at.w * other.w) / f64::from(apart.dot(apart) + soft).sqrt()
            });
            f64::from(at.w * moves.dot(moves)) / 2.0 - others.sum::<f64>()
        };
        (0..bodies.at.len()).map(of_one).sum()
    }

    #[test]
    fn momentum_and_energy_are_conserved_while_the_galaxies_meet() {
        let (mut scene, mut broad_phase) = scene(800);
        let before = energy(scene.world.resource::<Bodies>());
        let (mut nearest, mut bounced) = (f32::MAX, 0);
        for frame in 0..800 {
            let step = scene.step(&mut broad_phase).expect("valid boxes");
            bounced += step.report.pairs;
            let bodies = scene.world.resource::<Bodies>();
            assert!(bodies.at.iter().all(|at| at.is_finite()), "frame {frame}");
            nearest = nearest.min((bodies.at[0] - bodies.at[400]).xyz().length());
            if frame % 100 == 99 {
                let (sum, size) = momentum(bodies);
                let left = sum.length() / size;
                assert!(left < 1e-3, "frame {frame}: momentum {left}");
                let now = energy(bodies) / before;
                assert!((now - 1.0).abs() < 0.02, "frame {frame}: energy {now}");
            }
        }
        assert!(nearest < 50.0, "they met: {nearest}");
        assert!(bounced > 1000, "bodies touched: {bounced} pairs");
    }

    #[test]
    fn a_body_of_a_disc_orbits_its_centre() {
        let (mut scene, mut broad_phase) = scene(400);
        for _ in 0..40 {
            scene.step(&mut broad_phase).expect("valid boxes");
        }
        let bodies = scene.world.resource::<Bodies>();
        let out = |index: usize| (bodies.at[index] - bodies.at[0]).xyz().length();
        let inside = (1..200).filter(|&index| (3.0..56.0).contains(&out(index)));
        let stayed = inside.count();
        assert!(stayed > 190, "{stayed} of 199");
    }

    #[test]
    fn two_bodies_that_bounce_conserve_momentum_and_energy_and_separate() {
        let a = [Vec4::new(0.0, 0.0, 0.0, 3.0), Vec4::new(1.0, 0.2, 0.0, 0.5)];
        let b = [
            Vec4::new(0.8, 0.1, 0.0, 1.0),
            Vec4::new(-2.0, 0.0, 0.1, 0.5),
        ];
        let bodies = [a, b];
        let body = |index: usize| bodies[index];
        assert_eq!([partner(0, &[1], body), partner(1, &[0], body)], [1, 0]);
        let after = [bounced(a, b), bounced(b, a)];
        let momentum = |of: [Vec4; 2]| of[0].xyz() * a[0].w + of[1].xyz() * b[0].w;
        let energy = |of: [Vec4; 2]| {
            of[0].xyz().length_squared() * a[0].w + of[1].xyz().length_squared() * b[0].w
        };
        let before = [a[1], b[1]];
        assert!(momentum(after).abs_diff_eq(momentum(before), 1e-5));
        assert!((energy(after) - energy(before)).abs() < 1e-4);
        assert_eq!([after[0].w, after[1].w], [0.5; 2]);
        let parting = [[a[0], after[0]], [b[0], after[1]]];
        assert_eq!(partner(0, &[1], |index| parting[index]), 0);
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("threads").install(|| {
                let (mut scene, mut broad_phase) = scene(3000);
                for _ in 0..20 {
                    scene.step(&mut broad_phase).expect("valid boxes");
                }
                scene.boxes().expect("host boxes").to_vec()
            })
        };
        assert_eq!(run(1), run(4));
    }
}
