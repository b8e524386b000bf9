//! Boxes and pairs that never leave a GPU of any vendor: a shader moves bodies and
//! writes their boxes, the broad phase reads them in place, a second shader colours the bodies of
//! its pairs, and a third draws the boxes. Only the report comes to the host, and at the end the
//! picture, and the last frame to check it.
//!
//! `cargo run --release -p radsweep --features wgpu --example wgpu_resident [-- PICTURE.ppm]`.
//! Without a driver it prints a message and ends.

#[cfg(not(feature = "wgpu"))]
fn main() {
    println!("built without the feature `wgpu`, which this example needs");
}

#[cfg(feature = "wgpu")]
fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

#[cfg(feature = "wgpu")]
fn run() -> Result<(), Box<dyn std::error::Error>> {
    use bodies::{Bodies, N};
    use drawing::Drawing;
    use radsweep::wgpu_device::{Adapters, Device};
    use radsweep::{Aabb, Backend, BroadPhase, Config, Pair, WgpuFrame};

    // A program with a renderer passes its own device: `Device::from_parts(device, queue)`.
    let device = match Device::new(Adapters::Any) {
        Ok(device) => device,
        Err(error) => {
            println!("this example needs a graphics driver: {error}");
            return Ok(());
        }
    };
    println!("{N} bodies on {}", device.name());
    let bodies = Bodies::new(&device)?;
    let drawing = Drawing::new(&device, &bodies)?;
    let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    println!("frame    pairs  started    ended");
    for frame in 0..8 {
        bodies.step(&device)?;
        // It reads the boxes after all that was submitted before.
        let report = broad_phase.update_wgpu(WgpuFrame::boxes(&bodies.boxes, N as usize))?;
        println!(
            "{frame:5} {:8} {:8} {:8}",
            report.pairs, report.started, report.ended
        );
        let pairs = broad_phase.wgpu_pairs().ok_or("no pairs on the device")?;
        drawing.draw(&device, pairs)?;
    }
    let pixels = drawing.pixels(&device)?;
    let coloured = pixels.iter().filter(|pixel| pixel[0] > pixel[2]);
    println!("{} pixels show bodies of a pair", coloured.count());
    if let Some(path) = std::env::args().nth(1) {
        let saved = drawing.save(&pixels, path.as_ref());
        saved.map_err(|error| format!("cannot write {path}: {error}"))?;
    }

    // The same boxes on the CPU.
    let boxes: Vec<Aabb> = device
        .download(&bodies.boxes, 0..24 * u64::from(N))?
        .wait()?;
    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..Config::default()
    })?;
    on_cpu.update(&boxes)?;
    broad_phase.download()?;
    let marked: Vec<u32> = device
        .download(&drawing.marks, 0..4 * u64::from(N))?
        .wait()?;
    let is_paired = |body: u32| {
        let has = |pair: &Pair| pair.a == body || pair.b == body;
        u32::from(on_cpu.pairs().iter().any(has))
    };
    if broad_phase.pairs() != on_cpu.pairs() || !marked.into_iter().eq((0..N).map(is_paired)) {
        return Err("the CPU finds other pairs in the same boxes".into());
    }
    println!("the CPU finds the same pairs in the same boxes");
    Ok(())
}

#[cfg(feature = "wgpu")]
mod bodies {
    use radsweep::wgpu_device::wgpu::{Buffer, ComputePassDescriptor};
    use radsweep::wgpu_device::{BufferUsages, Device, Kernel, Result};

    /// The number of bodies, which are in a square of side 1.
    pub const N: u32 = 2000;

    const SHADER: &str = "
        @group(0) @binding(0) var<storage, read_write> bodies: array<vec4<f32>>;
        @group(0) @binding(1) var<storage, read_write> boxes: array<f32>;

        @compute @workgroup_size(64)
        fn step(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x >= arrayLength(&bodies) {
                return;
            }
            var body = bodies[id.x];
            let place = body.xy + body.zw;
            // Off the walls.
            let is_outside = abs(place - 0.5) > vec2<f32>(0.5);
            body = vec4<f32>(place, select(body.zw, -body.zw, is_outside));
            bodies[id.x] = body;
            let half = 0.004 + 0.002 * f32(id.x % 3u);
            for (var axis = 0u; axis < 3u; axis += 1u) {
                let centre = select(0.0, body[min(axis, 1u)], axis < 2u);
                boxes[6u * id.x + axis] = centre - half;
                boxes[6u * id.x + 3u + axis] = centre + half;
            }
        }
    ";

    pub struct Bodies {
        kernel: Kernel,
        /// The place and the velocity of each body.
        bodies: Buffer,
        pub boxes: Buffer,
    }

    impl Bodies {
        /// Creates bodies in all places that move in all directions; the same in every run.
        pub fn new(device: &Device) -> Result<Self> {
            let mix = |index: u32| {
                let mixed = index.wrapping_mul(0x9e37_79b1);
                (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) as f32 / u32::MAX as f32
            };
            let body = |i: u32| {
                let [x, y, to_x, to_y] = [0, 1, 2, 3].map(|k| mix(4 * i + k));
                [x, y, (to_x - 0.5) / 100.0, (to_y - 0.5) / 100.0]
            };
            let bodies: Vec<[f32; 4]> = (0..N).map(body).collect();
            // The example downloads the boxes at the end; the broad phase needs `STORAGE` only.
            let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
            Ok(Self {
                kernel: device.module("bodies", SHADER)?.kernel(device, "step")?,
                bodies: device.upload("bodies", &bodies, BufferUsages::STORAGE)?,
                boxes: device.buffer("boxes", 24 * u64::from(N), usage)?,
            })
        }

        /// Moves all bodies and writes their boxes.
        pub fn step(&self, device: &Device) -> Result<()> {
            let lists = [&self.bodies, &self.boxes].map(Buffer::as_entire_binding);
            let [bodies, boxes] = lists;
            let bound = self.kernel.bind(device, &[(0, bodies), (1, boxes)])?;
            let mut encoder = device.encoder("step")?;
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            self.kernel.launch(&mut pass, &bound, N.div_ceil(64));
            drop(pass);
            device.submit(encoder)?;
            Ok(())
        }
    }
}

#[cfg(feature = "wgpu")]
mod drawing {
    use crate::bodies::{Bodies, N};
    use radsweep::WgpuPairs;
    use radsweep::wgpu_device::wgpu::{
        BindGroup, BindGroupDescriptor, BindGroupEntry, Buffer, Color, ComputePassDescriptor,
        Extent3d, FragmentState, LoadOp, Operations, RenderPassColorAttachment,
        RenderPassDescriptor, RenderPipeline, RenderPipelineDescriptor, ShaderModuleDescriptor,
        ShaderSource, StoreOp, TexelCopyBufferInfo, TexelCopyBufferLayout, Texture,
        TextureDescriptor, TextureDimension, TextureFormat, TextureUsages, VertexState,
    };
    use radsweep::wgpu_device::{BufferUsages, Device, Kernel, Result};
    use std::path::Path;

    const SIDE: u32 = 512;
    const FORMAT: TextureFormat = TextureFormat::Rgba8Unorm;

    const MARK: &str = "
        @group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
        @group(0) @binding(1) var<storage, read_write> marks: array<u32>;
        @group(0) @binding(2) var<uniform> count: vec4<u32>;

        @compute @workgroup_size(64)
        fn mark(
            @builtin(local_invocation_index) lid: u32,
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {
            let index = (group.y * groups.x + group.x) * 64u + lid;
            if index < count.x {
                marks[pairs[index].x] = 1u;
                marks[pairs[index].y] = 1u;
            }
        }
    ";

    const DRAW: &str = "
        @group(0) @binding(0) var<storage, read> boxes: array<f32>;
        @group(0) @binding(1) var<storage, read> marks: array<u32>;

        struct Corner {
            @builtin(position) place: vec4<f32>,
            @location(0) colour: vec3<f32>,
        }

        // Two triangles a box, seen along z.
        @vertex
        fn corner(@builtin(vertex_index) vertex: u32, @builtin(instance_index) body: u32) -> Corner {
            let is_right = (0x32u >> vertex) & 1u;
            let is_upper = (0x2cu >> vertex) & 1u;
            let x = boxes[6u * body + 3u * is_right];
            let y = boxes[6u * body + 3u * is_upper + 1u];
            let colour = select(vec3<f32>(0.2, 0.4, 0.7), vec3<f32>(1.0, 0.4, 0.1), marks[body] == 1u);
            return Corner(vec4<f32>(2.0 * x - 1.0, 2.0 * y - 1.0, 0.0, 1.0), colour);
        }

        @fragment
        fn fill(at: Corner) -> @location(0) vec4<f32> {
            return vec4<f32>(at.colour, 1.0);
        }
    ";

    pub struct Drawing {
        kernel: Kernel,
        pipeline: RenderPipeline,
        lists: BindGroup,
        picture: Texture,
        /// For each body, 1 if it is in a pair.
        pub marks: Buffer,
    }

    impl Drawing {
        pub fn new(device: &Device, bodies: &Bodies) -> Result<Self> {
            let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
            let marks = device.buffer("marks", 4 * u64::from(N), usage)?;
            let pipeline = device.checked("create_render_pipeline", || pipeline(device))?;
            let lists = [&bodies.boxes, &marks].map(Buffer::as_entire_binding);
            let entry = |(binding, resource)| BindGroupEntry { binding, resource };
            let entries: Vec<_> = (0..).zip(lists).map(entry).collect();
            let lists = device.checked("create_bind_group", || {
                device.wgpu().create_bind_group(&BindGroupDescriptor {
                    label: Some("boxes"),
                    layout: &pipeline.get_bind_group_layout(0),
                    entries: &entries,
                })
            })?;
            let picture = device.checked("create_texture", || {
                device.wgpu().create_texture(&TextureDescriptor {
                    label: Some("picture"),
                    size: extent(),
                    mip_level_count: 1,
                    sample_count: 1,
                    dimension: TextureDimension::D2,
                    format: FORMAT,
                    usage: TextureUsages::RENDER_ATTACHMENT | TextureUsages::COPY_SRC,
                    view_formats: &[],
                })
            })?;
            Ok(Self {
                kernel: device.module("marks", MARK)?.kernel(device, "mark")?,
                pipeline,
                lists,
                picture,
                marks,
            })
        }

        /// Marks the bodies of the pairs, and draws all boxes.
        pub fn draw(&self, device: &Device, pairs: WgpuPairs) -> Result<()> {
            let mut encoder = device.encoder("draw")?;
            encoder.clear_buffer(&self.marks, 0, None);
            for (list, count) in pairs.buffers() {
                let count = count as u32;
                let uniform = device.upload("count", &[count, 0, 0, 0], BufferUsages::UNIFORM)?;
                let lists = [list, &self.marks, &uniform].map(Buffer::as_entire_binding);
                let bound: Vec<_> = (0..).zip(lists).collect();
                let bound = self.kernel.bind(device, &bound)?;
                let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
                self.kernel.launch(&mut pass, &bound, count.div_ceil(64));
            }
            let view = self.picture.create_view(&Default::default());
            let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
                color_attachments: &[Some(RenderPassColorAttachment {
                    view: &view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: Operations {
                        load: LoadOp::Clear(Color::BLACK),
                        store: StoreOp::Store,
                    },
                })],
                ..RenderPassDescriptor::default()
            });
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.lists, &[]);
            pass.draw(0..6, 0..N);
            drop(pass);
            device.submit(encoder)?;
            Ok(())
        }

        /// Downloads the picture.
        pub fn pixels(&self, device: &Device) -> Result<Vec<[u8; 4]>> {
            let bytes = 4 * u64::from(SIDE * SIDE);
            let usage = BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
            let buffer = device.buffer("pixels", bytes, usage)?;
            let mut encoder = device.encoder("picture")?;
            let layout = TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(4 * SIDE),
                rows_per_image: None,
            };
            let buffer_layout = TexelCopyBufferInfo {
                buffer: &buffer,
                layout,
            };
            encoder.copy_texture_to_buffer(self.picture.as_image_copy(), buffer_layout, extent());
            device.submit(encoder)?;
            device.download(&buffer, 0..bytes)?.wait()
        }

        /// Writes the picture as a portable pixmap.
        pub fn save(&self, pixels: &[[u8; 4]], path: &Path) -> std::io::Result<()> {
            let mut file = format!("P6\n{SIDE} {SIDE}\n255\n").into_bytes();
            file.extend(
                pixels
                    .iter()
                    .flat_map(|[red, green, blue, _]| [red, green, blue]),
            );
            std::fs::write(path, file)
        }
    }

    const fn extent() -> Extent3d {
        Extent3d {
            width: SIDE,
            height: SIDE,
            depth_or_array_layers: 1,
        }
    }

    fn pipeline(device: &Device) -> RenderPipeline {
        let module = device.wgpu().create_shader_module(ShaderModuleDescriptor {
            label: Some("boxes"),
            source: ShaderSource::Wgsl(DRAW.into()),
        });
        let descriptor = RenderPipelineDescriptor {
            label: Some("boxes"),
            layout: None,
            vertex: VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: Default::default(),
            depth_stencil: None,
            multisample: Default::default(),
            fragment: Some(FragmentState {
                module: &module,
                entry_point: Some("fill"),
                compilation_options: Default::default(),
                targets: &[Some(FORMAT.into())],
            }),
            multiview_mask: None,
            cache: None,
        };
        device.wgpu().create_render_pipeline(&descriptor)
    }
}
