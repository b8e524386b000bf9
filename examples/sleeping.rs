//! Sleep, filters, worlds, a changed set and events in one broad phase: what starts and what ends
//! when a body falls asleep, is hit, wakes up, is removed, and when its index is used again.
//!
//! `cargo run --release -p radsweep --example sleeping`

use radsweep::{Aabb, BroadPhase, Config, Filter, FilterFlags, Frame, Pair};

const GROUND: u32 = 0;
const LEFT: u32 = 1;
const RIGHT: u32 = 2;
const BALL: u32 = 3;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let flags = |flags| Filter {
        flags,
        ..Filter::default()
    };
    let [awake, asleep, fixed] =
        [FilterFlags::NONE, FilterFlags::ASLEEP, FilterFlags::STATIC].map(flags);
    let mut boxes = [
        Aabb::new([-9.0, -1.0, -9.0], [9.0, 0.0, 9.0]),
        crate_at(0.0, 0.0),
        crate_at(0.9, 0.0),
        crate_at(1.2, 7.0),
    ];
    let mut filters = [fixed, awake, awake, awake];
    let mut worlds = [0; 4];
    let mut broad_phase = BroadPhase::new(Config::default())?;
    let mut step = |boxes: &[Aabb], filters: &[Filter], worlds: &[u32], changed: &[u32], what| {
        let frame = Frame::boxes(boxes).filters(filters).worlds(worlds);
        broad_phase.update(frame.changed(changed))?;
        let [started, ended] = [broad_phase.started(), broad_phase.ended()].map(listed);
        println!("{what:44} started {started:16} ended {ended}");
        Ok::<_, Box<dyn std::error::Error>>((started, ended))
    };

    // Every body that moves, or whose filter or world changes, is in the changed set.
    let all = [GROUND, LEFT, RIGHT, BALL];
    let first = step(&boxes, &filters, &worlds, &all, "two crates on the ground")?;

    // A box asleep pairs with static boxes, but not with another one asleep.
    filters[1] = asleep;
    filters[2] = asleep;
    let slept = step(
        &boxes,
        &filters,
        &worlds,
        &[LEFT, RIGHT],
        "both fall asleep",
    )?;

    // Frames in which nothing changes cost next to nothing.
    let still = step(&boxes, &filters, &worlds, &[], "nothing happens")?;

    boxes[3] = crate_at(1.2, 0.9);
    let hit = step(
        &boxes,
        &filters,
        &worlds,
        &[BALL],
        "a ball falls on the right one",
    )?;

    // The caller decides who wakes up: here, who is in a pair that started.
    filters[2] = awake;
    let woken = step(&boxes, &filters, &worlds, &[RIGHT], "which wakes up")?;

    // A removed body leaves an empty box, so that the others keep their indices.
    boxes[1] = Aabb::EMPTY;
    let removed = step(
        &boxes,
        &filters,
        &worlds,
        &[LEFT],
        "the left one is removed",
    )?;

    // A new body may use the index. In another world it meets nobody.
    (boxes[1], filters[1], worlds[1]) = (crate_at(0.0, 0.0), awake, 1);
    let reused = step(
        &boxes,
        &filters,
        &worlds,
        &[LEFT],
        "a body of another world takes its index",
    )?;

    let got = [first, slept, still, hit, woken, removed, reused];
    let expected = [
        ("0-1 0-2 1-2", "none"),
        ("none", "1-2"),
        ("none", "none"),
        ("2-3", "none"),
        ("1-2", "none"),
        ("none", "0-1 1-2"),
        ("none", "none"),
    ];
    if got
        .iter()
        .map(|(s, e)| (s.as_str(), e.as_str()))
        .ne(expected)
    {
        return Err(format!("expected {expected:?}").into());
    }
    Ok(())
}

/// Returns the box of a crate, or a ball, of 1 m.
fn crate_at(x: f32, y: f32) -> Aabb {
    Aabb::new([x, y, 0.0], [x + 1.0, y + 1.0, 1.0])
}

fn listed(pairs: &[Pair]) -> String {
    if pairs.is_empty() {
        return "none".to_owned();
    }
    let pairs: Vec<_> = pairs
        .iter()
        .map(|pair| format!("{}-{}", pair.a, pair.b))
        .collect();
    pairs.join(" ")
}
