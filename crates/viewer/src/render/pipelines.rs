//! A pipeline for each kind of primitive, all with the shader `scene.wgsl`.

use super::quality::Quality;
use super::target::DEPTH;
use crate::lines::Line;
use radsweep::Aabb;
use radsweep_scenes::Instance;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BlendComponent, BlendFactor,
    BlendOperation, BlendState, Buffer, ColorTargetState, ColorWrites, CompareFunction,
    DepthStencilState, Device, Face, FragmentState, MultisampleState, PipelineCompilationOptions,
    PipelineLayout, PrimitiveState, PrimitiveTopology, RenderPipeline, RenderPipelineDescriptor,
    ShaderModule, ShaderStages, TextureFormat, VertexAttribute, VertexBufferLayout, VertexState,
    VertexStepMode, vertex_attr_array,
};

#[derive(Debug)]
pub(super) struct Pipelines {
    pub boxes: RenderPipeline,
    pub mesh: RenderPipeline,
    /// Coarse meshes.
    pub coarse: RenderPipeline,
    pub balls: RenderPipeline,
    pub ground: RenderPipeline,
    pub glow: RenderPipeline,
    pub sky: RenderPipeline,
    pub wire: RenderPipeline,
    pub line: RenderPipeline,
}

/// The properties in which pipelines differ.
struct Kind<'a> {
    stages: [&'a str; 2],
    buffers: &'a [VertexBufferLayout<'a>],
    topology: PrimitiveTopology,
    /// How depth is compared, and whether it is written.
    depth: (CompareFunction, bool),
    blend: Option<BlendState>,
    cover: bool,
    /// The side of the triangles that is not drawn.
    culled: Option<Face>,
}

const INSTANCE: [VertexAttribute; 6] = vertex_attr_array![
    0 => Float32x3, 1 => Uint32, 2 => Float32x4, 3 => Float32x3, 4 => Float32, 5 => Uint32
];
const MARK: [VertexAttribute; 1] = vertex_attr_array![6 => Uint32];
const POINT: [VertexAttribute; 1] = vertex_attr_array![7 => Float32x3];
const NORMAL: [VertexAttribute; 1] = vertex_attr_array![8 => Float32x3];
const BOX: [VertexAttribute; 2] = vertex_attr_array![0 => Float32x3, 1 => Float32x3];
const LINE: [VertexAttribute; 4] =
    vertex_attr_array![0 => Float32x3, 1 => Float32, 2 => Float32x3, 3 => Float32x4];

const fn rows<T>(
    attributes: &[VertexAttribute],
    step_mode: VertexStepMode,
) -> VertexBufferLayout<'_> {
    VertexBufferLayout {
        array_stride: size_of::<T>() as u64,
        step_mode,
        attributes,
    }
}

const ADDED: BlendComponent = BlendComponent {
    src_factor: BlendFactor::One,
    dst_factor: BlendFactor::One,
    operation: BlendOperation::Add,
};

impl Pipelines {
    /// Creates the pipelines for this colour format and quality, and the bind group of the uniform
    /// block.
    pub fn new(
        device: &Device,
        format: TextureFormat,
        quality: Quality,
        globals: &Buffer,
    ) -> (Self, BindGroup) {
        let (layout, bind_group) = bind_globals(device, globals);
        let maker = Maker {
            device,
            format,
            samples: quality.samples,
            constants: [
                ("encoded", f64::from(u8::from(!format.is_srgb()))),
                ("quick", f64::from(u8::from(quality.buffered))),
            ],
            shader: device.create_shader_module(wgpu::include_wgsl!("scene.wgsl")),
            layout: device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some("scene"),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            }),
        };
        let instances = rows::<Instance>(&INSTANCE, VertexStepMode::Instance);
        let marks = rows::<u32>(&MARK, VertexStepMode::Instance);
        let points = rows::<[f32; 3]>(&POINT, VertexStepMode::Vertex);
        let normals = rows::<[f32; 3]>(&NORMAL, VertexStepMode::Vertex);
        let boxes = [rows::<Aabb>(&BOX, VertexStepMode::Instance)];
        let lines = [rows::<Line>(&LINE, VertexStepMode::Instance)];
        let bodies = [instances.clone(), marks.clone()];
        let meshes = [instances, marks, points.clone(), normals.clone()];
        let pipelines = Self {
            boxes: maker.make(Kind::solid("vs_box", &bodies)),
            mesh: maker.make(Kind::mesh(&meshes)),
            coarse: maker.make(match quality.buffered {
                true => Kind::flat(&meshes),
                false => Kind::mesh(&meshes),
            }),
            ground: maker.make(Kind::solid("vs_ground", &[points, normals])),
            balls: maker.make(Kind::balls(&bodies)),
            glow: maker.make(Kind::glow(&bodies)),
            sky: maker.make(Kind::sky()),
            wire: maker.make(Kind::wire(&boxes)),
            line: maker.make(Kind::line(&lines)),
        };
        (pipelines, bind_group)
    }
}

/// Binds the uniform block, which every pipeline reads.
fn bind_globals(device: &Device, globals: &Buffer) -> (BindGroupLayout, BindGroup) {
    let entry = wgpu::BindGroupLayoutEntry {
        binding: 0,
        visibility: ShaderStages::VERTEX_FRAGMENT,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Uniform,
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("globals"),
        entries: &[entry],
    });
    let bind_group = device.create_bind_group(&BindGroupDescriptor {
        label: Some("globals"),
        layout: &layout,
        entries: &[BindGroupEntry {
            binding: 0,
            resource: globals.as_entire_binding(),
        }],
    });
    (layout, bind_group)
}

impl<'a> Kind<'a> {
    /// Opaque surfaces.
    const fn solid(vertex: &'a str, buffers: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: [vertex, "fs_surface"],
            buffers,
            topology: PrimitiveTopology::TriangleList,
            depth: (CompareFunction::Greater, true),
            blend: None,
            cover: false,
            culled: None,
        }
    }

    /// Meshes, of which only the triangles towards the eye are drawn.
    const fn mesh(buffers: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            culled: Some(Face::Back),
            ..Self::solid("vs_mesh", buffers)
        }
    }

    /// Meshes whose faces have one colour each.
    const fn flat(buffers: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: ["vs_flat", "fs_flat"],
            ..Self::mesh(buffers)
        }
    }

    /// Balls, each drawn in a square that faces the eye.
    fn balls(bodies: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: ["vs_ball", "fs_ball"],
            topology: PrimitiveTopology::TriangleStrip,
            cover: true,
            ..Self::solid("", bodies)
        }
    }

    /// Glow, which is added to the picture.
    fn glow(bodies: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: ["vs_glow", "fs_glow"],
            topology: PrimitiveTopology::TriangleStrip,
            depth: (CompareFunction::GreaterEqual, false),
            blend: Some(BlendState {
                color: ADDED,
                alpha: ADDED,
            }),
            ..Self::solid("", bodies)
        }
    }

    /// The sky behind everything.
    fn sky() -> Self {
        Self {
            stages: ["vs_sky", "fs_sky"],
            depth: (CompareFunction::GreaterEqual, false),
            ..Self::solid("", &[])
        }
    }

    /// Edges of boxes.
    fn wire(boxes: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: ["vs_wire", "fs_ink"],
            topology: PrimitiveTopology::LineList,
            depth: (CompareFunction::GreaterEqual, false),
            blend: Some(BlendState::ALPHA_BLENDING),
            ..Self::solid("", boxes)
        }
    }

    /// Lines in front of everything.
    fn line(lines: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: ["vs_line", "fs_ink"],
            topology: PrimitiveTopology::TriangleStrip,
            depth: (CompareFunction::Always, false),
            blend: Some(BlendState::ALPHA_BLENDING),
            ..Self::solid("", lines)
        }
    }
}

/// The properties that all pipelines share.
struct Maker<'a> {
    device: &'a Device,
    format: TextureFormat,
    samples: u32,
    /// The constants of the shader.
    constants: [(&'static str, f64); 2],
    shader: ShaderModule,
    layout: PipelineLayout,
}

impl Maker<'_> {
    fn make(&self, kind: Kind<'_>) -> RenderPipeline {
        let [vertex, fragment] = kind.stages;
        let options = PipelineCompilationOptions {
            constants: &self.constants,
            ..PipelineCompilationOptions::default()
        };
        let buffers: Vec<_> = kind.buffers.iter().cloned().map(Some).collect();
        self.device
            .create_render_pipeline(&RenderPipelineDescriptor {
                label: Some(vertex),
                layout: Some(&self.layout),
                vertex: VertexState {
                    module: &self.shader,
                    entry_point: Some(vertex),
                    compilation_options: options.clone(),
                    buffers: &buffers,
                },
                primitive: PrimitiveState {
                    topology: kind.topology,
                    cull_mode: kind.culled,
                    ..PrimitiveState::default()
                },
                depth_stencil: Some(DepthStencilState {
                    format: DEPTH,
                    depth_write_enabled: Some(kind.depth.1),
                    depth_compare: Some(kind.depth.0),
                    stencil: Default::default(),
                    bias: Default::default(),
                }),
                multisample: MultisampleState {
                    count: self.samples,
                    alpha_to_coverage_enabled: kind.cover && self.samples > 1,
                    ..MultisampleState::default()
                },
                fragment: Some(FragmentState {
                    module: &self.shader,
                    entry_point: Some(fragment),
                    compilation_options: options,
                    targets: &[Some(ColorTargetState {
                        format: self.format,
                        blend: kind.blend,
                        write_mask: ColorWrites::ALL,
                    })],
                }),
                multiview_mask: None,
                cache: None,
            })
    }
}
