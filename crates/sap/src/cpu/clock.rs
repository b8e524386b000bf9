//! The stopwatch of a call.

use std::time::Instant;

/// Measures stages one after the other, in milliseconds.
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn lap(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.0, Instant::now());
        (self.0 - before).as_secs_f64() * 1e3
    }
}
