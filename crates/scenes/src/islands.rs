//! Puts islands of bodies to sleep and wakes them.
//!
//! Bodies that touch each other form an island. An island falls asleep when all of its bodies have
//! been calm for some frames. Sleeping bodies do not move and cost nothing. A moving body that
//! touches one wakes its island.

use super::body::{Body, Contact, FRAME, GRAVITY, SLOP, SUBSTEP};
use bevy_ecs::prelude::Resource;

/// Max speeds of a calm body, in metres and radians per second.
const CALM: [f32; 2] = [0.05, 0.2];
/// Calm frames before a body may fall asleep.
const FRAMES: u32 = 30;

/// How far ahead the solver stops a motion: in the last substep of a frame, one substep ahead.
const HORIZON: f32 = FRAME + SUBSTEP;

/// Height in metres at which a body that fell off the floor stops, out of sight.
const LOST: f32 = -20.0;

/// How long each body has been calm, and its island.
#[derive(Resource, Debug, Default)]
pub(super) struct Islands {
    calm: Vec<u32>,
    /// For a sleeping body, the smallest index of a body in its island.
    of: Vec<u32>,
}

fn is_calm(body: &Body) -> bool {
    body.linear.length() < CALM[0] && body.angular.length() < CALM[1]
}

impl Islands {
    /// Wakes the islands that a moving body touches or will touch within the frame. Returns whether
    /// there were any.
    pub fn rouse(&self, bodies: &mut [Body], contacts: &[Contact]) -> bool {
        let mut hit = Vec::new();
        for contact in contacts {
            let [a, b] = contact.bodies.map(|body| body as usize);
            for (sleeper, mover, anchor, sign) in [
                (a, b, contact.anchors[1], 1.0),
                (b, a, contact.anchors[0], -1.0),
            ] {
                let moving = &bodies[mover];
                if !bodies[sleeper].asleep || !moving.is_awake() || is_calm(moving) {
                    continue;
                }
                let speed = moving.speed(anchor) + GRAVITY * FRAME;
                let coming = contact.separation + sign * speed.dot(contact.normal) * HORIZON;
                if coming.min(contact.separation) < SLOP {
                    hit.push(self.of[sleeper]);
                }
            }
        }
        self.wake_all(bodies, hit)
    }

    /// Wakes the islands of the sleeping ones of these bodies. Returns whether there were any.
    pub fn wake(&self, bodies: &mut [Body], which: impl Iterator<Item = u32>) -> bool {
        let asleep = which.filter(|&body| bodies[body as usize].asleep);
        let islands = asleep.map(|body| self.of[body as usize]).collect();
        self.wake_all(bodies, islands)
    }

    fn wake_all(&self, bodies: &mut [Body], mut islands: Vec<u32>) -> bool {
        islands.sort_unstable();
        for (body, island) in bodies.iter_mut().zip(&self.of) {
            body.asleep &= islands.binary_search(island).is_err();
        }
        !islands.is_empty()
    }

    /// Puts calm islands to sleep at the end of a frame. Returns whether there were any.
    pub fn settle(&mut self, bodies: &mut [Body], contacts: &[Contact]) -> bool {
        self.calm.resize(bodies.len(), 0);
        self.of.resize(bodies.len(), 0);
        for (body, calm) in bodies.iter().zip(&mut self.calm) {
            *calm = if !body.is_awake() {
                0
            } else if body.pose.translation.y < LOST {
                FRAMES
            } else if is_calm(body) {
                *calm + 1
            } else {
                0
            };
        }
        if self.calm.iter().all(|&calm| calm < FRAMES) {
            return false;
        }
        // The smaller index becomes the root.
        let mut roots: Vec<u32> = (0..bodies.len() as u32).collect();
        for contact in contacts {
            let touching = contact.impulse.x > 0.0 || contact.separation < SLOP;
            let [a, b] = contact.bodies;
            if touching && [a, b].iter().all(|&body| bodies[body as usize].is_awake()) {
                let [a, b] = [root(&mut roots, a), root(&mut roots, b)];
                roots[a.max(b) as usize] = a.min(b);
            }
        }
        let mut restless = vec![false; bodies.len()];
        for body in 0..bodies.len() {
            let island = root(&mut roots, body as u32);
            restless[island as usize] |= self.calm[body] < FRAMES;
        }
        let mut any = false;
        for (body, moved) in bodies.iter_mut().enumerate() {
            let island = root(&mut roots, body as u32);
            if moved.is_awake() && !restless[island as usize] {
                (moved.linear, moved.angular) = Default::default();
                moved.asleep = true;
                self.of[body] = island;
                any = true;
            }
        }
        any
    }
}

/// Returns the root of a body and compresses the path to it.
fn root(roots: &mut [u32], body: u32) -> u32 {
    let mut at = body;
    while roots[at as usize] != at {
        roots[at as usize] = roots[roots[at as usize] as usize];
        at = roots[at as usize];
    }
    at
}
