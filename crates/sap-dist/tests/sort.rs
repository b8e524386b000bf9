//! The sample sort: the order, the bound on each rank, and stability.

mod common;

use common::LIMIT;
use common::random::Random;
use gpusort::Key;
use sap_dist::{Cause, Error, List, Threads, Transport, sort_keys, sort_pairs};

/// Sorts what the ranks have, and checks order, bound and stability.
fn check<K: Key>(parts: &[Vec<K>]) {
    let ranks = parts.len();
    let n: usize = parts.iter().map(Vec::len).sum();
    let first = |rank: usize| parts[..rank].iter().map(Vec::len).sum::<usize>() as u64;
    let sorted = Threads::run(ranks, LIMIT, |transport| {
        let rank = transport.rank();
        let values: Vec<u64> = (first(rank)..first(rank + 1)).collect();
        let keys = sort_keys(transport, parts[rank].clone())?;
        let pairs = sort_pairs(transport, parts[rank].clone(), values)?;
        Ok::<_, Error>((keys, pairs))
    });
    let sorted: Vec<_> = sorted
        .expect("threads start")
        .into_iter()
        .map(|part| part.expect("sorts"))
        .collect();
    let bits = |key: &K| -> u64 { key.to_ordered_bits().into() };
    let all: Vec<K> = parts.concat();
    let mut expected: Vec<(u64, u64)> =
        all.iter().zip(0..).map(|(key, i)| (bits(key), i)).collect();
    expected.sort_unstable();
    let found = sorted
        .iter()
        .flat_map(|(_, (keys, values))| keys.iter().map(bits).zip(values.iter().copied()));
    assert!(
        found.eq(expected.iter().copied()),
        "{ranks} ranks, {n} keys"
    );
    let keys = sorted.iter().flat_map(|(keys, _)| keys.iter().map(bits));
    assert!(
        keys.eq(expected.iter().map(|&(key, _)| key)),
        "{ranks} ranks, {n} keys"
    );
    for (keys, (with, _)) in &sorted {
        let bound = (2 * n).div_ceil(ranks);
        assert!(
            keys.len() <= bound && with.len() <= bound,
            "{} of {n} on one of {ranks}",
            keys.len()
        );
    }
}

/// Splits keys into parts of the given shares.
fn split<K: Copy>(keys: &[K], shares: &[usize]) -> Vec<Vec<K>> {
    let total: usize = shares.iter().sum::<usize>().max(1);
    let mut at = 0;
    let mut sum = 0;
    let mut part = |share: &usize| {
        sum += share;
        let end = keys.len() * sum / total;
        let part = keys[at..end].to_vec();
        at = end;
        part
    };
    shares.iter().map(&mut part).collect()
}

#[test]
fn any_keys_on_any_ranks_sort_within_the_bound() {
    let mut random = Random::new(1);
    for ranks in 1..=7 {
        for n in [0, 1, ranks - 1, ranks, 50, 1000, 20_000] {
            let shares = [
                vec![1; ranks],
                (0..ranks).map(|r| usize::from(r == 0)).collect(),
                (1..=ranks).collect(),
            ];
            for shares in shares {
                let keys: [Vec<u32>; 5] = [
                    (0..n).map(|_| random.bits() as u32).collect(),
                    (0..n).map(|_| random.below(3) as u32).collect(),
                    vec![7; n],
                    (0..n as u32).collect(),
                    (0..n as u32).rev().collect(),
                ];
                keys.iter().for_each(|keys| check(&split(keys, &shares)));
            }
        }
    }
}

#[test]
fn all_types_sort() {
    let mut random = Random::new(2);
    let bits: Vec<u64> = (0..5000).map(|_| random.bits()).collect();
    let shares = [3, 0, 1, 2];
    check(&split(&bits, &shares));
    check(&split(
        &bits.iter().map(|&x| x as i32).collect::<Vec<_>>(),
        &shares,
    ));
    check(&split(
        &bits.iter().map(|&x| x as i64).collect::<Vec<_>>(),
        &shares,
    ));
    // Every kind of float, and zeros of both signs.
    let floats = bits
        .iter()
        .map(|&x| f32::from_bits(x as u32))
        .chain([0.0, -0.0, f32::NAN]);
    check(&split(&floats.collect::<Vec<_>>(), &shares));
    check(&split(
        &bits.iter().map(|&x| f64::from_bits(x)).collect::<Vec<_>>(),
        &shares,
    ));
}

#[test]
fn values_without_bytes_sort() {
    let parts = Threads::run(2, LIMIT, |transport| {
        sort_pairs(transport, vec![3_u32, 1, 2], vec![(); 3])
    });
    let parts = parts.expect("threads start").into_iter();
    let (keys, values): (Vec<_>, Vec<_>) = parts.map(|part| part.expect("sorts")).unzip();
    assert_eq!(keys.concat(), [1, 1, 2, 2, 3, 3]);
    assert_eq!(values.concat().len(), 6);
}

#[test]
fn a_missing_value_fails_on_all_ranks() {
    let results = Threads::run(3, LIMIT, |transport| {
        let failed = sort_pairs(
            transport,
            vec![1_u32, 0],
            vec![0_u8; 2 - transport.rank() / 2],
        )
        .err();
        sort_keys(transport, vec![2_u32])?;
        Ok::<_, Error>(failed)
    });
    let cause = Cause::LengthMismatch {
        what: List::Values,
        expected: 2,
        given: 1,
    };
    for result in results.expect("threads start") {
        assert_eq!(
            result,
            Ok(Some(Error::Rank {
                rank: 2,
                cause: cause.clone()
            }))
        );
    }
}
