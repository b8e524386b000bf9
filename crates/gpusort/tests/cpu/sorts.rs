//! Compares every call of `cpu`, for every type, order and distribution, with the stable sort of
//! `std`.

use crate::common::{Distribution, TestKey, around, assert_same_bits, by_index, expected_index};
use gpusort::cpu::RadixSort;
use gpusort::{Key, Order, SortOptions, SortReport, cpu};
use proptest::prelude::*;
use std::ops::Range;

/// A record whose size is no power of two.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Record([u32; 9]);

impl Record {
    fn new(i: u32) -> Self {
        Self(std::array::from_fn(|word| i.wrapping_mul(word as u32 + 1)))
    }
}

/// Checks the methods of slices that take no options.
fn check_methods<K: TestKey>(keys: &[K], sorted: &[K], expected: &[u32], context: &str) {
    let mut got = keys.to_vec();
    got.radix_sort().expect(context);
    assert_same_bits(&got, sorted, context);
    assert_eq!(keys.radix_argsort().expect(context), expected, "{context}");
    got.copy_from_slice(keys);
    let mut values: Vec<_> = (0..keys.len() as u32).map(Record::new).collect();
    let moved: Vec<_> = expected.iter().map(|&i| Record::new(i)).collect();
    got.radix_sort_with(&mut values).expect(context);
    assert_same_bits(&got, sorted, context);
    assert!(values == moved, "records: {context}");
    let fewer = &mut values[..keys.len().saturating_sub(1)];
    assert_eq!(got.radix_sort_with(fewer).is_err(), !keys.is_empty());
}

/// Checks all calls on one input: keys, index, and pairs and records of several sizes.
fn check<K: TestKey>(sorter: &mut cpu::Sorter, keys: &[K], options: &SortOptions, context: &str) {
    let context = &format!("{} x {} {options:?} {context}", keys.len(), K::TYPE);
    let expected = expected_index(keys, options);
    let sorted = by_index(keys, &expected);

    let mut got = keys.to_vec();
    let report = sorter.sort_keys(&mut got, options).expect(context);
    assert_same_bits(&got, &sorted, context);
    check_report::<K>(&report, keys, options, &expected, context);
    assert!(cpu::is_sorted(&got, options).expect(context), "{context}");

    got.copy_from_slice(keys);
    let report = got.radix_sort_by(options).expect(context);
    assert_same_bits(&got, &sorted, context);
    check_report::<K>(&report, keys, options, &expected, context);
    if *options == SortOptions::new() {
        check_methods(keys, &sorted, &expected, context);
    }

    let mut index = vec![u32::MAX; keys.len()];
    let report = sorter.sort_index(keys, &mut index, options).expect(context);
    assert_eq!(index, expected, "index: {context}");
    check_report::<K>(&report, keys, options, &expected, context);

    let n = keys.len() as u32;
    check_values(
        sorter,
        keys,
        (0..n).collect::<Vec<u32>>(),
        options,
        (&sorted, &expected),
        context,
    );
    check_values(
        sorter,
        keys,
        (0..n).map(|i| u64::from(i) << 31).collect(),
        options,
        (&sorted, &expected),
        context,
    );
    check_values(
        sorter,
        keys,
        (0..n).map(Record::new).collect(),
        options,
        (&sorted, &expected),
        context,
    );
}

fn check_values<K: TestKey, V: bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug>(
    sorter: &mut cpu::Sorter,
    keys: &[K],
    values: Vec<V>,
    options: &SortOptions,
    (sorted, index): (&[K], &[u32]),
    context: &str,
) {
    let expected = by_index(&values, index);
    let (mut got_keys, mut got) = (keys.to_vec(), values.clone());
    sorter
        .sort_pairs(&mut got_keys, &mut got, options)
        .expect(context);
    assert_same_bits(
        &got_keys,
        sorted,
        format_args!("pairs of {} bytes: {context}", size_of::<V>()),
    );
    assert!(
        got == expected,
        "values of {} bytes: {context}",
        size_of::<V>()
    );
    let (mut got_keys, mut got) = (keys.to_vec(), values);
    sorter
        .sort_records(&mut got_keys, &mut got, options)
        .expect(context);
    assert_same_bits(
        &got_keys,
        sorted,
        format_args!("records of {} bytes: {context}", size_of::<V>()),
    );
    assert!(
        got == expected,
        "records of {} bytes: {context}",
        size_of::<V>()
    );
}

fn check_report<K: TestKey>(
    report: &SortReport,
    keys: &[K],
    options: &SortOptions,
    index: &[u32],
    context: &str,
) {
    assert_eq!(
        (report.backend, report.n),
        ("cpu", keys.len() as u64),
        "{context}"
    );
    assert!(
        ["cpu-std", "cpu-radsort", "cpu-rdst"].contains(&report.algorithm),
        "{context}"
    );
    assert_eq!(report.early_exit, index.is_sorted(), "{context}");
    assert_eq!(
        report.early_exit,
        cpu::is_sorted(keys, options).expect(context),
        "{context}"
    );
    assert_eq!(
        report.passes_run > 0,
        !report.early_exit && report.algorithm != "cpu-std",
        "{context}"
    );
    let sum: f64 = report.stages.iter().map(|stage| stage.1).sum();
    assert!(
        (report.total_ms - sum).abs() < 1e-6 && report.total_ms >= 0.0,
        "{context}"
    );
}

fn orders() -> [SortOptions; 2] {
    [SortOptions::new(), SortOptions::new().descending()]
}

#[test]
fn every_distribution_type_and_order() {
    fn test<K: TestKey>() {
        let sorter = &mut cpu::Sorter::new();
        for &distribution in Distribution::ALL {
            for n in [0, 1, 2, 3, 100, 512, 513, 2047, 5000, 20_011] {
                for options in orders() {
                    check::<K>(
                        sorter,
                        &distribution.keys(n, n as u64),
                        &options,
                        &format!("{distribution:?}"),
                    );
                }
            }
        }
    }
    for_each_key_type!(test());
}

#[test]
fn values_of_odd_sizes() {
    for n in [3, 600, 5000] {
        let options = SortOptions::new();
        let keys = Distribution::Few(16).keys::<u32>(n, 1);
        let index = expected_index(&keys, &options);
        let answer = (&*by_index(&keys, &index), &*index);
        let sorter = &mut cpu::Sorter::new();
        check_values(sorter, &keys, vec![[0_u8; 0]; n], &options, answer, "");
        check_values(
            sorter,
            &keys,
            (0..n).map(|i| i as u8).collect(),
            &options,
            answer,
            "",
        );
        let threes = (0..n).map(|i| [i as u8, (i >> 8) as u8, 7]).collect();
        check_values(sorter, &keys, threes, &options, answer, "");
    }
}

#[test]
fn every_size_from_0_to_1023() {
    fn test<K: TestKey>() {
        let sorter = &mut cpu::Sorter::new();
        for n in 0..1024 {
            let keys = Distribution::UniformBits.keys::<K>(n, 7);
            check(sorter, &keys, &orders()[n % 2], "");
        }
    }
    for_each_key_type!(test());
}

#[test]
fn both_sides_of_powers_of_two_and_thresholds() {
    fn test<K: TestKey>() {
        let sorter = &mut cpu::Sorter::new();
        for n in around(&[2048, 4096, 8192, 1 << 16, 1 << 18]) {
            check(
                sorter,
                &Distribution::Uniform.keys::<K>(n, 3),
                &SortOptions::new(),
                "",
            );
        }
        // Sorts of this many keys use all threads. Each width of keys takes all distributions.
        let others = [
            Distribution::Zipf,
            Distribution::TwoRuns,
            Distribution::Sorted,
        ];
        for distribution in [Distribution::Uniform, others[K::TYPE as usize % 3]] {
            check(
                sorter,
                &distribution.keys::<K>((1 << 20) + 1, 3),
                &orders()[1],
                &format!("{distribution:?}"),
            );
        }
    }
    for_each_key_type!(test());
}

#[test]
fn many_pairs_are_sorted_on_all_threads() {
    let sorter = &mut cpu::Sorter::new();
    let options = &orders()[1];
    for distribution in [Distribution::Uniform, Distribution::Zipf] {
        let n = (1 << 22) + 3;
        let keys = distribution.keys::<f32>(n as usize, 4);
        let index = expected_index(&keys, options);
        let answer = (&*by_index(&keys, &index), &*index);
        let context = &format!("{distribution:?}");
        let large: Vec<u64> = (0..n).map(|i| u64::from(i) << 31).collect();
        let records: Vec<Record> = (0..n).map(Record::new).collect();
        check_values(sorter, &keys, (0..n).collect(), options, answer, context);
        check_values(sorter, &keys, large, options, answer, context);
        check_values(sorter, &keys, records, options, answer, context);
    }
}

fn same_bits_on_threads<K: TestKey>(distribution: Distribution, options: &SortOptions) {
    let n = 2_200_003;
    let keys = distribution.keys::<K>(n, 11);
    let index = expected_index(&keys, options);
    let sorted = by_index(&keys, &index);
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| {
            let context = format!("{distribution:?}, {threads} threads");
            let mut got = keys.clone();
            cpu::sort_keys(&mut got, options).expect("a valid call");
            assert_same_bits(&got, &sorted, &context);
            let mut got = vec![0; n];
            cpu::sort_index(&keys, &mut got, options).expect("a valid call");
            assert!(got == index, "index: {context}");
            let mut records: Vec<[u32; 3]> = (0..n as u32).map(|i| [i, 0, !i]).collect();
            cpu::sort_records(&mut keys.clone(), &mut records, options).expect("a valid call");
            assert!(
                records.iter().zip(&index).all(|(r, &i)| *r == [i, 0, !i]),
                "records: {context}"
            );
            let (mut got, mut values) = (keys.clone(), (0..n as u32).collect::<Vec<_>>());
            cpu::sort_pairs(&mut got, &mut values, options).expect("a valid call");
            assert_same_bits(&got, &sorted, &context);
            assert!(values == index, "pairs: {context}");
        });
    }
}

// Four tests, which share the cores better than one.
#[test]
fn same_bits_of_few_floats_on_any_number_of_threads() {
    same_bits_on_threads::<f32>(Distribution::Few(9), &SortOptions::new());
}

#[test]
fn same_bits_of_wide_keys_descending_on_any_number_of_threads() {
    same_bits_on_threads::<u64>(Distribution::UniformBits, &SortOptions::new().descending());
}

#[test]
fn same_bits_of_extreme_floats_on_any_number_of_threads() {
    same_bits_on_threads::<f64>(Distribution::Extremes, &SortOptions::new());
}

#[test]
fn same_bits_of_a_window_on_any_number_of_threads() {
    same_bits_on_threads::<u32>(Distribution::Zipf, &SortOptions::new().bits(3..27));
}

/// Generates sizes, distributions, seeds, orders and windows in any combination.
fn any_case() -> impl Strategy<Value = (usize, Distribution, u64, Order, Option<Range<u32>>)> {
    let window = prop::option::of((0_u32..=64, 0_u32..=64).prop_map(|(a, b)| a.min(b)..a.max(b)));
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    let size = prop_oneof![
        0_usize..3000,
        (5_u32..16, -2_i32..=2).prop_map(|(k, by)| ((1 << k) + by) as usize)
    ];
    (
        size,
        prop::sample::select(Distribution::ALL),
        any::<u64>(),
        order,
        window,
    )
}

fn case<K: TestKey>(
    (n, distribution, seed, order, window): (usize, Distribution, u64, Order, Option<Range<u32>>),
) {
    let bits = window.map(|window| window.start.min(<K as Key>::BITS)..window.end.min(K::BITS));
    let mut options = SortOptions::new().order(order);
    options.bits = bits;
    let context = format!("{distribution:?} seed {seed}");
    check(
        &mut cpu::Sorter::new(),
        &distribution.keys::<K>(n, seed),
        &options,
        &context,
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn u32_as_std(c in any_case()) { case::<u32>(c) }
    #[test]
    fn i32_as_std(c in any_case()) { case::<i32>(c) }
    #[test]
    fn f32_as_std(c in any_case()) { case::<f32>(c) }
    #[test]
    fn u64_as_std(c in any_case()) { case::<u64>(c) }
    #[test]
    fn i64_as_std(c in any_case()) { case::<i64>(c) }
    #[test]
    fn f64_as_std(c in any_case()) { case::<f64>(c) }

    #[test]
    fn any_keys_at_all(keys in prop::collection::vec(any::<f32>(), 0..2000), begin in 0_u32..=32, end in 0_u32..=32) {
        let options = SortOptions::new().bits(begin.min(end)..begin.max(end));
        check(&mut cpu::Sorter::new(), &keys, &options, "");
    }
}
