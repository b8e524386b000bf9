//! Simulates rigid bodies with contacts under gravity, by sequential impulses with soft contacts
//! and small steps.
//!
//! Sources: E. Catto, "Iterative Dynamics with Temporal Coherence" (GDC 2005): sequential impulses,
//! accumulated and clamped, warm started. M. Macklin et al., "Small Steps in Physics Simulation"
//! (SCA 2019): one iteration in each of many substeps. E. Catto, "Soft Constraints" (GDC 2011) and
//! "Solver2D" (2024): contacts as stiff damped springs, and after each position update a second
//! pass without springs, which takes out the speed that the springs put in. E. Catto, "Numerical
//! Methods" (GDC 2015): the gyroscopic torque by one implicit Newton step.
//!
//! Contacts are found once per frame. During the frame a contact point keeps its normal and its two
//! anchors, which rotate with their bodies; the distance of the anchors along the normal is the
//! separation in a substep. The contacts of two bodies are solved together, in the order of the
//! list. Pairs of bodies that share no moving body are solved in parallel ([`super::colours`]). The
//! result does not depend on the number of threads.

use super::body::{Body, Contact, GRAVITY, SUBSTEP, SUBSTEPS, skew};
use super::colours::{self, Colour};
use super::constraint::{Motion, Spring, Velocity};
use glam::{Quat, Vec3};
use rayon::prelude::*;

/// Bodies per task.
const GRAIN: usize = 64;

/// Moves the bodies by one frame and stores the impulses in the contacts.
pub(super) fn step(bodies: &mut [Body], contacts: &mut [Contact]) {
    // Enters the thread pool once: entering it for each of the many short parallel steps costs too
    // much.
    rayon::scope(|_| {
        let mut motions: Vec<Motion> = bodies.iter().map(Motion::new).collect();
        let mut velocities: Vec<Velocity> = bodies.iter().map(Velocity::of).collect();
        let mut colours = colours::paint(bodies, contacts, &velocities, &motions);
        // As stiff as the substep allows; overdamped, so that it never oscillates.
        let spring = Spring::new(0.125 / SUBSTEP, 10.0, SUBSTEP);
        for _ in 0..SUBSTEPS {
            each(
                bodies,
                &mut velocities,
                &mut motions,
                |body, velocity, _| {
                    apply_forces(body, velocity);
                },
            );
            for colour in &colours {
                colour.warm_start(&mut velocities);
            }
            for colour in &mut colours {
                colour.solve(&mut velocities, &motions, &spring);
            }
            each(bodies, &mut velocities, &mut motions, advance);
            for colour in &mut colours {
                colour.relax(&mut velocities, &motions);
            }
        }
        for colour in &mut colours {
            colour.bounce(&mut velocities);
        }
        colours
            .iter()
            .for_each(|colour: &Colour| colour.store(contacts));
        for (body, velocity) in bodies.iter_mut().zip(&velocities) {
            (body.linear, body.angular) = (velocity.linear.into(), velocity.angular.into());
        }
    });
}

/// Calls a function for every body that moves.
fn each(
    bodies: &mut [Body],
    velocities: &mut [Velocity],
    motions: &mut [Motion],
    run: impl Fn(&mut Body, &mut Velocity, &mut Motion) + Sync,
) {
    bodies
        .par_iter_mut()
        .zip(velocities)
        .zip(motions)
        .with_min_len(GRAIN)
        .filter(|((body, _), _)| body.is_awake())
        .for_each(|((body, velocity), motion)| run(body, velocity, motion));
}

fn apply_forces(body: &mut Body, velocity: &mut Velocity) {
    velocity.linear += glam::Vec3A::from(GRAVITY * SUBSTEP);
    let spin = body.pose.rotation.inverse() * Vec3::from(velocity.angular);
    let momentum = body.inertia * spin;
    let residual = spin.cross(momentum) * SUBSTEP;
    let slope = body.inertia + (skew(spin) * body.inertia - skew(momentum)) * SUBSTEP;
    let spin = spin - slope.inverse() * residual;
    velocity.angular = (body.pose.rotation * spin / (1.0 + SUBSTEP * body.damping)).into();
}

fn advance(body: &mut Body, velocity: &mut Velocity, motion: &mut Motion) {
    body.pose.translation += Vec3::from(velocity.linear) * SUBSTEP;
    let turn = Quat::from_scaled_axis(Vec3::from(velocity.angular) * SUBSTEP);
    body.pose.rotation = (turn * body.pose.rotation).normalize();
    motion.follow(&body.pose);
}

#[cfg(test)]
mod tests;
