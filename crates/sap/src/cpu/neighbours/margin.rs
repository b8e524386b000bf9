//! How far boxes are loosened: by a multiple of their last step, which balances the cost of useless
//! candidates and that of boxes that leave.

use super::costs::Costs;
use crate::cpu::scene::size;
use crate::cpu::tuning::{
    LOOSENED_SHARE, MAX_MARGIN, MODELLED_STEPS, MOVING_FRAMES, SHRUNK, STEPS, STEPS_FACTOR,
    STEPS_PERIOD,
};
use crate::{Aabb, Result, try_alloc};

/// Chooses how far boxes are loosened. Wide margins give more candidates that are no pairs; narrow
/// ones make more boxes leave, which are looked for again. The multiple is adjusted until both
/// costs are about equal, which is near the minimum of their sum.
pub(super) struct MarginPolicy {
    /// The multiple of a step, and what it was when the list was built.
    steps: f32,
    first_steps: f32,
    turns: Turns,
    /// The costs of both sides since the multiple changed, in tests.
    in_vain: u64,
    left: u64,
    /// Boxes with a margin that were loosened again since the multiple changed, and in this frame;
    /// and frames since then.
    loosened: usize,
    loosened_now: u64,
    frames: u32,
    /// The number of this frame.
    frame: u32,
    /// The last frame in which each box left.
    times: Vec<u32>,
}

/// What is expected of boxes that move in turns. Boxes that stand still now are expected to move
/// soon. So they get margins when the list is built.
#[derive(Clone, Copy)]
struct Turns {
    /// The share of frames in which a box moves.
    share: f32,
    /// The median step of boxes that move now, in their sizes; 0 where others stay where they are.
    step: f32,
    /// The longest step of all, which bounds that of large boxes.
    longest: f32,
}

impl Turns {
    const NONE: Self = Self {
        share: 1.0,
        step: 0.0,
        longest: 0.0,
    };

    /// Measures sampled boxes: how far each moves, and that in its size.
    fn of(sampled: &[(f32, f32)]) -> Self {
        let moving = sampled.iter().filter(|(_, r)| *r > 0.0);
        let mut steps: Vec<f32> = moving.map(|&(_, r)| r).collect();
        steps.sort_unstable_by(f32::total_cmp);
        let Some(&step) = steps.get(steps.len() / 2) else {
            return Self::NONE;
        };
        let finite = sampled.iter().map(|&(step, _)| step);
        Self {
            share: steps.len() as f32 / sampled.len() as f32,
            step,
            longest: finite.filter(|step| step.is_finite()).fold(0.0, f32::max),
        }
    }
}

impl Default for MarginPolicy {
    fn default() -> Self {
        Self {
            steps: MODELLED_STEPS[0],
            first_steps: MODELLED_STEPS[0],
            turns: Turns::NONE,
            in_vain: 0,
            left: 0,
            loosened: 0,
            loosened_now: 0,
            frames: 0,
            frame: 0,
            times: Vec::new(),
        }
    }
}

impl MarginPolicy {
    /// Chooses the multiple for a new list, given the step and the size of each sampled box, and
    /// returns what a frame will cost for each box, in tests.
    ///
    /// Of boxes with a margin `m`, in sizes, `(1 + 2 m)^3` times as many overlap. A box that walks
    /// at random by steps of `r` leaves its margin after about `(m / r)^2` of them.
    pub(super) fn plan(
        &mut self,
        sampled: impl Iterator<Item = (f32, f32)>,
        pairs_per_box: f32,
        in_turns: bool,
        costs: Costs,
    ) -> f32 {
        // In sizes; 0 for a box that does not move, with or without a size.
        let in_sizes = |(step, size): (f32, f32)| {
            let r = step / size;
            (step, if r > 0.0 { r.min(1.0) } else { 0.0 })
        };
        let sampled: Vec<(f32, f32)> = sampled.map(in_sizes).collect();
        self.turns = if in_turns {
            Turns::of(&sampled)
        } else {
            Turns::NONE
        };
        let of_turn = |r: f32| if r > 0.0 { r } else { self.turns.step };
        let each: Vec<f32> = sampled.into_iter().map(|(_, r)| of_turn(r)).collect();
        let cost = |steps: f32| {
            let of_one = |&r: &f32| {
                if r == 0.0 {
                    return 0.0;
                }
                let margin = (steps * r).min(MAX_MARGIN);
                let candidates = pairs_per_box * (1.0 + 2.0 * margin).powi(3);
                let in_vain = costs.candidate(candidates) * (candidates - pairs_per_box);
                let leaving = self.turns.share * share_of_frames(r, margin);
                in_vain + costs.left(candidates) * leaving
            };
            each.iter().map(of_one).sum::<f32>() / each.len().max(1) as f32
        };
        let planned = MODELLED_STEPS.map(|steps| (cost(steps), steps));
        let (least, steps) = planned
            .into_iter()
            .fold((f32::INFINITY, STEPS[0]), |best, one| {
                if one.0 < best.0 { one } else { best }
            });
        self.steps = steps;
        costs.candidate(pairs_per_box) * pairs_per_box + least
    }

    /// Halves the multiple for a new list. Returns false where it is too small for that.
    pub(super) fn halve(&mut self) -> bool {
        let can = self.steps >= 2.0 * STEPS[0];
        if can {
            self.steps /= 2.0;
        }
        can
    }

    /// Begins with a list of `n` boxes, all of which count as moving.
    pub(super) fn begin(&mut self, n: usize) -> Result<()> {
        self.frame = MOVING_FRAMES;
        self.first_steps = self.steps;
        self.times.clear();
        try_alloc::resize(&mut self.times, n, self.frame)
    }

    /// Tells whether a new list would have smaller margins.
    pub(super) fn has_shrunk(&self) -> bool {
        self.steps < SHRUNK * self.first_steps
    }

    /// Loosens a box by how it moves, and not by more than a part of its own size.
    pub(super) fn loosen(&self, b: &Aabb, before: Option<&Aabb>) -> Aabb {
        let Some(before) = before.filter(|before| !before.is_empty()) else {
            return *b;
        };
        b.loosened(self.margin(b, before))
    }

    fn margin(&self, b: &Aabb, before: &Aabb) -> f32 {
        (self.steps * self.step(b, before))
            .min(MAX_MARGIN * size(b))
            .min(f32::MAX)
    }

    /// Returns the step of a box, or that of its turn if it does not move.
    fn step(&self, b: &Aabb, before: &Aabb) -> f32 {
        let step = step(b, before);
        if step == 0.0 && self.turns.step > 0.0 {
            return (self.turns.step * size(b)).min(self.turns.longest);
        }
        step
    }

    /// Returns the share of frames in which a box that walks at random will leave its margin.
    pub(super) fn leaving_share(&self, b: &Aabb, before: &Aabb) -> f32 {
        let (step, margin) = (self.step(b, before), self.margin(b, before));
        if step > 0.0 {
            self.turns.share * share_of_frames(step, margin)
        } else {
            0.0
        }
    }

    /// Loosens again a box that has left `loose`, but for one that seldom moves: it is not
    /// loosened.
    pub(super) fn loosen_again(
        &mut self,
        i: u32,
        b: &Aabb,
        before: Option<&Aabb>,
        loose: &Aabb,
    ) -> Aabb {
        let time = std::mem::replace(&mut self.times[i as usize], self.frame);
        // A box with a margin left it for want of a wider one.
        let had_margin = before.is_some_and(|before| before != loose);
        self.loosened_now += u64::from(had_margin);
        let moves = had_margin || self.frame - time <= MOVING_FRAMES;
        if moves { self.loosen(b, before) } else { *b }
    }

    /// Returns how many boxes that had a margin were loosened again in this frame.
    pub(super) const fn loosened_now(&self) -> u64 {
        self.loosened_now
    }

    /// Ends a frame, given its costs: of all candidates that are no pairs, of one box that left,
    /// and of the search for those that left.
    pub(super) fn end_frame(&mut self, in_vain: u64, left_cost: u64, searched: u64) {
        self.in_vain += in_vain;
        self.left += left_cost * self.loosened_now + searched;
        self.loosened += self.loosened_now as usize;
        self.loosened_now = 0;
        self.frame = self.frame.saturating_add(1);
        self.frames += 1;
        let enough = self.times.len() / LOOSENED_SHARE;
        if self.loosened < enough
            && self.in_vain < left_cost * enough as u64
            && self.frames < STEPS_PERIOD
        {
            return;
        }
        let ratio = (self.left + 1) as f32 / (self.in_vain + 1) as f32;
        // Of boxes that walk at random, the ratio falls with the cube of the margin.
        self.steps *= ratio.cbrt().clamp(STEPS_FACTOR[0], STEPS_FACTOR[1]);
        self.steps = self.steps.clamp(STEPS[0], STEPS[1]);
        (self.in_vain, self.left, self.loosened, self.frames) = (0, 0, 0, 0);
    }
}

/// Returns the share of frames in which a box that walks at random by this step leaves a margin.
fn share_of_frames(step: f32, margin: f32) -> f32 {
    (step / margin).powi(2).min(1.0)
}

/// Returns how far a side of a box has moved at most; sides that stay infinite do not move.
pub(super) fn step(b: &Aabb, before: &Aabb) -> f32 {
    (0..3).fold(0.0_f32, |step, k| {
        let [low, high] = [b.min[k] - before.min[k], b.max[k] - before.max[k]];
        // The max of a number and NaN is the number.
        step.max(low.abs()).max(high.abs())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of steps that is chosen for unit cubes that move by a share of their
    /// size, and the cost.
    fn planned(share: f32, pairs_per_box: f32) -> (f32, f32) {
        let mut margin = MarginPolicy::default();
        let costs = Costs::of(50_000);
        let cost = margin.plan([(share, 1.0); 64].into_iter(), pairs_per_box, false, costs);
        (margin.steps, cost)
    }

    #[test]
    fn a_list_of_many_pairs_or_of_fast_boxes_has_smaller_margins() {
        let (walk, cost) = planned(0.01, 1.3);
        assert!((8.0..=24.0).contains(&walk), "{walk}");
        let (dense, dense_cost) = planned(0.01, 60.0);
        assert!(
            dense < walk && dense_cost > 20.0 * cost,
            "{dense} {dense_cost}"
        );
        let (fast, fast_cost) = planned(0.1, 1.3);
        assert!(fast < walk && fast_cost > 3.0 * cost, "{fast} {fast_cost}");
        // What does not move costs its candidates only.
        assert_eq!(planned(0.0, 2.0).1, 2.0 * Costs::of(50_000).candidate(2.0));
    }

    #[test]
    fn boxes_that_wait_for_their_turn_have_a_margin() {
        let mut margin = MarginPolicy::default();
        let (costs, step) = (Costs::of(50_000), 1.0 / 64.0);
        // One of them is a bullet.
        let sample = || {
            (0..64).map(|k| match k {
                0 => (8.0, 1.0),
                _ if k % 4 == 0 => (2.0 * step, 2.0),
                _ => (0.0, 2.0),
            })
        };
        let b = Aabb::new([0.0; 3], [2.0; 3]);
        let others_stay = margin.plan(sample().skip(1), 1.3, false, costs);
        assert_eq!(margin.loosen(&b, Some(&b)), b);
        let in_turns = margin.plan(sample().skip(1), 1.3, true, costs);
        assert!(others_stay < in_turns, "{others_stay} {in_turns}");
        margin.plan(sample(), 1.3, true, costs);
        let loose = b.loosened(margin.steps * step * 2.0);
        assert_eq!(margin.loosen(&b, Some(&b)), loose);
        let share = margin.leaving_share(&b, &b) * margin.steps.powi(2);
        assert!((share - 0.25).abs() < 1e-6, "{share}");
        // A ground moves no farther than what lies on it.
        let endless = [f32::NEG_INFINITY, f32::INFINITY];
        for [low, high] in [[-1000.0, 1000.0], endless] {
            let ground = Aabb::new([low, -1.0, low], [high, 0.0, high]);
            let loose = ground.loosened(margin.steps * 8.0);
            assert_eq!(margin.loosen(&ground, Some(&ground)), loose);
        }
    }

    #[test]
    fn what_does_not_move_needs_no_margin() {
        let mut margin = MarginPolicy::default();
        let costs = Costs::of(3);
        // A point, an endless box, and one of a size.
        let still = [(0.0, 0.0), (0.0, f32::INFINITY), (0.0, 1.0)];
        let cost = margin.plan(still.into_iter(), 1.0, true, costs);
        assert_eq!(cost, costs.candidate(1.0));
        for b in [
            Aabb::new([1.0; 3], [1.0; 3]),
            Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]),
        ] {
            assert_eq!(margin.loosen(&b, Some(&b)), b);
        }
    }
}
