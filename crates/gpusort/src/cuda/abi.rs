//! A check of the structs that kernels are passed or leave in memory.

/// Asserts the size of a struct and the offset of every field, as the kernels' struct has them. A field that is not named does
/// not compile.
macro_rules! assert_layout {
    ($Struct:ident, $size:literal: $($field:ident $offset:literal),* $(,)?) => {
        const _: () = {
            assert!(size_of::<$Struct>() == $size);
            $(assert!(std::mem::offset_of!($Struct, $field) == $offset);)*
            let _ = |all: &$Struct| {
                let $Struct { $($field: _),* } = all;
            };
        };
    };
}
pub(super) use assert_layout;
