//! What every engine can do. What only one can, such as to take boxes on its device,
//! [`crate::BroadPhase`] calls on that engine itself.

#[cfg(on_device)]
use crate::handover::Last;
use crate::query::Labels;
#[cfg(cuda)]
use crate::query::{NearBox, Question};
use crate::subdivision::Subdivision;
use crate::{Aabb, Backend, ChunkReport, Config, Frame, Pair, Report, Result};
use std::any::Any;
use std::borrow::Cow;

/// Finds pairs in one way, on one kind of device.
///
/// All engines find the same pairs, bit for bit. An engine is made for a configuration, which it
/// keeps. A call that fails changes nothing that can be seen. [`crate::backend`] makes engines.
pub(crate) trait Engine: Any + Send + Sync {
    /// The configuration that it was made for.
    fn config(&self) -> &Config;

    /// Where it works; never [`Backend::Auto`].
    fn backend(&self) -> Backend;

    /// Finds all pairs of a frame, and which of them started and ended since the last update.
    fn update(&mut self, frame: &Frame) -> Result<Report>;

    /// The pairs of the last update.
    fn pairs(&self) -> &[Pair];

    /// The pairs that the last update started.
    fn started(&self) -> &[Pair];

    /// The pairs that the last update ended.
    fn ended(&self) -> &[Pair];

    /// The excluded pairs of the last update. Only those of the CPU are asked for, by
    /// `BroadPhase::is_unchanged`.
    fn excluded(&self) -> &[Pair] {
        &[]
    }

    /// Copies the lists to the host, where they are only on a device.
    fn download(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether there is a neighbour list.
    fn has_list(&self) -> bool {
        false
    }

    /// How the last update that looked at all boxes cut the space.
    fn subdivision(&self) -> Option<Subdivision>;

    /// The boxes of the last update as they were given: swept ones merged, `f64` ones rounded,
    /// invalid ones empty.
    fn boxes(&self) -> Result<Cow<'_, [Aabb]>>;

    /// The filters and worlds of these boxes.
    fn labels(&self) -> Result<Labels<'_>>;

    /// Returns at least those of [`Engine::boxes`] that the question asks for; None if a tree of
    /// all boxes is the better way.
    #[cfg(cuda)]
    fn near_boxes(&self, _question: Question) -> Result<Option<Vec<NearBox>>> {
        Ok(None)
    }

    /// Forgets the last update.
    fn clear(&mut self);

    /// Finds the pairs between two sets, without margins. The result of the last update stays.
    fn overlaps_between(&mut self, a: &Frame, b: &Frame) -> Result<Vec<Pair>>;

    /// Delivers all pairs of a frame in order, at most `chunk` a call. The result of the last
    /// update stays.
    fn for_each_pair_chunk(
        &mut self,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport>;

    /// Takes what there is of the last result out of an engine that has failed. Only an engine on
    /// a device can fail so.
    #[cfg(on_device)]
    fn last(&mut self) -> Result<Last> {
        Ok(Last::default())
    }
}

/// Fails if lists are read that are not on the host.
#[cfg(on_device)]
pub(crate) fn assert_downloaded(is_on_host: bool) {
    assert!(
        is_on_host,
        "the lists are on the device: call `download` before they are read"
    );
}
