// Records in the order of a sorted index: the second half of every sort of records (Ha, Krüger, Silva 2009, §5.2).
// Bytes a record of R bytes: 4 for the index, R read (32 at least: sectors), R written.

#include <stdint.h>

namespace {

// Records of `pieces` pieces each, in the order that `index` gives: record i of `to` is record index[i] of `from`.
template <class Piece>
__device__ __forceinline__ void gather(const uint32_t* index, const Piece* from, Piece* to, uint64_t n, uint32_t pieces) {
    const uint64_t total = n * pieces, step = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t start = uint64_t(blockIdx.x) * blockDim.x; start < total; start += step) {
        const uint64_t record = start / pieces;  // of the block's first piece: one 64-bit division for all its threads
        const uint32_t at = uint32_t(start - record * pieces) + threadIdx.x;
        const uint64_t to_record = record + at / pieces;
        if (start + threadIdx.x < total) to[start + threadIdx.x] = from[uint64_t(index[to_record]) * pieces + at % pieces];
    }
}

}  // namespace

#define GATHER(BYTES, PIECE)                                                                                        \
    extern "C" __global__ void __launch_bounds__(256) gather_##BYTES(const uint32_t* index, const PIECE* from,      \
                                                                     PIECE* to, uint64_t n, uint32_t pieces) {      \
        gather(index, from, to, n, pieces);                                                                         \
    }
GATHER(1, uint8_t)
GATHER(2, uint16_t)
GATHER(4, uint32_t)
GATHER(8, uint64_t)
GATHER(16, uint4)
