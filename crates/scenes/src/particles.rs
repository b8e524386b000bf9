//! The scene `particles`: balls flow down a landscape and collide with it and with each other.
//!
//! The simulation is position based (M. Müller et al., "Position Based Dynamics", 2006), with the
//! friction and the averaged Jacobi steps of M. Macklin et al., "Unified Particle Physics for
//! Real-Time Applications", SIGGRAPH 2014. Gravity moves every ball. Then a few rounds push
//! overlapping balls apart and out of the ground. The motion of the frame gives the velocity.
//!
//! Each ball gathers its push from the balls whose boxes overlap its own, in the order of their
//! indices, so that the result does not depend on the number of threads. The CUDA kernels
//! (`kernels/demo/particles.cuh`) take the same steps in the same order, to the same bits.
//!
//! The size of a ball does not depend on their number. The landscape grows with it, so that they
//! always cover it equally deep.

use super::act::{Action, Added, Blast, Held, Refusal};
use super::neighbours::Neighbours;
use super::picture::{Instance, Landscape, Picture};
use super::scene::{Boxes, Pairs, Scene, schedule};
use bevy_ecs::prelude::*;
use bytemuck::{Pod, Zeroable};
use glam::{Vec3, Vec4, Vec4Swizzles};
use radsweep::Aabb;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Side of the landscape in metres divided by the cube root of the number of particles: 100 m for
/// 50,000.
const SIDE: f32 = 2.714_418;
/// Min and max radius in metres.
const RADII: [f32; 2] = [0.2, 0.3];
/// Rounds of pushing apart. In a resting heap of 1,500 balls, one pair in a hundred overlaps by 2.7
/// percent or more; with 2 rounds it is 3.7.
pub(super) const ROUNDS: usize = 4;
/// Particles per task.
const GRAIN: usize = 1024;

/// The parameters of the simulation, passed to the kernels.
#[repr(C)]
#[derive(Resource, Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Rules {
    /// Duration of a frame in seconds.
    pub frame: f32,
    /// Downward acceleration in metres per second squared.
    pub gravity: f32,
    /// Max speed: a ball moves less than its radius in a frame, so that none passes through
    /// another.
    pub max_speed: f32,
    /// Margin of a box around its ball, for the pushes of the rounds.
    pub margin: f32,
    /// Relaxation: the sum of a ball's pushes is multiplied by this over their number, at most by
    /// 1.
    pub share: f32,
    /// Coefficient of friction between balls, and of a ball on the ground.
    pub friction: f32,
    pub ground_friction: f32,
    /// Side of the landscape.
    pub side: f32,
}

impl Rules {
    const fn new(side: f32) -> Self {
        Self {
            frame: 1.0 / 60.0,
            gravity: 9.81,
            // 18 cm per frame: less than the min radius.
            max_speed: 11.0,
            margin: 0.01,
            // 1 converges slowly with many neighbours, 2 oscillates; Macklin et al. use 1 to 2.
            share: 1.5,
            // Balls rest on slopes of up to 9 degrees and form low heaps.
            friction: 0.2,
            ground_friction: 0.15,
            side,
        }
    }
}

/// The particles as lists rather than entities, since every step visits all of them and looks up
/// neighbours by index.
#[derive(Resource, Debug, Default)]
pub(super) struct Particles {
    /// Positions at the start of the frame, and radii.
    pub from: Vec<Vec4>,
    /// Positions at the end of the frame, after this round and after the last.
    pub next: Vec<Vec4>,
    before: Vec<Vec4>,
    /// Velocities in metres per second.
    pub velocities: Vec<Vec4>,
}

/// Height in metres above the ground from which balls are added.
const DROP: f32 = 6.0;

/// Creates a carpet of several layers of balls that follows the mountains.
pub(super) fn start(count: usize, rng: &mut Rng) -> (Landscape, Rules, Particles) {
    let side = (SIDE * (count as f32).cbrt()).max(10.0);
    let ground = Landscape::of_side(side);
    let from: Vec<Vec4> = (0..count)
        .map(|index| carpet(index, &ground, side, rng))
        .collect();
    let particles = Particles {
        next: from.clone(),
        before: vec![Vec4::ZERO; count],
        velocities: vec![Vec4::ZERO; count],
        from,
    };
    (ground, Rules::new(side), particles)
}

/// Returns the position and radius of a ball at the start, in layers above the ground.
fn carpet(index: usize, ground: &Landscape, side: f32, rng: &mut Rng) -> Vec4 {
    let step = 2.1 * RADII[1];
    let [columns, rows] = [0.8, 0.45].map(|part| ((part * side / step) as usize).max(1));
    let (column, row) = (index % columns, index / columns % rows);
    let layer = index / (columns * rows);
    let mut jitter = || rng.random_range(-0.05..0.05);
    let x = 0.1 * side + column as f32 * step + jitter();
    let z = 0.08 * side + row as f32 * step + jitter();
    let y = ground.at(x, z).y + (layer + 1) as f32 * step;
    Vec4::new(x, y, z, rng.random_range(RADII[0]..RADII[1]))
}

pub(super) fn scene(count: usize, rng: &mut Rng) -> Scene {
    let (ground, rules, particles) = start(count, rng);
    let mut world = World::new();
    world.insert_resource(Added(rng.clone()));
    world.init_resource::<Held>();
    world.insert_resource(Boxes::new(count));
    world.insert_resource(ground);
    world.insert_resource(rules);
    world.insert_resource(particles);
    world.init_resource::<Pairs>();
    world.init_resource::<Neighbours>();
    let respond = vec![
        ("neighbours", schedule(find_neighbours)),
        ("collide", schedule(collide)),
        ("settle", schedule(settle)),
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
        } => add(world, 1, |_, _, _| {
            let from = Vec3::from(from).extend(radius);
            (from, Vec3::from(velocity).extend(0.0))
        })?,
        Action::Add { count } => add(world, count, |index, ground, rng| {
            let side = ground.spacing * (ground.width - 1) as f32;
            (
                carpet(index, ground, side, rng) + Vec4::Y * DROP,
                Vec4::ZERO,
            )
        })?,
        Action::Grab { .. } | Action::Drag { .. } | Action::Release => {
            world.resource_scope(|world, mut held: Mut<Held>| {
                let all = &world.resource::<Particles>().from;
                held.act(action, |body| all.get(body).map(|at| at.xyz()))
            })?;
        }
        Action::Explode { at, speed, radius } => {
            let at = at.into();
            let blast = Blast { at, speed, radius };
            let Particles {
                from, velocities, ..
            } = &mut *world.resource_mut::<Particles>();
            for (from, velocity) in from.iter().zip(velocities) {
                let gain = blast.gain(from.xyz());
                *velocity += gain.unwrap_or_default().extend(0.0);
            }
        }
    }
    Ok(())
}

/// Adds balls with these positions, radii and velocities, by index of the added ones. They start
/// within the walls and above the ground.
fn add(
    world: &mut World,
    count: usize,
    mut new: impl FnMut(usize, &Landscape, &mut Rng) -> (Vec4, Vec4),
) -> Result<(), Refusal> {
    world.resource::<Boxes>().check_capacity(count)?;
    world.resource_scope(|world, mut added: Mut<Added>| {
        world.resource_scope(|world, mut particles: Mut<Particles>| {
            let (ground, rules) = (world.resource::<Landscape>(), world.resource::<Rules>());
            for index in 0..count {
                let (from, velocity) = new(index, ground, &mut added.0);
                let from = rules.lifted(rules.inside(from.xyz(), from.w), ground);
                particles.from.push(from);
                particles.velocities.push(velocity);
            }
            let balls = particles.from.len();
            particles.next.resize(balls, Vec4::ZERO);
            particles.before.resize(balls, Vec4::ZERO);
            world
                .resource_mut::<Boxes>()
                .aabbs
                .resize(balls, Aabb::EMPTY);
        });
    });
    Ok(())
}

/// Sets the velocity of the held ball, so that it follows its target.
fn drag(held: Res<Held>, mut particles: ResMut<Particles>, rules: Res<Rules>) {
    if let Some(ball) = held.body() {
        let motion = held.motion(particles.from[ball].xyz());
        let weight = Vec3::Y * (rules.gravity * rules.frame);
        particles.velocities[ball] = (motion / rules.frame + weight).extend(0.0);
    }
}

/// Applies gravity and predicts the position of each particle at the end of the frame.
fn place(mut particles: ResMut<Particles>, mut boxes: ResMut<Boxes>, rules: Res<Rules>) {
    let Particles {
        from,
        next,
        velocities,
        ..
    } = &mut *particles;
    let of_one =
        |(((next, velocity), from), aabb): (((&mut Vec4, &mut Vec4), &Vec4), &mut Aabb)| {
            (*next, *velocity) = rules.fall(*from, *velocity);
            *aabb = rules.aabb(*next);
        };
    next.par_iter_mut()
        .zip(velocities)
        .zip(&*from)
        .zip(&mut boxes.aabbs)
        .with_min_len(GRAIN)
        .for_each(of_one);
}

fn find_neighbours(pairs: Res<Pairs>, particles: Res<Particles>, mut found: ResMut<Neighbours>) {
    found.rebuild(particles.from.len(), &pairs.0);
}

/// Pushes overlapping particles apart and out of the ground, in rounds that read the positions of
/// the round before.
fn collide(
    mut particles: ResMut<Particles>,
    neighbours: Res<Neighbours>,
    ground: Res<Landscape>,
    rules: Res<Rules>,
) {
    let Particles {
        from, next, before, ..
    } = &mut *particles;
    for _ in 0..ROUNDS {
        std::mem::swap(next, before);
        let pushed = |index: usize| {
            let (own, start) = (before[index], from[index]);
            let mut push = rules.push_of_ground(own, start, &ground);
            for &other in neighbours.of(index) {
                let other = other as usize;
                let pair = [before[other], from[other]];
                push += rules.push_of_other(own, start, pair, index.cmp(&other));
            }
            rules.pushed(own, push)
        };
        next.par_iter_mut()
            .with_min_len(GRAIN)
            .enumerate()
            .for_each(|(index, next)| *next = pushed(index));
    }
}

/// Lifts particles out of the ground and computes the velocities from the motion.
fn settle(mut particles: ResMut<Particles>, ground: Res<Landscape>, rules: Res<Rules>) {
    let Particles {
        from,
        next,
        velocities,
        ..
    } = &mut *particles;
    let settled = |((next, from), velocity): ((&mut Vec4, &mut Vec4), &mut Vec4)| {
        *next = rules.lifted(*next, &ground);
        *velocity = (*next - *from) / rules.frame;
        *from = *next;
    };
    next.par_iter_mut()
        .zip(from)
        .zip(velocities)
        .with_min_len(GRAIN)
        .for_each(settled);
}

/// The steps of one particle; `kernels/demo/particles.cuh` has the same operations in the same
/// order.
impl Rules {
    fn fall(&self, from: Vec4, velocity: Vec4) -> (Vec4, Vec4) {
        let mut velocity = velocity.xyz();
        velocity.y -= self.gravity * self.frame;
        let speed = velocity.dot(velocity).sqrt();
        if speed > self.max_speed {
            velocity *= self.max_speed / speed;
        }
        let next = self.inside(from.xyz() + velocity * self.frame, from.w);
        (next, velocity.extend(0.0))
    }

    fn aabb(&self, at: Vec4) -> Aabb {
        let reach = at.w + self.margin;
        Aabb::new((at.xyz() - reach).into(), (at.xyz() + reach).into())
    }

    /// Keeps a position inside the walls at the borders of the landscape.
    fn inside(&self, mut at: Vec3, radius: f32) -> Vec4 {
        let most = self.side - radius;
        for along in [&mut at.x, &mut at.z] {
            *along = if *along < radius { radius } else { *along };
            *along = if *along > most { most } else { *along };
        }
        at.extend(radius)
    }

    /// Returns the push of the ground on a ball, and 1 if there is one.
    fn push_of_ground(&self, own: Vec4, start: Vec4, ground: &Landscape) -> Vec4 {
        let below = ground.at(own.x, own.z);
        let length = (below.x * below.x + 1.0 + below.z * below.z).sqrt();
        let normal = Vec3::new(-below.x / length, 1.0 / length, -below.z / length);
        let depth = own.w - (own.y - below.y) * normal.y;
        if depth <= 0.0 {
            return Vec4::ZERO;
        }
        let moved = own.xyz() - start.xyz();
        let taken = taken_by_friction(moved, normal, self.ground_friction * depth);
        (normal * depth - taken).extend(1.0)
    }

    /// Returns the push of another ball, given its position and its start, and 1 if they overlap:
    /// half of the way apart. `order` is that of its own index and the other's.
    fn push_of_other(
        &self,
        own: Vec4,
        start: Vec4,
        [other, other_start]: [Vec4; 2],
        order: Ordering,
    ) -> Vec4 {
        let apart = own.xyz() - other.xyz();
        let (square, reach) = (apart.dot(apart), own.w + other.w);
        if square >= reach * reach {
            return Vec4::ZERO;
        }
        let distance = square.sqrt();
        let normal = if distance > 1e-6 {
            apart / distance
        } else {
            // Both have the same centre: one moves up, the other down.
            Vec3::new(0.0, if order.is_lt() { -1.0 } else { 1.0 }, 0.0)
        };
        let depth = reach - distance;
        let moved = (own.xyz() - start.xyz()) - (other.xyz() - other_start.xyz());
        let taken = taken_by_friction(moved, normal, self.friction * depth);
        ((normal * depth - taken) * 0.5).extend(1.0)
    }

    fn pushed(&self, own: Vec4, push: Vec4) -> Vec4 {
        if push.w == 0.0 {
            return own;
        }
        let share = if push.w > self.share {
            self.share / push.w
        } else {
            1.0
        };
        self.inside(own.xyz() + push.xyz() * share, own.w)
    }

    /// Lifts a ball whose centre is less than its radius above the slope of the ground.
    fn lifted(&self, own: Vec4, ground: &Landscape) -> Vec4 {
        let below = ground.at(own.x, own.z);
        let length = (below.x * below.x + 1.0 + below.z * below.z).sqrt();
        let least = below.y + own.w * length;
        Vec4::new(
            own.x,
            if own.y < least { least } else { own.y },
            own.z,
            own.w,
        )
    }
}

/// Returns the share of a motion along a surface that friction takes back: all of it, or up to
/// `limit`.
fn taken_by_friction(moved: Vec3, normal: Vec3, limit: f32) -> Vec3 {
    let along = moved - normal * moved.dot(normal);
    let square = along.dot(along);
    if square > limit * limit {
        along * (limit / square.sqrt())
    } else {
        along
    }
}

fn draw(world: &World, picture: &mut Picture) {
    let particles = world.resource::<Particles>();
    let instances = particles.from.iter().zip(&particles.velocities).zip(0..);
    picture
        .spheres
        .extend(instances.map(|((at, velocity), body)| Instance::of_ball(*at, *velocity, body)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Options};
    use radsweep::{Backend, BroadPhase, Config};

    fn scene(bodies: usize, seed: u64) -> (Scene, BroadPhase) {
        let options = Options {
            bodies: Some(bodies),
            seed,
            ..Options::default()
        };
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let scene = Scene::new(Kind::Particles, &options).expect("a scene");
        (scene, BroadPhase::new(config).expect("the CPU is there"))
    }

    fn mean(list: &[Vec4], of: impl Fn(&Vec4) -> f32) -> f32 {
        list.iter().map(of).sum::<f32>() / list.len() as f32
    }

    #[test]
    fn in_2000_frames_none_sinks_and_all_flow_down_and_come_to_rest() {
        let (mut scene, mut broad_phase) = scene(1500, 1);
        let mut sunk = 0;
        let mut start = Vec4::ZERO;
        let mut fastest: f32 = 0.0;
        for frame in 0..2000 {
            scene.step(&mut broad_phase).expect("valid boxes");
            let particles = scene.world.resource::<Particles>();
            let ground = scene.world.resource::<Landscape>();
            let side = scene.world.resource::<Rules>().side;
            let within = |along: f32| (0.0..=side).contains(&along);
            let stands = |at: &&Vec4| {
                within(at.x) && within(at.z) && at.y - ground.at(at.x, at.z).y > 0.999 * at.w
            };
            sunk += 1500 - particles.from.iter().filter(stands).count();
            fastest = fastest.max(mean(&particles.velocities, |v| v.length()));
            if frame == 0 {
                start = particles.from.iter().sum::<Vec4>() / 1500.0;
            }
        }
        assert_eq!(sunk, 0, "particles that sank, over all frames");
        let particles = scene.world.resource::<Particles>();
        let end = particles.from.iter().sum::<Vec4>() / 1500.0;
        let side = scene.world.resource::<Rules>().side;
        assert!(
            end.y < 0.6 * start.y && end.z > start.z + 0.3 * side,
            "they flowed: {start} {end}"
        );
        let slow = mean(&particles.velocities, |v| v.length());
        assert!(
            fastest > 1.0 && slow < 0.1,
            "they rest: {fastest} m/s, then {slow}"
        );
        let depth = |pair: &radsweep::Pair| {
            let [a, b] = [pair.a, pair.b].map(|index| particles.from[index as usize]);
            1.0 - (a.xyz() - b.xyz()).length() / (a.w + b.w)
        };
        let mut depths: Vec<f32> = broad_phase.pairs().iter().map(depth).collect();
        depths.sort_by(f32::total_cmp);
        let (most, deepest) = (depths[depths.len() * 99 / 100], depths[depths.len() - 1]);
        assert!(
            most < 0.05 && deepest < 0.3,
            "they hold each other: {most} {deepest}"
        );
    }

    #[test]
    fn a_single_ball_falls_by_gravity_and_slides_only_where_friction_allows() {
        let rules = Rules::new(50.0);
        let (mut at, mut velocity) = (Vec4::new(20.0, 40.0, 20.0, 0.25), Vec4::ZERO);
        for _ in 0..60 {
            (at, velocity) = rules.fall(at, velocity);
        }
        assert!((velocity.y + 9.81).abs() < 1e-3, "{velocity}");
        // The sum of 1 to 60 is 1830.
        let fallen = 9.81 / 3600.0 * 1830.0;
        assert!((40.0 - at.y - fallen).abs() < 1e-3, "{at}");
        for _ in 0..60 {
            (at, velocity) = rules.fall(at, velocity);
        }
        assert!(
            (velocity.length() - rules.max_speed).abs() < 1e-3,
            "{velocity}"
        );

        let normal = Vec3::new(0.6, 0.8, 0.0);
        let moved = Vec3::new(0.08, -0.06, 0.3) - normal * 0.1;
        let taken = taken_by_friction(moved, normal, 0.02);
        assert!(
            (taken.length() - 0.02).abs() < 1e-6 && taken.dot(normal).abs() < 1e-6,
            "{taken}"
        );
        assert!(taken_by_friction(moved, normal, 1.0).abs_diff_eq(moved + normal * 0.1, 1e-6));
    }

    #[test]
    fn pushes_of_two_balls_are_opposite_even_at_the_same_position() {
        let rules = Rules::new(50.0);
        for apart in [Vec3::ZERO, Vec3::new(0.1, 0.2, -0.3), Vec3::X] {
            let start = Vec4::new(9.0, 9.0, 9.0, 0.3);
            let (a, b) = (start, start + apart.extend(-0.05));
            let own = rules.push_of_other(a, start, [b, start], Ordering::Less);
            let other = rules.push_of_other(b, start, [a, start], Ordering::Greater);
            assert_eq!(own.xyz(), -other.xyz());
            assert_eq!([own.w, other.w], [f32::from(u8::from(apart.x < 0.5)); 2]);
        }
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("threads").install(|| {
                let (mut scene, mut broad_phase) = scene(5000, 3);
                for _ in 0..80 {
                    scene.step(&mut broad_phase).expect("valid boxes");
                }
                (
                    scene.boxes().expect("host boxes").to_vec(),
                    broad_phase.pairs().len(),
                )
            })
        };
        let one = run(1);
        assert!(one.1 > 5000, "{} pairs", one.1);
        assert_eq!(one, run(4));
    }
}
