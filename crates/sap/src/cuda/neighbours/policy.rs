//! Decides when to keep a neighbour list, and by how much its boxes are loosened.
//!
//! A list is worth its cost while it serves some frames. The wider its margins, the more of its
//! candidates are no pairs, in every frame; the closer, the sooner a box leaves and the list must
//! be built again. The margins are multiples of the steps that boxes make, and the multiple is
//! adjusted until both cost about the same.

use crate::cuda::find::sample::{quantile, sorted};
use crate::cuda::tuning::{
    BUILT_BOX_PS, BUILT_CANDIDATE_PS, CANDIDATE_PS, LIST_BOX_PS, LIST_LIMITS, MAX_IN_VAIN,
    MAX_LIST_SHARE, MAX_MARGIN, MIN_MARGIN, MIN_STEPS, PLANNED_STEPS, SEARCHED_BOX_PS,
    SEARCHED_PAIR_PS, STEPS, STEPS_FACTOR, STEPS_QUANTILE,
};
use crate::policy::Hysteresis;
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;

/// How far a sampled box has moved, and its longest side: `float2` of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Motion {
    pub(super) step: f32,
    pub(super) size: f32,
}

assert_layout!(Motion, 8: step 0, size 4);

/// The distance by which a box is loosened: `least`, or `steps` times its last step if that is
/// more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Margin {
    pub(super) least: f32,
    pub(super) steps: f32,
}

impl Margin {
    fn scaled(self, factor: f32) -> Self {
        let steps = (self.steps * factor).clamp(STEPS[0], STEPS[1]);
        Self {
            least: self.least * steps / self.steps,
            steps,
        }
    }
}

/// The boxes of a frame and its pairs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) boxes: usize,
    pub(super) pairs: u64,
}

impl Size {
    /// Returns the time of a search of all boxes, without reading them, in ps.
    fn search_ps(self) -> f64 {
        SEARCHED_BOX_PS * self.boxes as f64 + SEARCHED_PAIR_PS * self.pairs as f64
    }

    /// Returns the time of a frame by a list, and of building it.
    fn list_ps(self, candidates: f64) -> [f64; 2] {
        let boxes = self.boxes as f64;
        [
            LIST_BOX_PS * boxes + CANDIDATE_PS * candidates,
            BUILT_BOX_PS * boxes + BUILT_CANDIDATE_PS * candidates,
        ]
    }

    /// Returns the most candidates with which a frame by a list takes less than a search.
    fn max_candidates(self) -> u64 {
        let list_ps = MAX_LIST_SHARE * self.search_ps() - LIST_BOX_PS * self.boxes as f64;
        (list_ps / CANDIDATE_PS).max(0.0) as u64
    }
}

/// Decides when a list is built and whether it is in use.
#[derive(Debug)]
pub(super) struct Policy {
    hysteresis: Hysteresis,
    /// The margin of the list that is due.
    due: Option<Margin>,
    /// The margin of the list in use.
    margin: Margin,
    /// What building it took, and what its candidates that are no pairs have taken since, in ps.
    built_ps: f64,
    in_vain_ps: f64,
}

impl Policy {
    pub(super) const fn new() -> Self {
        Self {
            hysteresis: Hysteresis::new(LIST_LIMITS),
            due: None,
            margin: Margin {
                least: 0.0,
                steps: STEPS[0],
            },
            built_ps: 0.0,
            in_vain_ps: 0.0,
        }
    }

    /// Tells whether there is a list.
    pub(super) const fn in_use(&self) -> bool {
        self.hysteresis.in_use()
    }

    /// Returns the margin of the list to build now, if one is due.
    pub(super) const fn due(&self) -> Option<Margin> {
        self.due
    }

    /// Tells whether the motion of the coming frame decides about a list.
    pub(super) const fn watches(&self) -> bool {
        self.hysteresis.is_due() && self.due.is_none()
    }

    /// Drops the list: the frame is unlike the last.
    pub(super) fn release(&mut self) {
        self.hysteresis.end();
        self.due = None;
    }

    /// Gives a list up that memory was refused for, or that has too many candidates.
    pub(super) fn reject(&mut self) {
        self.release();
        self.hysteresis.postpone();
    }

    /// Counts a frame that was searched, with the motion of some of its boxes if it was watched.
    pub(super) fn record_search(&mut self, motions: Option<&[Motion]>, size: Size) {
        match motions {
            None => self.hysteresis.count_quiet(),
            Some(motions) => match plan(motions, size) {
                Some(margin) => self.due = Some(margin),
                None => self.hysteresis.decline(),
            },
        }
    }

    /// Begins to use a list.
    pub(super) fn begin(&mut self, margin: Margin, candidates: u64, size: Size) {
        self.due = None;
        self.margin = margin;
        self.hysteresis.begin();
        [_, self.built_ps] = size.list_ps(candidates as f64);
        self.in_vain_ps = 0.0;
    }

    /// Records a frame by the list. One whose margins have become too wide ends, and a closer one
    /// is due.
    pub(super) fn record_served(&mut self, candidates: u64, size: Size) {
        self.hysteresis.count_quiet();
        self.in_vain_ps += CANDIDATE_PS * candidates.saturating_sub(size.pairs) as f64;
        if self.in_vain_ps > MAX_IN_VAIN * self.built_ps && self.margin.steps > STEPS[0] {
            self.renew();
        }
    }

    /// Ends the list, because a box has left. If it has served enough frames, the next one is due
    /// at once.
    pub(super) fn record_left(&mut self) {
        self.renew();
    }

    fn renew(&mut self) {
        let factor = (self.built_ps / self.in_vain_ps.max(1.0)).cbrt() as f32;
        let next = self
            .margin
            .scaled(factor.clamp(STEPS_FACTOR[0], STEPS_FACTOR[1]));
        self.due = self.hysteresis.end().then_some(next);
    }

    /// Returns the most candidates that a list is of use with.
    pub(super) fn max_candidates(size: Size) -> u64 {
        size.max_candidates()
    }
}

/// Chooses the margin of the list that is expected to take the least time, or none where boxes move
/// too far, or a list takes longer than a search.
///
/// Of boxes of side `s` with a margin `m`, `(1 + 2 m / s)^3` times as many overlap. The first of
/// them leaves after as many frames as the margin has steps, about, whether they drift or walk at
/// random.
fn plan(motions: &[Motion], size: Size) -> Option<Margin> {
    let finite = |of: fn(&Motion) -> f32| sorted(motions.iter().map(|m| f64::from(of(m))));
    let [moved, sizes] = [finite(|m| m.step), finite(|m| m.size)];
    let side = quantile(&sizes, 0.5);
    let step = quantile(&moved, STEPS_QUANTILE);
    let of = |steps: f64| {
        let least = (steps * step).max(MIN_MARGIN * side);
        let margin_of = |m: &Motion| {
            let most = least.max(f64::from(MAX_MARGIN * m.size));
            (steps * f64::from(m.step)).clamp(least, most)
        };
        let stays = |m: &Motion| MIN_STEPS * f64::from(m.step) <= margin_of(m);
        let mean = motions.iter().map(margin_of).sum::<f64>() / motions.len().max(1) as f64;
        let candidates = size.pairs as f64 * (1.0 + 2.0 * mean / side).powi(3);
        let [list_ps, built_ps] = size.list_ps(candidates);
        let (least, steps_ps) = (least as f32, list_ps + built_ps / steps);
        let steps = steps as f32;
        (motions.iter().all(stays)).then_some((steps_ps, Margin { least, steps }))
    };
    let planned = PLANNED_STEPS.into_iter().filter_map(of);
    let (ps, margin) = planned.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (ps < MAX_LIST_SHARE * size.search_ps()).then_some(margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Size = Size {
        boxes: 1_000_000,
        pairs: 1_360_000,
    };

    /// Boxes of side 0.7 that have moved by a share of it.
    fn motions(share: f32) -> Vec<Motion> {
        let of = |i: u32| Motion {
            step: share * 0.7 * (0.5 + (i % 6) as f32 / 10.0),
            size: 0.7,
        };
        (0..600).map(of).collect()
    }

    fn candidates(margin: Margin, size: Size) -> u64 {
        (size.pairs as f64 * f64::from(1.0 + 2.0 * margin.least / 0.7).powi(3)) as u64
    }

    /// Has a policy watch frames until a list is due, at most 100. Returns how many it took.
    fn searched(policy: &mut Policy, share: f32) -> Option<u32> {
        for frame in 0..100 {
            if policy.due().is_some() {
                return Some(frame);
            }
            let motions = policy.watches().then(|| motions(share));
            policy.record_search(motions.as_deref(), MILLION);
        }
        None
    }

    /// Builds the list that is due.
    fn begin(policy: &mut Policy) -> u64 {
        let margin = policy.due().expect("a list is due");
        let candidates = candidates(margin, MILLION);
        policy.begin(margin, candidates, MILLION);
        candidates
    }

    #[test]
    fn boxes_that_walk_get_a_list_and_fast_ones_none() {
        for (share, gets) in [(0.0, true), (1e-6, true), (0.01, true), (0.3, false)] {
            let mut policy = Policy::new();
            assert_eq!(searched(&mut policy, share).is_some(), gets, "{share}");
        }
        // One of them jumps.
        let mut jumps = motions(0.01);
        jumps[7].step = 5.0;
        assert_eq!(plan(&jumps, MILLION), None);
        // Nothing is known of boxes without sides, of infinite ones, or of none.
        let odd = |size| [Motion { step: 0.01, size }; 9];
        assert_eq!(plan(&odd(0.0), MILLION), None);
        assert_eq!(plan(&odd(f32::INFINITY), MILLION), None);
        assert_eq!(plan(&[], MILLION), None);
    }

    #[test]
    fn faster_boxes_get_fewer_steps() {
        let steps = |share| plan(&motions(share), MILLION).expect("a list").steps;
        assert!(steps(0.001) >= steps(0.01) && steps(0.01) >= steps(0.03));
    }

    #[test]
    fn a_list_that_served_is_built_again_at_once() {
        let mut policy = Policy::new();
        assert_eq!(searched(&mut policy, 0.01), Some(2));
        let candidates = begin(&mut policy);
        assert!(policy.in_use() && !policy.watches());
        (0..9).for_each(|_| policy.record_served(candidates, MILLION));
        policy.record_left();
        assert!(!policy.in_use() && policy.due().is_some());
    }

    #[test]
    fn lists_that_do_not_serve_become_rare() {
        let mut policy = Policy::new();
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push(searched(&mut policy, 0.01).expect("a list is due"));
            begin(&mut policy);
            policy.record_left();
            assert!(!policy.in_use() && policy.due().is_none());
        }
        assert_eq!(waits, [2, 3, 5, 9, 17, 33]);
        // Where boxes move far, they are looked at in one frame of 16 at last.
        let mut policy = Policy::new();
        let mut watched = 0;
        for _ in 0..330 {
            let motions = policy.watches().then(|| motions(0.3));
            watched += u32::from(motions.is_some());
            policy.record_search(motions.as_deref(), MILLION);
        }
        assert!((18..30).contains(&watched), "{watched}");
    }

    #[test]
    fn margins_follow_how_long_a_list_serves() {
        let mut policy = Policy::new();
        searched(&mut policy, 0.01);
        let candidates = begin(&mut policy);
        let first = policy.margin;
        (0..5).for_each(|_| policy.record_served(candidates, MILLION));
        policy.record_left();
        let wider = policy.due().expect("a list is due");
        assert!(wider.steps > first.steps && wider.least > first.least);
        // One that serves for ever has many candidates in vain, and a closer one replaces it.
        let candidates = begin(&mut policy);
        let frames = (0..500).take_while(|_| {
            policy.record_served(candidates, MILLION);
            policy.in_use()
        });
        assert!((10..400).contains(&frames.count()));
        assert!(policy.due().is_some_and(|next| next.steps < wider.steps));
    }

    #[test]
    fn a_rejected_list_is_waited_for_long() {
        let mut policy = Policy::new();
        searched(&mut policy, 0.01);
        policy.reject();
        assert_eq!(searched(&mut policy, 0.01), None);
        policy.release();
        assert!(!policy.in_use() && policy.due().is_none());
    }

    #[test]
    fn too_many_candidates_are_worse_than_a_search() {
        let max = Policy::max_candidates(MILLION);
        assert!((5_000_000..40_000_000).contains(&max), "{max}");
        let [list_ps, _] = MILLION.list_ps(max as f64);
        assert!(list_ps <= MILLION.search_ps());
    }
}
