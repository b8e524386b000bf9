//! The results of a frame.

use radsweep::Report;

/// The results of one frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<R = Report> {
    /// The report of the broad phase.
    pub report: R,
    /// Milliseconds of the scene's own stages, in the order they run.
    pub stages: Vec<(&'static str, f64)>,
}

impl<R> Step<R> {
    /// Returns all stages of the frame with their milliseconds: the scene's `place`, these of the
    /// broad phase, then the scene's others.
    pub fn stages_around(
        &self,
        paired: impl Iterator<Item = (&'static str, f64)>,
    ) -> impl Iterator<Item = (&'static str, f64)> {
        let (before, after) = self.stages.split_at(self.stages.len().min(1));
        before
            .iter()
            .copied()
            .chain(paired)
            .chain(after.iter().copied())
    }
}

impl Step {
    /// Returns all stages of the frame with their milliseconds: the scene's `place`, those of the
    /// broad phase, then the scene's others.
    pub fn all_stages(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.stages_around(self.report.stats.timings.stages())
    }

    /// Returns the milliseconds of the whole frame: the sum of all its stages, on CUDA without the
    /// wait of the host.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.report.stats.timings.total + self.stages.iter().map(|stage| stage.1).sum::<f64>()
    }
}
