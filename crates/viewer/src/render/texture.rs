//! Textures to draw into, and the background of pictures.

use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindingResource, Color,
    Device, Extent3d, FilterMode, Sampler, SamplerDescriptor, Texture, TextureDescriptor,
    TextureDimension, TextureFormat, TextureUsages, TextureView,
};

/// The colour of a picture where nothing is drawn, and of the panels: they leave it as it is, since
/// covering it would take a quarter of the time of a picture where the CPU draws.
pub(crate) const BACKGROUND: [u8; 3] = [24, 28, 35];

/// Returns the background for pictures of this format.
pub(crate) fn background(format: TextureFormat) -> Color {
    let [r, g, b] = BACKGROUND.map(|level| {
        let level = f64::from(level) / 255.0;
        if format.is_srgb() {
            ((level + 0.055) / 1.055).powf(2.4)
        } else {
            level
        }
    });
    Color { r, g, b, a: 1.0 }
}

/// Returns a texture of this size and number of samples.
pub(crate) fn texture(
    device: &Device,
    size: [u32; 2],
    samples: u32,
    format: TextureFormat,
    usage: TextureUsages,
) -> Texture {
    device.create_texture(&TextureDescriptor {
        label: None,
        size: extent(size),
        mip_level_count: 1,
        sample_count: samples,
        dimension: TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    })
}

pub(crate) const fn extent([width, height]: [u32; 2]) -> Extent3d {
    Extent3d {
        width,
        height,
        depth_or_array_layers: 1,
    }
}

/// Returns a sampler that blends the nearest texels.
pub(crate) fn linear_sampler(device: &Device) -> Sampler {
    device.create_sampler(&SamplerDescriptor {
        mag_filter: FilterMode::Linear,
        min_filter: FilterMode::Linear,
        ..SamplerDescriptor::default()
    })
}

/// Binds a texture and its sampler.
pub(crate) fn sampled(
    device: &Device,
    layout: &BindGroupLayout,
    view: &TextureView,
    sampler: &Sampler,
) -> BindGroup {
    device.create_bind_group(&BindGroupDescriptor {
        label: None,
        layout,
        entries: &[
            BindGroupEntry {
                binding: 0,
                resource: BindingResource::TextureView(view),
            },
            BindGroupEntry {
                binding: 1,
                resource: BindingResource::Sampler(sampler),
            },
        ],
    })
}

/// Returns a texture that is drawn into and then copied from by a shader.
pub(super) fn copied(device: &Device, format: TextureFormat, size: [u32; 2]) -> TextureView {
    let usage = TextureUsages::RENDER_ATTACHMENT | TextureUsages::TEXTURE_BINDING;
    texture(device, size, 1, format, usage).create_view(&Default::default())
}
