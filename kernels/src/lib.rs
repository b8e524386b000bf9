//! The CUDA kernels of radsweep as portable images: PTX text, compiled for the device at hand by
//! its driver at first use.
//!
//! The images are those checked in under `prebuilt/`; the build fails if they were made from other
//! sources than the `.cu` files of this crate. If `RADSWEEP_NVCC` names a compiler, the build makes
//! them with it (see `build.rs`).
//!
//! # What an image needs
//!
//! A GPU of compute capability 7.5 (Turing, 2018) or later, and a driver of CUDA 10.1 (R418, 2019)
//! or later: an image declares PTX 6.4 and the target `sm_75`. ([`SAP_90`] needs more; [`SAP`] has
//! the same kernels.) Left alone, the compiler declares the PTX version of its own release, and
//! asks for a driver as new as itself. The build lowers the version and has the assembler confirm
//! that the text needs no later one. The checked-in images also pass the assemblers of CUDA 10.1
//! (for `sm_75`) and 11.2 (`sm_75`, `sm_80`); they have not been run on drivers that old.
//!
//! # Example
//!
//! ```
//! let image = &radsweep_kernels::ONESWEEP_32;
//! assert_eq!(image.name, "onesweep_32");
//! assert!(image.ptx().starts_with(b".version 6.4"));
//! println!("{} bytes, from {}", image.ptx().len(), radsweep_kernels::ORIGIN);
//! ```

pub mod wgsl;

use miniz_oxide::inflate::decompress_to_vec;
use std::fmt;
use std::sync::OnceLock;

/// One module of kernels, ready for the driver to load. Compressed in the binary: PTX takes a fifth
/// of its size then.
pub struct Image {
    /// What the module is called, in `images.txt` and in messages.
    pub name: &'static str,
    /// A DEFLATE stream (RFC 1951).
    packed: &'static [u8],
    text: OnceLock<Vec<u8>>,
}

impl Image {
    /// PTX text in ASCII, without the NUL byte that `cuModuleLoadData` wants after it. Inflated by
    /// the first call, about 1.4 ms a megabyte, and kept.
    #[must_use]
    pub fn ptx(&self) -> &[u8] {
        // What the build compressed can be inflated; were it not so, an empty image is one that no
        // driver loads.
        self.text
            .get_or_init(|| decompress_to_vec(self.packed).unwrap_or_default())
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Image").field(&self.name).finish()
    }
}

/// SHA-256, in hex, over `images.txt` and the `.cu` and `.cuh` sources that the images were made
/// from.
pub const SOURCE_HASH: &str = env!("RADSWEEP_SOURCE_HASH");

/// Where the images came from: `prebuilt`, or the compiler that made them during the build.
pub const ORIGIN: &str = env!("RADSWEEP_ORIGIN");

macro_rules! image {
    ($(#[$doc:meta])* $constant:ident, $name:literal) => {
        $(#[$doc])*
        pub static $constant: Image = Image {
            name: $name,
            packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ptx.deflate")),
            text: OnceLock::new(),
        };
    };
}

image! {
    /// Onesweep for up to 2³⁰ − 1 keys of 32 bits. Needs a driver of CUDA 10.1 (R418).
    ONESWEEP_32, "onesweep_32"
}
image! {
    /// Onesweep for up to 2³⁰ − 1 keys of 64 bits. Needs a driver of CUDA 10.1 (R418).
    ONESWEEP_64, "onesweep_64"
}
image! {
    /// Onesweep for any number of 32-bit keys: 64-bit offsets. Needs a driver of CUDA 10.1 (R418).
    ONESWEEP_32_LARGE, "onesweep_32_large"
}
image! {
    /// Onesweep for any number of 64-bit keys: 64-bit offsets. Needs a driver of CUDA 10.1 (R418).
    ONESWEEP_64_LARGE, "onesweep_64_large"
}
image! {
    /// Up to 4096 keys of 32 bits by one block. Needs a driver of CUDA 10.1 (R418).
    ONESWEEP_BLOCK_32, "onesweep_block_32"
}
image! {
    /// Up to 4096 keys of 64 bits by one block. Needs a driver of CUDA 10.1 (R418).
    ONESWEEP_BLOCK_64, "onesweep_block_64"
}
image! {
    /// Onesweep in one launch, for small numbers of 32-bit keys. Needs a driver of CUDA 10.1
    /// (R418).
    ONESWEEP_SMALL_32, "onesweep_small_32"
}
image! {
    /// Onesweep in one launch, for small numbers of 64-bit keys. Needs a driver of CUDA 10.1
    /// (R418).
    ONESWEEP_SMALL_64, "onesweep_small_64"
}
image! {
    /// Nearly sorted input, for keys of 32 bits. Needs a driver of CUDA 10.1 (R418).
    ADAPTIVE_32, "adaptive_32"
}
image! {
    /// Nearly sorted input, for keys of 64 bits. Needs a driver of CUDA 10.1 (R418).
    ADAPTIVE_64, "adaptive_64"
}
image! {
    /// Moves records in the order of an index. Needs a driver of CUDA 10.1 (R418).
    GATHER, "gather"
}
image! {
    /// The radix sorts of Ha, Krüger and Silva for keys of 32 bits. Needs a driver of CUDA 10.1
    /// (R418).
    HA_RADIX_32, "ha_radix_32"
}
image! {
    /// The radix sorts of Ha, Krüger and Silva for keys of 64 bits. Needs a driver of CUDA 10.1
    /// (R418).
    HA_RADIX_64, "ha_radix_64"
}
image! {
    /// Sorts that the papers compare theirs with, for keys of 32 bits. Needs a driver of CUDA 10.1
    /// (R418).
    BASELINES, "baselines"
}
image! {
    /// The radix sort of Satish, Harris and Garland for keys of 32 bits. Needs a driver of CUDA
    /// 10.1 (R418).
    SATISH_RADIX_32, "satish_radix_32"
}
image! {
    /// The radix sort of Satish, Harris and Garland for keys of 64 bits. Needs a driver of CUDA
    /// 10.1 (R418).
    SATISH_RADIX_64, "satish_radix_64"
}
image! {
    /// The merge sort of Satish, Harris and Garland for keys of 32 bits. Needs a driver of CUDA
    /// 10.1 (R418).
    SATISH_MERGE_32, "satish_merge_32"
}
image! {
    /// The merge sort of Satish, Harris and Garland for keys of 64 bits. Needs a driver of CUDA
    /// 10.1 (R418).
    SATISH_MERGE_64, "satish_merge_64"
}
image! {
    /// The merge sort of Satish, Harris and Garland for keys of many words. Needs a driver of CUDA
    /// 10.1 (R418).
    SATISH_MERGE_WORDS, "satish_merge_words"
}
image! {
    /// GPU-Quicksort for keys of 32 bits. Needs a driver of CUDA 10.1 (R418).
    QUICKSORT_32, "quicksort_32"
}
image! {
    /// GPU-Quicksort for keys of 64 bits. Needs a driver of CUDA 10.1 (R418).
    QUICKSORT_64, "quicksort_64"
}
image! {
    /// GPU Bucket Sort for keys of 32 bits. Needs a driver of CUDA 10.1 (R418).
    BUCKET_SORT_32, "bucket_sort_32"
}
image! {
    /// GPU Bucket Sort for keys of 64 bits. Needs a driver of CUDA 10.1 (R418).
    BUCKET_SORT_64, "bucket_sort_64"
}
image! {
    /// Sort and sweep: what turns boxes into sorted pairs, and pairs into events. Needs a driver of
    /// CUDA 10.1 (R418).
    SAP, "sap"
}
image! {
    /// The broad phase for devices of compute capability 9.0 (Hopper) or later, whose kernels let
    /// the next one begin while they run. Needs a driver of CUDA 11.8 (R520) to load;
    /// `sap` takes it from CUDA 12.3 (R545) on.
    SAP_90, "sap_90"
}
image! {
    /// Several ranks: boxes and pairs on their way between devices. Needs a driver of CUDA 10.1
    /// (R418).
    DIST, "dist"
}
image! {
    /// Several ranks: the sort of their keys of 32 bits. Needs a driver of CUDA 10.1 (R418).
    DIST_SORT_32, "dist_sort_32"
}
image! {
    /// Several ranks: the sort of their keys of 64 bits. Needs a driver of CUDA 10.1 (R418).
    DIST_SORT_64, "dist_sort_64"
}
image! {
    /// Several ranks: the sort of their keys of 32 bits by segments, without values. Needs a
    /// driver of CUDA 10.1 (R418).
    DIST_SEGMENTS_0, "dist_segments_0"
}
image! {
    /// Several ranks: the sort of their keys of 32 bits by segments, with values of 4
    /// bytes. Needs a driver of CUDA 10.1 (R418).
    DIST_SEGMENTS_4, "dist_segments_4"
}
image! {
    /// Several ranks: the sort of their keys of 32 bits by segments, with values of 8
    /// bytes. Needs a driver of CUDA 10.1 (R418).
    DIST_SEGMENTS_8, "dist_segments_8"
}
image! {
    /// The demo scenes: particles on a landscape, and galaxies. Needs a driver of CUDA 10.1 (R418).
    DEMO, "demo"
}

/// Sources that are compiled at run time, with what a caller adds.
pub mod sources {
    /// Names and texts, for a compiler without files: `satish_merge_records.cuh`, which sorts
    /// records by an order that stands before it, and what it includes.
    pub const RECORDS: &[(&str, &str)] = &[
        (
            "satish_merge_records.cuh",
            include_str!("../sort/satish_merge_records.cuh"),
        ),
        ("satish_merge.cuh", include_str!("../sort/satish_merge.cuh")),
        ("outcome.cuh", include_str!("../sort/outcome.cuh")),
        (
            "block/merge_path.cuh",
            include_str!("../block/merge_path.cuh"),
        ),
        ("block/odd_even.cuh", include_str!("../block/odd_even.cuh")),
        ("common/search.cuh", include_str!("../common/search.cuh")),
        ("common/types.cuh", include_str!("../common/types.cuh")),
        ("common/warp.cuh", include_str!("../common/warp.cuh")),
        ("stdint.h", STDINT),
    ];

    /// The few types that the sources use; a compiler at run time need not have the system's
    /// header.
    const STDINT: &str = "#pragma once
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
";
}
