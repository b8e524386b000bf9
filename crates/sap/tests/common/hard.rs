//! Scenes that are hard for some search: few pairs, and many boxes that share an interval, a cell,
//! or a part of a tree.

use super::scenes::{Random, around};
use sap::{Aabb, Filter, FilterFlags};

/// A named scene of any number of boxes.
pub struct Hard {
    pub name: &'static str,
    pub boxes: fn(usize) -> Vec<Aabb>,
    pub filters: Option<fn(usize) -> Filter>,
}

const fn plain(name: &'static str, boxes: fn(usize) -> Vec<Aabb>) -> Hard {
    Hard {
        name,
        boxes,
        filters: None,
    }
}

const fn heap(name: &'static str, filter: fn(usize) -> Filter) -> Hard {
    Hard {
        name,
        boxes: one_place,
        filters: Some(filter),
    }
}

/// All hard scenes.
pub const ALL: &[Hard] = &[
    plain("uniform", uniform),
    plain("clusters", clusters),
    plain("far_plane", |n| {
        with(n, Aabb::new([f32::MIN; 3], [f32::MAX, 0.0, f32::MAX]))
    }),
    plain("far_body", |n| with(n, around([5.0, -1e8, 5.0], [0.5; 3]))),
    plain("far_few", far_few),
    plain("sticks_x", |n| sticks(n, 1)),
    plain("sticks_xyz", |n| sticks(n, 3)),
    plain("diagonals", diagonals),
    plain("nested_rooms", |n| rooms(n, 1)),
    plain("nested_rooms_apart", |n| rooms(n, 8)),
    plain("plates_crossing", plates),
    plain("heavy_tails", |n| pareto(n, 1.0)),
    plain("heavier_tails", |n| pareto(n, 0.5)),
    plain("lighter_tails", |n| pareto(n, 2.0)),
    plain("giants_in_dust", giants),
    plain("grid_touching", grid),
    plain("few_values", few_values),
    plain("two_islands", islands),
    plain("sampled_harmless", |n| sampled_harmless(n, 0.001)),
    plain("sampled_harmless_sticks", |n| sampled_harmless(n, 1.0)),
    plain("line_of_needles", needles),
    heap("static_heap", |_| flags(FilterFlags::STATIC)),
    heap("asleep_heap", |_| flags(FilterFlags::ASLEEP)),
    heap("static_and_some", |i| {
        if i % 1000 == 7 {
            Filter::default()
        } else {
            flags(FilterFlags::STATIC)
        }
    }),
    heap("static_or_asleep_rarely", |i| {
        if i % 40 == 7 {
            flags(FilterFlags(3))
        } else {
            flags(FilterFlags::STATIC)
        }
    }),
    heap("one_group", |_| Filter {
        group: 9,
        ..Filter::default()
    }),
    heap("layers_that_never_meet", |i| Filter {
        layers: 1 << (i % 3),
        mask: 8,
        ..Filter::default()
    }),
];

fn flags(flags: FilterFlags) -> Filter {
    Filter {
        flags,
        ..Filter::default()
    }
}

impl Hard {
    /// Returns the boxes and their filters, if the scene has any.
    pub fn make(&self, n: usize) -> (Vec<Aabb>, Vec<Filter>) {
        let filters = self.filters.map(|of| (0..n).map(of).collect());
        ((self.boxes)(n), filters.unwrap_or_default())
    }
}

fn uniform(n: usize) -> Vec<Aabb> {
    super::scenes::uniform(n, 31)
}

fn clusters(n: usize) -> Vec<Aabb> {
    let mut random = Random::new(32);
    let side = (n as f32).cbrt();
    let heaps: Vec<[f32; 3]> = (0..20)
        .map(|_| [(); 3].map(|()| random.between(-1e4, 1e4)))
        .collect();
    let one = |i: usize| {
        let center = heaps[i % heaps.len()].map(|c| c + random.between(0.0, 0.4 * side));
        around(center, [0.2; 3])
    };
    (0..n).map(one).collect()
}

/// One box among uniform ones.
fn with(n: usize, one: Aabb) -> Vec<Aabb> {
    let mut boxes = uniform(n);
    boxes[n / 3] = one;
    boxes
}

fn far_few(n: usize) -> Vec<Aabb> {
    let mut boxes = uniform(n);
    for (k, b) in boxes.iter_mut().step_by(n / 9 + 1).enumerate() {
        let far = 1e30 * (k as f32 - 3.0);
        *b = around([far, 2.0 * far, -far], [1e22; 3]);
    }
    boxes
}

/// Long boxes along the first `axes` axes, about one pair each.
fn sticks(n: usize, axes: usize) -> Vec<Aabb> {
    let mut random = Random::new(33);
    let side = 40.0_f32;
    let thin = 0.5 / (n as f32).sqrt();
    let one = |i: usize| {
        let mut half = [thin * 20.0; 3];
        half[i % axes] = 10.0;
        around([(); 3].map(|()| random.between(0.0, side)), half)
    };
    (0..n).map(one).collect()
}

/// Cubes close together along a diagonal, each of which overlaps a few.
fn diagonals(n: usize) -> Vec<Aabb> {
    let one = |i: usize| {
        let (line, at) = ((i % 7) as f32 * 1000.0, (i / 7) as f32 * 0.3);
        around([at, line - at, at + line], [0.5, 0.5, 0.5])
    };
    (0..n).map(one).collect()
}

/// Rooms of six thin plates, one inside the other, at several places.
fn rooms(n: usize, places: usize) -> Vec<Aabb> {
    let one = |i: usize| {
        let (wall, room) = (i % 6, i / 6);
        let (place, room) = (room % places, room / places);
        let half = 1.0 + room as f32 * 1e-2;
        let (axis, out) = (wall / 2, if wall.is_multiple_of(2) { half } else { -half });
        // It touches neither the walls beside it nor those of the next room.
        let mut sides = [half - 2e-3; 3];
        sides[axis] = 1e-3;
        let mut center = [0.0; 3];
        center[axis] = out;
        center[0] += 1e3 * place as f32;
        around(center, sides)
    };
    (0..n).map(one).collect()
}

/// Large thin plates at right angles to each axis, each kind in its own part of space.
fn plates(n: usize) -> Vec<Aabb> {
    let mut random = Random::new(34);
    let part = (n as f32 / 3.0).cbrt();
    let one = |i: usize| {
        let axis = i % 3;
        let mut half = [2.0; 3];
        half[axis] = 1e-4;
        around([(); 3].map(|()| random.between(0.0, 3.0 * part)), half)
    };
    (0..n).map(one).collect()
}

fn pareto(n: usize, alpha: f32) -> Vec<Aabb> {
    let mut random = Random::new(35);
    let side = 6.0 * (n as f32).cbrt();
    let one = |_| {
        let half = [(); 3].map(|()| (0.1 * random.between(1e-6, 1.0).powf(-1.0 / alpha)).min(side));
        around([(); 3].map(|()| random.between(0.0, side)), half)
    };
    (0..n).map(one).collect()
}

fn giants(n: usize) -> Vec<Aabb> {
    let mut boxes = uniform(n);
    for b in boxes.iter_mut().step_by(n / 5 + 1) {
        *b = around(b.min, [1e4; 3]);
    }
    boxes
}

fn grid(n: usize) -> Vec<Aabb> {
    let side = (n as f64).cbrt().ceil() as usize;
    let at = |i: usize| [i % side, i / side % side, i / side / side].map(|x| x as f32);
    (0..n)
        .map(|i| Aabb::new(at(i), at(i).map(|x| x + 1.0)))
        .collect()
}

/// Coordinates of a few values only, and boxes thin on one axis.
fn few_values(n: usize) -> Vec<Aabb> {
    let mut random = Random::new(36);
    let values = ((n as f32).cbrt() * 1.5) as usize;
    let one = |_| {
        let min = [(); 3].map(|()| random.below(values) as f32);
        Aabb::new(min, min)
    };
    (0..n).map(one).collect()
}

fn islands(n: usize) -> Vec<Aabb> {
    let mut boxes = uniform(n);
    for b in boxes.iter_mut().skip(1).step_by(2) {
        *b = Aabb::new(b.min.map(|x| x + 1e6), b.max.map(|x| x + 1e6));
    }
    boxes
}

/// The sampled boxes are uniform; the others crowd, thin and without pairs if `thin`.
fn sampled_harmless(n: usize, thin: f32) -> Vec<Aabb> {
    let mut boxes = uniform(n);
    let sampled: Vec<usize> = sampled(n);
    let mut at = 0;
    for (i, b) in boxes.iter_mut().enumerate() {
        if at < sampled.len() && sampled[at] == i {
            at += 1;
            continue;
        }
        // On a diagonal within one cell, or as flat plates one above the other.
        let x = i as f32 / n as f32;
        *b = Aabb::new(
            [x * (1.0 - thin), x, x * (1.0 - thin)],
            [x + thin, x, x + thin],
        );
    }
    boxes
}

/// Returns the boxes that CUDA's plan samples: `sap_sample`.
pub fn sampled(n: usize) -> Vec<usize> {
    let count = n.min(2048);
    let one = |k: usize| {
        let (start, end) = (k * n / count, (k + 1) * n / count);
        start + ((k as u32).wrapping_mul(0x9e37_79b9) >> 7) as usize % (end - start)
    };
    (0..count).map(one).collect()
}

/// Long needles side by side on a line, among points.
fn needles(n: usize) -> Vec<Aabb> {
    let one = |i: usize| {
        let x = i as f32 * 1e-3;
        if i.is_multiple_of(2) {
            Aabb::new([x, -1e3, 0.0], [x, 1e3, 0.0])
        } else {
            Aabb::new([x, x, 1.0], [x, x, 1.0])
        }
    };
    (0..n).map(one).collect()
}

/// All boxes at one place.
fn one_place(n: usize) -> Vec<Aabb> {
    let mut random = Random::new(37);
    let one = |_| around([(); 3].map(|()| random.between(0.0, 0.5)), [1.0; 3]);
    (0..n).map(one).collect()
}
