//! Particles that flow down a landscape: balls of one mass, which the ground and each other hold up.
//!
//! Position based (M. Müller et al., "Position Based Dynamics", 2006; M. Macklin et al., "Unified Particle Physics for Real-Time
//! Applications", SIGGRAPH 2014, for the friction and the averaged Jacobi steps): gravity moves every ball, then a few rounds push
//! balls that overlap apart and out of the ground, and what came of it is the velocity. Each ball gathers its own push from the balls
//! whose boxes overlap its own, in the order of their numbers, so that the result is the same for any number of threads. The CUDA kernels
//! (`kernels/demo/particles.cuh`) take the same steps in the same order, to the same bits.
//!
//! The balls have one size, so the landscape grows with their number: every number of them covers it as deep.

use super::neighbours::Neighbours;
use super::{Boxes, Instance, Landscape, Pairs, Picture, Scene, schedule};
use bevy_ecs::prelude::*;
use bytemuck::{Pod, Zeroable};
use glam::{Vec3, Vec4, Vec4Swizzles};
use radsweep::Aabb;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use rayon::prelude::*;

/// Side of the landscape for each cube root of a particle, in metres: 100 m for 50,000.
const SIDE: f32 = 2.714_418;
/// Least and greatest radius, in metres.
const RADII: [f32; 2] = [0.2, 0.3];
/// Rounds of pushing apart. In a heap at rest of 1,500, one pair in a hundred overlaps by 2.7 percent or more; with 2 rounds by 3.7.
pub(super) const ROUNDS: usize = 4;
/// Particles that a thread takes at once.
const GRAIN: usize = 1024;

/// What the steps need to know besides the particles: passed to the kernels as it is.
#[repr(C)]
#[derive(Resource, Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Rules {
    /// One frame, in seconds.
    pub frame: f32,
    /// Metres per second squared, downward.
    pub gravity: f32,
    /// The fastest: air, and less than a radius in a frame, so that none jumps through another.
    pub max_speed: f32,
    /// How much further than its ball a box reaches: what a round may push it.
    pub margin: f32,
    /// Of the pushes that a ball gets, this over their number is carried out, at most all.
    pub share: f32,
    /// Coefficients between balls, and of a ball on the ground.
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
            // 18 cm a frame: less than the least radius.
            max_speed: 11.0,
            margin: 0.01,
            // 1 converges slowly where a ball has many neighbours, 2 swings; Macklin et al. take 1 to 2.
            share: 1.5,
            // They lie still on slopes of up to 9 degrees, and heap up a little.
            friction: 0.2,
            ground_friction: 0.15,
            side,
        }
    }
}

/// The particles, by number: lists rather than entities, as every step runs over all of them and looks up neighbours by number.
#[derive(Resource, Debug, Default)]
pub(super) struct Particles {
    /// Positions at the start of the frame, and radii.
    pub from: Vec<Vec4>,
    /// Where they are going to be; and the same, one round earlier.
    pub next: Vec<Vec4>,
    before: Vec<Vec4>,
    /// Metres per second.
    pub velocities: Vec<Vec4>,
}

/// The start: a carpet over the mountains, some layers thick, that follows the ground.
pub(super) fn start(count: usize, rng: &mut Rng) -> (Landscape, Rules, Particles) {
    let side = (SIDE * (count as f32).cbrt()).max(10.0);
    let ground = Landscape::of_side(side);
    let step = 2.1 * RADII[1];
    let [columns, rows] = [0.8, 0.45].map(|part| ((part * side / step) as usize).max(1));
    let from = (0..count)
        .map(|index| {
            let (column, row) = (index % columns, index / columns % rows);
            let layer = index / (columns * rows);
            let mut jitter = || rng.random_range(-0.05..0.05);
            let x = 0.1 * side + column as f32 * step + jitter();
            let z = 0.08 * side + row as f32 * step + jitter();
            let y = ground.at(x, z).y + (layer + 1) as f32 * step;
            Vec4::new(x, y, z, rng.random_range(RADII[0]..RADII[1]))
        })
        .collect::<Vec<_>>();
    let particles = Particles {
        next: from.clone(),
        before: vec![Vec4::ZERO; count],
        velocities: vec![Vec4::ZERO; count],
        from,
    };
    (ground, Rules::new(side), particles)
}

pub(super) fn scene(count: usize, rng: &mut Rng) -> Scene {
    let (ground, rules, particles) = start(count, rng);
    let mut world = World::new();
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
    Scene::on_host(world, schedule(place), respond, draw)
}

/// Gravity, and where each particle would be at the end of the frame if nothing were in its way.
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

/// Rounds in which every particle is pushed out of those it overlaps and out of the ground, by where they were one round earlier.
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
                push += rules.push_of_other(own, start, pair, index < other);
            }
            rules.pushed(own, push)
        };
        next.par_iter_mut()
            .with_min_len(GRAIN)
            .enumerate()
            .for_each(|(index, next)| *next = pushed(index));
    }
}

/// None stays in the ground, and the way that each has come is its velocity.
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

/// The steps of one particle; `kernels/demo/particles.cuh` has the same, operation by operation.
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

    /// Walls stand at the borders of the landscape.
    fn inside(&self, mut at: Vec3, radius: f32) -> Vec4 {
        let most = self.side - radius;
        for along in [&mut at.x, &mut at.z] {
            *along = if *along < radius { radius } else { *along };
            *along = if *along > most { most } else { *along };
        }
        at.extend(radius)
    }

    /// The push of the ground upon a ball, and 1 if there is one.
    fn push_of_ground(&self, own: Vec4, start: Vec4, ground: &Landscape) -> Vec4 {
        let below = ground.at(own.x, own.z);
        let length = (below.x * below.x + 1.0 + below.z * below.z).sqrt();
        let normal = Vec3::new(-below.x / length, 1.0 / length, -below.z / length);
        let depth = own.w - (own.y - below.y) * normal.y;
        if depth <= 0.0 {
            return Vec4::ZERO;
        }
        let moved = own.xyz() - start.xyz();
        let held = held_back(moved, normal, self.ground_friction * depth);
        (normal * depth - held).extend(1.0)
    }

    /// The push of another ball (its position and where it started), and 1 if they overlap: half of what parts them.
    fn push_of_other(
        &self,
        own: Vec4,
        start: Vec4,
        [other, other_start]: [Vec4; 2],
        first: bool,
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
            // At one place: the one goes up, the other down.
            Vec3::new(0.0, if first { -1.0 } else { 1.0 }, 0.0)
        };
        let depth = reach - distance;
        let moved = (own.xyz() - start.xyz()) - (other.xyz() - other_start.xyz());
        let held = held_back(moved, normal, self.friction * depth);
        ((normal * depth - held) * 0.5).extend(1.0)
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

    /// A ball whose middle is less than its radius above the ground's slope, lifted so far.
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

/// What friction takes back of a movement along a surface: all of it, or as much as `limit`.
fn held_back(moved: Vec3, normal: Vec3, limit: f32) -> Vec3 {
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
    fn none_sinks_into_the_ground_in_2000_frames_and_they_flow_down_and_come_to_rest() {
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
    fn a_ball_alone_falls_as_gravity_says_and_slides_no_steeper_than_friction_lets_it() {
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
        let held = held_back(moved, normal, 0.02);
        assert!(
            (held.length() - 0.02).abs() < 1e-6 && held.dot(normal).abs() < 1e-6,
            "{held}"
        );
        assert!(held_back(moved, normal, 1.0).abs_diff_eq(moved + normal * 0.1, 1e-6));
    }

    #[test]
    fn pushes_of_two_are_opposite_even_at_one_place() {
        let rules = Rules::new(50.0);
        for apart in [Vec3::ZERO, Vec3::new(0.1, 0.2, -0.3), Vec3::X] {
            let start = Vec4::new(9.0, 9.0, 9.0, 0.3);
            let (a, b) = (start, start + apart.extend(-0.05));
            let own = rules.push_of_other(a, start, [b, start], true);
            let other = rules.push_of_other(b, start, [a, start], false);
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
                    scene.boxes().expect("boxes of the host").to_vec(),
                    broad_phase.pairs().len(),
                )
            })
        };
        let one = run(1);
        assert!(one.1 > 5000, "{} pairs", one.1);
        assert_eq!(one, run(4));
    }
}
