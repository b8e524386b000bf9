//! Measures the stages of a call.

use crate::Timings;
use web_time::Instant;

/// A stopwatch for consecutive stages.
pub(crate) struct Clock {
    last: Instant,
    timings: Timings,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            last: Instant::now(),
            timings: Timings::default(),
        }
    }

    /// Adds the time since the last call to a stage, in milliseconds.
    pub(crate) fn lap(&mut self, stage: impl FnOnce(&mut Timings) -> &mut f64) {
        let before = std::mem::replace(&mut self.last, Instant::now());
        *stage(&mut self.timings) += (self.last - before).as_secs_f64() * 1e3;
    }

    /// Returns the times of all stages and their total, and resets them.
    pub(crate) fn finish(&mut self) -> Timings {
        let timings = std::mem::take(&mut self.timings);
        Timings {
            total: timings.stages().map(|(_, ms)| ms).sum(),
            ..timings
        }
    }
}
