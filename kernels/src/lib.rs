//! The CUDA kernels of radsweep as portable images: PTX text, compiled for the device at hand by its driver at first use.
//!
//! The images are built from the `.cu` files of this crate by `nvcc` where the build finds one, and are otherwise the
//! ones checked in under `prebuilt/`; the build fails if those were made from other sources (see `build.rs`).
//!
//! # What an image needs
//!
//! A GPU of compute capability 7.5 (Turing, 2018) or later, and a driver of CUDA 10.1 (R418, 2019) or later: an image
//! declares PTX 6.4 and the target `sm_75`. Left alone, the compiler declares the PTX version of its own release, and asks for
//! a driver as new as itself. The build lowers the version and has the assembler confirm that the text needs no later one.
//! The checked-in images also pass the assemblers of CUDA 10.1 (for `sm_75`) and 11.2 (`sm_75`, `sm_80`); they have not been
//! run on drivers that old.
//!
//! # Example
//!
//! ```
//! let image = &radsweep_kernels::ONESWEEP_32;
//! assert_eq!(image.name, "onesweep_32");
//! assert!(image.ptx.starts_with(b".version 6.4"));
//! println!("{} bytes, from {}", image.ptx.len(), radsweep_kernels::ORIGIN);
//! ```

/// One module of kernels, ready for the driver to load.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// What the module is called, in `images.txt` and in messages.
    pub name: &'static str,
    /// PTX text in ASCII, without the NUL byte that `cuModuleLoadData` wants after it.
    pub ptx: &'static [u8],
}

/// SHA-256, in hex, over `images.txt` and the `.cu` and `.cuh` sources that the images were made from.
pub const SOURCE_HASH: &str = env!("RADSWEEP_SOURCE_HASH");

/// Where the images came from: `prebuilt`, or the compiler that made them during the build.
pub const ORIGIN: &str = env!("RADSWEEP_ORIGIN");

macro_rules! image {
    ($(#[$doc:meta])* $constant:ident, $name:literal) => {
        $(#[$doc])*
        pub static $constant: Image =
            Image { name: $name, ptx: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ptx")) };
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
    /// Sort and sweep: what turns boxes into sorted pairs, and pairs into events. Needs a driver of CUDA 10.1 (R418).
    SAP, "sap"
}
