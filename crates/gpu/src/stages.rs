//! Times of the parts of a stream's work.

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
    // At least one for each name; kept from run to run, as making events takes longer than
    // recording them.
    events: Vec<Event>,
}

impl Stages {
    /// Without stages.
    pub fn new() -> Stages {
        Stages::default()
    }

    /// The stage before ends here and stage `name` begins.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`](crate::Error::Capturing): replayed work has no times of its own; the
    /// driver's errors. The stage is then not begun.
    pub fn mark(&mut self, stream: &Stream, name: &'static str) -> Result<()> {
        self.record(stream)?;
        self.names.push(name);
        Ok(())
    }

    /// Ends the last stage, waits for it, and returns each stage with its milliseconds, in the
    /// order of their marks. The next [`Stages::mark`] begins anew, whether this call succeeds
    /// or not.
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
        // Events of another device, from an earlier run, are of no use on this one.
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
