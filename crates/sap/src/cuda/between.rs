//! The pairs between two sets.

use crate::cuda::engine::Engine;
use crate::cuda::find::plan::Plan;
use crate::cuda::input::source::Source;
use crate::room::zeros;
use crate::{Config, Error, Frame, Pair, Result};

impl Engine {
    pub(crate) fn overlaps_between(
        &mut self,
        config: &Config,
        a: &Frame,
        b: &Frame,
    ) -> Result<Vec<Pair>> {
        let (boxes, limit) = (a.len() as u64 + b.len() as u64, u64::from(u32::MAX));
        if boxes > limit {
            return Err(Error::TooManyBoxes { boxes, limit });
        }
        let result = self.find_between(config, [Source::Host(a), Source::Host(b)]);
        self.forget_stages();
        result
    }

    fn find_between(&mut self, config: &Config, sets: [Source; 2]) -> Result<Vec<Pair>> {
        let mut plan = Plan::new(config);
        self.read_apart(&sets)?;
        self.arrange(config, &mut plan)?;
        let a = 0..sets[0].len() as u64;
        let found = self.find_pairs(config, &mut plan, &sets, a, false)?;
        // A set of boxes that rest is a matter of updates.
        let count = found.map_or(0, |found| found.state.pairs) as usize;
        let mut pairs = zeros(count)?;
        self.stream
            .download(self.ordered.part(count)?.cast()?, &mut pairs)?;
        Ok(pairs)
    }
}
