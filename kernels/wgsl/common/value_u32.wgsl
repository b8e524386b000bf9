// A value of 32 bits with each key.

@group(0) @binding(3) var<storage, read> values_in: array<u32>;

fn value_at(index: u32) -> u32 {
    return values_in[index];
}
