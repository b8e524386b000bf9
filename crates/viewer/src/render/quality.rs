//! How carefully pictures are drawn: everything on a GPU, less where the CPU draws.

use crate::camera::Camera;
use crate::snapshot::Snapshot;
use glam::Vec3;
use radsweep_scenes::Instance;

/// The effort for a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quality {
    /// Samples per pixel: 1 or 4.
    pub samples: u32,
    /// Whether the scene is drawn into a texture of its own: only when it has changed, and with
    /// half the width and height while it moves.
    pub buffered: bool,
    /// Min radius in pixels of a chair that is drawn with its whole mesh.
    pub whole_from: f32,
    /// Max chairs that are drawn with their whole mesh: the nearest ones.
    pub max_whole: usize,
    /// Boxes of the other chairs, the largest first.
    pub boxes: u32,
    /// Width and height of the map of shadows.
    pub shadows: u32,
}

impl Quality {
    /// For GPUs and for pictures without a window: only chairs of some pixels are coarse.
    pub const FULL: Self = Self {
        samples: 4,
        buffered: false,
        whole_from: 8.0,
        max_whole: usize::MAX,
        boxes: 14,
        shadows: 2048,
    };
    /// For drivers that draw on the CPU, while nothing moves.
    const STILL: Self = Self {
        samples: 1,
        buffered: true,
        whole_from: 30.0,
        max_whole: 64,
        boxes: 14,
        shadows: 1024,
    };
    /// For drivers that draw on the CPU, while something moves. 1,500 chairs of nine boxes take
    /// llvmpipe a twentieth of the time of their meshes.
    const MOVING: Self = Self {
        whole_from: 150.0,
        max_whole: 4,
        boxes: 9,
        ..Self::STILL
    };

    /// Returns the quality for a driver.
    pub const fn of(software: bool) -> Self {
        if software { Self::STILL } else { Self::FULL }
    }

    /// Returns the quality for a picture in which something moves, or nothing does.
    pub const fn while_moving(self, moving: bool) -> Self {
        match (self.buffered, moving) {
            (false, _) => self,
            (true, true) => Self::MOVING,
            (true, false) => Self::STILL,
        }
    }

    /// Returns the width and height of the texture for an area of this size in pixels.
    pub fn pixels(self, area: [f32; 2]) -> [u32; 2] {
        let part = if self == Self::MOVING { 0.5 } else { 1.0 };
        area.map(|side| (side * part).ceil().max(1.0) as u32)
    }
}

/// The visible chairs of a frame by the mesh that draws them, with their marks.
#[derive(Debug, Default)]
pub(super) struct Chairs {
    pub whole: (Vec<Instance>, Vec<u32>),
    pub coarse: (Vec<Instance>, Vec<u32>),
    /// Radius in pixels and index of each visible chair.
    visible: Vec<(f32, u32)>,
}

impl Chairs {
    /// Distributes the chairs of a frame for a picture of this size in pixels. Where the CPU draws
    /// they are sorted from near to far, so that few pixels are drawn twice.
    pub fn split(
        &mut self,
        snapshot: &Snapshot,
        camera: &Camera,
        [width, height]: [f32; 2],
        quality: Quality,
    ) {
        let slopes = Camera::slopes(width / height);
        let (eye, axes) = (
            camera.eye(),
            [camera.right(), camera.up(), camera.forward()],
        );
        let reach = Snapshot::CHAIR;
        // The radius in pixels; `None` outside of the picture.
        let radius = |chair: &Instance| {
            let to = Vec3::from(chair.position) - eye;
            let [x, y, depth] = axes.map(|axis| to.dot(axis));
            let beside = |at: f32, slope: f32| {
                at.abs() > slope * depth + reach * (1.0 + slope * slope).sqrt()
            };
            let outside = depth < -reach || beside(x, slopes.x) || beside(y, slopes.y);
            (!outside).then(|| reach / depth.max(reach) / slopes.y * height / 2.0)
        };
        for list in [&mut self.whole, &mut self.coarse] {
            list.0.clear();
            list.1.clear();
        }
        self.visible.clear();
        let chairs = snapshot.picture.chairs.iter().zip(0..);
        let visible = chairs.filter_map(|(chair, index)| Some((radius(chair)?, index)));
        self.visible.extend(visible);
        if quality.max_whole < usize::MAX {
            self.visible.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        }
        for &(radius, index) in &self.visible {
            let whole = radius >= quality.whole_from && self.whole.0.len() < quality.max_whole;
            let list = if whole {
                &mut self.whole
            } else {
                &mut self.coarse
            };
            list.0.push(snapshot.picture.chairs[index as usize]);
            list.1.push(snapshot.marks[1][index as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Reach;
    use crate::snapshot::Watch;
    use crate::snapshot::tests::taken;
    use radsweep_scenes::Kind;

    #[test]
    fn near_chairs_are_whole_far_ones_are_boxes_and_those_behind_are_left_out() {
        let (snapshot, ..) = taken(Kind::FallingChairs, 200, Watch::default());
        let mut camera = Camera::around(Vec3::ZERO, 10.0);
        let view = camera.view(1.5);
        camera.fit(&Reach::of(&view, snapshot.balls()), &view);
        let mut chairs = Chairs::default();
        let mut split = |camera: &Camera, quality| {
            chairs.split(&snapshot, camera, [900.0, 600.0], quality);
            assert_eq!(chairs.whole.0.len(), chairs.whole.1.len());
            assert_eq!(chairs.coarse.0.len(), chairs.coarse.1.len());
            (chairs.whole.0.len(), chairs.coarse.0.len())
        };
        assert_eq!(split(&camera, Quality::FULL), (200, 0));
        assert_eq!(split(&camera, Quality::MOVING), (0, 200));
        let few = Quality {
            max_whole: 7,
            ..Quality::FULL
        };
        assert_eq!(split(&camera, few), (7, 193));
        camera.distance *= 30.0;
        camera.fly(Vec3::ZERO);
        assert_eq!(split(&camera, Quality::FULL).0, 0, "a few pixels each");
        camera.fly(Vec3::Z * 3.0);
        assert_eq!(
            split(&camera, Quality::FULL),
            (0, 0),
            "all are behind the eye"
        );
    }

    #[test]
    fn only_software_drivers_save_pixels_and_only_while_something_moves() {
        let area = [755.0, 632.0];
        let pixels = |software, moving| Quality::of(software).while_moving(moving).pixels(area);
        assert_eq!(pixels(true, true), [378, 316]);
        assert_eq!(pixels(true, false), [755, 632]);
        assert_eq!(pixels(false, true), [755, 632]);
        assert_eq!(Quality::FULL.while_moving(true), Quality::FULL);
    }
}
