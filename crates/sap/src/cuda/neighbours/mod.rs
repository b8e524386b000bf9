//! The neighbour list (`kernels/sap/neighbours.cuh`): candidates that stay from frame to frame
//! while boxes move little, as on the CPU (`crate::cpu::neighbours`).
//!
//! Boxes are loosened by a margin. The pairs of loosened boxes are found once and put in order:
//! these are the candidates. While every box stays within its loosened one, a frame is three
//! launches: one checks the boxes, one tests the candidates, one writes the pairs. The host learns
//! with the counters whether a box has left. If so, the list is built again, or the frame is
//! searched.
//!
//! The head of the kernels' source has what they read and write, and what was measured.

mod build;
mod policy;

use crate::cuda::abi::Candidates;
use crate::cuda::events::Space;
use crate::cuda::input::scene::Scene;
use crate::cuda::launch::{KEEP_GROUP, KEEP_ITEMS, linear, module};
use crate::cuda::memory::HostBuffer;
use crate::cuda::sorting::Sorting;
use crate::cuda::tuning::{MIN_LISTED, MOTION_SAMPLE, UNIT_LIMITS, UNITS};
use crate::{OverlapRule, Result};
use build::Builder;
pub(crate) use build::Frames;
use gpu::{Device, DevicePtr, Grow, Kernel, SliceMut, Stream, args, blocks};
use policy::{Margin, Motion, Policy, Size};

/// Candidates of a tile.
const ITEMS: usize = KEEP_ITEMS as usize;
/// Words of bits of a tile.
const WORDS: usize = ITEMS / u32::BITS as usize;

/// The neighbour list of the last frame, and what decides whether to keep one.
pub(crate) struct Neighbours {
    motion: Kernel,
    device: Device,
    policy: Policy,
    min_boxes: usize,
    /// What builds a list. There is none before the first.
    builder: Option<Box<Builder>>,
    list: Grow<u64>,
    len: usize,
    /// How deep the loosened boxes of each candidate overlap, and the slacks of each box.
    depths: Grow<u8>,
    slacks: Grow<u16>,
    /// Units of slacks and depths in a length of 1.
    units: f32,
    /// Which candidates were pairs in the last frame, and memory for the next; `last` is the index
    /// of the last.
    hits: [Grow<u32>; 2],
    last: usize,
    /// The pairs and events of tiles, and of groups of them.
    tile_sums: Grow<u64>,
    group_sums: Grow<u64>,
    /// Whether the list has served no frame.
    is_new: bool,
    motions: Grow<Motion>,
    motions_read: HostBuffer<Motion>,
    /// The boxes of the frame whose motion was asked for.
    watched: usize,
}

impl Neighbours {
    pub(crate) fn new(device: &Device, min_boxes: Option<usize>) -> Result<Self> {
        Ok(Self {
            motion: module(device)?.kernel("sap_motion")?,
            device: device.clone(),
            policy: Policy::new(),
            min_boxes: min_boxes.unwrap_or(MIN_LISTED),
            builder: None,
            list: Grow::default(),
            len: 0,
            depths: Grow::default(),
            slacks: Grow::default(),
            units: 0.0,
            hits: Default::default(),
            last: 0,
            tile_sums: Grow::default(),
            group_sums: Grow::default(),
            is_new: false,
            motions: Grow::default(),
            motions_read: HostBuffer::default(),
            watched: 0,
        })
    }

    /// Tells whether frames of `n` boxes may have a list.
    pub(crate) const fn suits(&self, n: usize) -> bool {
        n > self.min_boxes
    }

    /// Tells whether there is a list of the last frame.
    pub(crate) const fn in_use(&self) -> bool {
        self.policy.in_use()
    }

    /// Tells whether there is a list that has served no frame, so that it knows no events.
    pub(crate) const fn is_new(&self) -> bool {
        self.in_use() && self.is_new
    }

    /// Tells whether a list is to be built now.
    pub(crate) const fn is_due(&self) -> bool {
        self.policy.due().is_some()
    }

    /// Returns the number of candidates.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Drops the list: the frame is unlike the last.
    pub(crate) fn release(&mut self) {
        self.policy.release();
    }

    /// Has the motion of some boxes read with the next wait, if it decides about a list.
    pub(crate) fn watch(&mut self, stream: &Stream, frame: &Scene, last: &Scene) -> Result<()> {
        self.watched = 0;
        if !self.policy.watches() {
            return Ok(());
        }
        let n = frame.n;
        let count = n.min(MOTION_SAMPLE);
        if self.motions_read.len() < count {
            self.motions_read = HostBuffer::new(&self.device, MOTION_SAMPLE)?;
        }
        let motions = self.motions.reserve(stream, count)?;
        let (boxes, before) = (frame.boxes()?, last.boxes()?);
        // SAFETY: both frames have `n` boxes, and there is memory for `count`, which is no more.
        unsafe {
            let (launch, n, count) = (linear(count), n as u32, count as u32);
            stream.launch(
                &self.motion,
                &launch,
                &args![boxes, before, n, count, motions],
            )?;
        }
        let motions = self.motions.part(count)?;
        // SAFETY: the copy is read after waiting for the stream only, which `Engine::drop` does
        // too.
        unsafe { stream.download_pinned(motions, &mut self.motions_read[..count])? };
        self.watched = count;
        Ok(())
    }

    /// Counts a frame that was searched, of `n` boxes with so many pairs.
    pub(crate) fn record_search(&mut self, n: usize, pairs: u64) {
        let watched = std::mem::take(&mut self.watched);
        let motions = (watched > 0).then(|| &self.motions_read[..watched]);
        self.policy.record_search(motions, Size { boxes: n, pairs });
    }

    /// Counts a frame by the list. Its hits are those of the last frame from now on.
    pub(crate) fn record_served(&mut self, n: usize, pairs: u64) {
        self.last = 1 - self.last;
        self.is_new = false;
        self.policy
            .record_served(self.len as u64, Size { boxes: n, pairs });
    }

    /// Ends the list: a box has left, or there are more pairs than the capacity.
    pub(crate) fn record_left(&mut self) {
        self.policy.record_left();
    }

    /// Builds the list that is due, of a frame that has about `pairs` pairs. Waits. Without memory
    /// for it, or with too many candidates, there is none for long.
    pub(crate) fn build(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        frames: Frames,
        pairs: u64,
    ) -> Result<()> {
        let Some(margin) = self.policy.due() else {
            return Ok(());
        };
        let boxes = frames.next.n;
        let size = Size { boxes, pairs };
        let max = Policy::max_candidates(size).min(i32::MAX as u64);
        match self.find(stream, sorting, frames, margin, max) {
            Ok(Some(len)) => {
                self.len = len as usize;
                self.is_new = true;
                self.policy.begin(margin, len, size);
                Ok(())
            }
            Err(error) if !error.is_out_of_device_memory() => Err(error),
            _ => {
                self.policy.reject();
                Ok(())
            }
        }
    }

    /// Finds at most `max` candidates and makes them the list. Waits. Returns none where there are
    /// more, or they take too many tests.
    fn find(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        frames: Frames,
        margin: Margin,
        max: u64,
    ) -> Result<Option<u64>> {
        let builder = match &mut self.builder {
            Some(builder) => builder,
            none => none.insert(Box::new(Builder::new(stream)?)),
        };
        builder.loosen(stream, frames, margin)?;
        let found = builder.find(stream, sorting, frames, max, &mut self.list)?;
        let Some(len) = found else {
            return Ok(None);
        };
        self.units = units_of(margin.least);
        self.slacks.reserve(stream, frames.next.n)?;
        let depths = self.depths.reserve(stream, len as usize)?;
        builder.measure(stream, &self.list, self.units, depths)?;
        let tiles = (len as usize).div_ceil(ITEMS);
        for hits in &mut self.hits {
            hits.reserve(stream, tiles * WORDS)?;
        }
        stream.fill_u32(self.hits[self.last].part_mut(tiles * WORDS)?, 0)?;
        self.tile_sums.reserve(stream, tiles)?;
        self.group_sums
            .reserve(stream, tiles.div_ceil(KEEP_GROUP))?;
        Ok(Some(len))
    }

    /// Returns the candidates to test in one frame. The pairs and events of the frame go to
    /// `pairs` and `events`.
    pub(crate) fn candidates(
        &self,
        rule: OverlapRule,
        pairs: &SliceMut<u64>,
        events: Space,
    ) -> Result<Candidates> {
        let loose = match &self.builder {
            Some(builder) => builder.loose()?,
            None => DevicePtr::NULL,
        };
        Ok(Candidates {
            loose,
            slacks: self.slacks.device_ptr(),
            depths: self.depths.device_ptr(),
            list: self.list.device_ptr(),
            n: self.len as u32,
            tiles: blocks(self.len, KEEP_ITEMS),
            units: self.units,
            open: (rule == OverlapRule::Open).into(),
            last: self.hits[self.last].device_ptr(),
            hits: self.hits[1 - self.last].device_ptr(),
            tile_sums: self.tile_sums.device_ptr(),
            group_sums: self.group_sums.device_ptr(),
            pairs: pairs.device_ptr(),
            out: events.lists,
            pairs_capacity: pairs.len() as u64,
            capacity: events.capacity,
        })
    }
}

/// Returns the units in a length of 1, for boxes that are loosened by `least` or more.
fn units_of(least: f32) -> f32 {
    (UNITS / least).clamp(UNIT_LIMITS[0], UNIT_LIMITS[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_depths_are_finite() {
        for least in [0.0, f32::from_bits(1), 1.0, 1e38, f32::MAX, f32::INFINITY] {
            let units = units_of(least);
            // An overlap so long that it is infinite is deeper than all that bytes tell of.
            assert!(
                units.is_finite() && (255.0 / units).is_finite(),
                "{least}: {units}"
            );
        }
    }
}
