//! Boxes on their way to the ranks that search them.

use crate::error::{push, reserve};
use crate::layout::{Bounds, Layout, Place};
use crate::{Cause, Frame};
use bytemuck::{Pod, Zeroable, bytes_of, pod_read_unaligned};
use sap::{Aabb, Filter};

/// A box on the wire: 32 bytes. Its filter and its world follow if the frame has some.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Record {
    id: u64,
    bounds: Aabb,
}

/// The lists that the frames of all ranks have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) filters: bool,
    pub(crate) worlds: bool,
}

impl Lists {
    /// Returns the bytes of a box.
    const fn stride(self) -> usize {
        let filter = if self.filters { size_of::<Filter>() } else { 0 };
        let world = if self.worlds { size_of::<u32>() } else { 0 };
        size_of::<Record>() + filter + world
    }
}

/// Who a box is: its id, and the rank that brought it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    pub(crate) id: u64,
    pub(crate) origin: u32,
}

/// Some boxes of a cell.
#[derive(Default)]
pub(crate) struct Set {
    pub(crate) boxes: Vec<Aabb>,
    pub(crate) names: Vec<Name>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
}

impl Set {
    pub(crate) fn len(&self) -> usize {
        self.boxes.len()
    }

    /// Returns the set as the engine takes it.
    pub(crate) fn frame(&self, lists: Lists) -> sap::Frame<'_> {
        let mut frame = sap::Frame::boxes(&self.boxes);
        if lists.filters {
            frame = frame.filters(&self.filters);
        }
        if lists.worlds {
            frame = frame.worlds(&self.worlds);
        }
        frame
    }

    pub(crate) fn reserve(&mut self, more: usize, lists: Lists) -> Result<(), Cause> {
        reserve(&mut self.boxes, more)?;
        reserve(&mut self.names, more)?;
        reserve(&mut self.filters, if lists.filters { more } else { 0 })?;
        reserve(&mut self.worlds, if lists.worlds { more } else { 0 })
    }

    /// Returns the boxes that meet the bounds.
    pub(crate) fn meeting(&self, bounds: &Bounds, lists: Lists) -> Result<Self, Cause> {
        let mut some = Self::default();
        let mut near = Vec::new();
        for i in (0..self.len()).filter(|&i| Bounds::of(&self.boxes[i]).meets(bounds)) {
            push(&mut near, i)?;
        }
        some.reserve(near.len(), lists)?;
        for i in near {
            some.boxes.push(self.boxes[i]);
            some.names.push(self.names[i]);
            some.filters.extend(self.filters.get(i));
            some.worlds.extend(self.worlds.get(i));
        }
        Ok(some)
    }

    /// Adds the boxes of another set, for which there is memory.
    pub(crate) fn append(&mut self, other: Self) {
        self.boxes.extend(other.boxes);
        self.names.extend(other.names);
        self.filters.extend(other.filters);
        self.worlds.extend(other.worlds);
    }
}

/// Writes a message for each rank with the boxes that reach its cell. Empty and invalid boxes
/// overlap nothing and stay behind.
pub(crate) fn write(
    frame: &Frame,
    lists: Lists,
    layout: &Layout,
    ranks: usize,
) -> Result<Vec<Vec<u8>>, Cause> {
    let boxes = || {
        let valid = frame.boxes.iter().enumerate();
        let valid = valid.filter(|(_, b)| b.check().is_ok() && !b.is_empty());
        valid.map(|(i, b)| (i, Bounds::of(b)))
    };
    let mut counts = vec![0_usize; ranks];
    for (_, bounds) in boxes() {
        layout.for_each_rank(&bounds, |rank| counts[rank] += 1);
    }
    let mut messages = vec![Vec::new(); ranks];
    for (message, count) in messages.iter_mut().zip(counts) {
        reserve(message, count * lists.stride())?;
    }
    for (i, bounds) in boxes() {
        let record = Record {
            id: frame.id(i),
            bounds: frame.boxes[i],
        };
        let filter = frame.filters.map(|filters| filters[i]);
        let world = frame.worlds.map(|worlds| worlds[i]);
        layout.for_each_rank(&bounds, |rank| {
            let message = &mut messages[rank];
            message.extend_from_slice(bytes_of(&record));
            if let Some(filter) = &filter {
                message.extend_from_slice(bytes_of(filter));
            }
            if let Some(world) = &world {
                message.extend_from_slice(bytes_of(world));
            }
        });
    }
    Ok(messages)
}

/// The boxes of the cell of a rank, by their place in it.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) home: Set,
    pub(crate) first: Set,
    pub(crate) second: Set,
    pub(crate) neither: Set,
}

impl Cell {
    /// Reads the messages of all ranks.
    pub(crate) fn read(
        messages: &[Vec<u8>],
        lists: Lists,
        layout: &Layout,
        rank: usize,
    ) -> Result<Self, Cause> {
        let mut cell = Self::default();
        let boxes: usize = messages
            .iter()
            .map(|message| message.len() / lists.stride())
            .sum();
        cell.home.reserve(boxes, lists)?;
        for (origin, message) in messages.iter().enumerate() {
            for bytes in message.chunks_exact(lists.stride()) {
                let (record, rest) = bytes.split_at(size_of::<Record>());
                let Record { id, bounds } = pod_read_unaligned(record);
                let set = match layout.place(rank, &Bounds::of(&bounds)) {
                    Place::Home => &mut cell.home,
                    Place::First => &mut cell.first,
                    Place::Second => &mut cell.second,
                    Place::Neither => &mut cell.neither,
                };
                if set.len() == set.boxes.capacity() {
                    set.reserve(set.len().max(64), lists)?;
                }
                set.boxes.push(bounds);
                let origin = origin as u32;
                set.names.push(Name { id, origin });
                let filter_bytes = if lists.filters {
                    size_of::<Filter>()
                } else {
                    0
                };
                let (filter, world) = rest.split_at(filter_bytes);
                if lists.filters {
                    set.filters.push(pod_read_unaligned(filter));
                }
                if lists.worlds {
                    set.worlds.push(pod_read_unaligned(world));
                }
            }
        }
        Ok(cell)
    }

    /// Returns the number of boxes that have their home elsewhere.
    pub(crate) fn copies(&self) -> usize {
        self.first.len() + self.second.len() + self.neither.len()
    }
}
