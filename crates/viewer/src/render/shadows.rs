//! Shadows: the bodies are drawn from the sun into a map of depths, which surfaces look up.

use super::scene_shader::{Parts, SceneShader};
use super::target::DEPTH;
use super::texture::texture;
use super::vertices::{BODIES, LIVE, meshes};
use glam::{Mat4, Quat, Vec3};
use std::cell::OnceCell;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingType, Buffer, BufferBindingType, CompareFunction, Device, Face,
    FilterMode, FrontFace, MultisampleState, PolygonMode, PrimitiveState, PrimitiveTopology,
    RenderPipeline, Sampler, SamplerDescriptor, ShaderStages, TextureUsages, TextureView,
    VertexBufferLayout,
};

/// The uniform block, which every pipeline reads.
pub(super) const UNIFORM: BindGroupLayoutEntry = BindGroupLayoutEntry {
    binding: 0,
    visibility: ShaderStages::VERTEX_FRAGMENT,
    ty: BindingType::Buffer {
        ty: BufferBindingType::Uniform,
        has_dynamic_offset: false,
        min_binding_size: None,
    },
    count: None,
};

/// The direction to the sun: from the right of the first view, so that boxes have three tones and
/// their shadows are seen.
pub(super) const SUN: Vec3 = Vec3::new(0.57, 0.78, 0.26);

/// The map, and how it is read.
#[derive(Debug)]
pub(super) struct ShadowMap {
    /// Its width and height; `None` without shadows, where nothing reads it.
    pub pixels: Option<u32>,
    pub view: TextureView,
    pub sampler: Sampler,
}

impl ShadowMap {
    pub fn new(device: &Device, pixels: Option<u32>) -> Self {
        let usage = TextureUsages::RENDER_ATTACHMENT | TextureUsages::TEXTURE_BINDING;
        let texture = texture(device, [pixels.unwrap_or(1); 2], 1, DEPTH, usage);
        Self {
            pixels,
            view: texture.create_view(&Default::default()),
            sampler: device.create_sampler(&SamplerDescriptor {
                label: Some("shadows"),
                mag_filter: FilterMode::Linear,
                min_filter: FilterMode::Linear,
                compare: Some(CompareFunction::LessEqual),
                ..SamplerDescriptor::default()
            }),
        }
    }
}

/// The pipelines that draw the map.
#[derive(Debug)]
pub(super) struct Casters {
    pub boxes: RenderPipeline,
    pub mesh: RenderPipeline,
    pub balls: RenderPipeline,
    pub bind_group: BindGroup,
    shader: SceneShader,
    live: OnceCell<RenderPipeline>,
}

impl Casters {
    pub fn new(device: &Device, globals: &Buffer) -> Self {
        let layout = device.create_bind_group_layout(&BindGroupLayoutDescriptor {
            label: Some("shadows"),
            entries: &[UNIFORM],
        });
        let shader = SceneShader::new(device, ("shadows", &layout), Vec::new());
        // The sides away from the sun: so what the sun shines on does not shade itself.
        let away = PrimitiveState {
            cull_mode: Some(Face::Front),
            ..PrimitiveState::default()
        };
        let (boxes, balls) = ("vs_box_shadow", "vs_ball_shadow");
        Self {
            boxes: caster(&shader, boxes, None, &BODIES, PrimitiveState::default()),
            mesh: caster(&shader, "vs_mesh_shadow", None, &meshes(), away),
            balls: caster(&shader, balls, Some("fs_ball_shadow"), &BODIES, SQUARES),
            bind_group: device.create_bind_group(&BindGroupDescriptor {
                label: Some("shadows"),
                layout: &layout,
                entries: &[BindGroupEntry {
                    binding: 0,
                    resource: globals.as_entire_binding(),
                }],
            }),
            shader,
            live: OnceCell::new(),
        }
    }

    /// Returns the pipeline of balls that are on the device, compiled for the first of them.
    pub fn live(&self) -> &RenderPipeline {
        let (vertex, fragment) = ("vs_live_ball_shadow", Some("fs_ball_shadow"));
        self.live
            .get_or_init(|| caster(&self.shader, vertex, fragment, &LIVE, SQUARES))
    }
}

/// Squares of two triangles.
const SQUARES: PrimitiveState = PrimitiveState {
    topology: PrimitiveTopology::TriangleStrip,
    strip_index_format: None,
    front_face: FrontFace::Ccw,
    cull_mode: None,
    unclipped_depth: false,
    polygon_mode: PolygonMode::Fill,
    conservative: false,
};

/// Makes a pipeline that draws depths alone.
fn caster(
    shader: &SceneShader,
    vertex: &str,
    fragment: Option<&str>,
    buffers: &[VertexBufferLayout<'_>],
    primitive: PrimitiveState,
) -> RenderPipeline {
    shader.pipeline(Parts {
        vertex,
        fragment,
        buffers,
        primitive,
        depth: (CompareFunction::Less, true),
        multisample: MultisampleState::default(),
        target: None,
    })
}

/// Returns the rotation from the world's axes to those of the map, whose z points to the sun.
fn turn() -> Quat {
    Quat::from_rotation_arc(SUN.normalize(), Vec3::Z)
}

/// Returns the axes of the map in the world.
#[cfg(feature = "wgpu")]
pub(crate) fn sun_axes() -> [Vec3; 3] {
    Vec3::AXES.map(|axis| turn().inverse() * axis)
}

/// Where the map lies in the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sunlight {
    /// The transform from the world to the map.
    pub matrix: Mat4,
    /// The width of a pixel.
    pub pixel: f32,
}

impl Sunlight {
    /// A map of nothing, in which all is lit.
    pub const EVERYWHERE: Self = Self {
        matrix: Mat4::ZERO,
        pixel: 0.0,
    };
    /// Steps of the map's width from one power of two to the next, and its border in pixels. So the
    /// map seldom moves with the bodies, and shadows do not flicker.
    const STEPS: f32 = 4.0;
    const BORDER: f32 = 8.0;
    /// Least width, of the map of a single point.
    const LEAST: f32 = 1e-6;

    /// Fits a map of this many pixels to balls (centre, radius).
    pub fn around(balls: impl Iterator<Item = (Vec3, f32)>, pixels: u32) -> Self {
        let turn = turn();
        let ends = balls.map(|(center, radius)| {
            let at = turn * center;
            [at - radius, at + radius]
        });
        let both = ends.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        both.map_or(Self::EVERYWHERE, |both| Self::between(both, pixels))
    }

    /// Fits a map of this many pixels to a box along the axes of the sun.
    pub fn between([low, high]: [Vec3; 2], pixels: u32) -> Self {
        if !(low.is_finite() && high.is_finite()) {
            return Self::EVERYWHERE;
        }
        let (size, pixels) = (high - low, pixels as f32);
        let width = size.x.max(size.y).max(Self::LEAST) / (1.0 - 2.0 * Self::BORDER / pixels);
        let width = ((width.log2() * Self::STEPS).ceil() / Self::STEPS).exp2();
        let pixel = width / pixels;
        let middle = (((low + high) / 2.0) / pixel).round() * pixel;
        // Bodies that the balls leave out may be a little nearer to the sun.
        let (near, depth) = (high.z + 0.1 * width, size.z + 0.2 * width);
        let scale = Vec3::new(2.0 / width, 2.0 / width, -1.0 / depth);
        let origin = Mat4::from_translation(-middle.truncate().extend(near));
        Self {
            matrix: Mat4::from_scale(scale) * origin * Mat4::from_quat(turn()),
            pixel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_contains_all_balls_and_rests_when_they_move_a_little() {
        for scale in [1e-3, 1.0, 1e6] {
            let ball = |x: f32, y: f32| (Vec3::new(x, y, 3.0) * scale, 0.5 * scale);
            let balls = [ball(0.0, 0.0), ball(9.0, 4.0), ball(-3.0, 20.0)];
            let light = Sunlight::around(balls.into_iter(), 1024);
            for (center, radius) in balls {
                for side in [Vec3::X, Vec3::Y, Vec3::Z, SUN] {
                    for point in [center - side * radius, center + side * radius] {
                        let at = light.matrix.project_point3(point);
                        assert!(at.truncate().abs().max_element() < 1.0, "{at}");
                        assert!((0.0..=1.0).contains(&at.z), "{at}");
                    }
                }
            }
            let toward = light.matrix.project_point3(balls[1].0 + SUN * scale);
            assert!(toward.z < light.matrix.project_point3(balls[1].0).z);
            let (pixel, width) = (light.pixel, 1024.0 * light.pixel);
            assert!((15.0..23.0).contains(&(width / scale)), "{width}");
            let moved = balls.map(|(center, radius)| (center + Vec3::splat(0.1 * pixel), radius));
            let after = Sunlight::around(moved.into_iter(), 1024);
            assert_eq!(after.pixel, pixel);
        }
    }

    #[test]
    fn without_finite_balls_all_is_lit() {
        let light = |balls: &[(Vec3, f32)]| Sunlight::around(balls.iter().copied(), 64);
        assert_eq!(light(&[]), Sunlight::EVERYWHERE);
        assert_eq!(light(&[(Vec3::NAN, 1.0)]), Sunlight::EVERYWHERE);
        assert!(light(&[(Vec3::ONE, 0.0)]).matrix.is_finite());
    }
}
