// Layouts of structs that the host shares: their size and offsets are asserted here, and on the
// host by `assert_layout!` (crates/gpu/src/assert_layout.rs).
#pragma once

#define AT(field, offset) &&__builtin_offsetof(Checked, field) == (offset)

// ASSERT_LAYOUT(Args, 16, AT(keys, 0) AT(n, 8)); in the scope of the struct.
#define ASSERT_LAYOUT(Struct, bytes, fields)                                                 \
    struct Struct##Layout {                                                                  \
        using Checked = Struct;                                                              \
        static_assert(sizeof(Checked) == (bytes)fields, #Struct ": not as the host has it"); \
    }
