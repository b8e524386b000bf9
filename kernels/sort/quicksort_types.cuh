// What the kernels of quicksort.cu share with each other and with the host. The host's copy: crates/gpusort/src/cuda/quicksort/layout.rs.
#pragma once

#include "../common/layout.cuh"
#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "outcome.cuh"
#include "quicksort_tuning.cuh"

namespace radsweep {

constexpr uint32_t THREADS = QUICKSORT_THREADS, WARPS = THREADS / WARP;
constexpr uint32_t TILE = THREADS * QUICKSORT_TILE_ITEMS;
constexpr uint32_t LEAF_ITEMS = QUICKSORT_LEAF_ITEMS, LEAF = THREADS * LEAF_ITEMS;
constexpr uint32_t CLASSES = 32, PIVOTS = CLASSES - 1;  // a lane for each class
constexpr uint32_t MAX_LEVELS = 8;
constexpr uint32_t SAMPLE = QUICKSORT_SAMPLE;
constexpr uint32_t COPY_PIECE = 32768;                  // keys that one entry of the done list copies at most
static_assert(LEAF <= 65536, "places in a leaf have 16 bits");

enum Buffer : uint32_t { INPUT, OUTPUT, TEMP };

constexpr uint32_t IN_PLACE = 1;   // Args::flags: input and output are one buffer
constexpr uint32_t DROP_KEYS = 2;  // Args::flags: the sorted keys are not wanted

// A sequence that phase one partitions: the paper's (seq, pivot, parent).
struct Sequence {
    uint32_t begin, size;
    uint32_t first_section, sections;  // the paper's blocks: what one thread block counts and moves
    uint32_t finished;             // sections that have been counted
    uint32_t unused[3];
};

// A sequence for phase two.
struct Work {
    uint32_t begin, size;
    uint32_t source;               // Buffer
    uint32_t state;                // COPY_ONLY, or how often phase two has partitioned it
};
constexpr uint32_t COPY_ONLY = 0x80000000u;

struct Header {
    Outcome outcome;               // detail: keys that partitions moved, all together
    uint32_t sequences[MAX_LEVELS + 1];  // of each level
    uint32_t sections[MAX_LEVELS + 1];
    uint32_t shorts;               // entries of the list of short sequences
    uint32_t done;                 // entries of the done list
    uint32_t next;                 // the entry of it that the next free block takes
};

struct Args {
    Key* keys[3];                  // by Buffer
    void* values[3];               // by Buffer; a null input means 0, 1, 2, ...
    Header* header;
    Sequence* sequences[2];        // of even and of odd levels
    Key* bounds;                   // [sequence][CLASSES]
    uint32_t* section_sequence;    // [section]
    uint32_t* offsets;             // [section][CLASSES]: counts, then where the section's keys of a class go
    Work* shorts;                  // sequences that fit on chip
    Work* done;                    // the others that phase two gets
    const uint64_t* device_count;  // null, or where the number of keys stands, at most n
    uint64_t n;
    KeyOrder order;
    uint32_t levels;               // that phase one has
    uint32_t flags;
    uint64_t min_length;           // phase one partitions sequences longer than this
    uint64_t section;              // keys of a section, a multiple of TILE
};
ASSERT_LAYOUT(Args, 192,
    AT(keys, 0) AT(values, 24) AT(header, 48) AT(sequences, 56) AT(bounds, 72) AT(section_sequence, 80) AT(offsets, 88)
    AT(shorts, 96) AT(done, 104) AT(device_count, 112) AT(n, 120) AT(order, 128) AT(levels, 168) AT(flags, 172)
    AT(min_length, 176) AT(section, 184));

// The paper's d and its counterpart: a partition reads one buffer and writes the other.
__device__ __forceinline__ uint32_t target_of(const Args& args, uint32_t source) {
    return source == TEMP || (source == INPUT && !(args.flags & IN_PLACE)) ? OUTPUT : TEMP;
}

__device__ __forceinline__ uint32_t source_of_level(const Args& args, uint32_t level) {
    uint32_t source = INPUT;
    for (uint32_t l = 0; l < level; l++) source = target_of(args, source);
    return source;
}

// What keys are compared by.
template <bool FLOAT>
struct Compared {
    Ordering<FLOAT> ordering;
    Key window;

    __device__ __forceinline__ explicit Compared(const KeyOrder& order)
        : ordering(ordering_of<FLOAT>(order)), window(Key(order.window)) {}
    __device__ __forceinline__ Key operator()(Key key) const { return ordering(key) & window; }
};

template <uint32_t BYTES>
struct ValueOf {
    using Type = uint32_t;
};
template <>
struct ValueOf<8> {
    using Type = uint64_t;
};

}  // namespace radsweep
