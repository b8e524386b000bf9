//! Counts the pictures per second.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a picture counts.
const SPAN: Duration = Duration::from_secs(2);

/// The times of the last pictures.
#[derive(Debug, Default)]
pub(super) struct Rate {
    times: VecDeque<Instant>,
}

impl Rate {
    /// Counts a picture that was drawn at this time.
    pub fn count(&mut self, now: Instant) {
        self.times.push_back(now);
        let old = |&time: &Instant| now.saturating_duration_since(time) > SPAN;
        while self.times.front().is_some_and(old) {
            self.times.pop_front();
        }
    }

    /// Returns the pictures per second up to the last picture; `None` for fewer than two.
    pub fn per_second(&self) -> Option<f64> {
        let (first, last) = (self.times.front()?, self.times.back()?);
        let seconds = last.saturating_duration_since(*first).as_secs_f64();
        (seconds > 0.0).then(|| (self.times.len() - 1) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_two_seconds_count() {
        let mut rate = Rate::default();
        let start = Instant::now();
        rate.count(start);
        assert_eq!(rate.per_second(), None);
        for picture in 1..=100 {
            rate.count(start + Duration::from_millis(50 * picture));
        }
        let found = rate.per_second().expect("many");
        assert!((found - 20.0).abs() < 1e-6, "{found}");
        rate.count(start + Duration::from_secs(60));
        assert_eq!(rate.per_second(), None, "all others are old");
    }
}
