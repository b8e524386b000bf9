//! Finds the pairs that started and those that ended: the difference of two sorted lists, in
//! parallel.

use crate::cpu::tuning::{COMPARED_BLOCK, PAIR_TASK};
use crate::threads::on_threads;
use crate::try_alloc::{concat, push};
use crate::{Pair, Result, try_alloc};
use rayon::prelude::*;

/// Returns the pairs of `new` that `old` lacks, and those of `old` that `new` lacks. O(old + new).
pub(crate) fn difference(old: &[Pair], new: &[Pair]) -> Result<(Vec<Pair>, Vec<Pair>)> {
    if old.is_empty() || new.is_empty() {
        return Ok((concat(&[new])?, concat(&[old])?));
    }
    let parts = new.len().max(old.len()).div_ceil(PAIR_TASK);
    if parts == 1 {
        return of_part(old, new);
    }
    // Both lists are cut at the same pairs, at even steps of the longer one.
    let longer = if new.len() > old.len() { new } else { old };
    let cut = |list: &[Pair], part: usize| match part {
        0 => 0,
        _ if part == parts => list.len(),
        _ => list.partition_point(|pair| *pair < longer[part * longer.len() / parts]),
    };
    let compare = |part: usize| {
        let range = |list: &'_ [Pair]| cut(list, part)..cut(list, part + 1);
        of_part(&old[range(old)], &new[range(new)])
    };
    let found: Vec<_> = on_threads(|| (0..parts).into_par_iter().map(compare).collect())?;
    let (starts, ends): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let started = concat(&starts)?;
    drop(starts); // before the memory of `ended` is needed
    Ok((started, concat(&ends)?))
}

fn of_part(mut old: &[Pair], mut new: &[Pair]) -> Result<(Vec<Pair>, Vec<Pair>)> {
    let (mut started, mut ended) = (Vec::new(), Vec::new());
    while let (Some(o), Some(n)) = (old.first(), new.first()) {
        match o.cmp(n) {
            std::cmp::Ordering::Less => push(&mut ended, *o)?,
            std::cmp::Ordering::Greater => push(&mut started, *n)?,
            std::cmp::Ordering::Equal => {
                // Most pairs are in both lists, so blocks are compared at once.
                let same = |(o, n): &(&[Pair], &[Pair])| o == n;
                let blocks = old
                    .chunks_exact(COMPARED_BLOCK)
                    .zip(new.chunks_exact(COMPARED_BLOCK));
                let equal = COMPARED_BLOCK * blocks.take_while(same).count();
                if equal > 0 {
                    (old, new) = (&old[equal..], &new[equal..]);
                    continue;
                }
            }
        }
        (old, new) = (&old[usize::from(o <= n)..], &new[usize::from(n <= o)..]);
    }
    for (list, rest) in [(&mut started, new), (&mut ended, old)] {
        try_alloc::reserve(list, list.len() + rest.len())?;
        list.extend_from_slice(rest);
    }
    Ok((started, ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn differences_across_parts() {
        let list = |step: u32, offset: u32, n: u32| -> Vec<Pair> {
            (0..n)
                .map(|i| Pair {
                    a: (i * step + offset) / 7,
                    b: i * step + offset + 1,
                })
                .collect()
        };
        let lists = [
            list(1, 0, 0),
            list(1, 0, 1),
            list(1, 0, 200_000),
            list(2, 0, 150_000),
            list(3, 1, 90_000),
            list(1, 199_990, 20),
        ];
        for old in &lists {
            for new in &lists {
                let (o, n): (BTreeSet<_>, BTreeSet<_>) =
                    (old.iter().collect(), new.iter().collect());
                let Ok((started, ended)) = difference(old, new) else {
                    panic!("no memory")
                };
                assert!(started.iter().eq(n.difference(&o).copied()));
                assert!(ended.iter().eq(o.difference(&n).copied()));
            }
        }
    }
}
