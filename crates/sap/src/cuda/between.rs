//! The pairs between two sets.

use crate::cuda::engine::Engine;
use crate::cuda::find::plan::Plan;
use crate::cuda::input::source::Source;
use crate::try_alloc::zeros;
use crate::{Error, Frame, Pair, Result};

impl Engine {
    /// Finds the pairs of a box of `a` with a box of `b`.
    pub(crate) fn between(&mut self, a: &Frame, b: &Frame) -> Result<Vec<Pair>> {
        let (boxes, limit) = (a.len() as u64 + b.len() as u64, u64::from(u32::MAX));
        if boxes > limit {
            return Err(Error::TooManyBoxes { boxes, limit });
        }
        let result = self.find_between([Source::from(a), Source::from(b)]);
        self.drop_marks();
        result
    }

    fn find_between(&mut self, sets: [Source; 2]) -> Result<Vec<Pair>> {
        let mut plan = Plan::new(&self.config);
        self.read_alone(&sets)?;
        self.arrange(&mut plan)?;
        let a = 0..sets[0].len() as u64;
        let found = self.find_pairs(&mut plan, &sets, a)?;
        // There is always a result: only updates have a resting set.
        let count = found.map_or(0, |found| found.state.pairs) as usize;
        let mut pairs = zeros(count)?;
        self.stream
            .download(self.ordered.part(count)?.cast()?, &mut pairs)?;
        Ok(pairs)
    }
}
