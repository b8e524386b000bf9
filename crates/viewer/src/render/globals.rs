//! What all shaders of the scene read: the camera, the light and the colours.

use super::shadows::{SUN, Sunlight};
use crate::camera::Camera;
use crate::look::{Colour, Look};
use crate::snapshot::Extent;
use bytemuck::{Pod, Zeroable};
use glam::{Mat4, Vec3};
use std::mem::offset_of;

/// The uniform block of `scene.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Globals {
    view_projection: Mat4,
    light: Mat4,
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

const _: () = {
    assert!(size_of::<Globals>() == 304);
    assert!(offset_of!(Globals, light) == 64);
    assert!(offset_of!(Globals, eye) == 128);
    assert!(offset_of!(Globals, right) == 144);
    assert!(offset_of!(Globals, up) == 160);
    assert!(offset_of!(Globals, forward) == 176);
    assert!(offset_of!(Globals, sun) == 192);
    assert!(offset_of!(Globals, sun_light) == 208);
    assert!(offset_of!(Globals, sky_top) == 224);
    assert!(offset_of!(Globals, horizon) == 240);
    assert!(offset_of!(Globals, ground) == 256);
    assert!(offset_of!(Globals, scales) == 272);
    assert!(offset_of!(Globals, modes) == 288);
};

impl Globals {
    /// Returns those of an area of this size in pixels. `extent` is that of the bodies, if any.
    pub(super) fn new(
        [width, height]: [f32; 2],
        camera: &Camera,
        look: &Look,
        extent: Option<&Extent>,
        sunlight: &Sunlight,
        picking: bool,
    ) -> Self {
        let aspect = width / height;
        let slopes = Camera::slopes(aspect);
        let four = |v: Vec3, w: f32| v.extend(w).to_array();
        let (radius, speed, overlaps) = extent.map_or((1.0, 1.0, 1.0), |extent| {
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
        Self {
            view_projection: camera.view_projection(aspect),
            light: sunlight.matrix,
            eye: four(camera.eye(), 0.0),
            right: four(camera.right() * slopes.x, width),
            up: four(camera.up() * slopes.y, height),
            forward: four(camera.forward(), camera.cut(radius, look.cut)),
            sun: four(SUN.normalize(), sunlight.pixel),
            sun_light,
            sky_top,
            horizon,
            ground,
            scales: [haze, grid, speed, overlaps],
            modes: [colour, picking.into(), 0, look.space.into()],
        }
    }
}
