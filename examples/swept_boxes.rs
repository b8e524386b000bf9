//! Swept boxes: fast bullets cannot pass through a thin wall between two frames. A swept box is
//! given by its bounds at the start and at the end of a step, and pairs with what lies between.
//!
//! `cargo run --release -p radsweep --example swept_boxes`

use radsweep::{Aabb, BroadPhase, Config, Filter, FilterFlags, Frame};

const BULLETS: usize = 1_000;
const STEPS: usize = 40;
/// Index of the wall, which comes after the bullets.
const WALL: usize = BULLETS;
/// A filter has layers that a box is in, and a mask of the layers that it pairs with.
const BULLET: u32 = 1;
const SOLID: u32 = 2;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let wall = Aabb::new([10.0, -50.0, -50.0], [10.05, 50.0, 50.0]); // 5 cm thick
    let mut filters = vec![filter(BULLET, SOLID); BULLETS];
    filters.push(Filter {
        flags: FilterFlags::STATIC,
        ..filter(SOLID, BULLET)
    });

    let [mut at_the_end, mut in_between] = [Vec::new(), Vec::new()];
    let mut broad_phase = BroadPhase::new(Config::default())?;
    for step in 0..STEPS {
        let boxes_at = |step| -> Vec<Aabb> {
            let bullets = (0..BULLETS).map(|index| bullet(index, step));
            bullets.chain([wall]).collect()
        };
        let (start, end) = (boxes_at(step), boxes_at(step + 1));
        broad_phase.update(Frame::boxes(&end).filters(&filters))?;
        at_the_end.extend(hits(&broad_phase));
        broad_phase.update(Frame::swept(&start, &end).filters(&filters))?;
        in_between.extend(hits(&broad_phase));
    }

    for (found, how) in [
        (&mut at_the_end, "boxes at the end of each step"),
        (&mut in_between, "swept boxes"),
    ] {
        found.sort_unstable();
        found.dedup();
        println!("{how}: {} of {BULLETS} bullets meet the wall", found.len());
    }
    if in_between.len() != BULLETS {
        return Err("a bullet passed through the wall".into());
    }
    Ok(())
}

const fn filter(layers: u32, mask: u32) -> Filter {
    Filter {
        layers,
        mask,
        group: 0,
        flags: FilterFlags::NONE,
    }
}

/// Returns a bullet of 1 cm, which flies along x by 0.5 to 1.5 m in each step.
fn bullet(index: usize, step: usize) -> Aabb {
    let speed = 0.5 + index as f32 / BULLETS as f32;
    let [y, z] = [index % 32, index / 32].map(|cell| cell as f32 - 16.0);
    let min = [speed * step as f32, y, z];
    Aabb::new(min, min.map(|side| side + 0.01))
}

/// Returns the bullets that pair with the wall.
fn hits(broad_phase: &BroadPhase) -> impl Iterator<Item = u32> {
    let pairs = broad_phase.pairs().iter();
    pairs
        .filter(|pair| pair.b == WALL as u32)
        .map(|pair| pair.a)
}
