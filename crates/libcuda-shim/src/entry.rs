//! The entry points of the driver's functions, and their first call, which binds the driver.
//!
//! An entry point jumps to the function in its slot. At first that is one that saves the arguments,
//! fills all slots from the driver's library, and continues in the function that was called.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::ffi::OsString;
use std::sync::OnceLock;

use crate::driver::{self, NAMES, stand_in};
use crate::library::{AlreadyBound, Library, LoadError};
use crate::names::names;

macro_rules! table {
    ($($name:ident)*) => {
        /// Every driver function that this crate defines.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        /// The function that each entry point jumps to: at first [`unresolved`], then the driver's
        /// function or the one that stands in for it.
        static SLOTS: [AtomicPtr<()>; SYMBOLS.len()] =
            [const { AtomicPtr::new(unresolved as extern "C" fn() as *mut ()) }; SYMBOLS.len()];

        #[allow(non_camel_case_types)]
        enum Index { $($name),* }

        // An entry point leaves all arguments where the caller put them. It uses only the registers
        // that the calling convention reserves for such jumps, and leaves its slot's address there
        // for `unresolved`. The symbols are hidden, so that a library built with this crate does
        // not export them to its process.
        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    concat!(".hidden ", stringify!($name)),
                    "lea r11, [rip + {slots} + {offset}]",
                    "jmp qword ptr [r11]",
                    slots = sym SLOTS,
                    offset = const Index::$name as usize * 8,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    concat!(".hidden ", stringify!($name)),
                    "adrp x16, {slots} + {offset}",
                    "add x16, x16, :lo12:{slots} + {offset}",
                    "ldar x17, [x16]",
                    "br x17",
                    slots = sym SLOTS,
                    offset = const Index::$name as usize * 8,
                );
            }
        )*
    };
}

names!(table);

/// Opens the driver's library and returns its name. The process opens it once; every later call
/// returns the same result.
///
/// Calling this is optional, because the first call of any driver function does the same.
///
/// # Errors
///
/// [`LoadError`] if there is no driver.
///
/// ```
/// match libcuda_shim::load() {
///     Ok(library) => println!("driver: {library}"),
///     Err(error) => println!("no driver: {error}"),
/// }
/// ```
pub fn load() -> Result<&'static str, &'static LoadError> {
    state().as_ref().map(|library| library.name())
}

/// Names the driver's library, a path or a name, instead of the usual ones. The process must call
/// this before [`load`], [`has`] and any driver function.
///
/// # Errors
///
/// [`AlreadyBound`] if one of these was called, or this function.
///
/// ```
/// libcuda_shim::set_library("/opt/driver/libcuda.so.1")?;
/// if let Err(error) = libcuda_shim::load() {
///     assert_eq!(error.looked_for, ["/opt/driver/libcuda.so.1"]);
/// }
/// # Ok::<(), libcuda_shim::library::AlreadyBound>(())
/// ```
pub fn set_library(name: impl Into<OsString>) -> Result<(), AlreadyBound> {
    NAMES.replace(name)
}

/// Returns whether there is a driver that has the function `name`, even if [`SYMBOLS`] lacks it.
///
/// ```
/// assert!(!libcuda_shim::has("cuNoSuchFunction"));
/// ```
pub fn has(name: &str) -> bool {
    state()
        .as_ref()
        .is_ok_and(|library| library.symbol(name).is_some())
}

fn state() -> &'static Result<Library, LoadError> {
    static STATE: OnceLock<Result<Library, LoadError>> = OnceLock::new();
    STATE.get_or_init(|| {
        let library = driver::open();
        for (name, slot) in SYMBOLS.iter().zip(&SLOTS) {
            let found = library.as_ref().ok().and_then(|found| found.symbol(name));
            let target = found.map_or_else(
                || stand_in(name, library.is_ok()),
                |found| found.as_ptr().cast(),
            );
            slot.store(target, Ordering::Release);
        }
        library
    })
}

/// Binds the driver, which fills every slot. A panic aborts, because it cannot leave an `extern
/// "C"` function.
extern "C" fn bind() {
    // If there is no driver, the slots have stand-ins that return the error.
    let _ = load();
}

/// The initial value of every slot. The entry point left its slot's address in `r11`. All integer
/// and vector registers that can carry arguments are saved; arguments on the stack are not moved.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn unresolved() {
    naked_asm!(
        // Seven words after the return address leave the stack aligned for the call.
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r11",
        "sub rsp, 128",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "call {bind}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop r11",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp qword ptr [r11]",
        bind = sym bind,
    )
}

/// The initial value of every slot. The entry point left its slot's address in `x16`. All integer
/// and vector registers that can carry arguments are saved; arguments on the stack are not moved.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn unresolved() {
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "sub sp, sp, #208",
        "stp x0, x1, [sp]",
        "stp x2, x3, [sp, #16]",
        "stp x4, x5, [sp, #32]",
        "stp x6, x7, [sp, #48]",
        "stp x8, x16, [sp, #64]",
        "stp q0, q1, [sp, #80]",
        "stp q2, q3, [sp, #112]",
        "stp q4, q5, [sp, #144]",
        "stp q6, q7, [sp, #176]",
        "bl {bind}",
        "ldp x0, x1, [sp]",
        "ldp x2, x3, [sp, #16]",
        "ldp x4, x5, [sp, #32]",
        "ldp x6, x7, [sp, #48]",
        "ldp x8, x16, [sp, #64]",
        "ldp q0, q1, [sp, #80]",
        "ldp q2, q3, [sp, #112]",
        "ldp q4, q5, [sp, #144]",
        "ldp q6, q7, [sp, #176]",
        "add sp, sp, #208",
        "ldp x29, x30, [sp], #16",
        "ldar x17, [x16]",
        "br x17",
        bind = sym bind,
    )
}
