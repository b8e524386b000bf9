//! The sort of keys on several devices: their order, the bound on each rank, and stability.

use super::{Check, device_of, unless_quick};
use crate::common::LIMIT;
use crate::common::random::Random;
use gpusort::Key;
use libtest_mimic::Failed;
use sap_dist::{
    Cause, DeviceSorter, DeviceTransport, Error, List, Peers, Staged, Threads, Transport,
};

pub const ALL: &[(&str, Check)] = &[
    ("sort::all_key_types: 1 rank", || all_key_types(1)),
    ("sort::all_key_types: 2 ranks", || all_key_types(2)),
    ("sort::all_key_types: 3 ranks", || all_key_types(3)),
    ("sort::all_key_types: 5 ranks", || all_key_types(5)),
    ("sort::uneven_ranks: 2", || uneven_ranks(&[1, 0])),
    ("sort::uneven_ranks: 3, one with all", || {
        uneven_ranks(&[0, 1, 0])
    }),
    ("sort::uneven_ranks: 3", || uneven_ranks(&[1, 2, 3])),
    ("sort::uneven_ranks: 4", || uneven_ranks(&[5, 1, 0, 1])),
    ("sort::large_segments", large_segments),
    ("sort::segments_in_vain", segments_in_vain),
    ("sort::equal_keys", equal_keys),
    ("sort::one_value_too_few", one_value_too_few),
];

/// Keys alone, with values of 4 and of 8 bytes, as a rank has them; and which were sorted by
/// segments.
type Sorted<K> = (Vec<K>, (Vec<K>, Vec<u32>), (Vec<K>, Vec<u64>), [bool; 3]);

/// Sorts the keys of a rank alone, with values of 4 bytes, and with values of 8.
fn sort<K: Key, T: DeviceTransport>(
    mut transport: T,
    mut sorter: DeviceSorter,
    keys: &[K],
    first: usize,
) -> Result<Sorted<K>, Failed> {
    let stream = sorter.stream().clone();
    let given = stream.from_slice(keys)?;
    let values: Vec<u32> = (first..first + keys.len()).map(|i| i as u32).collect();
    let wide: Vec<u64> = values.iter().map(|&i| !u64::from(i)).collect();
    let (values, wide) = (stream.from_slice(&values)?, stream.from_slice(&wide)?);
    let mut by_segments = [false; 3];
    let lone = sorter.sort_keys(&mut transport, given.slice())?;
    by_segments[0] = sorter.was_by_segments();
    let pairs = sorter.sort_pairs(&mut transport, given.slice(), values.slice())?;
    by_segments[1] = sorter.was_by_segments();
    let wide = sorter.sort_pairs(&mut transport, given.slice(), wide.slice())?;
    by_segments[2] = sorter.was_by_segments();
    assert_eq!(stream.to_vec(given.slice())?.len(), keys.len());
    Ok((
        stream.to_vec(lone.slice())?,
        (
            stream.to_vec(pairs.0.slice())?,
            stream.to_vec(pairs.1.slice())?,
        ),
        (
            stream.to_vec(wide.0.slice())?,
            stream.to_vec(wide.1.slice())?,
        ),
        by_segments,
    ))
}

/// Sorts what the ranks have, by segments and by merges, and checks order, bound and stability.
fn check<K: Key>(parts: &[Vec<K>], piece_bytes: u64) -> Result<(), Failed> {
    check_by(parts, piece_bytes, |sorter| sorter).map(|_| ())
}

/// Does so with sorters that are `adjusted`. Returns which sorts were by segments where they could
/// be.
fn check_by<K: Key>(
    parts: &[Vec<K>],
    piece_bytes: u64,
    adjusted: fn(DeviceSorter) -> DeviceSorter,
) -> Result<[bool; 3], Failed> {
    let (ranks, n) = (parts.len(), parts.iter().map(Vec::len).sum::<usize>());
    let first = |rank: usize| parts[..rank].iter().map(Vec::len).sum::<usize>();
    let run = |threads: &mut Threads, by_peers: bool, min_segmented: u64| {
        let rank = threads.rank();
        let sorter = adjusted(DeviceSorter::new(device_of(rank))?)
            .min_piece_bytes(piece_bytes)
            .min_segmented(min_segmented);
        let (keys, first) = (&parts[rank], first(rank));
        if by_peers {
            let peers = Peers::new(threads, sorter.stream().device())?;
            sort(peers, sorter, keys, first)
        } else {
            sort(Staged::new(threads), sorter, keys, first)
        }
    };
    let sorted_by = |by_peers, min_segmented| -> Result<Vec<_>, Failed> {
        let results = Threads::run(ranks, LIMIT, |threads| {
            run(threads, by_peers, min_segmented)
        })?;
        results.into_iter().collect()
    };
    let bits = |key: &K| -> u64 { key.to_ordered_bits().into() };
    let all = parts.concat();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| bits(&all[i]));
    let bytes = |keys: &[K]| bytemuck::cast_slice::<K, u8>(keys).to_vec();
    let expected = bytes(&order.iter().map(|&i| all[i]).collect::<Vec<K>>());
    let about = format!("{:?}, {ranks} ranks, {n} keys", K::TYPE);
    let mut by_segments = Vec::new();
    // Bit for bit: zeros of both signs are equal, and keep their order.
    for (by_peers, min_segmented) in [(false, u64::MAX), (false, 0), (true, 0)] {
        let sorted = sorted_by(by_peers, min_segmented)?;
        let about = format!("{about}, by peers: {by_peers}, segments from {min_segmented}");
        for keys in [
            sorted
                .iter()
                .flat_map(|one| one.0.clone())
                .collect::<Vec<K>>(),
            sorted.iter().flat_map(|one| one.1.0.clone()).collect(),
            sorted.iter().flat_map(|one| one.2.0.clone()).collect(),
        ] {
            assert!(bytes(&keys) == expected, "{about}");
        }
        let narrow = sorted.iter().flat_map(|one| &one.1.1);
        assert!(
            narrow.map(|&i| i as usize).eq(order.iter().copied()),
            "{about}"
        );
        let wide = sorted.iter().flat_map(|one| &one.2.1);
        assert!(
            wide.map(|&i| !i as usize).eq(order.iter().copied()),
            "{about}"
        );
        for one in &sorted {
            let most = (2 * n).div_ceil(ranks);
            assert!(one.0.len() <= most && one.1.0.len() <= most, "{about}");
        }
        by_segments.extend(sorted.iter().map(|one| one.3));
    }
    let (by_merges, tried) = by_segments.split_at(ranks);
    assert!(by_merges.iter().all(|sorts| sorts == &[false; 3]));
    assert!(tried.windows(2).all(|two| two[0] == two[1]), "{about}");
    Ok(tried[0])
}

/// Divides keys among ranks by the sizes given, again and again.
fn divide<K: Copy>(keys: &[K], shares: &[usize]) -> Vec<Vec<K>> {
    let all = shares.iter().sum::<usize>().max(1);
    let end = |rank: usize| keys.len() * shares[..rank].iter().sum::<usize>() / all;
    (0..shares.len())
        .map(|rank| keys[end(rank)..end(rank + 1)].to_vec())
        .collect()
}

fn all_key_types(ranks: usize) -> Result<(), Failed> {
    let n = unless_quick(3_000_000, 9_000);
    let mut random = Random::new(3);
    let words: Vec<u64> = (0..n)
        .map(|_| (random.below(1 << 32) as u64) << 32 | random.below(1 << 32) as u64)
        .collect();
    let shares = vec![1; ranks];
    // Few bits, so that there are equal keys; and all bits, so that there are NaNs.
    let narrow: Vec<u32> = words.iter().map(|word| (word >> 20) as u32).collect();
    let few: Vec<f32> = words
        .iter()
        .map(|word| (word % 2001) as f32 - 1000.0)
        .collect();
    let signed: Vec<f32> = few
        .iter()
        .map(|&key| if key == 1.0 { -0.0 } else { key })
        .collect();
    let of_bits = |word: &u32| f32::from_bits(*word);
    check(&divide(&narrow, &shares), 4096)?;
    check(
        &divide(
            &narrow.iter().map(|&key| key as i32).collect::<Vec<_>>(),
            &shares,
        ),
        4096,
    )?;
    check(
        &divide(&narrow.iter().map(of_bits).collect::<Vec<_>>(), &shares),
        4096,
    )?;
    check(&divide(&signed, &shares), 4096)?;
    check(&divide(&words, &shares), 4096)?;
    check(
        &divide(
            &words.iter().map(|&key| key as i64).collect::<Vec<_>>(),
            &shares,
        ),
        4096,
    )?;
    let floats: Vec<f64> = words.iter().map(|&word| f64::from_bits(word)).collect();
    check(&divide(&floats, &shares), 4096)?;
    Ok(())
}

/// Ranks with nothing, one rank with all, few keys, and pieces of one key and of all.
fn uneven_ranks(shares: &[usize]) -> Result<(), Failed> {
    let mut random = Random::new(4);
    for n in [0, 1, 2, 5, 100, unless_quick(100_000, 4_000)] {
        let keys: Vec<u32> = (0..n).map(|_| random.below(1 << 20) as u32).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for bytes in [1, 1 << 30] {
            check(&divide(&keys, shares), bytes)?;
            check(&divide(&sorted, shares), bytes)?;
        }
    }
    Ok(())
}

/// Keys of which many have the same highest bits: as many as a block of each shape sorts, and more
/// than any. Segments are as large with values only if they have as many bits as with very many
/// keys: few keys get these too.
fn large_segments() -> Result<(), Failed> {
    type Adjusted = fn(DeviceSorter) -> DeviceSorter;
    let few: (_, _, Adjusted) = (13_000, &[4_000, 5_000, 5_000, 12_000][..], |sorter| {
        sorter.mean_segment(1)
    });
    let many: (_, _, Adjusted) = (1 << 25, &[9_000, 5_000][..], |sorter| sorter);
    let mut random = Random::new(5);
    for &(others, same, adjusted) in unless_quick(&[few, many][..], &[few]) {
        let mut keys: Vec<u32> = (0..others).map(|_| random.below(1 << 32) as u32).collect();
        for &more in same {
            keys.extend((0..more).map(|_| 0x1234_0000 | random.below(1 << 16) as u32));
            let fits = more < 12_000;
            let by_segments = check_by(&divide(&keys, &[1, 1]), 1 << 20, adjusted)?;
            assert_eq!(by_segments, [fits; 3], "{} keys", keys.len());
            let floats: Vec<f32> = keys.iter().map(|&key| f32::from_bits(key)).collect();
            let by_segments = check_by(&divide(&floats, &[1, 1]), 1 << 20, adjusted)?;
            assert_eq!(by_segments, [false, fits, fits], "{} floats", keys.len());
        }
    }
    Ok(())
}

/// After one sort by segments in vain, 15 of that type are not tried so, and others are.
fn segments_in_vain() -> Result<(), Failed> {
    let run = |threads: &mut Threads| -> Result<_, Failed> {
        let mut sorter = DeviceSorter::new(device_of(threads.rank()))?.min_segmented(0);
        let stream = sorter.stream().clone();
        let mut transport = Staged::new(threads);
        let mut random = Random::new(6);
        let mut keys = |bits: u32| -> Vec<u32> {
            (0..20_000)
                .map(|_| random.below(1 << bits) as u32)
                .collect()
        };
        let crowded = stream.from_slice(&keys(16))?;
        let spread = stream.from_slice(&keys(32))?;
        sorter.sort_keys(&mut transport, crowded.slice())?;
        let mut tried = vec![sorter.was_by_segments()];
        sorter.sort_pairs(&mut transport, spread.slice(), spread.slice())?;
        tried.push(sorter.was_by_segments());
        for _ in 0..16 {
            sorter.sort_keys(&mut transport, spread.slice())?;
            tried.push(sorter.was_by_segments());
        }
        Ok(tried)
    };
    let expected = [&[false, true][..], &[false; 15], &[true]].concat();
    for tried in Threads::run(2, LIMIT, run)? {
        assert_eq!(tried?, expected);
    }
    Ok(())
}

fn equal_keys() -> Result<(), Failed> {
    let n = unless_quick(500_000, 8_000);
    for shares in [&[1, 1, 1][..], &[1, 0, 3, 1]] {
        check(&divide(&vec![7_u32; n], shares), 1024)?;
        let two: Vec<u64> = (0..n as u64).map(|i| i % 2).collect();
        check(&divide(&two, shares), 1024)?;
    }
    Ok(())
}

/// All ranks get the error of one, and can sort again.
fn one_value_too_few() -> Result<(), Failed> {
    let run = |threads: &mut Threads| -> Result<_, Failed> {
        let rank = threads.rank();
        let mut sorter = DeviceSorter::new(device_of(rank))?;
        let stream = sorter.stream().clone();
        let mut transport = Staged::new(threads);
        let keys = stream.from_slice(&[3_u32, 1, 2])?;
        let values = stream.from_slice(&[0_u32; 3])?;
        let given = values.range(..if rank == 1 { 2 } else { 3 })?;
        let failed = sorter.sort_pairs(&mut transport, keys.slice(), given);
        let sorted = sorter.sort_keys(&mut transport, keys.slice())?;
        Ok((failed.err(), stream.to_vec(sorted.slice())?))
    };
    let results: Result<Vec<_>, Failed> = Threads::run(2, LIMIT, run)?.into_iter().collect();
    let cause = Cause::LengthMismatch {
        what: List::Values,
        expected: 3,
        given: 2,
    };
    let results = results?;
    for (failed, _) in &results {
        let cause = cause.clone();
        assert_eq!(failed, &Some(Error::Rank { rank: 1, cause }));
    }
    let sorted = results.iter().flat_map(|(_, keys)| keys.clone());
    assert_eq!(sorted.collect::<Vec<u32>>(), [1, 1, 2, 2, 3, 3]);
    Ok(())
}
