//! Compares scenes that change from frame to frame with brute force: pairs, events, chunks and
//! queries, with every strategy, in every form of boxes, and with wrong changed sets.

use crate::boxes::{Form, Item, Maker, any_filter};
use crate::truth::{Truth, store};
use arbitrary::{Result, Unstructured};
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Error, Filter, Frame, OnInvalid, OverlapRule, Pair,
    Strategy,
};

/// Max boxes of a frame.
const MAX_BOXES: usize = 320;

pub fn target(data: &[u8]) {
    // The input may end early, which is no finding.
    let _ = run(&mut Unstructured::new(data));
}

/// The lists that a frame borrows.
struct Lists {
    starts: Vec<Aabb>,
    ends: Vec<Aabb>,
    wide: Vec<Aabb64>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
}

impl Lists {
    fn new(items: &[Item]) -> Self {
        Self {
            starts: items.iter().map(|item| item.start).collect(),
            ends: items.iter().map(|item| item.end).collect(),
            wide: items.iter().map(|item| item.wide).collect(),
            filters: items.iter().map(|item| item.filter).collect(),
            worlds: items.iter().map(|item| item.world).collect(),
        }
    }

    fn frame(&self, truth: &Truth) -> Frame<'_> {
        let mut frame = match truth.form {
            Form::Plain => Frame::boxes(&self.starts),
            Form::Swept => Frame::swept(&self.starts, &self.ends),
            Form::Exact => Frame::exact(&self.wide),
        };
        if truth.filtered {
            frame = frame.filters(&self.filters);
        }
        if truth.parted {
            frame = frame.worlds(&self.worlds);
        }
        frame
    }
}

/// A run: an engine, and the expected result of its last successful update.
struct Run {
    config: Config,
    engine: BroadPhase,
    last: Truth,
    stored: Vec<Aabb>,
    pairs: Vec<Pair>,
    /// Boxes that changed without being listed: their old or their new bounds may be used.
    open: Vec<bool>,
    /// Boxes that were open with a margin: which bounds are stored depends on what was used then.
    astray: Vec<bool>,
}

fn run(bytes: &mut Unstructured) -> Result<()> {
    let config = any_config(bytes)?;
    let maker = Maker::new(bytes)?;
    let mut truth = Truth {
        items: Vec::new(),
        form: any_form(bytes)?,
        filtered: false,
        parted: false,
        excluded: Vec::new(),
        rule: config.rule,
    };
    let mut run = Run {
        engine: BroadPhase::new(config.clone()).expect("the CPU is there"),
        config,
        last: truth.clone(),
        stored: Vec::new(),
        pairs: Vec::new(),
        open: Vec::new(),
        astray: Vec::new(),
    };
    let lies = bytes.ratio(1, 4)?;
    while !bytes.is_empty() {
        for _ in 0..bytes.int_in_range(1..=12)? {
            change(bytes, &maker, &mut truth)?;
        }
        if bytes.ratio(1, 60)? {
            run.clear(&truth);
        }
        run.update(bytes, &truth, lies)?;
        run.query(bytes, &maker)?;
        if bytes.ratio(1, 8)? {
            run.chunks(bytes, &truth)?;
        }
        if bytes.ratio(1, 12)? {
            run.between(bytes, &truth)?;
        }
    }
    Ok(())
}

fn any_config(bytes: &mut Unstructured) -> Result<Config> {
    let mut some = |ratio: u32, most: usize| -> Result<Option<usize>> {
        Ok(if bytes.ratio(1, ratio)? {
            Some(bytes.int_in_range(0..=most)?)
        } else {
            None
        })
    };
    // So few boxes have a resting set only if it is requested.
    let min_resting = match some(1, 40)? {
        Some(few @ 0..=30) => Some(few),
        _ => None,
    };
    Ok(Config {
        backend: Backend::Cpu,
        pair_memory: some(8, 400)?.map(|memory| memory as u64),
        min_resting,
        strategy: *bytes.choose(Strategy::ALL)?,
        rule: *bytes.choose(&[OverlapRule::Closed, OverlapRule::Open])?,
        on_invalid: *bytes.choose(&[OnInvalid::Error, OnInvalid::Skip])?,
        margin: *bytes.choose(&[0.0, 0.0, 0.0, 0.0, 0.25, 1e-3, 1e-44, 1e30, f32::MAX])?,
        ..Config::default()
    })
}

fn any_form(bytes: &mut Unstructured) -> Result<Form> {
    Ok(*bytes.choose(&[Form::Plain, Form::Plain, Form::Swept, Form::Exact])?)
}

fn change(bytes: &mut Unstructured, maker: &Maker, truth: &mut Truth) -> Result<()> {
    let items = &mut truth.items;
    if items.len() < 3 || (items.len() < 90 && bytes.ratio(2, 5)?) {
        if bytes.ratio(1, 12)? {
            items.extend(maker.scene(bytes)?);
            items.truncate(MAX_BOXES);
            return Ok(());
        }
        for _ in 0..bytes.int_in_range(1..=9)? {
            items.push(maker.item(bytes)?);
        }
        return Ok(());
    }
    let at = bytes.choose_index(items.len())?;
    match bytes.int_in_range(0..=19)? {
        0 => {
            let item = &mut items[at];
            (item.start, item.end, item.wide) = (Aabb::EMPTY, Aabb::EMPTY, Aabb64::EMPTY);
        }
        1 | 2 => items[at].filter = any_filter(bytes)?,
        3 | 4 => items[at].world = bytes.int_in_range(0..=2)?,
        5 => items.truncate(at),
        6 => items[at] = items[bytes.choose_index(items.len())?],
        7 if bytes.ratio(1, 4)? => truth.form = any_form(bytes)?,
        8 => truth.filtered ^= true,
        9 => truth.parted ^= true,
        10 => {
            let some = |bytes: &mut Unstructured| -> Result<Pair> {
                let [a, b] = [
                    bytes.int_in_range(0..=MAX_BOXES)?,
                    bytes.choose_index(items.len())?,
                ];
                Ok(Pair::new(a as u32, b as u32))
            };
            let many = bytes.int_in_range(0..=30)?;
            let pairs: Result<Vec<Pair>> = (0..many).map(|_| some(bytes)).collect();
            truth.excluded = pairs?;
            truth.excluded.retain(|pair| pair.a < pair.b);
            truth.excluded.sort_unstable();
        }
        _ => items[at] = maker.item(bytes)?,
    }
    Ok(())
}

/// Returns the pairs of `these` that are not in `those`; both are sorted.
fn without(these: &[Pair], those: &[Pair]) -> Vec<Pair> {
    let missing = |pair: &&Pair| those.binary_search(pair).is_err();
    these.iter().filter(missing).copied().collect()
}

impl Run {
    fn clear(&mut self, truth: &Truth) {
        self.engine.clear();
        self.last = Truth {
            items: Vec::new(),
            ..truth.clone()
        };
        self.stored.clear();
        self.pairs.clear();
        self.open.clear();
        assert_eq!(self.engine.pairs(), []);
    }

    /// Returns a changed set: the boxes that may differ from the last successful update, some
    /// twice, and some that do not differ. If `lie` is set, it is incomplete.
    fn changed_set(&self, bytes: &mut Unstructured, truth: &Truth, lie: bool) -> Result<Vec<u32>> {
        let (form, last) = (truth.form, &self.last);
        let differs = |i: usize| match last.items.get(i) {
            Some(old) => !truth.items[i].is_same(form, old, last.form),
            None => true,
        };
        let listed = (0..truth.items.len()).filter(|&i| differs(i));
        let mut changed: Vec<u32> = listed.map(|i| i as u32).collect();
        if lie {
            let mut left = Vec::new();
            for i in changed {
                if bytes.ratio(1, 2)? {
                    left.push(i);
                }
            }
            changed = left;
        }
        changed.push(bytes.choose_index(truth.items.len().max(1))? as u32);
        changed.retain(|&i| (i as usize) < truth.items.len());
        changed.reverse();
        Ok(changed)
    }

    fn update(&mut self, bytes: &mut Unstructured, truth: &Truth, lies: bool) -> Result<()> {
        let lists = Lists::new(&truth.items);
        let mut frame = lists.frame(truth).excluded(&truth.excluded);
        let lie = lies && bytes.ratio(1, 2)?;
        let changed = if bytes.ratio(1, 2)? {
            Some(self.changed_set(bytes, truth, lie)?)
        } else {
            None
        };
        let open = self.still_open(truth, changed.as_deref());
        if let Some(changed) = &changed {
            if bytes.ratio(1, 60)? {
                let beyond = [truth.items.len() as u32 + bytes.int_in_range(0..=3)?];
                let refused = self.engine.update(frame.changed(&beyond));
                assert!(matches!(refused, Err(Error::ChangedIndex { .. })));
            }
            frame = frame.changed(changed);
        }
        let margin = self.config.margin;
        let mut stored = self.stored.clone();
        if margin > 0.0 {
            store(&mut stored, &truth.given(), margin);
        }
        let expected = truth.pairs((margin > 0.0).then_some(&stored[..]));
        let (all_known, bad) = (!open.contains(&true), truth.first_bad());
        let astray = self.still_astray(&open);
        match self.engine.update(frame).cloned() {
            Ok(report) => {
                let skips = self.config.on_invalid == OnInvalid::Skip;
                let refused = truth.items.iter().zip(&open);
                let mut refused =
                    refused.map(|(item, open)| item.given(truth.form).is_none() && !open);
                assert!(skips || !refused.any(|bad| bad), "an invalid box was taken");
                if all_known {
                    assert_eq!(report.invalid.map(|invalid| invalid.first), bad);
                }
                let found = self.engine.pairs();
                compare(found, &expected, &astray);
                assert_eq!(self.engine.started(), without(found, &self.pairs));
                assert_eq!(self.engine.ended(), without(&self.pairs, found));
                assert_eq!(
                    (report.n, report.pairs),
                    (truth.items.len(), found.len() as u64)
                );
                self.pairs = found.to_vec();
                self.last = truth.clone();
                (self.open, self.stored, self.astray) = (open, stored, astray);
            }
            Err(Error::InvalidAabb { index, .. }) => {
                assert_eq!(self.config.on_invalid, OnInvalid::Error);
                assert!(truth.items[index].given(truth.form).is_none());
                assert!(!all_known || bad == Some(index));
            }
            Err(Error::TooManyPairs { count, limit }) => {
                assert!(self.config.pair_memory.is_some() && count > limit);
                assert!(astray.contains(&true) || count == expected.len() as u64);
            }
            Err(error) => panic!("{error}, the first bad box being {bad:?}"),
        }
        assert_eq!(
            self.engine.pairs(),
            self.pairs,
            "the pairs are those of the last successful update"
        );
        Ok(())
    }

    /// Returns the boxes that are astray after an update in which these are open.
    fn still_astray(&self, open: &[bool]) -> Vec<bool> {
        let was_astray = |i: usize| i < self.last.items.len() && self.astray[i];
        let stays = |i: usize| open[i] || self.config.margin > 0.0 && was_astray(i);
        (0..open.len()).map(stays).collect()
    }

    /// Returns the boxes that are open after an update with this changed set.
    fn still_open(&self, truth: &Truth, changed: Option<&[u32]>) -> Vec<bool> {
        let Some(changed) = changed else {
            return vec![false; truth.items.len()];
        };
        let open = |i: usize| {
            !changed.contains(&(i as u32))
                && self.last.items.get(i).is_some_and(|old| {
                    self.open[i] || !truth.items[i].is_same(truth.form, old, self.last.form)
                })
        };
        (0..truth.items.len()).map(open).collect()
    }

    fn chunks(&mut self, bytes: &mut Unstructured, truth: &Truth) -> Result<()> {
        let lists = Lists::new(&truth.items);
        let frame = lists.frame(truth).excluded(&truth.excluded);
        let chunk = bytes.int_in_range(0..=70)?;
        let mut all = Vec::new();
        let delivered = self.engine.for_each_pair_chunk(frame, chunk, |pairs| {
            assert!(!pairs.is_empty() && pairs.len() <= chunk.max(1));
            all.extend_from_slice(pairs);
        });
        match delivered {
            Ok(report) => {
                assert_eq!(all, truth.pairs(None));
                assert_eq!(report.pairs, all.len() as u64);
            }
            Err(Error::InvalidAabb { index, .. }) => assert_eq!(Some(index), truth.first_bad()),
            Err(error) => panic!("{error}"),
        }
        Ok(())
    }

    fn between(&mut self, bytes: &mut Unstructured, truth: &Truth) -> Result<()> {
        let cut = bytes.int_in_range(0..=truth.items.len())?;
        let (a, b) = truth.items.split_at(cut);
        let (a, b) = (Lists::new(a), Lists::new(b));
        match self.engine.overlaps_between(a.frame(truth), b.frame(truth)) {
            Ok(pairs) => assert_eq!(pairs, truth.between(cut)),
            Err(Error::InvalidAabb { index, .. }) => {
                let bad = truth.first_bad().expect("a bad box");
                assert_eq!(index, if bad < cut { bad } else { bad - cut });
            }
            Err(Error::TooManyPairs { count, .. }) => {
                assert_eq!(count, truth.between(cut).len() as u64);
            }
            Err(error) => panic!("{error}"),
        }
        Ok(())
    }

    fn query(&mut self, bytes: &mut Unstructured, maker: &Maker) -> Result<()> {
        let any_known = !self.open.contains(&true);
        let n = self.last.items.len();
        let mut numbers = || -> Result<[f32; 3]> {
            Ok([
                maker.number(bytes)?,
                maker.number(bytes)?,
                maker.number(bytes)?,
            ])
        };
        let (center, dir) = (numbers()?, numbers()?);
        let far = maker.number(bytes)?;
        let check = |found: &[u32], expected: Vec<u32>| {
            assert!(found.is_sorted_by(|x, y| x < y));
            assert!(found.iter().all(|&index| (index as usize) < n));
            assert!(
                !any_known || found == expected,
                "{found:?}, expected {expected:?}"
            );
        };
        match bytes.int_in_range(0..=11)? {
            0 | 1 => {
                let query = maker.any_box(bytes)?;
                check(
                    &self.engine.query_box(&query).expect("an answer"),
                    self.last.touching(&query),
                );
            }
            2 => {
                let point = Aabb::new(center, center);
                check(
                    &self.engine.query_point(center).expect("an answer"),
                    self.last.touching(&point),
                );
            }
            3 => check(
                &self.engine.query_sphere(center, far).expect("an answer"),
                self.last.within(center, far),
            ),
            4 => {
                let hits = self.engine.query_ray(center, dir, far).expect("an answer");
                assert!(hits.is_sorted_by(|x, y| (x.t, x.index) < (y.t, y.index)));
                let mut found: Vec<u32> = hits.iter().map(|hit| hit.index).collect();
                found.sort_unstable();
                check(&found, self.last.along(center, dir, far));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Checks that the pairs are sorted, each once, and that those of boxes whose bounds are known are
/// the expected ones.
fn compare(found: &[Pair], expected: &[Pair], open: &[bool]) {
    if !open.contains(&true) {
        assert_eq!(found, expected);
        return;
    }
    assert!(found.is_sorted_by(|x, y| x < y));
    assert!(
        found
            .iter()
            .all(|pair| pair.a < pair.b && (pair.b as usize) < open.len())
    );
    let known = |pair: &&Pair| !open[pair.a as usize] && !open[pair.b as usize];
    let known_of = |pairs: &[Pair]| -> Vec<Pair> { pairs.iter().filter(known).copied().collect() };
    assert_eq!(known_of(found), known_of(expected));
}
