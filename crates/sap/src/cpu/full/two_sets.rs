//! Finds the pairs between two sets of boxes.

use super::arrange::{ColumnLayout, Worlds, in_one_column, order_by_min};
use super::columns::{Columns, Span, area};
use super::plan::{Plan, plan};
use super::records::Records;
use super::split::max_copies;
use super::sweep::{Pass, Role, run};
use crate::cpu::accept::{Accept, WorldTest};
use crate::cpu::incremental::search::{Partners, Search};
use crate::cpu::incremental::tree::Tree;
use crate::cpu::output::collect::{Collector, Found, SpareBlocks};
use crate::cpu::scene::Scene;
use crate::{Config, OverlapRule, Result, Sorts, Strategy, packing, try_alloc};

/// Two sets in sweep order.
pub(in crate::cpu) struct TwoSets<'a> {
    first: &'a Scene,
    second: &'a Scene,
    rule: OverlapRule,
    records: [Records; 2],
}

impl<'a> TwoSets<'a> {
    /// Plans one sweep for both sets and sorts each of them. O(n log n).
    pub(in crate::cpu) fn new(
        config: &Config,
        first: &'a Scene,
        second: &'a Scene,
    ) -> Result<Self> {
        let both = try_alloc::concat(&[&first.boxes, &second.boxes])?;
        let mut ids = Vec::new();
        try_alloc::reserve(&mut ids, both.len())?;
        for scene in [first, second] {
            match &scene.worlds {
                Some(worlds) => ids.extend_from_slice(worlds),
                None => ids.resize(ids.len() + scene.boxes.len(), 0),
            }
        }
        // `Endpoints` works within one set only.
        let strategy = match config.strategy {
            Strategy::Endpoints => Strategy::Sweep,
            strategy => strategy,
        };
        let plan = plan(&both, Some(&ids), strategy);
        Ok(Self {
            first,
            second,
            rule: config.rule,
            records: records(config, [first, second], &plan)?,
        })
    }

    /// Finds the pairs. Beyond `limit` they are only counted.
    pub(in crate::cpu) fn find(&self, limit: u64, blocks: &SpareBlocks) -> Result<Found> {
        let accept = Accept::new(self.first, self.second, self.rule, WorldTest::ByColumns)?;
        let [first, second] = &self.records;
        let passes = [(first, second, Role::Forth), (second, first, Role::Back)];
        let passes = passes.map(|(from, into, role)| Pass {
            from,
            into,
            role,
            accept: &accept,
        });
        let boxes = self.first.boxes.len() + self.second.boxes.len();
        let collector = Collector::new(limit, blocks).bounded(boxes);
        let found = run(&passes, &collector);
        if collector.is_exceeded() {
            return by_tree(self.first, self.second, self.rule, limit, blocks);
        }
        Ok(found)
    }
}

/// Finds the pairs of two sets by a search in a tree of the second.
pub(super) fn by_tree(
    first: &Scene,
    second: &Scene,
    rule: OverlapRule,
    limit: u64,
    blocks: &SpareBlocks,
) -> Result<Found> {
    let (some, nonempty) = packing::order(first.for_packing())?;
    let search = Search {
        tree: &Tree::new(second, rule)?,
        scene: first,
        some: &some[..nonempty],
        partners: Partners::Others,
        accept: &Accept::new(first, second, rule, WorldTest::PerPair)?,
    };
    Ok(search.run(&Collector::new(limit, blocks)))
}

/// Sorts the boxes of both sets into sweep order, oversized ones included. Worlds have columns of
/// their own. The columns of the plan are used unless they take too many copies.
fn records(config: &Config, sets: [&Scene; 2], plan: &Plan) -> Result<[Records; 2]> {
    let ids = sets.map(|scene| scene.worlds.as_deref());
    let worlds = Worlds::new(ids)?;
    let layout = |columns| ColumnLayout {
        columns,
        worlds: &worlds,
        axis: plan.axis,
    };
    let spans = |columns| -> Result<[Vec<Span>; 2]> {
        let [first, second] = sets.map(|scene| layout(columns).spans(&scene.boxes));
        Ok([first?, second?])
    };
    let fits = |spans: &[Vec<Span>; 2]| {
        let boxes = spans[0].len() + spans[1].len();
        spans.iter().flatten().map(area).sum::<u64>() <= max_copies(boxes)
    };
    let one = Columns::default();
    let (columns, spans) = match spans(&plan.columns)? {
        spans if fits(&spans) && worlds.fit(&plan.columns) => (&plan.columns, spans),
        _ => (&one, spans(&one)?),
    };
    let is_one = columns.count() == 1 && ids == [None, None];
    let of_set = |set: usize| {
        let (boxes, sorts) = (&sets[set].boxes, &mut Sorts::default());
        let order = order_by_min(boxes, plan.axis, config, sorts)?;
        if is_one {
            return in_one_column(boxes, order, plan.axis, config);
        }
        layout(columns).records(boxes, ids[set], &spans[set], &order, config, sorts)
    };
    Ok([of_set(0)?, of_set(1)?])
}
