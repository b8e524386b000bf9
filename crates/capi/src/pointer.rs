//! Checks pointers from the caller as far as possible: null, alignment, and a length that fits in
//! memory.

use crate::error::Failure;
use bytemuck::Pod;

fn check<T>(pointer: *const T, what: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::Null { what });
    }
    if !pointer.is_aligned() {
        return Err(Failure::Alignment {
            what,
            address: pointer.addr(),
            align: align_of::<T>(),
        });
    }
    Ok(())
}

pub(crate) fn check_len<T>(
    pointer: *const T,
    len: usize,
    what: &'static str,
) -> Result<(), Failure> {
    check(pointer, what)?;
    let most = isize::MAX as usize / size_of::<T>();
    if len > most || pointer.addr().checked_add(len * size_of::<T>()).is_none() {
        return Err(Failure::Argument {
            what,
            given: format!("{len} elements"),
            allowed: "no more than fits in memory",
        });
    }
    Ok(())
}

/// Writes a value to the caller's memory.
///
/// # Safety
///
/// A pointer that is not null and aligned must point to memory of a `T`.
pub(crate) unsafe fn write<T>(
    pointer: *mut T,
    what: &'static str,
    value: T,
) -> Result<(), Failure> {
    check(pointer, what)?;
    // SAFETY: not null and aligned; the caller guarantees memory of a T.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Checks a pointer to a result before the work.
pub(crate) fn check_out<T>(pointer: *mut T, what: &'static str) -> Result<(), Failure> {
    check(pointer, what)
}

/// Returns the elements of a list; null is allowed if it has none.
///
/// # Safety
///
/// A pointer that is not null and aligned must point to `len` elements that nobody writes during
/// `'a`.
pub(crate) unsafe fn list<'a, T: Pod>(
    pointer: *const T,
    len: usize,
    what: &'static str,
) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check_len(pointer, len, what)?;
    // SAFETY: checked above and guaranteed by the caller; any bits are a Pod.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// Returns the elements of a list, or `None` for null.
///
/// # Safety
///
/// As [`list`].
pub(crate) unsafe fn optional<'a, T: Pod>(
    pointer: *const T,
    len: usize,
    what: &'static str,
) -> Result<Option<&'a [T]>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { list(pointer, len, what) }.map(Some)
}

/// Copies elements to the caller's `out`, and writes their number, also if the capacity is too
/// small.
///
/// # Safety
///
/// A pointer that is not null and aligned must point to memory for `capacity` elements, or for the
/// number, that nobody else uses during the call.
pub(crate) unsafe fn copy_out<T: Pod>(
    from: &[T],
    out: *mut T,
    capacity: usize,
    count: *mut usize,
) -> Result<(), Failure> {
    let needed = from.len();
    // SAFETY: guaranteed by the caller.
    unsafe { write(count, "count", needed)? };
    if needed > capacity {
        return Err(Failure::TooSmall { capacity, needed });
    }
    if needed > 0 {
        check_len(out.cast_const(), capacity, "out")?;
        // SAFETY: checked above and guaranteed by the caller; the source is memory of the library,
        // so the two do not overlap.
        unsafe { out.copy_from_nonoverlapping(from.as_ptr(), needed) };
    }
    Ok(())
}

/// Reads a structure of any version that begins with its size. Members that the caller's version
/// lacks are those of `default`; members that this version lacks must be 0.
///
/// # Safety
///
/// A pointer that is not null and aligned must point to as many bytes as its first member, a `u64`,
/// says. `T` is `repr(C)`, begins with that member, has no padding, and any bits are a `T`.
pub(crate) unsafe fn sized<T>(
    pointer: *const T,
    first_version: usize,
    default: T,
    what: &'static str,
) -> Result<T, Failure> {
    check(pointer, what)?;
    let bytes = pointer.cast::<u8>();
    // SAFETY: guaranteed by the caller.
    let given = unsafe { pointer.cast::<u64>().read() };
    let given = usize::try_from(given).unwrap_or(usize::MAX);
    let version = |problem| Failure::Version {
        what,
        given,
        problem,
    };
    if given < first_version {
        return Err(version("below that of the first version; was it set?"));
    }
    if given > MAX_SIZE {
        return Err(version("beyond anything that it can be; was it set?"));
    }
    let known = given.min(size_of::<T>());
    // SAFETY: the caller guarantees `given` bytes.
    let rest = unsafe { std::slice::from_raw_parts(bytes.add(known), given - known) };
    if rest.iter().any(|&byte| byte != 0) {
        return Err(version("members that this version does not know are set"));
    }
    let mut value = default;
    // SAFETY: `known` bytes fit in both, and any bits are a T.
    unsafe {
        (&raw mut value)
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes, known)
    };
    Ok(value)
}

/// Max size of a structure of any version.
const MAX_SIZE: usize = 4096;

/// Writes as much of a structure as fits in the caller's `size` bytes, with the number of bytes
/// written as its first member.
///
/// # Safety
///
/// A pointer that is not null and aligned must point to `size` bytes. `T` as for [`sized`].
pub(crate) unsafe fn write_sized<T>(
    pointer: *mut T,
    size: usize,
    first_version: usize,
    value: T,
    what: &'static str,
) -> Result<(), Failure> {
    check(pointer.cast_const(), what)?;
    if !(first_version..=MAX_SIZE).contains(&size) {
        let problem = "pass sizeof of the structure";
        return Err(Failure::Version {
            what,
            given: size,
            problem,
        });
    }
    let bytes = pointer.cast::<u8>();
    let known = size.min(size_of::<T>());
    // SAFETY: the caller guarantees `size` bytes, which begin with a `u64`.
    unsafe {
        bytes.copy_from_nonoverlapping((&raw const value).cast::<u8>(), known);
        bytes.add(known).write_bytes(0, size - known);
        pointer.cast::<u64>().write(size as u64);
    }
    Ok(())
}
