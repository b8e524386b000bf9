//! The worst scenes that the search of `benches/cliffs.rs` found, and a scene of every shape.

use super::generators::Scene;
use super::random::Random;
use super::shapes::Shape;

/// Scenes that were expensive once, by their names in the search. Only the number of boxes and the
/// seed vary.
const FOUND: &[&str] = &[
    "rooms:0.0.0.0",
    "rooms:60.0.0.0/order=shuffled",
    "rooms:0.255.0.40",
    "sticks:0.255.60.100",
    "sticks:0.255.0.255",
    "plates:0.128.0.60",
    "uniform:170.0.0.0/far=plane",
    "uniform:170.0.0.0/far=fallen",
    "uniform:170.0.0.0/far=half-space",
    "uniform:170.0.0.0/far=ends",
    "uniform:0.0.255.255/order=hidden",
    "uniform:255.255.0.0/order=hidden",
    "point:0.0.0.0/filters=static",
    "point:0.0.0.0/filters=one-group",
    "point:0.0.0.0/filters=apart",
    "point:0.0.0.0/filters=groups",
    "point:0.0.0.0/worlds=many",
    "islands:128.255.200.255",
    "clusters:200.128.255.200",
    "heavy:60.200.255.255",
    "giants:60.255.128.128",
    // Found by the searches for tests, time, moving boxes and queries.
    "few:6.160.193.214/far=half-space/filters=one-group/order=hidden",
    "rooms:20.247.0.19/far=plane/filters=groups/order=shuffled",
    "plates:250.247.8.12,rooms:69.255.0.150/far=plane/filters=apart/order=hidden",
    "giants:195.94.255.251,few:63.148.16.126/far=ends/filters=apart/order=hidden",
    "tiny:72.0.169.98,rooms:0.81.18.237/far=half-space/filters=apart/order=hidden",
    "grid:0.206.92.197/far=half-space/filters=static/order=hidden",
    "rooms:20.251.107.15,giants:84.79.27.214",
    "rooms:20.252.106.15/filters=groups",
    "heavy:255.255.77.255/far=plane/worlds=many",
    "diagonal:0.116.172.123/far=ends/filters=one-group/order=hidden",
    "diagonal:0.21.248.1/far=plane/filters=layers",
    "islands:24.84.34.79/filters=random-layers/worlds=few",
    "tails:182.61.18.150/worlds=many/order=hidden",
];

/// Returns the scenes found, and some random ones of every shape, with `n` boxes.
pub fn scenes(n: usize, each: u64) -> Vec<Scene> {
    let found = FOUND.iter().map(|text| {
        let scene: Scene = text.parse().expect("the name of a scene");
        Scene { n, ..scene }
    });
    let shapes = Shape::ALL.iter().zip(0..);
    let numbered = shapes.flat_map(|(&shape, i)| (0..each).map(move |k| (shape, 1000 * i + k)));
    let any = |(shape, seed)| Scene::any(shape, n, &mut Random::new(seed));
    found.chain(numbered.map(any)).collect()
}
