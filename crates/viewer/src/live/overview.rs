//! What the host knows of the balls of a frame.

use crate::camera::Reach;
use bytemuck::{Pod, Zeroable};
use glam::Vec3;
use std::mem::offset_of;

/// `Overview` of `overview.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct Overview {
    pub center: Vec3,
    pub radius: f32,
    pub low: Vec3,
    pub speed: f32,
    pub high: Vec3,
    pub overlaps: f32,
    offsets: [f32; 4],
    /// Max along the axes of the sun, and depth. Then the max of their negatives.
    ahead: [f32; 4],
    behind: [f32; 4],
}

const _: () = {
    assert!(size_of::<Overview>() == 96);
    assert!(offset_of!(Overview, radius) == 12);
    assert!(offset_of!(Overview, low) == 16);
    assert!(offset_of!(Overview, speed) == 28);
    assert!(offset_of!(Overview, high) == 32);
    assert!(offset_of!(Overview, overlaps) == 44);
    assert!(offset_of!(Overview, offsets) == 48);
    assert!(offset_of!(Overview, ahead) == 64);
    assert!(offset_of!(Overview, behind) == 80);
};

impl Overview {
    /// Returns how far the balls reach in the view that they were looked at in.
    pub fn reach(&self) -> Reach {
        Reach {
            offsets: self.offsets,
            depths: [-self.behind[3], self.ahead[3]],
        }
    }

    /// Returns the corners of the box around the balls along the axes of the sun.
    pub fn sunlit(&self) -> [Vec3; 2] {
        let corner = |[x, y, z, _]: [f32; 4]| Vec3::new(x, y, z);
        [-corner(self.behind), corner(self.ahead)]
    }
}
