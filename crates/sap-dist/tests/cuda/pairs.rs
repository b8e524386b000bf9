//! Frames of many kinds, on one to seven ranks.

use super::{Check, Moment, check, unless_quick};
use crate::common::churn::some_filter;
use crate::common::random::{Random, around, uniform_in};
use crate::common::{RULES, Scene, data};
use libtest_mimic::Failed;
use sap::{Aabb, OnInvalid};
use sap_dist::Config;

pub const ALL: &[(&str, Check)] = &[
    ("pairs::moving_boxes", moving_boxes),
    ("pairs::boxes_at_home", boxes_at_home),
    ("pairs::boxes_near_home", boxes_near_home),
    ("pairs::boxes_at_home_at_times", boxes_at_home_at_times),
    ("pairs::rows", rows),
    ("pairs::filters_and_worlds", filters_and_worlds),
    ("pairs::ids_that_change_ranks", ids_that_change_ranks),
    (
        "pairs::invalid_boxes_are_skipped",
        invalid_boxes_are_skipped,
    ),
    ("pairs::extreme_scenes", extreme_scenes),
    ("pairs::published_scenes", published_scenes),
];

/// Boxes that move a little from frame to frame.
fn moves(scene: &Scene, seed: u64) -> Scene {
    let mut random = Random::new(seed);
    let mut moved = scene.clone();
    for b in &mut moved.boxes {
        let by = [(); 3].map(|()| random.between(-0.3, 0.3));
        *b = Aabb::new(
            std::array::from_fn(|k| b.min[k] + by[k]),
            std::array::from_fn(|k| b.max[k] + by[k]),
        );
    }
    moved
}

pub(super) fn sequence(scene: Scene, frames: u64) -> Vec<Moment> {
    let mut scenes = vec![scene];
    for seed in 1..frames {
        let next = moves(&scenes[scenes.len() - 1], seed);
        scenes.push(next);
    }
    scenes.into_iter().map(Moment::new).collect()
}

fn moving_boxes() -> Result<(), Failed> {
    let n = unless_quick(20_000, 900);
    let moments = sequence(Scene::dealt(uniform_in(n, [(n as f32).cbrt(); 3], 5)), 5);
    for rule in RULES {
        for ranks in 1..=unless_quick(7, 4) {
            let config = Config {
                rule,
                ..Config::default()
            };
            let reports = check(&moments, ranks, &config)?;
            assert!(reports[1].started > 0 && reports[1].ended > 0);
            assert!(ranks == 1 || reports[4].ranks.iter().any(|rank| rank.copies > 0));
        }
    }
    Ok(())
}

/// Nearly all boxes are brought by the rank of their cell.
fn boxes_at_home() -> Result<(), Failed> {
    let n = unless_quick(20_000, 1200);
    let mut boxes = uniform_in(n, [n as f32 / 36.0, 6.0, 6.0], 8);
    boxes.sort_by(|a, b| a.min[0].total_cmp(&b.min[0]));
    let moments = sequence(Scene::dealt(boxes), 3);
    for ranks in [2, 3] {
        let reports = check(&moments, ranks, &Config::default())?;
        // The bytes of 28 for each box that travelled, and 16 for each pair of another rank.
        for rank in &reports[2].ranks {
            assert!(rank.bytes < 28 * rank.boxes / 2, "{}", reports[2]);
        }
    }
    Ok(())
}

/// An engine begins with the boxes of its rank since that was right in the last update, and is
/// wrong: the boxes are elsewhere, or one is invalid.
fn boxes_at_home_at_times() -> Result<(), Failed> {
    let mut boxes = uniform_in(1200, [33.0, 6.0, 6.0], 8);
    boxes.sort_by(|a, b| a.min[0].total_cmp(&b.min[0]));
    let home = sequence(Scene::dealt(boxes), 3);
    let (mut away, mut broken) = (home[2].clone(), home[0].clone());
    away.scene.boxes.reverse();
    broken.scene.boxes[100].min[1] = f32::NAN;
    let order = [
        &home[0], &home[1], &away, &away, &home[1], &home[2], &broken, &broken, &home[0],
    ];
    let config = Config {
        on_invalid: OnInvalid::Skip,
        ..Config::default()
    };
    for ranks in [2, 3] {
        let reports = check(&order.map(Moment::clone), ranks, &config)?;
        let bytes = |frame: usize| {
            reports[frame]
                .ranks
                .iter()
                .map(|rank| rank.bytes)
                .sum::<u64>()
        };
        assert!(bytes(1) < 28 * 1200 / 2 && bytes(2) > 28 * 1200 / 2);
        assert!(bytes(5) < 28 * 1200 / 2 && reports[6].invalid.is_some());
    }
    Ok(())
}

/// Returns the scene with its boxes by the rank that is their home, and where those of each end.
fn by_home(scene: &Scene, ranks: usize) -> Result<Moment, Failed> {
    use super::{DeviceDistributed, LIMIT, OnDevice, Staged, Threads, Transport, device_of};
    let moment = Moment::new(scene.clone());
    let one = |threads: &mut Threads| -> Result<Vec<Option<usize>>, Failed> {
        let rank = threads.rank();
        let mut transport = Staged::new(threads);
        let mut broad_phase = DeviceDistributed::new(Config::default(), device_of(rank))?;
        let own = OnDevice::new(&broad_phase.stream().clone(), &moment, rank, ranks)?;
        broad_phase.update(&mut transport, own.frame())?;
        Ok(scene.boxes.iter().map(|b| broad_phase.home(b)).collect())
    };
    let homes = Threads::run(ranks, LIMIT, one)?.swap_remove(0)?;
    let mut order: Vec<usize> = (0..homes.len()).collect();
    order.sort_by_key(|&i| homes[i]);
    let boxes = order.iter().map(|&i| scene.boxes[i]).collect();
    let upto = |rank| homes.iter().filter(|&&home| home <= Some(rank)).count();
    Ok(Moment {
        ends: Some((0..ranks).map(upto).collect()),
        ..Moment::new(Scene::dealt(boxes))
    })
}

/// Few boxes are brought by another rank than their home, so that each rank searches all that it
/// brings: some have crossed a cut, others are anywhere.
fn boxes_near_home() -> Result<(), Failed> {
    let beam = Scene::dealt(uniform_in(3000, [84.0, 6.0, 6.0], 8));
    let plate = Scene::dealt(uniform_in(1500, [18.0, 18.0, 2.0], 9));
    for (scene, ranks, axes) in [(beam, 3, 1), (plate, 12, 2)] {
        let first = by_home(&scene, ranks)?;
        let mut random = Random::new(4);
        let mut moments = vec![first];
        for seed in 1..unless_quick(6, 4) {
            let mut next = moments[moments.len() - 1].clone();
            next.scene = moves(&next.scene, seed);
            // Boxes of all ranks meet where one of them is at home.
            let place = next.scene.boxes[random.below(next.scene.boxes.len())];
            for _ in 0..8 {
                let moved = random.below(next.scene.boxes.len());
                next.scene.boxes[moved] = place;
            }
            moments.push(next);
        }
        for rule in RULES {
            let config = Config {
                rule,
                ..Config::default()
            };
            let reports = check(&moments, ranks, &config)?;
            let first = &reports[0];
            assert!(
                first.ranks.iter().all(|rank| rank.homes == rank.boxes),
                "{first}"
            );
            assert_eq!(first.axes.len(), axes, "{first}");
            assert!(reports[1].started > 0 && reports[1].ended > 0);
        }
        let n = scene.boxes.len();
        for moment in &mut moments {
            moment.scene.filters = Some((0..n).map(|_| some_filter(&mut random)).collect());
            moment.scene.worlds = Some((0..n).map(|_| random.below(3) as u32).collect());
        }
        check(&moments, ranks, &Config::default())?;
    }
    Ok(())
}

fn rows() -> Result<(), Failed> {
    let plate = |seed| Moment::new(Scene::dealt(uniform_in(1500, [18.0, 18.0, 2.0], seed)));
    let reports = check(&[plate(1), plate(2)], 12, &Config::default())?;
    assert_eq!(reports[1].axes.len(), 2, "{}", reports[1]);
    Ok(())
}

fn filters_and_worlds() -> Result<(), Failed> {
    for (with_filters, with_worlds) in [(true, false), (false, true), (true, true)] {
        let mut random = Random::new(3);
        let mut moments = sequence(Scene::dealt(uniform_in(700, [7.0; 3], 6)), 3);
        for moment in &mut moments {
            let filters = (0..700).map(|_| some_filter(&mut random)).collect();
            moment.scene.filters = with_filters.then_some(filters);
            let worlds = (0..700).map(|_| random.below(3) as u32).collect();
            moment.scene.worlds = with_worlds.then_some(worlds);
        }
        for ranks in [1, 2, 5] {
            check(&moments, ranks, &Config::default())?;
        }
    }
    Ok(())
}

/// The ranks divide every frame in another way, so ids go from rank to rank.
fn ids_that_change_ranks() -> Result<(), Failed> {
    let mut moments = sequence(Scene::dealt(uniform_in(800, [8.0; 3], 2)), 5);
    for (moment, share) in moments.iter_mut().zip([100, 0, 150, 40, 40]) {
        moment.share = share;
    }
    for ranks in [2, 3, 6] {
        check(&moments, ranks, &Config::default())?;
    }
    let config = Config {
        events: false,
        ..Config::default()
    };
    let one = |moment: &Moment| check(std::slice::from_ref(moment), 3, &Config::default());
    let with = one(&moments[0])?;
    let without = without_events(&moments, &config)?;
    assert_eq!(with[0].pairs, without[0]);
    Ok(())
}

/// Returns the number of pairs of each frame on three ranks with events off, after checking that
/// there are no events.
pub(super) fn without_events(moments: &[Moment], config: &Config) -> Result<Vec<u64>, Failed> {
    use super::{LIMIT, OnDevice, Staged, Threads, Transport, lists};
    let one = |threads: &mut Threads| -> Result<Vec<u64>, Failed> {
        let rank = threads.rank();
        let mut transport = Staged::new(threads);
        let mut broad_phase =
            super::DeviceDistributed::new(config.clone(), super::device_of(rank))?;
        let mut pairs = Vec::new();
        for moment in moments {
            let own = OnDevice::new(&broad_phase.stream().clone(), moment, rank, 3)?;
            pairs.push(broad_phase.update(&mut transport, own.frame())?.pairs);
            let [_, started, ended] = lists(&broad_phase)?;
            assert!(started.is_empty() && ended.is_empty());
        }
        Ok(pairs)
    };
    let found: Result<Vec<_>, Failed> = Threads::run(3, LIMIT, one)?.into_iter().collect();
    Ok(found?.swap_remove(0))
}

fn invalid_boxes_are_skipped() -> Result<(), Failed> {
    let mut moments = sequence(Scene::dealt(uniform_in(600, [7.0; 3], 4)), 3);
    for (k, moment) in moments.iter_mut().enumerate() {
        for i in (k..600).step_by(37) {
            moment.scene.boxes[i] = match i % 3 {
                0 => Aabb::new([f32::NAN; 3], [1.0; 3]),
                1 => Aabb::new([9.0; 3], [8.0; 3]),
                _ => Aabb::EMPTY,
            };
        }
    }
    let config = Config {
        on_invalid: OnInvalid::Skip,
        ..Config::default()
    };
    for ranks in [1, 2, 4] {
        for (report, moment) in check(&moments, ranks, &config)?.iter().zip(&moments) {
            let all = || moment.scene.boxes.iter().enumerate();
            let bad = || all().filter(|(_, b)| b.check().is_err());
            let invalid = report.invalid.ok_or("invalid boxes are reported")?;
            assert_eq!(invalid.count, bad().count() as u64);
            assert_eq!(Some(invalid.first), bad().map(|(i, _)| i as u64).next());
        }
    }
    Ok(())
}

fn extreme_scenes() -> Result<(), Failed> {
    let cube = Aabb::new([0.0; 3], [1.0; 3]);
    let all = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
    let mut giant = uniform_in(300, [30.0; 3], 3);
    giant[77] = all;
    let zeros = [-0.0, 0.0].map(|x| around([x; 3], [0.0; 3]));
    let scenes = [
        vec![],
        vec![cube],
        vec![cube; 3],
        vec![cube; 120],
        vec![all; 40],
        giant,
        vec![Aabb::EMPTY; 9],
        zeros.to_vec(),
        uniform_in(400, [30.0; 3], 4),
        vec![],
    ];
    let moments: Vec<Moment> = scenes
        .into_iter()
        .map(|boxes| Moment::new(Scene::dealt(boxes)))
        .collect();
    for rule in RULES {
        for ranks in [1, 2, 3, 7] {
            let config = Config {
                rule,
                ..Config::default()
            };
            check(&moments, ranks, &config)?;
            let reversed: Vec<Moment> = moments.iter().rev().cloned().collect();
            check(&reversed, ranks, &config)?;
        }
    }
    Ok(())
}

fn published_scenes() -> Result<(), Failed> {
    let limit = unless_quick(usize::MAX, 3000);
    let mut checked = 0;
    for line in data::SCENES.lines() {
        let case: serde_json::Value = serde_json::from_str(line)?;
        let file = case["file"].as_str().ok_or("a file name")?;
        let Some(boxes) = data::boxes(file).filter(|boxes| boxes.len() <= limit) else {
            continue;
        };
        let moment = Moment::new(Scene::dealt(boxes));
        for rule in RULES {
            let config = Config {
                rule,
                ..Config::default()
            };
            for ranks in unless_quick(vec![1, 2, 3, 4, 5, 6, 7], vec![2, 5]) {
                check(std::slice::from_ref(&moment), ranks, &config)?;
            }
        }
        checked += 1;
    }
    assert!(checked > 0, "some scenes are built in");
    Ok(())
}
