//! What the arguments of all families share (`kernels/common/sort_args.cuh`), and checks of the
//! structs that host and kernels share.

/// Flag of a family's `Args`: input and output are one buffer.
pub(super) const IN_PLACE: u32 = 1;
/// Flag of a family's `Args`: the sorted keys need not be written. A family's own flags begin at 4.
pub(super) const DROP_KEYS: u32 = 2;

/// Asserts that a struct has the size and the field offsets of the kernels' struct. A struct with a
/// field that is not named does not compile.
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
