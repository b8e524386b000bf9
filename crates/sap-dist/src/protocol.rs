//! The steps that all ranks take together, wherever their boxes lie: telling all about a frame,
//! cutting space, and agreeing on the end of an update.

use crate::config::Config;
use crate::error::{Result, WORDS, agree, fault};
use crate::frame::InvalidBoxes;
use crate::layout::{Bounds, Layout, Sample};
use crate::outline::{Header, Outline};
use crate::report::{RankReport, Report, Work};
use crate::tuning::{ALL_SAMPLES, MAX_SAMPLES, MIN_SAMPLES};
use crate::wire::Lists;
use crate::{Cause, Transport};
use sap::{Aabb, OnInvalid};

/// Returns the number of samples that a rank gives for new cuts.
fn samples_of_rank(ranks: usize) -> usize {
    (ALL_SAMPLES / ranks.max(1)).clamp(MIN_SAMPLES, MAX_SAMPLES)
}

/// Returns the indices of as many boxes of a frame, one of each of `count` equal parts; none where
/// a part has no box.
pub(crate) fn sampled(boxes: usize, count: usize) -> impl Iterator<Item = Option<usize>> {
    (0..count as u128).map(move |part| {
        let border = |part: u128| (part * boxes as u128 / count as u128) as usize;
        let (from, to) = (border(part), border(part + 1));
        // Not the same offset in every part: boxes may come in a regular order.
        let offset = (part as usize).wrapping_mul(0x9e37_79b9) % (to - from).max(1);
        (from < to).then_some(from + offset)
    })
}

/// Returns three words of each sample; invalid boxes are empty ones.
fn words_of(samples: &[Aabb]) -> Vec<[u64; 3]> {
    let valid = |b: &Aabb| if b.check().is_ok() { *b } else { Aabb::EMPTY };
    samples.iter().map(|b| bytemuck::cast(valid(b))).collect()
}

/// What a rank says of its frame.
pub(crate) struct Facts {
    pub(crate) boxes: usize,
    /// The first id if ids are consecutive.
    pub(crate) first_id: Option<u64>,
    pub(crate) lists: Lists,
    /// Whether the ids differ from those of the last update.
    pub(crate) other_ids: bool,
    /// The invalid boxes, or why the frame cannot be used at all.
    pub(crate) invalid: Result<InvalidBoxes, Cause>,
}

/// What is the same on all ranks, and kept between updates.
pub(crate) struct Protocol {
    pub(crate) config: Config,
    /// What must be the same on all ranks.
    word: u64,
    pub(crate) layout: Option<Layout>,
    pub(crate) updates: u64,
    pub(crate) report: Report,
}

impl Protocol {
    /// Makes the protocol of ranks whose boxes lie in the memory of the host.
    pub(crate) fn on_host(config: Config) -> Self {
        Self {
            word: config.word(),
            config,
            layout: None,
            updates: 0,
            report: Report::default(),
        }
    }

    /// Makes the protocol of ranks whose boxes lie on devices. No rank on the host agrees with it.
    #[cfg(cuda)]
    pub(crate) fn on_device(config: Config) -> Self {
        let word = config.word() | 1 << 3;
        Self {
            word,
            ..Self::on_host(config)
        }
    }

    /// Forgets the last update and the cuts.
    pub(crate) fn clear(&mut self) {
        self.layout = None;
        self.updates = 0;
        self.report = Report::default();
    }

    /// Tells all ranks about this one's frame, and checks what must hold for all frames.
    pub(crate) fn outline(&self, transport: &mut dyn Transport, facts: &Facts) -> Result<Outline> {
        let none = InvalidBoxes::default();
        let invalid = facts.invalid.as_ref().unwrap_or(&none);
        let header = Header {
            boxes: facts.boxes as u64,
            ids: facts.first_id.map_or([0; 2], |first| [first, 1]),
            lists: facts.lists,
            config: self.word,
            updates: self.updates,
            layout: self.layout.as_ref().map_or(0, Layout::fingerprint),
            other_ids: facts.other_ids,
            invalid: invalid.count,
        };
        let fault = match (&facts.invalid, self.config.on_invalid) {
            (Ok(invalid), OnInvalid::Error) => invalid.fault(),
            (state, _) => fault(state),
        };
        let rows = transport.all_gather(&header.words(fault, invalid.fault()))?;
        agree(&rows, Header::WIDTH, (transport.rank(), &facts.invalid))?;
        Outline::new(&rows)
    }

    /// Makes new cuts if there are none, if the work of the last update was not balanced, or if
    /// there are more than twice as many boxes. Returns the cuts, and whether they changed.
    ///
    /// All ranks decide the same, because all read the same. `sample` returns as many boxes of this
    /// rank as asked for, each of one of so many equal parts of the frame ([`sampled`]); empty
    /// where there is none.
    pub(crate) fn cut(
        &mut self,
        transport: &mut dyn Transport,
        outline: &Outline,
        sample: impl FnOnce(usize) -> Vec<Aabb>,
    ) -> Result<(Layout, bool)> {
        let ranks = transport.size();
        let same = |header: &Header| header.layout == outline.headers[0].layout;
        let all_same = outline.headers.iter().all(same);
        // Else an update failed midway, or was of another number of ranks.
        let fits = |layout: &Layout| all_same && layout.ranks() == ranks;
        self.layout = self.layout.take().filter(fits);
        let grown = outline.boxes > 2 * self.report.boxes;
        if let Some(last) = self.layout.clone()
            && !grown
            && !self.report.is_unbalanced()
        {
            return Ok((last, false));
        }
        let sample = sample(samples_of_rank(ranks));
        let gathered = transport.all_gather(bytemuck::cast_slice(&words_of(&sample)))?;
        let samples = self.weighed(&gathered, outline);
        let new = Layout::choose(&samples, ranks);
        // Boxes that change their home cost more than a slight gain.
        let gain = |last: &Layout| new.cost(&samples, ranks) * 20 < last.cost(&samples, ranks) * 19;
        match self.layout.clone() {
            Some(last) if !gain(&last) => Ok((last, false)),
            _ => {
                self.layout = Some(new.clone());
                Ok((new, true))
            }
        }
    }

    /// Returns the samples of all ranks with their weights: each stands for a part of the boxes of
    /// its rank, and for the work that boxes in its present cell took in the last update.
    fn weighed(&self, gathered: &[u64], outline: &Outline) -> Vec<Sample> {
        let width = gathered.len() / outline.headers.len().max(1);
        let of_rank = gathered.chunks_exact(width.max(1)).zip(&outline.headers);
        let samples = of_rank.enumerate().flat_map(|(rank, (words, header))| {
            let boxes = header.boxes.div_ceil((width / 3).max(1) as u64);
            words.as_chunks::<3>().0.iter().map(move |words| Sample {
                bounds: Bounds::of(&bytemuck::cast(*words)),
                boxes,
                work: boxes,
                rank,
            })
        });
        let mut samples: Vec<Sample> = samples.filter(|sample| !sample.bounds.is_empty()).collect();
        if let Some(layout) = &self.layout {
            let homes = self.report.ranks.iter().map(|rank| rank.homes);
            let of_ranks: Vec<(u64, u64)> = homes.zip(self.report.works()).collect();
            for sample in &mut samples {
                let of_rank = of_ranks.get(layout.home(&sample.bounds));
                let Some(&(homes, work)) = of_rank.filter(|(homes, _)| *homes > 0) else {
                    continue;
                };
                let work = u128::from(sample.boxes) * u128::from(work);
                sample.work = (work / u128::from(homes)) as u64;
            }
        }
        samples
    }

    /// Returns the rank that is the home of a box by the last cuts.
    pub(crate) fn home(&self, b: &Aabb) -> Option<usize> {
        let layout = self.layout.as_ref()?;
        let searched = b.check().is_ok() && !b.is_empty();
        searched.then(|| layout.home(&Bounds::of(b)))
    }

    /// Tells all ranks whether this one succeeded, and what it did. If all did, the update counts,
    /// and the report is that of all.
    pub(crate) fn conclude(
        &mut self,
        transport: &mut dyn Transport,
        outline: &Outline,
        cuts: (&Layout, bool),
        (state, work): (&Result<(), Cause>, &Work),
    ) -> Result<()> {
        let row = [&fault(state)[..], &work.words()].concat();
        let rows = transport.all_gather(&row)?;
        agree(&rows, WORDS + RankReport::WORDS, (transport.rank(), state))?;
        self.report = outline.report(&rows, cuts);
        self.updates += 1;
        Ok(())
    }
}
