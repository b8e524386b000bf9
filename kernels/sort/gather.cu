// Records in the order of a sorted index: the second half of every sort of records (Ha, Krüger,
// Silva 2009, §4.7). Bytes a record of R bytes: 4 for the index, R read (32 at least: sectors), R
// written. 2^24 records of 32 bytes: predicted 270 us by these bytes, measured 605. Memory reads 64
// bytes for a random sector of 32, 1.65 GB in all, at 2.7 TB/s.

#include "common/types.cuh"

namespace radsweep {

// Records of `pieces` pieces each, in the order that `index` gives: record i of `to` is record
// index[i] of `from`.
template <class Piece>
DEVICE void gather(const u32* index, const Piece* from, Piece* to, u64 n, u32 pieces) {
    const u64 total = n * pieces, step = u64(gridDim.x) * blockDim.x;
    for (u64 start = u64(blockIdx.x) * blockDim.x; start < total; start += step) {
        const u64 record =
            start / pieces;  // of the block's first piece: one 64-bit division for all its threads
        const u32 at = u32(start - record * pieces) + threadIdx.x;
        const u64 to_record = record + at / pieces;
        if (start + threadIdx.x < total)
            to[start + threadIdx.x] = from[u64(index[to_record]) * pieces + at % pieces];
    }
}

#define GATHER(BYTES, PIECE)                                                 \
    extern "C" __global__ void __launch_bounds__(256) gather_##BYTES(        \
        const u32* index, const PIECE* from, PIECE* to, u64 n, u32 pieces) { \
        gather(index, from, to, n, pieces);                                  \
    }
GATHER(1, u8)
GATHER(2, u16)
GATHER(4, u32)
GATHER(8, u64)
GATHER(16, uint4)

}  // namespace radsweep
