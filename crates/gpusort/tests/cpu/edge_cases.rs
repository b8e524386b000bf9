//! Cases that other sorts once got wrong, each a test of its own.

use crate::common::{
    Distribution, TestKey, assert_same_bits, by_index, expected_index, special_f32, special_f64,
    sprinkled,
};
use gpusort::{Error, Key, SortOptions, cpu};

/// Compares key, index and pair sorts with the reference.
fn check<K: TestKey>(keys: &[K], options: &SortOptions) {
    let expected = expected_index(keys, options);
    let (mut got, mut index) = (keys.to_vec(), vec![0; keys.len()]);
    cpu::sort_keys(&mut got, options).expect("a valid call");
    assert_same_bits(
        &got,
        &by_index(keys, &expected),
        format_args!("{options:?}"),
    );
    cpu::sort_index(keys, &mut index, options).expect("a valid call");
    assert_eq!(index, expected, "{options:?}");
    let mut values: Vec<u32> = (0..keys.len() as u32).collect();
    let mut got = keys.to_vec();
    cpu::sort_pairs(&mut got, &mut values, options).expect("a valid call");
    assert_same_bits(
        &got,
        &by_index(keys, &expected),
        format_args!("pairs {options:?}"),
    );
    assert_eq!(values, expected, "pairs {options:?}");
}

fn bits(keys: &[f32]) -> Vec<u32> {
    keys.iter().map(|key| key.to_bits()).collect()
}

#[test]
fn zeros_of_both_signs_keep_their_order_and_bits() {
    let mut keys = [0.0_f32, -0.0, 1.0, -0.0, 0.0, -1.0, -0.0];
    cpu::sort_keys(&mut keys, &SortOptions::new()).expect("a valid call");
    assert_eq!(bits(&keys), bits(&[-1.0, 0.0, -0.0, -0.0, 0.0, -0.0, 1.0]));
    cpu::sort_keys(&mut keys, &SortOptions::new().descending()).expect("a valid call");
    assert_eq!(bits(&keys), bits(&[1.0, 0.0, -0.0, -0.0, 0.0, -0.0, -1.0]));
    // Few zeros among many keys, on the path for many keys.
    let mut many: Vec<f32> = Distribution::Uniform.keys(10_000, 1);
    (0..10_000)
        .step_by(77)
        .for_each(|i| many[i] = if i % 2 == 0 { 0.0 } else { -0.0 });
    check(&many, &SortOptions::new());
    check(&many, &SortOptions::new().descending());
}

#[test]
fn zeros_alone_are_sorted_already() {
    let keys: Vec<f64> = (0..5000)
        .map(|i| if i % 3 == 0 { 0.0 } else { -0.0 })
        .collect();
    let mut got = keys.clone();
    let report = cpu::sort_keys(&mut got, &SortOptions::new()).expect("a valid call");
    assert!(report.early_exit);
    assert_same_bits(&got, &keys, "zeros");
}

#[test]
fn infinities_denormals_and_nans_of_both_signs_take_the_documented_order() {
    for n in [22, 300, 513, 40_000] {
        for options in [SortOptions::new(), SortOptions::new().descending()] {
            check(&sprinkled(&special_f32(), n, 5), &options);
            check(&sprinkled(&special_f64(), n, 5), &options);
        }
    }
    let mut keys = [
        f32::NAN,
        f32::INFINITY,
        1e-45,
        -f32::NAN,
        f32::NEG_INFINITY,
        -1e-45,
        0.0,
    ];
    cpu::sort_keys(&mut keys, &SortOptions::new()).expect("a valid call");
    let expected = [
        -f32::NAN,
        f32::NEG_INFINITY,
        -1e-45,
        0.0,
        1e-45,
        f32::INFINITY,
        f32::NAN,
    ];
    assert_eq!(bits(&keys), bits(&expected));
}

#[test]
fn all_nan() {
    for pattern in [0x7fc0_0000_u32, 0xffff_ffff, 0x7f80_0001] {
        check(&vec![f32::from_bits(pattern); 1000], &SortOptions::new());
    }
    let any_nan: Vec<f32> = (0..1000_u32)
        .map(|i| f32::from_bits((0x7f80_0001 + i * 77) | ((i & 1) << 31)))
        .collect();
    check(&any_nan, &SortOptions::new());
    check(&any_nan, &SortOptions::new().descending());
}

#[test]
fn descending_floats_with_negatives() {
    for n in [10, 511, 512, 513, 30_000] {
        check(
            &Distribution::Gaussian.keys::<f32>(n, 8),
            &SortOptions::new().descending(),
        );
        check(
            &Distribution::Gaussian.keys::<f64>(n, 8),
            &SortOptions::new().descending(),
        );
    }
    let mut keys = [-2.0_f64, 3.0, -0.5, 0.0];
    cpu::sort_keys(&mut keys, &SortOptions::new().descending()).expect("a valid call");
    assert_eq!(keys, [3.0, 0.0, -0.5, -2.0]);
}

#[test]
fn keys_equal_to_padding_values() {
    fn test<K: TestKey>() {
        for n in [1, 100, 700, 9000] {
            for distribution in [Distribution::Extremes, Distribution::AllMax] {
                check::<K>(&distribution.keys(n, 2), &SortOptions::new());
                check::<K>(&distribution.keys(n, 2), &SortOptions::new().descending());
            }
        }
    }
    for_each_key_type!(test());
}

#[test]
fn bit_windows() {
    fn test<K: TestKey>() {
        let b = K::BITS;
        let ends = [0, b / 3, 3 * b / 4, b];
        for begin in ends {
            for end in ends.into_iter().filter(|&end| end >= begin) {
                for n in [50, 400, 6000] {
                    let options = SortOptions::new().bits(begin..end);
                    check::<K>(&Distribution::UniformBits.keys(n, 4), &options);
                    check::<K>(&Distribution::UniformBits.keys(n, 4), &options.descending());
                }
            }
        }
    }
    for_each_key_type!(test());
}

#[test]
fn an_empty_window_moves_nothing() {
    let keys: Vec<u64> = Distribution::UniformBits.keys(5000, 4);
    for at in [0, 32, 64] {
        let mut got = keys.clone();
        let options = SortOptions::new().bits(at..at);
        let report = cpu::sort_keys(&mut got, &options).expect("a valid call");
        assert_eq!(got, keys);
        assert!(report.early_exit && report.passes_run == 0 && report.passes_skipped == 0);
        assert!(cpu::is_sorted(&keys, &options).expect("a valid call"));
    }
}

#[test]
fn stable_over_two_million_few_distinct_keys() {
    let keys: Vec<u32> = Distribution::Few(128).keys(2_000_000, 6);
    check(&keys, &SortOptions::new());
    let keys: Vec<i64> = Distribution::Few(128).keys(2_000_000, 6);
    check(&keys, &SortOptions::new().descending());
}

#[test]
fn only_the_sub_range_is_touched() {
    let all: Vec<u32> = Distribution::UniformBits.keys(9000, 9);
    for range in [100..500, 100..8000] {
        let n = range.len();
        let (mut keys, mut values) = (all.clone(), (0..9000).collect::<Vec<u64>>());
        cpu::sort_pairs(
            &mut keys[range.clone()],
            &mut values[range.clone()],
            &SortOptions::new(),
        )
        .expect("a valid call");
        let mut index = vec![0xdead_beef; n + 2];
        cpu::sort_index(&all[range.clone()], &mut index[1..=n], &SortOptions::new())
            .expect("a valid call");
        assert_eq!((index[0], index[n + 1]), (0xdead_beef, 0xdead_beef));
        for i in 0..9000 {
            let from = if range.contains(&i) {
                range.start + index[1 + i - range.start] as usize
            } else {
                i
            };
            assert_eq!((keys[i], values[i]), (all[from], from as u64));
        }
        assert!(keys[range].is_sorted());
    }
}

#[test]
fn constant_digits_are_skipped_and_reported() {
    // Only bits 16 to 23 differ: one of the four passes for 32 bits runs.
    let mut keys: Vec<u32> = (0..4096_u32)
        .map(|i| 0x4500_1234 | (i.wrapping_mul(101) & 0xff) << 16)
        .collect();
    let report = cpu::sort_keys(&mut keys, &SortOptions::new()).expect("a valid call");
    assert_eq!(
        (report.passes_run, report.passes_skipped, report.early_exit),
        (1, 3, false)
    );
    assert!(keys.is_sorted());
    // Low and high bits differ, but not the bits between.
    let mut keys: Vec<u64> = (0..4096_u64)
        .map(|i| i.wrapping_mul(101) & 0xf | (!i & 7) << 60)
        .collect();
    let report = cpu::sort_keys(&mut keys, &SortOptions::new()).expect("a valid call");
    assert_eq!((report.passes_run, report.passes_skipped), (2, 6));
    assert!(keys.is_sorted());
}

#[test]
fn sorted_input_exits_early_in_either_order() {
    fn test<K: TestKey>() {
        for n in [0, 1, 2, 500, 5000, 600_000] {
            let mut keys: Vec<K> = Distribution::Sorted.keys(n, 1);
            let report = cpu::sort_keys(&mut keys, &SortOptions::new()).expect("a valid call");
            assert!(report.early_exit && report.passes_run == 0);
            keys.reverse();
            let report =
                cpu::sort_keys(&mut keys, &SortOptions::new().descending()).expect("a valid call");
            assert!(report.early_exit && report.passes_run == 0);
            if let (Some(first), Some(last)) = (keys.first(), keys.last())
                && first.rank() != last.rank()
            {
                assert!(!cpu::is_sorted(&keys, &SortOptions::new()).expect("a valid call"));
            }
        }
    }
    for_each_key_type!(test());
}

#[test]
fn one_key_out_of_order_anywhere_is_noticed() {
    // Including the boundaries between the chunks of the parallel check.
    let n = 600_000;
    let keys: Vec<u32> = (0..n).map(|i| 2 * i).collect();
    for at in [
        0,
        1,
        65_534,
        65_535,
        65_536,
        65_537,
        131_072,
        n as usize - 2,
    ] {
        let mut keys = keys.clone();
        keys.swap(at, at + 1);
        assert!(
            !cpu::is_sorted(&keys, &SortOptions::new()).expect("a valid call"),
            "{at}"
        );
        cpu::sort_keys(&mut keys, &SortOptions::new()).expect("a valid call");
        assert!(keys.iter().zip(0..n).all(|(&key, i)| key == 2 * i), "{at}");
    }
}

#[test]
fn wrong_lengths_and_windows_are_errors_that_touch_nothing() {
    fn test<K: TestKey>() {
        let keys: Vec<K> = Distribution::UniformBits.keys(1000, 1);
        let (mut got, mut values, mut index) = (keys.clone(), vec![7_u32; 999], vec![7_u32; 1001]);
        let ok = SortOptions::new();
        assert!(matches!(
            cpu::sort_pairs(&mut got, &mut values, &ok),
            Err(Error::LengthMismatch {
                keys: 1000,
                values: 999
            })
        ));
        assert!(matches!(
            cpu::sort_records(&mut got, &mut values, &ok),
            Err(Error::LengthMismatch {
                keys: 1000,
                values: 999
            })
        ));
        assert!(matches!(
            cpu::sort_index(&got, &mut index, &ok),
            Err(Error::LengthMismatch {
                keys: 1000,
                values: 1001
            })
        ));
        #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
        let windows = [
            5..3,
            0..K::BITS + 1,
            K::BITS + 1..K::BITS + 1,
            u32::MAX..u32::MAX,
        ];
        for window in windows {
            let options = SortOptions::new().bits(window.clone());
            let wrong = |error: Option<Error>| {
                matches!(error, Some(Error::BitWindow { begin, end, bits })
                    if (begin, end, bits) == (window.start, window.end, <K as Key>::BITS))
            };
            let mut values = vec![7_u32; 1000];
            assert!(wrong(cpu::sort_keys(&mut got, &options).err()));
            assert!(wrong(
                cpu::sort_pairs(&mut got, &mut values, &options).err()
            ));
            assert!(wrong(
                cpu::sort_records(&mut got, &mut values, &options).err()
            ));
            assert!(wrong(cpu::sort_index(&got, &mut values, &options).err()));
            assert!(wrong(cpu::is_sorted(&got, &options).err()));
            assert!(values.iter().all(|&value| value == 7));
        }
        assert_same_bits(&got, &keys, "untouched");
        assert!(values.iter().chain(&index).all(|&value| value == 7));
    }
    for_each_key_type!(test());
}

#[test]
fn a_sorter_is_used_again_for_any_type_and_size() {
    let mut sorter = cpu::Sorter::new();
    for n in [3000, 10, 70_000, 0, 2000] {
        let keys: Vec<f64> = Distribution::Gaussian.keys(n, 1);
        let mut index = vec![0; n];
        sorter
            .sort_index(&keys, &mut index, &SortOptions::new())
            .expect("a valid call");
        assert_eq!(index, expected_index(&keys, &SortOptions::new()));
        let mut keys: Vec<u32> = Distribution::Uniform.keys(n / 2, 1);
        sorter
            .sort_keys(&mut keys, &SortOptions::new())
            .expect("a valid call");
        assert!(keys.is_sorted());
    }
    assert!(sorter.scratch_bytes() >= 70_000 * 16);
}

#[test]
fn the_same_sort_twice_gives_the_same_bits() {
    let keys: Vec<f32> = Distribution::Extremes.keys(700_000, 1);
    let sort = || {
        let mut got = keys.clone();
        cpu::sort_keys(&mut got, &SortOptions::new()).expect("a valid call");
        got
    };
    assert_same_bits(&sort(), &sort(), "twice");
}
