//! Pointers from outside, checked as far as they can be: null, alignment, and a length that memory can hold.

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
            allowed: "no more than memory can hold",
        });
    }
    Ok(())
}

/// Puts a value where the caller wants it.
///
/// # Safety
///
/// A pointer that is not null and aligned must be one to memory of a `T`.
pub(crate) unsafe fn write<T>(
    pointer: *mut T,
    what: &'static str,
    value: T,
) -> Result<(), Failure> {
    check(pointer, what)?;
    // SAFETY: not null, aligned, and by the caller's promise memory of a T.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Null and misaligned pointers to results are found before there are any.
pub(crate) fn check_out<T>(pointer: *mut T, what: &'static str) -> Result<(), Failure> {
    check(pointer, what)
}

/// The elements of a list, which may be null without any.
///
/// # Safety
///
/// A pointer that is not null and aligned must be one to `len` elements that nobody writes while `'a` lasts.
pub(crate) unsafe fn list<'a, T: Pod>(
    pointer: *const T,
    len: usize,
    what: &'static str,
) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check_len(pointer, len, what)?;
    // SAFETY: checked above, and the caller's promise; any bits are a Pod.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// A list that is there or not.
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
    // SAFETY: the caller's promise.
    unsafe { list(pointer, len, what) }.map(Some)
}

/// Room for `len` elements, or for none.
///
/// # Safety
///
/// A pointer that is not null and aligned must be one to room for `len` elements that nobody else uses while `'a` lasts.
pub(crate) unsafe fn copy_out<T: Pod>(
    from: &[T],
    pointer: *mut T,
    room: usize,
    what: &'static str,
) -> Result<(), Failure> {
    let needed = from.len();
    if needed > room {
        return Err(Failure::TooSmall { room, needed });
    }
    if needed > 0 {
        check_len(pointer.cast_const(), room, what)?;
        // SAFETY: checked above, and the caller's promise; the list is ours, so the two do not overlap.
        unsafe { pointer.copy_from_nonoverlapping(from.as_ptr(), needed) };
    }
    Ok(())
}

/// A structure that begins with its size, of this version or of another: members that the caller does not have are those of
/// `default`; members that this version does not have must be 0.
///
/// # Safety
///
/// A pointer that is not null and aligned must be one to as many bytes as its first member, a `u64`, says. `T` is `repr(C)`,
/// begins with that member, has no padding, and any bits are a `T`.
pub(crate) unsafe fn sized<T>(
    pointer: *const T,
    first_version: usize,
    default: T,
    what: &'static str,
) -> Result<T, Failure> {
    check(pointer, what)?;
    let bytes = pointer.cast::<u8>();
    // SAFETY: the caller's promise.
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
    if given > MOST {
        return Err(version("beyond anything that it can be; was it set?"));
    }
    let known = given.min(size_of::<T>());
    // SAFETY: `given` bytes by the caller's promise.
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

/// No structure will ever be larger.
const MOST: usize = 4096;

/// Puts as much of a structure that begins with its size as the caller has room for, and the size put.
///
/// # Safety
///
/// A pointer that is not null and aligned must be one to `size` bytes. `T` as for [`sized`].
pub(crate) unsafe fn write_sized<T>(
    pointer: *mut T,
    size: usize,
    first_version: usize,
    value: T,
    what: &'static str,
) -> Result<(), Failure> {
    check(pointer.cast_const(), what)?;
    if !(first_version..=MOST).contains(&size) {
        let problem = "pass sizeof of the structure";
        return Err(Failure::Version {
            what,
            given: size,
            problem,
        });
    }
    let bytes = pointer.cast::<u8>();
    let known = size.min(size_of::<T>());
    // SAFETY: `size` bytes by the caller's promise, which begin with a `u64`.
    unsafe {
        bytes.copy_from_nonoverlapping((&raw const value).cast::<u8>(), known);
        bytes.add(known).write_bytes(0, size - known);
        pointer.cast::<u64>().write(size as u64);
    }
    Ok(())
}
