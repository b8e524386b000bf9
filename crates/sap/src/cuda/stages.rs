//! The times of an update's stages, by the names of the fields of [`Timings`].

use crate::{Result, Timings};
use gpu::{Stages, Stream};

/// The marks between an update's stages.
pub(crate) struct Marks {
    stages: Stages,
    is_on: bool,
}

impl Marks {
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            stages: Stages::new(),
            is_on,
        }
    }

    /// Begins a stage. It lasts until the next mark.
    pub(crate) fn mark(&mut self, stream: &Stream, stage: &'static str) -> Result<()> {
        if self.is_on {
            self.stages.mark(stream, stage)?;
        }
        Ok(())
    }

    /// Ends a stage, before the device waits for the host.
    pub(crate) fn pause(&mut self, stream: &Stream) -> Result<()> {
        if self.is_on {
            self.stages.pause(stream)?;
        }
        Ok(())
    }

    /// Returns the milliseconds of each stage since the last call. Waits for the work so far,
    /// unless `is_done`.
    pub(crate) fn timings(&mut self, stream: &Stream, is_done: bool) -> Result<Timings> {
        if !self.is_on && !is_done {
            stream.synchronize()?;
        }
        Ok(timings(&self.stages.finish(stream)?))
    }
}

fn timings(stages: &[(&'static str, f32)]) -> Timings {
    let of = |name| {
        f64::from(
            stages
                .iter()
                .filter(|(stage, _)| *stage == name)
                .map(|(_, ms)| ms)
                .sum::<f32>(),
        )
    };
    Timings {
        upload: of("upload"),
        bounds: of("bounds"),
        keys: of("keys"),
        sort: of("sort"),
        sweep: of("sweep"),
        order: of("order"),
        events: of("events"),
        download: of("download"),
        total: stages.iter().map(|(_, ms)| f64::from(*ms)).sum(),
    }
}
