//! All pairs in bounded memory: counted by their smaller index first, then found, sorted and passed
//! on by groups of consecutive smaller indices that fit.

use crate::cuda::engine::Engine;
use crate::cuda::find::plan::Plan;
use crate::cuda::input::source::Source;
use crate::cuda::memory::HostBuffer;
use crate::cuda::tuning::{MAX_CHUNK, MAX_GROUP};
use crate::{ChunkReport, Frame, Pair, Result};
use gpu::{Slice, Stream};
use std::ops::Range;
use std::time::Instant;

impl Engine {
    /// Passes all pairs to `f`, `chunk` at a time.
    pub(crate) fn deliver_chunks(
        &mut self,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let result = self.deliver(frame, chunk, f);
        self.drop_marks();
        result
    }

    fn deliver(
        &mut self,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let start = Instant::now();
        let sets = [Source::from(frame)];
        let mut plan = Plan::new(&self.config);
        self.read_alone(&sets)?;
        self.arrange(&mut plan)?;
        let stream = self.stream.clone();
        let n = frame.len();

        let mut by_a = stream.alloc::<u32>(n)?;
        let state = self.count_by_a(&mut plan, by_a.slice_mut())?;
        // A group has few of the pairs, and all of the tests.
        plan.is_bounded = false;
        let invalid = self.check_invalid(&sets, &state)?;
        let counts = stream.to_vec(by_a.slice())?;
        drop(by_a);

        let limit = self.pair_limit()?.min(MAX_GROUP);
        let groups = groups(&counts, limit);
        let largest = groups.iter().map(|(_, pairs)| *pairs).max().unwrap_or(0);
        if largest > self.packed.capacity() as u64 {
            // A row that alone is above the limit is passed on all the same: it has fewer pairs
            // than there are boxes.
            self.raise_capacity(largest, limit.max(largest))?;
        }
        let mut delivery = Delivery::new(&stream, chunk.min(MAX_CHUNK), f)?;
        for (a, pairs) in groups.into_iter().filter(|(_, pairs)| *pairs > 0) {
            let pairs = pairs as usize;
            self.find_pairs(&mut plan, &sets, a)?;
            delivery.add(&stream, self.ordered.part(pairs)?.cast()?)?;
        }
        delivery.finish();
        let (pairs, chunks) = (delivery.pairs, delivery.chunks);
        Ok(ChunkReport {
            pairs,
            chunks,
            invalid,
            tests: state.tests + plan.wasted,
            ms: start.elapsed().as_secs_f64() * 1e3,
        })
    }
}

/// Returns ranges of `a` that cover all, each with its count of pairs: at most `limit`, or one `a`
/// alone.
fn groups(counts: &[u32], limit: u64) -> Vec<(Range<u64>, u64)> {
    let mut groups = Vec::new();
    let (mut first, mut pairs) = (0, 0);
    for (a, &count) in counts.iter().enumerate() {
        if count > 0 && pairs > 0 && pairs + u64::from(count) > limit {
            groups.push((first..a as u64, pairs));
            (first, pairs) = (a as u64, 0);
        }
        pairs += u64::from(count);
    }
    groups.push((first..counts.len() as u64, pairs));
    groups
}

/// Passes sorted pairs that come in pieces on, as chunks of one size except the last.
struct Delivery<'a> {
    buffer: HostBuffer<Pair>,
    filled: usize,
    f: &'a mut dyn FnMut(&[Pair]),
    pairs: u64,
    chunks: u64,
}

impl<'a> Delivery<'a> {
    fn new(stream: &Stream, chunk: usize, f: &'a mut dyn FnMut(&[Pair])) -> Result<Self> {
        Ok(Self {
            buffer: HostBuffer::new(stream.device(), chunk)?,
            filled: 0,
            f,
            pairs: 0,
            chunks: 0,
        })
    }

    /// Adds a piece, and passes on the chunks that are full.
    fn add(&mut self, stream: &Stream, pairs: Slice<Pair>) -> Result<()> {
        let mut start = 0;
        while start < pairs.len() {
            let take = (self.buffer.len() - self.filled).min(pairs.len() - start);
            stream.download(
                pairs.range(start..start + take)?,
                &mut self.buffer[self.filled..self.filled + take],
            )?;
            (start, self.filled) = (start + take, self.filled + take);
            if self.filled == self.buffer.len() {
                self.finish();
            }
        }
        Ok(())
    }

    /// Passes on what is left.
    fn finish(&mut self) {
        if self.filled > 0 {
            (self.f)(&self.buffer[..self.filled]);
            self.pairs += self.filled as u64;
            self.chunks += 1;
            self.filled = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn groups_cover_all_rows_within_the_limit() {
        assert_eq!(groups(&[], 10), [(0..0, 0)]);
        assert_eq!(groups(&[3, 3, 3], 100), [(0..3, 9)]);
        assert_eq!(
            groups(&[3, 3, 4, 0, 9, 0], 7),
            [(0..2, 6), (2..4, 4), (4..6, 9)]
        );
        let max = u32::MAX;
        assert_eq!(
            groups(&[max, max], u64::from(max)),
            [(0..1, u64::from(max)), (1..2, u64::from(max))]
        );
    }
}
