//! What a frame is expected to take along one axis and in cells, by which `Auto` chooses: estimates
//! from a sample, and in their place the figures of the frames that were searched.

use crate::choice::{Choice, Reason};
use crate::cuda::abi::State;
use crate::cuda::find::bound::Finder;
use crate::cuda::tuning::{
    CELLS_MS, MAX_SWEEP_SHARE, MORE_WORK, OWN_ROWS, ROW_COST, STAY_SHARE, SWEEP_MS,
};

/// The work of the frames that one plan of cells is for.
pub(crate) struct Forecast {
    n: f64,
    /// Candidates on the sweep axis.
    candidates: f64,
    /// Tests in cells, with the look-ups of rows.
    tests: f64,
    /// Whether a frame in cells has told how many.
    tests_are_known: bool,
    /// Pairs; none until a frame has told.
    pairs: f64,
    /// The finder of the last frame, and the work of a box that makes the plan a bad one for it.
    last: Option<(Finder, f64)>,
}

impl Forecast {
    /// Returns the forecast for `n` boxes by what a sample says of them.
    pub(crate) const fn new(n: usize, candidates: f64, tests: f64) -> Self {
        Self {
            n: n as f64,
            candidates,
            tests,
            tests_are_known: false,
            pairs: 0.0,
            last: None,
        }
    }

    /// Returns the tests in cells that a box takes.
    pub(crate) fn tests_a_box(&self) -> f64 {
        self.tests / self.n.max(1.0)
    }

    /// Records what a frame of `n` boxes took. Returns the work of a box if it is much more than
    /// that of the first such frame, which was `floor` at least: the plan has become bad.
    pub(crate) fn record(
        &mut self,
        finder: Finder,
        n: usize,
        state: &State,
        floor: f64,
    ) -> Option<f64> {
        let boxes = n.max(1) as f64;
        let (work, scale) = (state.tests as f64 / boxes, self.n / boxes);
        match finder {
            Finder::Cells => {
                self.tests = (work + OWN_ROWS * ROW_COST) * self.n;
                self.tests_are_known = true;
            }
            Finder::Axis(_) => self.candidates = work * self.n,
            Finder::Tree => return None,
        }
        self.pairs = state.pairs as f64 * scale;
        let bad = match self.last {
            Some((last, bad)) if last == finder => bad,
            _ => work.max(floor) * MORE_WORK + 1.0,
        };
        self.last = Some((finder, bad));
        (work > bad).then_some(work)
    }

    /// Returns the expected times of the two.
    pub(crate) fn choice(&self) -> Choice {
        let ms = |[fixed, per_box, per_test, per_pair]: [f64; 4], tests: f64| {
            fixed + per_box * self.n + per_test * tests + per_pair * self.pairs
        };
        Choice {
            reason: Reason::LeastCost,
            sweep_ms: ms(SWEEP_MS, self.candidates),
            subdivided_ms: Some(ms(CELLS_MS, self.tests)),
        }
    }

    /// Tells whether the next frame is swept along an axis.
    pub(crate) fn takes_sweep(&self) -> bool {
        let choice = self.choice();
        let share = match self.last {
            _ if !self.tests_are_known => MAX_SWEEP_SHARE,
            Some((Finder::Axis(_), _)) => 1.0 / STAY_SHARE,
            _ => STAY_SHARE,
        };
        choice
            .subdivided_ms
            .is_none_or(|cells| choice.sweep_ms < share * cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strategy;
    use bytemuck::Zeroable;

    const SWEEP: Finder = Finder::Axis(Strategy::Sweep);

    fn counted(tests: u64, pairs: u64) -> State {
        State {
            tests,
            pairs,
            ..State::zeroed()
        }
    }

    #[test]
    fn what_frames_took_decides() {
        // A mesh whose cells the sample rates at twice their cost, and many pairs.
        let n = 277_653;
        let mut forecast = Forecast::new(n, 2.14e9, 6e8);
        assert!(forecast.takes_sweep());
        let swept = counted(2_140_000_000, 25_057_379);
        assert_eq!(forecast.record(SWEEP, n, &swept, 0.0), None);
        assert!(!forecast.takes_sweep(), "{:?}", forecast.choice());
        let in_cells = counted(180_000_000, 25_057_379);
        assert_eq!(forecast.record(Finder::Cells, n, &in_cells, 0.0), None);
        assert!(!forecast.takes_sweep(), "{:?}", forecast.choice());
        // Cells turn out to be bad: the sweep again, and it stays.
        let bad = counted(900_000_000, 25_057_379);
        let mut forecast = Forecast::new(n, 2.14e9, 6e8);
        assert_eq!(forecast.record(Finder::Cells, n, &bad, 0.0), None);
        for _ in 0..3 {
            assert!(forecast.takes_sweep(), "{:?}", forecast.choice());
            assert_eq!(forecast.record(SWEEP, n, &swept, 0.0), None);
        }
    }

    #[test]
    fn a_plan_becomes_bad_by_more_tests_and_not_by_more_pairs() {
        let mut forecast = Forecast::new(100, 0.0, 0.0);
        let mut record = |tests, pairs, floor| {
            forecast.record(Finder::Cells, 100, &counted(tests, pairs), floor)
        };
        assert_eq!(record(1_000, 10, 0.0), None);
        assert_eq!(record(1_500, 100_000, 0.0), None);
        assert_eq!(record(1_700, 10, 0.0), Some(17.0));
        // The same frames make the next plan bad no more.
        let mut next = Forecast::new(100, 0.0, 0.0);
        for tests in [1_000, 1_700, 1_000, 1_700] {
            let frame = counted(tests, 10);
            assert_eq!(next.record(Finder::Cells, 100, &frame, 17.0), None);
        }
    }
}
