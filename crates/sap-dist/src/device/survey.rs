//! The check of the boxes and ids of a rank, and the records that it sends.

use super::abi::{Cells, HOME, PLACES, Survey};
use super::format::Format;
use super::frame::{DeviceFrame, address};
use super::kernels::{Kernels, THREADS};
use super::tuning::BLOCKS;
use crate::Cause;
use crate::frame::{Ids, InvalidBoxes};
use bytemuck::{Pod, Zeroable};
use gpu::{Buffer, ByValue, Launch, Slice, SliceMut, Stream, args, blocks};
use sap::Aabb;

/// The max number of ranks: a block has 32 bytes of shared memory for each.
pub(crate) const MAX_RANKS: usize = 1024;

/// What a rank knows of its boxes.
pub(crate) struct Surveyed {
    counted: Survey,
    invalid: Option<(u64, Aabb)>,
    /// The number of records for each rank, by the place of the box in the cell.
    pub(crate) records: Vec<u64>,
    /// The same numbers for each block of boxes.
    table: Buffer<u32>,
    /// A bit for each box that has a record.
    travels: Buffer<u32>,
    cells: Cells,
}

impl Surveyed {
    /// Checks all boxes and ids, compares these with the last ones, and counts the records, none if
    /// there are no cells yet. It waits for the device.
    pub(crate) fn new(
        kernels: &Kernels,
        frame: &DeviceFrame,
        last_ids: Option<Slice<u64>>,
        (cells, ranks): (Option<Cells>, usize),
    ) -> Result<Self, Cause> {
        frame.check()?;
        if ranks > MAX_RANKS {
            let (ranks, limit) = (ranks as u64, MAX_RANKS as u64);
            return Err(Cause::TooManyRanks { ranks, limit });
        }
        let stream = &kernels.stream;
        let cells = cells.unwrap_or_else(Cells::zeroed);
        let resident = stream.device().info().multiprocessors * BLOCKS;
        let blocks = blocks(frame.len(), THREADS).clamp(1, resident.max(1));
        let kinds = if cells.columns == 0 {
            0
        } else {
            ranks * PLACES
        };
        let mut table = stream.alloc::<u32>(kinds * blocks as usize)?;
        let mut travels = stream.alloc::<u32>(frame.len().div_ceil(u32::BITS as usize))?;
        let own = size_of::<Survey>() / size_of::<u64>();
        let mut words = stream.alloc_zeroed::<u64>(own + kinds)?;
        let (counted, records) = words.slice_mut().split_at(own)?;
        let launch = Launch::linear(blocks, THREADS).dynamic_shared((kinds * 4) as u32);
        stream.using(&frame.memory()?, || {
            let (frame, cells) = (ByValue(frame.abi()), ByValue(cells));
            // SAFETY: the frame has its boxes, the cells are of as many ranks, there is a count for
            // each rank and place, the table has as many for each block, and there is a bit for
            // each box.
            unsafe {
                stream.launch(
                    &kernels.survey,
                    &launch,
                    &args![
                        frame,
                        cells,
                        ranks as u32,
                        address(last_ids),
                        counted,
                        records,
                        table.slice_mut(),
                        travels.slice_mut()
                    ],
                )
            }
        })?;
        let words = stream.to_vec(words.slice())?;
        let counted: Survey = bytemuck::pod_read_unaligned(bytemuck::cast_slice(&words[..own]));
        let id_at = |index: u64| match frame.ids {
            Ids::From(first) => Ok(first + index),
            Ids::Each(ids) => one(stream, ids, index),
        };
        if counted.first_unordered != 0 {
            let index = !counted.first_unordered;
            let id = id_at(index)?;
            return Err(Cause::IdOrder { index, id });
        }
        let invalid = match counted.invalid {
            0 => None,
            _ => {
                let index = !counted.first_invalid;
                Some((id_at(index)?, one(stream, frame.boxes, index)?))
            }
        };
        Ok(Self {
            counted,
            invalid,
            records: words[own..].to_vec(),
            table,
            travels,
            cells,
        })
    }

    pub(crate) fn invalid(&self) -> InvalidBoxes {
        InvalidBoxes {
            count: self.counted.invalid,
            first: self.invalid,
        }
    }

    /// Tells whether an id differs from that of the list of last ids.
    pub(crate) const fn has_other_ids(&self) -> bool {
        self.counted.has_other_ids != 0
    }

    /// Returns the number of boxes of this rank whose home is its cell.
    pub(crate) const fn homes(&self) -> u64 {
        self.counted.homes
    }

    /// Tells whether all boxes are valid and none has its home elsewhere.
    pub(crate) fn are_all_homes(&self) -> bool {
        let away = self.records.iter().skip(HOME).step_by(PLACES);
        self.counted.invalid == 0 && away.sum::<u64>() == 0
    }

    /// Returns the cells of the survey.
    pub(crate) const fn cells(&self) -> Cells {
        self.cells
    }

    /// Queues the writing of all records, of this format.
    pub(crate) fn write(
        &self,
        kernels: &Kernels,
        frame: &DeviceFrame,
        format: Format,
        records: SliceMut<u32>,
    ) -> Result<(), Cause> {
        if records.is_empty() {
            return Ok(());
        }
        let offsets = kernels.sums(self.table.slice())?;
        let kinds = self.records.len();
        let launch = Launch::linear((self.table.len() / kinds) as u32, THREADS)
            .dynamic_shared((kinds * 8) as u32);
        let (frame, cells) = (ByValue(frame.abi()), ByValue(self.cells));
        let ranks = (kinds / PLACES) as u32;
        // SAFETY: the launch has the blocks of the survey, so there is an offset for each of their
        // counts and memory for all records.
        Ok(unsafe {
            kernels.stream.launch(
                &kernels.write,
                &launch,
                &args![
                    frame,
                    cells,
                    ranks,
                    format.words() as u32,
                    u32::from(format.ids),
                    offsets.slice(),
                    self.travels.slice(),
                    records
                ],
            )
        }?)
    }
}

/// Reads the element of a list at an index.
fn one<T: Pod>(stream: &Stream, list: Slice<T>, index: u64) -> gpu::Result<T> {
    let at = index as usize;
    Ok(stream.to_vec(list.range(at..=at)?)?[0])
}
