//! A scene in a texture of its own, which is copied into its area of each picture. So panels can
//! change without drawing the scene again, and the scene can have fewer pixels than its area.

use super::texture::{background, copied, linear_sampler, sampled};
use wgpu::{
    BindGroup, BindGroupLayout, CommandEncoder, Device, FragmentState, LoadOp, Operations,
    RenderPassColorAttachment, RenderPassDescriptor, RenderPipeline, RenderPipelineDescriptor,
    Sampler, StoreOp, TextureFormat, TextureView, VertexState,
};

/// The pipeline that copies, and the last texture.
#[derive(Debug)]
pub(super) struct Copier {
    pipeline: RenderPipeline,
    layout: BindGroupLayout,
    sampler: Sampler,
    format: TextureFormat,
    texture: Option<SceneTexture>,
}

/// The texture of a scene.
#[derive(Debug)]
struct SceneTexture {
    size: [u32; 2],
    view: TextureView,
    bind_group: BindGroup,
}

impl Copier {
    pub fn new(device: &Device, format: TextureFormat) -> Self {
        let shader = device.create_shader_module(wgpu::include_wgsl!("copy.wgsl"));
        let pipeline = device.create_render_pipeline(&RenderPipelineDescriptor {
            label: Some("copy"),
            layout: None,
            vertex: VertexState {
                module: &shader,
                entry_point: Some("vs_copy"),
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: Default::default(),
            depth_stencil: None,
            multisample: Default::default(),
            fragment: Some(FragmentState {
                module: &shader,
                entry_point: Some("fs_copy"),
                compilation_options: Default::default(),
                targets: &[Some(format.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        Self {
            layout: pipeline.get_bind_group_layout(0),
            pipeline,
            sampler: linear_sampler(device),
            format,
            texture: None,
        }
    }

    /// Returns the texture of this size, empty if the last one had another.
    pub fn texture(&mut self, device: &Device, size: [u32; 2]) -> TextureView {
        if self.texture.as_ref().is_some_and(|old| old.size != size) {
            self.texture = None; // frees the old one first
        }
        let texture = self.texture.get_or_insert_with(|| {
            let view = copied(device, self.format, size);
            let bind_group = sampled(device, &self.layout, &view, &self.sampler);
            SceneTexture {
                size,
                view,
                bind_group,
            }
        });
        texture.view.clone()
    }

    /// Copies the texture into this area of a picture, and the background elsewhere.
    pub fn copy(&self, encoder: &mut CommandEncoder, view: &TextureView, area: [f32; 4]) {
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: Some("copy"),
            color_attachments: &[Some(RenderPassColorAttachment {
                view,
                depth_slice: None,
                resolve_target: None,
                ops: Operations {
                    load: LoadOp::Clear(background(self.format)),
                    store: StoreOp::Store,
                },
            })],
            ..RenderPassDescriptor::default()
        });
        if let Some(texture) = &self.texture {
            let [left, top, width, height] = area;
            pass.set_viewport(left, top, width, height, 0.0, 1.0);
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &texture.bind_group, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}
