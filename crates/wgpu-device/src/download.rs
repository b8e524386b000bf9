//! Read-back: copies that end while the host does other work.

use crate::{Device, Error, Result};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;
use wgpu::{Buffer, BufferUsages, CommandEncoder, MapMode, PollType, SubmissionIndex};

/// A copy of a part of a buffer on its way to the host.
///
/// ```
/// use wgpu_device::{Adapters, BufferUsages, Device};
///
/// # fn main() -> wgpu_device::Result<()> {
/// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
/// let buffer = device.upload("numbers", &[1_u32, 2, 3], BufferUsages::COPY_SRC)?;
/// let mut download = device.download(&buffer, 0..12)?;
/// // Once a frame: the copy has arrived, or will have some frames later.
/// let numbers: Vec<u32> = loop {
///     if let Some(numbers) = download.try_take()? {
///         break numbers;
///     }
/// };
/// assert_eq!(numbers, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Download {
    device: Device,
    staging: Buffer,
    /// The submission of the copy, and what receives whether it could be mapped. `None` if the
    /// copy is empty.
    mapped: Option<(SubmissionIndex, Receiver<bool>)>,
}

impl Device {
    /// Submits a copy of a range of bytes to the host, after all that was submitted before.
    ///
    /// # Errors
    ///
    /// [`Error::Range`] for a range outside of the buffer, or not of whole words; those of
    /// [`Device::checked`].
    pub fn download(&self, source: &Buffer, range: Range<u64>) -> Result<Download> {
        let encoder = self.encoder("download")?;
        self.submit_and_download(encoder, &[(source, range)])
    }

    /// Submits the commands of an encoder, then copies of ranges of bytes to the host. They arrive
    /// together, one after the other, so that the host waits once.
    ///
    /// ```
    /// use wgpu_device::{Adapters, BufferUsages, Device};
    ///
    /// # fn main() -> wgpu_device::Result<()> {
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let buffer = device.upload("numbers", &[1_u32, 2, 3], BufferUsages::COPY_SRC)?;
    /// let encoder = device.encoder("work")?; // launches come here
    /// let both = device.submit_and_download(encoder, &[(&buffer, 8..12), (&buffer, 0..4)])?;
    /// assert_eq!((both.wait::<u32>()?, device.waits()), (vec![3, 1], 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Device::download`]; nothing was submitted then, or the device was lost.
    pub fn submit_and_download(
        &self,
        mut encoder: CommandEncoder,
        parts: &[(&Buffer, Range<u64>)],
    ) -> Result<Download> {
        let mut bytes = 0;
        for (source, range) in parts {
            self.check_range(source, range)?;
            bytes += range.end - range.start;
        }
        let usage = BufferUsages::COPY_DST | BufferUsages::MAP_READ;
        let staging = self.buffer("staging", bytes, usage)?;
        let mut at = 0;
        for (source, range) in parts {
            let part = range.end - range.start;
            encoder.copy_buffer_to_buffer(source, range.start, &staging, at, part);
            at += part;
        }
        let submission = self.submit(encoder)?;
        let mut mapped = None;
        if bytes > 0 {
            self.count_download(bytes);
            let (done, receiver) = mpsc::channel();
            self.checked("map_async", || {
                staging.map_async(MapMode::Read, .., move |result| {
                    // The download may have been dropped.
                    let _ = done.send(result.is_ok());
                });
            })?;
            mapped = Some((submission, receiver));
        }
        Ok(Download {
            device: self.clone(),
            staging,
            mapped,
        })
    }

    fn check_range(&self, source: &Buffer, range: &Range<u64>) -> Result<()> {
        let aligned = range.start.is_multiple_of(4) && range.end.is_multiple_of(4);
        if aligned && range.start <= range.end && range.end <= source.size() {
            return Ok(());
        }
        Err(Error::Range {
            adapter: self.name().to_owned(),
            call: "download",
            start: range.start,
            end: range.end,
            size: source.size(),
        })
    }
}

/// The time after which a copy that was made, but not delivered, is asked for again.
const DELIVERY: Duration = Duration::from_millis(10);

impl Download {
    /// Returns the elements once they have arrived, without waiting, and `None` before.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] and [`Error::Failed`].
    pub fn try_take<T: Pod>(&mut self) -> Result<Option<Vec<T>>> {
        let Some((_, mapped)) = &self.mapped else {
            return Ok(Some(Vec::new()));
        };
        self.device.poll("poll", PollType::Poll)?;
        match mapped.try_recv() {
            Ok(true) => self.read().map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Ok(false) | Err(TryRecvError::Disconnected) => Err(self.unanswered()),
        }
    }

    /// Waits for the elements, and not for what was submitted after the copy.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] and [`Error::Failed`].
    pub fn wait<T: Pod>(self) -> Result<Vec<T>> {
        let Some((submission, mapped)) = &self.mapped else {
            return Ok(Vec::new());
        };
        self.device.count_wait();
        loop {
            let copied = PollType::Wait {
                submission_index: Some(submission.clone()),
                timeout: None,
            };
            self.device.poll("poll", copied)?;
            // Another thread that polls may be the one that delivers the answer, soon after.
            match mapped.recv_timeout(DELIVERY) {
                Ok(true) => return self.read(),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(false) | Err(RecvTimeoutError::Disconnected) => return Err(self.unanswered()),
            }
        }
    }

    fn read<T: Pod>(&self) -> Result<Vec<T>> {
        let bytes = self.staging.get_mapped_range(..).map_err(|error| {
            let reason = error.to_string();
            self.device.failed("get_mapped_range", reason)
        })?;
        Ok(bytemuck::allocation::pod_collect_to_vec(&bytes))
    }

    fn unanswered(&self) -> Error {
        let reason = "the copy did not arrive".to_owned();
        self.device.failed("map_async", reason)
    }
}
