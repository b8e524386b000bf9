// The device language for g++, included before every kernel source. `nvcc` rewrites `__global__`,
// `__launch_bounds__` and `__shared__` in the preprocessed text.
#pragma once

#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <utility>

#include "emulator.h"

#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __grid_constant__
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (emu_self->index)
#define blockIdx (emu_self->block->index)
#define blockDim (emu_self->block->dim)
#define gridDim (emu_self->block->grid)
#define warpSize 32

#define EMU_DEVICE static inline __attribute__((unused))

// ---- Vector types ----

#define EMU_VECTORS(T, NAME, ALIGN2, ALIGN4)                                                         \
    struct NAME##1 { T x; };                                                                         \
    struct __align__(ALIGN2) NAME##2 { T x, y; };                                                    \
    struct __align__(ALIGN4) NAME##4 { T x, y, z, w; };                                              \
    EMU_DEVICE NAME##1 make_##NAME##1(T x) { return {x}; }                                           \
    EMU_DEVICE NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                   \
    EMU_DEVICE NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define EMU_VECTOR3(T, NAME)                                                                         \
    struct NAME##3 { T x, y, z; };                                                                   \
    EMU_DEVICE NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }
EMU_VECTORS(signed char, char, 2, 4)
EMU_VECTORS(unsigned char, uchar, 2, 4)
EMU_VECTORS(short, short, 4, 8)
EMU_VECTORS(unsigned short, ushort, 4, 8)
EMU_VECTORS(int, int, 8, 16)
EMU_VECTORS(unsigned, uint, 8, 16)
EMU_VECTORS(long, long, 16, 16)
EMU_VECTORS(unsigned long, ulong, 16, 16)
EMU_VECTORS(long long, longlong, 16, 16)
EMU_VECTORS(unsigned long long, ulonglong, 16, 16)
EMU_VECTORS(float, float, 8, 16)
EMU_VECTORS(double, double, 16, 16)
EMU_VECTOR3(signed char, char)
EMU_VECTOR3(unsigned char, uchar)
EMU_VECTOR3(short, short)
EMU_VECTOR3(unsigned short, ushort)
EMU_VECTOR3(int, int)
EMU_VECTOR3(long long, longlong)
EMU_VECTOR3(unsigned long long, ulonglong)
EMU_VECTOR3(float, float)
EMU_VECTOR3(double, double)
EMU_DEVICE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// ---- Barriers and warps ----

// The compiler must neither cache values that other threads may change, nor delay writes that they
// may read.
EMU_DEVICE void emu_memory() { asm volatile("" ::: "memory"); }

EMU_DEVICE uint64_t emu_warp(int kind, unsigned mask, uint64_t value, unsigned source = 0) {
    emu_memory();
    const uint64_t result = emu_collective(kind, mask, value, source);
    emu_memory();
    return result;
}
EMU_DEVICE int emu_block(int kind, int predicate) {
    emu_memory();
    const int result = emu_barrier(kind, predicate);
    emu_memory();
    return result;
}

EMU_DEVICE void __syncthreads() { emu_block(EMU_SYNC, 0); }
EMU_DEVICE int __syncthreads_or(int predicate) { return emu_block(EMU_SYNC_OR, predicate); }
EMU_DEVICE int __syncthreads_and(int predicate) { return emu_block(EMU_SYNC_AND, predicate); }
EMU_DEVICE int __syncthreads_count(int predicate) { return emu_block(EMU_SYNC_COUNT, predicate); }

EMU_DEVICE unsigned emu_lane() {
    const EmuBlock& block = *emu_self->block;
    const uint3 t = emu_self->index;
    return (t.x + block.dim.x * (t.y + block.dim.y * t.z)) % 32;
}

EMU_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) { emu_warp(EMU_SYNCWARP, mask, 0); }
EMU_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) { return unsigned(emu_warp(EMU_BALLOT, mask, predicate != 0)); }
EMU_DEVICE int __any_sync(unsigned mask, int predicate) { return int(emu_warp(EMU_ANY, mask, predicate != 0)); }
EMU_DEVICE int __all_sync(unsigned mask, int predicate) { return int(emu_warp(EMU_ALL, mask, predicate != 0)); }

// Converts a value of 4 or 8 bytes to a word and back.
template <class T>
static inline uint64_t emu_word(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "collectives take values of 4 or 8 bytes");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}
template <class T>
static inline T emu_value(uint64_t word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}

template <class T>
static inline auto __shfl_sync(unsigned mask, T value, int lane, int width = 32) -> decltype(+value) {
    using Word = decltype(+value);
    const unsigned base = emu_lane() & ~unsigned(width - 1);
    return emu_value<Word>(emu_warp(EMU_SHFL, mask, emu_word<Word>(value), base | (lane & (width - 1))));
}
template <class T>
static inline auto __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) -> decltype(+value) {
    using Word = decltype(+value);
    const unsigned own = emu_lane(), within = own & (width - 1);
    return emu_value<Word>(emu_warp(EMU_SHFL_UP, mask, emu_word<Word>(value), within < delta ? own : own - delta));
}
template <class T>
static inline auto __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) -> decltype(+value) {
    using Word = decltype(+value);
    const unsigned own = emu_lane(), within = own & (width - 1);
    return emu_value<Word>(emu_warp(EMU_SHFL_DOWN, mask, emu_word<Word>(value), within + delta >= unsigned(width) ? own : own + delta));
}
template <class T>
static inline auto __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) -> decltype(+value) {
    using Word = decltype(+value);
    const unsigned own = emu_lane(), from = own ^ bits;
    // Lanes of earlier groups can be read, lanes of later groups cannot.
    return emu_value<Word>(emu_warp(EMU_SHFL_XOR, mask, emu_word<Word>(value), from >= (own & ~unsigned(width - 1)) + width ? own : from));
}
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value) {
    return unsigned(emu_warp(EMU_MATCH_ANY, mask, emu_word(+value)));
}
template <class T>
static inline unsigned __match_all_sync(unsigned mask, T value, int* same) {
    const unsigned result = unsigned(emu_warp(EMU_MATCH_ALL, mask, emu_word(+value)));
    *same = result != 0;
    return result;
}

#define EMU_REDUCE(NAME, KIND, T) \
    EMU_DEVICE T NAME(unsigned mask, T value) { return (T)emu_warp(KIND, mask, (uint64_t)value); }
EMU_REDUCE(__reduce_add_sync, EMU_REDUCE_ADD, unsigned)
EMU_REDUCE(__reduce_add_sync, EMU_REDUCE_ADD, int)
EMU_REDUCE(__reduce_min_sync, EMU_REDUCE_MIN, unsigned)
EMU_REDUCE(__reduce_min_sync, EMU_REDUCE_MIN_SIGNED, int)
EMU_REDUCE(__reduce_max_sync, EMU_REDUCE_MAX, unsigned)
EMU_REDUCE(__reduce_max_sync, EMU_REDUCE_MAX_SIGNED, int)
EMU_REDUCE(__reduce_and_sync, EMU_REDUCE_AND, unsigned)
EMU_REDUCE(__reduce_or_sync, EMU_REDUCE_OR, unsigned)
EMU_REDUCE(__reduce_xor_sync, EMU_REDUCE_XOR, unsigned)

// ---- Memory ----

// Called by accesses that a waiting loop makes. Now and then it lets another thread run, which may
// be the one waited for.
EMU_DEVICE void emu_spin(unsigned each = 64) {
    if (++emu_self->spins % each == 0) emu_yield();
}

EMU_DEVICE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
EMU_DEVICE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
EMU_DEVICE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <class T> static inline T __ldg(const T* p) { return *p; }
template <class T> static inline T __ldca(const T* p) { return *p; }
template <class T> static inline T __ldcs(const T* p) { return *p; }
template <class T> static inline T __ldlu(const T* p) { return *p; }
template <class T> static inline T __ldcg(const T* p) { emu_spin(); emu_memory(); return *p; }
template <class T> static inline T __ldcv(const T* p) { emu_spin(); emu_memory(); return *p; }
template <class T> static inline void __stwb(T* p, T value) { *p = value; }
template <class T> static inline void __stcs(T* p, T value) { *p = value; }
template <class T> static inline void __stcg(T* p, T value) { *p = value; emu_memory(); }
template <class T> static inline void __stwt(T* p, T value) { *p = value; emu_memory(); }

#define EMU_ATOMIC(NAME, T, BUILTIN)                                                                    \
    EMU_DEVICE T NAME(T* p, T value) { emu_spin(256); return BUILTIN(p, value, __ATOMIC_RELAXED); }
#define EMU_ATOMIC_LOOP(NAME, T, NEW)                                                                   \
    EMU_DEVICE T NAME(T* p, T value) {                                                                  \
        T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                   \
        while (!__atomic_compare_exchange_n(p, &old, NEW, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} \
        return old;                                                                                     \
    }
#define EMU_ATOMICS(T)                                        \
    EMU_ATOMIC(atomicAdd, T, __atomic_fetch_add)              \
    EMU_ATOMIC(atomicAnd, T, __atomic_fetch_and)              \
    EMU_ATOMIC(atomicOr, T, __atomic_fetch_or)                \
    EMU_ATOMIC(atomicXor, T, __atomic_fetch_xor)              \
    EMU_ATOMIC(atomicExch, T, __atomic_exchange_n)            \
    EMU_ATOMIC_LOOP(atomicMin, T, (value < old ? value : old)) \
    EMU_ATOMIC_LOOP(atomicMax, T, (value > old ? value : old)) \
    EMU_DEVICE T atomicCAS(T* p, T old, T value) {            \
        emu_spin(16);                                         \
        __atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return old;                                           \
    }
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
EMU_ATOMIC_LOOP(atomicMin, long long, (value < old ? value : old))
EMU_ATOMIC_LOOP(atomicMax, long long, (value > old ? value : old))
EMU_ATOMIC(atomicSub, int, __atomic_fetch_sub)
EMU_ATOMIC(atomicSub, unsigned, __atomic_fetch_sub)
EMU_ATOMIC_LOOP(atomicInc, unsigned, (old >= value ? 0 : old + 1))
EMU_ATOMIC_LOOP(atomicDec, unsigned, (old == 0 || old > value ? value : old - 1))

template <class T, class Word>
static inline T emu_atomic_add_float(T* p, T value) {
    Word* const word = reinterpret_cast<Word*>(p);
    Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, emu_value<Word>(emu_word(emu_value<T>(old) + value)), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {}
    return emu_value<T>(old);
}
EMU_DEVICE float atomicAdd(float* p, float value) { return emu_atomic_add_float<float, uint32_t>(p, value); }
EMU_DEVICE double atomicAdd(double* p, double value) { return emu_atomic_add_float<double, uint64_t>(p, value); }
EMU_DEVICE float atomicExch(float* p, float value) {
    return emu_value<float>(__atomic_exchange_n(reinterpret_cast<uint32_t*>(p), uint32_t(emu_word(value)), __ATOMIC_RELAXED));
}

// ---- Time and ends ----

EMU_DEVICE long long clock64() {
    emu_yield();  // a thread that reads the clock waits
    return (long long)__rdtsc();
}
EMU_DEVICE void __nanosleep(unsigned) { emu_yield(); }
EMU_DEVICE void __trap() { emu_fail("__trap()"); }
EMU_DEVICE void __brkpt() {}

// ---- Integers ----

EMU_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
EMU_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
EMU_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
EMU_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
EMU_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
EMU_DEVICE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
EMU_DEVICE unsigned long long __brevll(unsigned long long x) {
    unsigned long long y = 0;
    for (int i = 0; i < 64; i++) y |= (x >> i & 1) << (63 - i);
    return y;
}
EMU_DEVICE unsigned __brev(unsigned x) { return unsigned(__brevll(x) >> 32); }
EMU_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((uint64_t(high) << 32 | low) << (shift & 31)) >> 32);
}
EMU_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}
EMU_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
EMU_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
EMU_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const uint64_t bytes = uint64_t(y) << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned choice = selector >> 4 * i & 15;
        unsigned byte = unsigned(bytes >> 8 * (choice & 7)) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}
EMU_DEVICE unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
EMU_DEVICE int __mulhi(int x, int y) { return int(int64_t(x) * y >> 32); }
EMU_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
EMU_DEVICE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
EMU_DEVICE unsigned __sad(int x, int y, unsigned z) { return z + unsigned(x < y ? y - x : x - y); }

// Min and max of two numbers of one type, or of a signed and an unsigned number, with an unsigned
// result.
#define EMU_MIN_MAX(A, B, T)                                              \
    EMU_DEVICE constexpr T min(A a, B b) { return (T)a < (T)b ? (T)a : (T)b; } \
    EMU_DEVICE constexpr T max(A a, B b) { return (T)a > (T)b ? (T)a : (T)b; }
#define EMU_MIN_MAX_BOTH(S, U) EMU_MIN_MAX(S, S, S) EMU_MIN_MAX(U, U, U) EMU_MIN_MAX(S, U, U) EMU_MIN_MAX(U, S, U)
EMU_MIN_MAX_BOTH(int, unsigned)
EMU_MIN_MAX_BOTH(long, unsigned long)
EMU_MIN_MAX_BOTH(long long, unsigned long long)
EMU_DEVICE float min(float a, float b) { return fminf(a, b); }
EMU_DEVICE float max(float a, float b) { return fmaxf(a, b); }
EMU_DEVICE double min(double a, double b) { return fmin(a, b); }
EMU_DEVICE double max(double a, double b) { return fmax(a, b); }
EMU_DEVICE double min(float a, double b) { return fmin(a, b); }
EMU_DEVICE double max(float a, double b) { return fmax(a, b); }
EMU_DEVICE double min(double a, float b) { return fmin(a, b); }
EMU_DEVICE double max(double a, float b) { return fmax(a, b); }
EMU_DEVICE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
EMU_DEVICE unsigned umax(unsigned a, unsigned b) { return max(a, b); }

// ---- Floating point ----

EMU_DEVICE unsigned __float_as_uint(float x) { return emu_value<unsigned>(emu_word(x)); }
EMU_DEVICE int __float_as_int(float x) { return emu_value<int>(emu_word(x)); }
EMU_DEVICE float __uint_as_float(unsigned x) { return emu_value<float>(x); }
EMU_DEVICE float __int_as_float(int x) { return emu_value<float>(unsigned(x)); }
EMU_DEVICE long long __double_as_longlong(double x) { return (long long)emu_word(x); }
EMU_DEVICE double __longlong_as_double(long long x) { return emu_value<double>(uint64_t(x)); }
EMU_DEVICE int __double2hiint(double x) { return int(emu_word(x) >> 32); }
EMU_DEVICE int __double2loint(double x) { return int(emu_word(x)); }
EMU_DEVICE double __hiloint2double(int high, int low) { return emu_value<double>(uint64_t(unsigned(high)) << 32 | unsigned(low)); }

// One instruction under its own rounding mode, in assembly, so that the compiler neither folds it
// nor moves it out of the mode.
#define EMU_ROUNDED(SUFFIX, MODE)                                                                               \
    EMU_ROUNDED_OP(__fadd, SUFFIX, MODE, float, "addss")                                                        \
    EMU_ROUNDED_OP(__fsub, SUFFIX, MODE, float, "subss")                                                        \
    EMU_ROUNDED_OP(__fmul, SUFFIX, MODE, float, "mulss")                                                        \
    EMU_ROUNDED_OP(__fdiv, SUFFIX, MODE, float, "divss")                                                        \
    EMU_ROUNDED_OP(__dadd, SUFFIX, MODE, double, "addsd")                                                       \
    EMU_ROUNDED_OP(__dsub, SUFFIX, MODE, double, "subsd")                                                       \
    EMU_ROUNDED_OP(__dmul, SUFFIX, MODE, double, "mulsd")                                                       \
    EMU_ROUNDED_OP(__ddiv, SUFFIX, MODE, double, "divsd")                                                       \
    EMU_ROUNDED_FROM(__double2float, SUFFIX, MODE, float, double, "cvtsd2ss %1, %0", "x")                       \
    EMU_ROUNDED_FROM(__fsqrt, SUFFIX, MODE, float, float, "sqrtss %1, %0", "x")                                 \
    EMU_ROUNDED_FROM(__dsqrt, SUFFIX, MODE, double, double, "sqrtsd %1, %0", "x")                               \
    EMU_ROUNDED_FROM(__int2float, SUFFIX, MODE, float, int, "cvtsi2ssl %1, %0", "r")                            \
    EMU_ROUNDED_FROM(__uint2float, SUFFIX, MODE, float, unsigned, "cvtsi2ssq %q1, %0", "r")                     \
    EMU_ROUNDED_FROM(__ll2float, SUFFIX, MODE, float, long long, "cvtsi2ssq %1, %0", "r")                       \
    EMU_ROUNDED_FROM(__ll2double, SUFFIX, MODE, double, long long, "cvtsi2sdq %1, %0", "r")
#define EMU_ROUNDED_OP(NAME, SUFFIX, MODE, T, OP)                                                               \
    EMU_DEVICE T NAME##SUFFIX(T a, T b) {                                                                       \
        const unsigned before = _mm_getcsr();                                                                   \
        _mm_setcsr((before & ~0x6000u) | MODE);                                                                 \
        asm volatile(OP " %1, %0" : "+x"(a) : "x"(b) : "memory");                                               \
        _mm_setcsr(before);                                                                                     \
        return a;                                                                                               \
    }
#define EMU_ROUNDED_FROM(NAME, SUFFIX, MODE, T, FROM, OP, CONSTRAINT)                                           \
    EMU_DEVICE T NAME##SUFFIX(FROM a) {                                                                         \
        T result = 0;                                                                                           \
        const unsigned before = _mm_getcsr();                                                                   \
        _mm_setcsr((before & ~0x6000u) | MODE);                                                                 \
        asm volatile(OP : "+x"(result) : CONSTRAINT(emu_wide(a)) : "memory");                                   \
        _mm_setcsr(before);                                                                                     \
        return result;                                                                                          \
    }
template <class T> static inline T emu_wide(T x) { return x; }
static inline uint64_t emu_wide(unsigned x) { return x; }
EMU_ROUNDED(_rn, 0x0000)
EMU_ROUNDED(_rd, 0x2000)
EMU_ROUNDED(_ru, 0x4000)
EMU_ROUNDED(_rz, 0x6000)

// Conversions to integers, which saturate and take NaN for 0.
#define EMU_TO_INT(NAME, T, FROM, LOW, HIGH, BEYOND)                                     \
    EMU_DEVICE T NAME##_rn(FROM x) { x = FROM(rint(x)); EMU_TO_INT_CHECKS(T, LOW, HIGH, BEYOND) } \
    EMU_DEVICE T NAME##_rd(FROM x) { x = FROM(floor(x)); EMU_TO_INT_CHECKS(T, LOW, HIGH, BEYOND) } \
    EMU_DEVICE T NAME##_ru(FROM x) { x = FROM(ceil(x)); EMU_TO_INT_CHECKS(T, LOW, HIGH, BEYOND) } \
    EMU_DEVICE T NAME##_rz(FROM x) { x = FROM(trunc(x)); EMU_TO_INT_CHECKS(T, LOW, HIGH, BEYOND) }
#define EMU_TO_INT_CHECKS(T, LOW, HIGH, BEYOND) return x != x ? 0 : x < LOW ? (T)LOW : x >= BEYOND ? (T)HIGH : (T)x;
EMU_TO_INT(__float2int, int, float, -0x1p31f, 0x7fffffff, 0x1p31f)
EMU_TO_INT(__float2uint, unsigned, float, 0.0f, 0xffffffffu, 0x1p32f)
EMU_TO_INT(__float2ll, long long, float, -0x1p63f, 0x7fffffffffffffffll, 0x1p63f)
EMU_TO_INT(__float2ull, unsigned long long, float, 0.0f, 0xffffffffffffffffull, 0x1p64f)
EMU_TO_INT(__double2int, int, double, -0x1p31, 0x7fffffff, 0x1p31)
EMU_TO_INT(__double2uint, unsigned, double, 0.0, 0xffffffffu, 0x1p32)
EMU_TO_INT(__double2ll, long long, double, -0x1p63, 0x7fffffffffffffffll, 0x1p63)
EMU_TO_INT(__double2ull, unsigned long long, double, 0.0, 0xffffffffffffffffull, 0x1p64)

EMU_DEVICE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
EMU_DEVICE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
EMU_DEVICE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
EMU_DEVICE float __fdividef(float x, float y) { return x / y; }
EMU_DEVICE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
EMU_DEVICE double rsqrt(double x) { return 1.0 / sqrt(x); }
EMU_DEVICE float __frsqrt_rn(float x) { return float(1.0 / sqrt(double(x))); }
EMU_DEVICE float __frcp_rn(float x) { return 1.0f / x; }
// These are macros, because the C library has internal functions of these names.
#define __expf(x) expf(x)
#define __exp10f(x) powf(10.0f, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)

// ---- The list of kernels, which the lines that `nvcc` adds make ----

namespace emu {

static const EmuKernel* kernels = nullptr;

template <class... P>
struct Kernel {
    template <size_t... I>
    static void invoke(void (*function)(), void** params, std::index_sequence<I...>) {
        (void)params;
        reinterpret_cast<void (*)(P...)>(function)(*static_cast<P*>(params[I])...);
    }
    static void call(void (*function)(), void** params) { invoke(function, params, std::index_sequence_for<P...>{}); }
};

struct Registered {
    EmuKernel kernel;
    uint32_t offsets[64], sizes[64];

    template <class... P>
    Registered(const char* name, void (*function)(P...), unsigned max_threads = 1024, unsigned = 1, unsigned = 1)
        : kernel{name, reinterpret_cast<void (*)()>(function), Kernel<P...>::call, max_threads, sizeof...(P), offsets, sizes, kernels} {
        static_assert(sizeof...(P) <= 64, "parameters");
        uint32_t at = 0, i = 0;
        (void)at, (void)i;
        ((at = (at + alignof(P) - 1) / alignof(P) * alignof(P), offsets[i] = at, sizes[i] = sizeof(P), at += sizeof(P), i++), ...);
        kernels = &kernel;
    }
};

// The block's dynamic shared memory.
template <class T>
static inline T* dynamic_shared() {
    return reinterpret_cast<T*>(emu_self->block->shared);
}

}  // namespace emu

extern "C" __attribute__((used, visibility("default"))) const EmuKernel* emu_kernels() { return emu::kernels; }

#include "ptx.cuh"
