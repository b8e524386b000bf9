//! A pipeline for each kind of primitive, all with the shader `scene.wgsl`.

use super::quality::Quality;
use super::scene_shader::{Parts, SceneShader};
use super::shadows::{ShadowMap, UNIFORM};
use super::vertices::{BODIES, BOXES, LINES, LIVE, MESH, meshes};
use std::cell::OnceCell;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutEntry,
    BindingResource, BindingType, BlendComponent, BlendFactor, BlendOperation, BlendState, Buffer,
    ColorTargetState, ColorWrites, CompareFunction, Device, Face, MultisampleState, PrimitiveState,
    PrimitiveTopology, RenderPipeline, SamplerBindingType, TextureFormat, TextureSampleType,
    TextureViewDimension, VertexBufferLayout,
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
    maker: Maker,
    live: OnceCell<[RenderPipeline; 2]>,
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

const ADDED: BlendComponent = BlendComponent {
    src_factor: BlendFactor::One,
    dst_factor: BlendFactor::One,
    operation: BlendOperation::Add,
};

impl Pipelines {
    /// Creates the pipelines for this colour format, quality and map of shadows, and the bind group
    /// of what they read.
    pub fn new(
        device: &Device,
        format: TextureFormat,
        quality: Quality,
        shadows: &ShadowMap,
        globals: &Buffer,
    ) -> (Self, BindGroup) {
        let (layout, bind_group) = bind(device, globals, shadows);
        let constant = |set: bool| f64::from(u8::from(set));
        let maker = Maker {
            format,
            samples: quality.samples,
            shader: SceneShader::new(
                device,
                ("scene", &layout),
                vec![
                    ("encoded", constant(!format.is_srgb())),
                    ("quick", constant(quality.buffered)),
                    ("shadows", constant(shadows.pixels.is_some())),
                ],
            ),
        };
        let meshes = meshes();
        let pipelines = Self {
            boxes: maker.make(Kind::solid("vs_box", &BODIES)),
            mesh: maker.make(Kind::mesh(&meshes)),
            coarse: maker.make(match quality.buffered {
                true => Kind::flat(&meshes),
                false => Kind::mesh(&meshes),
            }),
            ground: maker.make(Kind::solid("vs_ground", &MESH)),
            balls: maker.make(Kind::balls(&BODIES)),
            glow: maker.make(Kind::glow(&BODIES)),
            sky: maker.make(Kind::sky()),
            wire: maker.make(Kind::wire(&BOXES)),
            line: maker.make(Kind::line(&LINES)),
            maker,
            live: OnceCell::new(),
        };
        (pipelines, bind_group)
    }

    /// Returns the pipelines of balls that are on the device, and of their glow, compiled for the
    /// first of them.
    pub fn live(&self) -> &[RenderPipeline; 2] {
        self.live.get_or_init(|| {
            let balls = Kind {
                stages: ["vs_live_ball", "fs_ball"],
                ..Kind::balls(&LIVE)
            };
            let glow = Kind {
                stages: ["vs_live_glow", "fs_glow"],
                ..Kind::glow(&LIVE)
            };
            [balls, glow].map(|kind| self.maker.make(kind))
        })
    }
}

/// Binds what every pipeline reads: the uniform block, and the map of shadows.
fn bind(device: &Device, globals: &Buffer, shadows: &ShadowMap) -> (BindGroupLayout, BindGroup) {
    let entry = |binding, ty| BindGroupLayoutEntry {
        binding,
        ty,
        ..UNIFORM
    };
    let map = BindingType::Texture {
        sample_type: TextureSampleType::Depth,
        view_dimension: TextureViewDimension::D2,
        multisampled: false,
    };
    let sampler = BindingType::Sampler(SamplerBindingType::Comparison);
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("scene"),
        entries: &[UNIFORM, entry(1, map), entry(2, sampler)],
    });
    let entry = |binding, resource| BindGroupEntry { binding, resource };
    let bind_group = device.create_bind_group(&BindGroupDescriptor {
        label: Some("scene"),
        layout: &layout,
        entries: &[
            entry(0, globals.as_entire_binding()),
            entry(1, BindingResource::TextureView(&shadows.view)),
            entry(2, BindingResource::Sampler(&shadows.sampler)),
        ],
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

    /// Boxes whose faces have one colour each, without those away from the eye.
    const fn flat(buffers: &'a [VertexBufferLayout<'a>]) -> Self {
        Self {
            stages: ["vs_flat", "fs_flat"],
            ..Self::solid("", buffers)
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
#[derive(Debug)]
struct Maker {
    format: TextureFormat,
    samples: u32,
    shader: SceneShader,
}

impl Maker {
    fn make(&self, kind: Kind<'_>) -> RenderPipeline {
        let [vertex, fragment] = kind.stages;
        self.shader.pipeline(Parts {
            vertex,
            fragment: Some(fragment),
            buffers: kind.buffers,
            primitive: PrimitiveState {
                topology: kind.topology,
                cull_mode: kind.culled,
                ..PrimitiveState::default()
            },
            depth: kind.depth,
            multisample: MultisampleState {
                count: self.samples,
                alpha_to_coverage_enabled: kind.cover && self.samples > 1,
                ..MultisampleState::default()
            },
            target: Some(ColorTargetState {
                format: self.format,
                blend: kind.blend,
                write_mask: ColorWrites::ALL,
            }),
        })
    }
}
