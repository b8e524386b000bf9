//! The camera: it orbits a point or flies.

use glam::camera::rh::proj::directx::perspective_infinite_reverse;
use glam::{Mat4, Quat, Vec2, Vec3};

/// A ray; `dir` is a unit vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ray {
    pub origin: Vec3,
    pub dir: Vec3,
}

/// A perspective camera with y up. It orbits `target`, or turns in place and flies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Camera {
    pub target: Vec3,
    pub distance: f32,
    /// Angle around y in radians; 0 looks along -z.
    pub yaw: f32,
    /// Angle of the eye above the horizon in radians.
    pub pitch: f32,
}

/// The axes of a camera, and the slopes of the planes that [`Camera::fit`] keeps all balls within.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct View {
    pub right: Vec3,
    pub up: Vec3,
    pub forward: Vec3,
    pub slopes: Vec2,
}

/// How far balls reach in a view.
///
/// Each of the four planes through the eye and an edge of the picture has all balls on one side.
/// Its offset is a max over the balls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reach {
    pub offsets: [f32; 4],
    /// Min and max depth of a centre.
    pub depths: [f32; 2],
}

impl Reach {
    /// Returns the reach of balls (centre, radius).
    pub fn of(view: &View, balls: impl Iterator<Item = (Vec3, f32)>) -> Self {
        let View {
            right,
            up,
            forward,
            slopes,
        } = *view;
        let steep = [slopes.x, slopes.y].map(|slope| (1.0 + slope * slope).sqrt());
        let mut offsets = [f32::NEG_INFINITY; 4];
        let mut depths = [f32::INFINITY, f32::NEG_INFINITY];
        for (center, radius) in balls {
            let [x, y, z] = [right, up, forward].map(|axis| center.dot(axis));
            let new = [
                x - slopes.x * z + steep[0] * radius,
                -x - slopes.x * z + steep[0] * radius,
                y - slopes.y * z + steep[1] * radius,
                -y - slopes.y * z + steep[1] * radius,
            ];
            offsets = std::array::from_fn(|side| offsets[side].max(new[side]));
            depths = [depths[0].min(z), depths[1].max(z)];
        }
        Self { offsets, depths }
    }
}

/// Tangent of half the vertical field of view.
const SLOPE: f32 = 0.4;
/// Share of the picture's width or height that [`Camera::fit`] fills.
const FILLED: f32 = 0.92;
/// Share of the distance to the target that [`Camera::approach`] neglects.
const CLOSE: f32 = 0.005;
/// Max pitch: below a right angle, so that "right" stays defined.
const MAX_PITCH: f32 = 1.55;
/// Min and max distance, for the precision of 32 bits.
const DISTANCES: (f32, f32) = (1e-4, 1e9);

impl Camera {
    /// Creates a camera that looks at a ball from above and the side, so that it fills most of the
    /// picture.
    pub fn around(center: Vec3, radius: f32) -> Self {
        let mut camera = Self {
            target: center,
            distance: 1.0,
            yaw: 0.6,
            pitch: 0.42,
        };
        camera.focus(center, radius);
        camera
    }

    /// Moves to a ball; the direction is unchanged.
    pub fn focus(&mut self, center: Vec3, radius: f32) {
        self.target = center;
        self.distance = (radius / SLOPE * 1.08).clamp(DISTANCES.0, DISTANCES.1);
    }

    /// Returns the axes, for pictures of this aspect.
    pub fn view(&self, aspect: f32) -> View {
        View {
            right: self.right(),
            up: self.up(),
            forward: self.forward(),
            slopes: Self::slopes(aspect) * FILLED,
        }
    }

    /// Moves so that balls of this reach fill the picture; the direction, which is that of the
    /// view, is unchanged. Without a ball nothing changes.
    ///
    /// Opposite planes meet at one depth at most: the eye is at the nearer of the two depths.
    pub fn fit(&mut self, reach: &Reach, view: &View) {
        let ([a, b, c, d], slopes) = (reach.offsets, view.slopes);
        let depth = -((a + b) / slopes.x).max((c + d) / slopes.y) / 2.0;
        if !depth.is_finite() {
            return;
        }
        let distance = reach.depths[0].midpoint(reach.depths[1]) - depth;
        self.distance = distance.clamp(DISTANCES.0, DISTANCES.1);
        let [x, y] = [(a - b) / 2.0, (c - d) / 2.0];
        self.target = view.right * x + view.up * y + view.forward * (depth + self.distance);
    }

    /// Moves a part of the way to another camera, so that successive pictures follow it smoothly.
    /// It rests if the way is too short to be seen.
    pub fn approach(&mut self, there: &Self, part: f32) {
        let way = self.target.distance(there.target) + (self.distance - there.distance).abs();
        if way < CLOSE * self.distance {
            return;
        }
        self.target = self.target.lerp(there.target, part);
        self.distance += (there.distance - self.distance) * part;
    }

    /// Returns the rotation from the camera's axes (x right, y up, z backwards) to the world's.
    fn rotation(&self) -> Quat {
        Quat::from_rotation_y(self.yaw) * Quat::from_rotation_x(-self.pitch)
    }

    pub fn right(&self) -> Vec3 {
        self.rotation() * Vec3::X
    }

    pub fn up(&self) -> Vec3 {
        self.rotation() * Vec3::Y
    }

    pub fn forward(&self) -> Vec3 {
        self.rotation() * Vec3::NEG_Z
    }

    pub fn eye(&self) -> Vec3 {
        self.target - self.forward() * self.distance
    }

    /// Returns half the width and height of the picture at distance 1.
    pub fn slopes(aspect: f32) -> Vec2 {
        Vec2::new(SLOPE * aspect, SLOPE)
    }

    /// Returns the matrix from world to clip space. Depth is 1 at the near plane and 0 at infinity,
    /// which keeps precision at all scales.
    pub fn view_projection(&self, aspect: f32) -> Mat4 {
        let view = Mat4::from_rotation_translation(self.rotation(), self.eye()).inverse();
        let near = self.distance * 1e-3;
        perspective_infinite_reverse(2.0 * SLOPE.atan(), aspect, near) * view
    }

    /// Returns the ray through a point of the picture, with x right and y up, each from -1 to 1.
    pub fn ray(&self, at: Vec2, aspect: f32) -> Ray {
        let slope = at * Self::slopes(aspect);
        let dir = self.forward() + self.right() * slope.x + self.up() * slope.y;
        Ray {
            origin: self.eye(),
            dir: dir.normalize(),
        }
    }

    /// Returns the depth before which bodies are left out: at this part of the way through a ball
    /// of this radius around the target. At 0 nothing is left out.
    pub fn cut(&self, radius: f32, part: f32) -> f32 {
        match part > 0.0 {
            true => self.distance + radius * (2.0 * part - 1.0),
            false => f32::MIN,
        }
    }

    /// Orbits the target by a drag in units of the picture's height.
    pub fn orbit(&mut self, by: Vec2) {
        self.yaw = (self.yaw - 3.0 * by.x) % std::f32::consts::TAU;
        self.pitch = (self.pitch + 3.0 * by.y).clamp(-MAX_PITCH, MAX_PITCH);
    }

    /// Turns in place by a drag in units of the picture's height.
    pub fn look(&mut self, by: Vec2) {
        let eye = self.eye();
        self.orbit(by * 0.5);
        self.target = eye + self.forward() * self.distance;
    }

    /// Pans by a drag in units of the picture's height, so that the target follows the pointer.
    pub fn pan(&mut self, by: Vec2) {
        let height = 2.0 * SLOPE * self.distance;
        self.target += (self.up() * by.y - self.right() * by.x) * height;
    }

    /// Zooms in (above 0) or out, in steps of the wheel.
    pub fn zoom(&mut self, steps: f32) {
        let distance = self.distance * 0.88_f32.powf(steps);
        self.distance = distance.clamp(DISTANCES.0, DISTANCES.1);
    }

    /// Flies along the camera's axes (right, up, forward), in units of the distance to the target.
    pub fn fly(&mut self, by: Vec3) {
        let step = self.right() * by.x + self.up() * by.y + self.forward() * by.z;
        self.target += step * self.distance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASPECT: f32 = 1.6;

    fn fit(camera: &mut Camera, balls: impl Iterator<Item = (Vec3, f32)>, aspect: f32) {
        let view = camera.view(aspect);
        camera.fit(&Reach::of(&view, balls), &view);
    }

    fn project(camera: &Camera, point: Vec3) -> Vec3 {
        camera.view_projection(ASPECT).project_point3(point)
    }

    #[test]
    fn the_target_is_in_the_centre_and_near_points_have_larger_depths() {
        let camera = Camera::around(Vec3::new(3.0, -2.0, 8.0), 5.0);
        let middle = project(&camera, camera.target);
        assert!(middle.truncate().length() < 1e-5, "{middle}");
        let nearer = project(&camera, camera.target - camera.forward());
        assert!(nearer.z > middle.z && middle.z > 0.0 && nearer.z < 1.0);
        assert!(project(&camera, camera.target + camera.right()).x > 0.0);
        assert!(project(&camera, camera.target + Vec3::Y).y > 0.0);
    }

    #[test]
    fn the_ball_in_focus_is_inside_the_picture() {
        for radius in [1e-3, 1.0, 1e6] {
            let mut camera = Camera::around(Vec3::ONE, radius);
            for _ in 0..8 {
                camera.orbit(Vec2::new(0.7, 0.1));
                for offset in [Vec3::X, Vec3::Y, Vec3::Z, Vec3::NEG_X, Vec3::NEG_Y] {
                    let at = project(&camera, Vec3::ONE + offset * radius);
                    assert!(at.x.abs() < 1.05 && at.y.abs() < 1.3, "{radius}: {at}");
                }
            }
        }
    }

    #[test]
    fn rays_pass_through_their_points() {
        let mut camera = Camera::around(Vec3::new(1.0, 2.0, 3.0), 4.0);
        camera.look(Vec2::new(0.2, -0.3));
        for at in [Vec2::ZERO, Vec2::new(0.9, -0.4), Vec2::new(-1.0, 1.0)] {
            let ray = camera.ray(at, ASPECT);
            let seen = project(&camera, ray.origin + ray.dir * 7.0);
            assert!(seen.truncate().abs_diff_eq(at, 1e-4), "{seen} {at}");
        }
    }

    #[test]
    fn a_cut_goes_from_the_front_of_the_ball_to_its_back() {
        let camera = Camera::around(Vec3::ZERO, 2.0);
        assert_eq!(camera.cut(2.0, 0.0), f32::MIN);
        assert_eq!(camera.cut(2.0, 0.5), camera.distance);
        assert_eq!(camera.cut(2.0, 1.0), camera.distance + 2.0);
    }

    #[test]
    fn looking_keeps_the_eye_and_orbiting_keeps_the_target() {
        let mut camera = Camera::around(Vec3::ZERO, 3.0);
        let eye = camera.eye();
        camera.look(Vec2::new(0.4, 0.1));
        assert!(camera.eye().abs_diff_eq(eye, 1e-4));
        let target = camera.target;
        camera.orbit(Vec2::new(9.0, 9.0));
        assert_eq!(camera.target, target);
        assert!(camera.pitch <= MAX_PITCH);
        assert!((camera.eye() - target).length() - camera.distance < 1e-3);
        assert!(camera.view_projection(ASPECT).is_finite());
    }

    #[test]
    fn panning_moves_the_target_with_the_pointer() {
        let mut camera = Camera::around(Vec3::ZERO, 3.0);
        let before = camera;
        camera.pan(Vec2::new(0.25, 0.0));
        // A quarter of the height to the right: 0.5 of the half-height, over the aspect.
        let at = project(&camera, before.target);
        assert!((at.x - 0.5 / ASPECT).abs() < 1e-4, "{at}");
        camera.fly(Vec3::Z);
        assert!(camera.eye().distance(before.eye()) > 0.9 * before.distance);
    }

    #[test]
    fn balls_that_fit_touch_two_opposite_edges_and_leave_the_others_equally_far() {
        for aspect in [0.5, 1.6, 4.0] {
            let mut camera = Camera::around(Vec3::ONE, 7.0);
            camera.orbit(Vec2::new(0.3, 0.1));
            // A tower and a wide plate, as points: their outlines are exact.
            for size in [Vec3::new(1.0, 30.0, 1.0), Vec3::new(40.0, 0.1, 20.0)] {
                let corners = (0..8).map(|bits| {
                    let sign = |bit: u32| if bits >> bit & 1 == 0 { -1.0 } else { 1.0 };
                    Vec3::new(5.0, 9.0, -3.0) + size * Vec3::new(sign(0), sign(1), sign(2))
                });
                fit(
                    &mut camera,
                    corners.clone().map(|corner| (corner, 0.0)),
                    aspect,
                );
                let seen = |corner| camera.view_projection(aspect).project_point3(corner);
                let low = corners.clone().map(seen).reduce(Vec3::min).expect("8");
                let high = corners.map(seen).reduce(Vec3::max).expect("8");
                let middle = (low + high) / 2.0;
                assert!(middle.x.abs().min(middle.y.abs()) < 1e-3, "{low} {high}");
                let sides = high.max(-low);
                assert!((sides.x.max(sides.y) - FILLED).abs() < 1e-3, "{low} {high}");
            }
        }
        let mut camera = Camera::around(Vec3::ONE, 7.0);
        fit(&mut camera, std::iter::empty(), 1.6);
        assert_eq!(camera, Camera::around(Vec3::ONE, 7.0));
        fit(&mut camera, [(Vec3::ZERO, 2.0)].into_iter(), 1.6);
        let top = project(&camera, camera.up() * 2.0);
        assert!((0.85..1.0).contains(&top.y), "{top}");
    }

    #[test]
    fn following_approaches_the_other_camera() {
        let mut camera = Camera::around(Vec3::ZERO, 1.0);
        let there = Camera::around(Vec3::X, 4.0);
        for _ in 0..20 {
            let before = camera;
            camera.approach(&there, 0.2);
            assert!(camera.target.x > before.target.x && camera.distance > before.distance);
        }
        for _ in 0..20 {
            camera.approach(&there, 0.2);
        }
        assert!(camera.target.abs_diff_eq(there.target, 1e-2));
        assert!((camera.distance - there.distance).abs() < 1e-1);
        let close = camera;
        camera.approach(&there, 0.2);
        assert_eq!(camera, close, "it rests");
    }

    #[test]
    fn zoom_is_bounded() {
        let mut camera = Camera::around(Vec3::ZERO, 1.0);
        camera.zoom(1.0);
        assert!(camera.distance < 1.0 / SLOPE * 1.08);
        camera.zoom(-1e9);
        assert!(camera.view_projection(ASPECT).is_finite());
        camera.zoom(1e9);
        assert!(camera.view_projection(ASPECT).is_finite());
    }
}
