//! The sort on `wgpu`, compared with the stable sort of `std`. Without a GPU all
//! tests are skipped. `RADSWEEP_WGPU=required` takes a software driver, and `RADSWEEP_WGPU=real` a
//! GPU; having none is a failure then.

#[macro_use]
mod common;

#[path = "../../wgpu-device/tests/validation/mod.rs"]
mod validation;

use common::{
    Distribution, TestKey, around, assert_same_bits, by_index, expected_index, special_f32,
    special_f64, sprinkled,
};
use gpusort::wgpu::{Payload, Request, Sorter, SorterConfig, Subgroups};
use gpusort::{Algorithm, Error, SortOptions, SortReport, cpu};
use libtest_mimic::{Arguments, Trial};
use wgpu_device::{Adapters, BufferUsages, Device, wgpu};

/// A test and its name.
type Test = (&'static str, fn(&Sorter));

/// The keys of a tile of every pass.
const TILE: usize = 2048;
/// The tiles beyond which a workgroup takes several.
const MAX_WORKGROUPS: usize = 2048;

fn main() {
    validation::watch();
    let wanted = std::env::var("RADSWEEP_WGPU").ok();
    let adapters = match wanted.as_deref() {
        Some("real") | None => Adapters::Real,
        Some(_) => Adapters::Software,
    };
    let device = Device::new(adapters);
    if let (Some(wanted), Err(error)) = (&wanted, &device) {
        panic!("RADSWEEP_WGPU={wanted}: {error}");
    }
    let why_not = device.as_ref().err().map(ToString::to_string);
    let device = device.ok();
    if let Some(device) = &device {
        println!("on {}, subgroups {:?}", device.name(), device.subgroups());
    }
    let mut trials = Vec::new();
    let tests: [Test; 14] = [
        (
            "every_distribution_type_and_order",
            every_distribution_type_and_order,
        ),
        (
            "sizes_around_tiles_and_powers_of_two",
            sizes_around_tiles_and_powers_of_two,
        ),
        ("the_largest_size", the_largest_size),
        ("several_tiles_a_workgroup", several_tiles_a_workgroup),
        ("special_floats", special_floats),
        ("keys_equal_to_padding", keys_equal_to_padding),
        ("bit_windows", bit_windows),
        ("constant_digits_are_skipped", constant_digits_are_skipped),
        ("sorted_input_exits_early", sorted_input_exits_early),
        (
            "buffers_that_stay_on_the_device",
            buffers_that_stay_on_the_device,
        ),
        ("the_device_counts_the_keys", the_device_counts_the_keys),
        (
            "sorts_in_one_encoder_share_scratch_memory",
            sorts_in_one_encoder_share_scratch_memory,
        ),
        (
            "wrong_calls_are_errors_that_touch_nothing",
            wrong_calls_are_errors_that_touch_nothing,
        ),
        ("a_lost_device_is_an_error", a_lost_device_is_an_error),
    ];
    // Without subgroups, as in a browser: also with its limits.
    let promised = |device: &Device| {
        let adapters = if device.is_software() {
            Adapters::Software
        } else {
            Adapters::Real
        };
        Device::with_limits(adapters, wgpu::Limits::default()).expect("what a browser promises")
    };
    let browser = device.as_ref().map(promised);
    for (subgroups, device) in [(Subgroups::Never, &browser), (Subgroups::Auto, &device)] {
        let config = SorterConfig::new().subgroups(subgroups).timings(true);
        // One for all tests, so that kernels are compiled once.
        let sorter = device
            .as_ref()
            .map(|device| Sorter::new(device, config).expect("a sorter"));
        let ranks = sorter
            .as_ref()
            .map_or("", |sorter| match sorter.uses_subgroups() {
                true => "with subgroups",
                false => "without subgroups",
            });
        for (name, test) in tests {
            let sorter = sorter.clone();
            let run = move || {
                sorter.iter().for_each(test);
                Ok(())
            };
            let trial = Trial::test(format!("{name}, {subgroups:?}: {ranks}"), run);
            trials.push(trial.with_ignored_flag(device.is_none()));
        }
    }
    if let Some(why_not) = why_not {
        println!("SKIPPED: all tests of the sort on wgpu, because {why_not}");
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    validation::exit(conclusion.has_failed())
}

fn orders() -> [SortOptions; 2] {
    [SortOptions::new(), SortOptions::new().descending()]
}

/// A sort of host slices.
#[derive(Debug, Clone, Copy)]
enum Call {
    Keys,
    Pairs,
    Index,
}

const CALLS: [Call; 3] = [Call::Keys, Call::Pairs, Call::Index];

/// Checks all sorts of host slices on one input.
fn check<K: TestKey>(sorter: &Sorter, keys: &[K], options: &SortOptions, context: &str) {
    for call in CALLS {
        check_call(sorter, call, keys, options, context);
    }
}

fn check_call<K: TestKey>(
    sorter: &Sorter,
    call: Call,
    keys: &[K],
    options: &SortOptions,
    context: &str,
) {
    let context = &format!(
        "{call:?}, {} x {} {options:?} {context}",
        keys.len(),
        K::TYPE
    );
    let expected = expected_index(keys, options);
    let (mut got, mut values) = (
        keys.to_vec(),
        Vec::from_iter((0..keys.len() as u32).map(|i| !i)),
    );
    let report = match call {
        Call::Keys => sorter.sort_keys(&mut got, options),
        Call::Pairs => sorter.sort_pairs(&mut got, &mut values, options),
        Call::Index => sorter.sort_index(keys, &mut values, options),
    };
    let report = report.expect(context);
    match call {
        Call::Keys => {}
        Call::Pairs => {
            let moved = values.iter().map(|value| !value);
            assert!(moved.eq(expected.iter().copied()), "values: {context}");
        }
        Call::Index => assert_eq!(values, expected, "{context}"),
    }
    match call {
        Call::Keys | Call::Pairs => assert_same_bits(&got, &by_index(keys, &expected), context),
        Call::Index => {}
    }
    check_report(&report, keys, options, context);
}

/// Compares a report with the digits in which keys differ.
fn check_report<K: TestKey>(report: &SortReport, keys: &[K], options: &SortOptions, context: &str) {
    let names = (report.algorithm, report.backend, report.n);
    assert_eq!(
        names,
        ("wgpu-radix", "wgpu", keys.len() as u64),
        "{context}"
    );
    if keys.is_empty() {
        return;
    }
    let window = options.window::<K>().expect(context);
    let bits = |key: K| key.to_ordered_bits().into();
    let first: u64 = bits(keys[0]);
    let differing = keys.iter().fold(0, |all, &key| all | (bits(key) ^ first));
    let digits: Vec<u64> = window
        .clone()
        .step_by(8)
        .map(|begin| {
            let end = window.end.min(begin + 8);
            (differing >> begin) & ((1_u64 << (end - begin)) - 1)
        })
        .collect();
    let sorted = cpu::is_sorted(keys, options).expect(context);
    let run = if sorted {
        0
    } else {
        digits.iter().filter(|&&digit| digit != 0).count()
    };
    let got = (report.early_exit, report.passes_run as usize);
    assert_eq!(got, (sorted, run), "{context}");
    assert_eq!(
        report.passes_skipped as usize,
        digits.len() - run,
        "{context}"
    );
    let sum: f64 = report.stages.iter().map(|stage| stage.1).sum();
    assert!((report.total_ms - sum).abs() < 1e-6, "{context}");
}

fn every_distribution_type_and_order(sorter: &Sorter) {
    fn test<K: TestKey>(sorter: &Sorter) {
        for (i, &distribution) in Distribution::ALL.iter().enumerate() {
            for (n, options) in [1000, 5003].into_iter().zip(orders()) {
                let keys = distribution.keys::<K>(n, n as u64);
                let call = CALLS[(i + n) % 3];
                check_call(sorter, call, &keys, &options, &format!("{distribution:?}"));
            }
        }
    }
    for_each_key_type!(test(sorter));
}

fn sizes_around_tiles_and_powers_of_two(sorter: &Sorter) {
    fn test<K: TestKey>(sorter: &Sorter) {
        let small = [0, 1, 2, 3, 31, 64, 100, 255, 256, 257, 511, 512, 513];
        let large = around(&[1024, TILE, 2 * TILE, 3 * TILE, 1 << 14]);
        for (i, n) in small.into_iter().chain(large).enumerate() {
            let keys = Distribution::UniformBits.keys::<K>(n, 7);
            check_call(sorter, CALLS[i % 3], &keys, &orders()[i % 2], "");
        }
    }
    for_each_key_type!(test(sorter));
}

fn the_largest_size(sorter: &Sorter) {
    for n in around(&[1 << 16]) {
        check(
            sorter,
            &Distribution::Gaussian.keys::<f32>(n, 1),
            &orders()[0],
            "",
        );
    }
    check(
        sorter,
        &Distribution::UniformBits.keys::<u64>(1 << 16, 2),
        &orders()[1],
        "",
    );
    // More workgroups than one workgroup scans at once.
    let keys = Distribution::Few(16).keys::<u32>(257 * TILE + 1, 3);
    check_call(sorter, Call::Pairs, &keys, &orders()[0], "");
}

fn several_tiles_a_workgroup(sorter: &Sorter) {
    // The last workgroup has one tile, which is not full.
    let n = (MAX_WORKGROUPS + 1) * TILE - 1;
    let keys = Distribution::UniformBits.keys::<u32>(n, 4);
    let options = SortOptions::new().bits(3..11);
    check_call(sorter, Call::Index, &keys, &options, "");
}

fn special_floats(sorter: &Sorter) {
    for n in [22, 513, 9000] {
        for options in orders() {
            check(
                sorter,
                &sprinkled(&special_f32(), n, 5),
                &options,
                "special",
            );
            check(
                sorter,
                &sprinkled(&special_f64(), n, 5),
                &options,
                "special",
            );
        }
    }
    let zeros: Vec<f32> = (0..5000)
        .map(|i| if i % 3 == 0 { 0.0 } else { -0.0 })
        .collect();
    check(sorter, &zeros, &SortOptions::new(), "zeros");
    let nans: Vec<f32> = (0..3000_u32)
        .map(|i| f32::from_bits((0x7f80_0001 + i * 77) | ((i & 1) << 31)))
        .collect();
    check(sorter, &nans, &SortOptions::new(), "NaNs");
}

fn keys_equal_to_padding(sorter: &Sorter) {
    fn test<K: TestKey>(sorter: &Sorter) {
        for (i, n) in [1, 700, TILE + 9].into_iter().enumerate() {
            for (options, call) in orders().iter().zip([CALLS[i], CALLS[(i + 1) % 3]]) {
                for distribution in [Distribution::Extremes, Distribution::AllMax] {
                    let keys = distribution.keys::<K>(n, 2);
                    check_call(sorter, call, &keys, options, "padding");
                }
            }
        }
    }
    for_each_key_type!(test(sorter));
}

fn bit_windows(sorter: &Sorter) {
    fn test<K: TestKey>(sorter: &Sorter) {
        let b = K::BITS;
        let ends = [0, 5, b / 3, b / 2, 3 * b / 4, b - 1, b];
        let windows = ends
            .into_iter()
            .flat_map(|begin| ends.map(|end| begin..end));
        for (i, window) in windows
            .filter(|window| window.start <= window.end)
            .enumerate()
        {
            let options = orders()[i % 2].clone().bits(window);
            let keys = Distribution::UniformBits.keys::<K>(2500, 4);
            check_call(sorter, CALLS[i % 3], &keys, &options, "window");
        }
    }
    for_each_key_type!(test(sorter));
}

fn constant_digits_are_skipped(sorter: &Sorter) {
    // Only bits 16 to 23 differ: one of four passes runs.
    let mut keys: Vec<u32> = (0..4096_u32)
        .map(|i| 0x4500_1234 | (i.wrapping_mul(101) & 0xff) << 16)
        .collect();
    let report = sorter
        .sort_keys(&mut keys, &SortOptions::new())
        .expect("a valid call");
    assert_eq!(
        (report.passes_run, report.passes_skipped, report.early_exit),
        (1, 3, false)
    );
    assert!(keys.is_sorted());
    let mut keys: Vec<u64> = (0..4096_u64)
        .map(|i| i.wrapping_mul(101) & 0xf | (!i & 7) << 60)
        .collect();
    let report = sorter
        .sort_keys(&mut keys, &SortOptions::new())
        .expect("a valid call");
    assert_eq!((report.passes_run, report.passes_skipped), (2, 6));
    assert!(keys.is_sorted());
    let measured = sorter.device().has_timestamps();
    // Passes of few workgroups are one launch, and keys sorted in place are copied back.
    let stages: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
    assert_eq!(
        stages,
        if measured {
            vec!["inspect", "scatter", "emit"]
        } else {
            vec![]
        }
    );
}

fn sorted_input_exits_early(sorter: &Sorter) {
    fn test<K: TestKey>(sorter: &Sorter) {
        for (n, call) in [2, 500, 5000].into_iter().zip(CALLS) {
            let mut keys: Vec<K> = Distribution::Sorted.keys(n, 1);
            check_call(sorter, call, &keys, &orders()[0], "sorted");
            keys.reverse();
            check_call(sorter, call, &keys, &orders()[1], "sorted");
        }
        // The two keys out of order lie in two tiles.
        let mut keys: Vec<K> = Distribution::Sorted.keys(2 * TILE, 1);
        keys.swap(TILE - 1, TILE);
        check_call(sorter, Call::Keys, &keys, &SortOptions::new(), "one swap");
    }
    for_each_key_type!(test(sorter));
}

/// Makes a device as a caller might, with no more than every browser gives.
fn callers_device(is_software: bool) -> Device {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let instance = wgpu::Instance::new(descriptor);
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let wanted = |adapter: &&wgpu::Adapter| {
        (adapter.get_info().device_type == wgpu::DeviceType::Cpu) == is_software
    };
    let adapter = adapters
        .iter()
        .find(wanted)
        .expect("the adapter of the tests");
    let descriptor = wgpu::DeviceDescriptor {
        required_limits: wgpu::Limits::default(),
        ..wgpu::DeviceDescriptor::default()
    };
    let made = pollster::block_on(adapter.request_device(&descriptor));
    let (device, queue) = made.expect("a device");
    Device::from_parts(device, queue)
}

/// Buffers that a caller might have made for drawing.
fn buffers<T: bytemuck::Pod>(device: &Device, elements: &[T]) -> wgpu::Buffer {
    let usage = BufferUsages::STORAGE | BufferUsages::VERTEX | BufferUsages::COPY_SRC;
    device.upload("caller's", elements, usage).expect("memory")
}

fn fetched<T: bytemuck::Pod>(device: &Device, buffer: &wgpu::Buffer) -> Vec<T> {
    device
        .download(buffer, 0..buffer.size())
        .and_then(|all| all.wait())
        .expect("a copy")
}

fn buffers_that_stay_on_the_device(sorter: &Sorter) {
    let device = callers_device(sorter.device().is_software());
    let sorter = Sorter::new(&device, SorterConfig::default()).expect("a sorter");
    assert!(!sorter.uses_subgroups());
    let (n, longer) = (5000, 5010);
    let keys: Vec<f64> = Distribution::Gaussian.keys(longer, 9);
    let values: Vec<u32> = (0..longer as u32).map(|i| 7 * i).collect();
    let expected = expected_index(&keys[..n], &SortOptions::new());
    let sorted = by_index(&keys[..n], &expected);
    let scratch = sorter
        .scratch::<f64>(longer as u64, Payload::U32)
        .expect("memory");
    let submit = |request: Request<'_, f64>| {
        let mut encoder = device.encoder("caller's").expect("an encoder");
        let options = SortOptions::new();
        sorter
            .encode(&mut encoder, request, &scratch, &options)
            .expect("a valid request");
        device.submit(encoder).expect("a submission");
    };

    let (keys_in, values_in) = (buffers(&device, &keys), buffers(&device, &values));
    let keys_out = buffers(&device, &vec![0.5_f64; longer]);
    let values_out = buffers(&device, &vec![3_u32; longer]);
    submit(Request::keys(n as u64, &keys_in, &keys_out).values(&values_in, &values_out));
    assert_eq!(
        fetched::<f64>(&device, &keys_in),
        keys,
        "the input is unchanged"
    );
    let got: Vec<f64> = fetched(&device, &keys_out);
    assert_same_bits(&got[..n], &sorted, "pairs");
    assert_eq!(got[n..], [0.5; 10], "beyond the keys");
    let got: Vec<u32> = fetched(&device, &values_out);
    assert_eq!(got[..n], by_index(&values, &expected));
    assert_eq!(got[n..], [3; 10], "beyond the values");
    assert_eq!(sorter.report(&scratch).expect("a report").n, n as u64);

    submit(Request::index(n as u64, &keys_in, &values_out).keys_out(&keys_out));
    assert_eq!(fetched::<u32>(&device, &values_out)[..n], expected);
    assert_same_bits(&fetched::<f64>(&device, &keys_out)[..n], &sorted, "index");
    submit(Request::keys(n as u64, &keys_in, &keys_in));
    let got: Vec<f64> = fetched(&device, &keys_in);
    assert_same_bits(&got[..n], &sorted, "in place");
    assert_same_bits(&got[n..], &keys[n..], "beyond the keys");
}

fn the_device_counts_the_keys(sorter: &Sorter) {
    let device = sorter.device();
    let n = 140 * TILE;
    let keys: Vec<u32> = Distribution::UniformBits.keys(n, 8);
    let values: Vec<u32> = (0..n as u32).map(|i| 3 * i).collect();
    let counts = [0, 1, 4999, 133 * TILE as u32, n as u32, u32::MAX];
    let counted = device.upload("counts", &counts, BufferUsages::STORAGE);
    let counted = counted.expect("memory");
    let scratch = sorter.scratch::<u32>(n as u64, Payload::U32);
    let scratch = scratch.expect("memory");
    for in_place in [false, true] {
        for (i, count) in counts.into_iter().enumerate() {
            let [keys_in, values_in] = [&keys, &values].map(|list| buffers(device, list));
            let others = [0, 1].map(|_| buffers(device, &vec![9_u32; n]));
            let [keys_out, values_out] = if in_place {
                [&keys_in, &values_in]
            } else {
                [&others[0], &others[1]]
            };
            let request = Request::<u32>::keys(n as u64, &keys_in, keys_out);
            let request = request.values(&values_in, values_out);
            let mut encoder = device.encoder("counted").expect("an encoder");
            let request = request.counted(&counted, 4 * i as u64);
            let options = SortOptions::new();
            let encoded = sorter.encode(&mut encoder, request, &scratch, &options);
            encoded.expect("a valid request");
            device.submit(encoder).expect("a submission");
            let sorted = n.min(count as usize);
            let expected = expected_index(&keys[..sorted], &options);
            for (got, list) in [(keys_out, &keys), (values_out, &values)] {
                let got: Vec<u32> = fetched(device, got);
                assert!(got[..sorted] == by_index(list, &expected), "{count} keys");
                let beyond = if in_place {
                    &list[sorted..]
                } else {
                    &vec![9; n - sorted]
                };
                assert!(got[sorted..] == *beyond, "beyond {count} keys");
            }
            let report = sorter.report(&scratch).expect("a report");
            assert_eq!((report.n, report.early_exit), (sorted as u64, sorted < 2));
        }
    }
    let mut encoder = device.encoder("wrong").expect("an encoder");
    let buffer = buffers(device, &keys);
    for (offset, usage) in [
        (24, BufferUsages::STORAGE),
        (2, BufferUsages::STORAGE),
        (0, BufferUsages::COPY_SRC),
    ] {
        let count = device.upload("counts", &counts, usage).expect("memory");
        let request = Request::<u32>::keys(5, &buffer, &buffer).counted(&count, offset);
        let refused = sorter.encode(&mut encoder, request, &scratch, &SortOptions::new());
        assert!(matches!(refused, Err(Error::NoCount { bytes: 24, .. })));
    }
}

fn sorts_in_one_encoder_share_scratch_memory(sorter: &Sorter) {
    let device = sorter.device();
    let scratch = sorter.scratch::<u32>(4000, Payload::Index).expect("memory");
    let inputs: [Vec<f32>; 3] = [4000, 17, 2500].map(|n| Distribution::Uniform.keys(n, n as u64));
    let all = inputs.each_ref().map(|keys| buffers(device, keys));
    let mut encoder = device.encoder("frame").expect("an encoder");
    for (keys, buffer) in inputs.iter().zip(&all) {
        let request = Request::<f32>::keys(keys.len() as u64, buffer, buffer);
        let options = SortOptions::new().descending();
        sorter
            .encode(&mut encoder, request, &scratch, &options)
            .expect("a valid request");
    }
    device.submit(encoder).expect("a submission");
    for (keys, buffer) in inputs.iter().zip(&all) {
        let expected = expected_index(keys, &SortOptions::new().descending());
        let got: Vec<f32> = fetched(device, buffer);
        assert_same_bits(&got, &by_index(keys, &expected), keys.len());
    }
    assert_eq!(sorter.report(&scratch).expect("a report").n, 2500);
}

fn wrong_calls_are_errors_that_touch_nothing(sorter: &Sorter) {
    let keys: Vec<u64> = Distribution::UniformBits.keys(100, 1);
    let (mut got, mut values) = (keys.clone(), vec![7_u32; 99]);
    let ok = SortOptions::new();
    let wrong = sorter.sort_pairs(&mut got, &mut values, &ok);
    assert!(matches!(
        wrong,
        Err(Error::LengthMismatch {
            keys: 100,
            values: 99
        })
    ));
    let wrong = sorter.sort_index(&got, &mut values, &ok);
    assert!(matches!(
        wrong,
        Err(Error::LengthMismatch {
            keys: 100,
            values: 99
        })
    ));
    let wrong = sorter.sort_keys(&mut got, &ok.clone().bits(3..65));
    assert!(matches!(
        wrong,
        Err(Error::BitWindow {
            begin: 3,
            end: 65,
            bits: 64
        })
    ));
    for &algorithm in Algorithm::ALL.iter().filter(|&&one| one != Algorithm::Auto) {
        let wrong = sorter.sort_keys(&mut got, &ok.clone().algorithm(algorithm));
        assert!(
            matches!(wrong, Err(Error::Unsupported { algorithm: named, .. }) if named == algorithm)
        );
    }
    assert_eq!((got, values), (keys.clone(), vec![7; 99]));

    let device = sorter.device();
    let limit = device.limits().max_storage_buffer_binding_size;
    let wrong = sorter.scratch::<u64>(limit / 16 + 1, Payload::None);
    assert!(matches!(wrong, Err(Error::TooManyKeys { keys, .. }) if keys == limit / 16 + 1));
    let small = sorter.scratch::<u64>(99, Payload::None).expect("memory");
    let narrow = sorter.scratch::<u32>(100, Payload::None).expect("memory");
    let bare = sorter.scratch::<u64>(100, Payload::None).expect("memory");
    let buffer = buffers(device, &keys);
    let vertices = device
        .upload("vertices", &keys, BufferUsages::VERTEX)
        .expect("memory");
    let mut encoder = device.encoder("wrong").expect("an encoder");
    let mut refused = |request, scratch| {
        let refused = sorter.encode::<u64>(&mut encoder, request, scratch, &ok);
        refused.expect_err("a wrong request")
    };
    let request = Request::keys(100, &buffer, &buffer);
    let needed_for_100 = |error| {
        assert!(matches!(error, Error::ScratchTooSmall { needed: 1600, given } if given < 1600));
    };
    needed_for_100(refused(request, &small));
    needed_for_100(refused(request, &narrow));
    let error = refused(request.values(&buffer, &buffer), &bare);
    assert!(matches!(
        error,
        Error::ScratchTooSmall {
            needed: 800,
            given: 0
        }
    ));
    let error = refused(Request::keys(101, &buffer, &buffer), &bare);
    assert!(matches!(
        error,
        Error::LengthMismatch {
            keys: 101,
            values: 100
        }
    ));
    let error = refused(Request::keys(100, &buffer, &vertices), &bare);
    assert!(matches!(error, Error::NotStorage { what: "keys_out" }));
    device.submit(encoder).expect("an empty encoder");
    assert_eq!(fetched::<u64>(device, &buffer), keys);
}

fn a_lost_device_is_an_error(sorter: &Sorter) {
    let adapters = if sorter.device().is_software() {
        Adapters::Software
    } else {
        Adapters::Real
    };
    let own = Device::new(adapters).expect("a second device");
    let brought = Device::new(adapters).expect("a third device");
    let brought = Device::from_parts(brought.wgpu().clone(), brought.queue().clone());
    for device in [own, brought] {
        let sorter = Sorter::new(&device, SorterConfig::default()).expect("a sorter");
        let mut keys = [3_u32, 1, 2];
        sorter
            .sort_keys(&mut keys, &SortOptions::new())
            .expect("a valid call");
        device.wgpu().destroy();
        let mut keys = [3_u32, 1, 2];
        let lost = sorter.sort_keys(&mut keys, &SortOptions::new());
        assert!(
            matches!(lost, Err(Error::Wgpu(wgpu_device::Error::Lost { .. }))),
            "{lost:?}"
        );
        assert_eq!(keys, [3, 1, 2]);
    }
}
