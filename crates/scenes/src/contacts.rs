//! Finds the contact points of the pairs of the broad phase with `parry3d`'s manifolds of cuboids
//! and balls.

use super::body::{Body, Contact, FRAME};
use super::chair::Part;
use glam::{Mat3, Vec3};
use parry3d::math::Pose3;
use parry3d::query::ContactManifold;
use parry3d::query::details::{
    contact_manifold_ball_ball, contact_manifold_convex_ball, contact_manifold_cuboid_cuboid,
};
use parry3d::shape::{Ball, Cuboid};
use radsweep::Pair;
use rayon::prelude::*;

/// Distance in metres at which contacts are made, in addition to the bodies' motion within the
/// frame.
const AHEAD: f32 = 0.01;

/// Share of the relative motion by which two parts may approach in any direction, since contacts
/// turn them during the frame; in the direction in which they move, they may by all of it. In the
/// worst frame of 500 chairs that fall onto a heap this leaves 10,400 contacts, of which 1,200 get
/// an impulse. Chairs pile up as with all in any direction, and sink no deeper.
const ASIDE: f32 = 0.5;

/// Pairs per task.
const SHARE: usize = 128;

/// The form of a part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum Form {
    #[default]
    Box,
    /// A ball around the body's centre of mass, with the radius as half extents.
    Ball,
}

/// One oriented box of a body, or its ball.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Placed {
    pub body: u32,
    pub form: Form,
    pub pose: Pose3,
    pub half: Vec3,
    /// The motion of its centre within the frame, and how far any of its points may be from that by
    /// rotation.
    pub way: Vec3,
    pub turn: f32,
    /// Its axes, each as long as the half extent.
    arms: Mat3,
}

impl Placed {
    /// Places a part of a body.
    pub(super) fn new(index: u32, body: &Body, form: Form, part: &Part) -> Self {
        let arm = body.pose.rotation * part.center;
        let angle = body.angular.length() * FRAME;
        let radius = match form {
            Form::Box => part.half.length(),
            Form::Ball => 0.0,
        };
        let arms = match form {
            Form::Box => Mat3::from_quat(body.pose.rotation),
            Form::Ball => Mat3::IDENTITY,
        };
        Self {
            body: index,
            form,
            pose: Pose3::from_parts(body.pose * part.center, body.pose.rotation),
            half: part.half,
            way: body.speed(arm) * FRAME,
            turn: angle * radius + angle * angle / 2.0 * arm.length(),
            arms: arms * Mat3::from_diagonal(part.half),
        }
    }

    /// Returns centre and half extents of the axis-aligned box that contains it during the whole
    /// frame, enlarged by half the contact margin.
    pub(super) fn swept(&self) -> (Vec3, Vec3) {
        let center = self.pose.translation + self.way / 2.0;
        (
            center,
            self.reach(Mat3::IDENTITY) + self.way.abs() / 2.0 + self.turn + AHEAD / 2.0,
        )
    }

    /// Returns how far it reaches from its centre along each of these axes, times their lengths.
    fn reach(&self, axes: Mat3) -> Vec3 {
        let onto = axes.transpose();
        (onto * self.arms.x_axis).abs()
            + (onto * self.arms.y_axis).abs()
            + (onto * self.arms.z_axis).abs()
    }
}

/// Returns the max distance by which two parts can approach each other within the frame.
fn reach(a: &Placed, b: &Placed) -> f32 {
    (a.way - b.way).length() + a.turn + b.turn
}

/// Tells whether two parts stay apart by more than `margin` while they move: along an axis of
/// the world, or one of a box.
fn stay_apart(a: &Placed, b: &Placed, margin: f32) -> bool {
    let start = b.pose.translation - a.pose.translation;
    let end = start + b.way - a.way;
    let apart = |axes: Mat3, lengths: Vec3| {
        let onto = axes.transpose();
        let (start, end) = (onto * start, onto * end);
        // 0 where it passes the other centre.
        let nearest = start.min(end).max((-start).min(-end));
        let bound = a.reach(axes) + b.reach(axes) + margin * lengths;
        nearest.cmpgt(bound).any()
    };
    apart(Mat3::IDENTITY, Vec3::ONE) || apart(a.arms, a.half) || apart(b.arms, b.half)
}

/// Finds the contact points of two parts.
fn touch(a: &Placed, b: &Placed, manifold: &mut ContactManifold<(), ()>) {
    // The manifold was used for another pair: only its memory is reused.
    manifold.clear();
    let reach = reach(a, b);
    if stay_apart(a, b, AHEAD + ASIDE * reach + a.turn + b.turn) {
        return;
    }
    let between = a.pose.inv_mul(&b.pose);
    let ahead = AHEAD + reach;
    let cuboid = |placed: &Placed| Cuboid::new(placed.half);
    let ball = |placed: &Placed| Ball::new(placed.half.x);
    match (a.form, b.form) {
        (Form::Box, Form::Box) => {
            contact_manifold_cuboid_cuboid(&between, &cuboid(a), &cuboid(b), ahead, manifold);
        }
        (Form::Ball, Form::Ball) => {
            contact_manifold_ball_ball(&between, &ball(a), &ball(b), ahead, manifold);
        }
        (Form::Box, Form::Ball) => {
            let (a, b) = (cuboid(a), ball(b));
            contact_manifold_convex_ball(&between, &a, &b, None, None, ahead, manifold, false);
        }
        (Form::Ball, Form::Box) => {
            let (a, b) = (ball(a), cuboid(b));
            let back = between.inverse();
            contact_manifold_convex_ball(&back, &b, &a, None, None, ahead, manifold, true);
        }
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
        touch(a, b, manifold);
        if manifold.points.is_empty() {
            return;
        }
        let first = last.partition_point(|contact| contact.pair < pair);
        let known = last[first..]
            .iter()
            .take_while(|contact| contact.pair == pair);
        let normal = a.pose.rotation * manifold.local_n1;
        let [first, second] = [a, b].map(|part| &bodies[part.body as usize]);
        let aside = AHEAD + ASIDE * reach(a, b);
        found.extend(manifold.points.iter().filter_map(|point| {
            let anchors = [
                a.pose * point.local_p1 - first.pose.translation,
                b.pose * point.local_p2 - second.pose.translation,
            ];
            let approach = (first.speed(anchors[0]) - second.speed(anchors[1])).dot(normal) * FRAME;
            if point.dist > aside + approach.max(0.0) {
                return None;
            }
            let features = (point.fid1.0, point.fid2.0);
            let known = known.clone().find(|contact| contact.features == features);
            Some(Contact {
                pair,
                features,
                bodies: [a.body, b.body],
                normal,
                anchors,
                separation: point.dist,
                impulse: known.map_or(Vec3::ZERO, |contact| contact.impulse),
            })
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
    use glam::Quat;

    fn body(position: Vec3, rotation: Quat) -> Body {
        Body {
            pose: Pose3::from_parts(position, rotation),
            linear: Vec3::ZERO,
            angular: Vec3::ZERO,
            inverse_mass: 1.0,
            inertia: Mat3::IDENTITY,
            inverse_inertia: Mat3::IDENTITY,
            damping: 0.0,
            asleep: false,
        }
    }

    fn cuboid(index: u32, body: &Body, half: Vec3) -> Placed {
        let center = Vec3::ZERO;
        Placed::new(index, body, Form::Box, &Part { center, half })
    }

    #[test]
    fn a_cube_touches_a_plate_in_four_corners_and_keeps_its_impulses() {
        let half = Vec3::splat(0.5);
        let turned = Quat::from_rotation_y(0.3);
        let bodies = [
            body(Vec3::ZERO, Quat::IDENTITY),
            body(Vec3::new(0.1, 0.999, 0.2), turned),
        ];
        let plate = cuboid(0, &bodies[0], Vec3::new(5.0, 0.5, 5.0));
        let boxes = [plate, cuboid(1, &bodies[1], half)];
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
        let unit = cuboid(0, &body, Vec3::ONE);
        let diagonal = 2.0_f32.sqrt();
        let expected = Vec3::new(diagonal, diagonal, 1.0) + AHEAD / 2.0;
        let (center, half) = unit.swept();
        assert!(center == Vec3::ZERO && half.abs_diff_eq(expected, 1e-5));
        body.linear = Vec3::new(0.0, -6.0, 0.0);
        let (low, high) = {
            let (center, half) = cuboid(0, &body, Vec3::ONE).swept();
            (center - half, center + half)
        };
        assert!(low.abs_diff_eq(-expected - Vec3::Y * 0.1, 1e-5), "{low}");
        assert!(high.abs_diff_eq(expected, 1e-5), "{high}");
    }
    #[test]
    fn a_ball_touches_boxes_and_balls_at_one_point_in_either_order() {
        let radius = 0.5;
        let bodies = [
            body(Vec3::ZERO, Quat::from_rotation_y(0.3)),
            body(Vec3::new(0.0, 0.99, 0.0), Quat::from_rotation_x(1.0)),
            body(Vec3::new(0.6, 1.79, 0.0), Quat::IDENTITY),
        ];
        let ball = |index: u32| {
            let (center, half) = (Vec3::ZERO, Vec3::splat(radius));
            let body = &bodies[index as usize];
            Placed::new(index, body, Form::Ball, &Part { center, half })
        };
        let boxes = [cuboid(0, &bodies[0], Vec3::splat(0.5)), ball(1), ball(2)];
        let (_, half) = boxes[1].swept();
        assert_eq!(half, Vec3::splat(radius + AHEAD / 2.0));
        let pairs = [Pair::new(0, 1), Pair::new(1, 2)];
        let found = find(&pairs, &boxes, &bodies, &[]);
        assert_eq!(found.len(), 2);
        for (contact, normal) in found.iter().zip([Vec3::Y, Vec3::new(0.6, 0.8, 0.0)]) {
            assert!(contact.normal.abs_diff_eq(normal, 1e-5), "{contact:?}");
            let depth = if contact.pair.a == 0 { -0.01 } else { 0.0 };
            assert!((contact.separation - depth).abs() < 1e-5, "{contact:?}");
            assert!(contact.anchors[1].abs_diff_eq(-normal * radius, 1e-5));
        }
        // The ball first: the opposite normal, and the anchors exchanged.
        let swapped = [boxes[1], boxes[0]];
        let back = find(&pairs[..1], &swapped, &bodies, &[]);
        assert!(back[0].normal.abs_diff_eq(-found[0].normal, 1e-5));
        assert!((back[0].separation - found[0].separation).abs() < 1e-5);
        assert!(back[0].anchors[0].abs_diff_eq(found[0].anchors[1], 1e-5));
    }
}
