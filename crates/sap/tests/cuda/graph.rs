//! Updates recorded as graphs.

use super::{Check, Random, cuda, engine, sized, text, uniform};
use crate::common::{RULES, equal, same};
use libtest_mimic::Failed;
use sap::{
    Aabb, Backend, Config, Error, Filter, FilterFlags, Frame, FrameGraph, OnInvalid, Strategy,
};
use std::ops::Range;

pub const ALL: &[(&str, Check)] = &[
    ("graph::frames", frames),
    ("graph::long_rows", long_rows),
    ("graph::long_bins", long_bins),
    ("graph::limits", limits),
];

/// Launches over other boxes, filters and worlds than those that the graph was recorded for.
fn frames(strategy: Strategy) -> Result<(), Failed> {
    for (rule, number) in RULES.into_iter().cycle().zip(0..4) {
        let mut random = Random::new(11 + number);
        let n = sized(20_000, 400) + random.below(50);
        let config = Config {
            rule,
            ..cuda(strategy)
        };
        let mut boxes = uniform(&mut random, n, 2.0);
        let mut filters = (number % 2 == 0).then(|| any_filters(&mut random, n));
        let mut worlds = (number > 1).then(|| any_worlds(&mut random, n, 5));
        let lists = (filters.as_deref(), worlds.as_deref());
        let graph = FrameGraph::new(&config, &boxes, lists.0, lists.1, 4 * n);
        let mut graph = graph.map_err(text)?;
        let stream = graph.stream().clone();
        let mut plain = engine(&Config {
            backend: Backend::Cpu,
            ..config
        });
        for round in 0..5 {
            graph.launch().map_err(text)?;
            let report = graph.report().map_err(text)?;
            let mut frame = Frame::boxes(&boxes);
            if let Some(filters) = &filters {
                frame = frame.filters(filters);
            }
            if let Some(worlds) = &worlds {
                frame = frame.worlds(worlds);
            }
            plain.update(frame).map_err(text)?;
            let count = stream.to_vec(graph.count().map_err(text)?).map_err(text)?;
            equal((report.n, report.pairs), (n, count[0]))?;
            let found = graph.pairs().map_err(text)?.range(..count[0] as usize);
            same(
                &stream.to_vec(found.map_err(text)?).map_err(text)?,
                plain.pairs(),
            )?;
            boxes = uniform(&mut random, n, [0.1, 1.0, 3.0, 0.01][round % 4]);
            stream.upload(graph.boxes_mut(), &boxes).map_err(text)?;
            equal(graph.filters_mut().is_some(), filters.is_some())?;
            if let (Some(to), Some(filters)) = (graph.filters_mut(), &mut filters) {
                *filters = any_filters(&mut random, n);
                stream.upload(to, filters).map_err(text)?;
            }
            equal(graph.worlds_mut().is_some(), worlds.is_some())?;
            if let (Some(to), Some(worlds)) = (graph.worlds_mut(), &mut worlds) {
                *worlds = any_worlds(&mut random, n, 9);
                worlds[0] = u32::MAX;
                stream.upload(to, worlds).map_err(text)?;
            }
            if round == 2 {
                graph.renew(0).map_err(text)?;
            }
        }
    }
    Ok(())
}

fn any_filters(random: &mut Random, n: usize) -> Vec<Filter> {
    let any = |_| Filter {
        group: random.below(20) as u32,
        flags: FilterFlags(random.below(4) as u32),
        ..Filter::default()
    };
    (0..n).map(any).collect()
}

fn any_worlds(random: &mut Random, n: usize, worlds: usize) -> Vec<u32> {
    (0..n).map(|_| random.below(worlds) as u32).collect()
}

/// Boxes that overlap nearly all others, in a graph that was recorded without such, and in one that
/// was recorded for them. Pairs are few, so that rows have them in order.
fn long_rows(strategy: Strategy) -> Result<(), Failed> {
    with_long(strategy, sized(150_000, 700), 1.0, 0..1 << 19)
}

/// The same where pairs are many, so that counted bins have them in order.
fn long_bins(strategy: Strategy) -> Result<(), Failed> {
    // The bins of many boxes have more keys than a block has bits for.
    let n = sized(300_000, 6_000);
    let density = if n < 100_000 { 100.0 } else { 3.0 };
    with_long(strategy, n, density, 1 << 19..u64::MAX)
}

fn with_long(
    strategy: Strategy,
    n: usize,
    density: f32,
    expected: Range<u64>,
) -> Result<(), Failed> {
    let mut random = Random::new(3);
    let few = uniform(&mut random, n, density);
    let mut many = few.clone();
    let all = Aabb::new([-1e6; 3], [1e6; 3]);
    for i in [0, 1, 5, n / 2] {
        many[i] = all;
    }
    // A row longer than most, of neighbours.
    for b in &mut many[n - 300..] {
        *b = few[n - 1];
    }
    let apart = |i| Aabb::new([3.0 * i as f32; 3], [3.0 * i as f32 + 1.0; 3]);
    let apart: Vec<Aabb> = (0..n).map(apart).collect();
    // More pairs than there is room for.
    let mut crowd = few.clone();
    crowd[..n.min(sized(5_000, 1_000))].fill(few[0]);
    let config = cuda(strategy);
    let mut graph = FrameGraph::new(&config, &few, None, None, 0).map_err(text)?;
    graph.launch().map_err(text)?;
    let pairs = graph.report().map_err(text)?.pairs;
    if !expected.contains(&pairs) {
        return Err(format!("{pairs} pairs").into());
    }
    graph.renew(pairs as usize + 8 * n + 50_000).map_err(text)?;
    let stream = graph.stream().clone();
    let mut plain = engine(&Config {
        backend: Backend::Cpu,
        ..config
    });
    let frames = [&many, &apart, &few, &crowd, &few, &many, &few];
    for (round, boxes) in frames.into_iter().enumerate() {
        stream.upload(graph.boxes_mut(), boxes).map_err(text)?;
        if round == 5 {
            graph.renew(0).map_err(text)?;
        }
        graph.launch().map_err(text)?;
        plain.update(boxes).map_err(text)?;
        let expected = plain.pairs();
        let pairs = match graph.report() {
            Err(Error::TooManyPairs { count, limit }) if round == 3 && limit < count => {
                equal(count, expected.len() as u64)?;
                continue;
            }
            report => {
                equal(round == 3, false)?;
                report.map_err(text)?.pairs as usize
            }
        };
        let found = graph.pairs().map_err(text)?.range(..pairs).map_err(text)?;
        same(&stream.to_vec(found).map_err(text)?, expected)?;
    }
    Ok(())
}

/// Too small a capacity, invalid boxes, and no boxes.
fn limits(strategy: Strategy) -> Result<(), Failed> {
    let config = cuda(strategy);
    let far: Vec<Aabb> = (0..64)
        .map(|i| Aabb::new([3.0 * i as f32; 3], [3.0 * i as f32 + 1.0; 3]))
        .collect();
    let near = vec![Aabb::new([0.0; 3], [1.0; 3]); 64];
    let mut graph = FrameGraph::new(&config, &far, None, None, 10).map_err(text)?;
    let stream = graph.stream().clone();
    graph.launch().map_err(text)?;
    equal(graph.report().map_err(text)?.pairs, 0)?;
    stream.upload(graph.boxes_mut(), &near).map_err(text)?;
    graph.launch().map_err(text)?;
    match graph.report() {
        Err(Error::TooManyPairs { count: 2016, limit }) if limit < 2016 => {}
        other => return Err(format!("{other:?}").into()),
    }
    graph.renew(0).map_err(text)?;
    graph.launch().map_err(text)?;
    equal(graph.report().map_err(text)?.pairs, 2016)?;
    let mut bad = far.clone();
    bad[5].min[1] = f32::NAN;
    stream.upload(graph.boxes_mut(), &bad).map_err(text)?;
    graph.launch().map_err(text)?;
    match graph.report() {
        Err(Error::InvalidAabb { index: 5, .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    match graph.renew(0) {
        Err(Error::InvalidAabb { index: 5, .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    match graph.launch() {
        Err(Error::NotRecorded) => {}
        other => return Err(format!("{other:?}").into()),
    }
    let skipping = Config {
        on_invalid: OnInvalid::Skip,
        ..config.clone()
    };
    let mut graph = FrameGraph::new(&skipping, &bad, None, None, 10).map_err(text)?;
    graph.launch().map_err(text)?;
    let report = graph.report().map_err(text)?;
    equal(
        (report.pairs, report.invalid.map(|invalid| invalid.first)),
        (0, Some(5)),
    )?;
    let mut graph = FrameGraph::new(&config, &[], None, None, 0).map_err(text)?;
    graph.launch().map_err(text)?;
    equal(graph.report().map_err(text)?.pairs, 0)
}
