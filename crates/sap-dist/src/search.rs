//! The search of a rank in its cell.

use crate::error::{copy, reserve};
use crate::layout::Bounds;
use crate::report::Tested;
use crate::wire::{Cell, Lists, Name, Set};
use crate::{Cause, Pair};
use bytemuck::bytes_of;
use sap::BroadPhase;

/// Finds the pairs that a cell reports, with an engine that keeps its memory between frames.
pub(crate) struct Search {
    engine: BroadPhase,
}

/// The pairs of a cell, as a message to each rank that brought their box `a`.
pub(crate) struct Found {
    pub(crate) messages: Vec<Vec<u8>>,
    /// The tests of the engine among the homes, and the pairs of homes and copies.
    pub(crate) tested: Tested,
}

/// A list of pairs of the engine with the boxes that they name.
struct Part<'a> {
    pairs: &'a [sap::Pair],
    sets: [&'a [Name]; 2],
}

impl Part<'_> {
    /// Returns the pairs by id, each with the rank that brought the box of the smaller one.
    fn named(&self) -> impl Iterator<Item = Result<(usize, Pair), Cause>> + '_ {
        self.pairs.iter().map(|pair| {
            let (i, j) = (self.sets[0][pair.a as usize], self.sets[1][pair.b as usize]);
            let (a, b) = if i.id < j.id { (i, j) } else { (j, i) };
            if a.id == b.id {
                return Err(Cause::DuplicateId { id: a.id });
            }
            Ok((a.origin as usize, Pair { a: a.id, b: b.id }))
        })
    }
}

impl Search {
    pub(crate) fn new(config: sap::Config) -> Result<Self, Cause> {
        let engine = BroadPhase::new(config)?;
        Ok(Self { engine })
    }

    pub(crate) fn clear(&mut self) {
        self.engine.clear();
    }

    /// Finds the pairs of home with home, of home with copy, and of copies that have their `min` in
    /// the cell on one axis each.
    pub(crate) fn run(&mut self, cell: Cell, lists: Lists, ranks: usize) -> Result<Found, Cause> {
        let Cell {
            home,
            first,
            second,
            neither,
        } = cell;
        let tests = self.engine.update(home.frame(lists))?.stats.tests;
        let mut tested = Tested::of(&self.engine, tests);
        let across = self.between(&first, &second, lists)?;
        let across = (across, [copy(&first.names)?, copy(&second.names)?]);
        let mut copies = first;
        copies.reserve(second.len() + neither.len(), lists)?;
        copies.append(second);
        copies.append(neither);
        let near = home.meeting(&bounds(&copies), lists)?;
        let border = self.between(&near, &copies, lists)?;
        let parts = [
            Part {
                pairs: self.engine.pairs(),
                sets: [&home.names, &home.names],
            },
            Part {
                pairs: &border,
                sets: [&near.names, &copies.names],
            },
            Part {
                pairs: &across.0,
                sets: across.1.each_ref().map(Vec::as_slice),
            },
        ];
        tested.tests += (border.len() + across.0.len()) as u64;
        Ok(Found {
            messages: messages(&parts, ranks)?,
            tested,
        })
    }

    fn between(&mut self, a: &Set, b: &Set, lists: Lists) -> Result<Vec<sap::Pair>, Cause> {
        if a.len() == 0 || b.len() == 0 {
            return Ok(Vec::new());
        }
        let pairs = self
            .engine
            .overlaps_between(a.frame(lists), b.frame(lists))?;
        Ok(pairs)
    }
}

/// Returns the bounds of all boxes of a set.
fn bounds(set: &Set) -> Bounds {
    let mut all = Bounds::EMPTY;
    for b in &set.boxes {
        all.merge(&Bounds::of(b));
    }
    all
}

fn messages(parts: &[Part], ranks: usize) -> Result<Vec<Vec<u8>>, Cause> {
    let named = || parts.iter().flat_map(Part::named);
    let mut counts = vec![0_usize; ranks];
    for pair in named() {
        counts[pair?.0] += 1;
    }
    let mut messages = vec![Vec::new(); ranks];
    for (message, count) in messages.iter_mut().zip(counts) {
        reserve(message, count * size_of::<Pair>())?;
    }
    for pair in named() {
        let (owner, pair) = pair?;
        messages[owner].extend_from_slice(bytes_of(&pair));
    }
    Ok(messages)
}
