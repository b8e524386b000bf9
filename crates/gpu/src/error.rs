//! The error type, which can hold any code that a driver of any version returns.

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a device, a driver call, or a misused argument, with the numbers that explain it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no CUDA driver: its library was not found, or is not a driver.
    #[error("no CUDA driver: looked for {looked_for} ({reason})")]
    NoDriver {
        /// The library names and paths tried.
        looked_for: String,
        /// Why each of them was refused.
        reason: String,
    },
    /// The driver finds no device that this process may use.
    #[error("the CUDA driver finds no device (is CUDA_VISIBLE_DEVICES hiding it?)")]
    NoDevice,
    /// No device has that ordinal.
    #[error("there is no CUDA device {ordinal}: the driver finds {count} device(s)")]
    DeviceOrdinal {
        /// The ordinal asked for.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// A driver call failed with a code that has no variant here.
    #[error("{call} failed: {name} ({code}){}", hint(*.code))]
    Call {
        /// The driver function.
        call: &'static str,
        /// The code it returned.
        code: i32,
        /// The driver's name for the code.
        name: &'static str,
    },
    /// The driver lacks a function, because it is too old.
    #[error("this CUDA driver has no {call}: it is too old (it supports CUDA {}.{})", .driver.0, .driver.1)]
    MissingFunction {
        /// The driver function.
        call: &'static str,
        /// The CUDA version that the driver supports.
        driver: (u32, u32),
    },
    /// The device memory does not suffice.
    #[error(
        "out of device memory: cannot allocate {requested} bytes, {free} of {total} bytes are free"
    )]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes free on the device after the failure.
        free: u64,
        /// Bytes of memory of the device.
        total: u64,
    },
    /// The host memory does not suffice. For pinned memory, the system's limit on locked memory
    /// counts too.
    #[error("out of host memory: cannot allocate {requested} bytes")]
    OutOfHostMemory {
        /// Bytes asked for.
        requested: u64,
    },
    /// A size in bytes overflows the address space.
    #[error("{len} elements of {size} bytes exceed the address space")]
    TooLarge {
        /// Elements asked for.
        len: usize,
        /// Bytes of one element.
        size: usize,
    },
    /// A kernel image needs a newer driver or another device.
    #[error("the kernel image {image} cannot run here: the driver supports CUDA {}.{}, the device has compute capability {}.{}; a GPU \
             from compute capability 7.5 on needs a newer driver, older GPUs are not supported ({code}){}", .driver.0, .driver.1, .device.0, .device.1, quoted(.log))]
    ImageTooNew {
        /// The image's name.
        image: String,
        /// The driver's code: 209, 218 or 222.
        code: i32,
        /// The CUDA version that the driver supports.
        driver: (u32, u32),
        /// The device's compute capability.
        device: (u32, u32),
        /// What the driver's compiler said.
        log: String,
    },
    /// A kernel image is damaged, is no kernel image, or does not compile.
    #[error("the kernel image {image} cannot be loaded: {reason} ({code}){}", quoted(.log))]
    BadImage {
        /// The image's name.
        image: String,
        /// The driver's code; 0 if this crate refused the image itself.
        code: i32,
        /// What is wrong.
        reason: String,
        /// What the driver's compiler said.
        log: String,
    },
    /// A module has no kernel of that name.
    #[error("the kernel image {image} has no kernel {kernel:?}")]
    NoKernel {
        /// The image's name.
        image: String,
        /// The name asked for.
        kernel: String,
    },
    /// Two lengths differ that must agree, or a buffer is too short.
    #[error("{what}: {needed} needed, {given} given")]
    Length {
        /// Which lengths.
        what: &'static str,
        /// Elements or bytes needed.
        needed: u64,
        /// Elements or bytes given.
        given: u64,
    },
    /// A range does not lie within its slice.
    #[error("range {start}..{end} is out of bounds: the slice has {len} elements")]
    Range {
        /// Its start.
        start: usize,
        /// Its end.
        end: usize,
        /// The slice's length.
        len: usize,
    },
    /// An address is not aligned as it must be.
    #[error("device address {address:#x} is not a multiple of {alignment}")]
    Alignment {
        /// The address.
        address: u64,
        /// The alignment that is needed, in bytes.
        alignment: usize,
    },
    /// The device cannot run a launch of this shape.
    #[error("cannot launch {kernel}: {what} is {given}, but must be {allowed}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// What is out of bounds.
        what: &'static str,
        /// Its value.
        given: u64,
        /// The allowed values, in words.
        allowed: String,
    },
    /// The arguments do not match the kernel's parameters.
    #[error(
        "cannot launch {kernel}: its parameters have {needed:?} bytes, the arguments {given:?} bytes"
    )]
    Arguments {
        /// The kernel's name.
        kernel: String,
        /// The parameters' sizes in bytes.
        needed: Vec<usize>,
        /// The arguments' sizes in bytes.
        given: Vec<usize>,
    },
    /// The device or its driver does not support a feature.
    #[error("device {device} does not support {what}")]
    Unsupported {
        /// The device's ordinal.
        device: usize,
        /// The feature.
        what: &'static str,
    },
    /// A call mixes objects of two devices.
    #[error("{what} belongs to device {other}, but the stream to device {stream}")]
    OtherDevice {
        /// The object that belongs to another device.
        what: &'static str,
        /// The ordinal of its device.
        other: usize,
        /// The ordinal of the stream's device.
        stream: usize,
    },
    /// A region of [`Layout::measure`](crate::Layout::measure) was used, which has no memory.
    #[error("the region was made by Layout::measure and has no memory")]
    Measured,
    /// A call on a stream that is being captured cannot become part of the graph. The capture
    /// continues.
    #[error("{call} cannot be captured into a graph: do it before Stream::capture")]
    Capturing {
        /// What was refused.
        call: &'static str,
    },
}

pub(crate) const OUT_OF_MEMORY: i32 = 2;
const NOT_INITIALIZED: i32 = 3;
pub(crate) const STUB_LIBRARY: i32 = 34;
pub(crate) const NO_DEVICE: i32 = libcuda_shim::NO_DEVICE;
pub(crate) const NO_BINARY_FOR_GPU: i32 = 209;
pub(crate) const INVALID_PTX: i32 = 218;
pub(crate) const UNSUPPORTED_PTX_VERSION: i32 = 222;
pub(crate) const NOT_FOUND: i32 = libcuda_shim::NOT_FOUND;
pub(crate) const NOT_READY: i32 = 600;

impl Error {
    /// Returns the driver's code, if the error comes from the driver.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::Call { code, .. } | Error::ImageTooNew { code, .. } => Some(*code),
            Error::BadImage { code, .. } if *code != 0 => Some(*code),
            Error::OutOfMemory { .. } => Some(OUT_OF_MEMORY),
            Error::NoDevice => Some(NO_DEVICE),
            _ => None,
        }
    }
}

/// Returns the usual cause of a code, for codes whose name does not say it.
fn hint(code: i32) -> &'static str {
    match code {
        1 => ": a handle, size or pointer is not what the call needs",
        NOT_INITIALIZED => ": the driver was not initialised, or the process forked after it was",
        46 | 101 => ": another process may hold the device in exclusive mode",
        200 => ": the kernel image is damaged",
        201 | 709 => {
            ": the device was reset or its context destroyed by other code in this process"
        }
        214 | 220 => ": a hardware error; the system log says more",
        221 => ": the driver's PTX compiler (libnvidia-ptxjitcompiler) is not installed",
        304 => ": the operating system refused a call; a container may lack the device files",
        700 | 714..=718 => {
            ": a kernel did something illegal; the device is unusable to this process until it restarts"
        }
        701 => {
            ": the kernel needs more registers or shared memory than a block of this size can have"
        }
        702 => ": a kernel ran longer than the system allows on a device that drives a display",
        719 => ": a kernel failed; the device is unusable to this process until it restarts",
        720 => {
            ": more blocks than can run at once; Kernel::blocks_per_multiprocessor says how many can"
        }
        800 => ": the process lacks the permission",
        801 => ": this device or driver does not support it",
        802 => ": the system is not ready; on NVSwitch machines the fabric manager must be running",
        803 => {
            ": the driver's library and its kernel module are of different versions; reload the module or restart the machine"
        }
        804 => ": a compatibility driver library is installed that this device does not support",
        900..=908 => ": the stream's capture was ended or broken by a call that cannot be captured",
        999 => {
            ": often the kernel module after a suspend, or missing device files; reload the module or restart the machine"
        }
        _ => "",
    }
}

fn quoted(log: &str) -> String {
    if log.is_empty() {
        String::new()
    } else {
        format!(": {}", log.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_call_and_the_cause() {
        let call = |code| {
            Error::Call {
                call: "cuCall",
                code,
                name: "NAME",
            }
            .to_string()
        };
        assert_eq!(call(8), "cuCall failed: NAME (8)");
        assert_eq!(
            call(720).split(": ").nth(2),
            Some(
                "more blocks than can run at once; Kernel::blocks_per_multiprocessor says how many can"
            )
        );
        for code in [i32::MIN, -1, 0, 34, 999, 1000, i32::MAX] {
            assert!(call(code).starts_with(&format!("cuCall failed: NAME ({code})")));
        }
        let (image, driver, device) = ("sort".to_owned(), (12, 2), (7, 5));
        let error = Error::ImageTooNew {
            image: image.clone(),
            code: 222,
            driver,
            device,
            log: "why\n".to_owned(),
        };
        let text = error.to_string();
        assert!(
            text.contains("CUDA 12.2") && text.contains("7.5") && text.ends_with("(222): why"),
            "{text}"
        );
        let error = Error::BadImage {
            image,
            code: 0,
            reason: "it is empty".to_owned(),
            log: String::new(),
        };
        assert_eq!(
            (error.code(), error.to_string()),
            (
                None,
                "the kernel image sort cannot be loaded: it is empty (0)".to_owned()
            )
        );
        let error = Error::OutOfMemory {
            requested: 1 << 40,
            free: 5,
            total: 6,
        };
        assert_eq!(
            error.to_string(),
            "out of device memory: cannot allocate 1099511627776 bytes, 5 of 6 bytes are free"
        );
        assert_eq!(error.code(), Some(2));
    }

    #[test]
    fn errors_are_send_and_sync() {
        fn travels<T: Clone + Send + Sync + std::error::Error + 'static>() {}
        travels::<Error>();
    }
}
