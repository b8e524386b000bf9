//! The sorts of host slices: upload, sort, download.

use super::request::Request;
use super::scratch::Scratch;
use super::sorter::Sorter;
use crate::error::same_length;
use crate::{Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
use wgpu_device::wgpu::Buffer;
use wgpu_device::{BufferUsages, Stages};

/// The max number of stages of a sort: three in each of eight passes, what comes before and what
/// comes after.
const MAX_STAGES: u32 = 26;

impl Sorter {
    /// Sorts keys, and waits for the result.
    ///
    /// ```
    /// # use gpusort::{SortOptions, wgpu::{Sorter, SorterConfig}};
    /// # use wgpu_device::{Adapters, Device};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let mut keys = [2.0_f32, -0.0, f32::INFINITY, 0.0, -3.5];
    /// let report = sorter.sort_keys(&mut keys, &SortOptions::new())?;
    /// assert_eq!(keys, [-3.5, -0.0, 0.0, 2.0, f32::INFINITY]);
    /// assert_eq!((report.backend, report.early_exit), ("wgpu", false));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Sorter::encode`]; the keys are unchanged then.
    pub fn sort_keys<K: Key>(&self, keys: &mut [K], options: &SortOptions) -> Result<SortReport> {
        let buffer = self.uploaded("keys", keys)?;
        let request = Request::keys(keys.len() as u64, &buffer, &buffer);
        let (report, results) = self.run(&request, options)?;
        results.take_keys(keys);
        Ok(report)
    }

    /// Sorts keys, moves the value of each with it, and waits for the result.
    ///
    /// ```
    /// # use gpusort::{SortOptions, wgpu::{Sorter, SorterConfig}};
    /// # use wgpu_device::{Adapters, Device};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let (mut keys, mut values) = ([30_u64, 10, 20], [3, 1, 2]);
    /// sorter.sort_pairs(&mut keys, &mut values, &SortOptions::new())?;
    /// assert_eq!((keys, values), ([10, 20, 30], [1, 2, 3]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Sorter::encode`]; keys and values are unchanged then.
    pub fn sort_pairs<K: Key>(
        &self,
        keys: &mut [K],
        values: &mut [u32],
        options: &SortOptions,
    ) -> Result<SortReport> {
        same_length(keys.len(), values.len())?;
        let key = self.uploaded("keys", keys)?;
        let value = self.uploaded("values", values)?;
        let request = Request::keys(keys.len() as u64, &key, &key).values(&value, &value);
        let (report, results) = self.run(&request, options)?;
        results.take_keys(keys);
        results.take_values(values);
        Ok(report)
    }

    /// Writes the stable order of `keys` to `index` (argsort), and waits for it: the sorted keys
    /// are `keys[index[0]]`, `keys[index[1]]`, and so on.
    ///
    /// ```
    /// # use gpusort::{SortOptions, wgpu::{Sorter, SorterConfig}};
    /// # use wgpu_device::{Adapters, Device};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let mut index = [0; 3];
    /// sorter.sort_index(&[0.5_f64, -1.0, 0.5], &mut index, &SortOptions::new())?;
    /// assert_eq!(index, [1, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Sorter::encode`]; `index` is unchanged then.
    pub fn sort_index<K: Key>(
        &self,
        keys: &[K],
        index: &mut [u32],
        options: &SortOptions,
    ) -> Result<SortReport> {
        same_length(keys.len(), index.len())?;
        let key = self.uploaded("keys", keys)?;
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        let device = self.device();
        let order = device.buffer("index", 4 * index.len() as u64, usage)?;
        let request = Request::<K>::index(keys.len() as u64, &key, &order);
        let (report, results) = self.run(&request, options)?;
        results.take_values(index);
        Ok(report)
    }

    fn uploaded<T: Pod>(&self, what: &'static str, elements: &[T]) -> Result<Buffer> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        Ok(self.device().upload(what, elements, usage)?)
    }

    /// Sorts, and downloads the outputs and the outcome together.
    fn run<K: Key>(
        &self,
        request: &Request<'_, K>,
        options: &SortOptions,
    ) -> Result<(SortReport, Results<K>)> {
        let device = self.device();
        let scratch = self.scratch::<K>(request.n, request.payload())?;
        let mut stages = if self.config().timings {
            Stages::new(device, MAX_STAGES)?
        } else {
            Stages::unmeasured()
        };
        let mut encoder = device.encoder("sort")?;
        self.encode_stages(&mut encoder, &mut stages, request, &scratch, options)?;
        let times = stages.submit(device, encoder)?;
        let fetch = |buffer: Option<&Buffer>, bytes: u64| {
            let fetched = buffer.map(|buffer| device.download(buffer, 0..bytes * request.n));
            fetched.transpose()
        };
        let keys = fetch(request.keys_out, size_of::<K>() as u64)?;
        let values = fetch(request.values_out, size_of::<u32>() as u64)?;
        let (state, bytes) = scratch.outcome();
        let state: Vec<u8> = device.download(state, bytes)?.wait()?;
        let stages = times.wait()?;
        let report = SortReport {
            total_ms: stages.iter().map(|stage| stage.1).sum(),
            stages,
            ..Scratch::report(&state)
        };
        let results = Results {
            keys: keys
                .map(|keys| keys.wait())
                .transpose()?
                .unwrap_or_default(),
            values: values
                .map(|values| values.wait())
                .transpose()?
                .unwrap_or_default(),
        };
        Ok((report, results))
    }
}

/// The outputs of a sort on the host.
struct Results<K> {
    keys: Vec<K>,
    values: Vec<u32>,
}

impl<K: Key> Results<K> {
    fn take_keys(&self, keys: &mut [K]) {
        keys.copy_from_slice(&self.keys);
    }

    fn take_values(&self, values: &mut [u32]) {
        values.copy_from_slice(&self.values);
    }
}
