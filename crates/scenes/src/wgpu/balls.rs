//! The balls of a frame in buffers of the device.

use crate::Instance;
use bytemuck::Pod;
use glam::Vec4;
use radsweep::Aabb;
use radsweep::wgpu_device::wgpu::{Buffer, BufferUsages};
use radsweep::wgpu_device::{Device, Result};
use std::sync::Arc;

/// The balls of a frame in buffers of a device: [`Scene::balls`](crate::Scene::balls).
///
/// A renderer on the same device draws from them. They stay as they are while anything holds them:
/// the scene writes later frames to other buffers. Each buffer has the usages `STORAGE`, `VERTEX`
/// and `COPY_SRC`.
#[derive(Debug)]
pub struct Balls {
    device: Device,
    count: u32,
    at: Buffer,
    velocities: Buffer,
    pairs: Buffer,
    boxes: Buffer,
}

impl Balls {
    /// Makes balls from their centres and radii, and their velocities, without boxes.
    pub(super) fn new(device: &Device, at: &[Vec4], velocities: &[Vec4]) -> Result<Self> {
        let none = vec![Aabb::EMPTY; at.len()];
        Ok(Self {
            device: device.clone(),
            count: at.len() as u32,
            at: device.upload("balls", at, USAGE)?,
            velocities: device.upload("velocities of balls", velocities, USAGE)?,
            pairs: device.buffer("pairs of balls", 4 * at.len() as u64, USAGE)?,
            boxes: device.upload("boxes of balls", &none, USAGE)?,
        })
    }

    /// Makes memory for this many balls.
    fn reserve(device: &Device, count: u32) -> Result<Self> {
        let buffer = |what, bytes| device.buffer(what, bytes * u64::from(count), USAGE);
        Ok(Self {
            device: device.clone(),
            count,
            at: buffer("balls", 16)?,
            velocities: buffer("velocities of balls", 16)?,
            pairs: buffer("pairs of balls", 4)?,
            boxes: buffer("boxes of balls", 24)?,
        })
    }

    /// Returns their device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns their number.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the buffer of their centres and radii: four `f32` each.
    #[must_use]
    pub fn at(&self) -> &Buffer {
        &self.at
    }

    /// Returns the buffer of their velocities per second: four `f32` each, of which the scene uses
    /// the last.
    #[must_use]
    pub fn velocities(&self) -> &Buffer {
        &self.velocities
    }

    /// Returns the buffer of their numbers of pairs: a `u32` each.
    #[must_use]
    pub fn pairs(&self) -> &Buffer {
        &self.pairs
    }

    /// Returns the buffer of the boxes that the broad phase has seen: six `f32` each, as [`Aabb`].
    #[must_use]
    pub fn boxes(&self) -> &Buffer {
        &self.boxes
    }

    /// Returns the bytes of all buffers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        [&self.at, &self.velocities, &self.pairs, &self.boxes]
            .map(Buffer::size)
            .iter()
            .sum()
    }

    /// Downloads the boxes.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn download_boxes(&self) -> Result<Vec<Aabb>> {
        self.read(&self.boxes)
    }

    /// Downloads what [`Scene::picture`](crate::Scene::picture) returns.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn download(&self) -> Result<Vec<Instance>> {
        let at: Vec<Vec4> = self.read(&self.at)?;
        let velocities: Vec<Vec4> = self.read(&self.velocities)?;
        let each = at.iter().zip(&velocities).zip(0..);
        let instance =
            |((at, velocity), body): ((&Vec4, &Vec4), u32)| Instance::of_ball(*at, *velocity, body);
        Ok(each.map(instance).collect())
    }

    fn read<T: Pod>(&self, buffer: &Buffer) -> Result<Vec<T>> {
        let bytes = u64::from(self.count) * size_of::<T>() as u64;
        self.device.download(buffer, 0..bytes)?.wait()
    }
}

const USAGE: BufferUsages = BufferUsages::STORAGE
    .union(BufferUsages::VERTEX)
    .union(BufferUsages::COPY_SRC);

/// Unused balls beyond which memory is freed: the scene writes to one.
const MAX_SPARE: usize = 2;

/// The balls of the last frames, whose memory is used again once nothing else holds them.
#[derive(Default)]
pub(super) struct Pool(Vec<Arc<Balls>>);

impl Pool {
    /// Takes memory for this many balls.
    pub fn take(&mut self, device: &Device, count: u32) -> Result<Arc<Balls>> {
        let mut spare = 0;
        self.0.retain(|balls| {
            spare += usize::from(Arc::strong_count(balls) == 1);
            Arc::strong_count(balls) > 1 || spare <= MAX_SPARE
        });
        let unused = self.0.iter().find(|balls| Arc::strong_count(balls) == 1);
        if let Some(balls) = unused {
            return Ok(Arc::clone(balls));
        }
        let balls = Arc::new(Balls::reserve(device, count)?);
        self.0.push(Arc::clone(&balls));
        Ok(balls)
    }
}
