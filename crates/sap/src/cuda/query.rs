//! Single queries on the device: `kernels/sap/query.cuh`.

use crate::cuda::kernels::{linear, module};
use crate::cuda::memory::Grow;
use crate::query::Candidate;
use crate::{Aabb, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Kernel, Slice, Stream, args};

/// Candidates there is room for, 512 KiB, and those that come with their number: 8 KiB take no longer than nothing.
const ROOM: usize = 16 * 1024;
const FIRST: usize = 255;

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Question {
    /// What touches this box.
    Touching(Aabb),
    /// What is on `origin + t * dir`, `0 <= t <= max_t`.
    Along([f32; 3], [f32; 3], f32),
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Ray {
    origin: [f64; 3],
    step: [f64; 3],
    most: f64,
}

/// Made by the first query.
#[derive(Default)]
pub(crate) struct Queries {
    kernels: Option<[Kernel; 2]>,
    /// The number of candidates in the place of one, then the candidates.
    found: Grow<Candidate>,
}

impl Queries {
    /// At least the boxes that are asked for, in no order; nothing where they are more than there is room for. O(boxes).
    pub(crate) fn ask(
        &mut self,
        stream: &Stream,
        boxes: Slice<Aabb>,
        question: Question,
    ) -> Result<Option<Vec<Candidate>>> {
        if self.kernels.is_none() {
            let module = module(stream.device())?;
            let kernels = [
                module.kernel("sap_query_box")?,
                module.kernel("sap_query_ray")?,
            ];
            self.kernels = Some(kernels);
        }
        let Some([of_box, of_ray]) = &self.kernels else {
            return Ok(None);
        };
        self.found.reserve(stream, 1 + ROOM)?;
        if boxes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        stream.fill_bytes(self.found.part_mut(1)?, 0)?;
        let (n, launch) = (boxes.len() as u32, linear(boxes.len()));
        let (out, room) = (self.found.part_mut(1 + ROOM)?, ROOM as u32);
        // SAFETY: there are `n` boxes and room for that many candidates behind their number, which is 0.
        unsafe {
            match question {
                Question::Touching(query) => {
                    let query = ByValue(query);
                    stream.launch(of_box, &launch, &args![boxes, n, query, out, room])?;
                }
                Question::Along(origin, dir, max_t) => {
                    let ray = ByValue(Ray {
                        origin: origin.map(f64::from),
                        step: dir.map(f64::from),
                        most: f64::from(max_t),
                    });
                    stream.launch(of_ray, &launch, &args![boxes, n, ray, out, room])?;
                }
            }
        }
        let mut found = stream.to_vec(self.found.part(1 + FIRST)?)?;
        let Candidate { index, pad, .. } = found.remove(0);
        let count = (u64::from(pad) << 32 | u64::from(index)) as usize;
        if count > ROOM {
            return Ok(None);
        }
        if count > FIRST {
            found.extend(stream.to_vec(self.found.part(1 + count)?.range(1 + FIRST..)?)?);
        }
        found.truncate(count);
        Ok(Some(found))
    }
}
