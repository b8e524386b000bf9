//! Ranks that keep the ids of their boxes and hand boxes over, and excluded pairs.

use super::pairs::{sequence, without_events};
use super::{Bring, Check, Moment, OnDevice, check, device_of, unless_quick};
use crate::common::churn::{Churn, some_filter};
use crate::common::random::{Random, uniform_in};
use crate::common::{LIMIT, Part, RULES, Scene, compare, run};
use libtest_mimic::Failed;
use sap::{Aabb, OnInvalid};
use sap_dist::{Config, DeviceDistributed, Report, Staged, Threads, Transport};

pub const ALL: &[(&str, Check)] = &[
    (
        "ids::boxes_that_follow_their_homes",
        boxes_that_follow_their_homes,
    ),
    ("ids::homes_on_the_device", homes_on_the_device),
    ("ids::random_scenes", random_scenes),
    ("ids::hand_over_starts_nothing", hand_over_starts_nothing),
    ("ids::some_ranks_list_ids", some_ranks_list_ids),
    ("ids::empty_ranks", empty_ranks),
    ("ids::excluded_pairs", excluded_pairs),
];

/// Ids in no order of their boxes, of which some are above 32 bits.
fn scattered(mut scene: Scene) -> Scene {
    for id in &mut scene.ids {
        *id = id.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    scene
}

/// A frame of which each rank lists the ids.
fn by_ids(scene: &Scene) -> Moment {
    Moment {
        bring: Bring::ByIds,
        ..Moment::new(scene.clone())
    }
}

/// Checks the frames against one engine, and each rank against a rank on the CPU.
fn check_by_ids(scenes: &[Scene], ranks: usize, config: &Config) -> Result<Vec<Report>, Failed> {
    let moments: Vec<Moment> = scenes.iter().map(by_ids).collect();
    let one = |threads: &mut Threads| -> Result<Vec<Part>, Failed> {
        let mut broad_phase = DeviceDistributed::new(config.clone(), device_of(threads.rank()))?;
        super::run(&mut Staged::new(threads), &mut broad_phase, &moments)
    };
    let parts: Result<Vec<_>, Failed> = Threads::run(ranks, LIMIT, one)?.into_iter().collect();
    let parts = parts?;
    same_as_cpu(&parts, scenes, config);
    Ok(compare(&parts, scenes, config))
}

fn same_as_cpu(parts: &[Vec<Part>], scenes: &[Scene], config: &Config) {
    let ranks = parts.len();
    for (rank, (of_device, of_cpu)) in parts.iter().zip(run(scenes, ranks, config)).enumerate() {
        for (frame, (on_device, on_cpu)) in of_device.iter().zip(of_cpu).enumerate() {
            assert!(
                on_device.lists == on_cpu.lists,
                "rank {rank} of {ranks}, frame {frame}"
            );
        }
    }
}

/// The homes of boxes on the device are those of boxes of the host, with slabs and with rows.
fn homes_on_the_device() -> Result<(), Failed> {
    for (size, ranks) in [([84.0, 6.0, 6.0], 3), ([18.0, 18.0, 2.0], 12)] {
        let moment = Moment::new(Scene::dealt(uniform_in(900, size, 8)));
        let mut boxes = uniform_in(700, size, 9);
        boxes[5] = Aabb::EMPTY;
        boxes[6].max[1] = f32::NAN;
        boxes[7] = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
        let one = |threads: &mut Threads| -> Result<(), Failed> {
            let (rank, mut transport) = (threads.rank(), Staged::new(threads));
            let mut broad_phase = DeviceDistributed::new(Config::default(), device_of(rank))?;
            let stream = broad_phase.stream().clone();
            let on_device = stream.from_slice(&boxes)?;
            for is_cut in [false, true] {
                if is_cut {
                    let own = OnDevice::new(&stream, &moment, rank, ranks)?;
                    broad_phase.update(&mut transport, own.frame())?;
                }
                let homes = stream.to_vec(broad_phase.homes(on_device.slice())?.slice())?;
                let home = |b| broad_phase.home(b).map_or(u32::MAX, |rank| rank as u32);
                assert!(homes.into_iter().eq(boxes.iter().map(home)));
                assert_eq!(broad_phase.home(&boxes[0]).is_some(), is_cut);
            }
            assert!(broad_phase.homes(on_device.range(..0)?)?.is_empty());
            Ok(())
        };
        let results: Result<Vec<()>, Failed> =
            Threads::run(ranks, LIMIT, one)?.into_iter().collect();
        results?;
    }
    Ok(())
}

/// Each rank brings the boxes whose home it was by the last cuts, so few others travel.
fn boxes_that_follow_their_homes() -> Result<(), Failed> {
    let beam = uniform_in(unless_quick(20_000, 1500), [84.0, 4.0, 4.0], 8);
    for (rule, with_lists) in RULES.into_iter().zip([false, true]) {
        let config = Config {
            rule,
            ..Config::default()
        };
        let mut random = Random::new(7);
        let moments = sequence(scattered(Scene::dealt(beam.clone())), 6);
        let mut scenes: Vec<Scene> = moments.into_iter().map(|moment| moment.scene).collect();
        if with_lists {
            for scene in &mut scenes {
                let n = scene.boxes.len();
                scene.filters = Some((0..n).map(|_| some_filter(&mut random)).collect());
                scene.worlds = Some((0..n).map(|_| random.below(2) as u32).collect());
            }
        }
        for ranks in [2, 5] {
            let one = |threads: &mut Threads| -> Result<(Vec<Part>, Vec<Scene>), Failed> {
                let rank = threads.rank();
                let mut transport = Staged::new(threads);
                let mut broad_phase = DeviceDistributed::new(config.clone(), device_of(rank))?;
                let (mut parts, mut brought) = (Vec::new(), Vec::new());
                for scene in &scenes {
                    let mut scene = scene.clone();
                    for (origin, b) in scene.origins.iter_mut().zip(&scene.boxes) {
                        *origin = broad_phase.home(b).unwrap_or(*origin);
                    }
                    let moment = by_ids(&scene);
                    let moments = std::slice::from_ref(&moment);
                    parts.extend(super::run(&mut transport, &mut broad_phase, moments)?);
                    brought.push(moment.scene);
                }
                Ok((parts, brought))
            };
            let all: Result<Vec<_>, Failed> =
                Threads::run(ranks, LIMIT, one)?.into_iter().collect();
            let (parts, mut brought): (Vec<_>, Vec<_>) = all?.into_iter().unzip();
            let brought = brought.swap_remove(0);
            same_as_cpu(&parts, &brought, &config);
            let reports = compare(&parts, &brought, &config);
            let last = &reports[5];
            assert!(last.started > 0 && last.ended > 0);
            let crossed = brought[4].origins.iter().zip(&brought[5].origins);
            assert!(crossed.filter(|(before, now)| before != now).count() > 0);
            // Those that cross, and copies: each has 36 bytes, 20 more with filters and worlds.
            let bytes: u64 = last.ranks.iter().map(|rank| rank.bytes).sum();
            assert!(bytes < 36 * last.boxes / 2, "{last}");
        }
    }
    Ok(())
}

/// Boxes, ids, filters, worlds and excluded pairs change in every way, on ranks of few boxes.
fn random_scenes() -> Result<(), Failed> {
    for seed in 0..unless_quick(12, 6) {
        let mut churn = Churn::new(seed);
        let scenes: Vec<Scene> = (0..unless_quick(14, 7)).map(|_| churn.step()).collect();
        let config = Config {
            rule: RULES[seed as usize % 2],
            on_invalid: OnInvalid::Skip,
            ..Config::default()
        };
        for ranks in [1, 2, 3, 7] {
            let reports = check_by_ids(&scenes, ranks, &config)?;
            for (report, scene) in reports.iter().zip(&scenes) {
                let all = scene.boxes.iter().zip(&scene.ids);
                let bad = all.filter(|(b, _)| b.check().is_err()).map(|(_, &id)| id);
                assert_eq!(report.invalid.map(|invalid| invalid.first), bad.min());
            }
        }
        let config = Config {
            events: false,
            ..config
        };
        let last = scenes.len() - 1;
        let reports = check_by_ids(
            &scenes[last..],
            3,
            &Config {
                events: true,
                ..config.clone()
            },
        )?;
        let moments: Vec<Moment> = scenes.iter().map(by_ids).collect();
        let without = without_events(&moments, &config)?;
        assert_eq!(reports[0].pairs, without[last]);
    }
    Ok(())
}

/// Boxes go to other ranks and stay where they are.
fn hand_over_starts_nothing() -> Result<(), Failed> {
    let first = scattered(Scene::dealt(uniform_in(600, [7.0; 3], 3)));
    let mut random = Random::new(2);
    // Each rank gives all of its boxes to the next, and has as many as before.
    let mut rotated = first.clone();
    rotated.origins.iter_mut().for_each(|origin| *origin += 1);
    let mut scenes = vec![first, rotated];
    for _ in 0..3 {
        let mut next = scenes[scenes.len() - 1].clone();
        next.origins.fill_with(|| random.below(5040));
        scenes.push(next);
    }
    for ranks in [2, 3, 6] {
        let reports = check_by_ids(&scenes, ranks, &Config::default())?;
        assert!(reports[0].pairs > 0 && reports[0].started == reports[0].pairs);
        for report in &reports[1..] {
            assert_eq!((report.started, report.ended), (0, 0));
        }
    }
    Ok(())
}

/// Ranks with consecutive ids beside ranks that list theirs, from frame to frame in another way.
fn some_ranks_list_ids() -> Result<(), Failed> {
    let brings = [Bring::OddByIds, Bring::Consecutive, Bring::ByIds];
    let mut moments = sequence(Scene::dealt(uniform_in(800, [8.0; 3], 2)), 7);
    for (k, moment) in moments.iter_mut().enumerate() {
        moment.bring = brings[k % 3];
        moment.share = [100, 40, 150][k / 2 % 3];
    }
    for ranks in [1, 2, 3, 6] {
        check(&moments, ranks, &Config::default())?;
    }
    Ok(())
}

fn empty_ranks() -> Result<(), Failed> {
    let on = |origin: usize, n: usize| Scene {
        origins: vec![origin; n],
        ..scattered(Scene::dealt(uniform_in(n, [4.0; 3], 5)))
    };
    let scenes = [
        on(1, 0),
        on(1, 120),
        on(0, 120),
        on(2, 60),
        on(0, 0),
        on(2, 1),
    ];
    for ranks in [1, 2, 3] {
        check_by_ids(&scenes, ranks, &Config::default())?;
    }
    Ok(())
}

/// Pairs are excluded with consecutive ids too, also such that do not overlap.
fn excluded_pairs() -> Result<(), Failed> {
    let mut moments = sequence(Scene::dealt(uniform_in(900, [8.0; 3], 6)), 4);
    let mut random = Random::new(5);
    for (k, moment) in moments.iter_mut().enumerate() {
        let mut pairs = moment.scene.expected(&Config::default());
        pairs.retain(|_| k == 2 || random.chance(3));
        for a in 0..100 {
            pairs.push(sap_dist::Pair { a, b: a + 700 });
        }
        pairs.sort_unstable();
        moment.scene.excluded = if k == 1 { Vec::new() } else { pairs };
    }
    for rule in RULES {
        let config = Config {
            rule,
            ..Config::default()
        };
        for ranks in [1, 2, 4] {
            let reports = check(&moments, ranks, &config)?;
            assert!(reports[1].pairs > 0 && reports[2].pairs == 0);
        }
    }
    Ok(())
}
