//! Kernel images that are loaded on a device, and the kernels in them.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use core::{fmt, ptr};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cust::sys::{CUfunction_attribute as Attribute, CUjit_option as Jit};

use crate::driver::{self, CUfunction, CUmodule};
use crate::error::{INVALID_PTX, NO_BINARY_FOR_GPU, NOT_FOUND, UNSUPPORTED_PTX_VERSION};
use crate::{Device, Error, Result, capture, image};

/// A loaded kernel image, made by [`Device::load`]. Clones are handles of the same module, and so
/// is the result of loading the same image again. Dropping the last handle of the module and its
/// kernels unloads it.
#[derive(Clone)]
pub struct Module {
    inner: Arc<ModuleInner>,
    /// Whether its kernels wait for the stream themselves.
    begins_early: bool,
}

/// The loaded modules of a device, shared by all callers that load the same image.
#[derive(Default)]
struct Loaded(Vec<Weak<ModuleInner>>);

/// The loaded modules by the ordinal of their device, which stays open as long as one lives.
static LOADED: Mutex<BTreeMap<usize, Arc<Mutex<Loaded>>>> = Mutex::new(BTreeMap::new());

impl Loaded {
    fn on(device: &Device) -> Arc<Mutex<Loaded>> {
        let mut devices = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(devices.entry(device.info().ordinal).or_default())
    }

    fn find(&mut self, name: &str, image: &[u64]) -> Option<Arc<ModuleInner>> {
        self.0.retain(|module| module.strong_count() > 0);
        let mut live = self.0.iter().filter_map(Weak::upgrade);
        live.find(|module| module.name == name && module.image == image)
    }
}

struct ModuleInner {
    device: Device,
    handle: CUmodule,
    name: String,
    image: Vec<u64>,
}
// SAFETY: the driver lets any thread use a module.
unsafe impl Send for ModuleInner {}
// SAFETY: the driver lets any number of threads use a module at once.
unsafe impl Sync for ModuleInner {}

/// A kernel of a module. Clones are handles of the same kernel and keep its module loaded.
#[derive(Clone)]
pub struct Kernel(Arc<KernelInner>);

struct KernelInner {
    module: Module,
    function: CUfunction,
    name: String,
    attributes: KernelAttributes,
    /// The sizes of the parameters in bytes, if the driver reports them.
    parameters: Option<Vec<usize>>,
    /// The driver's limit on dynamic shared memory as last read, in bytes.
    max_dynamic_shared: AtomicU32,
}
// SAFETY: the driver lets any thread use a function.
unsafe impl Send for KernelInner {}
// SAFETY: the driver lets any number of threads use a function at once.
unsafe impl Sync for KernelInner {}

/// The resources that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// Max threads of a block of this kernel.
    pub threads_per_block: u32,
    /// Bytes of static shared memory of a block.
    pub static_shared: u32,
    /// Max bytes of dynamic shared memory that a launch may add.
    pub max_dynamic_shared: u32,
    /// Bytes of constant memory.
    pub constant: u32,
    /// Bytes of local memory of a thread, such as spilled registers.
    pub local: u32,
    /// Number of registers of a thread.
    pub registers: u32,
    /// PTX version that the kernel was compiled from, times ten.
    pub ptx_version: u32,
    /// Compute capability that the kernel was compiled for, times ten.
    pub binary_version: u32,
}

impl Device {
    /// Loads a kernel image: PTX text, a cubin or a fatbin. Error messages contain `name`. The
    /// driver compiles PTX in this call and caches the result. An image that is already loaded is
    /// shared.
    ///
    /// # Errors
    ///
    /// [`Error::ImageTooNew`] and [`Error::BadImage`], both with the log of the driver's compiler;
    /// other driver errors.
    pub fn load(&self, name: &str, image: &[u8]) -> Result<Module> {
        Ok(Module {
            inner: load(self, name, image)?,
            begins_early: false,
        })
    }
}

fn load(device: &Device, name: &str, image: &[u8]) -> Result<Arc<ModuleInner>> {
    let words = image::prepare(image).map_err(|reason| Error::BadImage {
        image: name.to_owned(),
        code: 0,
        reason,
        log: String::new(),
    })?;
    // Locked until the image is loaded, so that two threads that load the same image load it once.
    let loaded = Loaded::on(device);
    let mut loaded_before = loaded.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = loaded_before.find(name, &words) {
        return Ok(module);
    }
    let mut log = [0u8; 4096];
    let mut options = [
        Jit::CU_JIT_ERROR_LOG_BUFFER as c_int,
        Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as c_int,
    ];
    // The driver takes small numbers in place of pointers. The last byte of the log stays zero.
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        ptr::without_provenance_mut(log.len() - 1),
    ];
    let mut handle = ptr::null_mut();
    device.bind()?;
    // SAFETY: the image ends with a zero or has the length that it states; both options have
    // values; the out pointer is valid.
    let outcome = unsafe {
        driver::cuModuleLoadDataEx(
            &mut handle,
            words.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match outcome {
        Ok(()) => {
            let module = Arc::new(ModuleInner {
                device: device.clone(),
                handle,
                name: name.to_owned(),
                image: words,
            });
            loaded_before.0.push(Arc::downgrade(&module));
            Ok(module)
        }
        Err(Error::Call {
            code, name: reason, ..
        }) => {
            let log = CStr::from_bytes_until_nul(&log)
                .map(|log| log.to_string_lossy().into_owned())
                .unwrap_or_default();
            Err(image_error(device, name, code, reason, log))
        }
        Err(error) => Err(error),
    }
}

fn image_error(device: &Device, image: &str, code: i32, reason: &str, log: String) -> Error {
    // A driver also reports "invalid PTX" for a PTX version or target that it does not know yet.
    // Only its log tells the two apart.
    let unknown = [
        "unsupported .version",
        "unsupported .target",
        "not supported on .target",
        "requires ptx isa",
    ];
    let said = log.to_ascii_lowercase();
    let too_new = match code {
        UNSUPPORTED_PTX_VERSION | NO_BINARY_FOR_GPU => true,
        INVALID_PTX => unknown.iter().any(|words| said.contains(words)),
        _ => false,
    };
    let (image, info) = (image.to_owned(), device.info());
    if too_new {
        Error::ImageTooNew {
            image,
            code,
            driver: info.driver_version,
            device: info.compute_capability,
            log,
        }
    } else {
        Error::BadImage {
            image,
            code,
            reason: reason.to_owned(),
            log,
        }
    }
}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        if self.device.bind().is_err() {
            return;
        }
        // Waiting for the device would invalidate a capture. Modules are few, so one that is
        // dropped during a capture stays loaded.
        capture::outside(|| {
            // SAFETY: there is no other handle of the module, and after the wait none of its
            // kernels runs.
            let _: Result<()> = unsafe {
                driver::cuCtxSynchronize().and_then(|()| driver::cuModuleUnload(self.handle))
            };
        });
    }
}

impl Module {
    /// Returns the device that the module is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Returns the name that the module was loaded under.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Has kernels of this handle launched early: one begins while the kernel ahead of it in the
    /// stream runs, if that is of such a handle too and lets it (PTX
    /// `griddepcontrol.launch_dependents`). What a launch takes to begin is hidden so, about 1 us.
    ///
    /// Where [`Device::launches_early`] says no, kernels begin one after another.
    ///
    /// ```
    /// # fn f(device: &gpu::Device, image: &[u8]) -> gpu::Result<gpu::Kernel> {
    /// let module = device.load("waits", image)?;
    /// // SAFETY: the kernels of this image begin with `griddepcontrol.wait`.
    /// unsafe { module.launched_early() }.kernel("scale")
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// All threads of these kernels execute `griddepcontrol.wait`, and let the next kernel begin
    /// only after it. Before it they read nothing that the launch directly ahead writes, and write
    /// nothing that it reads or writes.
    #[must_use]
    pub unsafe fn launched_early(mut self) -> Module {
        self.begins_early = self.device().launches_early();
        self
    }

    /// Returns the kernel `name`. For a C++ kernel that is not `extern "C"`, `name` is the mangled
    /// name.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`]; the driver's errors.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let no_kernel = || Error::NoKernel {
            image: self.inner.name.clone(),
            kernel: name.to_owned(),
        };
        let c_name = CString::new(name).map_err(|_| no_kernel())?;
        let mut function = ptr::null_mut();
        self.inner.device.bind()?;
        // SAFETY: the module is live, the name is a C string, the out pointer is valid.
        unsafe { driver::cuModuleGetFunction(&mut function, self.inner.handle, c_name.as_ptr()) }
            .map_err(|error| match error {
            Error::Call {
                code: NOT_FOUND, ..
            } => no_kernel(),
            error => error,
        })?;
        let attributes = read_attributes(function)?;
        Ok(Kernel(Arc::new(KernelInner {
            module: self.clone(),
            function,
            name: name.to_owned(),
            attributes,
            parameters: read_parameters(function),
            max_dynamic_shared: AtomicU32::new(attributes.max_dynamic_shared),
        })))
    }
}

fn read_attributes(function: CUfunction) -> Result<KernelAttributes> {
    use Attribute::*;
    let get = |attribute: Attribute| {
        let mut value = 0;
        // SAFETY: the function is live, and the out pointer is valid.
        unsafe { driver::cuFuncGetAttribute(&mut value, attribute as c_int, function)? };
        Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
    };
    Ok(KernelAttributes {
        threads_per_block: get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        static_shared: get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        max_dynamic_shared: get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        constant: get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        local: get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        registers: get(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptx_version: get(CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binary_version: get(CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
    })
}

/// Returns the sizes of a kernel's parameters. Drivers report them since CUDA 12.4, and return an
/// error for the index after the last parameter.
fn read_parameters(function: CUfunction) -> Option<Vec<usize>> {
    if !libcuda_shim::has("cuFuncGetParamInfo") {
        return None;
    }
    let size = |index| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is live, and both out pointers are valid.
        unsafe { driver::cuFuncGetParamInfo(function, index, &mut offset, &mut size).ok()? };
        Some(size)
    };
    Some((0..).map_while(size).collect())
}

impl Kernel {
    /// Returns the kernel's name in its module.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the device that the kernel is loaded on.
    pub fn device(&self) -> &Device {
        self.0.module.device()
    }

    pub(crate) fn raw(&self) -> CUfunction {
        self.0.function
    }

    pub(crate) fn parameters(&self) -> Option<&[usize]> {
        self.0.parameters.as_deref()
    }

    pub(crate) fn begins_early(&self) -> bool {
        self.0.module.begins_early
    }

    pub(crate) fn threads_per_block(&self) -> u32 {
        self.0.attributes.threads_per_block
    }

    /// Sets the max dynamic shared memory of a launch of this kernel, in bytes. Without this call a
    /// launch may have 48 KiB.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] if that exceeds the device's limit; the driver's errors.
    pub fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        let limit = self
            .device()
            .info()
            .shared_per_block_optin
            .saturating_sub(self.0.attributes.static_shared);
        let too_much = || Error::Launch {
            kernel: self.0.name.clone(),
            what: "the dynamic shared memory in bytes",
            given: bytes.into(),
            allowed: format!("at most {limit} on this device"),
        };
        let value = c_int::try_from(bytes)
            .ok()
            .filter(|_| bytes <= limit)
            .ok_or_else(too_much)?;
        self.device().bind()?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_int;
        // SAFETY: the function is live.
        unsafe { driver::cuFuncSetAttribute(self.0.function, attribute, value)? };
        self.0.max_dynamic_shared.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the max dynamic shared memory of a launch in bytes. The cached limit is read again
    /// if it is less than `wanted`, because another handle of the same kernel may have raised it.
    pub(crate) fn max_dynamic_shared(&self, wanted: u32) -> Result<u32> {
        let seen = self.0.max_dynamic_shared.load(Ordering::Relaxed);
        if wanted <= seen {
            return Ok(seen);
        }
        let now = self.attributes()?.max_dynamic_shared;
        self.0.max_dynamic_shared.store(now, Ordering::Relaxed);
        Ok(now)
    }

    /// Returns how many blocks of `block` threads, with `dynamic_shared` bytes of dynamic shared
    /// memory each, run on one multiprocessor at once. Multiplied by the number of multiprocessors
    /// this is the largest grid of a cooperative launch.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn blocks_per_multiprocessor(&self, block: u32, dynamic_shared: u32) -> Result<u32> {
        self.device().bind()?;
        let mut blocks = 0;
        let block = c_int::try_from(block).unwrap_or(c_int::MAX);
        // SAFETY: the function is live, and the out pointer is valid.
        unsafe {
            driver::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.0.function,
                block,
                dynamic_shared as usize,
            )?
        };
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Returns the resources that the kernel needs.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn attributes(&self) -> Result<KernelAttributes> {
        self.device().bind()?;
        read_attributes(self.0.function)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(&self.inner.name).finish()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.0.name).finish()
    }
}
