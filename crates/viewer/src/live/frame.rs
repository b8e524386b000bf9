//! A frame whose balls are on the device that draws.

use super::overview::Overview;
use crate::camera::{Reach, View};
use glam::Vec3;
use radsweep_scenes::{Balls, Picture};
use std::sync::{Arc, OnceLock};
use wgpu::Buffer;

/// A frame whose balls are on the device that draws. Its buffers stay as they are.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(super) balls: Arc<Balls>,
    /// What the host knows of the balls, looked at in this view.
    pub(super) overview: Overview,
    pub(super) view: View,
    /// Whether the boxes are shown.
    pub(super) boxed: bool,
    pub(super) lines: Option<(Buffer, u32)>,
    pub(super) picture: Arc<OnceLock<Picture>>,
}

impl Live {
    /// Returns what the host knows of the balls.
    pub fn overview(&self) -> &Overview {
        &self.overview
    }

    /// Returns how far the balls reach in a view, if it is the one that they were looked at in.
    pub fn reach(&self, view: &View) -> Option<Reach> {
        (self.view == *view).then(|| self.overview.reach())
    }

    /// Returns the corners of the box around the balls along the axes of the sun.
    pub fn sunlit(&self) -> [Vec3; 2] {
        self.overview.sunlit()
    }

    /// Returns the rows of the vertex stage, and their number: centres and radii, velocities,
    /// numbers of pairs.
    pub fn rows(&self) -> ([&Buffer; 3], u32) {
        let balls = &self.balls;
        let rows = [balls.at(), balls.velocities(), balls.pairs()];
        (rows, balls.count())
    }

    /// Returns the boxes and their number, if requested.
    pub fn boxes(&self) -> Option<(&Buffer, u32)> {
        self.boxed.then(|| (self.balls.boxes(), self.balls.count()))
    }

    /// Returns the lines of the pairs and their number, if requested.
    pub fn lines(&self) -> Option<(&Buffer, u32)> {
        self.lines.as_ref().map(|(lines, count)| (lines, *count))
    }

    /// Returns the balls on the host; the first call downloads them. A device that fails has none:
    /// drawing reports why.
    pub fn picture(&self) -> &Picture {
        self.picture.get_or_init(|| Picture {
            spheres: self.balls.download().unwrap_or_default(),
            ..Picture::default()
        })
    }

    /// Returns the bytes on the device.
    pub fn bytes(&self) -> usize {
        let lines = self.lines.as_ref().map_or(0, |(lines, _)| lines.size());
        (self.balls.bytes() + lines) as usize
    }
}
