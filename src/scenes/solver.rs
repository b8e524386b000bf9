//! Rigid bodies under gravity with contacts: sequential impulses with soft contacts and small steps.
//!
//! Sources: E. Catto, "Iterative Dynamics with Temporal Coherence" (GDC 2005): sequential impulses, accumulated and clamped,
//! warm started. M. Macklin et al., "Small Steps in Physics Simulation" (SCA 2019): one iteration in each of many substeps.
//! E. Catto, "Soft Constraints" (GDC 2011) and "Solver2D" (2024): contacts as stiff damped springs, and after each
//! position update a second pass without springs, which takes out the speed that the springs put in.
//! E. Catto, "Numerical Methods" (GDC 2015): the gyroscopic torque by one implicit Newton step.
//!
//! Contacts are found once a frame. Within it each contact point keeps its normal and its two anchors, which turn with
//! their bodies; the distance between the anchors along the normal is the separation that a substep sees.
//! Everything runs in the order of the contact list on one thread, so that the result is the same everywhere.

use glam::{Mat3, Quat, Vec3};
use parry3d::math::Pose3;
use sap::Pair;

pub(super) const GRAVITY: Vec3 = Vec3::new(0.0, -9.81, 0.0);
/// One frame, in seconds.
pub(super) const FRAME: f32 = 1.0 / 60.0;
const SUBSTEPS: u32 = 8;
const SUBSTEP: f32 = FRAME / SUBSTEPS as f32;
/// Wood on wood.
const FRICTION: f32 = 0.5;
const RESTITUTION: f32 = 0.1;
/// Slower impacts do not bounce, in m/s: gravity would make resting contacts chatter.
const BOUNCE_SPEED: f32 = 1.0;
/// Penetration that is left alone, so that resting contacts stay contacts, in metres.
pub(super) const SLOP: f32 = 0.002;
/// The fastest that penetration is undone, in m/s: deep overlap must not explode.
const PUSH_SPEED: f32 = 2.0;
/// Damping of rotation, per second: air, and the friction that point contacts lack.
const ANGULAR_DAMPING: f32 = 0.1;

/// A rigid body; `inverse_mass` 0 does not move.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Of the centre of mass.
    pub pose: Pose3,
    pub linear: Vec3,
    pub angular: Vec3,
    pub inverse_mass: f32,
    /// In the body's own axes.
    pub inertia: Mat3,
    pub inverse_inertia: Mat3,
}

impl Body {
    fn velocity_at(&self, anchor: Vec3) -> Vec3 {
        self.linear + self.angular.cross(anchor)
    }
}

/// One point of contact between two boxes of different bodies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contact {
    /// The boxes, and the features that meet: what a contact of the next frame is recognised by.
    pub pair: Pair,
    pub features: (u32, u32),
    /// Indices of the bodies.
    pub bodies: [u32; 2],
    /// From the first body to the second.
    pub normal: Vec3,
    /// From each body's centre of mass, along the world's axes.
    pub anchors: [Vec3; 2],
    /// Distance along the normal, negative inside.
    pub separation: f32,
    /// Accumulated impulse along the normal and the two tangents of the last substep.
    pub impulse: Vec3,
}

/// What a frame keeps for each body besides its state.
#[derive(Clone)]
struct Motion {
    inverse_inertia: Mat3,
    start: Pose3,
    shift: Vec3,
    turn: Mat3,
}

/// What a frame keeps for each contact.
struct Constraint {
    /// Normal, then two tangents.
    axes: [Vec3; 3],
    /// Impulse for a unit change of speed along the normal, and along the stiffer of the tangents: with one mass for both,
    /// friction comes to oppose the sliding exactly.
    mass: f32,
    tangent_mass: f32,
    /// Separation less the distance of the anchors, which is added again as they move.
    offset: f32,
    approach: f32,
    strongest: f32,
}

/// A contact as a spring: what part of the speed error an impulse corrects, what part of the accumulated impulse it
/// gives back, and how fast it undoes penetration.
struct Spring {
    bias: f32,
    mass: f32,
    impulse: f32,
}

impl Spring {
    const RIGID: Self = Self {
        bias: 0.0,
        mass: 1.0,
        impulse: 0.0,
    };

    /// Implicitly integrated spring of a frequency (Hz) and damping ratio (GDC 2011).
    fn new(frequency: f32, damping: f32, step: f32) -> Self {
        let omega = std::f32::consts::TAU * frequency;
        let a = 2.0 * damping + step * omega;
        let b = step * omega * a;
        Self {
            bias: omega / a,
            mass: b / (1.0 + b),
            impulse: 1.0 / (1.0 + b),
        }
    }
}

/// Moves the bodies by one frame and leaves the impulses in the contacts.
pub(super) fn step(bodies: &mut [Body], contacts: &mut [Contact]) {
    let mut motions: Vec<Motion> = bodies.iter().map(Motion::new).collect();
    let mut constraints: Vec<Constraint> = contacts
        .iter()
        .map(|contact| Constraint::new(contact, bodies, &motions))
        .collect();
    // As stiff as the substep can follow; overdamped, so that it never swings.
    let spring = Spring::new(0.125 / SUBSTEP, 10.0, SUBSTEP);
    for _ in 0..SUBSTEPS {
        bodies.iter_mut().for_each(apply_forces);
        for (contact, constraint) in contacts.iter().zip(&constraints) {
            constraint.apply(contact.impulse, contact, bodies, &motions);
        }
        for (contact, constraint) in contacts.iter_mut().zip(&mut constraints) {
            constraint.solve(contact, bodies, &motions, &spring);
        }
        for (body, motion) in bodies.iter_mut().zip(&mut motions) {
            motion.advance(body);
        }
        for (contact, constraint) in contacts.iter_mut().zip(&mut constraints) {
            constraint.solve(contact, bodies, &motions, &Spring::RIGID);
        }
    }
    for (contact, constraint) in contacts.iter_mut().zip(&mut constraints) {
        constraint.bounce(contact, bodies, &motions);
    }
}

fn apply_forces(body: &mut Body) {
    if body.inverse_mass == 0.0 {
        return;
    }
    body.linear += GRAVITY * SUBSTEP;
    let spin = body.pose.rotation.inverse() * body.angular;
    let momentum = body.inertia * spin;
    let residual = spin.cross(momentum) * SUBSTEP;
    let slope = body.inertia + (skew(spin) * body.inertia - skew(momentum)) * SUBSTEP;
    let spin = spin - slope.inverse() * residual;
    body.angular = body.pose.rotation * spin / (1.0 + SUBSTEP * ANGULAR_DAMPING);
}

/// The matrix whose product is the cross product with `v`.
fn skew(v: Vec3) -> Mat3 {
    Mat3::from_cols(
        Vec3::new(0.0, v.z, -v.y),
        Vec3::new(-v.z, 0.0, v.x),
        Vec3::new(v.y, -v.x, 0.0),
    )
}

impl Motion {
    fn new(body: &Body) -> Self {
        let rotation = Mat3::from_quat(body.pose.rotation);
        Self {
            inverse_inertia: rotation * body.inverse_inertia * rotation.transpose(),
            start: body.pose,
            shift: Vec3::ZERO,
            turn: Mat3::IDENTITY,
        }
    }

    fn advance(&mut self, body: &mut Body) {
        if body.inverse_mass == 0.0 {
            return;
        }
        body.pose.translation += body.linear * SUBSTEP;
        let turn = Quat::from_scaled_axis(body.angular * SUBSTEP);
        body.pose.rotation = (turn * body.pose.rotation).normalize();
        self.shift = body.pose.translation - self.start.translation;
        self.turn = Mat3::from_quat(body.pose.rotation * self.start.rotation.inverse());
    }
}

impl Constraint {
    fn new(contact: &Contact, bodies: &[Body], motions: &[Motion]) -> Self {
        let axes: [Vec3; 3] = {
            let (first, second) = contact.normal.any_orthonormal_pair();
            [contact.normal, first, second]
        };
        let [a, b] = contact.bodies.map(|index| index as usize);
        let [anchor_a, anchor_b] = contact.anchors;
        let [mass, first, second] = axes.map(|axis| {
            let (arm_a, arm_b) = (anchor_a.cross(axis), anchor_b.cross(axis));
            let inverse = bodies[a].inverse_mass
                + bodies[b].inverse_mass
                + arm_a.dot(motions[a].inverse_inertia * arm_a)
                + arm_b.dot(motions[b].inverse_inertia * arm_b);
            1.0 / inverse
        });
        let velocity = bodies[b].velocity_at(anchor_b) - bodies[a].velocity_at(anchor_a);
        Self {
            axes,
            mass,
            tangent_mass: first.min(second),
            offset: contact.separation - (anchor_b - anchor_a).dot(contact.normal),
            approach: velocity.dot(contact.normal),
            strongest: 0.0,
        }
    }

    /// Speed of the second body's anchor against the first's, along the three axes.
    fn speed(&self, contact: &Contact, bodies: &[Body]) -> Vec3 {
        let [a, b] = contact.bodies.map(|index| &bodies[index as usize]);
        let velocity = b.velocity_at(contact.anchors[1]) - a.velocity_at(contact.anchors[0]);
        Vec3::from_array(self.axes.map(|axis| axis.dot(velocity)))
    }

    fn apply(&self, impulse: Vec3, contact: &Contact, bodies: &mut [Body], motions: &[Motion]) {
        let impulse =
            self.axes[0] * impulse.x + self.axes[1] * impulse.y + self.axes[2] * impulse.z;
        for (end, impulse) in [-impulse, impulse].into_iter().enumerate() {
            let index = contact.bodies[end] as usize;
            let body = &mut bodies[index];
            body.linear += impulse * body.inverse_mass;
            body.angular += motions[index].inverse_inertia * contact.anchors[end].cross(impulse);
        }
    }

    fn solve(
        &mut self,
        contact: &mut Contact,
        bodies: &mut [Body],
        motions: &[Motion],
        spring: &Spring,
    ) {
        let [a, b] = contact.bodies.map(|index| &motions[index as usize]);
        let apart = b.shift + b.turn * contact.anchors[1] - a.shift - a.turn * contact.anchors[0];
        let separation = self.offset + apart.dot(contact.normal);
        let (bias, mass, give) = if separation > 0.0 {
            // Not touching yet: it may come as far as it is apart.
            (separation / SUBSTEP, 1.0, 0.0)
        } else {
            let depth = (separation + SLOP).min(0.0);
            (
                (spring.bias * depth).max(-PUSH_SPEED),
                spring.mass,
                spring.impulse,
            )
        };
        let old = contact.impulse;
        let speed = self.speed(contact, bodies);
        let normal = (old.x - self.mass * mass * (speed.x + bias) - give * old.x).max(0.0);
        // Coulomb: the friction of both tangents together is bounded by that of the normal impulse.
        let slide = yz(old) - self.tangent_mass * yz(speed);
        let slide = slide.clamp_length_max(FRICTION * normal);
        contact.impulse = Vec3::new(normal, slide.x, slide.y);
        self.strongest = self.strongest.max(normal);
        self.apply(contact.impulse - old, contact, bodies, motions);
    }

    /// Gives an impact part of its speed back.
    fn bounce(&mut self, contact: &mut Contact, bodies: &mut [Body], motions: &[Motion]) {
        if self.approach > -BOUNCE_SPEED || self.strongest == 0.0 {
            return;
        }
        let speed = self.speed(contact, bodies).x;
        let impulse =
            (contact.impulse.x - self.mass * (speed + RESTITUTION * self.approach)).max(0.0);
        let change = Vec3::X * (impulse - contact.impulse.x);
        contact.impulse += change;
        self.apply(change, contact, bodies, motions);
    }
}

fn yz(v: Vec3) -> glam::Vec2 {
    glam::Vec2::new(v.y, v.z)
}

#[cfg(test)]
mod tests {
    use super::super::contacts::{self, Placed};
    use super::*;

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
        }
    }

    /// A wide plate that does not move, tilted about z, its top through the origin.
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

    /// Cubes on a plate, all against all.
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
                    .map(|(index, body)| Placed::new(index, body, Vec3::ZERO, half(index)))
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
    fn an_impact_gives_back_a_little_and_a_fast_fall_does_not_pass_the_plate() {
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
    fn a_collision_in_the_air_keeps_momentum() {
        let mut world = World::new(vec![
            plate(0.0),
            cube(Vec3::new(-1.0, 20.0, 0.0)),
            cube(Vec3::new(1.0, 20.3, 0.2)),
        ]);
        world.bodies[1].linear.x = 6.0;
        world.run(30);
        let [a, b] = [&world.bodies[1], &world.bodies[2]];
        assert!(b.linear.x > 2.0, "they met: {}", b.linear);
        assert!(
            (a.linear.x + b.linear.x - 6.0).abs() < 1e-3 && (a.linear.z + b.linear.z).abs() < 1e-3
        );
        let spin = |body: &Body| {
            body.pose.translation.cross(body.linear) + body.angular * body.inertia.x_axis.x
        };
        // About the common centre of mass, gravity has no torque; damping takes a little of the spin.
        let middle = (a.pose.translation + b.pose.translation) / 2.0;
        let about = |body: &Body| spin(body) - middle.cross(body.linear);
        let expected = Vec3::new(0.0, -0.6, 0.9);
        let found = about(a) + about(b);
        assert!(found.abs_diff_eq(expected, 0.05), "{found} {expected}");
    }

    #[test]
    fn a_tumbling_body_gains_no_energy() {
        // Spin about the middle axis is unstable: without care, the integration explodes here.
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
        assert!(flipped, "it turns over as a thrown racket does");
    }
}
