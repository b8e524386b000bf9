//! The pairs between two sets.

use crate::cuda::engine::Engine;
use crate::cuda::find::plan::Plan;
use crate::cuda::input::source::Source;
use crate::{Error, Pair, Result};
use gpu::Slice;

impl Engine {
    /// Finds the pairs of a box of the first set with a box of the second, and leaves them on the
    /// device, where the next call may overwrite them.
    pub(crate) fn between(&mut self, sets: [Source; 2]) -> Result<Slice<'_, Pair>> {
        let (boxes, limit) = (
            sets.iter().map(|set| set.len() as u64).sum(),
            u64::from(u32::MAX),
        );
        if boxes > limit {
            return Err(Error::TooManyBoxes { boxes, limit });
        }
        let count = self.find_between(sets);
        self.drop_marks();
        Ok(self.ordered.part(count?)?.cast()?)
    }

    fn find_between(&mut self, sets: [Source; 2]) -> Result<usize> {
        let mut plan = Plan::new(&self.config);
        self.read_alone(&sets)?;
        self.arrange(&mut plan)?;
        let a = 0..sets[0].len() as u64;
        let found = self.find_pairs(&mut plan, &sets, a)?;
        // There is always a result: only updates have a resting set.
        Ok(found.map_or(0, |found| found.state.pairs) as usize)
    }
}
