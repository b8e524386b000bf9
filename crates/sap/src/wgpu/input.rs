//! The input of a search.

use super::memory::write_at;
use crate::cpu::shared::Scene;
use crate::{Aabb64, Filter, OverlapRule, Pair, Result};
use bytemuck::Pod;
use wgpu_device::Device;
use wgpu_device::wgpu::Buffer;

/// The boxes of a search, and what decides their pairs.
pub(super) struct Input<'a> {
    /// The boxes of one set, or of two one after the other.
    pub(super) source: Source<'a>,
    pub(super) excluded: &'a [Pair],
    /// The number of boxes of the first of two sets; 0 for one set.
    pub(super) first_set: usize,
    pub(super) rule: OverlapRule,
    pub(super) axis: usize,
    /// Where the two other axes are cut into columns.
    pub(super) cuts: [Vec<f32>; 2],
}

/// Where boxes, filters and worlds are.
pub(super) enum Source<'a> {
    Host(&'a Scene),
    Device(Given),
}

/// Boxes on the device, with the filters, worlds and `f64` boxes that their tags begin with.
pub(super) struct Given {
    pub(super) n: usize,
    pub(super) boxes: Buffer,
    pub(super) tags: Buffer,
    pub(super) has_filters: bool,
    pub(super) has_worlds: bool,
    pub(super) has_exact: bool,
}

impl Input<'_> {
    /// Tells whether there are columns.
    pub(super) fn is_cut(&self) -> bool {
        self.cuts.iter().any(|cuts| !cuts.is_empty())
    }

    /// Returns the number of boxes.
    pub(super) const fn len(&self) -> usize {
        match &self.source {
            Source::Host(scene) => scene.boxes.len(),
            Source::Device(given) => given.n,
        }
    }

    /// Tells whether each box has a world.
    pub(super) const fn has_worlds(&self) -> bool {
        match &self.source {
            Source::Host(scene) => scene.worlds.is_some(),
            Source::Device(given) => given.has_worlds,
        }
    }
}

/// `ABSENT` in the kernels.
pub(super) const ABSENT: u32 = u32::MAX;

/// The lists of `tags` in the kernels, in their order.
pub(super) struct Tags<'a> {
    /// What is on the host of each list.
    lists: [&'a [u8]; 6],
    /// The bytes of each list, 0 if it is absent.
    bytes: [usize; 6],
}

impl<'a> Tags<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        fn bytes<T: Pod>(list: Option<&Vec<T>>) -> &[u8] {
            list.map_or(&[], |list| bytemuck::cast_slice(list))
        }
        let [filters, worlds, exact] = match &input.source {
            Source::Host(scene) => [
                bytes::<Filter>(scene.filters.as_ref()),
                bytes::<u32>(scene.worlds.as_ref()),
                bytes::<Aabb64>(scene.exact.as_ref()),
            ],
            Source::Device(_) => [&[][..]; 3],
        };
        let lists = [
            filters,
            worlds,
            exact,
            bytemuck::cast_slice(input.excluded),
            bytemuck::cast_slice(&input.cuts[0]),
            bytemuck::cast_slice(&input.cuts[1]),
        ];
        let mut bytes = lists.map(<[u8]>::len);
        if let Source::Device(given) = &input.source {
            bytes[0] = given.n * size_of::<Filter>() * usize::from(given.has_filters);
            bytes[1] = given.n * size_of::<u32>() * usize::from(given.has_worlds);
            bytes[2] = given.n * size_of::<Aabb64>() * usize::from(given.has_exact);
        }
        Self { lists, bytes }
    }

    /// Returns where each list begins, in words.
    pub(super) fn starts(&self) -> [u32; 6] {
        let mut words = 0;
        self.bytes.map(|bytes| {
            let start = if bytes == 0 { ABSENT } else { words };
            words += (bytes / size_of::<u32>()) as u32;
            start
        })
    }

    /// Returns the bytes of all lists.
    pub(super) fn total(&self) -> u64 {
        self.bytes.iter().sum::<usize>() as u64
    }

    /// Writes what is on the host.
    pub(super) fn write(&self, device: &Device, buffer: &Buffer) -> Result<()> {
        let mut offset = 0;
        for (list, bytes) in self.lists.iter().zip(self.bytes) {
            write_at(device, buffer, offset, list)?;
            offset += bytes as u64;
        }
        Ok(())
    }
}
