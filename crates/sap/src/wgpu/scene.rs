//! The lists of a frame on the device.

use super::input::Given;
use super::memory::Grow;
use crate::cpu::shared::Scene;
use crate::query::Labels;
use crate::{Aabb, Aabb64, Filter, Invalid, Pair, Result, try_alloc};
use bytemuck::Pod;
use wgpu_device::Device;

/// The words of a box, of an `f64` box, and of a filter.
pub(super) const BOX_WORDS: usize = size_of::<Aabb>() / size_of::<u32>();
pub(super) const EXACT_WORDS: usize = size_of::<Aabb64>() / size_of::<u32>();
pub(super) const FILTER_WORDS: usize = size_of::<Filter>() / size_of::<u32>();

/// A frame on the device: checked boxes with their margin, and what decides about pairs. It keeps
/// nothing of the caller's.
pub(super) struct DeviceScene {
    pub(super) n: usize,
    /// The boxes that are swept; invalid ones are empty.
    pub(super) stored: Grow,
    /// The boxes before the margin was added, if there is one.
    pub(super) tight: Grow,
    pub(super) has_margin: bool,
    /// Filters, worlds and `f64` boxes, and capacity for what a search adds.
    pub(super) tags: Grow,
    pub(super) has_filters: bool,
    pub(super) has_worlds: bool,
    /// Whether pairs are tested in `f64`, which they are not with a margin.
    pub(super) has_exact: bool,
    pub(super) excluded: Vec<Pair>,
    /// Whether it has only the stored boxes of a frame of the host.
    pub(super) is_partial: bool,
}

impl Default for DeviceScene {
    fn default() -> Self {
        Self {
            n: 0,
            stored: Grow::new("boxes"),
            tight: Grow::new("boxes without margin"),
            has_margin: false,
            tags: Grow::new("filters, worlds and excluded pairs"),
            has_filters: false,
            has_worlds: false,
            has_exact: false,
            excluded: Vec::new(),
            is_partial: true,
        }
    }
}

impl DeviceScene {
    /// Takes the stored boxes of the last frame of the host, which decide about margins.
    pub(super) fn upload(&mut self, device: &Device, stored: &[Aabb]) -> Result<()> {
        self.stored.write(device, stored)?;
        (self.n, self.is_partial) = (stored.len(), true);
        Ok(())
    }

    /// Forgets the boxes.
    pub(super) const fn clear(&mut self) {
        (self.n, self.is_partial) = (0, true);
    }

    /// Tells whether both scenes have the same lists, so that they may be compared.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.n == other.n
            && !self.is_partial
            && !other.is_partial
            && self.has_filters == other.has_filters
            && self.has_worlds == other.has_worlds
            && self.has_exact == other.has_exact
            && self.excluded == other.excluded
    }

    /// Returns the lists for a search.
    pub(super) fn given(&mut self, device: &Device) -> Result<Given> {
        Ok(Given {
            n: self.n,
            boxes: self.stored.reserve(device, 0)?.clone(),
            tags: self.tags.reserve(device, 0)?.clone(),
            has_filters: self.has_filters,
            has_worlds: self.has_worlds,
            has_exact: self.has_exact,
        })
    }

    /// Downloads the boxes without margins.
    pub(super) fn boxes(&self, device: &Device) -> Result<Vec<Aabb>> {
        let list = if self.has_margin {
            &self.tight
        } else {
            &self.stored
        };
        self.read(device, Some(list), 0)
    }

    /// Downloads the filters and worlds.
    pub(super) fn labels(&self, device: &Device) -> Result<Labels<'static>> {
        let tags = |has_any: bool| has_any.then_some(&self.tags);
        let filters: Vec<Filter> = self.read(device, tags(self.has_filters), 0)?;
        let worlds: Vec<u32> = self.read(device, tags(self.has_worlds), self.worlds_at())?;
        Ok(Labels {
            filters: filters.into(),
            worlds: worlds.into(),
        })
    }

    /// Downloads all of it.
    pub(super) fn download(&self, device: &Device, invalid: Option<Invalid>) -> Result<Scene> {
        let labels = self.labels(device)?;
        let exact = self.has_exact.then_some(&self.tags);
        let exact = exact.map(|list| self.read(device, Some(list), self.exact_at()));
        let mut excluded = Vec::new();
        try_alloc::copy(&mut excluded, &self.excluded)?;
        Ok(Scene {
            boxes: self.read(device, Some(&self.stored), 0)?,
            tight: self.read(device, self.has_margin.then_some(&self.tight), 0)?,
            filters: self.has_filters.then(|| labels.filters.into_owned()),
            worlds: self.has_worlds.then(|| labels.worlds.into_owned()),
            excluded,
            exact: exact.transpose()?,
            invalid,
        })
    }

    /// Downloads an element of a list for each box, from a word on.
    fn read<T: Pod>(&self, device: &Device, list: Option<&Grow>, word: usize) -> Result<Vec<T>> {
        let Some(buffer) = list.and_then(Grow::buffer).filter(|_| self.n > 0) else {
            return Ok(Vec::new());
        };
        let start = (word * size_of::<u32>()) as u64;
        let end = start + (self.n * size_of::<T>()) as u64;
        Ok(device.download(buffer, start..end)?.wait()?)
    }

    /// Returns where the tags have the worlds, in words.
    pub(super) const fn worlds_at(&self) -> usize {
        if self.has_filters {
            FILTER_WORDS * self.n
        } else {
            0
        }
    }

    /// Returns where the tags have the `f64` boxes, in words.
    pub(super) const fn exact_at(&self) -> usize {
        self.worlds_at() + if self.has_worlds { self.n } else { 0 }
    }

    /// Returns the number of words of filters, worlds and `f64` boxes.
    pub(super) const fn tag_words(&self) -> usize {
        let exact = if self.has_exact {
            EXACT_WORDS * self.n
        } else {
            0
        };
        self.exact_at() + exact
    }
}
