//! How far boxes are grown: by a multiple of their last step, chosen to balance both costs.

use crate::cpu::tuning::{MAX_MARGIN, MOVING_FRAMES, REGROWN_SHARE, STEPS, STEPS_PERIOD};
use crate::{Aabb, Result, try_alloc};

/// Chooses how far boxes are grown. The wider, the more candidates are tested in vain; the closer,
/// the more boxes leave and are looked for again. The multiple is adjusted until both costs are
/// about equal, which is near the minimum of their sum.
pub(super) struct Margin {
    /// The multiple of a step.
    steps: f32,
    /// The costs of both sides since the multiple changed, in tests.
    in_vain: u64,
    left: u64,
    /// Boxes grown anew since the multiple changed, and in this frame; and frames since then.
    regrown: usize,
    regrown_now: u64,
    frames: u32,
    /// The number of this frame.
    frame: u32,
    /// The last frame in which each box left.
    times: Vec<u32>,
}

impl Default for Margin {
    fn default() -> Self {
        Self {
            steps: STEPS[1],
            in_vain: 0,
            left: 0,
            regrown: 0,
            regrown_now: 0,
            frames: 0,
            frame: 0,
            times: Vec::new(),
        }
    }
}

impl Margin {
    /// Begins with a list of `n` boxes, all of which count as moving.
    pub(super) fn begin(&mut self, n: usize) -> Result<()> {
        self.frame = MOVING_FRAMES;
        self.times.clear();
        try_alloc::resize(&mut self.times, n, self.frame)
    }

    /// Grows a box by how it moves, and not by more than a part of its own size.
    pub(super) fn grow(&self, b: &Aabb, before: Option<&Aabb>) -> Aabb {
        let Some(before) = before.filter(|before| !before.is_empty()) else {
            return *b;
        };
        let size = (0..3).fold(0.0_f32, |size, k| size.max(b.max[k] - b.min[k]));
        let margin = (self.steps * step(b, before))
            .min(MAX_MARGIN * size)
            .min(f32::MAX);
        b.loosened(margin)
    }

    /// Grows a box anew that has left `grown`, but for one that seldom moves: it is not grown.
    pub(super) fn grow_again(
        &mut self,
        i: u32,
        b: &Aabb,
        before: Option<&Aabb>,
        grown: &Aabb,
    ) -> Aabb {
        let time = std::mem::replace(&mut self.times[i as usize], self.frame);
        // A box with a margin left it for want of a wider one.
        let had_margin = before.is_some_and(|before| before != grown);
        self.regrown_now += u64::from(had_margin);
        let moves = had_margin || self.frame - time <= MOVING_FRAMES;
        if moves { self.grow(b, before) } else { *b }
    }

    /// Ends a frame: what the candidates tested in vain cost, what a box that left costs, and the
    /// tests that the search for these took.
    pub(super) fn end_frame(&mut self, in_vain: u64, left_cost: u64, searched: u64) {
        self.in_vain += in_vain;
        self.left += left_cost * self.regrown_now + searched;
        self.regrown += self.regrown_now as usize;
        self.regrown_now = 0;
        self.frame = self.frame.saturating_add(1);
        self.frames += 1;
        if self.regrown < self.times.len() / REGROWN_SHARE && self.frames < STEPS_PERIOD {
            return;
        }
        let ratio = (self.left + 1) as f32 / (self.in_vain + 1) as f32;
        // Of boxes that walk at random, the ratio falls with the cube of the margin.
        self.steps *= ratio.cbrt().clamp(0.7, 1.5);
        self.steps = self.steps.clamp(STEPS[0], STEPS[2]);
        (self.in_vain, self.left, self.regrown, self.frames) = (0, 0, 0, 0);
    }
}

/// Returns how far a side of a box has moved at most; sides that stay infinite do not move.
pub(super) fn step(b: &Aabb, before: &Aabb) -> f32 {
    (0..3).fold(0.0_f32, |step, k| {
        let [low, high] = [b.min[k] - before.min[k], b.max[k] - before.max[k]];
        // The max of a number and NaN is the number.
        step.max(low.abs()).max(high.abs())
    })
}
