//! Times queries on the CPU, with the tree built, on one thread:
//! `cargo bench -p radsweep-sap --bench bench_queries [-- BOXES...]`.
//!
//! Boxes are uniform, as in `bench_sweep`. Prints, for each size, nanoseconds a query of each kind,
//! milliseconds of the query that builds the tree, and the same of parry's `Bvh`.

#[allow(dead_code)] // only some of its numbers are needed here
#[path = "../tests/common/random.rs"]
mod random;

use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy};
use parry3d::query::Ray;
use random::Random;
use sap::{Aabb, Backend, BroadPhase, Config, Result, Shape};
use std::hint::black_box;
use std::ops::ControlFlow::Break;
use std::time::Instant;

const QUERIES: usize = 2000;
const RUNS: usize = 5;

/// Nanoseconds a query, the best of some runs, and how many were found.
fn time(mut query: impl FnMut(usize) -> Result<usize>) -> Result<(f64, usize)> {
    let (mut best, mut found) = (f64::INFINITY, 0);
    for _ in 0..RUNS {
        let start = Instant::now();
        found = 0;
        for i in 0..QUERIES {
            found += black_box(query(i)?);
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / QUERIES as f64);
    }
    Ok((best, found))
}

fn print(name: &str, (ns, found): (f64, usize)) {
    let each = found as f64 / QUERIES as f64;
    println!("  {name:24} {ns:12.0} ns {each:10.2} found");
}

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|n| n.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![100_000, 1_000_000]
    } else {
        sizes
    };
    for n in sizes {
        let side = (n as f32).cbrt();
        let mut random = Random::new(7);
        let boxes = random.boxes(n, [side; 3]);
        let asked: Vec<Aabb> = boxes.iter().step_by(n / QUERIES).copied().collect();
        let rays: Vec<([f32; 3], [f32; 3])> = (0..QUERIES)
            .map(|_| {
                let start = [(); 3].map(|()| random.between(0.0, side));
                (start, [(); 3].map(|()| random.between(-1.0, 1.0)))
            })
            .collect();
        let mut engine = BroadPhase::new(Config {
            backend: Backend::Cpu,
            ..Config::default()
        })?;
        engine.update(&boxes)?;
        println!("{n} boxes");
        let start = Instant::now();
        engine.query_box(&asked[0])?;
        println!(
            "  {:24} {:12.1} ms",
            "first query",
            start.elapsed().as_secs_f64() * 1e3
        );
        print("box", time(|i| Ok(engine.query_box(&asked[i])?.len()))?);
        print(
            "sphere",
            time(|i| Ok(engine.query_sphere(asked[i].min, 1.0)?.len()))?,
        );
        print(
            "ray, all",
            time(|i| Ok(engine.query_ray(rays[i].0, rays[i].1, 1e9)?.len()))?,
        );
        let ray = |i: usize| {
            let (origin, dir) = rays[i];
            let max_t = 1e9;
            engine.query(Shape::Ray { origin, dir, max_t })
        };
        print(
            "ray, closest",
            time(|i| Ok(usize::from(ray(i).closest()?.is_some())))?,
        );
        print("ray, any", time(|i| Ok(usize::from(ray(i).any()?)))?);
        let first_of = |i: usize| ray(i).visit(Break);
        print(
            "ray, first visited",
            time(|i| Ok(usize::from(first_of(i)?.is_some())))?,
        );
        let mut found = Vec::new();
        let mut into = |i: usize| -> Result<usize> {
            engine.query(asked[i]).collect_into(&mut found)?;
            Ok(found.len())
        };
        print("box, into a buffer", time(&mut into)?);
        parry(&boxes, &asked, &rays)?;
    }
    Ok(())
}

/// The same queries of parry's `Bvh`.
fn parry(boxes: &[Aabb], asked: &[Aabb], rays: &[([f32; 3], [f32; 3])]) -> Result<()> {
    let theirs = |b: &Aabb| ParryAabb::new(Vector::from_array(b.min), Vector::from_array(b.max));
    let leaves: Vec<ParryAabb> = boxes.iter().map(theirs).collect();
    let start = Instant::now();
    let tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves);
    println!(
        "  {:24} {:12.1} ms",
        "parry: build",
        start.elapsed().as_secs_f64() * 1e3
    );
    let found = |i: usize| tree.intersect_aabb(&theirs(&asked[i])).count();
    print("parry: box", time(|i| Ok(found(i)))?);
    let closest = |i: usize| {
        let (origin, dir) = rays[i];
        let ray = Ray::new(Vector::from_array(origin), Vector::from_array(dir));
        let leaf = |leaf: u32, _: f32| {
            use parry3d::query::RayCast;
            leaves[leaf as usize].cast_local_ray(&ray, f32::MAX, true)
        };
        usize::from(tree.cast_ray(&ray, f32::MAX, leaf).is_some())
    };
    print("parry: ray, closest", time(|i| Ok(closest(i)))?);
    Ok(())
}
