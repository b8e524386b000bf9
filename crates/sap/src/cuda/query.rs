//! Single queries on the device: `kernels/sap/query.cuh`.

use crate::cuda::launch::{linear, module};
use crate::cuda::tuning::{QUERY_CAPACITY, QUERY_FIRST};
use crate::query::{NearBox, Question};
use crate::try_alloc::zeros;
use crate::{Aabb, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Grow, Kernel, Slice, Stream, args, assert_layout};
use std::sync::{Mutex, PoisonError};

assert_layout!(NearBox, 32: index 0, pad 4, bounds 8);

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Ray {
    origin: [f64; 3],
    step: [f64; 3],
    most: f64,
}

assert_layout!(Ray, 56: origin 0, step 24, most 48);

/// What a query on the device needs. One at a time has it.
#[derive(Default)]
pub(crate) struct Queries(Mutex<Scratch>);

/// Made by the first query.
#[derive(Default)]
struct Scratch {
    kernels: Option<[Kernel; 2]>,
    /// The count of candidates in the first entry, then the candidates.
    found: Grow<NearBox>,
}

impl Queries {
    /// Returns at least the boxes that are asked for, in no order; None if they are more than the
    /// capacity. O(boxes).
    pub(crate) fn ask(
        &self,
        stream: &Stream,
        boxes: Slice<Aabb>,
        question: Question,
    ) -> Result<Option<Vec<NearBox>>> {
        // What a thread that panicked has left is replaced by the next question.
        let mut scratch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.ask(stream, boxes, question)
    }
}

impl Scratch {
    fn ask(
        &mut self,
        stream: &Stream,
        boxes: Slice<Aabb>,
        question: Question,
    ) -> Result<Option<Vec<NearBox>>> {
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
        self.found.reserve(stream, 1 + QUERY_CAPACITY)?;
        if boxes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        stream.fill_bytes(self.found.part_mut(1)?, 0)?;
        let (n, launch) = (boxes.len() as u32, linear(boxes.len()));
        let (out, capacity) = (
            self.found.part_mut(1 + QUERY_CAPACITY)?,
            QUERY_CAPACITY as u32,
        );
        // SAFETY: there are `n` boxes, and capacity for that many candidates behind their count,
        // which is 0.
        unsafe {
            match question {
                Question::Touching(query) => {
                    let query = ByValue(query);
                    stream.launch(of_box, &launch, &args![boxes, n, query, out, capacity])?;
                }
                Question::Along(origin, dir, max_t) => {
                    let ray = ByValue(Ray {
                        origin: origin.map(f64::from),
                        step: dir.map(f64::from),
                        most: f64::from(max_t),
                    });
                    stream.launch(of_ray, &launch, &args![boxes, n, ray, out, capacity])?;
                }
            }
        }
        let mut found = stream.to_vec(self.found.part(1 + QUERY_FIRST)?)?;
        let NearBox { index, pad, .. } = found.remove(0);
        let count = (u64::from(pad) << 32 | u64::from(index)) as usize;
        if count > QUERY_CAPACITY {
            return Ok(None);
        }
        if count > QUERY_FIRST {
            found.extend(stream.to_vec(self.found.part(1 + count)?.range(1 + QUERY_FIRST..)?)?);
        }
        found.truncate(count);
        Ok(Some(found))
    }
}

/// Copies a list to the host.
pub(crate) fn copied<T: Pod>(stream: &Stream, list: Slice<T>) -> Result<Vec<T>> {
    let mut copy = zeros(list.len())?;
    stream.download(list, &mut copy)?;
    Ok(copy)
}

/// Copies the first `n` elements of a list to the host, if there is a list.
pub(crate) fn copied_some<T: Pod>(
    stream: &Stream,
    list: &Option<Grow<T>>,
    n: usize,
) -> Result<Vec<T>> {
    let copy = |list: &Grow<T>| copied(stream, list.part(n)?);
    list.as_ref().map_or(Ok(Vec::new()), copy)
}
