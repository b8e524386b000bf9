//! Finds the contact points of the pairs of the broad phase with `parry3d`'s cuboid manifolds.

use super::solver::{Body, Contact, FRAME};
use glam::Vec3;
use parry3d::math::Pose3;
use parry3d::query::ContactManifold;
use parry3d::query::details::contact_manifold_cuboid_cuboid;
use parry3d::shape::Cuboid;
use radsweep::Pair;
use rayon::prelude::*;

/// Distance in metres at which contacts are made, in addition to the bodies' motion within the
/// frame.
const AHEAD: f32 = 0.01;

/// Pairs per task.
const SHARE: usize = 128;

/// One oriented box of a body.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Placed {
    pub body: u32,
    pub pose: Pose3,
    pub half: Vec3,
    /// The body's motion within the frame, and how much further any of its points may move by
    /// rotation.
    pub way: Vec3,
    pub turn: f32,
}

impl Placed {
    /// Places a box of a body; `offset` is its centre in the body's axes.
    pub(super) fn new(index: u32, body: &Body, offset: Vec3, half: Vec3) -> Self {
        let furthest = offset.length() + half.length();
        let pose = Pose3::from_parts(body.pose * offset, body.pose.rotation);
        Self {
            body: index,
            pose,
            half,
            way: body.linear * FRAME,
            turn: body.angular.length() * furthest * FRAME,
        }
    }

    /// Returns centre and half extents of the axis-aligned box that contains it during the whole
    /// frame, enlarged by half the contact margin.
    pub(super) fn swept(&self) -> (Vec3, Vec3) {
        let axes = glam::Mat3::from_quat(self.pose.rotation);
        let tight = axes.x_axis.abs() * self.half.x
            + axes.y_axis.abs() * self.half.y
            + axes.z_axis.abs() * self.half.z;
        let center = self.pose.translation + self.way / 2.0;
        (
            center,
            tight + self.way.abs() / 2.0 + self.turn + AHEAD / 2.0,
        )
    }
}

/// Returns the contacts of the pairs in the pairs' order, warm started from those of the last
/// frame, which have the same order.
pub(super) fn find(
    pairs: &[Pair],
    boxes: &[Placed],
    bodies: &[Body],
    last: &[Contact],
) -> Vec<Contact> {
    let of_pair = |pair: Pair, manifold: &mut ContactManifold<(), ()>, found: &mut Vec<Contact>| {
        let [a, b] = [pair.a, pair.b].map(|index| &boxes[index as usize]);
        // The manifold was used for another pair: only its memory is reused.
        manifold.clear();
        contact_manifold_cuboid_cuboid(
            &a.pose.inv_mul(&b.pose),
            &Cuboid::new(a.half),
            &Cuboid::new(b.half),
            AHEAD + (a.way - b.way).length() + a.turn + b.turn,
            manifold,
        );
        if manifold.points.is_empty() {
            return;
        }
        let first = last.partition_point(|contact| contact.pair < pair);
        let known = last[first..]
            .iter()
            .take_while(|contact| contact.pair == pair);
        let normal = a.pose.rotation * manifold.local_n1;
        found.extend(manifold.points.iter().map(|point| {
            let features = (point.fid1.0, point.fid2.0);
            let known = known.clone().find(|contact| contact.features == features);
            Contact {
                pair,
                features,
                bodies: [a.body, b.body],
                normal,
                anchors: [
                    a.pose * point.local_p1 - bodies[a.body as usize].pose.translation,
                    b.pose * point.local_p2 - bodies[b.body as usize].pose.translation,
                ],
                separation: point.dist,
                impulse: known.map_or(Vec3::ZERO, |contact| contact.impulse),
            }
        }));
    };
    let of_some = |pairs: &[Pair]| {
        let (mut manifold, mut found) = (ContactManifold::new(), Vec::new());
        for &pair in pairs {
            of_pair(pair, &mut manifold, &mut found);
        }
        found
    };
    let parts: Vec<_> = pairs.par_chunks(SHARE).map(of_some).collect();
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{Mat3, Quat};

    fn body(position: Vec3, rotation: Quat) -> Body {
        Body {
            pose: Pose3::from_parts(position, rotation),
            linear: Vec3::ZERO,
            angular: Vec3::ZERO,
            inverse_mass: 1.0,
            inertia: Mat3::IDENTITY,
            inverse_inertia: Mat3::IDENTITY,
            asleep: false,
        }
    }

    #[test]
    fn a_cube_touches_a_plate_in_four_corners_and_keeps_its_impulses() {
        let half = Vec3::splat(0.5);
        let turned = Quat::from_rotation_y(0.3);
        let bodies = [
            body(Vec3::ZERO, Quat::IDENTITY),
            body(Vec3::new(0.1, 0.999, 0.2), turned),
        ];
        let plate = Placed::new(0, &bodies[0], Vec3::ZERO, Vec3::new(5.0, 0.5, 5.0));
        let boxes = [plate, Placed::new(1, &bodies[1], Vec3::ZERO, half)];
        let pairs = [Pair::new(0, 1)];
        let mut first = find(&pairs, &boxes, &bodies, &[]);
        assert_eq!(first.len(), 4);
        for (contact, weight) in first.iter_mut().zip(1_u8..) {
            assert!(
                contact.normal.abs_diff_eq(Vec3::Y, 1e-5),
                "{}",
                contact.normal
            );
            assert!(
                (contact.separation + 0.001).abs() < 1e-5,
                "{}",
                contact.separation
            );
            let corner = turned.inverse() * contact.anchors[1];
            assert!(corner.abs().abs_diff_eq(half, 2e-3), "{corner}");
            contact.impulse.x = weight.into();
        }
        let again = find(&pairs, &boxes, &bodies, &first);
        let impulses: Vec<_> = again.iter().map(|contact| contact.impulse.x).collect();
        assert_eq!(impulses, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_rotating_box_stays_inside_its_axis_aligned_box() {
        let mut body = body(
            Vec3::ZERO,
            Quat::from_rotation_z(std::f32::consts::FRAC_PI_4),
        );
        let unit = Placed::new(0, &body, Vec3::ZERO, Vec3::ONE);
        let diagonal = 2.0_f32.sqrt();
        let expected = Vec3::new(diagonal, diagonal, 1.0) + AHEAD / 2.0;
        let (center, half) = unit.swept();
        assert!(center == Vec3::ZERO && half.abs_diff_eq(expected, 1e-5));
        body.linear = Vec3::new(0.0, -6.0, 0.0);
        let (low, high) = {
            let (center, half) = Placed::new(0, &body, Vec3::ZERO, Vec3::ONE).swept();
            (center - half, center + half)
        };
        assert!(low.abs_diff_eq(-expected - Vec3::Y * 0.1, 1e-5), "{low}");
        assert!(high.abs_diff_eq(expected, 1e-5), "{high}");
    }
}
