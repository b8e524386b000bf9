//! The types of elements that `.npy` files are read and written with.

/// An element type of `.npy` files: one of the six key types of `gpusort`.
pub trait Element: radsweep::sort::Key {
    /// The type in NumPy's notation, such as `<f4`.
    const DESCR: &'static str;
}

macro_rules! elements {
    ($($type:ty: $descr:literal),*) => {
        $(impl Element for $type {
            const DESCR: &'static str = $descr;
        })*
    };
}
elements!(u32: "<u4", i32: "<i4", f32: "<f4", u64: "<u8", i64: "<i8", f64: "<f8");
