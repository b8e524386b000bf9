//! Frames of boxes that move, and the results of all ranks against those of one engine.

#[path = "../../../crates/sap/tests/common/random.rs"]
#[allow(dead_code)]
pub mod random;

use sap::{Aabb, BroadPhase};
use sap_dist::{Pair, Transport};

/// Boxes that come nearer to each other from frame to frame.
pub fn frame(count: usize, number: usize) -> Vec<Aabb> {
    let scale = (count as f32 / 5000.0).cbrt();
    let shrink = 1.0 - 0.1 * number as f32;
    let sides = [40.0 * shrink * shrink, 20.0, 15.0].map(|side| side * scale);
    let mut boxes = random::uniform_in(count, sides, 4);
    boxes[9] = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
    boxes
}

/// Returns the ids and boxes of a rank, which change from frame to frame.
pub fn part(boxes: &[Aabb], number: usize, transport: &impl Transport) -> (Vec<u64>, Vec<Aabb>) {
    let (rank, size) = (transport.rank(), transport.size());
    let own = (0..boxes.len()).filter(|i| (i + number) % size == rank);
    own.map(|i| (i as u64, boxes[i])).unzip()
}

/// Compares the pairs, started and ended ones, of all ranks with those of an engine.
pub fn compare(transport: &mut impl Transport, found: [Vec<Pair>; 3], one: &BroadPhase) {
    let expected = [one.pairs(), one.started(), one.ended()];
    for (found, expected) in found.iter().zip(expected) {
        let message = bytemuck::cast_slice(found).to_vec();
        let all = transport.exchange(vec![message; transport.size()]);
        let all: Vec<u8> = all.expect("all are there").concat();
        let mut all: Vec<Pair> = bytemuck::pod_collect_to_vec(&all);
        all.sort_unstable();
        let expected = expected.iter().map(|pair| Pair {
            a: pair.a.into(),
            b: pair.b.into(),
        });
        assert!(
            all.into_iter().eq(expected),
            "other pairs than one engine's"
        );
    }
}
