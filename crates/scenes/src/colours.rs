//! Colours the contact graph, so that the contacts of one colour can be solved in parallel.
//!
//! The contacts of two bodies form a group. Groups of one colour share no body that is awake. The
//! colouring is greedy, in the order of the bodies.

use super::body::{Body, Contact};
use super::constraint::{Constraint, Motion, Spring, Velocity};
use rayon::prelude::*;

/// Groups per task: some hundred contacts, which take 10 µs.
const SHARE: usize = 32;
/// Max shared colours; every group beyond them gets its own.
const SHARED: usize = 64;

/// The contacts of two bodies.
struct Group {
    bodies: [u32; 2],
    constraints: Vec<Constraint>,
    /// The velocities of both bodies after the accumulated impulses.
    warm: [Velocity; 2],
    /// The velocities after the last pass.
    result: [Velocity; 2],
}

/// Groups that share no body that is awake.
#[derive(Default)]
pub(super) struct Colour(Vec<Group>);

/// Groups all contacts by colour.
pub(super) fn paint(bodies: &[Body], contacts: &[Contact], motions: &[Motion]) -> Vec<Colour> {
    let mut order: Vec<u32> = (0..contacts.len() as u32).collect();
    order.sort_by_key(|&index| contacts[index as usize].bodies);
    let of = |index: u32| contacts[index as usize].bodies;
    let mut colours: Vec<Colour> = Vec::new();
    let mut used = vec![0_u64; bodies.len()];
    let mut groups: Vec<(usize, &[u32])> = Vec::new();
    for group in order.chunk_by(|&a, &b| of(a) == of(b)) {
        let awake = of(group[0]).map(|body| body as usize);
        let awake = awake.into_iter().filter(|&body| bodies[body].is_awake());
        let taken = awake.clone().fold(0, |taken, body| taken | used[body]);
        let mut colour = taken.trailing_ones() as usize;
        if colour < SHARED {
            awake.for_each(|body| used[body] |= 1 << colour);
        } else {
            colour = colours.len().max(SHARED);
        }
        if colours.len() <= colour {
            colours.resize_with(colour + 1, Colour::default);
        }
        groups.push((colour, group));
    }
    let made: Vec<(usize, Group)> = groups
        .into_par_iter()
        .with_min_len(SHARE)
        .map(|(colour, group)| {
            (
                colour,
                Group::new(of(group[0]), group, bodies, contacts, motions),
            )
        })
        .collect();
    for (colour, group) in made {
        colours[colour].0.push(group);
    }
    colours
}

impl Group {
    fn new(
        pair: [u32; 2],
        group: &[u32],
        bodies: &[Body],
        contacts: &[Contact],
        motions: &[Motion],
    ) -> Self {
        let own = pair.map(|body| &motions[body as usize]);
        let at = pair.map(|body| Velocity::of(&bodies[body as usize]));
        let constraint = |&index: &u32| Constraint::new(&contacts[index as usize], index, own, &at);
        let mut made = Self {
            bodies: pair,
            constraints: group.iter().map(constraint).collect(),
            warm: Default::default(),
            result: at,
        };
        made.add_up(own);
        made
    }

    fn solve(&mut self, motions: [&Motion; 2], spring: &Spring) {
        for constraint in &mut self.constraints {
            constraint.solve(&mut self.result, motions, spring);
        }
    }

    /// Adds up the impulses for the next warm start.
    fn add_up(&mut self, motions: [&Motion; 2]) {
        self.warm = Default::default();
        for constraint in &self.constraints {
            constraint.warm(&mut self.warm, motions);
        }
    }
}

impl Colour {
    pub fn warm_start(&self, velocities: &mut [Velocity]) {
        for group in &self.0 {
            for (body, warm) in group.bodies.iter().zip(&group.warm) {
                let velocity = &mut velocities[*body as usize];
                velocity.linear += warm.linear;
                velocity.angular += warm.angular;
            }
        }
    }

    pub fn solve(&mut self, velocities: &mut [Velocity], motions: &[Motion], spring: &Spring) {
        self.run(velocities, motions, |group, own| group.solve(own, spring));
    }

    /// Runs the second pass of a substep. The impulses then stay unchanged until the next substep.
    pub fn relax(&mut self, velocities: &mut [Velocity], motions: &[Motion]) {
        self.run(velocities, motions, |group, own| {
            group.solve(own, &Spring::RIGID);
            group.add_up(own);
        });
    }

    pub fn bounce(&mut self, velocities: &mut [Velocity], motions: &[Motion]) {
        self.run(velocities, motions, |group, own| {
            for constraint in &mut group.constraints {
                constraint.bounce(&mut group.result, own);
            }
        });
    }

    /// Stores the impulses in the contacts.
    pub fn store(&self, contacts: &mut [Contact]) {
        for constraint in self.0.iter().flat_map(|group| &group.constraints) {
            contacts[constraint.contact as usize].impulse = constraint.impulse.into();
        }
    }

    /// Runs a step for all groups on several threads. Each group computes new velocities of its
    /// bodies, which are then written back.
    fn run(
        &mut self,
        velocities: &mut [Velocity],
        motions: &[Motion],
        solve: impl Fn(&mut Group, [&Motion; 2]) + Sync,
    ) {
        let known = &*velocities;
        let one = |group: &mut Group| {
            let bodies = group.bodies.map(|body| body as usize);
            group.result = bodies.map(|body| known[body]);
            solve(group, bodies.map(|body| &motions[body]));
        };
        if self.0.len() <= SHARE {
            self.0.iter_mut().for_each(one);
        } else {
            self.0
                .par_chunks_mut(SHARE)
                .for_each(|groups| groups.iter_mut().for_each(one));
        }
        for group in &self.0 {
            for (body, result) in group.bodies.iter().zip(&group.result) {
                velocities[*body as usize] = *result;
            }
        }
    }
}
