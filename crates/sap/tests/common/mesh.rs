//! Meshes, and their boxes by a plain loop.

use super::equal;
use super::scenes::Random;
use libtest_mimic::Failed;
use sap::Aabb;

/// Returns points around the origin; if `strange`, some are infinite, NaN, or zero of either sign.
pub fn vertices(random: &mut Random, n: usize, strange: bool) -> Vec<[f32; 3]> {
    const STRANGE: [f32; 6] = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
    ];
    let one = |random: &mut Random| {
        [(); 3].map(|()| {
            if strange && random.below(12) == 0 {
                STRANGE[random.below(6)]
            } else {
                random.between(-10.0, 10.0)
            }
        })
    };
    (0..n).map(|_| one(random)).collect()
}

pub fn triangles(random: &mut Random, n: usize, vertices: usize) -> Vec<[u32; 3]> {
    (0..n)
        .map(|_| [(); 3].map(|()| random.below(vertices) as u32))
        .collect()
}

/// Returns the offsets of objects of up to `max` vertices each, many of them empty, and at most
/// `vertices` in all.
pub fn offsets(random: &mut Random, vertices: usize, max: usize) -> Vec<u32> {
    let mut offsets = vec![random.below(vertices / 8 + 1) as u32];
    loop {
        let size = match random.below(3) {
            0 => 0,
            1 => random.below(9),
            _ => random.below(max + 1),
        };
        let next = offsets[offsets.len() - 1] + size as u32;
        if next as usize > vertices || offsets.len() > 4 * vertices + 4 {
            return offsets;
        }
        offsets.push(next);
    }
}

/// Returns the box of some points, as numbers that compare bit for bit.
pub fn plain(points: impl Iterator<Item = [f32; 3]>) -> [u32; 6] {
    let (mut min, mut max) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    let mut nan = [false; 3];
    for point in points {
        for axis in 0..3 {
            let value = point[axis];
            nan[axis] |= value.is_nan();
            if value.total_cmp(&min[axis]).is_lt() {
                min[axis] = value;
            }
            if value.total_cmp(&max[axis]).is_gt() {
                max[axis] = value;
            }
        }
    }
    for axis in (0..3).filter(|&axis| nan[axis]) {
        min[axis] = f32::from_bits(0xffff_ffff);
        max[axis] = f32::from_bits(0x7fff_ffff);
    }
    bits(&Aabb::new(min, max))
}

pub fn plain_triangles(vertices: &[[f32; 3]], triangles: &[[u32; 3]]) -> Vec<[u32; 6]> {
    let of = |triangle: &[u32; 3]| plain(triangle.iter().map(|&i| vertices[i as usize]));
    triangles.iter().map(of).collect()
}

pub fn plain_objects(vertices: &[[f32; 3]], offsets: &[u32]) -> Vec<[u32; 6]> {
    let of = |ends: &[u32]| {
        let range = ends[0] as usize..ends[1] as usize;
        plain(vertices[range].iter().copied())
    };
    offsets.windows(2).map(of).collect()
}

pub fn bits(b: &Aabb) -> [u32; 6] {
    let [x, y, z] = b.min.map(f32::to_bits);
    let [u, v, w] = b.max.map(f32::to_bits);
    [x, y, z, u, v, w]
}

/// Fails with the first box that differs.
pub fn same_boxes(found: &[[u32; 6]], expected: &[[u32; 6]]) -> Result<(), Failed> {
    equal(found.len(), expected.len())?;
    let mut both = found.iter().zip(expected).enumerate();
    match both.find(|(_, (f, e))| f != e) {
        None => Ok(()),
        Some((at, (f, e))) => Err(format!("box {at} has the words {f:x?}, expected {e:x?}").into()),
    }
}

/// Numbers of vertices, and max vertices of an object, around the sizes of warps, their shares and
/// tasks.
pub const SHAPES: &[(usize, usize)] = &[
    (0, 0),
    (1, 1),
    (31, 4),
    (33, 40),
    (255, 3),
    (256, 64),
    (257, 300),
    (2049, 8),
    (5000, 1000),
    (70_000, 40_000),
];

/// Offsets that are wrong for 10 vertices, with the index of the first wrong one.
pub const BAD_OFFSETS: &[(&[u32], usize)] = &[
    (&[11, 11], 0),
    (&[0, 4, 3, 10], 2),
    (&[0, 4, 11, 3], 2),
    (&[0, 10, u32::MAX], 2),
];
