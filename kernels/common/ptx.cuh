// All inline PTX of the kernels. There is none elsewhere: the emulator has its own version of this
// file (tests/emulator/ptx.cuh).
#pragma once

#include "common/types.cuh"

namespace radsweep {

// Waits for the work ahead in the stream, in a kernel that is launched early, and then lets the
// next such kernel begin, as soon as all blocks of this one run. When a kernel begins, all is
// complete but the launch directly ahead; when its wait returns, that is too. Before the wait it
// may read what that launch does not write, past the first-level cache, which may be stale, and
// write what that launch does not touch. All threads of a kernel wait, or those later on would not
// wait for all that is ahead of them. Images for older devices wait at their launch instead.
DEVICE void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

DEVICE u32 lane_mask_le() {
    u32 mask;
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(mask));
    return mask;
}

// Has the line of device memory at `from` loaded into the second-level cache.
DEVICE void prefetch(const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

// Returns the lanes whose low eight bits of `digit` equal this lane's.
//
// A ballot per bit, complemented where this lane's bit is 0, and the AND of the eight: 28
// instructions. The complement is `-1 * x - 1`, a multiply-add on the otherwise idle multiplier,
// because logic instructions run at half rate since Volta and are what bounds a radix sort there.
// `minus_one` holds 0xffffffff and comes from a kernel parameter: an assembler that sees the
// constant turns the multiply-add back into logic.
DEVICE u32 match_digit(u32 digit, u32 minus_one) {
    u32 peers;
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

// Reads and writes of single words that other blocks write and read meanwhile. Relaxed order
// suffices where the word is all that its reader needs.
DEVICE u32 load_relaxed(const u32* from) {
    u32 word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
DEVICE u64 load_relaxed(const u64* from) {
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
DEVICE void store_relaxed(u32* to, u32 word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
DEVICE void store_relaxed(u64* to, u64 word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// Reads four words, each of them atomically.
DEVICE uint4 load_relaxed(const uint4* from) {
    uint4 words;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from)
                 : "memory");
    return words;
}

// Counts an arrival: what a block wrote before it adds, every reader of the sum sees.
DEVICE void add_release(u32* to, u32 number) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(number) : "memory");
}
DEVICE u32 load_acquire(const u32* from) {
    u32 word;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}

}  // namespace radsweep
