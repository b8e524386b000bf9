//! Lines over the scene, and the edges of boxes as lines.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;
use radsweep::Aabb;
use std::mem::offset_of;

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

const _: () = {
    assert!(size_of::<Line>() == 44);
    assert!(offset_of!(Line, width) == 12);
    assert!(offset_of!(Line, to) == 16);
    assert!(offset_of!(Line, colour) == 28);
};

/// Creates a line.
pub(super) const fn line(from: Vec3, to: Vec3, colour: [f32; 4], width: f32) -> Line {
    Line {
        from,
        width,
        to,
        colour,
    }
}

/// Adds the edges of a box; an infinite one has none.
pub(super) fn edges(aabb: &Aabb, colour: [f32; 4], width: f32, lines: &mut Vec<Line>) {
    let ends = [Vec3::from(aabb.min), Vec3::from(aabb.max)];
    if !ends.iter().all(|end| end.is_finite()) {
        return;
    }
    let corner = |bits: usize| {
        Vec3::new(
            ends[bits & 1].x,
            ends[bits >> 1 & 1].y,
            ends[bits >> 2 & 1].z,
        )
    };
    for bits in 0..8 {
        let others = (0..3)
            .map(|axis| bits | 1 << axis)
            .filter(|&other| other != bits);
        lines.extend(others.map(|other| line(corner(bits), corner(other), colour, width)));
    }
}
