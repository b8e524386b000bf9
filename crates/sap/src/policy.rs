//! Decides when to build a structure that pays only while little changes: the tree of an
//! incremental update, the kept tree, a neighbour list, or a resting set.
//!
//! Building one costs about as much as a frame. So it is built after some quiet frames in a row,
//! and each build that did not last doubles the wait for the next one. Likewise, a way to find or
//! order pairs that failed is avoided for some frames.

/// The limits of a [`Hysteresis`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Quiet frames required in a row before the first build, and after a build that lasted.
    pub(crate) min_quiet_frames: u32,
    /// The max number of quiet frames required.
    pub(crate) max_quiet_frames: u32,
    /// A build has lasted if it served this many frames for each quiet frame waited for it.
    pub(crate) worth: u32,
}

/// The max wait after a build that was declined. Not measured.
const MAX_DECLINED_FRAMES: u32 = 16;

/// Counts quiet frames until a build is due, and the frames that it serves.
#[derive(Debug, Clone)]
pub(crate) struct Hysteresis {
    limits: Limits,
    in_use: bool,
    /// The quiet frames in a row required before a build, and those of them that are left.
    required_quiet_frames: u32,
    left: u32,
    /// Quiet frames since the structure was built.
    frames_served: u32,
}

impl Hysteresis {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            in_use: false,
            required_quiet_frames: limits.min_quiet_frames,
            left: limits.min_quiet_frames,
            frames_served: 0,
        }
    }

    /// Tells whether the structure is built and in use.
    pub(crate) const fn in_use(&self) -> bool {
        self.in_use
    }

    /// Tells whether the structure should be built now.
    pub(crate) const fn is_due(&self) -> bool {
        !self.in_use && self.left == 0
    }

    /// Counts a quiet frame.
    pub(crate) const fn count_quiet(&mut self) {
        if self.in_use {
            self.frames_served = self.frames_served.saturating_add(1);
        } else {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Begins to use the structure, which has just been built.
    pub(crate) const fn begin(&mut self) {
        self.in_use = true;
        self.frames_served = 0;
    }

    /// Ends the use and the run of quiet frames. The next wait is short if the build lasted, else
    /// twice as long as this one. Returns whether there was one that lasted.
    pub(crate) fn end(&mut self) -> bool {
        let lasted = self.frames_served >= self.limits.worth * self.required_quiet_frames;
        let has_lasted = self.in_use && lasted;
        self.stop(if lasted {
            self.limits.min_quiet_frames
        } else {
            self.longer_wait()
        });
        has_lasted
    }

    /// Ends the use of a build that was not worth its cost. It counts as one that did not last.
    pub(crate) fn reject(&mut self) {
        self.stop(self.longer_wait());
    }

    fn longer_wait(&self) -> u32 {
        (2 * self.required_quiet_frames).min(self.limits.max_quiet_frames)
    }

    /// Ends the use, after which as many quiet frames are required, and the run of quiet frames.
    fn stop(&mut self, required_quiet_frames: u32) {
        if self.in_use {
            self.required_quiet_frames = required_quiet_frames;
        }
        self.left = self.required_quiet_frames;
        (self.in_use, self.frames_served) = (false, 0);
    }

    /// Waits before the next build, because one would not be worth its cost now: twice as long, but
    /// at most 16 frames. A longer wait after builds that did not last remains in force.
    pub(crate) fn decline(&mut self) {
        self.left = (2 * self.required_quiet_frames).min(MAX_DECLINED_FRAMES);
        self.required_quiet_frames = self.required_quiet_frames.max(self.left);
    }

    /// Requires the max number of quiet frames, after a build that failed or was of no use.
    pub(crate) const fn postpone(&mut self) {
        self.required_quiet_frames = self.limits.max_quiet_frames;
        self.left = self.required_quiet_frames;
    }
}

/// Avoids what failed for some frames, twice as many after each failure in a row.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    /// The numbers of frames after the first failure, and at most.
    min_wait: u32,
    max_wait: u32,
    /// The number of frames after the last failure, and those of them that are left.
    wait: u32,
    left: u32,
}

impl Backoff {
    pub(crate) const fn new(min_wait: u32, max_wait: u32) -> Self {
        Self {
            min_wait,
            max_wait,
            wait: 0,
            left: 0,
        }
    }

    /// Begins a frame. Returns whether it is to avoid what failed.
    pub(crate) const fn begin_frame(&mut self) -> bool {
        let avoids = self.left > 0;
        self.left = self.left.saturating_sub(1);
        avoids
    }

    /// Records a failure.
    pub(crate) fn record_failure(&mut self) {
        self.wait = (2 * self.wait).clamp(self.min_wait, self.max_wait);
        self.left = self.wait;
    }

    /// Records a success: the wait after the next failure is short again.
    pub(crate) const fn record_success(&mut self) {
        (self.wait, self.left) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        min_quiet_frames: 2,
        max_quiet_frames: 16,
        worth: 3,
    };

    /// Counts quiet frames until a build is due.
    fn wait(hysteresis: &mut Hysteresis) -> u32 {
        let mut frames = 0;
        while !hysteresis.is_due() {
            hysteresis.count_quiet();
            frames += 1;
        }
        frames
    }

    #[test]
    fn builds_that_do_not_last_are_waited_for_longer() {
        let mut hysteresis = Hysteresis::new(LIMITS);
        for required in [2, 4, 8, 16, 16] {
            assert_eq!(wait(&mut hysteresis), required);
            hysteresis.begin();
            assert!(hysteresis.in_use() && !hysteresis.is_due());
            // One frame less than a build that lasts.
            (1..LIMITS.worth * required).for_each(|_| hysteresis.count_quiet());
            hysteresis.end();
            assert!(!hysteresis.in_use());
        }
        // One that lasts makes the wait short again.
        wait(&mut hysteresis);
        hysteresis.begin();
        (0..LIMITS.worth * 16).for_each(|_| hysteresis.count_quiet());
        hysteresis.end();
        assert_eq!(wait(&mut hysteresis), 2);
    }

    #[test]
    fn a_declined_build_waits_for_at_most_16_frames() {
        let mut hysteresis = Hysteresis::new(Limits {
            max_quiet_frames: 64,
            ..LIMITS
        });
        for required in [2, 4, 8, 16, 16] {
            assert_eq!(wait(&mut hysteresis), required);
            hysteresis.decline();
        }
    }

    #[test]
    fn a_declined_build_does_not_shorten_the_wait_after_builds_that_did_not_last() {
        let mut hysteresis = Hysteresis::new(Limits {
            max_quiet_frames: 64,
            ..LIMITS
        });
        hysteresis.postpone();
        assert_eq!(wait(&mut hysteresis), 64);
        // It was waited for long enough, so it is looked at again soon.
        hysteresis.decline();
        assert_eq!(wait(&mut hysteresis), 16);
        hysteresis.begin();
        hysteresis.end();
        assert_eq!(wait(&mut hysteresis), 64);
    }

    #[test]
    fn a_rejected_build_has_not_lasted() {
        let mut hysteresis = Hysteresis::new(LIMITS);
        wait(&mut hysteresis);
        hysteresis.begin();
        (0..1000).for_each(|_| hysteresis.count_quiet());
        hysteresis.reject();
        assert_eq!(wait(&mut hysteresis), 4);
    }

    #[test]
    fn what_fails_again_is_avoided_for_longer() {
        let avoided = |backoff: &mut Backoff| (0..99).filter(|_| backoff.begin_frame()).count();
        let mut backoff = Backoff::new(4, 20);
        assert_eq!(avoided(&mut backoff), 0);
        for wait in [4, 8, 16, 20, 20] {
            backoff.record_failure();
            assert_eq!(avoided(&mut backoff), wait);
        }
        backoff.record_failure();
        backoff.record_success();
        assert_eq!(avoided(&mut backoff), 0);
        backoff.record_failure();
        assert_eq!(avoided(&mut backoff), 4);
    }

    #[test]
    fn a_frame_that_is_not_quiet_begins_the_wait_anew() {
        let mut hysteresis = Hysteresis::new(LIMITS);
        hysteresis.count_quiet();
        hysteresis.end();
        assert_eq!(wait(&mut hysteresis), 2);
        // A build stays due until it begins or is postponed.
        assert!(hysteresis.is_due());
        hysteresis.postpone();
        assert_eq!(wait(&mut hysteresis), 16);
    }
}
