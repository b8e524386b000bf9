//! A driver of four functions, compiled by the tests. Each returns 0 if its arguments are those
//! that the tests pass, else 1000 plus the index of the first wrong one.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};

static INITIALISED: AtomicI32 = AtomicI32::new(0);

fn check(given: &[u64], expected: &[u64]) -> i32 {
    assert_eq!(given.len(), expected.len());
    given
        .iter()
        .zip(expected)
        .position(|(g, e)| g != e)
        .map_or(0, |index| 1000 + index as i32)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: u32) -> i32 {
    INITIALISED.fetch_add(1, Ordering::SeqCst);
    check(&[flags.into()], &[0])
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> i32 {
    unsafe { *version = 12_090 + INITIALISED.load(Ordering::SeqCst) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel(
    function: u64,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: u32,
    stream: u64,
    params: *const c_void,
    extra: *const c_void,
) -> i32 {
    let numbers = [gx, gy, gz, bx, by, bz, shared].map(u64::from);
    check(
        &[
            &[function][..],
            &numbers,
            &[stream, params as u64, extra as u64],
        ]
        .concat(),
        &[1 << 40, 2, 3, 4, 5, 6, 7, 8, 1 << 41, 10, 11],
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn cuTexRefSetMipmapLevelClamp(reference: u64, min: f32, max: f32) -> i32 {
    check(
        &[reference, min.to_bits().into(), max.to_bits().into()],
        &[1 << 42, 0.25f32.to_bits().into(), 1e30f32.to_bits().into()],
    )
}
