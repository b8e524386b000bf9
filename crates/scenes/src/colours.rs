//! Contacts in groups that can be solved at the same time: those of two bodies are a group, and groups of one colour share no body that
//! is awake (greedy colouring of the contact graph, in the order of the bodies).

use super::constraint::{Constraint, Motion, Spring, Velocity};
use super::solver::{Body, Contact};
use rayon::prelude::*;

/// Groups that a thread solves at once: some hundred contacts, 10 µs.
const SHARE: usize = 32;
/// Colours that are looked through; every further group gets its own.
const SHARED: usize = 64;

/// The contacts of two bodies.
struct Group {
    bodies: [u32; 2],
    constraints: Vec<Constraint>,
    /// What the accumulated impulses make of the velocities of both.
    warm: [Velocity; 2],
    /// The velocities that the last pass came to.
    result: [Velocity; 2],
}

/// Groups that share no body that is awake.
#[derive(Default)]
pub(super) struct Colour(Vec<Group>);

/// All contacts, by colour.
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

    /// The sum of the impulses, for the next warm start.
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

    /// The second pass of a substep, after which the impulses stay what they are until the next one.
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

    /// Leaves the impulses in the contacts.
    pub fn keep(&self, contacts: &mut [Contact]) {
        for constraint in self.0.iter().flat_map(|group| &group.constraints) {
            contacts[constraint.contact as usize].impulse = constraint.impulse.into();
        }
    }

    /// Runs over the groups by several threads: each reads the velocities of its bodies and leaves what becomes of them beside, which is
    /// then put back.
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
