// Replaces kernels/common/ptx.cuh: the same functions without PTX.
#pragma once

namespace radsweep {

// Launches wait for each other.
EMU_DEVICE void wait_for_stream() {}

EMU_DEVICE void prefetch(const void*) {}

EMU_DEVICE uint32_t lane_mask_le() { return ~0u >> (31 - emu_lane()); }

// One exchange of the digits, instead of the eight ballots of the device.
EMU_DEVICE uint32_t match_digit(uint32_t digit, uint32_t) { return uint32_t(emu_warp(EMU_MATCH_DIGIT, ~0u, digit & 255)); }

template <class T>
static inline T emu_load_relaxed(const T* from) {
    emu_spin();
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}
EMU_DEVICE uint32_t load_relaxed(const uint32_t* from) { return emu_load_relaxed(from); }
EMU_DEVICE unsigned long long load_relaxed(const unsigned long long* from) { return emu_load_relaxed(from); }
EMU_DEVICE void store_relaxed(uint32_t* to, uint32_t word) { __atomic_store_n(to, word, __ATOMIC_RELAXED); }
EMU_DEVICE void store_relaxed(unsigned long long* to, unsigned long long word) { __atomic_store_n(to, word, __ATOMIC_RELAXED); }
EMU_DEVICE uint4 load_relaxed(const uint4* from) {
    emu_spin();
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(from);
    return make_uint4(__atomic_load_n(words, __ATOMIC_RELAXED), __atomic_load_n(words + 1, __ATOMIC_RELAXED),
                      __atomic_load_n(words + 2, __ATOMIC_RELAXED), __atomic_load_n(words + 3, __ATOMIC_RELAXED));
}
EMU_DEVICE void add_release(uint32_t* to, uint32_t number) { __atomic_fetch_add(to, number, __ATOMIC_RELEASE); }
EMU_DEVICE uint32_t load_acquire(const uint32_t* from) {
    emu_spin();
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

}  // namespace radsweep
