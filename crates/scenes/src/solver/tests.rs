//! Tests of the solver with cubes and a plate.

use super::super::constraint::FRICTION;
use super::super::contacts::{self, Form, Placed};
use super::*;
use crate::chair::Part;
use glam::Mat3;
use parry3d::math::Pose3;
use radsweep::Pair;

const HALF: Vec3 = Vec3::splat(0.5);

fn cube(position: Vec3) -> Body {
    let inertia = Mat3::from_diagonal(Vec3::splat(1.0 / 6.0));
    Body {
        pose: Pose3::from_parts(position, Quat::IDENTITY),
        linear: Vec3::ZERO,
        angular: Vec3::ZERO,
        inverse_mass: 1.0,
        inertia,
        inverse_inertia: inertia.inverse(),
        damping: 0.1,
        asleep: false,
    }
}

/// Returns a wide plate that does not move, tilted about z, with its top through the origin.
fn plate(tilt: f32) -> Body {
    let rotation = Quat::from_rotation_z(tilt);
    let pose = Pose3::from_parts(rotation * Vec3::new(0.0, -0.5, 0.0), rotation);
    let still = Mat3::ZERO;
    Body {
        pose,
        inverse_mass: 0.0,
        inertia: still,
        inverse_inertia: still,
        ..cube(Vec3::ZERO)
    }
}

/// Cubes on a plate, with contacts between all bodies.
struct World {
    bodies: Vec<Body>,
    contacts: Vec<Contact>,
}

impl World {
    fn new(bodies: Vec<Body>) -> Self {
        Self {
            bodies,
            contacts: Vec::new(),
        }
    }

    fn run(&mut self, frames: u32) {
        for _ in 0..frames {
            let half = |index| {
                if index == 0 {
                    Vec3::new(50.0, 0.5, 50.0)
                } else {
                    HALF
                }
            };
            let boxes: Vec<Placed> = (0_u32..)
                .zip(&self.bodies)
                .map(|(index, body)| {
                    let (center, half) = (Vec3::ZERO, half(index));
                    Placed::new(index, body, Form::Box, &Part { center, half })
                })
                .collect();
            let count = boxes.len() as u32;
            let pairs: Vec<Pair> = (0..count)
                .flat_map(|a| (a + 1..count).map(move |b| Pair { a, b }))
                .collect();
            self.contacts = contacts::find(&pairs, &boxes, &self.bodies, &self.contacts);
            step(&mut self.bodies, &mut self.contacts);
        }
    }
}

#[test]
fn a_tower_of_cubes_stands() {
    let tower = (0_u8..8).map(|level| cube(Vec3::new(0.0, 0.5 + f32::from(level), 0.0)));
    let mut world = World::new([plate(0.0)].into_iter().chain(tower).collect());
    world.run(600);
    for (level, body) in (0_u8..).zip(&world.bodies[1..]) {
        let expected = Vec3::new(0.0, 0.5 + f32::from(level), 0.0);
        let moved = body.pose.translation - expected;
        assert!(moved.length() < 0.03, "level {level} moved by {moved}");
        assert!(
            body.linear.length() < 0.01,
            "level {level}: {}",
            body.linear
        );
    }
}

#[test]
fn friction_holds_a_cube_on_a_gentle_slope_and_not_on_a_steep_one() {
    let slide = |tilt: f32| {
        let mut world = World::new(vec![plate(tilt), cube(Vec3::ZERO)]);
        let rotation = Quat::from_rotation_z(tilt);
        world.bodies[1].pose = Pose3::from_parts(rotation * Vec3::new(0.0, 0.5, 0.0), rotation);
        world.run(60);
        (rotation.inverse() * world.bodies[1].pose.translation)
            .x
            .abs()
    };
    let held = slide(FRICTION.atan() - 0.05);
    assert!(held < 0.01, "{held}");
    // Half the acceleration times one second squared, by Coulomb's law.
    let tilt = FRICTION.atan() + 0.15;
    let expected = -GRAVITY.y * (tilt.sin() - FRICTION * tilt.cos()) / 2.0;
    let slid = slide(tilt);
    assert!(
        (slid - expected).abs() < 0.1 * expected,
        "{slid} {expected}"
    );
}

#[test]
fn an_impact_bounces_a_little_and_a_fast_fall_does_not_pass_the_plate() {
    for speed in [2.0, 20.0, 80.0] {
        let mut world = World::new(vec![plate(0.0), cube(Vec3::new(0.0, 3.0, 0.0))]);
        world.bodies[1].linear.y = -speed;
        let mut rebound: f32 = 0.0;
        for _ in 0..120 {
            world.run(1);
            rebound = rebound.max(world.bodies[1].linear.y);
            assert!(
                world.bodies[1].pose.translation.y > 0.45,
                "{speed} m/s: {}",
                world.bodies[1].pose.translation
            );
        }
        let impact = (speed * speed - 2.0 * GRAVITY.y * 2.5).sqrt();
        assert!(
            (0.05 * impact..0.15 * impact).contains(&rebound),
            "{speed} m/s: {rebound} of {impact}"
        );
    }
}

#[test]
fn a_collision_in_the_air_conserves_momentum() {
    let mut world = World::new(vec![
        plate(0.0),
        cube(Vec3::new(-1.0, 20.0, 0.0)),
        cube(Vec3::new(1.0, 20.3, 0.2)),
    ]);
    world.bodies[1].linear.x = 6.0;
    world.run(30);
    let [a, b] = [&world.bodies[1], &world.bodies[2]];
    assert!(b.linear.x > 2.0, "they met: {}", b.linear);
    assert!((a.linear.x + b.linear.x - 6.0).abs() < 1e-3 && (a.linear.z + b.linear.z).abs() < 1e-3);
    let spin = |body: &Body| {
        body.pose.translation.cross(body.linear) + body.angular * body.inertia.x_axis.x
    };
    // Gravity has no torque about the common centre of mass; damping takes a little of the spin.
    let middle = (a.pose.translation + b.pose.translation) / 2.0;
    let about = |body: &Body| spin(body) - middle.cross(body.linear);
    let expected = Vec3::new(0.0, -0.6, 0.9);
    let found = about(a) + about(b);
    assert!(found.abs_diff_eq(expected, 0.05), "{found} {expected}");
}

#[test]
fn a_tumbling_body_gains_no_energy() {
    // Rotation about the intermediate axis is unstable: an explicit integration explodes here.
    let inertia = Mat3::from_diagonal(Vec3::new(1.0, 2.0, 3.0));
    let mut body = Body {
        inertia,
        inverse_inertia: inertia.inverse(),
        ..cube(Vec3::new(0.0, 5000.0, 0.0))
    };
    body.angular = Vec3::new(0.01, 15.0, 0.01);
    let mut world = World::new(vec![plate(0.0), body]);
    let energy = |body: &Body| {
        let spin = body.pose.rotation.inverse() * body.angular;
        spin.dot(body.inertia * spin)
    };
    let mut before = energy(&world.bodies[1]);
    let mut flipped = false;
    for _ in 0..600 {
        world.run(1);
        let body = &world.bodies[1];
        assert!(energy(body) <= before * 1.0001, "{before} {}", energy(body));
        before = energy(body);
        flipped |= (body.pose.rotation.inverse() * body.angular).y < -1.0;
    }
    assert!(flipped, "it flips over (intermediate axis theorem)");
}
