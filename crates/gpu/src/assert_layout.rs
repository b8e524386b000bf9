/// Asserts at compile time that a struct has the size and the field offsets of the kernels' struct,
/// which asserts the same numbers (`ASSERT_LAYOUT` in `kernels/common/layout.cuh`). A struct with a
/// field that is not named does not compile.
///
/// ```
/// #[repr(C)]
/// struct Region {
///     first: u64,
///     len: u32,
///     flags: u32,
/// }
/// gpu::assert_layout!(Region, 16: first 0, len 8, flags 12);
/// ```
///
/// ```compile_fail
/// #[repr(C)]
/// struct Region {
///     len: u32,
///     first: u64,
/// }
/// gpu::assert_layout!(Region, 16: len 0, first 4);
/// ```
#[macro_export]
macro_rules! assert_layout {
    ($Struct:ident, $size:literal: $($field:ident $offset:literal),* $(,)?) => {
        const _: () = {
            assert!(::core::mem::size_of::<$Struct>() == $size);
            $(assert!(::core::mem::offset_of!($Struct, $field) == $offset);)*
            let _ = |all: &$Struct| {
                let $Struct { $($field: _),* } = all;
            };
        };
    };
}
