//! The broad phase with `glam`: a slice of pairs of `Vec3` is cast to a slice of boxes and back,
//! without a copy. A swarm turns around a post, and rays find what they hit.
//!
//! `cargo run --release -p radsweep --example glam_boxes`

use glam::{Quat, Vec3};
use radsweep::{Aabb, BroadPhase, Config};

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let half = Vec3::new(0.3, 0.2, 0.3);
    let centres: Vec<Vec3> = (0..5_000)
        .map(|index| {
            let height = (index as f32 * 0.7549).fract() * 8.0;
            Vec3::new(2.0 + index as f32 / 400.0, height, 0.0)
        })
        .collect();
    let mut corners: Vec<[Vec3; 2]> = vec![[Vec3::ZERO; 2]; centres.len()];
    let mut broad_phase = BroadPhase::new(Config::default())?;
    println!("frame    pairs  started    ended         hit by a ray  the nearest");
    for frame in 1..=6 {
        for (index, (corner, centre)) in corners.iter_mut().zip(&centres).enumerate() {
            let turn =
                Quat::from_rotation_y(index as f32 * 2.4 + frame as f32 * 0.2 / (1.0 + centre.x));
            *corner = [turn * *centre - half, turn * *centre + half];
        }
        let boxes: &[Aabb] = bytemuck::cast_slice(&corners);
        let (pairs, started, ended) = {
            let report = broad_phase.update(boxes)?;
            (report.pairs, report.started, report.ended)
        };
        let (from, towards) = (
            Vec3::new(0.0, 4.0, 0.0),
            Vec3::new(1.0, 0.0, 0.3).normalize(),
        );
        let hits = broad_phase.query_ray(from.into(), towards.into(), 20.0)?;
        let nearest = hits.first().map(|hit| {
            let point = from + towards * hit.t;
            format!("box {} at {point:.2}", hit.index)
        });
        println!(
            "{frame:5} {pairs:8} {started:8} {ended:8} {:20}  {}",
            hits.len(),
            nearest.unwrap_or_else(|| "none".to_owned())
        );
    }
    // And back to vectors.
    let boxes: &[Aabb] = bytemuck::cast_slice(&corners);
    let back: &[[Vec3; 2]] = bytemuck::cast_slice(boxes);
    let widest = back
        .iter()
        .map(|[min, max]| (*max - *min).length())
        .fold(0.0, f32::max);
    println!(
        "the longest diagonal: {widest:.3}; expected {:.3}",
        (half * 2.0).length()
    );
    Ok(())
}
