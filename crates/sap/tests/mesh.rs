//! The boxes of meshes on the CPU, against a plain loop.

mod common;

use common::mesh::{
    BAD_OFFSETS, SHAPES, bits, offsets, plain_objects, plain_triangles, triangles, vertices,
};
use common::scenes::Random;
use sap::{
    Aabb, Backend, BroadPhase, Config, Error, InvalidReason, aabbs_from_mesh, aabbs_from_objects,
};

fn all_bits(boxes: &[Aabb]) -> Vec<[u32; 6]> {
    boxes.iter().map(bits).collect()
}

#[test]
fn triangles_as_a_loop_has_them() -> Result<(), Error> {
    for (seed, &(n, _)) in SHAPES.iter().enumerate() {
        for strange in [false, true] {
            let mut random = Random::new(seed as u64);
            let vertices = vertices(&mut random, n, strange);
            let triangles = triangles(&mut random, 2 * n, n);
            let boxes = aabbs_from_mesh(&vertices, &triangles)?;
            assert_eq!(all_bits(&boxes), plain_triangles(&vertices, &triangles));
        }
    }
    Ok(())
}

#[test]
fn objects_as_a_loop_has_them() -> Result<(), Error> {
    for (seed, &(n, max)) in SHAPES.iter().enumerate() {
        for strange in [false, true] {
            let mut random = Random::new(seed as u64);
            let vertices = vertices(&mut random, n, strange);
            let offsets = offsets(&mut random, n, max);
            let boxes = aabbs_from_objects(&vertices, &offsets)?;
            assert_eq!(all_bits(&boxes), plain_objects(&vertices, &offsets));
        }
    }
    let one = vertices(&mut Random::new(1), 100_000, false);
    let boxes = aabbs_from_objects(&one, &[0, 100_000])?;
    assert_eq!(all_bits(&boxes), plain_objects(&one, &[0, 100_000]));
    assert_eq!(aabbs_from_objects(&one, &[])?, []);
    assert_eq!(aabbs_from_objects(&one, &[7])?, []);
    Ok(())
}

#[test]
fn bad_indices_are_errors() -> Result<(), Error> {
    let vertices = [[0.0; 3]; 10];
    let bad = aabbs_from_mesh(&vertices, &[[0, 1, 9], [0, 10, 11], [12, 0, 0]]);
    assert!(matches!(
        bad,
        Err(Error::VertexIndex {
            triangle: 1,
            vertex: 10,
            vertices: 10
        })
    ));
    for (offsets, first) in BAD_OFFSETS {
        match aabbs_from_objects(&vertices, offsets) {
            Err(Error::Offset { index, offset, .. }) => {
                assert_eq!((index, offset), (*first, offsets[*first]));
            }
            other => panic!("{offsets:?}: {other:?}"),
        }
    }
    Ok(())
}

#[test]
fn a_broken_vertex_is_a_bad_box() -> Result<(), Error> {
    let vertices = [[0.0; 3], [1.0; 3], [0.0, f32::NAN, 0.0]];
    let boxes = aabbs_from_mesh(&vertices, &[[0, 1, 1], [0, 1, 2]])?;
    let config = Config {
        backend: Backend::Cpu,
        ..Config::default()
    };
    match BroadPhase::new(config)?.update(&boxes) {
        Err(Error::InvalidAabb { index: 1, reason }) => {
            assert_eq!(reason, InvalidReason::NanMin { axis: 1 });
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}
