//! NVRTC, the CUDA compiler as a library. It is bound when it is first needed, so that nothing
//! links to it.

use crate::{Error, Result};
use gpu::library::{self, Library};
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// The names and paths where NVRTC is looked for, in this order.
const CANDIDATES: [&str; 7] = [
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
    "libnvrtc.so",
    "/usr/local/cuda/lib64/libnvrtc.so",
    "/opt/cuda/lib64/libnvrtc.so",
    "/run/opengl-driver/lib/libnvrtc.so",
];

const COMPILATION: c_int = 6; // NVRTC_ERROR_COMPILATION

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Count = unsafe extern "C" fn(*mut c_int) -> c_int;

/// A source to compile.
pub(super) struct Source<'a> {
    pub text: &'a str,
    /// Names and texts of the headers that the source may include.
    pub headers: &'a [(&'a str, &'a str)],
    pub defines: Vec<(&'static str, usize)>,
    /// The compute capability of the device, major and minor.
    pub capability: (u32, u32),
}

/// The open library. It is never closed.
#[derive(Debug)]
pub(super) struct Nvrtc {
    create: Create,
    compile: Compile,
    destroy: Destroy,
    log_size: Size,
    log: Get,
    ptx_size: Size,
    ptx: Get,
    /// Since CUDA 11.1: the functions that return code for one device.
    cubin: Option<(Size, Get)>,
    /// Since CUDA 11.2: the functions that list the devices it compiles for.
    architectures: Option<(Count, Count)>,
}

impl Nvrtc {
    /// Opens `name`, else the first that the usual paths have.
    pub fn open(name: Option<&OsStr>) -> Result<Self> {
        let opened = match name {
            Some(name) => library::open_first(&[name], Self::bind),
            None => library::open_first(&CANDIDATES, Self::bind),
        };
        opened.map_err(|missing| Error::NoCompiler {
            looked_for: missing.names(),
            reason: missing.reason(),
        })
    }

    fn bind(library: Library) -> Result<Self, String> {
        macro_rules! function {
            ($name:literal, $type:ty) => {
                library.symbol($name).map(|found| {
                    // SAFETY: NVRTC's function of that name has this type, in every release so far.
                    unsafe { std::mem::transmute::<*mut c_void, $type>(found.as_ptr()) }
                })
            };
        }
        macro_rules! needed {
            ($name:literal, $type:ty) => {
                function!($name, $type).ok_or_else(|| format!("it has no {}", $name))?
            };
        }
        Ok(Self {
            create: needed!("nvrtcCreateProgram", Create),
            compile: needed!("nvrtcCompileProgram", Compile),
            destroy: needed!("nvrtcDestroyProgram", Destroy),
            log_size: needed!("nvrtcGetProgramLogSize", Size),
            log: needed!("nvrtcGetProgramLog", Get),
            ptx_size: needed!("nvrtcGetPTXSize", Size),
            ptx: needed!("nvrtcGetPTX", Get),
            cubin: function!("nvrtcGetCUBINSize", Size).zip(function!("nvrtcGetCUBIN", Get)),
            architectures: function!("nvrtcGetNumSupportedArchs", Count)
                .zip(function!("nvrtcGetSupportedArchs", Count)),
        })
    }

    /// Compiles an image for the device: its own code if this NVRTC can make it, else PTX for the
    /// newest earlier device.
    pub fn build(&self, source: &Source<'_>) -> Result<Vec<u8>> {
        let text = c_string(source.text)?;
        let headers = source.headers.iter();
        let names = headers
            .clone()
            .map(|header| c_string(header.0))
            .collect::<Result<Vec<_>>>()?;
        let texts = headers
            .map(|header| c_string(header.1))
            .collect::<Result<Vec<_>>>()?;
        let mut program = Running {
            library: self,
            handle: null_mut(),
        };
        // SAFETY: all are C strings, with as many names as texts; they outlive the call, which
        // copies them.
        check("nvrtcCreateProgram", unsafe {
            (self.create)(
                &mut program.handle,
                text.as_ptr(),
                c"comparator.cu".as_ptr(),
                names.len() as c_int,
                pointers(&texts).as_ptr(),
                pointers(&names).as_ptr(),
            )
        })?;

        let device = (source.capability.0 * 10 + source.capability.1) as c_int;
        let known = self.architectures()?;
        let exact = self.cubin.filter(|_| known.contains(&device));
        let target = known
            .iter()
            .copied()
            .filter(|&known| known <= device)
            .max()
            .unwrap_or(device);
        let kind = if exact.is_some() { "sm" } else { "compute" };
        let mut options = vec![
            c_string("--std=c++17")?,
            c_string(&format!("--gpu-architecture={kind}_{target}"))?,
        ];
        for (name, value) in &source.defines {
            options.push(c_string(&format!("-D{name}={value}"))?);
        }
        // SAFETY: the program is live, and the C strings outlive the call.
        let compiled = unsafe {
            (self.compile)(
                program.handle,
                options.len() as c_int,
                pointers(&options).as_ptr(),
            )
        };
        if compiled == COMPILATION {
            let log = program.bytes("nvrtcGetProgramLog", self.log_size, self.log)?;
            return Err(Error::BadComparator {
                log: String::from_utf8_lossy(&log)
                    .trim_end_matches('\0')
                    .to_owned(),
            });
        }
        check("nvrtcCompileProgram", compiled)?;
        match exact {
            Some((size, get)) => program.bytes("nvrtcGetCUBIN", size, get),
            None => {
                let mut ptx = program.bytes("nvrtcGetPTX", self.ptx_size, self.ptx)?;
                ptx.truncate(ptx.iter().position(|&byte| byte == 0).unwrap_or(ptx.len()));
                Ok(ptx)
            }
        }
    }

    /// Returns the devices that it compiles for, as 10 * major + minor.
    fn architectures(&self) -> Result<Vec<c_int>> {
        let Some((number, list)) = self.architectures else {
            return Ok(Vec::new());
        };
        let mut count = 0;
        // SAFETY: the out pointer is valid.
        check("nvrtcGetNumSupportedArchs", unsafe { number(&mut count) })?;
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the vector has as many elements as the call before said.
        check("nvrtcGetSupportedArchs", unsafe {
            list(architectures.as_mut_ptr())
        })?;
        Ok(architectures)
    }
}

/// A program of NVRTC, which is destroyed when dropped.
struct Running<'a> {
    library: &'a Nvrtc,
    handle: Program,
}

impl Running<'_> {
    fn bytes(&self, call: &'static str, size: Size, get: Get) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is live, and the out pointer is valid.
        check(call, unsafe { size(self.handle, &mut bytes) })?;
        let mut all = vec![0; bytes];
        // SAFETY: the vector has as many bytes as the call before said.
        check(call, unsafe { get(self.handle, all.as_mut_ptr().cast()) })?;
        Ok(all)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the program is live and is not used again.
            unsafe { (self.library.destroy)(&mut self.handle) };
        }
    }
}

fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(Error::Compiler { call, code })
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::BadComparator {
        log: error.to_string(),
    })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    // One pointer more, so that the list is never empty.
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([null()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_with_its_name() {
        let missing =
            Nvrtc::open(Some(OsStr::new("/nowhere/libnvrtc.so"))).expect_err("no compiler");
        let Error::NoCompiler { looked_for, reason } = &missing else {
            panic!("{missing}");
        };
        assert_eq!(looked_for, "/nowhere/libnvrtc.so");
        assert!(!reason.is_empty());
        assert!(missing.to_string().contains("/nowhere/libnvrtc.so"));
    }

    #[test]
    fn another_library_is_refused() {
        let other = Nvrtc::open(Some(OsStr::new("libc.so.6"))).expect_err("no compiler");
        assert!(
            other.to_string().contains("it has no nvrtcCreateProgram"),
            "{other}"
        );
    }
}
