// All inline PTX of the kernels. Nowhere else: the emulator has its own version of this file (tests/emulator/ptx.cuh).
#pragma once

#include <stdint.h>

namespace radsweep {

__device__ __forceinline__ uint32_t lane_mask_le() {
    uint32_t mask;
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(mask));
    return mask;
}

// The lanes whose low eight bits of `digit` equal this lane's.
//
// A ballot per bit, complemented where this lane's bit is 0, and the AND of the eight: 28 instructions. The complement is
// `-1 * x - 1`, a multiply-add on the otherwise idle multiplier, because logic instructions run at half rate since Volta and
// are what bounds a radix sort there. `minus_one` holds 0xffffffff and comes from a kernel parameter: an assembler that
// sees the constant turns the multiply-add back into logic.
__device__ __forceinline__ uint32_t match_digit(uint32_t digit, uint32_t minus_one) {
    uint32_t peers;
    asm volatile(
        "{\n"
        ".reg .pred p<8>;\n"
        ".reg .b32 t, b<8>;\n"
        "and.b32 t, %1, 1;   setp.ne.u32 p0, t, 0;\n"
        "and.b32 t, %1, 2;   setp.ne.u32 p1, t, 0;\n"
        "and.b32 t, %1, 4;   setp.ne.u32 p2, t, 0;\n"
        "and.b32 t, %1, 8;   setp.ne.u32 p3, t, 0;\n"
        "and.b32 t, %1, 16;  setp.ne.u32 p4, t, 0;\n"
        "and.b32 t, %1, 32;  setp.ne.u32 p5, t, 0;\n"
        "and.b32 t, %1, 64;  setp.ne.u32 p6, t, 0;\n"
        "and.b32 t, %1, 128; setp.ne.u32 p7, t, 0;\n"
        "vote.sync.ballot.b32 b0, p0, 0xffffffff;\n"
        "vote.sync.ballot.b32 b1, p1, 0xffffffff;\n"
        "vote.sync.ballot.b32 b2, p2, 0xffffffff;\n"
        "vote.sync.ballot.b32 b3, p3, 0xffffffff;\n"
        "vote.sync.ballot.b32 b4, p4, 0xffffffff;\n"
        "vote.sync.ballot.b32 b5, p5, 0xffffffff;\n"
        "vote.sync.ballot.b32 b6, p6, 0xffffffff;\n"
        "vote.sync.ballot.b32 b7, p7, 0xffffffff;\n"
        "@!p0 mad.lo.u32 b0, b0, %2, %2;\n"
        "@!p1 mad.lo.u32 b1, b1, %2, %2;\n"
        "@!p2 mad.lo.u32 b2, b2, %2, %2;\n"
        "@!p3 mad.lo.u32 b3, b3, %2, %2;\n"
        "@!p4 mad.lo.u32 b4, b4, %2, %2;\n"
        "@!p5 mad.lo.u32 b5, b5, %2, %2;\n"
        "@!p6 mad.lo.u32 b6, b6, %2, %2;\n"
        "@!p7 mad.lo.u32 b7, b7, %2, %2;\n"
        "lop3.b32 b0, b0, b1, b2, 0x80;\n"
        "lop3.b32 b3, b3, b4, b5, 0x80;\n"
        "lop3.b32 b0, b0, b3, b6, 0x80;\n"
        "and.b32 %0, b0, b7;\n"
        "}"
        : "=r"(peers)
        : "r"(digit), "r"(minus_one));
    return peers;
}

// Reads and writes of single words that other blocks write and read meanwhile. Relaxed order is enough where the word
// carries everything that its reader wants.
__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* from) {
    uint32_t word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ uint64_t load_relaxed(const uint64_t* from) {
    uint64_t word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ void store_relaxed(uint32_t* to, uint32_t word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void store_relaxed(uint64_t* to, uint64_t word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// Four words, each whole by itself.
__device__ __forceinline__ uint4 load_relaxed(const uint4* from) {
    uint4 words;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from)
                 : "memory");
    return words;
}

// A count of arrivals: what its block wrote before it adds, whoever reads the sum sees.
__device__ __forceinline__ void add_release(uint32_t* to, uint32_t number) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(number) : "memory");
}
__device__ __forceinline__ uint32_t load_acquire(const uint32_t* from) {
    uint32_t word;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}

}  // namespace radsweep
