// What a search counts: first the pairs, in two words.

const PAIRS: u32 = 0u;

@group(0) @binding(10) var<storage, read_write> tallies: array<atomic<u32>>;

// Counts pairs, and returns the number of those before. Beyond 2^32 that is only the low word, and
// none of them is stored: there are more than the capacity of any list.
fn reserve_slots(wanted: u32) -> u32 {
    let before = atomicAdd(&tallies[PAIRS], wanted);
    if before + wanted < before {
        atomicAdd(&tallies[PAIRS + 1u], 1u);
    }
    return before;
}
