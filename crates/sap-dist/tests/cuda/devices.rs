//! Boxes of the host on several devices by one call: the lists of one engine, frame after frame.

use super::{Check, device_of, unless_quick};
use crate::common::churn::some_filter;
use crate::common::random::{Random, uniform_in};
use libtest_mimic::Failed;
use sap::{Aabb, Backend, BroadPhase, Filter, Frame, OnInvalid, OverlapRule};
use sap_dist::{Cause, Config, Devices, Error, List, Pair};

pub const ALL: &[(&str, Check)] = &[
    (
        "devices::same_lists_as_one_engine",
        same_lists_as_one_engine,
    ),
    ("devices::filters_come_and_go", filters_come_and_go),
    (
        "devices::a_bad_frame_leaves_the_last",
        a_bad_frame_leaves_the_last,
    ),
    ("devices::missing_devices", missing_devices),
];

/// Returns the pairs and events of all devices.
pub(super) fn lists(devices: &Devices) -> Result<[Vec<Pair>; 3], Failed> {
    let all =
        |lists: Vec<Result<Vec<Pair>, Error>>| lists.into_iter().collect::<Result<Vec<_>, _>>();
    Ok([
        all(devices.pairs().collect())?.concat(),
        all(devices.started().collect())?.concat(),
        all(devices.ended().collect())?.concat(),
    ])
}

fn wide(pairs: &[sap::Pair]) -> Vec<Pair> {
    let wide = |pair: &sap::Pair| Pair {
        a: pair.a.into(),
        b: pair.b.into(),
    };
    pairs.iter().map(wide).collect()
}

/// The number of boxes changes too, so that boxes change devices.
fn same_lists_as_one_engine() -> Result<(), Failed> {
    let n = unless_quick(100_000, 800);
    for rule in [OverlapRule::Closed, OverlapRule::Open] {
        for count in 1..=unless_quick(5, 3) {
            let config = Config {
                rule,
                on_invalid: OnInvalid::Skip,
                ..Config::default()
            };
            let mut one = BroadPhase::new(sap::Config {
                backend: Backend::Cpu,
                rule,
                on_invalid: OnInvalid::Skip,
                ..sap::Config::default()
            })?;
            let mut devices = Devices::new(config, (0..count).map(device_of))?;
            for (seed, n) in [(1, n), (1, n), (2, n), (2, n / 2), (3, 2), (3, 0), (1, n)] {
                let mut boxes = uniform_in(n, [(n as f32).cbrt(); 3], seed);
                if let Some(last) = boxes.last_mut() {
                    last.min[1] = f32::NAN;
                }
                let expected = one.update(&boxes)?.clone();
                let report = devices.update(&boxes)?;
                assert_eq!(report.boxes, expected.n as u64);
                assert_eq!(report.ranks.len(), count);
                assert_eq!(
                    report.invalid.map(|skipped| skipped.count),
                    expected.invalid.map(|_| 1)
                );
                assert_eq!(
                    [report.pairs, report.started, report.ended],
                    [expected.pairs, expected.started, expected.ended]
                );
                let expected = [one.pairs(), one.started(), one.ended()].map(wide);
                assert!(lists(&devices)? == expected, "{count} devices, {n} boxes");
            }
        }
    }
    Ok(())
}

/// Also the events of frames with and without filters are those of one engine.
fn filters_come_and_go() -> Result<(), Failed> {
    let n = unless_quick(50_000, 800);
    let boxes = uniform_in(n, [(n as f32).cbrt(); 3], 5);
    let mut random = Random::new(6);
    let filters: Vec<Filter> = boxes.iter().map(|_| some_filter(&mut random)).collect();
    let mut one = BroadPhase::new(sap::Config {
        backend: Backend::Cpu,
        ..sap::Config::default()
    })?;
    let mut devices = Devices::new(Config::default(), (0..3).map(device_of))?;
    for (n, is_filtered) in [(n, true), (n / 2, true), (n, false), (n, true), (0, true)] {
        let (boxes, filters) = (&boxes[..n], &filters[..n]);
        if is_filtered {
            one.update(Frame::boxes(boxes).filters(filters))?;
            devices.update_filtered(boxes, filters)?;
        } else {
            one.update(boxes)?;
            devices.update(boxes)?;
        }
        let expected = [one.pairs(), one.started(), one.ended()].map(wide);
        assert!(lists(&devices)? == expected, "{n} boxes, {is_filtered}");
    }
    let failed = devices.update_filtered(&boxes, &filters[1..]).err();
    let cause = Cause::LengthMismatch {
        what: List::Filters,
        expected: n as u64,
        given: n as u64 - 1,
    };
    assert_eq!(failed, Some(Error::Rank { rank: 0, cause }));
    Ok(())
}

fn a_bad_frame_leaves_the_last() -> Result<(), Failed> {
    let mut boxes = uniform_in(500, [7.0; 3], 4);
    let mut devices = Devices::new(Config::default(), (0..3).map(device_of))?;
    devices.update(&boxes)?;
    let before = (lists(&devices)?, devices.report().clone());
    boxes[400].max[2] = -1e9;
    let reason = boxes[400].check().expect_err("the box is inverted");
    let failed = devices.update(&boxes).err();
    let cause = Cause::InvalidAabb { id: 400, reason };
    assert_eq!(failed, Some(Error::Rank { rank: 2, cause }));
    assert!((lists(&devices)?, devices.report().clone()) == before);
    boxes[400] = Aabb::EMPTY;
    let report = devices.update(&boxes)?;
    assert_eq!((report.boxes, report.started), (500, 0));
    let pairs = report.pairs;
    devices.clear();
    assert!(lists(&devices)?.iter().all(Vec::is_empty) && devices.report().pairs == 0);
    let report = devices.update(&boxes)?;
    assert_eq!((report.pairs, report.started), (pairs, pairs));
    Ok(())
}

fn missing_devices() -> Result<(), Failed> {
    let beyond = Devices::count()?;
    let failed = Devices::new(Config::default(), [0, beyond]).err();
    assert!(
        matches!(failed, Some(Error::Rank { rank: 1, .. })),
        "{failed:?}"
    );
    let failed = Devices::new(Config::default(), []).err();
    assert!(failed.is_some_and(|error| error.to_string().ends_with("no device was named")));
    Ok(())
}
