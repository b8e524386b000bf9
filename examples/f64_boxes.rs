//! Boxes of `f64`: a row of crates 6,371 km from the origin, where an `f32` has steps of half a
//! metre. The boxes are sorted as `f32`, rounded outward, and tested exactly in `f64`.
//!
//! `cargo run --release -p radsweep --example f64_boxes`

use radsweep::{Aabb, Aabb64, BroadPhase, Config, Frame, OverlapRule};

const CRATES: u32 = 2_000;
/// The radius of the earth in metres.
const GROUND: f64 = 6_371_000.0;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let crates: Vec<Aabb64> = (0..CRATES).map(crate_box).collect();
    let rounded: Vec<Aabb> = crates.iter().map(Aabb64::outward).collect();

    let mut broad_phase = BroadPhase::new(Config::default())?;
    let coarse = broad_phase.update(&rounded)?.pairs;
    let exact = broad_phase.update(Frame::exact(&crates))?.pairs;
    println!("{CRATES} crates in a row: {exact} touch the next; as f32 {coarse} pairs would touch");

    let by_force = (0..crates.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let touching = by_force.filter(|&(a, b)| crates[a].overlaps(&crates[b], OverlapRule::Closed));
    if touching.count() as u64 != exact {
        return Err("brute force finds another number of pairs".into());
    }
    if let Some(pair) = broad_phase.pairs().first() {
        let [a, b] = [pair.a, pair.b].map(|index| crates[index as usize]);
        println!(
            "crate {} ends at {} m, where crate {} begins: {} m",
            pair.a, a.max[0], pair.b, b.min[0]
        );
    }
    Ok(())
}

/// Returns a crate of 1 m. The next one begins 6.25 cm behind it; each tenth crate is longer and
/// touches the next.
fn crate_box(index: u32) -> Aabb64 {
    let length = if index.is_multiple_of(10) {
        1.0625
    } else {
        1.0
    };
    let min = [GROUND + 1.0625 * f64::from(index), 0.0, 0.0];
    Aabb64::new(min, [min[0] + length, 1.0, 1.0])
}
