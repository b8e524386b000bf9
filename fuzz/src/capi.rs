//! Makes calls of the C ABI in any order with any arguments that it must check: invalid handles,
//! null, misaligned and impossible pointers, sizes and numbers. Pointers to invalid memory are not
//! tried: valid ones are the caller's duty.

use arbitrary::{Result, Unstructured};
use radsweep_capi::*;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

type Handle = *mut RadsweepBroadPhase;

pub fn target(data: &[u8]) {
    let mut handles: Vec<Handle> = Vec::new();
    // The input may end early, which is no finding.
    let _ = run(&mut Unstructured::new(data), &mut handles);
    for handle in handles {
        // Handles that a call has destroyed are errors.
        let status = radsweep_destroy(handle);
        assert!(matches!(
            status,
            RadsweepStatus::Ok | RadsweepStatus::Handle
        ));
        assert_eq!(radsweep_destroy(handle), RadsweepStatus::Handle);
    }
}

fn run(bytes: &mut Unstructured, handles: &mut Vec<Handle>) -> Result<()> {
    let mut memory = vec![0_u8; 4096];
    // Most failures need a valid handle.
    let mut made = null_mut();
    // SAFETY: memory for a handle.
    assert_eq!(
        unsafe { radsweep_create(null(), &mut made) },
        RadsweepStatus::Ok
    );
    handles.push(made);
    while !bytes.is_empty() {
        let handle = any_handle(bytes, handles)?;
        let fill = if bytes.ratio(1, 4)? {
            bytes.int_in_range(0..=300)?
        } else {
            0
        };
        for byte in memory.iter_mut().take(fill) {
            *byte = bytes.arbitrary()?;
        }
        let status = match bytes.int_in_range(0..=16)? {
            0 => create(bytes, handles)?,
            1 => radsweep_destroy(handle),
            call @ 2..=9 => update(call, handle, bytes, &memory)?,
            call @ 10..=12 => read(call, handle, bytes)?,
            call => query(call, handle, bytes, &memory)?,
        };
        assert_ne!(status, RadsweepStatus::Panic, "{}", message());
        if status != RadsweepStatus::Ok {
            assert!(!message().is_empty());
        }
    }
    Ok(())
}

fn create(bytes: &mut Unstructured, handles: &mut Vec<Handle>) -> Result<RadsweepStatus> {
    let mut made = null_mut();
    let config = any_config(bytes)?;
    let config = if bytes.ratio(1, 4)? {
        null()
    } else {
        &raw const config
    };
    // SAFETY: memory for a handle, and a configuration or null.
    let status = unsafe { radsweep_create(config, &mut made) };
    assert_eq!(status == RadsweepStatus::Ok, !made.is_null());
    if status == RadsweepStatus::Ok {
        handles.push(made);
    }
    Ok(status)
}

/// Makes a call that finds pairs, or forgets or awaits them.
fn update(
    call: u32,
    handle: Handle,
    bytes: &mut Unstructured,
    memory: &[u8],
) -> Result<RadsweepStatus> {
    let (mut pairs, mut count) = (null(), 0_usize);
    // SAFETY: pointers that are not null or misaligned point to as much as they claim.
    let status = unsafe {
        match call {
            2 | 3 => {
                let (boxes, len) = any_list(bytes, memory)?;
                radsweep_update(handle, boxes, len)
            }
            4 | 5 => {
                let frame = any_frame(bytes, memory)?;
                radsweep_update_frame(handle, &frame)
            }
            6 => radsweep_clear(handle),
            7 => radsweep_synchronize(handle),
            8 => {
                let (first, second) = (any_frame(bytes, memory)?, any_frame(bytes, memory)?);
                radsweep_overlaps_between(handle, &first, &second, &mut pairs, &mut count)
            }
            _ => {
                let frame = any_frame(bytes, memory)?;
                let mut seen = 0_u64;
                let mut total = 0;
                let chunk = bytes.int_in_range(0..=40)?;
                let user = (&raw mut seen).cast();
                let status = radsweep_for_each_pair_chunk(
                    handle,
                    &frame,
                    chunk,
                    Some(add),
                    user,
                    &mut total,
                );
                assert!(status != RadsweepStatus::Ok || seen == total);
                status
            }
        }
    };
    Ok(status)
}

/// Makes a call that reads what the last update found.
fn read(call: u32, handle: Handle, bytes: &mut Unstructured) -> Result<RadsweepStatus> {
    let (mut pairs, mut count) = (null(), 0_usize);
    // SAFETY: memory for what is read, of the sizes that are given.
    let status = unsafe {
        match call {
            10 => {
                let which = bytes.int_in_range(0..=3)?;
                let status = radsweep_pairs(handle, which, &mut pairs, &mut count);
                if status == RadsweepStatus::Ok {
                    let list = std::slice::from_raw_parts(pairs, count);
                    assert!(
                        list.is_sorted_by_key(|pair| (pair.a, pair.b))
                            && list.iter().all(|pair| pair.a < pair.b)
                    );
                }
                status
            }
            11 => {
                let mut copy = vec![RadsweepPair { a: 0, b: 0 }; bytes.int_in_range(0..=64)?];
                let out = if copy.is_empty() {
                    null_mut()
                } else {
                    copy.as_mut_ptr()
                };
                let which = bytes.int_in_range(0..=3)?;
                let status = radsweep_copy_pairs(handle, which, out, copy.len(), &mut count);
                assert!(status != RadsweepStatus::Ok || count <= copy.len());
                status
            }
            _ => {
                let mut report: [u64; 64] = [7; 64];
                let size = bytes.int_in_range(0..=512)?;
                let status = radsweep_report(handle, report.as_mut_ptr().cast(), size);
                assert!(
                    report[size.div_ceil(8)..].iter().all(|&word| word == 7),
                    "written beyond its size"
                );
                status
            }
        }
    };
    Ok(status)
}

/// Makes a query, or asks where the pairs are on the device.
fn query(
    call: u32,
    handle: Handle,
    bytes: &mut Unstructured,
    memory: &[u8],
) -> Result<RadsweepStatus> {
    let (mut indices, mut hits, mut count, mut address) = (null(), null(), 0_usize, 0_u64);
    // SAFETY: pointers that are not null or misaligned point to as much as they claim.
    let status = unsafe {
        match call {
            13 => {
                let (query, len) = any_list::<RadsweepAabb>(bytes, memory)?;
                let query = if len == 0 { null() } else { query };
                radsweep_query_box(handle, query, &mut indices, &mut count)
            }
            14 => {
                let numbers = any_numbers(bytes)?;
                let center = numbers.as_ptr();
                radsweep_query_sphere(handle, center, numbers[3], &mut indices, &mut count)
            }
            15 => {
                let numbers = any_numbers(bytes)?;
                let out = if bytes.ratio(1, 8)? {
                    null_mut()
                } else {
                    &raw mut hits
                };
                let (origin, dir) = (numbers.as_ptr(), numbers[1..].as_ptr());
                radsweep_query_ray(handle, origin, dir, numbers[6], out, &mut count)
            }
            _ => radsweep_device_pairs(handle, &mut address, &mut count),
        }
    };
    Ok(status)
}

fn message() -> String {
    // SAFETY: never null, ends with zero.
    unsafe { CStr::from_ptr(radsweep_last_error()) }
        .to_string_lossy()
        .into_owned()
}

unsafe extern "C" fn add(_: *const RadsweepPair, count: usize, user: *mut c_void) {
    // SAFETY: the number that was given.
    unsafe { *user.cast::<u64>() += count as u64 };
}

fn any_handle(bytes: &mut Unstructured, handles: &[Handle]) -> Result<Handle> {
    if !handles.is_empty() && bytes.ratio(7, 8)? {
        let handle = handles[bytes.choose_index(handles.len())?];
        return Ok(if bytes.ratio(1, 16)? {
            handle.wrapping_byte_add(bytes.int_in_range(1..=7)?)
        } else {
            handle
        });
    }
    Ok(std::ptr::without_provenance_mut(bytes.arbitrary()?))
}

/// Returns a list in `memory`, or a null, misaligned or impossibly long one.
fn any_list<T>(bytes: &mut Unstructured, memory: &[u8]) -> Result<(*const T, usize)> {
    let start = memory.as_ptr().align_offset(8);
    let at = memory[start..].as_ptr();
    let most = (memory.len() - start - 8) / size_of::<T>();
    Ok(match bytes.int_in_range(0..=15)? {
        0 => (null(), bytes.arbitrary()?),
        1 => (at.wrapping_add(1).cast(), bytes.arbitrary()?),
        2 => (at.cast(), usize::MAX - bytes.int_in_range(0..=64)?),
        _ => (at.cast(), bytes.int_in_range(0..=most.min(40))?),
    })
}

fn any_numbers(bytes: &mut Unstructured) -> Result<[f32; 7]> {
    let bits: [u32; 7] = bytes.arbitrary()?;
    Ok(bits.map(f32::from_bits))
}

fn any_config(bytes: &mut Unstructured) -> Result<RadsweepConfig> {
    // SAFETY: zeros are a configuration, and the call fills one of its size.
    let mut config = unsafe {
        let mut config: RadsweepConfig = std::mem::zeroed();
        assert_eq!(
            radsweep_config_default(&mut config, size_of::<RadsweepConfig>()),
            RadsweepStatus::Ok
        );
        config
    };
    config.backend = bytes.int_in_range(0..=3)?;
    config.strategy = bytes.int_in_range(0..=4)?;
    config.rule = bytes.int_in_range(0..=2)?;
    config.on_invalid = bytes.int_in_range(0..=2)?;
    config.events = bytes.int_in_range(0..=2)?;
    if bytes.ratio(1, 3)? {
        config.margin = f32::from_bits(bytes.arbitrary()?);
        config.pair_memory = bytes.int_in_range(0..=100)?;
        config.initial_pair_capacity = bytes.int_in_range(0..=1000)?;
        config.min_resting = bytes.int_in_range(0..=3)?;
    }
    if bytes.ratio(1, 8)? {
        config.size = bytes.int_in_range(0..=size_of::<RadsweepConfig>() as u64)?;
    }
    Ok(config)
}

/// Returns a frame whose lists have as many elements as it says, or are invalid.
fn any_frame(bytes: &mut Unstructured, memory: &[u8]) -> Result<RadsweepFrame> {
    // SAFETY: zeros are a frame, and the call fills one of its size.
    let mut frame = unsafe {
        let mut frame: RadsweepFrame = std::mem::zeroed();
        assert_eq!(
            radsweep_frame_default(&mut frame, size_of::<RadsweepFrame>()),
            RadsweepStatus::Ok
        );
        frame
    };
    (frame.boxes, frame.count) = any_list(bytes, memory)?;
    let at = memory[memory.as_ptr().align_offset(8)..].as_ptr();
    // The other lists have the length of the list of boxes, and fit in the memory.
    if frame.count <= 40 {
        let mut sometimes =
            |one_in| -> Result<*const u8> { Ok(if bytes.ratio(1, one_in)? { at } else { null() }) };
        frame.filters = sometimes(4)?.cast();
        frame.worlds = sometimes(4)?.cast();
        frame.ends = sometimes(6)?.cast();
        frame.boxes64 = sometimes(8)?.cast();
        frame.excluded = sometimes(8)?.cast();
        frame.changed = sometimes(4)?.cast();
        frame.changed_count = if frame.changed.is_null() { 0 } else { 3 };
        frame.excluded_count = if frame.excluded.is_null() { 0 } else { 3 };
    }
    if bytes.ratio(1, 16)? {
        frame.size = bytes.int_in_range(0..=size_of::<RadsweepFrame>() as u64)?;
    }
    Ok(frame)
}
