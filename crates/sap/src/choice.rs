//! Why [`crate::Strategy::Auto`] took the strategy that it took.

use std::fmt;

/// What [`crate::Strategy::Auto`] expected of the strategies, from a sample of the frame's boxes.
///
/// ```
/// use sap::internals::Reason;
/// use sap::{Aabb, Backend, BroadPhase, Config, Strategy};
///
/// let mut broad_phase = BroadPhase::new(Config { backend: Backend::Cpu, ..Config::default() })?;
/// let boxes: Vec<Aabb> = (0..1000).map(|i| Aabb::new([i as f32; 3], [i as f32; 3])).collect();
/// let stats = &broad_phase.update(&boxes)?.stats;
/// assert_eq!(stats.strategy, Strategy::Sweep);
/// assert_eq!(stats.choice.map(|choice| choice.reason), Some(Reason::FewCandidates));
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// Why the strategy in the report was taken.
    pub reason: Reason,
    /// Milliseconds of one thread, or of the device, that `Sweep` was expected to take.
    pub sweep_ms: f64,
    /// Milliseconds that `Subdivided` was expected to take, if it was estimated.
    pub subdivided_ms: Option<f64>,
}

/// Why [`crate::Strategy::Auto`] took a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// So few boxes share an interval on the sweep axis that columns could gain nothing.
    FewCandidates,
    /// It was expected to cost the least.
    LeastCost,
    /// What was expected to cost the least took far more tests than expected, in this update or an
    /// earlier one. A tree of the boxes took its place, which is reported as `Subdivided`.
    TooManyTests,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            Reason::FewCandidates => "few candidates on one axis",
            Reason::LeastCost => "expected to cost the least",
            Reason::TooManyTests => "a tree, after too many tests",
        };
        let sweep = self.sweep_ms;
        match self.subdivided_ms {
            Some(ms) => write!(
                f,
                "{why} (estimates: sweep {sweep:.2} ms, subdivided {ms:.2} ms)"
            ),
            None => write!(f, "{why} (estimate: sweep {sweep:.2} ms)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_times_are_marked_as_estimates() {
        let mut choice = Choice {
            reason: Reason::LeastCost,
            sweep_ms: 1.204,
            subdivided_ms: Some(3.4),
        };
        assert_eq!(
            choice.to_string(),
            "expected to cost the least (estimates: sweep 1.20 ms, subdivided 3.40 ms)"
        );
        (choice.reason, choice.subdivided_ms) = (Reason::FewCandidates, None);
        assert_eq!(
            choice.to_string(),
            "few candidates on one axis (estimate: sweep 1.20 ms)"
        );
    }
}
