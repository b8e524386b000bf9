//! The order of boxes and of pairs in large frames, against the CPU engine, bit for bit. Limits are
//! lowered, so that small scenes take the ways of large ones.

use super::{Other, cpu, cuda, engine, holds, same_lists, sized, text, uniform};
use crate::common::same;
use crate::common::scenes::Random;
use libtest_mimic::Failed;
use sap::{Aabb, BroadPhase, Config, Frame, OnInvalid, Strategy};

pub const ALL: &[(&str, Other)] = &[("order::of_boxes", of_boxes), ("order::of_pairs", of_pairs)];

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

/// Pairs are ordered by groups: few and many, of boxes that lie in order and not, none, a group
/// that is too long, and then short ones again.
fn of_pairs() -> Result<(), Failed> {
    // So many have no rows that the search counts.
    let config = Config {
        initial_pair_capacity: Some(13 << 20),
        ..cuda(Strategy::Subdivided)
    };
    let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
    let mut random = Random::new(2);
    let n = sized(40_000, 3_000);
    for frame in 0..10 {
        let mut boxes = uniform(&mut random, n, [0.1, 1.0, 12.0][frame % 3]);
        match frame {
            // More pairs of one box than a group may have.
            4 => boxes[7] = Aabb::new([-1e9; 3], [1e9; 3]),
            5 => boxes.sort_by(|a, b| a.min[0].total_cmp(&b.min[0])),
            6 => boxes.fill(Aabb::EMPTY),
            _ => {}
        }
        update(&mut ours, &mut theirs, Frame::boxes(&boxes))?;
        let sorts = ours
            .update(Frame::boxes(&boxes[1..]))
            .map_err(text)?
            .stats
            .sorts;
        theirs.update(Frame::boxes(&boxes[1..])).map_err(text)?;
        same(ours.pairs(), theirs.pairs())?;
        // Digits of 8 bits: all bits of two indices of n, or one digit.
        let all = (2 * (usize::BITS - (n - 2).leading_zeros())).div_ceil(8);
        let passes = sorts.passes_run + sorts.passes_skipped;
        holds(frame < 4 || frame == 6 || passes == all, || {
            format!("frame {frame}: {passes} passes, not {all}")
        })?;
        holds(frame > 3 || passes < all, || {
            format!("frame {frame}: {passes} passes, as many as all bits take")
        })?;
    }
    Ok(())
}
