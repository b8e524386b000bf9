//! Tests the calls as a C program makes them: their results, and that bad arguments are errors.

#![allow(clippy::unwrap_used)]

use radsweep_capi::RadsweepStatus as Status;
use radsweep_capi::*;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

type Handle = *mut RadsweepBroadPhase;

fn unit(at: f32) -> RadsweepAabb {
    RadsweepAabb {
        min: [at, 0.0, 0.0],
        max: [at + 1.0, 1.0, 1.0],
    }
}

fn config() -> RadsweepConfig {
    // SAFETY: zeros are a configuration.
    let mut config: RadsweepConfig = unsafe { std::mem::zeroed() };
    // SAFETY: it is one, of that size.
    let status = unsafe { radsweep_config_default(&mut config, size_of::<RadsweepConfig>()) };
    assert_eq!(status, Status::Ok);
    config.backend = RADSWEEP_BACKEND_CPU;
    config
}

fn frame() -> RadsweepFrame {
    // SAFETY: zeros are a frame.
    let mut frame: RadsweepFrame = unsafe { std::mem::zeroed() };
    // SAFETY: it is one, of that size.
    let status = unsafe { radsweep_frame_default(&mut frame, size_of::<RadsweepFrame>()) };
    assert_eq!(status, Status::Ok);
    frame
}

fn create(config: &RadsweepConfig) -> Handle {
    let mut handle = null_mut();
    // SAFETY: both point at what they should.
    let status = unsafe { radsweep_create(config, &mut handle) };
    assert_eq!(status, Status::Ok, "{}", message());
    assert!(!handle.is_null());
    handle
}

fn message() -> String {
    // SAFETY: never null, ends with zero, read at once.
    unsafe { CStr::from_ptr(radsweep_last_error()) }
        .to_str()
        .unwrap()
        .to_owned()
}

fn detail() -> RadsweepErrorDetail {
    let mut detail = RadsweepErrorDetail {
        status: Status::Other,
        index: 9,
        count: 9,
    };
    // SAFETY: it points at one.
    let status = unsafe { radsweep_last_error_detail(&mut detail) };
    assert_eq!(status, Status::Ok);
    detail
}

fn update(handle: Handle, boxes: &[RadsweepAabb]) -> Status {
    // SAFETY: that many boxes.
    unsafe { radsweep_update(handle, boxes.as_ptr(), boxes.len()) }
}

fn pairs(handle: Handle, which: u32) -> Vec<(u32, u32)> {
    let (mut list, mut count) = (null(), 0);
    // SAFETY: memory for the result, which is read before the next call.
    let list = unsafe {
        assert_eq!(
            radsweep_pairs(handle, which, &mut list, &mut count),
            Status::Ok,
            "{}",
            message()
        );
        std::slice::from_raw_parts(list, count)
    };
    list.iter().map(|pair| (pair.a, pair.b)).collect()
}

#[test]
fn a_loop_gets_pairs_and_events() {
    let handle = create(&config());
    assert_eq!(
        update(handle, &[unit(0.0), unit(1.0), unit(5.0)]),
        Status::Ok
    );
    assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), [(0, 1)]);
    assert_eq!(
        update(handle, &[unit(0.0), unit(4.5), unit(5.0)]),
        Status::Ok
    );
    assert_eq!(pairs(handle, RADSWEEP_PAIRS_STARTED), [(1, 2)]);
    assert_eq!(pairs(handle, RADSWEEP_PAIRS_ENDED), [(0, 1)]);

    let report = report(handle, size_of::<RadsweepReport>());
    assert_eq!(
        (report.boxes, report.pairs, report.started, report.ended),
        (3, 1, 1, 1)
    );
    assert_eq!(report.backend, RADSWEEP_BACKEND_CPU);
    assert_eq!(radsweep_clear(handle), Status::Ok);
    assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), []);
    assert_eq!(update(handle, &[]), Status::Ok);
    assert_eq!(radsweep_synchronize(handle), Status::Ok);
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn invalid_handles_are_errors() {
    let handle = create(&config());
    let destroyed = create(&config());
    assert_eq!(radsweep_destroy(destroyed), Status::Ok);
    let mut on_stack = 7_u64;
    let foreign = [
        null_mut(),
        destroyed,
        (&raw mut on_stack).cast(),
        handle.wrapping_byte_add(1),
        handle.wrapping_byte_add(2),
        std::ptr::without_provenance_mut(1),
        std::ptr::without_provenance_mut(usize::MAX),
    ];
    let box_ = unit(0.0);
    let (mut list, mut indices, mut hits, mut count, mut address) = (null(), null(), null(), 0, 0);
    let (mut nearest, mut found) = (RadsweepRayHit { index: 7, t: 7.0 }, 7);
    for handle in foreign {
        // SAFETY: all arguments but the handle are valid.
        let statuses = unsafe {
            let mut report: RadsweepReport = std::mem::zeroed();
            [
                radsweep_update(handle, &box_, 1),
                radsweep_update_frame(handle, &frame()),
                radsweep_update_device(handle, 16, 0),
                radsweep_synchronize(handle),
                radsweep_clear(handle),
                radsweep_overlaps_between(handle, &frame(), &frame(), &mut list, &mut count),
                radsweep_for_each_pair_chunk(
                    handle,
                    &frame(),
                    1,
                    Some(count_pairs),
                    null_mut(),
                    null_mut(),
                ),
                radsweep_pairs(handle, 0, &mut list, &mut count),
                radsweep_copy_pairs(handle, 0, null_mut(), 0, &mut count),
                radsweep_device_pairs(handle, &mut address, &mut count),
                radsweep_report(handle, &mut report, size_of::<RadsweepReport>()),
                radsweep_query_box(handle, &box_, &mut indices, &mut count),
                radsweep_query_point(handle, box_.min.as_ptr(), &mut indices, &mut count),
                radsweep_query_sphere(handle, box_.min.as_ptr(), 1.0, &mut indices, &mut count),
                radsweep_query_ray(
                    handle,
                    box_.min.as_ptr(),
                    box_.max.as_ptr(),
                    1.0,
                    &mut hits,
                    &mut count,
                ),
                radsweep_query(handle, &query(), &mut indices, &mut count),
                radsweep_query_hits(handle, &query(), &mut hits, &mut count),
                radsweep_query_copy(handle, &query(), null_mut(), 0, &mut count),
                radsweep_query_closest(handle, &query(), &mut nearest, &mut found),
                radsweep_query_visit(handle, &query(), Some(visit), null_mut()),
                radsweep_destroy(handle),
            ]
        };
        assert_eq!(statuses, [Status::Handle; 21], "{handle:?}");
        assert!(message().contains("is not a broad phase"), "{}", message());
    }
    assert_eq!(
        update(handle, &[box_]),
        Status::Ok,
        "the valid one still works"
    );
    assert_eq!(radsweep_destroy(handle), Status::Ok);
    assert_eq!(radsweep_destroy(handle), Status::Handle);
}

#[test]
fn pointers_are_checked_before_use() {
    let handle = create(&config());
    let boxes = [unit(0.0), unit(0.5)];
    assert_eq!(update(handle, &boxes), Status::Ok);
    let askew = boxes.as_ptr().wrapping_byte_add(1);
    let (mut list, mut count) = (null(), 0);
    // SAFETY: null, misaligned or impossible pointers, none of which is followed.
    unsafe {
        assert_eq!(radsweep_create(null(), null_mut()), Status::Null);
        assert_eq!(
            radsweep_config_default(null_mut(), size_of::<RadsweepConfig>()),
            Status::Null
        );
        assert_eq!(radsweep_update(handle, null(), 1), Status::Null);
        assert_eq!(radsweep_update(handle, null(), 0), Status::Ok);
        update(handle, &boxes);
        assert_eq!(radsweep_update(handle, askew, 1), Status::Alignment);
        assert!(
            message().contains("not aligned to 4 bytes"),
            "{}",
            message()
        );
        assert_eq!(
            radsweep_update(handle, boxes.as_ptr(), usize::MAX / 2),
            Status::Argument
        );
        assert_eq!(radsweep_update_frame(handle, null()), Status::Null);
        assert_eq!(
            radsweep_pairs(handle, 0, null_mut(), &mut count),
            Status::Null
        );
        assert_eq!(
            radsweep_pairs(handle, 0, &mut list, null_mut()),
            Status::Null
        );
        assert_eq!(
            radsweep_pairs(handle, 3, &mut list, &mut count),
            Status::Argument
        );
        assert_eq!(
            radsweep_copy_pairs(handle, 0, null_mut(), 8, &mut count),
            Status::Null
        );
        assert_eq!(
            radsweep_query_point(handle, null(), null_mut(), &mut count),
            Status::Null
        );
        assert_eq!(radsweep_last_error_detail(null_mut()), Status::Null);
        let each = radsweep_for_each_pair_chunk(handle, &frame(), 1, None, null_mut(), null_mut());
        assert_eq!(each, Status::Null);
    }
    assert_eq!(
        pairs(handle, RADSWEEP_PAIRS_ALL),
        [(0, 1)],
        "none of it changed the result"
    );
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn failures_have_a_message_and_leave_the_result_unchanged() {
    let handle = create(&config());
    assert_eq!(update(handle, &[unit(0.0), unit(0.5)]), Status::Ok);
    let mut broken = unit(0.0);
    broken.min[2] = f32::NAN;
    assert_eq!(
        update(handle, &[unit(0.0), broken, broken]),
        Status::InvalidAabb
    );
    assert_eq!(message(), "box 1 is invalid: min z is NaN");
    assert_eq!(
        detail(),
        RadsweepErrorDetail {
            status: Status::InvalidAabb,
            index: 1,
            count: 0
        }
    );
    assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), [(0, 1)]);
    assert_eq!(radsweep_destroy(handle), Status::Ok);

    let few = create(&RadsweepConfig {
        pair_memory: 80,
        ..config()
    });
    let crowd = [unit(0.0); 40];
    assert_eq!(update(few, &crowd), Status::TooManyPairs);
    assert_eq!(detail().count, 40 * 39 / 2);
    let mut read = frame();
    (read.boxes, read.count) = (crowd.as_ptr(), crowd.len());
    let (mut seen, mut total) = (0_usize, 0_u64);
    // SAFETY: the frame is whole, the callback adds to `seen`.
    let status = unsafe {
        radsweep_for_each_pair_chunk(
            few,
            &read,
            7,
            Some(count_pairs),
            (&raw mut seen).cast(),
            &mut total,
        )
    };
    assert_eq!((status, seen, total), (Status::Ok, 780, 780));
    assert_eq!(radsweep_destroy(few), Status::Ok);

    let mut none: Handle = std::ptr::without_provenance_mut(16);
    let wrong = RadsweepConfig {
        margin: -1.0,
        ..config()
    };
    // SAFETY: both point at what they should.
    let status = unsafe { radsweep_create(&wrong, &mut none) };
    assert_eq!(status, Status::Argument);
    assert!(none.is_null());
    assert_eq!(
        message(),
        "the margin is -1: it must be finite and at least 0"
    );
    let other = std::thread::spawn(message).join().unwrap();
    assert_eq!(other, "", "messages belong to a thread");
}

/// Adds the number of pairs to the counter behind `user`, if it is not null.
unsafe extern "C" fn count_pairs(_: *const RadsweepPair, count: usize, user: *mut c_void) {
    // SAFETY: null or a usize, by the tests.
    if let Some(seen) = unsafe { user.cast::<usize>().as_mut() } {
        *seen += count;
    }
}

/// Reads `size` bytes of a report.
fn report(handle: Handle, size: usize) -> RadsweepReport {
    // SAFETY: zeros are a report, which has at least `size` bytes.
    unsafe {
        let mut report: RadsweepReport = std::mem::zeroed();
        assert_eq!(radsweep_report(handle, &mut report, size), Status::Ok);
        report
    }
}

#[test]
fn a_number_of_threads_changes_no_pair() {
    let boxes: Vec<RadsweepAabb> = (0..3000_u16).map(|i| unit(f32::from(i) * 0.75)).collect();
    let found = [0, 1, 2].map(|threads| {
        let handle = create(&RadsweepConfig {
            threads,
            ..config()
        });
        let read = RadsweepFrame {
            boxes: boxes.as_ptr(),
            count: boxes.len(),
            ..frame()
        };
        // SAFETY: the list has as many elements as it says.
        let status = unsafe { radsweep_update_frame(handle, &read) };
        assert_eq!(status, Status::Ok, "{}", message());
        let found = pairs(handle, RADSWEEP_PAIRS_ALL);
        assert_eq!(radsweep_destroy(handle), Status::Ok);
        found
    });
    assert!(found[0].len() == 2999 && found[0] == found[1] && found[0] == found[2]);
}

#[test]
fn boxes_at_rest_are_held_from_as_many_on_as_asked_for() {
    const STATIC: usize = 60;
    let whole = size_of::<RadsweepConfig>() as u64;
    let before_min_resting = std::mem::offset_of!(RadsweepConfig, min_resting) as u64;
    // A structure of the first version ends before the member: nothing after it is read.
    let cases = [
        (whole, STATIC as u64, STATIC as u64),
        (whole, STATIC as u64 + 1, 0),
        (whole, u64::MAX, 0),
        (whole, 0, 0),
        (before_min_resting, 1, 0),
    ];
    for (size, min_resting, held) in cases {
        let handle = create(&RadsweepConfig {
            size,
            min_resting,
            ..config()
        });
        let fixed = RadsweepFilter {
            layers: !0,
            mask: !0,
            group: 0,
            flags: RADSWEEP_FILTER_STATIC,
        };
        let mut filters = [fixed; STATIC + 1];
        filters[STATIC].flags = 0;
        let mut boxes = [unit(0.0); STATIC + 1];
        for step in 0..8_u8 {
            boxes[STATIC] = unit(50.0 + f32::from(step));
            let read = RadsweepFrame {
                boxes: boxes.as_ptr(),
                filters: filters.as_ptr(),
                count: boxes.len(),
                ..frame()
            };
            // SAFETY: the lists have as many elements as it says.
            let status = unsafe { radsweep_update_frame(handle, &read) };
            assert_eq!(status, Status::Ok, "{}", message());
            assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), []);
        }
        let last = report(handle, size_of::<RadsweepReport>());
        assert_eq!(last.resting, held, "{min_resting}");
        let first_version = report(handle, std::mem::offset_of!(RadsweepReport, resting));
        assert_eq!((first_version.boxes, first_version.resting), (61, 0));
        assert_eq!(radsweep_destroy(handle), Status::Ok);
    }
}

#[test]
fn structures_of_other_versions_are_read_by_their_size() {
    #[repr(C)]
    struct Later {
        config: RadsweepConfig,
        member: u64,
    }
    let mut handle = null_mut();
    let mut later = Later {
        config: config(),
        member: 0,
    };
    later.config.size = size_of::<Later>() as u64;
    // SAFETY: each points to as many bytes as its size says, unless the size is impossible.
    unsafe {
        assert_eq!(
            radsweep_create((&raw const later).cast(), &mut handle),
            Status::Ok
        );
        assert_eq!(radsweep_destroy(handle), Status::Ok);
        later.member = 1;
        assert_eq!(
            radsweep_create((&raw const later).cast(), &mut handle),
            Status::Version
        );
        let first_version = std::mem::offset_of!(RadsweepConfig, min_resting) as u64;
        for size in [0, 8, first_version - 1, u64::MAX] {
            let wrong = RadsweepConfig { size, ..config() };
            assert_eq!(
                radsweep_create(&wrong, &mut handle),
                Status::Version,
                "{size}"
            );
        }
        let mut filled = Later {
            config: config(),
            member: 7,
        };
        let status = radsweep_config_default((&raw mut filled).cast(), size_of::<Later>());
        assert_eq!(
            (status, filled.member, filled.config.size),
            (Status::Ok, 0, size_of::<Later>() as u64)
        );
        assert_eq!(
            radsweep_config_default(&mut filled.config, 4),
            Status::Version
        );
        let mut report: RadsweepReport = std::mem::zeroed();
        let handle = create(&config());
        assert_eq!(radsweep_report(handle, &mut report, 8), Status::Version);
        assert_eq!(radsweep_destroy(handle), Status::Ok);
    }
    let fields = [
        RadsweepConfig {
            backend: 4,
            ..config()
        },
        RadsweepConfig {
            strategy: 4,
            ..config()
        },
        RadsweepConfig {
            rule: 2,
            ..config()
        },
        RadsweepConfig {
            on_invalid: 2,
            ..config()
        },
        RadsweepConfig {
            events: 2,
            ..config()
        },
        RadsweepConfig {
            initial_pair_capacity: u64::MAX,
            ..config()
        },
    ];
    for wrong in fields {
        // SAFETY: both point at what they should.
        let status = unsafe { radsweep_create(&wrong, &mut handle) };
        assert_eq!(status, Status::Argument, "{wrong:?}");
    }
}

#[test]
fn every_form_of_frame() {
    let handle = create(&config());
    let boxes = [unit(0.0), unit(0.5), unit(9.0)];
    let ends = [unit(0.0), unit(9.0), unit(9.0)];
    let exact = boxes.map(|b| RadsweepAabb64 {
        min: b.min.map(f64::from),
        max: b.max.map(f64::from),
    });
    let all = RadsweepFilter {
        layers: !0,
        mask: !0,
        group: 0,
        flags: 0,
    };
    let fixed = RadsweepFilter {
        flags: RADSWEEP_FILTER_STATIC,
        ..all
    };
    let plain = RadsweepFrame {
        boxes: boxes.as_ptr(),
        count: 3,
        ..frame()
    };
    let filters = [fixed, fixed, all];
    let worlds = [1, 2, 2];
    let excluded = [RadsweepPair { a: 0, b: 1 }];
    let swept = RadsweepFrame {
        ends: ends.as_ptr(),
        ..plain
    };
    let cases: [(RadsweepFrame, &[(u32, u32)]); 6] = [
        (plain, &[(0, 1)]),
        (swept, &[(0, 1), (1, 2)]),
        (
            RadsweepFrame {
                boxes: null(),
                boxes64: exact.as_ptr(),
                ..plain
            },
            &[(0, 1)],
        ),
        (
            RadsweepFrame {
                filters: filters.as_ptr(),
                ..plain
            },
            &[],
        ),
        (
            RadsweepFrame {
                worlds: worlds.as_ptr(),
                ..swept
            },
            &[(1, 2)],
        ),
        (
            RadsweepFrame {
                excluded: excluded.as_ptr(),
                excluded_count: 1,
                ..swept
            },
            &[(1, 2)],
        ),
    ];
    // A frame of the first version, which ends before the changed set.
    let older = RadsweepFrame {
        size: std::mem::offset_of!(RadsweepFrame, changed) as u64,
        changed: std::ptr::without_provenance(1),
        ..plain
    };
    for (at, (frame, expected)) in cases.iter().chain([&(older, &[(0, 1)][..])]).enumerate() {
        // SAFETY: the lists have three elements each.
        let status = unsafe { radsweep_update_frame(handle, frame) };
        assert_eq!(status, Status::Ok, "{at}: {}", message());
        assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), *expected, "{at}");
    }
    let both = RadsweepFrame {
        boxes64: exact.as_ptr(),
        ..plain
    };
    let swept64 = RadsweepFrame {
        boxes64: exact.as_ptr(),
        boxes: null(),
        ..swept
    };
    let twice = [excluded[0], excluded[0], RadsweepPair { a: 0, b: 0 }];
    let unsorted = RadsweepFrame {
        excluded: twice.as_ptr(),
        excluded_count: 3,
        ..plain
    };
    let beyond = RadsweepFrame {
        changed: [0, 3].as_ptr(),
        changed_count: 2,
        ..plain
    };
    for wrong in [both, swept64, unsorted, beyond] {
        // SAFETY: as above.
        let status = unsafe { radsweep_update_frame(handle, &wrong) };
        assert_eq!(status, Status::Argument);
    }

    let (mut list, mut count) = (null(), 0);
    // SAFETY: the lists have three elements each; what is lent out is read at once.
    let between = unsafe {
        let status = radsweep_overlaps_between(handle, &plain, &plain, &mut list, &mut count);
        assert_eq!(status, Status::Ok);
        std::slice::from_raw_parts(list, count)
    };
    assert_eq!(between.len(), 5);
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn told_what_changed() {
    let handle = create(&RadsweepConfig {
        min_resting: 16,
        ..config()
    });
    let far = |i: u32| unit(2.0 * i as f32);
    let mut boxes: Vec<RadsweepAabb> = (0..60).map(far).collect();
    for moved in 0..6 {
        boxes[moved] = unit(2.0 * moved as f32 + 1.0);
        let changed = [moved as u32];
        let changed = RadsweepFrame {
            boxes: boxes.as_ptr(),
            count: 60,
            changed: changed.as_ptr(),
            changed_count: 1,
            ..frame()
        };
        // SAFETY: the lists are as long as they are said to be.
        let status = unsafe { radsweep_update_frame(handle, &changed) };
        assert_eq!(status, Status::Ok);
        // It touches the next one, which moves away in the next frame.
        let next = moved as u32 + 1;
        assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), [(next - 1, next)]);
    }
    assert_eq!(report(handle, size_of::<RadsweepReport>()).resting, 59);
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn copies_and_queries() {
    let handle = create(&config());
    update(handle, &[unit(0.0), unit(0.5), unit(1.0)]);
    let mut copy = [RadsweepPair { a: 7, b: 7 }; 3];
    let (mut indices, mut hits, mut count) = (null(), null(), 0);
    // SAFETY: the capacity is right; lent lists are read at once.
    unsafe {
        let status =
            radsweep_copy_pairs(handle, RADSWEEP_PAIRS_ALL, copy.as_mut_ptr(), 2, &mut count);
        assert_eq!((status, count, copy[0].a), (Status::TooSmall, 3, 7));
        assert_eq!(detail().count, 3);
        let status =
            radsweep_copy_pairs(handle, RADSWEEP_PAIRS_ALL, copy.as_mut_ptr(), 3, &mut count);
        assert_eq!((status, copy[2]), (Status::Ok, RadsweepPair { a: 1, b: 2 }));

        let point = [1.75, 0.5, 0.5];
        assert_eq!(
            radsweep_query_point(handle, point.as_ptr(), &mut indices, &mut count),
            Status::Ok
        );
        assert_eq!(std::slice::from_raw_parts(indices, count), [2]);
        let status = radsweep_query_sphere(handle, point.as_ptr(), 0.25, &mut indices, &mut count);
        assert_eq!(
            (status, std::slice::from_raw_parts(indices, count)),
            (Status::Ok, &[1, 2][..])
        );
        assert_eq!(
            radsweep_query_box(handle, &unit(-0.75), &mut indices, &mut count),
            Status::Ok
        );
        assert_eq!(std::slice::from_raw_parts(indices, count), [0]);
        let (origin, direction) = ([-1.0, 0.5, 0.5], [1.0, 0.0, 0.0]);
        let status = radsweep_query_ray(
            handle,
            origin.as_ptr(),
            direction.as_ptr(),
            1.5,
            &mut hits,
            &mut count,
        );
        assert_eq!(status, Status::Ok);
        let expected = [
            RadsweepRayHit { index: 0, t: 1.0 },
            RadsweepRayHit { index: 1, t: 1.5 },
        ];
        assert_eq!(std::slice::from_raw_parts(hits, count), expected);
    }
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

fn query() -> RadsweepQuery {
    // SAFETY: zeros are a query.
    let mut query: RadsweepQuery = unsafe { std::mem::zeroed() };
    // SAFETY: it is one, of that size.
    let status = unsafe { radsweep_query_default(&mut query, size_of::<RadsweepQuery>()) };
    assert_eq!(status, Status::Ok);
    query
}

/// Hits, and after how many to stop.
struct Visited(Vec<RadsweepRayHit>, usize);

unsafe extern "C" fn visit(hit: RadsweepRayHit, user: *mut c_void) -> i32 {
    // SAFETY: the tests give one, and nobody else uses it meanwhile.
    let visited = unsafe { &mut *user.cast::<Visited>() };
    visited.0.push(hit);
    i32::from(visited.0.len() == visited.1)
}

#[test]
fn queries_by_shape_filter_world_and_rule() {
    let handle = create(&config());
    let boxes = [unit(0.0), unit(1.0), unit(2.0), unit(1.0)];
    let filters = [1, 1, 2, 2].map(|layers| RadsweepFilter {
        layers,
        mask: u32::MAX,
        group: 0,
        flags: 0,
    });
    let worlds = [0, 0, 0, 5];
    let frame = RadsweepFrame {
        boxes: boxes.as_ptr(),
        filters: filters.as_ptr(),
        worlds: worlds.as_ptr(),
        count: 4,
        ..frame()
    };
    let (mut indices, mut hits, mut count, mut found) = (null(), null(), 0, 7);
    let ray = RadsweepQuery {
        shape: RADSWEEP_SHAPE_RAY,
        point: [-1.0, 0.5, 0.5],
        direction: [1.0, 0.0, 0.0],
        ..query()
    };
    let second_layer = RadsweepQuery {
        flags: RADSWEEP_QUERY_FILTER,
        filter: RadsweepFilter {
            layers: u32::MAX,
            mask: 2,
            ..ray.filter
        },
        ..ray
    };
    let hit = |index, t| RadsweepRayHit { index, t };
    // SAFETY: lists and queries are what they are said to be; what is lent out is read at once.
    unsafe {
        assert_eq!(radsweep_update_frame(handle, &frame), Status::Ok);
        let mut all = |query: &RadsweepQuery| {
            let status = radsweep_query(handle, query, &mut indices, &mut count);
            assert_eq!(status, Status::Ok, "{}", message());
            std::slice::from_raw_parts(indices, count).to_vec()
        };
        assert_eq!(all(&query()), []);
        assert_eq!(all(&ray), [0, 1, 2, 3]);
        assert_eq!(all(&second_layer), [2, 3]);
        let both = RadsweepQuery {
            flags: RADSWEEP_QUERY_FILTER | RADSWEEP_QUERY_WORLD,
            world: 5,
            ..second_layer
        };
        assert_eq!(all(&both), [3]);
        let touching = RadsweepQuery {
            bounds: unit(-1.0),
            ..query()
        };
        assert_eq!(all(&touching), [0]);
        let open = RadsweepQuery {
            flags: RADSWEEP_QUERY_RULE,
            rule: RADSWEEP_RULE_OPEN,
            ..touching
        };
        assert_eq!(all(&open), []);
        let cast = RadsweepQuery {
            shape: RADSWEEP_SHAPE_CAST,
            direction: [1.0, 0.0, 0.0],
            max_t: 1.0,
            ..touching
        };
        assert_eq!(all(&cast), [0, 1, 3]);
        let sphere = RadsweepQuery {
            shape: RADSWEEP_SHAPE_SPHERE,
            radius: 1.0,
            ..ray
        };
        assert_eq!(all(&sphere), [0]);
        let point = RadsweepQuery {
            shape: RADSWEEP_SHAPE_POINT,
            point: [2.5, 0.5, 0.5],
            ..ray
        };
        assert_eq!(all(&point), [2]);

        let status = radsweep_query_hits(handle, &second_layer, &mut hits, &mut count);
        assert_eq!(status, Status::Ok);
        let expected = [hit(3, 2.0), hit(2, 3.0)];
        assert_eq!(std::slice::from_raw_parts(hits, count), expected);
        let mut nearest = hit(7, 7.0);
        let status = radsweep_query_closest(handle, &second_layer, &mut nearest, &mut found);
        assert_eq!((status, found, nearest), (Status::Ok, 1, expected[0]));
        let status = radsweep_query_closest(handle, &query(), &mut nearest, &mut found);
        assert_eq!((status, found, nearest), (Status::Ok, 0, expected[0]));
        for stop in [1, 2, 0] {
            let mut visited = Visited(Vec::new(), stop);
            let user = (&raw mut visited).cast();
            let status = radsweep_query_visit(handle, &ray, Some(visit), user);
            assert_eq!(status, Status::Ok);
            assert_eq!(visited.0.len(), if stop == 0 { 4 } else { stop });
            assert_eq!(visited.0[0], hit(0, 1.0));
        }
        let mut some = [7; 4];
        let status = radsweep_query_copy(handle, &ray, some.as_mut_ptr(), 3, &mut count);
        assert_eq!((status, count, some), (Status::TooSmall, 4, [7; 4]));
        let status = radsweep_query_copy(handle, &ray, some.as_mut_ptr(), 4, &mut count);
        assert_eq!((status, count, some), (Status::Ok, 4, [0, 1, 2, 3]));
    }
    bad_queries(handle, &ray);
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

/// Queries that are none, and results without memory.
fn bad_queries(handle: Handle, ray: &RadsweepQuery) {
    let wrong = [
        RadsweepQuery { shape: 5, ..*ray },
        RadsweepQuery { flags: 8, ..*ray },
        RadsweepQuery {
            flags: RADSWEEP_QUERY_RULE,
            rule: 2,
            ..*ray
        },
        RadsweepQuery { size: 8, ..*ray },
    ];
    let expected = [
        Status::Argument,
        Status::Argument,
        Status::Argument,
        Status::Version,
    ];
    let (mut count, mut found, mut nearest) = (0, 7, RadsweepRayHit { index: 7, t: 7.0 });
    for (query, expected) in wrong.iter().zip(expected) {
        // SAFETY: queries, of which one says to be smaller than it is.
        unsafe {
            let status = radsweep_query_copy(handle, query, null_mut(), 0, &mut count);
            assert_eq!(status, expected, "{}", message());
            let status = radsweep_query_closest(handle, query, &mut nearest, &mut found);
            assert_eq!((status, found), (expected, 7));
        }
    }
    // SAFETY: null where that is an error.
    unsafe {
        let statuses = [
            radsweep_query(handle, ray, null_mut(), &mut count),
            radsweep_query_hits(handle, null(), null_mut(), &mut count),
            radsweep_query_closest(handle, ray, null_mut(), &mut found),
            radsweep_query_visit(handle, ray, None, null_mut()),
            radsweep_query_copy(handle, ray, null_mut(), 9, &mut count),
        ];
        assert_eq!(statuses, [Status::Null; 5]);
    }
}

#[test]
fn threads_query_one_handle_at_once() {
    let handle = create(&config());
    let boxes: Vec<_> = (0..500).map(|i| unit(i as f32 * 1.5)).collect();
    update(handle, &boxes);
    let handle = handle.addr();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let handle: Handle = std::ptr::without_provenance_mut(handle);
                for i in (thread..500).step_by(3) {
                    let query = RadsweepQuery {
                        bounds: unit(i as f32 * 1.5),
                        ..query()
                    };
                    let (mut found, mut count) = ([0; 2], 0);
                    // SAFETY: there is memory for two.
                    let status = unsafe {
                        radsweep_query_copy(handle, &query, found.as_mut_ptr(), 2, &mut count)
                    };
                    assert_eq!((status, count, found[0]), (Status::Ok, 1, i as u32));
                }
            });
        }
    });
    let handle: Handle = std::ptr::without_provenance_mut(handle);
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn a_second_user_gets_busy() {
    struct Again(Handle, Vec<Status>);
    unsafe extern "C" fn again(_: *const RadsweepPair, _: usize, user: *mut c_void) {
        // SAFETY: the test gives one, and nobody else uses it meanwhile.
        let again = unsafe { &mut *user.cast::<Again>() };
        again.1.push(update(again.0, &[]));
    }
    let handle = create(&config());
    let boxes = [unit(0.0); 3];
    let read = RadsweepFrame {
        boxes: boxes.as_ptr(),
        count: 3,
        ..frame()
    };
    let mut user = Again(handle, Vec::new());
    // SAFETY: the frame is whole and `user` is what the callback takes.
    let status = unsafe {
        radsweep_for_each_pair_chunk(
            handle,
            &read,
            3,
            Some(again),
            (&raw mut user).cast(),
            null_mut(),
        )
    };
    assert_eq!((status, user.1), (Status::Ok, vec![Status::Busy]));
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn threads_share_the_table_and_a_handle_may_change_threads() {
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            std::thread::spawn(move || {
                for round in 0..20 {
                    let handle = create(&config());
                    let address = handle.addr();
                    assert_eq!(
                        update(handle, &[unit(0.0), unit((worker + round) as f32 * 0.01)]),
                        Status::Ok
                    );
                    let other = move || {
                        let handle = std::ptr::without_provenance_mut(address);
                        assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), [(0, 1)]);
                        assert_eq!(radsweep_destroy(handle), Status::Ok);
                    };
                    std::thread::spawn(other).join().unwrap();
                    assert_eq!(radsweep_clear(handle), Status::Handle);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}

#[test]
fn missing_cuda_is_an_error_that_says_what_was_looked_for() {
    let mut handle = null_mut();
    let asked = RadsweepConfig {
        backend: RADSWEEP_BACKEND_CUDA,
        ..config()
    };
    // SAFETY: both point at what they should.
    let status = unsafe { radsweep_create(&asked, &mut handle) };
    if status == Status::Ok {
        assert_eq!(radsweep_destroy(handle), Status::Ok); // there is a device
    } else {
        assert_eq!(status, Status::NoCuda);
        assert!(message().starts_with("no CUDA backend: "), "{}", message());
    }
    let on_cpu = create(&config());
    let (mut address, mut count) = (1, 1);
    // SAFETY: the address is invalid, but nothing reads it.
    unsafe {
        assert_eq!(radsweep_update_device(on_cpu, 16, 1), Status::NoCuda);
        assert_eq!(
            radsweep_device_pairs(on_cpu, &mut address, &mut count),
            Status::NoCuda
        );
    }
    assert_eq!(radsweep_destroy(on_cpu), Status::Ok);
}

#[cfg(cuda)]
#[test]
fn boxes_on_a_device() {
    let asked = RadsweepConfig {
        backend: RADSWEEP_BACKEND_CUDA,
        ..config()
    };
    let mut handle = null_mut();
    // SAFETY: both point at what they should.
    if unsafe { radsweep_create(&asked, &mut handle) } != Status::Ok {
        println!("SKIPPED: {}", message());
        return;
    }
    let stream = gpu::Stream::new(&gpu::Device::first().unwrap()).unwrap();
    let boxes = [unit(0.0), unit(0.5), unit(9.0)].map(|b| sap::Aabb::new(b.min, b.max));
    let boxes = stream.from_slice(&boxes).unwrap();
    stream.synchronize().unwrap();
    let (mut address, mut count) = (0, 0);
    // SAFETY: three boxes in the memory of the device, written by now.
    unsafe {
        assert_eq!(
            radsweep_update_device(handle, boxes.ptr(), 3),
            Status::Ok,
            "{}",
            message()
        );
        assert_eq!(
            radsweep_device_pairs(handle, &mut address, &mut count),
            Status::Ok
        );
        assert_eq!(
            radsweep_update_device(handle, boxes.ptr() + 2, 1),
            Status::Alignment
        );
        assert_eq!(radsweep_update_device(handle, 0, 1), Status::Null);
        let pairs = gpu::Slice::<sap::Pair>::from_raw(address, count);
        assert_eq!(stream.to_vec(pairs).unwrap(), [sap::Pair { a: 0, b: 1 }]);
    }
    assert_eq!(pairs(handle, RADSWEEP_PAIRS_ALL), [(0, 1)]);
    assert_eq!(radsweep_synchronize(handle), Status::Ok);
    // SAFETY: no box at all.
    let none = unsafe { radsweep_update_device(handle, 0, 0) };
    assert_eq!(
        (none, pairs(handle, RADSWEEP_PAIRS_ALL)),
        (Status::Ok, vec![])
    );
    assert_eq!(radsweep_destroy(handle), Status::Ok);
}

#[test]
fn versions_and_names() {
    assert_eq!(radsweep_abi_version(), RADSWEEP_ABI_VERSION);
    let text = |pointer| {
        // SAFETY: never null, ends with zero.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap()
    };
    assert_eq!(text(radsweep_version()), env!("CARGO_PKG_VERSION"));
    assert_eq!(
        text(radsweep_status_name(Status::InvalidAabb as i32)),
        "invalid aabb"
    );
    assert_eq!(text(radsweep_status_name(99)), "unknown");
}
