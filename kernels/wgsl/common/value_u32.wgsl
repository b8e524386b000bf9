// A value of 32 bits with each key.

@group(0) @binding(3) var<storage, read> values_in: array<u32>;

// Copies a value to scratch memory.
fn copy_value(index: u32) {
    values[index] = values_in[index];
}
