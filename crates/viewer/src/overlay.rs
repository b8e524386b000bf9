//! Draws the panels of egui.

use super::render::{Gpu, background};
use egui::{ClippedPrimitive, FullOutput, TextureId};
use egui_wgpu::{Renderer, RendererOptions, ScreenDescriptor};
use wgpu::{
    CommandEncoder, LoadOp, Operations, RenderPassColorAttachment, RenderPassDescriptor, StoreOp,
    TextureFormat, TextureView,
};

/// Draws the panels on the device.
pub(super) struct Overlay {
    renderer: Renderer,
    format: TextureFormat,
    jobs: Vec<ClippedPrimitive>,
    screen: ScreenDescriptor,
    /// Textures to free after the current jobs.
    unused: Vec<TextureId>,
}

impl Overlay {
    pub fn new(gpu: &Gpu, format: TextureFormat) -> Self {
        let options = RendererOptions {
            dithering: !gpu.is_software(),
            ..RendererOptions::default()
        };
        Self {
            renderer: Renderer::new(&gpu.device, format, options),
            format,
            jobs: Vec::new(),
            screen: ScreenDescriptor {
                size_in_pixels: [1; 2],
                pixels_per_point: 1.0,
            },
            unused: Vec::new(),
        }
    }

    /// Uploads a pass, for pictures of this size.
    pub fn prepare(
        &mut self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        size: [u32; 2],
        context: &egui::Context,
        mut output: FullOutput,
    ) {
        let (device, queue) = (&gpu.device, &gpu.queue);
        for id in self.unused.drain(..) {
            self.renderer.free_texture(&id);
        }
        self.unused.extend(output.textures_delta.free.drain());
        for (id, deltas) in output.textures_delta.set.drain() {
            for delta in &deltas {
                self.renderer.update_texture(device, queue, id, delta);
            }
        }
        self.screen = ScreenDescriptor {
            size_in_pixels: size,
            pixels_per_point: output.pixels_per_point,
        };
        self.jobs = context.tessellate(output.shapes, output.pixels_per_point);
        // Only paint callbacks return command buffers, and there are none.
        self.renderer
            .update_buffers(device, queue, encoder, &self.jobs, &self.screen);
    }

    /// Draws the prepared panels over the picture, or over the background if `clear` is set.
    pub fn paint(&self, encoder: &mut CommandEncoder, view: &TextureView, clear: bool) {
        let load = if clear {
            LoadOp::Clear(background(self.format))
        } else {
            LoadOp::Load
        };
        let pass = encoder.begin_render_pass(&RenderPassDescriptor {
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
        let pass = &mut pass.forget_lifetime();
        self.renderer.render(pass, &self.jobs, &self.screen);
    }
}
