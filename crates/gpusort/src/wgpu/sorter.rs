//! The sorter: sorts of buffers on the device.

use super::config::SorterConfig;
use super::modules::{Kernels, Modules};
use super::params::{Params, RADIX, State, Target};
use super::request::Request;
use super::scratch::{self, Payload, Scratch};
use crate::{Algorithm, Error, Key, Result, SortOptions, SortReport};
use radsweep_kernels::wgsl::RADIX_FEW;
use std::num::NonZeroU64;
use std::sync::Arc;
use wgpu_device::wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, ComputePass,
};
use wgpu_device::{BufferUsages, Device, Download, Kernel, PARAMS_STRIDE, Stages};

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

    /// Tells whether kernels use subgroups.
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
        let sort = self.prepare(request, scratch, options)?;
        sort.begin(encoder);
        sort.measure(encoder, stages);
        Ok(())
    }

    /// Prepares the sort of a request, for callers who repeat it or have launches of their own in
    /// the same pass: [`PreparedSort`].
    ///
    /// # Errors
    ///
    /// Those of [`Sorter::encode`].
    pub fn prepare<K: Key>(
        &self,
        request: &Request<'_, K>,
        scratch: &Scratch,
        options: &SortOptions,
    ) -> Result<PreparedSort> {
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
        if n == 0 {
            return Ok(PreparedSort {
                params: None,
                state: scratch.state.clone(),
                steps: Vec::new(),
            });
        }
        let targets = [request.keys_out, request.values_out].map(|output| request.target(output));
        let is_plain = Params::are_plain(K::TYPE, options.order);
        let module = (self.0.modules).module(n, K::TYPE, request.payload(), is_plain);
        let size = [n, scratch::tiles(n, module.items())];
        let count_at = request.counted.map_or(0, |(_, offset)| offset / 4);
        let order = options.order;
        let params = Params::new(size, K::TYPE, order, &window, targets, count_at as u32);
        let kernels = self.0.modules.get(device, module)?;
        PreparedSort::bind(device, &kernels, params, request, scratch)
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
        let (state, bytes) = scratch.outcome();
        Ok(ReportDownload(self.device().download(state, bytes)?))
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
        Ok(Scratch::report(&self.0.wait::<u8>()?))
    }
}

/// A part of a buffer: its binding, where it begins, and its bytes.
type Bound<'b> = (u32, &'b Buffer, usize, usize);

/// Returns a part of a buffer as a resource.
fn part((at, buffer, offset, bytes): Bound<'_>) -> (u32, BindingResource<'_>) {
    let binding = BufferBinding {
        buffer,
        offset: offset as u64,
        size: NonZeroU64::new(bytes as u64),
    };
    (at, BindingResource::Buffer(binding))
}

/// The lists that the kernels of a sort bind.
struct Lists<'b> {
    state: Bound<'b>,
    table: Bound<'b>,
    keys_in: Bound<'b>,
    keys: Bound<'b>,
    /// Unused memory where no keys are wanted.
    keys_out: Bound<'b>,
    values_in: Option<Bound<'b>>,
    /// The values in scratch memory, and the output.
    values: Option<[Bound<'b>; 2]>,
    /// Where the last pass writes keys, and values.
    targets: [Target; 2],
    unused: &'b Buffer,
}

impl<'b> Lists<'b> {
    fn new<K: Key>(params: &Params, request: &Request<'b, K>, scratch: &'b Scratch) -> Self {
        let n = params.capacity as usize;
        let (key_bytes, value_bytes) = (n * size_of::<K>(), n * size_of::<u32>());
        let unused = &scratch.unused;
        let output = |at, buffer: Option<&'b Buffer>, bytes| match buffer {
            Some(buffer) => (at, buffer, 0, bytes),
            None => nothing(at, unused),
        };
        let values = scratch.values.as_ref();
        let values = values.filter(|_| request.payload() != Payload::None);
        Self {
            state: (1, &scratch.state, 0, size_of::<State>()),
            table: (
                6,
                &scratch.table,
                0,
                scratch::table_bytes(params.capacity) as usize,
            ),
            keys_in: (2, request.keys_in, 0, key_bytes),
            keys: (4, &scratch.keys, 0, 2 * key_bytes),
            keys_out: output(8, request.keys_out, key_bytes),
            values_in: request.values_in.map(|buffer| (3, buffer, 0, value_bytes)),
            values: values.map(|buffer| {
                let output = output(9, request.values_out, value_bytes);
                [(5, buffer, 0, 2 * value_bytes), output]
            }),
            targets: [request.keys_out, request.values_out].map(|out| request.target(out)),
            unused,
        }
    }

    /// Returns what `scatter` binds, which writes no output that is also an input.
    fn moved(&self) -> Vec<Bound<'b>> {
        let [keys_to, values_to] = self.targets;
        let written = |list: Bound<'b>, to| match to {
            Target::Output => list,
            _ => nothing(list.0, self.unused),
        };
        let mut all = vec![self.state, self.keys_in, self.keys, self.table];
        all.push(written(self.keys_out, keys_to));
        all.extend(self.values_in);
        if let Some([values, output]) = self.values {
            all.extend([values, written(output, values_to)]);
        }
        all
    }
}

/// Returns a part of unused memory for a binding, another one for each.
fn nothing(at: u32, unused: &Buffer) -> Bound<'_> {
    (at, unused, 256 * (at as usize & 1), 256)
}

/// A kernel with its resources, and the number of workgroups.
#[derive(Debug, Clone)]
struct Step {
    stage: &'static str,
    kernel: Kernel,
    bound: BindGroup,
    groups: u32,
}

/// The launches of a sort: [`Sorter::prepare`] returns it. They may run any number of times, one
/// after the other, as long as its buffers are wanted.
///
/// ```
/// use gpusort::wgpu::{Payload, Request, Sorter, SorterConfig};
/// use gpusort::SortOptions;
/// use wgpu_device::{Adapters, BufferUsages, Device, wgpu::ComputePassDescriptor};
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
/// let sorter = Sorter::new(&device, SorterConfig::default())?;
/// let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
/// let keys = device.upload("keys", &[3_u32, 1, 2], usage)?;
/// let scratch = sorter.scratch::<u32>(3, Payload::None)?;
/// let request = Request::<u32>::keys(3, &keys, &keys);
/// let sort = sorter.prepare(&request, &scratch, &SortOptions::new())?;
///
/// let mut encoder = device.encoder("frame")?;
/// sort.begin(&mut encoder);
/// let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
/// sort.launch(&mut pass); // other launches may come before and after
/// drop(pass);
/// device.submit(encoder)?;
/// assert_eq!(device.download(&keys, 0..12)?.wait::<u32>()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PreparedSort {
    /// The parameters of all passes, and where the state is that the sort begins with; `None` for
    /// no key.
    params: Option<(Buffer, u64)>,
    state: Buffer,
    steps: Vec<Step>,
}

impl PreparedSort {
    /// Resets the state of the sort. That comes before the pass of [`PreparedSort::launch`].
    pub fn begin(&self, encoder: &mut CommandEncoder) {
        match &self.params {
            Some((params, offset)) => {
                let bytes = Scratch::OUTCOME_BYTES;
                encoder.copy_buffer_to_buffer(params, *offset, &self.state, 0, bytes);
            }
            None => encoder.clear_buffer(&self.state, 0, None),
        }
    }

    /// Adds the launches to a pass.
    pub fn launch(&self, pass: &mut ComputePass<'_>) {
        for step in &self.steps {
            step.kernel.launch(pass, &step.bound, step.groups);
        }
    }

    /// Adds the launches, in a pass for each stage if these are measured.
    #[doc(hidden)]
    pub fn measure(&self, encoder: &mut CommandEncoder, stages: &mut Stages) {
        if !stages.are_measured() {
            return self.launch(&mut stages.pass(encoder, "sort"));
        }
        for steps in self.steps.chunk_by(|a, b| a.stage == b.stage) {
            let mut pass = stages.pass(encoder, steps[0].stage);
            for step in steps {
                step.kernel.launch(&mut pass, &step.bound, step.groups);
            }
        }
    }

    fn bind<K: Key>(
        device: &Device,
        kernels: &Kernels,
        params: Params,
        request: &Request<'_, K>,
        scratch: &Scratch,
    ) -> Result<Self> {
        let all: Vec<_> = params.passes().collect();
        let state_at = PARAMS_STRIDE * all.len();
        let mut bytes = vec![0_u8; state_at + size_of::<State>()];
        for (slot, params) in bytes.chunks_exact_mut(PARAMS_STRIDE).zip(&all) {
            slot[..size_of::<Params>()].copy_from_slice(bytemuck::bytes_of(params));
        }
        bytes[state_at..].copy_from_slice(bytemuck::bytes_of(&params.state(params.capacity)));
        let usage = BufferUsages::UNIFORM | BufferUsages::COPY_SRC;
        let uploaded = device.upload("parameters of a sort", &bytes, usage)?;
        let lists = Lists::new(&params, request, scratch);
        let mut steps = Vec::new();
        let mut step = |stage, kernel: &Kernel, pass: usize, groups, bound: &[Bound<'_>]| {
            let slot = (0, &uploaded, PARAMS_STRIDE * pass, size_of::<Params>());
            let all = std::iter::once(&slot).chain(bound);
            let resources: Vec<_> = all.map(|&bound| part(bound)).collect();
            steps.push(Step {
                stage,
                kernel: kernel.clone(),
                bound: kernel.bind(device, &resources)?,
                groups,
            });
            Ok::<_, Error>(())
        };
        let (groups, is_few) = (params.workgroups, params.workgroups <= RADIX_FEW);
        let Lists {
            state,
            keys_in,
            keys,
            table,
            ..
        } = lists;
        match request.counted {
            Some((count, _)) => {
                let count = (7, count, 0, count.size() as usize);
                let read = [state, keys_in, table, count];
                step("inspect", &kernels.inspect_counted, 0, groups, &read)?;
            }
            None => step(
                "inspect",
                &kernels.inspect,
                0,
                groups,
                &[state, keys_in, table],
            )?,
        }
        let moved = lists.moved();
        for pass in 0..all.len() {
            if pass > 0 && !is_few {
                let read = [state, keys_in, keys, table];
                step("count", &kernels.count, pass, groups, &read)?;
            }
            if !is_few {
                step("scan", &kernels.scan, pass, RADIX, &[state, table])?;
            }
            step("scatter", &kernels.scatter, pass, groups, &moved)?;
        }
        if lists.targets[0] == Target::Scratch {
            let copied = [state, keys, lists.keys_out];
            step("emit", &kernels.emit_keys, 0, groups, &copied)?;
        }
        if let (Some(kernel), Some([values, output]), Target::Scratch) =
            (&kernels.emit_values, lists.values, lists.targets[1])
        {
            step("emit", kernel, 0, groups, &[state, values, output])?;
        }
        Ok(Self {
            params: Some((uploaded, state_at as u64)),
            state: scratch.state.clone(),
            steps,
        })
    }
}
