// The yardstick: cub::DeviceRadixSort and cub::DeviceMergeSort over uniform random keys, and the
// device's copy bandwidth, measured by the rules that our own benches follow, so that both can be
// compared when run one after the other on one machine.
//
//   nvcc -O3 -std=c++17 -arch=native [-I CCCL_INCLUDE] [-DLIBCUSORT -I ITS_FOLDER] cub_sort.cu
//        -o cub_sort
//   ./cub_sort [SIZE...]         sizes in keys, by default every second power of two from 2^10
//                                to 2^28
//
// One JSON object a line. `ms` is the median over the measured launches of the time between two GPU
// events around one sort, `gkeys` is 10^9 keys a second at that median, `gb_s` counts bytes read
// plus bytes written.
//
// Input, output and scratch are separate (no DoubleBuffer), as in our own interface: the sort
// leaves its input alone. Each launch sorts the next of ROTATED_BYTES of inputs, so that small
// inputs are read from memory and not from the cache that the launch before left warm. CUB compiles
// other kernels for a count of 32 bits and for one of 64, which is up to 17 % faster from 2^24 keys
// on: both are measured, and the faster one is printed, with the bits of its count. With LIBCUSORT
// the same is done with the sorts of libcusort (https://github.com/IlyaGrebnov/libcusort): the
// names in their lines begin with "libcusort_".

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/version.cuh>
#ifdef LIBCUSORT
#include <libcusort.cuh>
#endif

namespace {

constexpr size_t ROTATED_BYTES = size_t(256) << 20;  // several times the largest L2 (60 MB on H200)
constexpr int WARM_UP = 3;

#define CHECK(call)                                                                                     \
    do {                                                                                                \
        cudaError_t error = (call);                                                                     \
        if (error != cudaSuccess) {                                                                     \
            std::fprintf(stderr, "cub_sort: line %d: %s\n", __LINE__, cudaGetErrorString(error));       \
            std::exit(1);                                                                               \
        }                                                                                               \
    } while (0)

// Uniform random words: each index mixed by the finalizer of SplitMix64.
__global__ void fill(uint32_t* words, size_t count, uint64_t seed)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        uint64_t z = (i + seed) * 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        words[i] = uint32_t((z ^ (z >> 31)) >> 32);
    }
}

// Counts the neighbours that are out of order.
template <typename Key>
__global__ void unsorted(const Key* keys, size_t count, unsigned long long* found)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i + 1 < count; i += size_t(gridDim.x) * blockDim.x) {
        if (keys[i + 1] < keys[i]) {
            atomicAdd(found, 1ull);
        }
    }
}

struct Less {
    template <typename Key>
    __device__ bool operator()(Key a, Key b) const { return a < b; }
};

template <typename T>
struct Memory {
    T* at = nullptr;
    explicit Memory(size_t count) { CHECK(cudaMalloc(&at, std::max<size_t>(count, 1) * sizeof(T))); }
    ~Memory() { cudaFree(at); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
};

int launches(size_t n)
{
    return n >= size_t(1) << 26 ? 10 : n >= size_t(1) << 22 ? 20 : 50;
}

// Median milliseconds of `work(launch)`.
template <typename Work>
float median_ms(int count, Work work)
{
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int launch = -WARM_UP; launch < count; launch++) {
        CHECK(cudaEventRecord(begin));
        work(launch + WARM_UP);
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (launch >= 0) {
            times.push_back(ms);
        }
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    std::sort(times.begin(), times.end());
    return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
}

void copy_bandwidth()
{
    constexpr size_t bytes = size_t(1) << 30;
    Memory<char> from(bytes), to(bytes);
    CHECK(cudaMemset(from.at, 1, bytes));
    float ms = median_ms(20, [&](int) { CHECK(cudaMemcpyAsync(to.at, from.at, bytes, cudaMemcpyDeviceToDevice)); });
    std::printf("{\"bench\":\"cub\",\"what\":\"copy\",\"n\":%zu,\"ms\":%.6f,\"gb_s\":%.1f}\n", bytes, ms, 2 * bytes / ms / 1e6);
}

enum Sort { RADIX_KEYS, RADIX_PAIRS, MERGE_PAIRS };

// One of the two forms, as it was measured.
struct Form {
    float ms;
    int bits;
    size_t scratch_bytes;
};

// Values have 32 bits. Radix has the sorts by radix, and `library` begins the names of its lines.
template <typename Key, typename Radix>
void sort(const char* library, const char* what, size_t n, Sort kind)
{
    bool pairs = kind != RADIX_KEYS;
    size_t inputs = std::max<size_t>(ROTATED_BYTES / (n * sizeof(Key)), 1);
    Memory<Key> keys(inputs * n), keys_out(n);
    Memory<uint32_t> values(pairs ? inputs * n : 0), values_out(pairs ? n : 0);
    Memory<unsigned long long> found(1);
    fill<<<1024, 256>>>(reinterpret_cast<uint32_t*>(keys.at), inputs * n * (sizeof(Key) / sizeof(uint32_t)), n);
    if (pairs) {
        fill<<<1024, 256>>>(values.at, inputs * n, ~n);
    }

    auto call = [&](auto count, void* scratch, size_t& bytes, size_t input) {
        const Key* from = keys.at + input * n;
        const uint32_t* with = pairs ? values.at + input * n : nullptr;
        switch (kind) {
        case RADIX_KEYS: CHECK(Radix::SortKeys(scratch, bytes, from, keys_out.at, count)); break;
        case RADIX_PAIRS: CHECK(Radix::SortPairs(scratch, bytes, from, keys_out.at, with, values_out.at, count)); break;
        case MERGE_PAIRS: CHECK(cub::DeviceMergeSort::SortPairsCopy(scratch, bytes, from, with, keys_out.at, values_out.at, count, Less{}));
        }
    };
    Form best{};
    auto measure = [&](auto count) {
        size_t bytes = 0;
        call(count, nullptr, bytes, 0);
        Memory<char> scratch(bytes);
        CHECK(cudaMemset(keys_out.at, 0xff, n / 2 * sizeof(Key)));
        float ms = median_ms(launches(n), [&](int launch) { call(count, scratch.at, bytes, launch % inputs); });

        unsigned long long wrong = 0;
        CHECK(cudaMemset(found.at, 0, sizeof(wrong)));
        unsorted<<<1024, 256>>>(keys_out.at, n, found.at);
        CHECK(cudaMemcpy(&wrong, found.at, sizeof(wrong), cudaMemcpyDeviceToHost));
        if (wrong > 0) {
            std::fprintf(stderr, "cub_sort: %llu keys out of order at n = %zu\n", wrong, n);
            std::exit(1);
        }
        if (best.bits == 0 || ms < best.ms) {
            best = {ms, 8 * int(sizeof(count)), bytes};
        }
    };
    measure(uint32_t(n));
    measure(uint64_t(n));
    std::printf("{\"bench\":\"cub\",\"what\":\"%s%s\",\"n\":%zu,\"ms\":%.6f,\"gkeys\":%.4f,\"count_bits\":%d,\"scratch_bytes\":%zu,\"cub\":%d}\n",
                library, what, n, best.ms, n / best.ms / 1e6, best.bits, best.scratch_bytes, CUB_VERSION);
    std::fflush(stdout);
}

template <typename Radix>
void sorts(const char* library, const std::vector<size_t>& sizes)
{
    for (size_t n : sizes) {
        sort<uint32_t, Radix>(library, "keys_u32", n, RADIX_KEYS);
    }
    for (size_t n : sizes) {
        sort<uint32_t, Radix>(library, "pairs_u32_u32", n, RADIX_PAIRS);
    }
    for (size_t n : {size_t(1) << 20, size_t(1) << 24}) {
        sort<uint64_t, Radix>(library, "keys_u64", n, RADIX_KEYS);
        sort<uint64_t, Radix>(library, "pairs_u64_u32", n, RADIX_PAIRS);
    }
}

}  // namespace

int main(int count, char** words)
{
    std::vector<size_t> sizes;
    for (int i = 1; i < count; i++) {
        sizes.push_back(std::strtoull(words[i], nullptr, 10));
        if (sizes.back() == 0 || sizes.back() > UINT32_MAX) {
            std::fprintf(stderr, "cub_sort: not a size: %s\n", words[i]);
            return 2;
        }
    }
    if (sizes.empty()) {
        for (int bits = 10; bits <= 28; bits += 2) {
            sizes.push_back(size_t(1) << bits);
        }
    }
    copy_bandwidth();
    sorts<cub::DeviceRadixSort>("", sizes);
    for (size_t n : {size_t(1) << 20, size_t(1) << 24}) {
        sort<uint32_t, cub::DeviceRadixSort>("", "merge_pairs_u32_u32", n, MERGE_PAIRS);
    }
#ifdef LIBCUSORT
    sorts<cusort::DeviceRadixSort>("libcusort_", sizes);
#endif
}
