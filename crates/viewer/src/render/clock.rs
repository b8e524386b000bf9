//! Measures the drawing on the device with its timestamps, where it has them.

use super::gpu::{Gpu, TIMESTAMPS};
use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, CommandEncoder, Device, MapMode, PollType, QuerySet,
    QuerySetDescriptor, QueryType,
};

/// Measures pictures. A time arrives some pictures later, so that nothing waits for it.
#[derive(Debug)]
pub(crate) struct Clock {
    /// `None` on devices without timestamps.
    queries: Option<Queries>,
    /// Pictures in flight, oldest first.
    running: VecDeque<Running>,
    spare: Vec<Buffer>,
}

/// The timestamps of the start and the end of a picture, and their buffers.
#[derive(Debug)]
struct Queries {
    set: QuerySet,
    resolved: Buffer,
    ms_a_tick: f64,
}

#[derive(Debug)]
struct Running {
    frame: u64,
    buffer: Buffer,
    /// Receives whether the buffer could be mapped, once the picture was submitted.
    mapped: Option<Receiver<bool>>,
}

/// Two timestamps of eight bytes.
const BYTES: u64 = 16;
/// Max measured pictures in flight; a driver has two or three.
const MAX_IN_FLIGHT: usize = 8;

impl Clock {
    pub fn new(gpu: &Gpu) -> Self {
        let there = gpu.device.features().contains(TIMESTAMPS);
        Self {
            queries: there.then(|| Queries {
                set: gpu.device.create_query_set(&QuerySetDescriptor {
                    label: Some("clock"),
                    ty: QueryType::Timestamp,
                    count: 2,
                }),
                resolved: buffer(
                    &gpu.device,
                    BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
                ),
                ms_a_tick: f64::from(gpu.queue.get_timestamp_period()) / 1e6,
            }),
            running: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Marks the start of a picture.
    pub fn begin(&self, encoder: &mut CommandEncoder) {
        if let Some(queries) = &self.queries {
            encoder.write_timestamp(&queries.set, 0);
        }
    }

    /// Marks the end of the picture of this frame.
    pub fn end(&mut self, device: &Device, encoder: &mut CommandEncoder, frame: u64) {
        let Some(queries) = self
            .queries
            .as_ref()
            .filter(|_| self.running.len() < MAX_IN_FLIGHT)
        else {
            return;
        };
        encoder.write_timestamp(&queries.set, 1);
        encoder.resolve_query_set(&queries.set, 0..2, &queries.resolved, 0);
        let spare = self.spare.pop();
        let buffer = spare
            .unwrap_or_else(|| buffer(device, BufferUsages::COPY_DST | BufferUsages::MAP_READ));
        encoder.copy_buffer_to_buffer(&queries.resolved, 0, &buffer, 0, BYTES);
        self.running.push_back(Running {
            frame,
            buffer,
            mapped: None,
        });
    }

    /// Returns the frames whose times have arrived, with their milliseconds, and asks for those of
    /// the commands that were just submitted.
    pub fn submitted(&mut self, device: &Device) -> Vec<(u64, f64)> {
        for running in self.running.iter_mut().filter(|r| r.mapped.is_none()) {
            let (done, mapped) = mpsc::channel();
            // Nobody waits any more where the receiver is dropped.
            let send = move |result: Result<_, _>| done.send(result.is_ok()).unwrap_or_default();
            running.buffer.map_async(MapMode::Read, .., send);
            running.mapped = Some(mapped);
        }
        // Drawing reports errors of the device.
        let _ = device.poll(PollType::Poll);
        let mut times = Vec::new();
        while let Some(running) = self.running.front()
            && let Some(Ok(mapped)) = running.mapped.as_ref().map(Receiver::try_recv)
        {
            let ticks = running.ticks().filter(|_| mapped);
            if let Some((ticks, queries)) = ticks.zip(self.queries.as_ref()) {
                times.push((running.frame, ticks as f64 * queries.ms_a_tick));
            }
            if let Some(Running { buffer, .. }) = self.running.pop_front().filter(|_| mapped) {
                buffer.unmap();
                self.spare.push(buffer);
            }
        }
        times
    }
}

impl Running {
    fn ticks(&self) -> Option<u64> {
        // A time that cannot be read is not shown.
        let bytes = self.buffer.get_mapped_range(..).ok()?;
        let [begin, end] = bytemuck::pod_read_unaligned::<[u64; 2]>(bytes.get(..BYTES as usize)?);
        end.checked_sub(begin)
    }
}

fn buffer(device: &Device, usage: BufferUsages) -> Buffer {
    device.create_buffer(&BufferDescriptor {
        label: Some("clock"),
        size: BYTES,
        usage,
        mapped_at_creation: false,
    })
}
