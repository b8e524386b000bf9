//! Without the feature `wgpu` no scene lives on the device that draws.

use crate::camera::{Reach, View};
use glam::Vec3;
use radsweep_scenes::Picture;
use wgpu::Buffer;

/// A frame whose balls are on the device that draws: there is none.
#[derive(Debug, Clone)]
pub(crate) enum Live {}

impl Live {
    pub fn reach(&self, _: &View) -> Option<Reach> {
        match *self {}
    }

    pub fn sunlit(&self) -> [Vec3; 2] {
        match *self {}
    }

    pub fn rows(&self) -> ([&Buffer; 3], u32) {
        match *self {}
    }

    pub fn boxes(&self) -> Option<(&Buffer, u32)> {
        match *self {}
    }

    pub fn lines(&self) -> Option<(&Buffer, u32)> {
        match *self {}
    }

    pub fn picture(&self) -> &Picture {
        match *self {}
    }

    pub fn bytes(&self) -> usize {
        match *self {}
    }
}
