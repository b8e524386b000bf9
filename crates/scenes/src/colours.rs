//! Colours the contact graph, so that the contacts of one colour can be solved in parallel.
//!
//! The contacts of two bodies form a group. Groups of one colour share no body that is awake. The
//! colouring is greedy, in the order of the bodies. Four groups of a colour form a block, which
//! vector lanes solve together.

use super::body::{Body, Contact};
use super::constraint::{Constraints, Masses, Motion, Moved, Spring, Velocities, Velocity};
use super::lanes::LANES;
use rayon::prelude::*;

/// Blocks per task: some hundred contacts, which take some 5 µs.
const SHARE: usize = 8;
/// Max shared colours; every group beyond them gets its own.
const SHARED: usize = 64;

/// The contacts of two bodies in each lane.
struct Block {
    /// Its lanes that have a group. Those behind them repeat the last one's bodies.
    lanes: usize,
    bodies: [[u32; LANES]; 2],
    masses: [Masses; 2],
    /// The contacts of each lane, one after the other.
    constraints: Vec<Constraints>,
    /// The velocities of both bodies after the accumulated impulses.
    warm: [Velocities; 2],
    /// The velocities after the last pass.
    result: [Velocities; 2],
}

/// Groups that share no body that is awake.
pub(super) struct Colour(Vec<Block>);

/// Groups all contacts by colour.
pub(super) fn paint(
    bodies: &[Body],
    contacts: &[Contact],
    velocities: &[Velocity],
    motions: &[Motion],
) -> Vec<Colour> {
    let of = |contact: &Contact| (contact.bodies[0], contact.bodies[1]);
    let mut order: Vec<_> = contacts.iter().map(of).zip(0..).collect();
    order.sort_unstable();
    let mut colours: Vec<Vec<&[Ordered]>> = Vec::new();
    let mut used = vec![0_u64; bodies.len()];
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        let (a, b) = group[0].0;
        let awake = [a, b].map(|body| body as usize).into_iter();
        let awake = awake.filter(|&body| bodies[body].is_awake());
        let taken = awake.clone().fold(0, |taken, body| taken | used[body]);
        let mut colour = taken.trailing_ones() as usize;
        if colour < SHARED {
            awake.for_each(|body| used[body] |= 1 << colour);
        } else {
            colour = colours.len().max(SHARED);
        }
        if colours.len() <= colour {
            colours.resize_with(colour + 1, Vec::new);
        }
        colours[colour].push(group);
    }
    let block = |groups: &[&[Ordered]]| Block::new(groups, contacts, velocities, motions);
    let colour = |mut groups: Vec<&[Ordered]>| {
        // Lanes of a block have about as many contacts.
        groups.sort_by_key(|group| group.len());
        let blocks = groups.par_chunks(LANES).with_min_len(SHARE).map(block);
        Colour(blocks.collect())
    };
    colours.into_iter().map(colour).collect()
}

/// The bodies and the index of a contact.
type Ordered = ((u32, u32), u32);

impl Block {
    fn new(
        groups: &[&[Ordered]],
        contacts: &[Contact],
        velocities: &[Velocity],
        motions: &[Motion],
    ) -> Self {
        let lanes: [usize; LANES] = std::array::from_fn(|lane| lane.min(groups.len() - 1));
        let bodies = [
            lanes.map(|lane| groups[lane][0].0.0),
            lanes.map(|lane| groups[lane][0].0.1),
        ];
        let masses = [0, 1].map(|end| Masses::gather(&bodies[end], motions));
        let at = [0, 1].map(|end| Velocities::gather(&bodies[end], velocities));
        let rows = groups.iter().map(|group| group.len()).max().unwrap_or(0);
        let constraints = |row: usize| {
            let of = |lane: usize| groups.get(lane)?.get(row).map(|ordered| ordered.1);
            Constraints::new(std::array::from_fn(of), contacts, &masses, &at)
        };
        let mut made = Self {
            lanes: groups.len(),
            bodies,
            masses,
            constraints: (0..rows).map(constraints).collect(),
            warm: Default::default(),
            result: at,
        };
        made.add_up();
        made
    }

    fn solve(&mut self, motions: &[Motion], spring: &Spring) {
        let moved = [0, 1].map(|end| Moved::gather(&self.bodies[end], motions));
        for one in &mut self.constraints {
            one.solve(&mut self.result, &self.masses, &moved, spring);
        }
    }

    /// Adds up the impulses for the next warm start.
    fn add_up(&mut self) {
        self.warm = Default::default();
        for one in &self.constraints {
            one.warm(&mut self.warm, &self.masses);
        }
    }

    /// Returns the bodies with the velocity that each has in `of`.
    fn each<'a>(&'a self, of: &'a [Velocities; 2]) -> impl Iterator<Item = (usize, Velocity)> {
        let ends = self.bodies.iter().zip(of);
        ends.flat_map(|(bodies, of)| {
            let bodies = bodies[..self.lanes].iter().map(|&body| body as usize);
            bodies.zip(of.scatter())
        })
    }
}

impl Colour {
    pub fn warm_start(&self, velocities: &mut [Velocity]) {
        for block in &self.0 {
            for (body, warm) in block.each(&block.warm) {
                velocities[body].linear += warm.linear;
                velocities[body].angular += warm.angular;
            }
        }
    }

    pub fn solve(&mut self, velocities: &mut [Velocity], motions: &[Motion], spring: &Spring) {
        self.run(velocities, |block| block.solve(motions, spring));
    }

    /// Runs the second pass of a substep. The impulses then stay unchanged until the next substep.
    pub fn relax(&mut self, velocities: &mut [Velocity], motions: &[Motion]) {
        self.run(velocities, |block| {
            block.solve(motions, &Spring::RIGID);
            block.add_up();
        });
    }

    pub fn bounce(&mut self, velocities: &mut [Velocity]) {
        self.run(velocities, |block| {
            for one in &mut block.constraints {
                one.bounce(&mut block.result, &block.masses);
            }
        });
    }

    /// Stores the impulses in the contacts.
    pub fn store(&self, contacts: &mut [Contact]) {
        let all = self.0.iter().flat_map(|block| &block.constraints);
        all.for_each(|one| one.store(contacts));
    }

    /// Runs a step for all blocks on several threads. Each block computes new velocities of its
    /// bodies, which are then written back.
    fn run(&mut self, velocities: &mut [Velocity], solve: impl Fn(&mut Block) + Sync) {
        let known = &*velocities;
        let one = |block: &mut Block| {
            block.result = [0, 1].map(|end| Velocities::gather(&block.bodies[end], known));
            solve(block);
        };
        if self.0.len() <= SHARE {
            self.0.iter_mut().for_each(one);
        } else {
            self.0
                .par_chunks_mut(SHARE)
                .for_each(|blocks| blocks.iter_mut().for_each(one));
        }
        for block in &self.0 {
            for (body, result) in block.each(&block.result) {
                velocities[body] = result;
            }
        }
    }
}
