//! The order of boxes and of pairs in large frames, against the CPU engine, bit for bit. Limits are
//! lowered, so that small scenes take the ways of large ones.

use super::{Other, cpu, cuda, engine, holds, same_lists, sized, text, uniform};
use crate::common::same;
use crate::common::scenes::Random;
use libtest_mimic::Failed;
use sap::{Aabb, BroadPhase, Config, Filter, FilterFlags, Frame, OnInvalid, Strategy};

pub const ALL: &[(&str, Other)] = &[
    ("order::of_boxes", of_boxes),
    ("order::of_some_boxes", of_some_boxes),
    ("order::of_pairs", of_pairs),
    ("order::of_a_huge_bin", of_a_huge_bin),
];

fn update(ours: &mut BroadPhase, theirs: &mut BroadPhase, frame: Frame) -> Result<(), Failed> {
    ours.update(frame).map_err(text)?;
    theirs.update(frame).map_err(text)?;
    same_lists(ours, theirs)
}

/// Boxes go to regions before their cells: they move, jump all at once, become empty and invalid,
/// are all empty, crowd in one region, and their number changes. With worlds all cells are hashed;
/// in the sparse scene a region has more cells than its block counts at a time.
fn of_boxes() -> Result<(), Failed> {
    let n = sized(20_000, 5_000);
    for (n, density, worlds) in [(n, 1.5, 1), (n, 1.5, 3), (2_000, 0.65, 1)] {
        let config = Config {
            min_resting: Some(100),
            on_invalid: OnInvalid::Skip,
            ..cuda(Strategy::Subdivided)
        };
        let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
        let mut random = Random::new(1);
        let mut boxes = uniform(&mut random, n, density);
        for frame in 0..sized(36, 12) {
            let n = boxes.len();
            let mut shown = boxes.clone();
            match frame % 12 {
                4 => boxes.reverse(),
                5 => boxes[random.below(n)] = Aabb::EMPTY,
                6 => boxes[random.below(n)] = Aabb::new([f32::NAN; 3], [1.0; 3]),
                7 => boxes.truncate(n - n / 20),
                8 => boxes.extend(uniform(&mut random, n / 20, density)),
                9 => shown.fill(Aabb::EMPTY),
                // All but one in 16 shrink towards one place.
                10 => {
                    for (i, b) in shown.iter_mut().enumerate().filter(|(i, _)| i % 16 != 0) {
                        let x = 1e-3 * i as f32;
                        *b = Aabb::new([x, 0.0, 0.0], [x + 5e-4, 0.01, 0.01]);
                    }
                }
                _ => {}
            }
            let i = random.below(boxes.len());
            let [min, max] = [boxes[i].min, boxes[i].max].map(|corner| corner.map(|x| x + 0.25));
            boxes[i] = Aabb::new(min, max);
            let shown = if matches!(frame % 12, 9 | 10) {
                &shown
            } else {
                &boxes
            };
            let labels: Vec<u32> = (0..shown.len() as u32).map(|i| i % worlds).collect();
            let frame = Frame::boxes(shown);
            let frame = if worlds > 1 {
                frame.worlds(&labels)
            } else {
                frame
            };
            update(&mut ours, &mut theirs, frame)?;
        }
    }
    Ok(())
}

/// Boxes go to regions while others, which stay where they are, are in a resting set.
fn of_some_boxes() -> Result<(), Failed> {
    let config = Config {
        min_resting: Some(100),
        ..cuda(Strategy::Subdivided)
    };
    let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
    let mut random = Random::new(3);
    let mut boxes = uniform(&mut random, sized(20_000, 5_000), 1.5);
    let rests = |i: usize| i.is_multiple_of(3);
    let filters: Vec<Filter> = (0..boxes.len())
        .map(|i| Filter {
            flags: if rests(i) {
                FilterFlags::STATIC
            } else {
                FilterFlags::default()
            },
            ..Filter::default()
        })
        .collect();
    let mut resting = 0;
    for _ in 0..8 {
        for (_, b) in boxes.iter_mut().enumerate().filter(|&(i, _)| !rests(i)) {
            let by = random.between(0.0, 0.05);
            *b = Aabb::new(b.min.map(|x| x + by), b.max.map(|x| x + by));
        }
        let frame = Frame::boxes(&boxes).filters(&filters);
        resting += ours.update(frame).map_err(text)?.stats.resting;
        theirs.update(frame).map_err(text)?;
        same_lists(&ours, &theirs)?;
    }
    holds(resting > 0, || "no box rested".into())
}

/// Pairs are ordered by bins: few and many, of boxes that walk, or lie elsewhere in each frame, and
/// in order; none; more of one box than a warp orders, and than a block does. There come to be more
/// boxes and fewer. After a frame whose bins had no room pairs are sorted.
fn of_pairs() -> Result<(), Failed> {
    let config = cuda(Strategy::Subdivided);
    let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
    let mut random = Random::new(2);
    let n = sized(40_000, 10_000);
    let (mut binned, mut all) = (0, Vec::new());
    for frame in 0..48 {
        let density = [0.1, 1.0, 12.0, 0.02][frame / 12];
        if frame % 12 == 0 || frame == 5 {
            all = uniform(&mut random, n + n / 4, density);
        }
        for b in &mut all {
            let by = random.between(0.0, 0.05);
            *b = Aabb::new(b.min.map(|x| x + by), b.max.map(|x| x + by));
        }
        let mut shown = all[..n + n / 100 * (frame % 12)].to_vec();
        match frame {
            8 => shown.fill(Aabb::EMPTY),
            15..18 => shown[7] = Aabb::new([-1e9; 3], [1e9; 3]),
            // Reaches some thousand.
            20..24 => shown[7] = Aabb::new([-1e9, -1e9, -1e9], [1e9, 1e9, 12.0]),
            30 => shown.sort_by(|a, b| a.min[0].total_cmp(&b.min[0])),
            34 => shown.truncate(n / 2),
            _ => {}
        }
        update(&mut ours, &mut theirs, Frame::boxes(&shown))?;
        let report = ours.update(Frame::boxes(&shown[1..])).map_err(text)?;
        let sorts = &report.stats.sorts;
        let is_sorted = sorts.passes_run + sorts.passes_skipped > 0;
        theirs.update(Frame::boxes(&shown[1..])).map_err(text)?;
        same(ours.pairs(), theirs.pairs())?;
        binned += u32::from(!is_sorted && !ours.pairs().is_empty());
        holds(!(15..18).contains(&frame) || is_sorted, || {
            format!("frame {frame}: a bin holds more than it can")
        })?;
    }
    holds(binned > 30, || format!("{binned} of 48 frames had bins"))
}

/// Two boxes overlap all others, in a scene with so many pairs that they are not sorted for it.
fn of_a_huge_bin() -> Result<(), Failed> {
    let config = cuda(Strategy::Subdivided);
    let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
    let mut random = Random::new(3);
    let mut boxes = uniform(&mut random, sized(300_000, 12_000), 20.0);
    boxes[7..9].fill(Aabb::new([-1e9; 3], [1e9; 3]));
    for frame in 0..6 {
        for b in &mut boxes {
            let by = random.between(0.0, 0.05);
            *b = Aabb::new(b.min.map(|x| x + by), b.max.map(|x| x + by));
        }
        let report = ours.update(Frame::boxes(&boxes)).map_err(text)?;
        let sorts = &report.stats.sorts;
        let is_sorted = sorts.passes_run + sorts.passes_skipped > 0;
        theirs.update(Frame::boxes(&boxes)).map_err(text)?;
        same(ours.pairs(), theirs.pairs())?;
        holds(frame < 3 || !is_sorted, || {
            format!("frame {frame} is sorted, with {} pairs", ours.pairs().len())
        })?;
    }
    Ok(())
}
