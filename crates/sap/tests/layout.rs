//! A slice of boxes is a slice of `parry3d`'s boxes and of pairs of `glam::Vec3`, without a copy.

use glam::Vec3;
use parry3d::bounding_volume::Aabb as ParryAabb;
use sap::Aabb;
use std::mem::offset_of;

const BOXES: [Aabb; 2] = [
    Aabb::new([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
    Aabb::new([-0.0, f32::NEG_INFINITY, 1e-40], [7.0, 8.0, f32::INFINITY]),
];

fn vectors() -> [[Vec3; 2]; 2] {
    BOXES.map(|b| [Vec3::from(b.min), Vec3::from(b.max)])
}

#[test]
fn boxes_are_pairs_of_vectors() {
    let pairs: &[[Vec3; 2]] = bytemuck::cast_slice(&BOXES);
    assert_eq!(pairs, vectors());
    let vectors = vectors();
    let back: &[Aabb] = bytemuck::cast_slice(&vectors);
    assert_eq!(back, BOXES);
    assert!(back[1].min[0].is_sign_negative());
    assert_eq!(back.as_ptr().cast(), vectors.as_ptr());
}

#[test]
fn boxes_are_boxes_of_parry() {
    assert_eq!(size_of::<ParryAabb>(), size_of::<Aabb>());
    assert_eq!(align_of::<ParryAabb>(), align_of::<Aabb>());
    assert_eq!(offset_of!(ParryAabb, mins), offset_of!(Aabb, min));
    assert_eq!(offset_of!(ParryAabb, maxs), offset_of!(Aabb, max));
    let theirs = vectors().map(|[mins, maxs]| ParryAabb::new(mins, maxs));
    // SAFETY: both types are `repr(C)`, with the size, alignment and offsets just compared, and
    // hold six `f32` of any bits.
    let (cast, back): (&[ParryAabb], &[Aabb]) = unsafe {
        (
            std::slice::from_raw_parts(BOXES.as_ptr().cast(), BOXES.len()),
            std::slice::from_raw_parts(theirs.as_ptr().cast(), theirs.len()),
        )
    };
    assert_eq!(cast, theirs);
    assert_eq!(back, BOXES);
}
