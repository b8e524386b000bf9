//! The sorter: sorts of buffers on the device.

use super::config::SorterConfig;
use super::modules::{Kernels, Modules};
use super::params::{Params, RADIX, State};
use super::request::Request;
use super::scratch::{self, Payload, Scratch};
use crate::{Algorithm, Error, Key, Result, SortOptions, SortReport};
use std::num::NonZeroU64;
use std::sync::Arc;
use wgpu_device::wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, ComputePass,
};
use wgpu_device::{BufferUsages, Device, Download, Kernel, Stages};

/// Sorts on one device of `wgpu`. A sorter is cheap to clone. Several threads may use it at once,
/// each sort with scratch memory of its own.
///
/// A sort takes time O(n · passes). It runs a pass for each 8 bits of the window in which keys
/// differ, and none if the keys are in order already. It is stable and gives the same bits on every
/// device.
///
/// ```
/// use gpusort::wgpu::{Payload, Request, Sorter, SorterConfig};
/// use gpusort::SortOptions;
/// use wgpu_device::{Adapters, BufferUsages, Device};
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
/// let sorter = Sorter::new(&device, SorterConfig::default())?;
/// let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
/// let keys = device.upload("keys", &[3.0_f32, -1.0, 2.0], usage)?;
/// let index = device.buffer("index", 12, usage)?;
/// let scratch = sorter.scratch::<f32>(3, Payload::Index)?;
///
/// // Other work may come before and after it in the same encoder: drawing, say.
/// let mut encoder = device.encoder("frame")?;
/// let request = Request::<f32>::index(3, &keys, &index);
/// sorter.encode(&mut encoder, request, &scratch, &SortOptions::new())?;
/// device.submit(encoder)?;
/// assert_eq!(device.download(&index, 0..12)?.wait::<u32>()?, [1, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Sorter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: Device,
    config: SorterConfig,
    modules: Modules,
}

impl Sorter {
    /// Makes a sorter. The first sort of a key width and payload compiles its kernels.
    ///
    /// # Errors
    ///
    /// [`Error::Wgpu`] if a workgroup of the device is too small.
    pub fn new(device: &Device, config: SorterConfig) -> Result<Self> {
        let modules = Modules::new(device, config)?;
        Ok(Self(Arc::new(Inner {
            modules,
            device: device.clone(),
            config,
        })))
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    pub(super) fn config(&self) -> SorterConfig {
        self.0.config
    }

    /// Returns whether kernels use subgroups.
    #[must_use]
    pub fn uses_subgroups(&self) -> bool {
        self.0.modules.use_subgroups()
    }

    /// Makes scratch memory for sorts of up to `n` keys of type `K`. It serves any other sort that
    /// needs no more, such as one of keys alone where it has memory for values.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`] for more keys than the device can bind; [`Error::Wgpu`] if it has no
    /// memory left.
    pub fn scratch<K: Key>(&self, n: u64, payload: Payload) -> Result<Scratch> {
        Scratch::new::<K>(self.device(), n, payload)
    }

    /// Adds the sort of a request to an encoder. It neither submits nor waits.
    ///
    /// After an error nothing was added. Sorts of one encoder or of several may use the same
    /// scratch memory one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::NotStorage`], [`Error::BitWindow`],
    /// [`Error::TooManyKeys`], [`Error::ScratchTooSmall`]; [`Error::Unsupported`] for another
    /// algorithm than `Auto`; [`Error::Wgpu`] for errors of the device.
    pub fn encode<K: Key>(
        &self,
        encoder: &mut CommandEncoder,
        request: Request<'_, K>,
        scratch: &Scratch,
        options: &SortOptions,
    ) -> Result<()> {
        let stages = &mut Stages::unmeasured();
        self.encode_stages(encoder, stages, &request, scratch, options)
    }

    /// Adds a sort whose stages are measured.
    pub(super) fn encode_stages<K: Key>(
        &self,
        encoder: &mut CommandEncoder,
        stages: &mut Stages,
        request: &Request<'_, K>,
        scratch: &Scratch,
        options: &SortOptions,
    ) -> Result<()> {
        if options.algorithm != Algorithm::Auto {
            return Err(Error::Unsupported {
                algorithm: options.algorithm,
                what: "the backend `wgpu`, whose one sort is `auto`",
            });
        }
        let window = options.window::<K>()?;
        let device = self.device();
        let n = scratch::checked_count(device, request.n, K::TYPE)?;
        request.check()?;
        scratch.check::<K>(n, request.payload())?;
        if n > 0 {
            let kernels = self.0.modules.get(device, K::TYPE, request.payload())?;
            let params = Params::new([n, scratch::tiles(n)], K::TYPE, options.order, &window);
            let sort = Sort::bind(device, &kernels, params, request, scratch)?;
            encoder.clear_buffer(&scratch.state, 0, None);
            sort.encode(encoder, stages);
        } else {
            encoder.clear_buffer(&scratch.state, 0, None);
        }
        Ok(())
    }

    /// Reports what the last submitted sort with this scratch memory did, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Wgpu`].
    pub fn report(&self, scratch: &Scratch) -> Result<SortReport> {
        self.download_report(scratch)?.wait()
    }

    /// Submits the copy of that report to the host, and does not wait for it.
    ///
    /// # Errors
    ///
    /// [`Error::Wgpu`].
    pub fn download_report(&self, scratch: &Scratch) -> Result<ReportDownload> {
        let bytes = 0..size_of::<State>() as u64;
        Ok(ReportDownload(
            self.device().download(&scratch.state, bytes)?,
        ))
    }
}

/// The report of a sort on its way to the host: [`Sorter::download_report`] returns it.
#[derive(Debug)]
pub struct ReportDownload(Download);

impl ReportDownload {
    /// Waits for the report.
    ///
    /// # Errors
    ///
    /// [`Error::Wgpu`].
    pub fn wait(self) -> Result<SortReport> {
        let state: Vec<State> = self.0.wait()?;
        let state = state.first().copied().unwrap_or_default();
        Ok(state.report(Vec::new()))
    }
}

/// A kernel with its resources, and the number of workgroups.
struct Step<'a>(&'a Kernel, BindGroup, u32);

impl Step<'_> {
    fn launch(&self, pass: &mut ComputePass<'_>) {
        self.0.launch(pass, &self.1, self.2);
    }
}

/// The start of a buffer, with its binding and its bytes.
type Bound<'b> = (u32, &'b Buffer, usize);

/// Returns a resource of so many bytes from an offset on.
fn part((at, buffer, bytes): Bound<'_>, offset: usize) -> (u32, BindingResource<'_>) {
    let binding = BufferBinding {
        buffer,
        offset: offset as u64,
        size: NonZeroU64::new(bytes as u64),
    };
    (at, BindingResource::Buffer(binding))
}

/// The launches of a sort.
struct Sort<'a> {
    inspect: [Step<'a>; 2],
    passes: Vec<[Step<'a>; 3]>,
    emit: Vec<Step<'a>>,
}

/// The distance between the parameters of two launches: the alignment that every device takes.
const PARAMS_STRIDE: usize = 256;

impl<'a> Sort<'a> {
    fn bind<K: Key>(
        device: &Device,
        kernels: &'a Kernels,
        params: Params,
        request: &Request<'_, K>,
        scratch: &Scratch,
    ) -> Result<Self> {
        let all: Vec<_> = std::iter::once(params).chain(params.passes()).collect();
        let mut bytes = vec![0_u8; PARAMS_STRIDE * all.len()];
        for (slot, params) in bytes.chunks_exact_mut(PARAMS_STRIDE).zip(&all) {
            slot[..size_of::<Params>()].copy_from_slice(bytemuck::bytes_of(params));
        }
        // A buffer of its own, since the commands run when the caller submits them.
        let uploaded = device.upload("parameters of a sort", &bytes, BufferUsages::UNIFORM)?;
        let step = |kernel: &'a Kernel, pass: usize, groups: u32, bound: &[Bound<'_>]| {
            let slot = (0, &uploaded, size_of::<Params>());
            let slot = part(slot, PARAMS_STRIDE * pass);
            let buffers = bound.iter().map(|&bound| part(bound, 0));
            let resources: Vec<_> = std::iter::once(slot).chain(buffers).collect();
            Ok::<_, Error>(Step(kernel, kernel.bind(device, &resources)?, groups))
        };
        let (n, tiles, workgroups) = (params.n as usize, params.tiles, params.workgroups);
        let (key_bytes, value_bytes) = (n * size_of::<K>(), n * size_of::<u32>());
        let state = (1, &scratch.state, size_of::<State>());
        let keys = (4, &scratch.keys, 2 * key_bytes);
        let table = (6, &scratch.table, scratch::table_bytes(params.n) as usize);
        let totals = (7, &scratch.totals, RADIX as usize * size_of::<u32>());
        let values_in = request.values_in.map(|buffer| (3, buffer, value_bytes));
        let payload = request.payload();
        let values = scratch.values.as_ref().filter(|_| payload != Payload::None);
        let values = values.map(|buffer| (5, buffer, 2 * value_bytes));

        let read = [state, (2, request.keys_in, key_bytes), keys];
        let read: Vec<_> = read.into_iter().chain(values_in).chain(values).collect();
        let inspect = [
            step(&kernels.inspect, 0, tiles, &read)?,
            step(&kernels.plan, 0, 1, &[state])?,
        ];
        let moved: Vec<_> = [state, keys, table, totals]
            .into_iter()
            .chain(values)
            .collect();
        let passes = (1..all.len()).map(|pass| {
            Ok([
                step(&kernels.count, pass, workgroups, &[state, keys, table])?,
                step(&kernels.scan, pass, RADIX, &[state, table, totals])?,
                step(&kernels.scatter, pass, workgroups, &moved)?,
            ])
        });
        let passes = passes.collect::<Result<_>>()?;
        let mut emit = Vec::new();
        if let Some(output) = request.keys_out {
            emit.push(step(
                &kernels.emit_keys,
                0,
                tiles,
                &[state, keys, (8, output, key_bytes)],
            )?);
        }
        if let (Some(kernel), Some(values), Some(output)) =
            (&kernels.emit_values, values, request.values_out)
        {
            emit.push(step(
                kernel,
                0,
                tiles,
                &[state, values, (9, output, value_bytes)],
            )?);
        }
        Ok(Self {
            inspect,
            passes,
            emit,
        })
    }

    fn encode(&self, encoder: &mut CommandEncoder, stages: &mut Stages) {
        let stage = &mut |name, steps: &[Step<'_>]| {
            let mut pass = stages.pass(encoder, name);
            steps.iter().for_each(|step| step.launch(&mut pass));
        };
        stage("inspect", &self.inspect);
        for pass in &self.passes {
            stage("pass", pass);
        }
        stage("emit", &self.emit);
    }
}
