//! Stage times of a stream's work.

use crate::{Event, Result, Stream};

/// Times named stages of work on a stream, on the device's clock.
///
/// ```
/// # fn step(stream: &gpu::Stream, stages: &mut gpu::Stages) -> gpu::Result<()> {
/// stages.mark(stream, "sort")?;
/// // … the sort's work …
/// stages.mark(stream, "sweep")?;
/// // … the sweep's work …
/// for (stage, ms) in stages.finish(stream)? {
///     println!("{stage}: {ms} ms");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Stages {
    names: Vec<&'static str>,
    // At least one event for each name. They are kept from run to run, because making events takes
    // longer than recording them.
    events: Vec<Event>,
}

impl Stages {
    /// Makes an empty list of stages.
    pub fn new() -> Stages {
        Stages::default()
    }

    /// Ends the current stage and begins stage `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`](crate::Error::Capturing), because replayed work has no times of its
    /// own; the driver's errors. No stage begins then.
    pub fn mark(&mut self, stream: &Stream, name: &'static str) -> Result<()> {
        self.record(stream)?;
        self.names.push(name);
        Ok(())
    }

    /// Ends the last stage, waits for it, and returns each stage with its milliseconds, in the
    /// order of the marks. The list is empty afterwards, even if this call fails.
    ///
    /// # Errors
    ///
    /// As [`Stages::mark`]; the errors of the work waited for.
    pub fn finish(&mut self, stream: &Stream) -> Result<Vec<(&'static str, f32)>> {
        let recorded = if self.names.is_empty() {
            Ok(())
        } else {
            self.record(stream)
        };
        let names = std::mem::take(&mut self.names);
        recorded?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.events[names.len()].synchronize()?;
        let pairs = self.events.windows(2);
        names
            .into_iter()
            .zip(pairs)
            .map(|(name, pair)| Ok((name, pair[0].elapsed_ms(&pair[1])?)))
            .collect()
    }

    fn record(&mut self, stream: &Stream) -> Result<()> {
        stream.refuse_capture("taking times")?;
        let at = self.names.len();
        // Events of an earlier run on another device are of no use on this one.
        self.events.truncate(
            self.events
                .iter()
                .take_while(|event| event.device().same(stream.device()))
                .count()
                .max(at),
        );
        match self.events.get(at) {
            Some(event) => stream.record_into(event),
            None => {
                self.events.push(stream.record()?);
                Ok(())
            }
        }
    }
}
