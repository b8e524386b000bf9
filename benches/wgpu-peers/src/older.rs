//! `wgpu_sort`, on a device of its own version of `wgpu`.

use crate::{Contender, Given, Outcome, What};
use std::num::NonZeroU32;
use std::sync::mpsc;
use std::time::Instant;
use wgpu_of_peer as wgpu;
use wgpu_sort::{GPUSorter, SortBuffers};

/// The device, and the sorter for the size of its subgroups.
pub struct Opened {
    device: wgpu::Device,
    queue: wgpu::Queue,
    sorter: GPUSorter,
}

impl Opened {
    pub fn new(is_software: bool) -> Outcome<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
            ..wgpu::InstanceDescriptor::default()
        });
        let adapters = instance.enumerate_adapters(wgpu::Backends::all());
        let wanted = |adapter: &wgpu::Adapter| {
            (adapter.get_info().device_type == wgpu::DeviceType::Cpu) == is_software
        };
        let adapter = adapters
            .into_iter()
            .find(wanted)
            .ok_or("no adapter for `wgpu_sort`")?;
        let descriptor = wgpu::DeviceDescriptor {
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor, None))?;
        let lanes = pollster::block_on(wgpu_sort::utils::guess_workgroup_size(&device, &queue));
        let sorter = GPUSorter::new(&device, lanes.ok_or("`wgpu_sort` does not sort here")?);
        Ok(Self {
            device,
            queue,
            sorter,
        })
    }

    /// Prepares to sort pairs.
    pub fn sort<'a>(&'a self, given: &Given) -> Older<'a> {
        let n = NonZeroU32::new(given.keys.len() as u32).unwrap_or(NonZeroU32::MIN);
        let buffers = self.sorter.create_sort_buffers(&self.device, n);
        let upload = |list: &[u32]| {
            let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 4 * list.len() as u64,
                usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let bytes: Vec<u8> = list.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.queue.write_buffer(&buffer, 0, &bytes);
            buffer
        };
        Older {
            opened: self,
            given: [upload(&given.keys), upload(&given.values)],
            buffers,
        }
    }
}

/// Pairs to be sorted.
pub struct Older<'a> {
    opened: &'a Opened,
    given: [wgpu::Buffer; 2],
    buffers: SortBuffers,
}

impl Contender for Older<'_> {
    fn name(&self) -> &'static str {
        "wgpu_sort"
    }

    fn run(&mut self, repeats: usize, what: What) -> Outcome<f64> {
        let Opened {
            device,
            queue,
            sorter,
        } = self.opened;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for _ in 0..repeats {
            let sorted = [self.buffers.keys(), self.buffers.values()];
            for (given, sorted) in self.given.iter().zip(sorted) {
                encoder.copy_buffer_to_buffer(given, 0, sorted, 0, given.size());
            }
            if what == What::Sorts {
                sorter.sort(&mut encoder, queue, &self.buffers, None);
            }
        }
        let commands = encoder.finish();
        let start = Instant::now();
        queue.submit([commands]);
        device.poll(wgpu::Maintain::Wait);
        Ok(start.elapsed().as_secs_f64())
    }

    fn result(&mut self) -> Outcome<[Vec<u32>; 2]> {
        let read = |buffer: &wgpu::Buffer, bytes| -> Outcome<Vec<u32>> {
            let Opened { device, queue, .. } = self.opened;
            let staging = device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
                mapped_at_creation: false,
            });
            let mut encoder =
                device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, bytes);
            queue.submit([encoder.finish()]);
            let (done, mapped) = mpsc::channel();
            staging
                .slice(..)
                .map_async(wgpu::MapMode::Read, move |result| {
                    // The receiver waits below.
                    let _ = done.send(result);
                });
            device.poll(wgpu::Maintain::Wait);
            mapped.recv()??;
            let bytes = staging.slice(..).get_mapped_range();
            let words = bytes.chunks_exact(4);
            Ok(words
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect())
        };
        let bytes = self.given[0].size();
        Ok([
            read(self.buffers.keys(), bytes)?,
            read(self.buffers.values(), bytes)?,
        ])
    }
}
