//! Draws a frame of the simulation with wgpu: instanced bodies, ground, wireframes and lines.

mod clock;
mod gpu;
mod pipelines;
mod rows;
mod target;

use super::camera::Camera;
use super::look::{Colour, Look};
use super::mesh::landscape;
use super::snapshot::{Extent, Snapshot};
use super::state::Viewer;
use bytemuck::{Pod, Zeroable};
pub(super) use clock::Clock;
use glam::{Mat4, Vec3};
pub(super) use gpu::Gpu;
use pipelines::Pipelines;
use radsweep::Aabb;
use radsweep_scenes::{Instance, Mesh, Shape, chair_mesh};
use rows::Rows;
pub(super) use target::Picture;
use target::Targets;
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    BindGroup, Buffer, BufferUsages, Color, CommandEncoder, IndexFormat, LoadOp, Operations,
    RenderPass, RenderPassColorAttachment, RenderPassDepthStencilAttachment, RenderPassDescriptor,
    StoreOp, TextureFormat, TextureView,
};

/// A line that is drawn in front of everything, laid out for a vertex buffer.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct Line {
    pub from: Vec3,
    /// Width in pixels.
    pub width: f32,
    pub to: Vec3,
    /// Linear red, green, blue and opacity.
    pub colour: [f32; 4],
}

/// The uniform block of `scene.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Globals {
    view_projection: Mat4,
    eye: [f32; 4],
    right: [f32; 4],
    up: [f32; 4],
    forward: [f32; 4],
    sun: [f32; 4],
    sun_light: [f32; 4],
    sky_top: [f32; 4],
    horizon: [f32; 4],
    ground: [f32; 4],
    scales: [f32; 4],
    modes: [u32; 4],
}

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
    chair: DeviceMesh,
    /// The landscape of the scene with this number; `None` where it has none.
    landscape: Option<(u64, DeviceMesh)>,
    bodies: [Rows<Instance>; 3],
    marks: [Rows<u32>; 3],
    boxes: Rows<Aabb>,
    lines: Rows<Line>,
    targets: Option<Targets>,
    format: TextureFormat,
    /// Serial number of the uploaded frame, and its data that every picture needs.
    uploaded: u64,
    extent: Option<Extent>,
    picking: bool,
}

/// Vertices of the shapes without a mesh: three faces of a box, a square, the edges of a box.
const BOX_CORNERS: u32 = 18;
const SQUARE_CORNERS: u32 = 4;
const WIRE_CORNERS: u32 = 24;

impl Renderer {
    /// Compiles the shaders, which takes some tenths of a second on a slow driver.
    pub fn new(gpu: &Gpu, format: TextureFormat) -> Self {
        let device = &gpu.device;
        let globals = device.create_buffer_init(&BufferInitDescriptor {
            label: Some("globals"),
            contents: bytemuck::bytes_of(&Globals::zeroed()),
            usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
        });
        let (pipelines, bind_group) = Pipelines::new(device, format, &globals);
        Self {
            chair: DeviceMesh::new(device, &chair_mesh()),
            gpu: gpu.clone(),
            pipelines,
            globals,
            bind_group,
            landscape: None,
            bodies: [const { Rows::new() }; 3],
            marks: [const { Rows::new() }; 3],
            boxes: Rows::new(),
            lines: Rows::new(),
            targets: None,
            format,
            uploaded: 0,
            extent: None,
            picking: false,
        }
    }

    /// Uploads a frame.
    fn upload(&mut self, snapshot: &Snapshot) {
        let (device, queue) = (&self.gpu.device, &self.gpu.queue);
        for (index, shape) in Snapshot::SHAPES.into_iter().enumerate() {
            self.bodies[index].write(device, queue, snapshot.picture.of(shape));
            self.marks[index].write(device, queue, &snapshot.marks[index]);
        }
        self.boxes.write(device, queue, &snapshot.boxes);
        let known = self.landscape.as_ref().map(|landscape| landscape.0);
        match &snapshot.landscape {
            Some(land) if known != Some(snapshot.scene) => {
                let mesh = DeviceMesh::new(device, &landscape(land));
                self.landscape = Some((snapshot.scene, mesh));
            }
            Some(_) => {}
            None => self.landscape = None,
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
        let Some(snapshot) = &viewer.snapshot else {
            return false;
        };
        if self.uploaded != snapshot.serial {
            self.uploaded = snapshot.serial;
            self.upload(snapshot);
        }
        let [left, top, width, height] = viewer.area(size, pixels_per_point);
        let globals = self.globals_of([width, height], &viewer.camera, &viewer.look);
        let (device, queue) = (&self.gpu.device, &self.gpu.queue);
        queue.write_buffer(&self.globals, 0, bytemuck::bytes_of(&globals));
        let mut lines = Vec::new();
        viewer.look.lines(snapshot, &mut lines);
        self.lines.write(device, queue, &lines);
        let fits = self
            .targets
            .as_ref()
            .is_some_and(|targets| targets.size == size);
        if !fits {
            self.targets = None; // frees the old ones first
        }
        let targets = self
            .targets
            .get_or_insert_with(|| Targets::new(device, self.format, size));
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: Some("scene"),
            color_attachments: &[Some(RenderPassColorAttachment {
                view: &targets.colour,
                depth_slice: None,
                resolve_target: Some(view),
                ops: Operations {
                    load: LoadOp::Clear(Color::BLACK),
                    store: StoreOp::Discard,
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
        if viewer.look.space {
            pass.set_pipeline(&self.pipelines.glow);
            self.draw_shape(&mut pass, 2);
        }
        pass.set_pipeline(&self.pipelines.wire);
        for (rows, count) in self.boxes.iter() {
            pass.set_vertex_buffer(0, rows.slice(..));
            pass.draw(0..WIRE_CORNERS, 0..count);
        }
        pass.set_pipeline(&self.pipelines.line);
        for (rows, count) in self.lines.iter() {
            pass.set_vertex_buffer(0, rows.slice(..));
            pass.draw(0..SQUARE_CORNERS, 0..count);
        }
        true
    }

    fn draw_bodies(&self, pass: &mut RenderPass<'_>) {
        let pipelines = &self.pipelines;
        let drawn_with = [&pipelines.boxes, &pipelines.mesh, &pipelines.balls];
        for (shape, pipeline) in drawn_with.into_iter().enumerate() {
            pass.set_pipeline(pipeline);
            self.draw_shape(pass, shape);
        }
    }

    /// Draws the bodies of a shape, an index into [`Snapshot::SHAPES`].
    fn draw_shape(&self, pass: &mut RenderPass<'_>, shape: usize) {
        let rows = self.bodies[shape].iter().zip(self.marks[shape].iter());
        for ((bodies, count), (marks, _)) in rows {
            pass.set_vertex_buffer(0, bodies.slice(..));
            pass.set_vertex_buffer(1, marks.slice(..));
            match Snapshot::SHAPES[shape] {
                Shape::Box => pass.draw(0..BOX_CORNERS, 0..count),
                Shape::Chair => {
                    self.chair.bind(pass, 2);
                    pass.draw_indexed(0..self.chair.count, 0, 0..count);
                }
                Shape::Sphere => pass.draw(0..SQUARE_CORNERS, 0..count),
            }
        }
    }

    fn globals_of(&self, [width, height]: [f32; 2], camera: &Camera, look: &Look) -> Globals {
        let aspect = width / height;
        let slopes = Camera::slopes(aspect);
        let four = |v: Vec3, w: f32| v.extend(w).to_array();
        let (radius, speed, overlaps) = self.extent.map_or((1.0, 1.0, 1.0), |extent| {
            (extent.radius, extent.speed, extent.overlaps)
        });
        // Bodies fade at a distance of some diameters of the scene.
        let haze = if look.space {
            0.0
        } else {
            0.11 / (camera.distance + radius).max(f32::MIN_POSITIVE)
        };
        let grid = 10.0_f32.powf((camera.distance / 12.0).log10().floor());
        let light = if look.space {
            [
                [0.85, 0.85, 0.9],
                [0.0009, 0.0012, 0.003],
                [0.0022, 0.0024, 0.0055],
                [0.05, 0.05, 0.06],
            ]
        } else {
            [
                [1.12, 1.03, 0.88],
                [0.17, 0.32, 0.58],
                [0.62, 0.69, 0.75],
                [0.33, 0.325, 0.31],
            ]
        };
        let [sun_light, sky_top, horizon, ground] = light.map(|[r, g, b]| [r, g, b, 0.0]);
        let colour = match look.colour {
            Colour::Body => 0,
            Colour::Overlaps => 1,
            Colour::Asleep => 2,
            Colour::Speed => 3,
        };
        Globals {
            view_projection: camera.view_projection(aspect),
            eye: four(camera.eye(), 0.0),
            right: four(camera.right() * slopes.x, width),
            up: four(camera.up() * slopes.y, height),
            forward: four(camera.forward(), 0.0),
            sun: four(Vec3::new(0.45, 0.8, 0.38).normalize(), 0.0),
            sun_light,
            sky_top,
            horizon,
            ground,
            scales: [haze, grid, speed, overlaps],
            modes: [
                colour,
                self.picking.into(),
                (!self.format.is_srgb()).into(),
                look.space.into(),
            ],
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
