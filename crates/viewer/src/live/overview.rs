//! What the host knows of the balls of a frame.

use crate::camera::Reach;
use bytemuck::{Pod, Zeroable};
use glam::Vec3;

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
