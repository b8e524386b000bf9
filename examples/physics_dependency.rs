//! A small physics loop that takes its pairs from radsweep: 3,000 balls of three materials fall
//! onto a gate that lets one of them through, and onto the floor below. The example fails if the
//! energy grows or another material is below the gate, as it would if a pair were missing.
//!
//! `cargo run --release -p radsweep --example physics_dependency`

use glam::Vec3;
use radsweep::{Aabb, BroadPhase, Config, Filter, FilterFlags, Frame};
use std::error::Error;

const BALLS: usize = 3_000;
const STEP: f32 = 1.0 / 240.0;
const GRAVITY: Vec3 = Vec3::new(0.0, -9.81, 0.0);
/// Layers of the three materials, and of static boxes.
const MATERIALS: [u32; 3] = [1, 2, 4];
const GROUND: u32 = 8;
const GATE: u32 = 16;

struct Ball {
    place: Vec3,
    velocity: Vec3,
    radius: f32,
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut balls: Vec<Ball> = (0..BALLS).map(ball).collect();
    // Static boxes: a floor that is a half-space, and a gate that the first material passes.
    let floor = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY, 0.0, f32::INFINITY]);
    let gate = Aabb::new([-20.0, 4.0, -20.0], [20.0, 4.2, 20.0]);
    let filters: Vec<Filter> = (0..BALLS)
        .map(|index| Filter {
            layers: MATERIALS[index % 3],
            ..Filter::default()
        })
        .chain([
            fixed(GROUND, u32::MAX),
            fixed(GATE, MATERIALS[1] | MATERIALS[2]),
        ])
        .collect();

    let mut broad_phase = BroadPhase::new(Config::default())?;
    let mut boxes = Vec::new();
    let mut last_energy = f32::INFINITY;
    println!("   time    pairs  contacts  started    ended   energy  below the gate      ms");
    for step in 0..=480 {
        boxes.clear();
        boxes.extend(balls.iter().map(Ball::aabb).chain([floor, gate]));
        broad_phase.update(Frame::boxes(&boxes).filters(&filters))?;

        let mut contacts = 0;
        for pair in broad_phase.pairs() {
            let (a, b) = (pair.a as usize, pair.b as usize);
            contacts += if b < BALLS {
                let (head, tail) = balls.split_at_mut(b);
                usize::from(bounce(&mut head[a], &mut tail[0]))
            } else {
                usize::from(rest(&mut balls[a], &boxes[b]))
            };
        }
        for ball in &mut balls {
            ball.velocity += GRAVITY * STEP;
            ball.place += ball.velocity * STEP;
        }
        if step % 60 == 0 {
            let report = broad_phase.report();
            let energy: f32 = balls.iter().map(Ball::energy).sum();
            let below = (0..BALLS).filter(|&index| balls[index].place.y < 4.0);
            let by_material = below.fold([0; 3], |mut count, index| {
                count[index % 3] += 1;
                count
            });
            if energy > last_energy * 1.001 || by_material[1..] != [0; 2] {
                return Err(format!("energy {energy}, {by_material:?} below the gate").into());
            }
            last_energy = energy;
            let by_material = format!("{by_material:?}");
            println!(
                "{:6.2} s {:8} {contacts:9} {:8} {:8} {energy:8.1} {by_material:>15} {:7.3}",
                step as f32 * STEP,
                report.pairs,
                report.started,
                report.ended,
                report.stats.timings.total
            );
        }
    }
    Ok(())
}

/// Returns a ball of a loose, slightly irregular column; the same in every run.
fn ball(index: usize) -> Ball {
    let [x, y, z] = [index % 15, index / 225, index / 15 % 15].map(|cell| cell as f32);
    let off = (index as f32 * 12.9898).sin() * 0.1;
    Ball {
        place: Vec3::new(x - 7.0 + off, 5.0 + y * 0.9, z - 7.0 - off),
        velocity: Vec3::ZERO,
        radius: 0.25 + 0.05 * (index % 3) as f32,
    }
}

const fn fixed(layers: u32, mask: u32) -> Filter {
    Filter {
        layers,
        mask,
        group: 0,
        flags: FilterFlags::STATIC,
    }
}

impl Ball {
    fn aabb(&self) -> Aabb {
        let radius = Vec3::splat(self.radius);
        Aabb::new((self.place - radius).into(), (self.place + radius).into())
    }

    /// Returns the energy per unit of mass, which must not grow.
    fn energy(&self) -> f32 {
        self.velocity.length_squared() / 2.0 - GRAVITY.dot(self.place)
    }
}

/// Lets two touching balls bounce: they lose a fifth of their relative speed and half of the
/// overlap. Returns whether they touch.
fn bounce(a: &mut Ball, b: &mut Ball) -> bool {
    let line = b.place - a.place;
    let distance = line.length();
    let depth = a.radius + b.radius - distance;
    if depth < 0.0 || distance == 0.0 {
        return false;
    }
    let normal = line / distance;
    let approach = (a.velocity - b.velocity).dot(normal);
    let impulse = normal * (approach.max(0.0) * 0.9);
    a.velocity -= impulse;
    b.velocity += impulse;
    a.place -= normal * (depth / 4.0);
    b.place += normal * (depth / 4.0);
    true
}

/// Lets a ball rest on the upper face of a static box. Returns whether it touches.
fn rest(ball: &mut Ball, below: &Aabb) -> bool {
    let depth = below.max[1] - (ball.place.y - ball.radius);
    if !(0.0..=2.0 * ball.radius).contains(&depth) {
        return false;
    }
    ball.place.y += depth / 2.0;
    ball.velocity.y = ball.velocity.y.max(-0.5 * ball.velocity.y);
    ball.velocity *= 1.0 - STEP; // rolling
    true
}
