//! Tests of the device layer on a device. Without a device they are ignored, with the reason;
//! `RADSWEEP_REQUIRE_CUDA=1` makes that a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gpu::{ByValue, Device, Error, Kernel, Launch, Layout, Pinned, Scratch, Stages, Stream, args};
use libtest_mimic::{Arguments, Trial};

mod lifetimes;

const KERNELS: &[u8] = include_bytes!("../ptx/kernels.ptx");

type Test = fn(&Device);
const TESTS: [(&str, Test); 30] = [
    (
        "device_properties_are_plausible",
        device_properties_are_plausible,
    ),
    (
        "opening_again_returns_the_same",
        opening_again_returns_the_same,
    ),
    ("copies_of_every_length", copies_of_every_length),
    ("fills", fills),
    ("wrong_lengths_are_errors", wrong_lengths_are_errors),
    ("empty_buffers", empty_buffers),
    ("pinned_copies", pinned_copies),
    ("every_kind_of_argument", every_kind_of_argument),
    ("wrong_launches_are_errors", wrong_launches_are_errors),
    ("large_shared_memory", large_shared_memory),
    ("cooperative_launch", cooperative_launch),
    ("events", events),
    ("stages", stages),
    ("two_streams", two_streams),
    (
        "drops_in_any_order_on_any_thread",
        drops_in_any_order_on_any_thread,
    ),
    ("many_threads", many_threads),
    ("freed_memory_is_reused", freed_memory_is_reused),
    ("out_of_memory_reports_sizes", out_of_memory_reports_sizes),
    ("bad_images", bad_images),
    ("scratch", scratch),
    ("capture_and_replay", capture_and_replay),
    (
        "captured_buffers_and_kernels_stay_alive",
        captured_buffers_and_kernels_stay_alive,
    ),
    (
        "calls_that_cannot_be_captured_are_refused",
        calls_that_cannot_be_captured_are_refused,
    ),
    (
        "streams_are_usable_after_failed_captures",
        streams_are_usable_after_failed_captures,
    ),
    ("capture_over_two_streams", capture_over_two_streams),
    (
        "graphs_keep_their_buffers",
        lifetimes::graphs_keep_their_buffers,
    ),
    (
        "freed_after_other_streams",
        lifetimes::freed_after_other_streams,
    ),
    (
        "allocated_before_other_streams",
        lifetimes::allocated_before_other_streams,
    ),
    (
        "captures_beside_other_threads",
        lifetimes::captures_beside_other_threads,
    ),
    (
        "measured_regions_are_refused",
        lifetimes::measured_regions_are_refused,
    ),
];

pub fn main() {
    let mut arguments = Arguments::from_args();
    // One thread, because all trials share the device, and a trial that measures time must not wait
    // for another.
    arguments.test_threads.get_or_insert(1);
    let device = Device::first();
    let required = std::env::var("RADSWEEP_REQUIRE_CUDA").is_ok_and(|value| value == "1");
    let trials = TESTS.into_iter().map(|(name, test)| match device.clone() {
        Ok(device) => Trial::test(name, move || {
            test(&device);
            Ok(())
        }),
        Err(error) if required => {
            Trial::test(name, move || Err(format!("no CUDA device: {error}").into()))
        }
        Err(error) => Trial::test(format!("{name} (no CUDA device: {error})"), || Ok(()))
            .with_ignored_flag(true),
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    drop(device);
    conclusion.exit();
}

/// The number of elements of the larger tests.
fn many() -> usize {
    if std::env::var("RADSWEEP_QUICK").is_ok_and(|value| value == "1") {
        5_003
    } else {
        3_000_017
    }
}

fn kernel(device: &Device, name: &str) -> Kernel {
    device
        .load("kernels.ptx", KERNELS)
        .unwrap()
        .kernel(name)
        .unwrap()
}

fn numbers(n: usize) -> Vec<u32> {
    (0..n as u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect()
}

/// Keeps the stream busy.
fn spin(stream: &Stream, spin: &Kernel, milliseconds: u64) {
    // SAFETY: the kernel touches no memory.
    unsafe {
        stream
            .launch(
                spin,
                &Launch::linear(1, 1),
                &args![milliseconds * 1_000_000],
            )
            .unwrap()
    };
}

/// `data[i] += add`.
fn add(
    stream: &Stream,
    add_all: &Kernel,
    data: gpu::SliceMut<'_, u32>,
    add: u32,
) -> gpu::Result<()> {
    let n = data.len() as u32;
    // SAFETY: `add_all(data, n, add)` touches data[0..n] only.
    unsafe {
        stream.launch(
            add_all,
            &Launch::linear(n.div_ceil(256), 256),
            &args![data, n, add],
        )
    }
}

fn device_properties_are_plausible(device: &Device) {
    let info = device.info();
    assert!(
        !info.name.is_empty() && info.compute_capability >= (5, 0) && info.multiprocessors > 0,
        "{info:?}"
    );
    assert!(
        info.shared_per_block >= 48 << 10 && info.shared_per_block_optin >= info.shared_per_block,
        "{info:?}"
    );
    assert!(
        info.max_grid.0 >= 65535 && info.threads_per_block >= 1024 && info.l2_bytes > 0,
        "{info:?}"
    );
    assert_eq!(info.driver_version, gpu::driver_version().unwrap());
    let (free, total) = device.memory().unwrap();
    assert!(
        free > 0 && free <= total && total <= info.memory_bytes + (1 << 30),
        "{free} of {total}, {info:?}"
    );
}

fn opening_again_returns_the_same(device: &Device) {
    let count = Device::count().unwrap();
    assert!(count > device.info().ordinal);
    assert_eq!(Device::open(device.info().ordinal).unwrap(), *device);
    let uuids: Vec<[u8; 16]> = (0..count)
        .map(|ordinal| Device::open(ordinal).unwrap().uuid().unwrap())
        .collect();
    assert_eq!(uuids[device.info().ordinal], device.uuid().unwrap());
    assert!((1..count).all(|ordinal| !uuids[..ordinal].contains(&uuids[ordinal])));
    assert_eq!(
        Device::open(count).unwrap_err(),
        Error::DeviceOrdinal {
            ordinal: count,
            count
        }
    );
    assert_eq!(
        Device::open(usize::MAX).unwrap_err(),
        Error::DeviceOrdinal {
            ordinal: usize::MAX,
            count
        }
    );
}

fn copies_of_every_length(device: &Device) {
    let stream = Stream::new(device).unwrap();
    for n in [1, 2, 3, 63, 64, 65, 1000, many()] {
        let data = numbers(n);
        let buffer = stream.from_slice(&data).unwrap();
        assert_eq!((buffer.len(), buffer.ptr() % 256), (n, 0));
        let mut twin = stream.alloc(n).unwrap();
        stream.copy(twin.slice_mut(), buffer.slice()).unwrap();
        assert_eq!(stream.to_vec(twin.slice()).unwrap(), data);
        let (a, b) = (n / 3, n - n / 4);
        assert_eq!(
            stream.to_vec(buffer.range(a..b).unwrap()).unwrap(),
            data[a..b]
        );
        let bytes = stream.to_vec(buffer.slice().cast::<u8>().unwrap()).unwrap();
        assert!(
            bytes
                .chunks(4)
                .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
                .eq(data)
        );
    }
}

fn fills(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let mut buffer = stream.alloc_zeroed::<u32>(1000).unwrap();
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), [0; 1000]);
    stream
        .fill_u32(buffer.range_mut(1..999).unwrap(), 0x0102_0304)
        .unwrap();
    stream
        .fill_bytes(buffer.range_mut(10..20).unwrap(), 0xab)
        .unwrap();
    let mut expected = [0x0102_0304; 1000];
    (expected[0], expected[999]) = (0, 0);
    expected[10..20].fill(0xabab_abab);
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), expected);
}

fn wrong_lengths_are_errors(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let mut buffer = stream.from_slice(&[1u32, 2, 3, 4]).unwrap();
    let other = stream.alloc_zeroed::<u32>(5).unwrap();
    let length = |needed, given| move |error: Error| matches!(error, Error::Length { needed: n, given: g, .. } if (n, g) == (needed, given));
    assert!(
        stream
            .upload(buffer.slice_mut(), &[9; 3])
            .is_err_and(length(4, 3))
    );
    assert!(
        stream
            .download(buffer.slice(), &mut [9; 5])
            .is_err_and(length(4, 5))
    );
    assert!(
        stream
            .copy(buffer.slice_mut(), other.slice())
            .is_err_and(length(4, 5))
    );
    assert_eq!(
        buffer.range_mut(2..5).unwrap_err(),
        Error::Range {
            start: 2,
            end: 5,
            len: 4
        }
    );
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), [1, 2, 3, 4]);
}

fn empty_buffers(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let mut empty = stream.from_slice::<u64>(&[]).unwrap();
    assert!(empty.is_empty() && empty.ptr() == 0);
    let other = stream.alloc_zeroed::<u64>(0).unwrap();
    stream.copy(empty.slice_mut(), other.slice()).unwrap();
    stream.fill_bytes(empty.slice_mut(), 1).unwrap();
    assert!(stream.to_vec(empty.slice()).unwrap().is_empty());
    let no_size = stream.from_slice(&[[0u8; 0]; 7]).unwrap();
    assert_eq!(stream.to_vec(no_size.slice()).unwrap().len(), 7);
    assert!(Pinned::<u32>::new(device, 0).unwrap().is_empty());
}

fn pinned_copies(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let n = many();
    let mut up = Pinned::<u32>::new(device, n).unwrap();
    let mut down = Pinned::<u32>::new(device, n).unwrap();
    assert!(up.iter().all(|&x| x == 0));
    up.copy_from_slice(&numbers(n));
    let mut buffer = stream.alloc::<u32>(n).unwrap();
    // SAFETY: neither side is touched before the stream is synchronised.
    unsafe {
        stream.upload_pinned(buffer.slice_mut(), &up).unwrap();
        stream
            .download_pinned(buffer.range(1..).unwrap(), &mut down[1..])
            .unwrap();
        assert!(stream.upload_pinned(buffer.slice_mut(), &up[1..]).is_err());
    }
    stream.synchronize().unwrap();
    assert_eq!((down[0], &down[1..]), (0, &up[1..]));
    // The blocking calls take pinned memory too, and are done when they return.
    stream.upload(buffer.slice_mut(), &up).unwrap();
    up.fill(7);
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), numbers(n));
}

fn every_kind_of_argument(device: &Device) {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Three([u32; 3]);
    // SAFETY: three words without padding.
    unsafe impl bytemuck::Zeroable for Three {}
    // SAFETY: three words without padding, for which any bits are a value.
    unsafe impl bytemuck::Pod for Three {}

    let stream = Stream::new(device).unwrap();
    let store = kernel(device, "store_arguments");
    let mut out = stream.alloc_zeroed::<u64>(10).unwrap();
    let optional = stream.alloc::<u8>(1).unwrap();
    for pointer in [None, Some(optional.slice())] {
        let (b, f) = (-2i32, -0.5f64);
        let (out_slice, b_reference) = (out.slice_mut(), &b);
        let args = args![
            out_slice,
            1u32,
            b_reference,
            u64::MAX - 2,
            -4i64,
            5.5f32,
            f,
            ByValue(Three([7, 8, 9])),
            pointer
        ];
        // SAFETY: the kernel writes ten words to the first argument, and stores the last without
        // following it.
        unsafe { stream.launch(&store, &Launch::linear(1, 1), &args).unwrap() };
        let expected = [
            1,
            u64::from(-2i32 as u32),
            u64::MAX - 2,
            -4i64 as u64,
            u64::from(5.5f32.to_bits()),
            (-0.5f64).to_bits(),
            7,
            8,
            9,
            pointer.map_or(0, |pointer| pointer.ptr()),
        ];
        assert_eq!(stream.to_vec(out.slice()).unwrap(), expected);
    }
}

fn wrong_launches_are_errors(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let fill = kernel(device, "fill_index");
    let mut out = stream.alloc_zeroed::<u32>(4).unwrap();
    let info = device.info();
    let mut refused = |launch: Launch| {
        // SAFETY: writes at most out[0..4].
        unsafe {
            stream
                .launch(&fill, &launch, &args![out.slice_mut(), 4u32, 1u32])
                .unwrap_err()
        }
    };
    let limit = info.max_grid.0;
    for (launch, given) in [
        (Launch::linear(0, 32), 0),
        (Launch::linear(1, 0), 0),
        (
            Launch::new((1, info.max_grid.1 + 1, 1), (1, 1, 1)),
            info.max_grid.1 + 1,
        ),
        (
            Launch::new((1, 1, 1), (1, 1, info.max_block.2 + 1)),
            info.max_block.2 + 1,
        ),
        (Launch::new((1, 1, 1), (32, 32, 2)), 2048),
        (
            Launch::linear(1, 32).dynamic_shared(info.shared_per_block_optin),
            info.shared_per_block_optin,
        ),
    ] {
        let error = refused(launch);
        assert!(
            matches!(&error, Error::Launch { given: g, kernel, .. } if *g == u64::from(given) && kernel == "fill_index"),
            "{error}"
        );
    }
    assert!(limit >= 65535);
    if info.driver_version >= (12, 4) {
        // SAFETY: refused before the kernel runs.
        let error = unsafe {
            stream
                .launch(&fill, &Launch::linear(1, 32), &args![out.slice_mut(), 4u64])
                .unwrap_err()
        };
        assert_eq!(
            error,
            Error::Arguments {
                kernel: "fill_index".to_owned(),
                needed: vec![8, 4, 4],
                given: vec![8, 8]
            }
        );
    }
    assert_eq!(
        stream.to_vec(out.slice()).unwrap(),
        [0; 4],
        "a refused launch ran"
    );
}

fn large_shared_memory(device: &Device) {
    let most = device.info().shared_per_block_optin;
    if most <= 48 << 10 {
        return;
    }
    let stream = Stream::new(device).unwrap();
    let reverse = kernel(device, "reverse");
    let n = most / 4;
    let data = numbers(n as usize);
    let mut buffer = stream.from_slice(&data).unwrap();
    let launch = Launch::linear(1, 1024).dynamic_shared(n * 4);
    let mut run = || {
        // SAFETY: the kernel touches data[0..n] and n words of shared memory.
        unsafe { stream.launch(&reverse, &launch, &args![buffer.slice_mut(), n]) }
    };
    let error = run().unwrap_err();
    assert!(
        matches!(&error, Error::Launch { given, .. } if *given == u64::from(n * 4)),
        "{error}"
    );
    assert!(
        reverse
            .set_max_dynamic_shared(most + 1)
            .is_err_and(|error| matches!(error, Error::Launch { .. }))
    );
    // A clone is a handle of the same kernel.
    reverse.clone().set_max_dynamic_shared(n * 4).unwrap();
    run().unwrap();
    let reversed: Vec<u32> = data.iter().rev().copied().collect();
    assert!(stream.to_vec(buffer.slice()).unwrap() == reversed);
    assert_eq!(reverse.attributes().unwrap().max_dynamic_shared, n * 4);
    assert_eq!(reverse.blocks_per_multiprocessor(1024, n * 4).unwrap(), 1);
}

fn cooperative_launch(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let meet = kernel(device, "meet");
    let blocks = meet.blocks_per_multiprocessor(1, 0).unwrap() * device.info().multiprocessors;
    let mut counter = stream.alloc_zeroed::<u32>(1).unwrap();
    let mut seen = stream.alloc_zeroed::<u32>(blocks as usize).unwrap();
    let mut run = |blocks: u32| {
        // SAFETY: the kernel touches the counter and one word a block.
        unsafe {
            stream.launch(
                &meet,
                &Launch::linear(blocks, 1).cooperative(),
                &args![counter.slice_mut(), seen.slice_mut()],
            )
        }
    };
    if !device.info().cooperative_launch {
        assert!(run(1).is_err_and(|error| matches!(error, Error::Unsupported { .. })));
        return;
    }
    let error = run(blocks + device.info().multiprocessors).unwrap_err();
    assert!(
        error.code() == Some(720) && error.to_string().contains("blocks_per_multiprocessor"),
        "{error}"
    );
    run(blocks).unwrap();
    assert_eq!(
        stream.to_vec(seen.slice()).unwrap(),
        vec![blocks; blocks as usize]
    );
}

fn events(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let busy = kernel(device, "spin");
    assert!(stream.is_idle().unwrap());
    let start = stream.record().unwrap();
    spin(&stream, &busy, 20);
    let end = stream.record().unwrap();
    assert!(!stream.is_idle().unwrap() && !end.is_done().unwrap());
    assert_eq!(start.elapsed_ms(&end).unwrap_err().code(), Some(600));
    end.synchronize().unwrap();
    assert!(stream.is_idle().unwrap() && end.is_done().unwrap());
    let milliseconds = start.elapsed_ms(&end).unwrap();
    assert!((19.0..2000.0).contains(&milliseconds), "{milliseconds}");
}

fn stages(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let busy = kernel(device, "spin");
    let mut stages = Stages::new();
    assert!(stages.finish(&stream).unwrap().is_empty());
    for round in 0..3 {
        for (name, milliseconds) in [("long", 12), ("short", 3)].into_iter().skip(round % 2) {
            stages.mark(&stream, name).unwrap();
            spin(&stream, &busy, milliseconds);
        }
        let times = stages.finish(&stream).unwrap();
        assert_eq!(
            times.iter().map(|time| time.0).collect::<Vec<_>>(),
            [&["long", "short"][..], &["short"]][round % 2]
        );
        assert!(
            times
                .iter()
                .all(|&(name, ms)| ms >= if name == "long" { 11.0 } else { 2.5 }),
            "{times:?}"
        );
    }
    // What follows a pause belongs to no stage.
    for ends_paused in [true, false] {
        stages.mark(&stream, "short").unwrap();
        spin(&stream, &busy, 3);
        stages.pause(&stream).unwrap();
        spin(&stream, &busy, 30);
        if !ends_paused {
            stages.mark(&stream, "last").unwrap();
        }
        let times = stages.finish(&stream).unwrap();
        assert_eq!(
            times.iter().map(|time| time.0).collect::<Vec<_>>(),
            [&["short", "last"][..], &["short"]][usize::from(ends_paused)]
        );
        assert!((2.5..25.0).contains(&times[0].1), "{times:?}");
    }
    stream.synchronize().unwrap();
}

fn two_streams(device: &Device) {
    let (a, b) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let busy = kernel(device, "spin");
    let n = 1000;
    let mut buffer = a.alloc_zeroed::<u32>(n).unwrap();
    let mut twin = b.alloc_zeroed::<u32>(n).unwrap();
    spin(&a, &busy, 20);
    a.fill_u32(buffer.slice_mut(), 7).unwrap();
    let filled = a.record().unwrap();
    assert!(
        b.is_idle().is_ok() && !filled.is_done().unwrap(),
        "the streams run independently"
    );
    b.wait(&filled).unwrap();
    b.copy(twin.slice_mut(), buffer.slice()).unwrap();
    a.wait(&b.record().unwrap()).unwrap();
    drop(buffer);
    assert_eq!(b.to_vec(twin.slice()).unwrap(), vec![7; n]);
}

fn drops_in_any_order_on_any_thread(device: &Device) {
    let device = device.clone();
    let buffers: Vec<_> = (0..8)
        .map(|i| {
            let stream = Stream::new(&device).unwrap();
            spin(&stream, &kernel(&device, "spin"), 2);
            stream.from_slice(&vec![i; 10_000]).unwrap()
        })
        .collect();
    let keep = buffers[3].stream().clone();
    std::thread::scope(|scope| {
        for (i, buffer) in buffers.into_iter().enumerate() {
            scope.spawn(move || {
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    let owned = buffer;
                    assert_eq!(
                        owned.stream().to_vec(owned.slice()).unwrap(),
                        vec![i as u32; 10_000]
                    );
                    if i % 2 == 0 {
                        std::panic::resume_unwind(Box::new(i));
                    }
                }));
                assert_eq!(panicked.is_err(), i % 2 == 0);
            });
        }
    });
    drop(device);
    assert_eq!(
        keep.to_vec(keep.from_slice(&[5u8]).unwrap().slice())
            .unwrap(),
        [5]
    );
}

fn many_threads(device: &Device) {
    let add_all = kernel(device, "add_all");
    let shared = Stream::new(device).unwrap();
    std::thread::scope(|scope| {
        for i in 0..8u32 {
            let (add_all, shared) = (&add_all, &shared);
            scope.spawn(move || {
                let own = Stream::new(device).unwrap();
                for round in 0..20 {
                    for stream in [&own, shared] {
                        let mut buffer = stream.from_slice(&numbers(1000 + round)).unwrap();
                        add(stream, add_all, buffer.slice_mut(), i).unwrap();
                        let expected: Vec<u32> = numbers(1000 + round)
                            .into_iter()
                            .map(|x| x.wrapping_add(i))
                            .collect();
                        assert_eq!(stream.to_vec(buffer.slice()).unwrap(), expected);
                    }
                }
            });
        }
    });
}

fn freed_memory_is_reused(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let large = (device.info().memory_bytes / 8) as usize;
    for i in 0..32u8 {
        let mut buffer = stream.alloc::<u8>(large).unwrap();
        stream
            .fill_bytes(buffer.range_mut(large - 1..).unwrap(), i)
            .unwrap();
        assert_eq!(
            stream.to_vec(buffer.range(large - 1..).unwrap()).unwrap(),
            [i]
        );
    }
    stream.synchronize().unwrap();
    let (free, total) = device.memory().unwrap();
    assert!(free <= total);
    device.trim().unwrap();
}

fn out_of_memory_reports_sizes(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let before = stream.from_slice(&[1u32, 2, 3]).unwrap();
    let bytes = device.info().memory_bytes as usize + (1 << 30);
    match stream.alloc::<u8>(bytes).unwrap_err() {
        Error::OutOfMemory {
            requested,
            free,
            total,
        } => assert!(requested == bytes as u64 && free <= total && total < requested),
        error => panic!("{error}"),
    }
    assert_eq!(
        stream.alloc::<u64>(usize::MAX / 4).unwrap_err(),
        Error::TooLarge {
            len: usize::MAX / 4,
            size: 8
        }
    );
    assert_eq!(stream.to_vec(before.slice()).unwrap(), [1, 2, 3]);
    stream.alloc::<u8>(1 << 20).unwrap();
}

fn bad_images(device: &Device) {
    let module = device.load("kernels.ptx", KERNELS).unwrap();
    let no_kernel = |kernel: &str| Error::NoKernel {
        image: "kernels.ptx".to_owned(),
        kernel: kernel.to_owned(),
    };
    assert_eq!(
        module.kernel("no_such_kernel").unwrap_err(),
        no_kernel("no_such_kernel")
    );
    assert_eq!(module.kernel("a\0b").unwrap_err(), no_kernel("a\0b"));

    let text = std::str::from_utf8(KERNELS).unwrap();
    match device
        .load(
            "broken",
            text.replace("mad.lo.u32", "mad.lo.nonsense").as_bytes(),
        )
        .unwrap_err()
    {
        Error::BadImage {
            image, code, log, ..
        } => assert!(
            image == "broken" && code == 218 && log.contains("nonsense"),
            "{code} {log}"
        ),
        error => panic!("{error}"),
    }
    for (what, newer) in [
        ("version", text.replace(".version 7.0", ".version 99.0")),
        ("target", text.replace("sm_75", "sm_999")),
    ] {
        match device.load("newer", newer.as_bytes()).unwrap_err() {
            Error::ImageTooNew {
                driver,
                device: capability,
                ..
            } => {
                assert_eq!(
                    (driver, capability),
                    (
                        device.info().driver_version,
                        device.info().compute_capability
                    )
                );
            }
            error => panic!("{what}: {error:?}"),
        }
    }
    for image in [&b""[..], b"\x7fELF", b"\x50\xed\x55\xba", b"no\0text"] {
        assert!(
            device
                .load("bytes", image)
                .is_err_and(|error| matches!(error, Error::BadImage { code: 0, .. }))
        );
    }
    assert!(
        device
            .load("text", b"hello")
            .is_err_and(|error| matches!(error, Error::BadImage { .. }))
    );
    assert_eq!(module.kernel("fill_index").unwrap().name(), "fill_index");
}

fn scratch(device: &Device) {
    let (stream, other) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let mut scratch = Scratch::new();
    let first = scratch.reserve(&stream, 1000).unwrap().ptr();
    assert_eq!(
        (
            scratch.capacity(),
            scratch.reserve(&stream, 500).unwrap().ptr()
        ),
        (1000, first)
    );
    let memory = scratch.reserve(&stream, 1400).unwrap();
    assert_eq!(memory.len(), 1400);
    let mut layout = Layout::over(memory).unwrap();
    let (mut a, mut b) = (
        layout.take::<u32>(100).unwrap(),
        layout.take::<u32>(200).unwrap(),
    );
    stream.fill_u32(a.reborrow(), 1).unwrap();
    stream.fill_u32(b.reborrow(), 2).unwrap();
    assert_eq!(stream.to_vec(a.as_slice()).unwrap(), [1; 100]);
    assert_eq!(stream.to_vec(b.as_slice()).unwrap(), [2; 200]);
    assert_eq!(scratch.capacity(), 1500, "half as much again");
    assert_eq!(scratch.reserve(&other, 10).unwrap().len(), 10);
    assert_eq!(scratch.capacity(), 1500, "as much on another stream");
    let captured = stream.capture(|stream| scratch.reserve(stream, 1 << 20).map(drop));
    assert_eq!(
        captured.unwrap_err(),
        Error::Capturing {
            call: "growing a buffer"
        }
    );
}

fn capture_and_replay(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let add_all = kernel(device, "add_all");
    let n = 1000;
    let mut data = stream.alloc_zeroed::<u32>(n).unwrap();
    let mut copy = stream.alloc_zeroed::<u32>(n).unwrap();
    let mut host = Pinned::<u32>::new(device, n).unwrap();
    let graph = stream
        .capture(|stream| {
            add(stream, &add_all, data.slice_mut(), 1)?;
            add(stream, &add_all, data.slice_mut(), 10)?;
            stream.copy(copy.slice_mut(), data.slice())?;
            // SAFETY: `host` is read below only after synchronising, and outlives the graph.
            unsafe { stream.download_pinned(copy.slice(), &mut host) }
        })
        .unwrap();
    assert_eq!(
        stream.to_vec(data.slice()).unwrap(),
        vec![0; n],
        "capturing ran nothing"
    );
    let other = Stream::new(device).unwrap();
    graph.upload(&other).unwrap();
    other.synchronize().unwrap();
    for runs in 1..=5u32 {
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(host[..], vec![11 * runs; n]);
    }
    let graph = std::thread::scope(|scope| {
        scope
            .spawn(|| graph.launch(&stream).map(|()| graph))
            .join()
            .unwrap()
    })
    .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(host[n - 1], 66);
    drop(graph);
}

fn captured_buffers_and_kernels_stay_alive(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let mut out = stream.alloc_zeroed::<u32>(1000).unwrap();
    let mut dropped = Some(stream.from_slice(&numbers(1000)).unwrap());
    let graph = stream
        .capture(|stream| {
            let (module, buffer) = (
                device.load("kernels.ptx", KERNELS)?,
                dropped.take().unwrap(),
            );
            stream.copy(out.slice_mut(), buffer.slice())?;
            add(stream, &module.kernel("add_all")?, out.slice_mut(), 3)
        })
        .unwrap();
    // This buffer would take the dropped buffer's memory if that were free.
    let others: Vec<_> = (0..8)
        .map(|_| stream.from_slice(&[0u32; 1000]).unwrap())
        .collect();
    for _ in 0..2 {
        graph.launch(&stream).unwrap();
        let expected: Vec<u32> = numbers(1000)
            .into_iter()
            .map(|x| x.wrapping_add(3))
            .collect();
        assert_eq!(stream.to_vec(out.slice()).unwrap(), expected);
    }
    graph.launch(&stream).unwrap();
    drop(graph);
    drop(others);
    stream.synchronize().unwrap();
}

fn calls_that_cannot_be_captured_are_refused(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let mut buffer = stream.alloc_zeroed::<u32>(4).unwrap();
    let graph = stream
        .capture(|stream| {
            let refused = |result: gpu::Result<()>| {
                assert!(matches!(result, Err(Error::Capturing { .. })), "{result:?}")
            };
            refused(stream.alloc::<u8>(1).map(drop));
            refused(stream.upload(buffer.slice_mut(), &[1; 4]));
            refused(stream.download(buffer.slice(), &mut [1; 4]));
            refused(stream.synchronize());
            refused(stream.is_idle().map(drop));
            refused(stream.capture(|_| Ok(())).map(drop));
            refused(Stages::new().mark(stream, "stage"));
            // Calls that do not concern the stream are allowed.
            let other = Stream::new(device)?;
            assert_eq!(other.to_vec(other.from_slice(&[9u8])?.slice())?, [9]);
            stream.fill_u32(buffer.slice_mut(), 6)
        })
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(stream.to_vec(buffer.slice()).unwrap(), [6; 4]);
}

fn streams_are_usable_after_failed_captures(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let mut buffer = stream.alloc_zeroed::<u32>(4).unwrap();
    let works = |value: u32| {
        let mut filled = stream.alloc_zeroed::<u32>(4).unwrap();
        let graph = stream
            .capture(|stream| stream.fill_u32(filled.slice_mut(), value))
            .unwrap();
        graph.launch(&stream).unwrap();
        assert_eq!(stream.to_vec(filled.slice()).unwrap(), [value; 4]);
    };
    let error = Error::Range {
        start: 1,
        end: 2,
        len: 0,
    };
    assert_eq!(stream.capture(|_| Err(error.clone())).unwrap_err(), error);
    works(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stream.capture(|stream| {
            stream.fill_u32(buffer.slice_mut(), 1)?;
            drop(std::mem::replace(
                &mut buffer,
                Stream::new(device)?.alloc_zeroed(4)?,
            ));
            std::panic::resume_unwind(Box::new("within"))
        })
    }));
    assert!(panicked.is_err());
    works(2);
    // Another stream that joined and was not waited for invalidates the capture.
    let other = Stream::new(device).unwrap();
    let unjoined = stream.capture(|stream| {
        other.wait(&stream.record()?)?;
        other.fill_u32(buffer.slice_mut(), 3)
    });
    assert_eq!(unjoined.unwrap_err().code(), Some(904));
    works(3);
    assert_eq!(other.to_vec(buffer.slice()).unwrap(), [0; 4]);
}

fn capture_over_two_streams(device: &Device) {
    let (stream, other) = (Stream::new(device).unwrap(), Stream::new(device).unwrap());
    let add_all = kernel(device, "add_all");
    let (mut a, mut b) = (
        stream.alloc_zeroed::<u32>(100).unwrap(),
        other.alloc_zeroed::<u32>(100).unwrap(),
    );
    other.synchronize().unwrap();
    let graph = stream
        .capture(|stream| {
            other.wait(&stream.record()?)?;
            add(stream, &add_all, a.slice_mut(), 1)?;
            add(&other, &kernel(device, "add_all"), b.slice_mut(), 2)?;
            assert!(
                matches!(other.alloc::<u8>(1), Err(Error::Capturing { .. })),
                "it joined the capture"
            );
            stream.wait(&other.record()?)?;
            add(stream, &add_all, b.slice_mut(), 3)
        })
        .unwrap();
    graph.launch(&stream).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(stream.to_vec(a.slice()).unwrap(), [2; 100]);
    assert_eq!(stream.to_vec(b.slice()).unwrap(), [10; 100]);
}
