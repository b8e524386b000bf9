// A tile of words in the memory of a workgroup.

var<workgroup> tile_words: array<u32, TILE>;

// The words of this thread, and where in the sorted tile they belong.
var<private> words: array<u32, ITEMS>;
var<private> ranks: array<u32, ITEMS>;

// Puts the words of all threads in the order of their ranks. Thread `lid` then has those at
// `lid`, `lid + WORKGROUP`, and so on.
fn exchange(lid: u32) {
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_words[ranks[i]] = words[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        words[i] = tile_words[i * WORKGROUP + lid];
    }
    workgroupBarrier();
}
