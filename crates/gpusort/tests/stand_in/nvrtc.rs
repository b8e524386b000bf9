//! A stand-in for NVRTC, which passes the source to the compiler that `RADSWEEP_EMULATE_NVCC`
//! names. `satish_merge.rs` builds it as a library.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::process::{Command, id};

struct Program {
    texts: Vec<(String, Vec<u8>)>,
    log: CString,
    ptx: CString,
}

const INVALID_INPUT: c_int = 3;
const COMPILATION: c_int = 6;

unsafe fn text(from: *const c_char) -> String {
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut *mut c_void,
    source: *const c_char,
    name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> c_int {
    unsafe {
        let mut texts = vec![(text(name), text(source).into_bytes())];
        for i in 0..count as usize {
            texts.push((text(*names.add(i)), text(*headers.add(i)).into_bytes()));
        }
        *program = Box::into_raw(Box::new(Program {
            texts,
            log: CString::default(),
            ptx: CString::default(),
        }))
        .cast();
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCompileProgram(
    program: *mut c_void,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    let program = unsafe { &mut *program.cast::<Program>() };
    let folder = std::env::temp_dir().join(format!("stand-in-{}-{:p}", id(), program));
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in &program.texts {
        // The compiler finds the system's header itself.
        if name != "stdint.h" {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    let mut command = Command::new(std::env::var_os("RADSWEEP_EMULATE_NVCC").unwrap());
    command.args(["-ptx", "-arch=compute_75"]).current_dir(&folder);
    for i in 0..count as usize {
        let option = unsafe { text(*options.add(i)) };
        match option.strip_prefix("--std") {
            Some(standard) => command.arg(format!("-std{standard}")),
            None if option.starts_with("-D") => command.arg(&option),
            None if option.starts_with("--gpu-architecture=") => &mut command,
            None => return INVALID_INPUT,
        };
    }
    let name = &program.texts[0].0;
    let done = command.arg("-I.").arg(name).args(["-o", "out.ptx"]).output().unwrap();
    program.log = CString::new([done.stdout, done.stderr].concat()).unwrap();
    let ptx = fs::read(folder.join("out.ptx")).unwrap_or_default();
    program.ptx = CString::new(ptx).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    if done.status.success() { 0 } else { COMPILATION }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcDestroyProgram(program: *mut *mut c_void) -> c_int {
    drop(unsafe { Box::from_raw((*program).cast::<Program>()) });
    0
}

macro_rules! give {
    ($size:ident, $get:ident, $field:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $size(program: *mut c_void, size: *mut usize) -> c_int {
            unsafe { *size = (*program.cast::<Program>()).$field.as_bytes_with_nul().len() };
            0
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $get(program: *mut c_void, to: *mut c_char) -> c_int {
            let bytes = unsafe { &*program.cast::<Program>() }.$field.as_bytes_with_nul();
            unsafe { bytes.as_ptr().cast::<c_char>().copy_to(to, bytes.len()) };
            0
        }
    };
}
give!(nvrtcGetProgramLogSize, nvrtcGetProgramLog, log);
give!(nvrtcGetPTXSize, nvrtcGetPTX, ptx);
