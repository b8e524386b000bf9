//! Triggers: sensors say who enters and who leaves. Filters choose what a sensor reacts to, and the
//! events of each update open and close doors. A door of guards must not open for visitors.
//!
//! `cargo run --release -p radsweep --example triggers`

use radsweep::{Aabb, BroadPhase, Config, Filter, Frame, Pair};

/// Layers of the walkers and of sensors.
const VISITOR: u32 = 1;
const GUARD: u32 = 2;
const SENSOR: u32 = 4;

const WALKERS: u32 = 300;
const STEPS: u32 = 1_000;
const STRIDE: f32 = 0.1;

/// A door at a position along the corridor, which opens while somebody is near.
struct Door {
    name: &'static str,
    at: f32,
    opens_for: u32,
    near: u32,
    opened: u32,
    passed: u32,
}

impl Door {
    const fn new(name: &'static str, at: f32, opens_for: u32) -> Self {
        let (near, opened, passed) = (0, 0, 0);
        Self {
            name,
            at,
            opens_for,
            near,
            opened,
            passed,
        }
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut doors = [
        Door::new("entrance", 10.0, VISITOR | GUARD),
        Door::new("guard room", 25.0, GUARD),
        Door::new("gallery", 40.0, VISITOR),
    ];
    // Sensors first, then walkers: in a pair of both, `a` is the sensor.
    let sensors = doors.iter().map(|door| {
        let [min, max] = [door.at - 1.0, door.at + 1.0];
        Aabb::new([min, 0.0, -2.0], [max, 2.0, 2.0])
    });
    let mut boxes: Vec<Aabb> = sensors.collect();
    boxes.resize(doors.len() + WALKERS as usize, Aabb::EMPTY);
    // A sensor pairs only with its walkers, and a walker only with sensors: walkers in a crowd
    // overlap, but these pairs are of no interest here and cost nothing.
    let of_doors = doors.iter().map(|door| filter(SENSOR, door.opens_for));
    let of_walkers = (0..WALKERS).map(|walker| filter(layer(walker), SENSOR));
    let filters: Vec<Filter> = of_doors.chain(of_walkers).collect();

    let mut broad_phase = BroadPhase::new(Config::default())?;
    for step in 0..STEPS {
        for walker in 0..WALKERS {
            boxes[doors.len() + walker as usize] = body(walker, step);
        }
        broad_phase.update(Frame::boxes(&boxes).filters(&filters))?;
        for &Pair { a: door, .. } in broad_phase.started() {
            let door = &mut doors[door as usize];
            door.opened += u32::from(door.near == 0);
            door.near += 1;
        }
        for &Pair { a: door, .. } in broad_phase.ended() {
            let door = &mut doors[door as usize];
            door.near -= 1;
            door.passed += 1;
        }
    }

    println!("{WALKERS} walkers, a tenth of them guards, in {STEPS} steps:");
    for door in &doors {
        let expected = (0..WALKERS).filter(|&walker| layer(walker) & door.opens_for != 0);
        let expected = expected.count() as u32;
        println!(
            "{:>10}: opened {:2} times, {:3} of {expected} walkers passed",
            door.name, door.opened, door.passed
        );
        if door.passed != expected || door.near != 0 {
            return Err(format!("the door of the {} missed somebody", door.name).into());
        }
    }
    Ok(())
}

const fn layer(walker: u32) -> u32 {
    if walker.is_multiple_of(10) {
        GUARD
    } else {
        VISITOR
    }
}

fn filter(layers: u32, mask: u32) -> Filter {
    Filter {
        layers,
        mask,
        ..Filter::default()
    }
}

/// Returns the box of a walker, who walks along x from one end of the corridor to the other.
/// Walkers come in groups of thirty, with 6 m between the first of each group.
fn body(walker: u32, step: u32) -> Aabb {
    let (group, member) = (walker / 30, walker % 30);
    let behind = 6.0 * group as f32 + 0.05 * member as f32;
    let x = step as f32 * STRIDE - behind;
    let z = member as f32 * 0.1 - 1.5;
    Aabb::new([x - 0.25, 0.0, z - 0.25], [x + 0.25, 1.8, z + 0.25])
}
