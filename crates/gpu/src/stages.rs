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
    // None where no stage follows an event.
    names: Vec<Option<&'static str>>,
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
        self.names.push(Some(name));
        Ok(())
    }

    /// Ends the current stage. What follows belongs to no stage until the next mark: a wait of the
    /// host, for example. Where no mark follows, [`Stages::finish`] waits for no later work.
    ///
    /// # Errors
    ///
    /// As [`Stages::mark`].
    pub fn pause(&mut self, stream: &Stream) -> Result<()> {
        self.record(stream)?;
        self.names.push(None);
        Ok(())
    }

    /// Ends the last stage, waits for it, and returns each stage with its milliseconds, in the
    /// order of the marks. The list is empty afterwards, even if this call fails.
    ///
    /// # Errors
    ///
    /// As [`Stages::mark`]; the errors of the work waited for.
    pub fn finish(&mut self, stream: &Stream) -> Result<Vec<(&'static str, f32)>> {
        let is_open = self.names.last().is_some_and(Option::is_some);
        let ended = if is_open { self.record(stream) } else { Ok(()) };
        let names = std::mem::take(&mut self.names);
        ended?;
        let recorded = &self.events[..names.len() + usize::from(is_open)];
        let Some(last) = recorded.last() else {
            return Ok(Vec::new());
        };
        last.synchronize()?;
        names
            .into_iter()
            .zip(recorded.windows(2))
            .filter_map(|(name, pair)| Some((name?, pair)))
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
