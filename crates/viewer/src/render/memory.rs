//! The memory of drivers that draw on the CPU.

/// Has the allocator retain freed memory of up to 64 MiB for each of its pools.
///
/// llvmpipe allocates the triangles of a picture in blocks that it frees after drawing. glibc
/// returns such memory to the kernel at once. Getting it anew took a fifth of a picture's time.
pub(super) fn retain() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, bytes) in [
        (libc::M_MMAP_THRESHOLD, 32 << 20),
        (libc::M_TRIM_THRESHOLD, 64 << 20),
    ] {
        // SAFETY: it only sets a parameter of the allocator, under the allocator's lock.
        let set = unsafe { libc::mallopt(parameter, bytes) };
        debug_assert_eq!(set, 1);
    }
}
