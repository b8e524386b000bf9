//! Draws a frame of the simulation with wgpu: instanced bodies, ground, wireframes and lines.

mod buffered;
mod clock;
mod globals;
mod gpu;
mod memory;
mod pipelines;
mod quality;
mod rows;
mod scene_shader;
mod shadows;
mod target;
mod texture;
mod vertices;

use super::camera::Camera;
use super::lines::Line;
use super::live::Live;
use super::look::Look;
use super::mesh::{coarse, flat, landscape, parts};
use super::snapshot::{Extent, Snapshot};
use super::state::Viewer;
use buffered::Copier;
use bytemuck::Zeroable;
pub(super) use clock::Clock;
use globals::Globals;
pub(super) use gpu::Gpu;
use pipelines::Pipelines;
use quality::Chairs;
pub(super) use quality::Quality;
use radsweep::Aabb;
use radsweep_scenes::{Instance, Mesh, Shape, chair_mesh};
use rows::Rows;
pub(super) use rows::{buffer_for, write};
#[cfg(feature = "wgpu")]
pub(super) use shadows::sun_axes;
use shadows::{Casters, ShadowMap, Sunlight};
use std::time::{Duration, Instant};
pub(super) use target::Picture;
use target::Targets;
pub(super) use texture::{BACKGROUND, background, extent, linear_sampler, sampled, texture};
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    BindGroup, Buffer, BufferUsages, CommandEncoder, IndexFormat, LoadOp, Operations, RenderPass,
    RenderPassColorAttachment, RenderPassDepthStencilAttachment, RenderPassDescriptor,
    RenderPipeline, StoreOp, TextureFormat, TextureView,
};

/// A mesh in device memory.
#[derive(Debug)]
struct DeviceMesh {
    points: Buffer,
    normals: Buffer,
    indices: Buffer,
    count: u32,
}

/// The pipelines and buffers, and the last uploaded frame.
#[derive(Debug)]
pub(super) struct Renderer {
    gpu: Gpu,
    pipelines: Pipelines,
    globals: Buffer,
    bind_group: BindGroup,
    shadows: ShadowMap,
    casters: Casters,
    sunlight: Sunlight,
    quality: Quality,
    chair: DeviceMesh,
    /// Chairs as boxes: as they are drawn, and as they cast shadows.
    coarse_chairs: [DeviceMesh; 2],
    /// Boxes that are drawn, and that there are.
    boxes_of_a_chair: [u32; 2],
    chairs: Chairs,
    /// The landscape of the scene with this number; `None` where it has none.
    landscape: Option<(u64, DeviceMesh)>,
    /// Boxes, chairs with their whole mesh, spheres, chairs as boxes, all chairs to cast shadows.
    bodies: [Rows<Instance>; 5],
    marks: [Rows<u32>; 5],
    boxes: Rows<Aabb>,
    lines: Rows<Line>,
    /// The bodies, if they are on the device.
    live: Option<Live>,
    targets: Option<Targets>,
    format: TextureFormat,
    /// Serial number of the uploaded frame, and its data that every picture needs.
    uploaded: u64,
    extent: Option<Extent>,
    picking: bool,
    /// The hash of the uploaded bodies, if the quality needs it.
    content: u64,
    /// What the last picture showed, and since when.
    shown: Option<Content>,
    moved: Instant,
    /// What is in the scene's own texture, and its size.
    drawn: Option<(Content, [u32; 2])>,
    copier: Copier,
}

/// What a picture of the scene shows; two equal ones look the same.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Content {
    /// The hash of the frame's bodies.
    bodies: u64,
    camera: Camera,
    look: Look,
    /// Width and height of the area in the window.
    area: [f32; 2],
    spring: Option<Line>,
}

/// How long nothing must move before a picture of all pixels is drawn.
const STILL_AFTER: Duration = Duration::from_millis(300);
/// Vertices of the shapes without a mesh: three faces of a box, a square, the edges of a box.
const BOX_CORNERS: u32 = 18;
const SQUARE_CORNERS: u32 = 4;
const WIRE_CORNERS: u32 = 24;

impl Renderer {
    /// Compiles the shaders, which takes some tenths of a second on a slow driver.
    pub fn new(gpu: &Gpu, format: TextureFormat, quality: Quality) -> Self {
        if quality.buffered {
            memory::retain();
        }
        let device = &gpu.device;
        let globals = device.create_buffer_init(&BufferInitDescriptor {
            label: Some("globals"),
            contents: bytemuck::bytes_of(&Globals::zeroed()),
            usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
        });
        let shadows = ShadowMap::new(device, (!quality.buffered).then_some(quality.shadows));
        let (pipelines, bind_group) = Pipelines::new(device, format, quality, &shadows, &globals);
        let chair = chair_mesh();
        let boxes = parts(&chair);
        let casting = coarse(&boxes);
        let drawn = quality.buffered.then(|| flat(&boxes));
        let coarse_chairs = [drawn.as_ref().unwrap_or(&casting), &casting];
        Self {
            casters: Casters::new(device, &globals),
            shadows,
            sunlight: Sunlight::EVERYWHERE,
            quality,
            coarse_chairs: coarse_chairs.map(|mesh| DeviceMesh::new(device, mesh)),
            chair: DeviceMesh::new(device, &chair),
            boxes_of_a_chair: [0, boxes.len() as u32],
            chairs: Chairs::default(),
            copier: Copier::new(device, format),
            gpu: gpu.clone(),
            pipelines,
            globals,
            bind_group,
            landscape: None,
            bodies: [const { Rows::new() }; 5],
            marks: [const { Rows::new() }; 5],
            boxes: Rows::new(),
            lines: Rows::new(),
            live: None,
            targets: None,
            format,
            uploaded: 0,
            extent: None,
            picking: false,
            content: 0,
            shown: None,
            drawn: None,
            moved: Instant::now(),
        }
    }

    /// Turns shadows on or off, which compiles the shaders again.
    fn shade(&mut self, shadows: bool) {
        if self.shadows.pixels.is_some() == shadows {
            return;
        }
        let device = &self.gpu.device;
        self.shadows = ShadowMap::new(device, shadows.then_some(self.quality.shadows));
        (self.pipelines, self.bind_group) = Pipelines::new(
            device,
            self.format,
            self.quality,
            &self.shadows,
            &self.globals,
        );
        self.uploaded = 0;
    }

    /// Uploads a frame.
    fn upload(&mut self, snapshot: &Snapshot) {
        let (device, queue) = (&self.gpu.device, &self.gpu.queue);
        // Chairs depend on the camera too.
        for (index, shape) in [(0, Shape::Box), (2, Shape::Sphere)] {
            self.bodies[index].write(device, queue, snapshot.picture.of(shape));
            self.marks[index].write(device, queue, &snapshot.marks[index]);
        }
        if let Some(pixels) = self.shadows.pixels {
            self.bodies[4].write(device, queue, &snapshot.picture.chairs);
            self.marks[4].write(device, queue, &snapshot.marks[1]);
            self.sunlight = match &snapshot.live {
                Some(live) => Sunlight::between(live.sunlit(), pixels),
                None => Sunlight::around(snapshot.balls(), pixels),
            };
        }
        self.boxes.write(device, queue, &snapshot.boxes);
        self.live.clone_from(&snapshot.live);
        let known = self.landscape.as_ref().map(|landscape| landscape.0);
        match &snapshot.landscape {
            Some(land) if known != Some(snapshot.scene) => {
                let mesh = DeviceMesh::new(device, &landscape(land));
                self.landscape = Some((snapshot.scene, mesh));
            }
            Some(_) => {}
            None => self.landscape = None,
        }
        if self.quality.buffered {
            self.content = snapshot.content();
        }
        self.extent = snapshot.extent;
        self.picking = snapshot.picked.is_some();
    }

    /// Draws the scene into its area of a picture of this size in pixels. Returns whether there was
    /// a frame to draw.
    pub fn draw(
        &mut self,
        encoder: &mut CommandEncoder,
        view: &TextureView,
        size: [u32; 2],
        pixels_per_point: f32,
        viewer: &Viewer,
    ) -> bool {
        let Some(snapshot) = viewer.shown() else {
            return false;
        };
        self.shade(viewer.look.shadows && !viewer.look.space);
        if self.uploaded != snapshot.serial {
            self.uploaded = snapshot.serial;
            self.upload(snapshot);
        }
        let area = viewer.area(size, pixels_per_point);
        let [_, _, width, height] = area;
        if !self.quality.buffered {
            self.prepare(snapshot, viewer, [width, height], self.quality);
            self.cast(encoder);
            self.pass(encoder, view, size, area, viewer.look.space);
            return true;
        }
        let content = Content {
            bodies: self.content,
            camera: viewer.camera,
            look: viewer.look,
            area: [width, height],
            spring: viewer.spring(),
        };
        if self.shown != Some(content) {
            self.shown = Some(content);
            self.moved = Instant::now();
        }
        let quality = self.quality.while_moving(self.again().is_some());
        let pixels = quality.pixels([width, height]);
        let texture = self.copier.texture(&self.gpu.device, pixels);
        if self.drawn != Some((content, pixels)) {
            self.drawn = Some((content, pixels));
            self.prepare(snapshot, viewer, [width, height], quality);
            self.cast(encoder);
            let [wide, high] = pixels.map(|side| side as f32);
            let whole = [0.0, 0.0, wide, high];
            self.pass(encoder, &texture, pixels, whole, viewer.look.space);
        }
        self.copier.copy(encoder, view, area);
        true
    }

    /// Returns the delay after which a picture of more pixels is due, if the last one had fewer
    /// because something moved.
    pub fn again(&self) -> Option<Duration> {
        let left = STILL_AFTER.checked_sub(self.moved.elapsed());
        left.filter(|_| self.quality.buffered && self.shown.is_some())
    }

    /// Uploads what depends on the camera, for an area of this size in pixels.
    fn prepare(&mut self, snapshot: &Snapshot, viewer: &Viewer, area: [f32; 2], quality: Quality) {
        let (device, queue) = (&self.gpu.device, &self.gpu.queue);
        let globals = Globals::new(
            area,
            &viewer.camera,
            &viewer.look,
            self.extent.as_ref(),
            &self.sunlight,
            self.picking,
        );
        queue.write_buffer(&self.globals, 0, bytemuck::bytes_of(&globals));
        let mut lines = Vec::new();
        viewer.look.lines(snapshot, &mut lines);
        lines.extend(viewer.spring());
        self.lines.write(device, queue, &lines);
        self.chairs.split(snapshot, &viewer.camera, area, quality);
        for (index, list) in [(1, &self.chairs.whole), (3, &self.chairs.coarse)] {
            self.bodies[index].write(device, queue, &list.0);
            self.marks[index].write(device, queue, &list.1);
        }
        self.boxes_of_a_chair[0] = quality.boxes;
    }

    /// Draws the map of shadows, if there are any.
    fn cast(&self, encoder: &mut CommandEncoder) {
        if self.shadows.pixels.is_none() {
            return;
        }
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: Some("shadows"),
            depth_stencil_attachment: Some(RenderPassDepthStencilAttachment {
                view: &self.shadows.view,
                depth_ops: Some(Operations {
                    load: LoadOp::Clear(1.0),
                    store: StoreOp::Store,
                }),
                stencil_ops: None,
            }),
            ..RenderPassDescriptor::default()
        });
        let casters = &self.casters;
        pass.set_bind_group(0, &casters.bind_group, &[]);
        let shapes = [(4, &casters.mesh), (2, &casters.balls), (0, &casters.boxes)];
        for (shape, pipeline) in shapes {
            pass.set_pipeline(pipeline);
            self.draw_shape(&mut pass, shape);
        }
        self.draw_live(&mut pass, || casters.live());
    }

    /// Draws the scene into an area of a picture of this size in pixels.
    fn pass(
        &mut self,
        encoder: &mut CommandEncoder,
        view: &TextureView,
        size: [u32; 2],
        [left, top, width, height]: [f32; 4],
        space: bool,
    ) {
        let fits = self
            .targets
            .as_ref()
            .is_some_and(|targets| targets.size == size);
        if !fits {
            self.targets = None; // frees the old ones first
        }
        let (device, samples) = (&self.gpu.device, self.quality.samples);
        let targets = self
            .targets
            .get_or_insert_with(|| Targets::new(device, self.format, size, samples));
        let multisampled = targets.colour.as_ref();
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: Some("scene"),
            color_attachments: &[Some(RenderPassColorAttachment {
                view: multisampled.unwrap_or(view),
                depth_slice: None,
                resolve_target: multisampled.map(|_| view),
                ops: Operations {
                    load: LoadOp::Clear(background(self.format)),
                    store: match multisampled {
                        Some(_) => StoreOp::Discard,
                        None => StoreOp::Store,
                    },
                },
            })],
            depth_stencil_attachment: Some(RenderPassDepthStencilAttachment {
                view: &targets.depth,
                depth_ops: Some(Operations {
                    load: LoadOp::Clear(0.0),
                    store: StoreOp::Discard,
                }),
                stencil_ops: None,
            }),
            ..RenderPassDescriptor::default()
        });
        pass.set_viewport(left, top, width, height, 0.0, 1.0);
        pass.set_bind_group(0, &self.bind_group, &[]);
        self.draw_bodies(&mut pass);
        if let Some((_, mesh)) = &self.landscape {
            pass.set_pipeline(&self.pipelines.ground);
            mesh.bind(&mut pass, 0);
            pass.draw_indexed(0..mesh.count, 0, 0..1);
        }
        // First the sky behind the opaque bodies, then transparent ones.
        pass.set_pipeline(&self.pipelines.sky);
        pass.draw(0..3, 0..1);
        if space {
            pass.set_pipeline(&self.pipelines.glow);
            self.draw_shape(&mut pass, 2);
            self.draw_live(&mut pass, || &self.pipelines.live()[1]);
        }
        let live = self.live.as_ref();
        pass.set_pipeline(&self.pipelines.wire);
        for (rows, count) in self.boxes.iter().chain(live.and_then(Live::boxes)) {
            pass.set_vertex_buffer(0, rows.slice(..));
            pass.draw(0..WIRE_CORNERS, 0..count);
        }
        pass.set_pipeline(&self.pipelines.line);
        for (rows, count) in self.lines.iter().chain(live.and_then(Live::lines)) {
            pass.set_vertex_buffer(0, rows.slice(..));
            pass.draw(0..SQUARE_CORNERS, 0..count);
        }
    }

    fn draw_bodies(&self, pass: &mut RenderPass<'_>) {
        let pipelines = &self.pipelines;
        let (mesh, coarse) = (&pipelines.mesh, &pipelines.coarse);
        // The floor is a box: what stands on it comes first, so that no pixel is drawn twice.
        let boxes = (0, &pipelines.boxes);
        self.draw_live(pass, || &pipelines.live()[0]);
        for (shape, pipeline) in [(1, mesh), (3, coarse), (2, &pipelines.balls), boxes] {
            pass.set_pipeline(pipeline);
            self.draw_shape(pass, shape);
        }
    }

    /// Draws the balls that are on the device, if there are any.
    fn draw_live<'a>(
        &self,
        pass: &mut RenderPass<'_>,
        pipeline: impl FnOnce() -> &'a RenderPipeline,
    ) {
        let Some((rows, count)) = self.live.as_ref().map(Live::rows) else {
            return;
        };
        pass.set_pipeline(pipeline());
        for (slot, rows) in (0..).zip(rows) {
            pass.set_vertex_buffer(slot, rows.slice(..));
        }
        pass.draw(0..SQUARE_CORNERS, 0..count);
    }

    /// Draws the bodies of a shape, an index into [`Snapshot::SHAPES`], or after these chairs as
    /// boxes.
    fn draw_shape(&self, pass: &mut RenderPass<'_>, shape: usize) {
        let rows = self.bodies[shape].iter().zip(self.marks[shape].iter());
        for ((bodies, count), (marks, _)) in rows {
            pass.set_vertex_buffer(0, bodies.slice(..));
            pass.set_vertex_buffer(1, marks.slice(..));
            match Snapshot::SHAPES.get(shape) {
                Some(Shape::Box) => pass.draw(0..BOX_CORNERS, 0..count),
                Some(Shape::Chair) => {
                    self.chair.bind(pass, 2);
                    pass.draw_indexed(0..self.chair.count, 0, 0..count);
                }
                Some(Shape::Sphere) => pass.draw(0..SQUARE_CORNERS, 0..count),
                None => {
                    let chair = &self.coarse_chairs[shape - Snapshot::SHAPES.len()];
                    chair.bind(pass, 2);
                    let [drawn, boxes] = self.boxes_of_a_chair;
                    let indices = chair.count / boxes * drawn.min(boxes);
                    pass.draw_indexed(0..indices, 0, 0..count);
                }
            }
        }
    }
}

impl DeviceMesh {
    fn new(device: &wgpu::Device, mesh: &Mesh) -> Self {
        let buffer = |contents, usage| {
            device.create_buffer_init(&BufferInitDescriptor {
                label: None,
                contents,
                usage,
            })
        };
        Self {
            points: buffer(bytemuck::cast_slice(&mesh.positions), BufferUsages::VERTEX),
            normals: buffer(bytemuck::cast_slice(&mesh.normals), BufferUsages::VERTEX),
            indices: buffer(bytemuck::cast_slice(&mesh.indices), BufferUsages::INDEX),
            count: mesh.indices.len() as u32,
        }
    }

    /// Binds positions and normals from this slot on.
    fn bind(&self, pass: &mut RenderPass<'_>, slot: u32) {
        pass.set_vertex_buffer(slot, self.points.slice(..));
        pass.set_vertex_buffer(slot + 1, self.normals.slice(..));
        pass.set_index_buffer(self.indices.slice(..), IndexFormat::Uint32);
    }
}
