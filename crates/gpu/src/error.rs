//! One error type for all that can go wrong, holding whatever code a driver of any version returns.

use core::ffi::{CStr, c_char};

use crate::driver;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the numbers that explain it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No CUDA driver: its library was not found or is not a driver.
    #[error("no CUDA driver: looked for {looked_for} ({reason})")]
    NoDriver {
        /// The library names and paths tried.
        looked_for: String,
        /// Why they did not do.
        reason: String,
    },
    /// There is a driver, but no device that this process may use.
    #[error("the CUDA driver finds no device (is CUDA_VISIBLE_DEVICES hiding it?)")]
    NoDevice,
    /// No device of that number.
    #[error("there is no CUDA device {ordinal}: the driver finds {count}")]
    DeviceOrdinal {
        /// The number asked for.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// A driver call failed in a way that has no variant of its own.
    #[error("{call} failed: {name} ({code}){}", hint(*.code))]
    Call {
        /// The driver function.
        call: &'static str,
        /// The code it returned.
        code: i32,
        /// The code's name, as the driver gives it.
        name: &'static str,
    },
    /// The driver does not have a function that is needed here.
    #[error("this CUDA driver has no {call}: it is too old (it supports CUDA {}.{})", .driver.0, .driver.1)]
    MissingFunction {
        /// The driver function.
        call: &'static str,
        /// The CUDA version that the driver supports.
        driver: (u32, u32),
    },
    /// Device memory does not suffice.
    #[error("out of device memory: {requested} bytes asked for, {free} of {total} are free")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes free on the device afterwards.
        free: u64,
        /// Bytes on the device.
        total: u64,
    },
    /// Host memory does not suffice (for pinned memory the system's limit on locked memory counts
    /// too).
    #[error("out of host memory: {requested} bytes asked for")]
    OutOfHostMemory {
        /// Bytes asked for.
        requested: u64,
    },
    /// More bytes than an address can count.
    #[error("{len} elements of {size} bytes are more than an address can count")]
    TooLarge {
        /// Elements asked for.
        len: usize,
        /// Bytes of one.
        size: usize,
    },
    /// A kernel image is for a newer driver or another device.
    #[error("the kernel image {image} does not fit: driver for CUDA {}.{}, device of compute capability {}.{}; a newer driver, or an \
             image for an older PTX version and this device, is needed ({code}){}", .driver.0, .driver.1, .device.0, .device.1, quoted(.log))]
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
    /// A kernel image that is not one, or does not compile.
    #[error("the kernel image {image} cannot be loaded: {reason} ({code}){}", quoted(.log))]
    BadImage {
        /// The image's name.
        image: String,
        /// The driver's code; 0 where the image was refused before the driver saw it.
        code: i32,
        /// What is wrong.
        reason: String,
        /// What the driver's compiler said.
        log: String,
    },
    /// A module has no such kernel.
    #[error("the kernel image {image} has no kernel {kernel:?}")]
    NoKernel {
        /// The image's name.
        image: String,
        /// The kernel asked for.
        kernel: String,
    },
    /// Two lengths that must agree do not, or a buffer is too short.
    #[error("{what}: {needed} needed, {given} given")]
    Length {
        /// Which lengths.
        what: &'static str,
        /// Elements or bytes needed.
        needed: u64,
        /// Elements or bytes given.
        given: u64,
    },
    /// A range outside its slice.
    #[error("range {start}..{end} of a slice of {len}")]
    Range {
        /// Its start.
        start: usize,
        /// Its end.
        end: usize,
        /// The slice's length.
        len: usize,
    },
    /// An address that is not a multiple of what is needed.
    #[error("device address {address:#x} is not a multiple of {alignment}")]
    Alignment {
        /// The address.
        address: u64,
        /// What it must be a multiple of.
        alignment: usize,
    },
    /// A launch that the device cannot run.
    #[error("launch of {kernel}: {what} is {given}, allowed is {allowed}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// Which number is wrong.
        what: &'static str,
        /// Its value.
        given: u64,
        /// The limit, in words.
        allowed: String,
    },
    /// Arguments that are not the kernel's parameters.
    #[error("launch of {kernel}: arguments of {given:?} bytes for parameters of {needed:?} bytes")]
    Arguments {
        /// The kernel's name.
        kernel: String,
        /// The parameters' sizes.
        needed: Vec<usize>,
        /// The arguments' sizes.
        given: Vec<usize>,
    },
    /// The device or its driver cannot do this.
    #[error("device {device} does not support {what}")]
    Unsupported {
        /// The device's number.
        device: usize,
        /// What it cannot do.
        what: &'static str,
    },
    /// Things of two devices in one call.
    #[error("{what} belongs to device {other}, the stream to device {stream}")]
    OtherDevice {
        /// What belongs elsewhere.
        what: &'static str,
        /// Where it belongs.
        other: usize,
        /// The stream's device.
        stream: usize,
    },
    /// A region of [`Layout::measure`](crate::Layout::measure) where memory is needed.
    #[error("a region of Layout::measure has no memory")]
    Measured,
    /// A call that cannot be part of a graph, on a stream that is being captured. The capture goes
    /// on.
    #[error("{call} cannot be captured into a graph: do it before Stream::capture")]
    Capturing {
        /// What was called.
        call: &'static str,
    },
}

pub(crate) const OUT_OF_MEMORY: i32 = 2;
const NOT_INITIALIZED: i32 = 3;
const STUB_LIBRARY: i32 = 34;
const NO_DEVICE: i32 = libcuda_shim::NO_DEVICE;
pub(crate) const NO_BINARY_FOR_GPU: i32 = 209;
pub(crate) const INVALID_PTX: i32 = 218;
pub(crate) const UNSUPPORTED_PTX_VERSION: i32 = 222;
pub(crate) const NOT_FOUND: i32 = libcuda_shim::NOT_FOUND;
pub(crate) const NOT_READY: i32 = 600;

impl Error {
    /// The error for a driver call's return code.
    pub(crate) fn from_code(call: &'static str, code: i32) -> Error {
        match (code, libcuda_shim::load()) {
            (_, Err(missing)) => Error::NoDriver {
                looked_for: missing.looked_for.join(", "),
                reason: missing.reason(),
            },
            (STUB_LIBRARY, Ok(library)) => Error::NoDriver {
                looked_for: library.to_owned(),
                reason: "a stub for linking, not a driver".to_owned(),
            },
            (NO_DEVICE, _) => Error::NoDevice,
            (NOT_FOUND, _) if !libcuda_shim::has(call) => Error::MissingFunction {
                call,
                driver: crate::driver_version().unwrap_or_default(),
            },
            _ => Error::Call {
                call,
                code,
                name: code_name(code),
            },
        }
    }

    /// The driver's code, where the error is a driver's.
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

/// The driver's name for a code, known to this version of it or not.
fn code_name(code: i32) -> &'static str {
    let mut text: *const c_char = core::ptr::null();
    // A failure leaves null, and must not come back here through `from_code`.
    // SAFETY: the out pointer is valid.
    let _ = unsafe { driver::error_name(code, &mut text) };
    if text.is_null() {
        return "a code that this driver has no name for";
    }
    // SAFETY: not null, so one of the driver's constant strings; its library is never closed.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .unwrap_or("a name that is not UTF-8")
}

/// What usually causes a code, for those where that is not plain from the name.
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
        800 => ": the operation needs more rights",
        801 => ": this device or driver does not support it",
        802 => ": the system is not ready; on NVSwitch machines the fabric manager must be running",
        803 => {
            ": the driver's library and its kernel module are of different versions; reload the module or restart the machine"
        }
        804 => ": a compatibility driver library is installed that this device does not support",
        900..=908 => ": the stream's capture was ended or broken by a call that cannot be captured",
        912 => ": the cluster is larger than the device can place",
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
            "out of device memory: 1099511627776 bytes asked for, 5 of 6 are free"
        );
        assert_eq!(error.code(), Some(2));
    }

    #[test]
    fn errors_travel_between_threads() {
        fn travels<T: Clone + Send + Sync + std::error::Error + 'static>() {}
        travels::<Error>();
    }
}
