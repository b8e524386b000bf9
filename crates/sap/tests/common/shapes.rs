//! The shapes of [`super::generators`]. Each makes boxes by four knobs.

use super::generators::named;
use super::random::{Random, around};
use sap::Aabb;

named! {
    /// A shape; the function of the same name makes its boxes.
    Shape:
    Uniform = "uniform",
    Clusters = "clusters",
    Sticks = "sticks",
    Rooms = "rooms",
    Plates = "plates",
    Diagonal = "diagonal",
    Heavy = "heavy",
    Giants = "giants",
    Grid = "grid",
    Few = "few",
    Point = "point",
    Tails = "tails",
    Islands = "islands",
    Tiny = "tiny",
}

/// Four numbers from 0 to 255, whose meaning depends on the shape.
#[derive(Clone, Copy)]
pub struct Knobs(pub [u8; 4]);

impl Knobs {
    fn part(self, knob: usize) -> f32 {
        f32::from(self.0[knob]) / 255.0
    }

    fn even(self, knob: usize, low: f32, high: f32) -> f32 {
        low + (high - low) * self.part(knob)
    }

    /// Returns a value between `low` and `high` on a logarithmic scale.
    fn log(self, knob: usize, low: f32, high: f32) -> f32 {
        low * (high / low).powf(self.part(knob))
    }

    fn choice(self, knob: usize, choices: usize) -> usize {
        usize::from(self.0[knob]) * choices / 256
    }
}

impl Shape {
    pub fn boxes(self, n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
        match self {
            Self::Uniform => uniform(n, knobs, random),
            Self::Clusters => clusters(n, knobs, random),
            Self::Sticks => sticks(n, knobs, random),
            Self::Rooms => rooms(n, knobs),
            Self::Plates => plates(n, knobs, random),
            Self::Diagonal => diagonal(n, knobs, random),
            Self::Heavy => heavy(n, knobs, random),
            Self::Giants => giants(n, knobs, random),
            Self::Grid => grid(n, knobs),
            Self::Few => few(n, knobs, random),
            Self::Point => point(n, knobs, random),
            Self::Tails => tails(n, knobs, random),
            Self::Islands => islands(n, knobs, random),
            Self::Tiny => tiny(n, knobs, random),
        }
    }
}

/// Returns the side of a cube that has `n` points at this density.
fn side_of(n: usize, density: f32) -> f32 {
    (n as f32 / density).cbrt()
}

fn within(random: &mut Random, sides: [f32; 3]) -> [f32; 3] {
    sides.map(|side| random.between(0.0, side))
}

/// Knobs: density; how flat on y and on z; size.
fn uniform(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, knobs.log(0, 1e-3, 8.0));
    let sides = [
        side,
        side * knobs.log(1, 1.0, 1e-4),
        side * knobs.log(2, 1.0, 1e-4),
    ];
    let size = knobs.log(3, 1.0, 1e-3);
    let mut one = || {
        let half = [(); 3].map(|()| size * random.between(0.2, 0.5));
        around(within(random, sides), half)
    };
    (0..n).map(|_| one()).collect()
}

/// Knobs: how many; how wide each is; how far apart, up to 1e30; size of a box.
fn clusters(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let (spread, reach) = (knobs.log(1, 0.1, 50.0), knobs.log(2, 1.0, 1e30));
    let half = knobs.log(3, 0.01, 1.0);
    let count = knobs.log(0, 1.0, 1000.0) as usize;
    let centers: Vec<[f32; 3]> = (0..count)
        .map(|_| [(); 3].map(|()| random.between(-reach, reach)))
        .collect();
    let mut one = || {
        let center = centers[random.below(count)];
        let near = center.map(|c| c + random.between(-spread, spread));
        around(near, [half; 3])
    };
    (0..n).map(|_| one()).collect()
}

/// Returns an axis for box `i`: always x, y or z, or all in turn.
fn axis(choice: usize, i: usize) -> usize {
    if choice == 0 { i % 3 } else { choice - 1 }
}

/// Boxes that are long on one axis. Knobs: which, or all three (straws); how long; how thick;
/// density.
fn sticks(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, knobs.log(3, 1e-3, 1.0));
    let (long, thick) = (side * knobs.log(1, 0.01, 1.0), knobs.log(2, 1e-3, 0.5));
    let one = |i: usize| {
        let mut half = [thick; 3];
        half[axis(knobs.choice(0, 4), i)] = long / 2.0;
        around(within(random, [side; 3]), half)
    };
    (0..n).map(one).collect()
}

/// Rooms of six plates inside larger rooms, at several places. No two plates touch. Knobs: the
/// number of places; how thick the plates are; how much of a face each covers; how the rooms are
/// stretched.
fn rooms(n: usize, knobs: Knobs) -> Vec<Aabb> {
    let places = (knobs.log(0, 1.0, 300.0) as usize).min(n / 6 + 1);
    let (thick, cover) = (knobs.log(1, 0.9, 1e-3), knobs.even(2, 1.0, 0.3));
    let stretch = [1.0, knobs.log(3, 1.0, 1e-3), knobs.log(3, 1.0, 1e3)];
    let apart = 3.0 * (n / 6 / places + 2) as f32;
    let one = |i: usize| {
        let (room, face) = (i / 6, i % 6);
        let (place, size) = (room % places, (room / places + 1) as f32);
        let mut half = [(size - 0.05) * cover; 3];
        half[face % 3] = 0.05 * thick;
        let mut center = [0.0; 3];
        center[face % 3] = if face < 3 { size } else { -size };
        center[0] += apart * place as f32;
        around(
            std::array::from_fn(|k| center[k] * stretch[k]),
            std::array::from_fn(|k| half[k] * stretch[k]),
        )
    };
    (0..n).map(one).collect()
}

/// Boxes that are thin on one axis. Knobs: which, or all three; how wide; how thick; density.
fn plates(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, knobs.log(3, 1e-6, 1.0));
    let (wide, thick) = (side * knobs.log(1, 0.01, 1.0), knobs.log(2, 1e-4, 0.5));
    let one = |i: usize| {
        let mut half = [wide / 2.0; 3];
        half[axis(knobs.choice(0, 4), i)] = thick;
        around(within(random, [side; 3]), half)
    };
    (0..n).map(one).collect()
}

/// Boxes along a diagonal of the space, or on a plane across it. Knobs: which; size; distance from
/// it; how flat.
fn diagonal(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = n as f32;
    let half = knobs.log(1, 1e-2, 1e3);
    let (away, flat) = (knobs.log(2, 1e-2, 1e4), knobs.log(3, 1.0, 1e-3));
    let mut one = || {
        let [t, u] = [(); 2].map(|()| random.between(0.0, side));
        let on = match knobs.choice(0, 4) {
            0 => [t, t, t],
            1 => [t, -t, t],
            2 => [t, -t, u],
            _ => [t, u, -t - u],
        };
        around(
            on.map(|x| x + random.between(-away, away)),
            [half, half * flat, half],
        )
    };
    (0..n).map(|_| one()).collect()
}

/// Boxes with sizes of heavy tails. Knobs: how heavy; density; the max size; whether the sides
/// differ.
fn heavy(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, knobs.log(1, 1e-4, 4.0));
    let (power, greatest) = (knobs.log(0, 0.2, 4.0), side * knobs.log(2, 0.01, 1.0));
    let size = |random: &mut Random| {
        let size = 0.05 * (1.0 - random.between(0.0, 1.0)).powf(-1.0 / power);
        size.min(greatest)
    };
    let mut one = || {
        let even = size(random);
        let half = match knobs.choice(3, 2) {
            0 => [even; 3],
            _ => [(); 3].map(|()| size(random)),
        };
        around(within(random, [side; 3]), half)
    };
    (0..n).map(|_| one()).collect()
}

/// Few giants among dust. Knobs: how many; their size; the dust's; density.
fn giants(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, knobs.log(3, 1e-3, 4.0));
    let many = (knobs.log(0, 1e-4, 0.3) * n as f32) as usize;
    let (giant, dust) = (side * knobs.log(1, 0.05, 1.0), knobs.log(2, 1e-4, 1.0));
    let step = n / many.max(1) + 1;
    let one = |i: usize| {
        let half = if i.is_multiple_of(step) { giant } else { dust };
        around(within(random, [side; 3]), [half; 3])
    };
    (0..n).map(one).collect()
}

/// A grid of cubes. Knobs: how flat on y and on z; the step, which is 1 where they touch; the axis
/// they are thin on.
fn grid(n: usize, knobs: Knobs) -> Vec<Aabb> {
    let x = (n as f32)
        .powf(knobs.even(0, 1.0 / 3.0, 1.0))
        .ceil()
        .max(1.0) as usize;
    let rest = n.div_ceil(x) as f32;
    let y = rest.powf(knobs.even(1, 0.5, 1.0)).ceil().max(1.0) as usize;
    let step = [1.0, 1.000_1, 0.5, 0.999_9, 4.0, 0.3][knobs.choice(2, 6)];
    let mut size = [1.0; 3];
    if let thin @ 1.. = knobs.choice(3, 4) {
        size[thin - 1] = 0.0;
    }
    let one = |i: usize| {
        let min = [i % x, i / x % y, i / x / y].map(|at| at as f32 * step);
        Aabb::new(min, std::array::from_fn(|k| min[k] + size[k]))
    };
    (0..n).map(one).collect()
}

/// Boxes with few distinct coordinates. Knobs: how many on each axis; the max length of a box in
/// steps.
fn few(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let values = [0, 1, 2].map(|knob| knobs.log(knob, 1.0, 4096.0) as usize);
    let longest = knobs.log(3, 1.0, 64.0) as usize;
    let mut one = || {
        let min = values.map(|values| random.below(values) as f32);
        Aabb::new(min, min.map(|x| x + random.below(longest) as f32))
    };
    (0..n).map(|_| one()).collect()
}

/// Boxes at one point, or nearly. Knobs: how far from it; size; how far on y and on z.
fn point(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let away = knobs.log(0, 1e-7, 1e3);
    let sides = [
        away,
        away * knobs.even(2, 0.0, 1.0),
        away * knobs.even(3, 0.0, 1.0),
    ];
    let half = knobs.log(1, 1e-7, 1.0);
    (0..n)
        .map(|_| around(within(random, sides), [half; 3]))
        .collect()
}

/// Boxes at positions over many orders of magnitude, of either sign. Knobs: how many orders; size
/// relative to the distance; how much sizes vary; whether on the diagonal.
fn tails(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let (orders, part) = (knobs.even(0, 0.0, 37.0), knobs.log(1, 1e-6, 0.5));
    let (own, shared) = (knobs.even(2, 0.0, 1.0), knobs.choice(3, 2) == 1);
    let far = |random: &mut Random| {
        let sign = if random.chance(2) { 1.0 } else { -1.0 };
        sign * 10_f32.powf(random.between(0.0, orders))
    };
    let mut one = || {
        let all = far(random);
        let center = [(); 3].map(|()| if shared { all } else { far(random) });
        around(
            center,
            center.map(|c| c.abs() * part + own * random.between(0.0, 1.0)),
        )
    };
    (0..n).map(|_| one()).collect()
}

/// Uniform boxes and some that are far away, each alone. Knobs: how many are far; how far; density;
/// on which axes.
fn islands(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, knobs.log(2, 1e-2, 4.0));
    let many = (knobs.log(0, 1e-4, 0.5) * n as f32) as usize;
    let (far, axes) = (knobs.log(1, 1e2, 1e37), 1 + knobs.choice(3, 7));
    let one = |i: usize| {
        let mut center = within(random, [side; 3]);
        for (k, c) in center.iter_mut().enumerate() {
            if i <= many && axes >> k & 1 == 1 {
                *c = random.between(-far, far);
            }
        }
        around(center, [(); 3].map(|()| random.between(0.2, 0.5)))
    };
    (0..n).map(one).collect()
}

/// A uniform scene, shrunk down to subnormal numbers. Knobs: by how much on each axis; size of a
/// box.
fn tiny(n: usize, knobs: Knobs, random: &mut Random) -> Vec<Aabb> {
    let side = side_of(n, 1.0);
    let scale = [0, 1, 2].map(|knob| 10_f32.powf(-knobs.even(knob, 0.0, 44.0)));
    let half = knobs.log(3, 0.01, 1.0);
    let mut one = || {
        let b = around(within(random, [side; 3]), [half; 3]);
        let scaled = |corner: [f32; 3]| std::array::from_fn(|k| corner[k] * scale[k]);
        Aabb::new(scaled(b.min), scaled(b.max))
    };
    (0..n).map(|_| one()).collect()
}
