//! Edge cases of one frame each.

pub use super::random::{Random, around, uniform_in};
use super::{Setup, equal, oracle, quick, same};
use libtest_mimic::Failed;
use sap::{Aabb, OverlapRule, Pair};
use std::sync::OnceLock;

/// The oracle of a scene.
pub enum Oracle {
    Brute,
    Parry,
}

/// A frame, its oracle, and the number of pairs under both rules if that is known.
pub struct Scene {
    pub name: String,
    pub boxes: Vec<Aabb>,
    oracle: Oracle,
    counts: Option<[usize; 2]>,
}

impl Scene {
    fn new(name: impl Into<String>, boxes: Vec<Aabb>) -> Self {
        Self {
            name: name.into(),
            boxes,
            oracle: Oracle::Brute,
            counts: None,
        }
    }

    /// Under the closed rule, then under the open one.
    fn counts(self, closed: usize, open: usize) -> Self {
        Self {
            counts: Some([closed, open]),
            ..self
        }
    }

    fn parry(self) -> Self {
        Self {
            oracle: Oracle::Parry,
            ..self
        }
    }
}

pub fn check(scene: &Scene, expected: &OnceLock<Vec<Pair>>, setup: &Setup) -> Result<(), Failed> {
    let expected = expected.get_or_init(|| match scene.oracle {
        Oracle::Brute => oracle::brute(&scene.boxes, setup.rule),
        Oracle::Parry => oracle::parry(&scene.boxes, setup.rule),
    });
    if let Some(counts) = scene.counts {
        equal(expected.len(), counts[setup.rule as usize])?;
    }
    same(&setup.pairs(&scene.boxes), expected)
}

pub fn at(x: f32, y: f32, z: f32) -> Aabb {
    Aabb::new([x, y, z], [x + 1.0, y + 1.0, z + 1.0])
}

/// Returns the uniform scene: about 1.36 pairs a box.
pub fn uniform(n: usize, seed: u64) -> Vec<Aabb> {
    uniform_in(n, [(n as f32).cbrt(); 3], seed)
}

/// Returns boxes with sizes over six decades, most of them small.
pub fn mixed_sizes(n: usize, seed: u64) -> Vec<Aabb> {
    let mut random = Random::new(seed);
    let mut one = || {
        let half = 10_f32.powf(random.between(-4.0, 2.0));
        around(
            [(); 3].map(|()| random.between(-100.0, 100.0)),
            [(); 3].map(|()| half * random.between(0.5, 1.0)),
        )
    };
    (0..n).map(|_| one()).collect()
}

/// Returns a few dense heaps far from each other.
pub fn clustered(n: usize, seed: u64) -> Vec<Aabb> {
    let mut random = Random::new(seed);
    let heaps: Vec<[f32; 3]> = (0..5)
        .map(|_| [(); 3].map(|()| random.between(-1e4, 1e4)))
        .collect();
    let mut one = || {
        let heap = heaps[random.below(heaps.len())];
        let center = heap.map(|c| c + (0..4).map(|_| random.between(-4.0, 4.0)).sum::<f32>());
        around(center, [random.between(0.1, 0.4); 3])
    };
    (0..n).map(|_| one()).collect()
}

fn grid(nx: usize, ny: usize, step: f32) -> Vec<Aabb> {
    (0..nx * ny)
        .map(|i| at((i % nx) as f32 * step, (i / nx) as f32 * step, 0.0))
        .collect()
}

/// Returns all scenes, smaller ones if `quick`.
pub fn all() -> Vec<Scene> {
    let small = quick();
    let mut scenes = Vec::new();
    // Around powers of two, and so around the sizes of blocks: 8 boxes, 32 lanes, 64 records, a
    // tile.
    let most = if small { 8 } else { 13 };
    let powers = (1..most).flat_map(|k| [(1_usize << k) - 1, 1 << k, (1 << k) + 1]);
    let mut sizes: Vec<usize> = [0].into_iter().chain(powers).collect();
    sizes.dedup();
    sizes.retain(|&n| n <= 4097);
    scenes.extend(
        sizes
            .into_iter()
            .map(|n| Scene::new(format!("size_{n}"), uniform(n, n as u64))),
    );

    let cube = Aabb::new([-1.0; 3], [1.0; 3]);
    scenes.push(Scene::new("identical_32", vec![cube; 32]).counts(496, 496));
    scenes.push(Scene::new("identical_300", vec![cube; 300]).counts(300 * 299 / 2, 300 * 299 / 2));
    let nested = (0..200)
        .map(|i| around([0.0; 3], [1.0 + i as f32; 3]))
        .collect();
    scenes.push(Scene::new("nested_200", nested).counts(200 * 199 / 2, 200 * 199 / 2));
    scenes.push(Scene::new("disjoint_900", grid(30, 30, 1.5)).counts(0, 0));

    let faces = vec![
        at(0.0, 0.0, 0.0),
        at(1.0, 0.0, 0.0),
        at(0.0, 1.0, 0.0),
        at(0.0, 0.0, 1.0),
    ];
    scenes.push(Scene::new("touching_faces_edges", faces).counts(6, 0));
    scenes
        .push(Scene::new("touching_edge", vec![at(0.0, 0.0, 0.0), at(1.0, 1.0, 0.0)]).counts(1, 0));
    scenes.push(
        Scene::new(
            "touching_corner",
            vec![at(0.0, 0.0, 0.0), at(1.0, 1.0, 1.0)],
        )
        .counts(1, 0),
    );
    scenes.push(
        Scene::new(
            "touching_grid_27",
            (0..27)
                .map(|i| at((i % 3) as f32, (i / 3 % 3) as f32, (i / 9) as f32))
                .collect(),
        )
        .counts(158, 0),
    );
    let point = |x: f32| Aabb::new([x; 3], [x; 3]);
    scenes.push(
        Scene::new(
            "points_on_points",
            [1.0, 1.0, 2.0, 1.0, 2.0].map(point).to_vec(),
        )
        .counts(4, 0),
    );
    scenes.push(
        Scene::new(
            "point_in_box",
            vec![
                at(0.0, 0.0, 0.0),
                point(0.5),
                point(1.0),
                point(0.0),
                point(5.0),
            ],
        )
        .counts(3, 1),
    );
    let plates = (0..60).map(|i| {
        let mut b = at((i % 4) as f32, (i / 4 % 4) as f32, (i / 16) as f32);
        b.max[i % 3] = b.min[i % 3];
        b
    });
    scenes.push(Scene::new("zero_volume_plates", plates.collect()));
    // Thin boxes that begin where others begin or end, on every axis.
    let mut random = Random::new(5);
    let lattice = (0..700).map(|_| {
        let min: [f32; 3] = [(); 3].map(|()| random.below(6) as f32);
        Aabb::new(min, min.map(|v| v + random.below(3) as f32))
    });
    scenes.push(Scene::new("thin_on_a_lattice", lattice.collect()));

    scenes.push(Scene::new("row_200", grid(200, 1, 1.0)).counts(199, 0));
    scenes.push(Scene::new("grid_20x20", grid(20, 20, 1.0)).counts(1482, 0));
    let chain = |n: usize| (0..n).map(|i| at(i as f32, i as f32, i as f32)).collect();
    scenes.push(Scene::new("chain_4096", chain(4096)).counts(4095, 0));
    let flat_chain =
        (0..100).map(|i| Aabb::new([0.6 * i as f32, 0.0, 0.0], [0.6 * i as f32 + 1.0, 0.0, 0.0]));
    scenes.push(Scene::new("chain_zero_thickness_100", flat_chain.collect()).counts(99, 0));

    let from = |min: f32, max: f32| Aabb::new([min; 3], [max; 3]);
    scenes.push(
        Scene::new(
            "negative_zero",
            vec![
                from(-1.0, -0.0),
                from(0.0, 1.0),
                from(0.0, -0.0),
                from(-0.0, 0.0),
            ],
        )
        .counts(6, 0),
    );
    let tiny = f32::from_bits(1);
    let denormal = vec![
        from(-tiny, 0.0),
        from(0.0, tiny),
        from(tiny, 2.0 * tiny),
        from(-tiny, tiny),
        from(0.0, 0.0),
        from(-1.0, -tiny),
    ];
    scenes.push(Scene::new("denormals", denormal));

    let huge = f32::MAX;
    let mut far = vec![
        from(huge, huge),
        from(-huge, huge),
        from(-huge, -huge),
        from(-huge, 0.0),
        from(huge / 2.0, huge),
    ];
    far.extend((0..300).map(|i| {
        around(
            [huge / 400.0 * i as f32, -huge / 2.0, huge / 300.0],
            [huge / 500.0; 3],
        )
    }));
    scenes.push(Scene::new("near_f32_max", far));
    let mut beside = uniform(500, 8);
    beside.extend(
        (0..100).map(|i| around([1e30 * (i % 10) as f32, -1e25 * i as f32, 0.0], [3e29; 3])),
    );
    beside.extend((0..100).map(|i| around([i as f32 * 1e-30; 3], [2e-30; 3])));
    scenes.push(Scene::new("tiny_beside_huge", beside));
    let mut giant = uniform(3000, 9);
    giant[1234] = around([3.0; 3], [5e5; 3]);
    scenes.push(Scene::new("one_giant", giant));
    scenes.push(Scene::new("mixed_sizes", mixed_sizes(3000, 10)));
    scenes.push(Scene::new("clustered", clustered(3000, 11)));

    let walled = |n: usize| {
        let (mut boxes, side) = (uniform(n, 12), (n as f32).cbrt());
        for axis in 0..3 {
            for end in [-1.0, side + 1.0] {
                let (mut center, mut half) = ([side / 2.0; 3], [1e6; 3]);
                (center[axis], half[axis]) = (end, 1.5);
                boxes.push(around(center, half));
            }
        }
        boxes
    };
    scenes.push(Scene::new("six_walls", walled(if small { 2_000 } else { 64_000 })).parry());

    let inf = f32::INFINITY;
    let mut planes = uniform(2000, 13);
    planes.push(Aabb::new([-inf, -inf, -inf], [inf, 3.0, inf]));
    planes.push(Aabb::new([-inf, 4.0, -inf], [inf, 4.0, inf]));
    planes.push(Aabb::new([5.0, -inf, -inf], [inf; 3]));
    planes.push(Aabb::new([-inf; 3], [inf; 3]));
    planes.push(Aabb::new([inf; 3], [inf; 3]));
    planes.push(Aabb::new([-inf; 3], [-inf; 3]));
    scenes.push(Scene::new("infinite_sides", planes));
    // The first two overlap the third at infinity.
    let mut ends_of_range = vec![
        Aabb::new([-0.5, -1e38, f32::MIN], [inf, 1.0, 2.0]),
        Aabb::new([f32::MIN, 1e30, -0.5], [-1e-40, inf, -0.0]),
        Aabb::new([inf, -inf, -1e-45], [inf, -1e38, 1e38]),
    ];
    let ends = [-inf, f32::MIN, -1e-45, 0.0, 1e-45, f32::MAX, inf];
    let mut random = Random::new(27);
    ends_of_range.extend((0..297).map(|_| {
        let sides = [(); 3].map(|()| {
            let (first, second) = (random.below(ends.len()), random.below(ends.len()));
            (ends[first.min(second)], ends[first.max(second)])
        });
        Aabb::new(sides.map(|side| side.0), sides.map(|side| side.1))
    }));
    scenes.push(Scene::new("ends_of_the_range", ends_of_range));
    let shaft = (0..400).map(|i| Aabb::new([-inf, i as f32, -inf], [inf, i as f32 + 1.0, inf]));
    scenes.push(Scene::new("infinite_slabs_400", shaft.collect()).counts(399, 0));

    let mut holes = uniform(1000, 14);
    holes.iter_mut().step_by(3).for_each(|b| *b = Aabb::EMPTY);
    scenes.push(Scene::new("empty_boxes", holes));
    scenes.push(Scene::new("empty_alone", vec![Aabb::EMPTY; 50]).counts(0, 0));
    scenes.push(
        Scene::new(
            "empty_first_and_last",
            vec![Aabb::EMPTY, cube, cube, Aabb::EMPTY],
        )
        .counts(1, 1),
    );

    let n = if small { 500 } else { 6000 };
    let side = (n as f32).sqrt();
    for axis in 0..3 {
        let mut sides = [side; 3];
        sides[axis] = 0.0;
        let mut boxes = uniform_in(n, sides, 15);
        boxes
            .iter_mut()
            .for_each(|b| (b.min[axis], b.max[axis]) = (2.0, 3.0));
        scenes.push(Scene::new(
            format!("all_share_one_{}", ["x", "y", "z"][axis]),
            boxes,
        ));
        let mut sides = [0.5; 3];
        sides[axis] = n as f32 / 4.0;
        scenes.push(Scene::new(
            format!("one_column_along_{}", ["x", "y", "z"][axis]),
            uniform_in(n, sides, 16),
        ));
    }
    scenes.push(
        Scene::new(
            "plane_30k",
            uniform_in(if small { 1000 } else { 30_000 }, [173.0, 0.0, 173.0], 17),
        )
        .parry(),
    );
    scenes.push(
        Scene::new(
            "uniform_50k",
            uniform(if small { 2000 } else { 50_000 }, 18),
        )
        .parry(),
    );
    scenes.push(
        Scene::new(
            "clustered_20k",
            clustered(if small { 2000 } else { 20_000 }, 19),
        )
        .parry(),
    );
    scenes
}

/// Returns the index of a rule among the counts.
pub fn of<T: Copy>(rule: OverlapRule, both: [T; 2]) -> T {
    both[rule as usize]
}
