//! Draws the panels of egui.
//!
//! The shader of egui-wgpu has a way to sample textures for tests, behind a branch. llvmpipe runs
//! both sides of a branch, and this one took a third of the time of a picture.

use super::render::{Gpu, background, buffer_for, extent, linear_sampler, sampled, texture, write};
use egui::epaint::{ImageData, ImageDelta, Primitive, Vertex};
use egui::{ClippedPrimitive, FullOutput, Rect, TextureId};
use std::collections::HashMap;
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BlendComponent, BlendFactor,
    BlendOperation, BlendState, Buffer, BufferUsages, ColorTargetState, ColorWrites,
    CommandEncoder, Device, FragmentState, IndexFormat, LoadOp, Operations, Origin3d,
    PipelineCompilationOptions, RenderPassColorAttachment, RenderPassDescriptor, RenderPipeline,
    RenderPipelineDescriptor, Sampler, StoreOp, TexelCopyBufferLayout, Texture, TextureFormat,
    TextureUsages, TextureView, VertexBufferLayout, VertexState, VertexStepMode, vertex_attr_array,
};

/// What is below the panels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    Scene,
    Background,
}

/// Draws the panels on the device.
pub(super) struct Overlay {
    pipeline: RenderPipeline,
    format: TextureFormat,
    /// Width and height of the picture in points.
    size: Buffer,
    size_group: BindGroup,
    textures_layout: BindGroupLayout,
    /// The sampler of every texture: egui's fonts are the only one, and there are no pictures.
    sampler: Sampler,
    textures: HashMap<TextureId, (Texture, BindGroup)>,
    /// Textures to free after the current jobs.
    unused: Vec<TextureId>,
    vertices: Buffer,
    indices: Buffer,
    jobs: Vec<Job>,
}

/// A mesh to draw.
struct Job {
    texture: TextureId,
    /// Left, top, width and height in pixels of the part of the picture that it is cut to.
    clip: [u32; 4],
    indices: std::ops::Range<u32>,
    first_vertex: i32,
}

/// Colours are premultiplied.
const BLENDED: BlendState = BlendState {
    color: BlendComponent {
        src_factor: BlendFactor::One,
        dst_factor: BlendFactor::OneMinusSrcAlpha,
        operation: BlendOperation::Add,
    },
    alpha: BlendComponent {
        src_factor: BlendFactor::OneMinusDstAlpha,
        dst_factor: BlendFactor::One,
        operation: BlendOperation::Add,
    },
};

impl Overlay {
    pub fn new(gpu: &Gpu, format: TextureFormat) -> Self {
        let device = &gpu.device;
        let pipeline = pipeline(device, format, !gpu.is_software());
        let size = device.create_buffer_init(&BufferInitDescriptor {
            label: Some("panels"),
            contents: bytemuck::bytes_of(&[1.0_f32; 2]),
            usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
        });
        Self {
            size_group: device.create_bind_group(&BindGroupDescriptor {
                label: Some("panels"),
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[BindGroupEntry {
                    binding: 0,
                    resource: size.as_entire_binding(),
                }],
            }),
            size,
            textures_layout: pipeline.get_bind_group_layout(1),
            sampler: linear_sampler(device),
            pipeline,
            format,
            textures: HashMap::new(),
            unused: Vec::new(),
            vertices: buffer_for::<Vertex>(device, &[], BufferUsages::VERTEX),
            indices: buffer_for::<u32>(device, &[], BufferUsages::INDEX),
            jobs: Vec::new(),
        }
    }

    /// Uploads a pass, for pictures of this size.
    pub fn prepare(
        &mut self,
        gpu: &Gpu,
        size: [u32; 2],
        context: &egui::Context,
        mut output: FullOutput,
    ) {
        for id in self.unused.drain(..) {
            self.textures.remove(&id);
        }
        self.unused.extend(output.textures_delta.free.drain());
        for (id, deltas) in output.textures_delta.set.drain() {
            for delta in &deltas {
                self.update_texture(gpu, id, delta);
            }
        }
        let scale = output.pixels_per_point;
        let points = size.map(|side| side as f32 / scale);
        gpu.queue
            .write_buffer(&self.size, 0, bytemuck::bytes_of(&points));
        let (mut vertices, mut indices) = (Vec::new(), Vec::new());
        self.jobs.clear();
        for ClippedPrimitive {
            clip_rect,
            primitive,
        } in context.tessellate(output.shapes, scale)
        {
            // There are no paint callbacks.
            let Primitive::Mesh(mesh) = primitive else {
                continue;
            };
            let (first_vertex, first) = (vertices.len() as i32, indices.len() as u32);
            vertices.extend(mesh.vertices);
            indices.extend(mesh.indices);
            self.jobs.push(Job {
                texture: mesh.texture_id,
                clip: clip(clip_rect, scale, size),
                indices: first..indices.len() as u32,
                first_vertex,
            });
        }
        let (device, queue) = (&gpu.device, &gpu.queue);
        write(device, queue, &mut self.vertices, &vertices);
        write(device, queue, &mut self.indices, &indices);
    }

    /// Creates a texture, or changes a part of it.
    fn update_texture(&mut self, gpu: &Gpu, id: TextureId, delta: &ImageDelta) {
        let ImageData::Color(image) = &delta.image;
        let size = image.size.map(|side| side as u32);
        if delta.pos.is_none() {
            let usage = TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST;
            let texture = texture(&gpu.device, size, 1, TextureFormat::Rgba8Unorm, usage);
            let view = texture.create_view(&Default::default());
            let bind_group = sampled(&gpu.device, &self.textures_layout, &view, &self.sampler);
            self.textures.insert(id, (texture, bind_group));
        }
        let Some((texture, _)) = self.textures.get(&id) else {
            return; // egui creates textures before it changes them
        };
        let [x, y] = delta.pos.unwrap_or_default().map(|at| at as u32);
        let mut target = texture.as_image_copy();
        target.origin = Origin3d { x, y, z: 0 };
        let layout = TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(4 * size[0]),
            rows_per_image: Some(size[1]),
        };
        let bytes = bytemuck::cast_slice(&image.pixels);
        gpu.queue.write_texture(target, bytes, layout, extent(size));
    }

    /// Draws the prepared panels over the picture of the scene, or over the background, which it
    /// draws too.
    pub fn paint(&self, encoder: &mut CommandEncoder, view: &TextureView, below: Below) {
        let load = match below {
            Below::Scene => LoadOp::Load,
            Below::Background => LoadOp::Clear(background(self.format)),
        };
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: Some("panels"),
            color_attachments: &[Some(RenderPassColorAttachment {
                view,
                depth_slice: None,
                resolve_target: None,
                ops: Operations {
                    load,
                    store: StoreOp::Store,
                },
            })],
            ..RenderPassDescriptor::default()
        });
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.size_group, &[]);
        pass.set_vertex_buffer(0, self.vertices.slice(..));
        pass.set_index_buffer(self.indices.slice(..), IndexFormat::Uint32);
        for job in &self.jobs {
            let [left, top, width, height] = job.clip;
            if let Some((_, texture)) = self.textures.get(&job.texture)
                && width > 0
                && height > 0
            {
                pass.set_bind_group(1, texture, &[]);
                pass.set_scissor_rect(left, top, width, height);
                pass.draw_indexed(job.indices.clone(), job.first_vertex, 0..1);
            }
        }
    }
}

fn pipeline(device: &Device, format: TextureFormat, dithers: bool) -> RenderPipeline {
    let shader = device.create_shader_module(wgpu::include_wgsl!("overlay.wgsl"));
    let constant = |set: bool| f64::from(u8::from(set));
    device.create_render_pipeline(&RenderPipelineDescriptor {
        label: Some("panels"),
        layout: None,
        vertex: VertexState {
            module: &shader,
            entry_point: Some("vs_panel"),
            compilation_options: Default::default(),
            buffers: &[Some(VertexBufferLayout {
                array_stride: size_of::<Vertex>() as u64,
                step_mode: VertexStepMode::Vertex,
                attributes: &vertex_attr_array![0 => Float32x2, 1 => Float32x2, 2 => Unorm8x4],
            })],
        },
        primitive: Default::default(),
        depth_stencil: None,
        multisample: Default::default(),
        fragment: Some(FragmentState {
            module: &shader,
            entry_point: Some("fs_panel"),
            compilation_options: PipelineCompilationOptions {
                constants: &[
                    ("encodes", constant(format.is_srgb())),
                    ("dithers", constant(dithers)),
                ],
                ..PipelineCompilationOptions::default()
            },
            targets: &[Some(ColorTargetState {
                format,
                blend: Some(BLENDED),
                write_mask: ColorWrites::ALL,
            })],
        }),
        multiview_mask: None,
        cache: None,
    })
}

/// Returns the pixels (left, top, width, height) of a rectangle, within a picture of this size.
fn clip(rect: Rect, scale: f32, size: [u32; 2]) -> [u32; 4] {
    let pixel = |at: f32, side: u32| ((at * scale).round() as u32).min(side);
    let [left, top] = [pixel(rect.min.x, size[0]), pixel(rect.min.y, size[1])];
    let [right, bottom] = [pixel(rect.max.x, size[0]), pixel(rect.max.y, size[1])];
    [
        left,
        top,
        right.saturating_sub(left),
        bottom.saturating_sub(top),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::pos2;

    #[test]
    fn clips_are_whole_pixels_within_the_picture() {
        let clip = |min, max, scale| clip(Rect::from_min_max(min, max), scale, [640, 480]);
        assert_eq!(clip(pos2(1.2, 2.0), pos2(10.4, 20.0), 1.5), [2, 3, 14, 27]);
        let everything = clip(pos2(-9.0, f32::NEG_INFINITY), pos2(1e9, f32::INFINITY), 1.0);
        assert_eq!(everything, [0, 0, 640, 480]);
        assert_eq!(
            clip(pos2(700.0, 5.0), pos2(800.0, 9.0), 1.0),
            [640, 5, 0, 4]
        );
        assert_eq!(clip(pos2(9.0, 9.0), pos2(3.0, 3.0), 1.0), [9, 9, 0, 0]);
    }
}
