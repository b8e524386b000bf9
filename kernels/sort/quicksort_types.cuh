// The structs that the kernels of quicksort.cu share with each other and with the host. The host's
// copy: crates/gpusort/src/cuda/quicksort/layout.rs.
#pragma once

#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "common/warp.cuh"
#include "outcome.cuh"
#include "quicksort_tuning.cuh"

namespace radsweep::quicksort {

constexpr u32 THREADS = QUICKSORT_THREADS, WARPS = THREADS / WARP;
constexpr u32 TILE = THREADS * QUICKSORT_TILE_ITEMS;
constexpr u32 LEAF_ITEMS = QUICKSORT_LEAF_ITEMS, LEAF = THREADS * LEAF_ITEMS;
constexpr u32 CLASSES = 32, PIVOTS = CLASSES - 1;  // a lane for each class
constexpr u32 MAX_LEVELS = 8;
constexpr u32 SAMPLE = QUICKSORT_SAMPLE;
constexpr u32 COPY_PIECE = 32768;  // keys that one entry of the done list copies at most
static_assert(LEAF <= 65536, "indices in a leaf have 16 bits");

// A sequence that phase one partitions: the paper's (seq, pivot, parent).
struct Sequence {
    u32 begin, size;
    u32 first_section, sections;  // the paper's blocks: what one thread block counts and moves
    u32 finished;                 // sections that have been counted
    u32 unused[3];
};
ASSERT_LAYOUT(Sequence, 32,
    AT(begin, 0) AT(size, 4) AT(first_section, 8) AT(sections, 12) AT(finished, 16) AT(unused, 20));

// A sequence for phase two.
struct Work {
    u32 begin, size;
    u32 source;  // Buffer
    u32 state;   // COPY_ONLY, or the number of partitions in phase two
};
ASSERT_LAYOUT(Work, 16, AT(begin, 0) AT(size, 4) AT(source, 8) AT(state, 12));
constexpr u32 COPY_ONLY = 0x80000000u;

struct Header {
    Outcome outcome;                // detail: keys that partitions moved, all together
    u32 sequences[MAX_LEVELS + 1];  // of each level
    u32 sections[MAX_LEVELS + 1];
    u32 shorts;  // entries of the list of short sequences
    u32 done;    // entries of the done list
    u32 next;    // the entry of it that the next free block takes
    u32 unused;
};
ASSERT_LAYOUT(Header, 120,
    AT(outcome, 0) AT(sequences, 32) AT(sections, 68) AT(shorts, 104) AT(done, 108) AT(next, 112)
    AT(unused, 116));

struct Args {
    Key* keys[3];     // by Buffer
    void* values[3];  // by Buffer; a null input means 0, 1, 2, ...
    Header* header;
    Sequence* sequences[2];  // of even and of odd levels
    Key* bounds;             // [sequence][CLASSES]
    u32* section_sequence;   // [section]
    u32* offsets;  // [section][CLASSES]: counts, then where the section's keys of a class go
    Work* shorts;  // sequences that fit on chip
    Work* done;    // the others that phase two gets
    const u64* device_count;  // null, or the address of the number of keys, at most n
    u64 n;
    KeyOrder order;
    u32 levels;  // that phase one has
    u32 flags;
    u64 min_length;  // phase one partitions sequences longer than this
    u64 section;     // keys of a section, a multiple of TILE
};
ASSERT_LAYOUT(Args, 192,
    AT(keys, 0) AT(values, 24) AT(header, 48) AT(sequences, 56) AT(bounds, 72)
    AT(section_sequence, 80) AT(offsets, 88) AT(shorts, 96) AT(done, 104) AT(device_count, 112)
    AT(n, 120) AT(order, 128) AT(levels, 168) AT(flags, 172) AT(min_length, 176) AT(section, 184));

// The paper's d and its counterpart: a partition reads one buffer and writes the other.
DEVICE u32 target_of(const Args& args, u32 source) {
    return source == TEMP || (source == INPUT && !(args.flags & IN_PLACE)) ? OUTPUT : TEMP;
}

DEVICE u32 source_of_level(const Args& args, u32 level) {
    u32 source = INPUT;
    for (u32 l = 0; l < level; l++) source = target_of(args, source);
    return source;
}

}  // namespace radsweep::quicksort
