//! Scenes that change from frame to frame, against a rebuild by force of each: pairs, events, chunks and queries, on every strategy.

use arbitrary::{Result, Unstructured};
use sap::{
    Aabb, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, OnInvalid, OverlapRule,
    Pair, Strategy,
};

pub fn target(data: &[u8]) {
    // Too few bytes end the stream, which is no finding.
    let _ = run(&mut Unstructured::new(data));
}

fn run(bytes: &mut Unstructured) -> Result<()> {
    let config = Config {
        backend: Backend::Cpu,
        strategy: *bytes.choose(Strategy::ALL)?,
        rule: *bytes.choose(&[OverlapRule::Closed, OverlapRule::Open])?,
        on_invalid: *bytes.choose(&[OnInvalid::Error, OnInvalid::Skip])?,
        pair_memory: if bytes.ratio(1, 8)? {
            Some(bytes.int_in_range(0..=400)?)
        } else {
            None
        },
        // So that boxes at rest are kept, few as they are.
        hold_from: if bytes.ratio(3, 4)? {
            Some(bytes.int_in_range(0..=20)?)
        } else {
            None
        },
        ..Config::default()
    };
    let mut broad_phase = BroadPhase::new(config.clone()).expect("the CPU is there");
    let (mut boxes, mut filters, mut worlds) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: Vec<Pair> = Vec::new();
    let mut tested: Vec<Aabb> = Vec::new();
    let mut seen = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        for _ in 0..bytes.int_in_range(1..=12)? {
            change(bytes, &mut boxes, &mut filters, &mut worlds)?;
        }
        let mut frame = Frame::boxes(&boxes);
        let filtered = bytes.ratio(1, 2)?;
        if filtered {
            frame = frame.filters(&filters);
        }
        let parted = bytes.ratio(1, 4)?;
        if parted {
            frame = frame.worlds(&worlds);
        }
        let changed = if bytes.ratio(1, 2)? {
            let differs = |&i: &usize| {
                boxes.get(i).map(bits) != tested.get(i).map(bits)
                    || (filters.get(i), worlds.get(i)) != (seen.0.get(i), seen.1.get(i))
            };
            let listed = (0..boxes.len()).filter(differs);
            let mut changed: Vec<u32> = listed.map(|i| i as u32).collect();
            changed.push(bytes.choose_index(boxes.len().max(1))? as u32);
            changed.retain(|&i| (i as usize) < boxes.len());
            changed.reverse();
            Some(changed)
        } else {
            None
        };
        if let Some(changed) = &changed {
            frame = frame.changed(changed);
        }
        let bad = boxes.iter().position(|b| b.check().is_err());
        let allowed = |a: usize, b: usize| {
            (!filtered || filters[a].allows(&filters[b])) && (!parted || worlds[a] == worlds[b])
        };
        let expected = by_force(&boxes, config.rule, allowed);
        match (broad_phase.update(frame).cloned(), bad) {
            (Ok(report), bad) => {
                assert!(
                    bad.is_none() || config.on_invalid == OnInvalid::Skip,
                    "an invalid box was taken"
                );
                assert_eq!(report.invalid.map(|invalid| invalid.first), bad);
                assert_eq!(broad_phase.pairs(), expected);
                let new = |a: &[Pair], b: &[Pair]| -> Vec<Pair> {
                    a.iter()
                        .filter(|pair| b.binary_search(pair).is_err())
                        .copied()
                        .collect()
                };
                assert_eq!(broad_phase.started(), new(&expected, &last));
                assert_eq!(broad_phase.ended(), new(&last, &expected));
                assert_eq!(
                    (report.n, report.pairs),
                    (boxes.len(), expected.len() as u64)
                );
                last.clone_from(&expected);
                tested.clone_from(&boxes);
                seen = (filters.clone(), worlds.clone());
            }
            (Err(Error::InvalidAabb { index, .. }), Some(first)) => {
                assert_eq!(config.on_invalid, OnInvalid::Error);
                assert_eq!(index, first);
            }
            (Err(Error::TooManyPairs { count, limit }), _) => {
                assert!(config.pair_memory.is_some() && count > limit);
                assert_eq!(count, expected.len() as u64);
            }
            (Err(error), bad) => panic!("{error}, the first bad box being {bad:?}"),
        }
        assert_eq!(
            broad_phase.pairs(),
            last,
            "whatever happened, the pairs are those of the last good update"
        );
        query(bytes, &mut broad_phase, &tested, config.rule)?;
        if bytes.ratio(1, 8)? {
            let chunk = bytes.int_in_range(0..=70)?;
            let mut all = Vec::new();
            let delivered = broad_phase.for_each_pair_chunk(frame, chunk, |pairs| {
                assert!(!pairs.is_empty() && pairs.len() <= chunk.max(1));
                all.extend_from_slice(pairs);
            });
            match delivered {
                Ok(report) => {
                    assert_eq!(all, expected);
                    assert_eq!(report.pairs, expected.len() as u64);
                }
                Err(Error::InvalidAabb { index, .. }) => assert_eq!(Some(index), bad),
                Err(error) => panic!("{error}"),
            }
        }
    }
    Ok(())
}

fn bits(b: &Aabb) -> [[u32; 3]; 2] {
    [b.min, b.max].map(|corner| corner.map(f32::to_bits))
}

fn change(
    bytes: &mut Unstructured,
    boxes: &mut Vec<Aabb>,
    filters: &mut Vec<Filter>,
    worlds: &mut Vec<u32>,
) -> Result<()> {
    if boxes.len() < 3 || (boxes.len() < 90 && bytes.ratio(2, 5)?) {
        for _ in 0..bytes.int_in_range(1..=9)? {
            boxes.push(any_box(bytes)?);
            filters.push(any_filter(bytes)?);
            worlds.push(bytes.int_in_range(0..=2)?);
        }
        return Ok(());
    }
    let at = bytes.choose_index(boxes.len())?;
    match bytes.int_in_range(0..=9)? {
        0 => boxes[at] = Aabb::EMPTY,
        1 => filters[at] = any_filter(bytes)?,
        2 => worlds[at] = bytes.int_in_range(0..=2)?,
        3 => {
            boxes.truncate(at);
            filters.truncate(at);
            worlds.truncate(at);
        }
        4 => boxes[at] = boxes[bytes.choose_index(boxes.len())?],
        _ => boxes[at] = any_box(bytes)?,
    }
    Ok(())
}

/// Mostly boxes of a small grid, so that borders meet; now and then any bits.
fn any_box(bytes: &mut Unstructured) -> Result<Aabb> {
    let mut number = || -> Result<f32> {
        Ok(match bytes.int_in_range(0..=40_u8)? {
            0 => f32::from_bits(bytes.arbitrary()?),
            1 => -0.0,
            2 => f32::INFINITY,
            3 => f32::NEG_INFINITY,
            4 => f32::from_bits(bytes.int_in_range(0..=3)?),
            _ => f32::from(bytes.int_in_range(-8..=8_i8)?) * 0.5,
        })
    };
    let corner = [
        [number()?, number()?, number()?],
        [number()?, number()?, number()?],
    ];
    if bytes.ratio(1, 50)? {
        return Ok(Aabb::new(corner[0], corner[1])); // likely inverted
    }
    let pick =
        |f: fn(f32, f32) -> f32| std::array::from_fn(|axis| f(corner[0][axis], corner[1][axis]));
    Ok(Aabb::new(pick(f32::min), pick(f32::max)))
}

fn any_filter(bytes: &mut Unstructured) -> Result<Filter> {
    if bytes.ratio(1, 2)? {
        return Ok(Filter::default());
    }
    Ok(Filter {
        layers: bytes.int_in_range(0..=7)?,
        mask: bytes.int_in_range(0..=7)?,
        group: bytes.int_in_range(0..=2)?,
        flags: FilterFlags(bytes.int_in_range(0..=3)?),
    })
}

fn by_force(
    boxes: &[Aabb],
    rule: OverlapRule,
    allowed: impl Fn(usize, usize) -> bool,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for a in 0..boxes.len() {
        for b in a + 1..boxes.len() {
            if boxes[a].overlaps(&boxes[b], rule) && allowed(a, b) {
                pairs.push(Pair::new(a as u32, b as u32));
            }
        }
    }
    pairs
}

fn query(
    bytes: &mut Unstructured,
    broad_phase: &mut BroadPhase,
    boxes: &[Aabb],
    rule: OverlapRule,
) -> Result<()> {
    if bytes.ratio(1, 4)? {
        let query = any_box(bytes)?;
        let by_force = (0..boxes.len()).filter(|&index| boxes[index].overlaps(&query, rule));
        let expected: Vec<u32> = by_force.map(|index| index as u32).collect();
        assert_eq!(broad_phase.query_box(&query), expected);
    }
    if bytes.ratio(1, 8)? {
        // Any numbers: nothing to compare with but that each index is one.
        let numbers: [u32; 7] = bytes.arbitrary()?;
        let [a, b, c, d, e, f, t] = numbers.map(f32::from_bits);
        let hits = broad_phase.query_ray([a, b, c], [d, e, f], t);
        assert!(
            hits.is_sorted_by(|x, y| x.t <= y.t)
                && hits.iter().all(|hit| (hit.index as usize) < boxes.len())
        );
        let near = broad_phase.query_sphere([a, b, c], t);
        assert!(near.is_sorted() && near.iter().all(|&index| (index as usize) < boxes.len()));
    }
    Ok(())
}
