//! Render targets: multisampled colour and depth, and pictures that can be read back.

use super::gpu::Gpu;
use super::texture::{extent, texture};
use crate::error::Error;
use std::sync::mpsc;
use wgpu::{
    BufferDescriptor, BufferUsages, CommandEncoder, Device, MapMode, PollType, TexelCopyBufferInfo,
    TexelCopyBufferLayout, Texture, TextureFormat, TextureUsages, TextureView,
};

pub(super) const DEPTH: TextureFormat = TextureFormat::Depth32Float;

/// Colour and depth for pictures of one size and number of samples.
#[derive(Debug)]
pub(super) struct Targets {
    pub size: [u32; 2],
    /// Multisampled colour; `None` with one sample, where the picture itself takes the colour.
    pub colour: Option<TextureView>,
    pub depth: TextureView,
}

impl Targets {
    pub fn new(device: &Device, format: TextureFormat, size: [u32; 2], samples: u32) -> Self {
        let view = |format| {
            let usage = TextureUsages::RENDER_ATTACHMENT;
            texture(device, size, samples, format, usage).create_view(&Default::default())
        };
        Self {
            size,
            colour: (samples > 1).then(|| view(format)),
            depth: view(DEPTH),
        }
    }
}

/// A picture without a window.
#[derive(Debug)]
pub(crate) struct Picture {
    pub size: [u32; 2],
    pub view: TextureView,
    texture: Texture,
}

impl Picture {
    /// Creates a picture with four channels of a byte each, in this format.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] for a side of 0 pixels or above the device's limit.
    pub fn new(gpu: &Gpu, size: [u32; 2], format: TextureFormat) -> Result<Self, Error> {
        let limit = gpu.max_pixels();
        if size.iter().any(|side| !(1..=limit).contains(side)) {
            return Err(Error::Size { size, limit });
        }
        let usage = TextureUsages::RENDER_ATTACHMENT | TextureUsages::COPY_SRC;
        let texture = texture(&gpu.device, size, 1, format, usage);
        Ok(Self {
            size,
            view: texture.create_view(&Default::default()),
            texture,
        })
    }

    /// Submits the commands and reads the picture: red, green, blue and opacity as bytes, row by
    /// row from the top.
    pub fn read(&self, gpu: &Gpu, mut encoder: CommandEncoder) -> Result<Vec<u8>, Error> {
        let [width, height] = self.size;
        let row = (4 * width).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let buffer = gpu.device.create_buffer(&BufferDescriptor {
            label: Some("picture"),
            size: u64::from(row) * u64::from(height),
            usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let layout = TexelCopyBufferInfo {
            buffer: &buffer,
            layout: TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(row),
                rows_per_image: None,
            },
        };
        encoder.copy_texture_to_buffer(self.texture.as_image_copy(), layout, extent(self.size));
        gpu.queue.submit([encoder.finish()]);
        let (done, mapped) = mpsc::channel();
        // The receiver waits below, unless the device failed.
        let send = move |result| done.send(result).unwrap_or_default();
        buffer.map_async(MapMode::Read, .., send);
        let failed = |what: &dyn ToString| Error::Device(what.to_string());
        gpu.device
            .poll(PollType::wait_indefinitely())
            .map_err(|error| failed(&error))?;
        if let Some(failure) = gpu.failure() {
            return Err(failure);
        }
        mapped
            .recv()
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        let bytes = buffer
            .get_mapped_range(..)
            .map_err(|error| failed(&error))?;
        let rows = bytes.chunks_exact(row as usize);
        let mut pixels: Vec<u8> = rows
            .flat_map(|row| &row[..4 * width as usize])
            .copied()
            .collect();
        // The antialiased edges of balls leave their coverage in the opacity, but a picture is
        // opaque.
        let blue_first = matches!(
            self.texture.format(),
            TextureFormat::Bgra8Unorm | TextureFormat::Bgra8UnormSrgb
        );
        for pixel in pixels.chunks_exact_mut(4) {
            pixel[3] = u8::MAX;
            if blue_first {
                pixel.swap(0, 2);
            }
        }
        Ok(pixels)
    }
}
