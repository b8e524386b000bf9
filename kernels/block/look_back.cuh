// Decoupled look-back: a block learns the sum of those before it from what they have published.
//
// D. Merrill, M. Garland: Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016.
//
// A published word is a sum with its state in the top two bits: 0 nothing yet, OWN the block's own
// sum, INCLUSIVE the sum up to and with the block. Blocks are numbered in the order in which they
// begin, so that every one that is waited for runs.
#pragma once

#include "common/ptx.cuh"
#include "common/warp.cuh"

namespace radsweep {

template <class Word>
struct LookBack {
    static constexpr Word OWN = Word(1) << (8 * sizeof(Word) - 2), INCLUSIVE = OWN << 1,
                          SUM = OWN - 1;

    // Returns the sum over words [0, end), by one thread. READ words are read at once. `turn` maps
    // a word to the states above.
    template <u32 READ, class At, class Turn>
    static DEVICE Word by_thread(u32 end, At at, Turn turn) {
        Word before = 0;
        u32 done = 0;  // words added up, from the last one backwards
        while (true) {
            Word words[READ];
#pragma unroll
            for (u32 i = 0; i < READ; i++) {
                words[i] = done + i < end ? turn(load_relaxed(at(end - 1 - done - i))) : INCLUSIVE;
            }
#pragma unroll
            for (u32 i = 0; i < READ; i++) {
                if ((words[i] & ~SUM) == 0) break;
                before += words[i] & SUM;
                if (words[i] & INCLUSIVE) return before;
                done++;
            }
        }
    }

    // Returns the sum over words [0, end), by one warp, 32 at a time.
    static DEVICE Word by_warp(const Word* words, u32 end) {
        const u32 lane = lane_index();
        Word sum = 0;
        for (; end > 0; end -= WARP) {
            Word word = INCLUSIVE;
            do {
                if (lane < end) word = load_relaxed(words + end - 1 - lane);
            } while (__any_sync(ALL_LANES, word < OWN));
            const u32 full = __ballot_sync(ALL_LANES, word >= INCLUSIVE);
            const u32 last = full ? u32(__ffs(int(full))) - 1 : WARP - 1;
            sum += warp_sum(lane <= last ? word & SUM : 0);
            if (full) break;
        }
        return sum;
    }

    // Publishes the sum of block `block`, looks back over those before it, and publishes the sum up
    // to it. Returns the sum over the blocks before. By one warp.
    static DEVICE Word exchange(Word* words, u32 block, Word own) {
        if (lane_index() == 0 && block > 0) store_relaxed(words + block, OWN | own);
        const Word before = by_warp(words, block);
        if (lane_index() == 0) store_relaxed(words + block, INCLUSIVE | (before + own));
        return before;
    }
};

}  // namespace radsweep
