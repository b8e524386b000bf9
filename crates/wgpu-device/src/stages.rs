//! The times of the stages of some work, measured by the device.

use crate::{Device, Download, Result};
use wgpu::{
    BufferUsages, CommandEncoder, ComputePass, ComputePassDescriptor, ComputePassTimestampWrites,
    QuerySet, QuerySetDescriptor, QueryType,
};

/// Makes the compute passes of some work, and has the device measure each if it can.
#[derive(Debug)]
pub struct Stages {
    /// `None` on devices without timestamps.
    queries: Option<QuerySet>,
    names: Vec<&'static str>,
    capacity: u32,
}

/// The times of [`Stages`] on their way to the host.
#[derive(Debug)]
pub struct StageTimes {
    names: Vec<&'static str>,
    ms_a_tick: f64,
    ticks: Option<Download>,
}

impl Stages {
    /// Prepares to measure up to `capacity` stages.
    ///
    /// # Errors
    ///
    /// Those of [`Device::checked`].
    pub fn new(device: &Device, capacity: u32) -> Result<Self> {
        let descriptor = QuerySetDescriptor {
            label: Some("stages"),
            ty: QueryType::Timestamp,
            count: 2 * capacity,
        };
        let make = || device.wgpu().create_query_set(&descriptor);
        let queries = if device.has_timestamps() && capacity > 0 {
            Some(device.checked("create_query_set", make)?)
        } else {
            None
        };
        Ok(Self {
            queries,
            names: Vec::new(),
            capacity,
        })
    }

    /// Measures nothing.
    #[must_use]
    pub fn unmeasured() -> Self {
        Self {
            queries: None,
            names: Vec::new(),
            capacity: 0,
        }
    }

    /// Tells whether the device measures the stages.
    #[must_use]
    pub fn are_measured(&self) -> bool {
        self.queries.is_some()
    }

    /// Begins a compute pass. Stages beyond the capacity are not measured.
    pub fn pass<'e>(
        &mut self,
        encoder: &'e mut CommandEncoder,
        name: &'static str,
    ) -> ComputePass<'e> {
        let at = 2 * self.names.len() as u32;
        let queries = self.queries.as_ref().filter(|_| at < 2 * self.capacity);
        if queries.is_some() {
            self.names.push(name);
        }
        encoder.begin_compute_pass(&ComputePassDescriptor {
            label: Some(name),
            timestamp_writes: queries.map(|query_set| ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(at),
                end_of_pass_write_index: Some(at + 1),
            }),
        })
    }

    /// Submits the work and fetches its times.
    ///
    /// # Errors
    ///
    /// Those of [`Device::checked`].
    pub fn submit(self, device: &Device, mut encoder: CommandEncoder) -> Result<StageTimes> {
        let bytes = 16 * self.names.len() as u64;
        let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
        let mut ticks = None;
        if let Some(queries) = self.queries.filter(|_| bytes > 0) {
            let resolved = device.buffer("timestamps", bytes, usage)?;
            let count = 2 * self.names.len() as u32;
            encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
            device.submit(encoder)?;
            ticks = Some(device.download(&resolved, 0..bytes)?);
        } else {
            device.submit(encoder)?;
        }
        Ok(StageTimes {
            names: self.names,
            ms_a_tick: f64::from(device.queue().get_timestamp_period()) / 1e6,
            ticks,
        })
    }
}

impl StageTimes {
    /// Waits for the name and the milliseconds of each stage; none if they were not measured.
    ///
    /// # Errors
    ///
    /// Those of [`Download::wait`].
    pub fn wait(self) -> Result<Vec<(&'static str, f64)>> {
        let spans = self.spans()?.into_iter();
        Ok(spans
            .map(|(name, [begin, end])| (name, end - begin))
            .collect())
    }

    /// Waits for the name of each stage, and for its begin and end in milliseconds since the first
    /// began; none if they were not measured.
    ///
    /// # Errors
    ///
    /// Those of [`Download::wait`].
    pub fn spans(self) -> Result<Vec<(&'static str, [f64; 2])>> {
        let Some(ticks) = self.ticks else {
            return Ok(Vec::new());
        };
        let ticks: Vec<[u64; 2]> = ticks.wait()?;
        let first = ticks.first().map_or(0, |[begin, _]| *begin);
        let ms = |tick: u64| tick.saturating_sub(first) as f64 * self.ms_a_tick;
        let spans = ticks
            .iter()
            .map(|&[begin, end]| [ms(begin), ms(end.max(begin))]);
        Ok(self.names.into_iter().zip(spans).collect())
    }
}
