// Extract-and-merge, the other way to sort nearly sorted pairs: take out what is out of order, sort
// that, and merge it back. Measured over the inputs of the bench bench_nearly_sorted of gpusort,
// beside cub::DeviceRadixSort, so that it can be compared with the method in use (windows of a core
// and two halos, kernels/sort/adaptive.cu), which is measured there.
//
//   nvcc -O3 -std=c++17 -arch=native [-I CCCL_INCLUDE] extract_merge.cu -o extract_merge
//   ./extract_merge [SIZE...]
//
// What is out of order is found in rounds, as nothing else is parallel: of every two neighbours in
// the wrong order both are taken out (Cook and Kim 1980, "Best sorting algorithm for nearly sorted
// lists", take such pairs one after the other), until the rest is sorted or ROUNDS are over; then
// the input counts as not nearly sorted. Each round reads 4 bytes a key, and reads and writes 8
// bytes a pair that is left; the merge reads and writes 8 more; the pairs taken out are sorted by
// CUB. Each step is CUB's own, which is near the bandwidth: partition by flags, radix sort, merge.
// The host waits for the count of each round; that wait is in the time.
//
// One JSON object a line: medians, milliseconds. Results are compared with CUB's sort.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <cub/device/device_merge.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

namespace {

constexpr int ROUNDS = 6, RUNS = 9, WARM_UP = 2;

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        cudaError_t error = (call);                                                                    \
        if (error != cudaSuccess) {                                                                    \
            std::fprintf(stderr, "extract_merge: line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                              \
        }                                                                                              \
    } while (0)

template <class T>
struct Memory {
    T* at = nullptr;
    size_t count;
    explicit Memory(size_t count) : count(count) { CHECK(cudaMalloc(&at, std::max<size_t>(count, 1) * sizeof(T))); }
    Memory(const std::vector<T>& from) : Memory(from.size()) {
        CHECK(cudaMemcpy(at, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Memory() { cudaFree(at); }
    Memory(const Memory&) = delete;
    std::vector<T> host() const {
        std::vector<T> to(count);
        CHECK(cudaMemcpy(to.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
};

// 1 for a pair that stays: neither greater than the next nor less than the one before.
__global__ void stays(const uint32_t* keys, int n, uint8_t* flags) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) flags[i] = (i == 0 || keys[i - 1] <= keys[i]) && (i + 1 == n || keys[i] <= keys[i + 1]);
}

struct Sorter {
    int n;
    const uint32_t *keys, *values;
    Memory<uint32_t> left_keys[2], left_values[2], out_keys, out_values, sorted_keys, sorted_values;
    Memory<uint8_t> flags;
    Memory<int> count;
    Memory<char> scratch;
    uint32_t *keys_to, *values_to;
    int taken = 0, rounds = 0;

    Sorter(int n, const uint32_t* keys, const uint32_t* values, uint32_t* keys_to, uint32_t* values_to)
        : n(n), keys(keys), values(values), left_keys{Memory<uint32_t>(n), Memory<uint32_t>(n)},
          left_values{Memory<uint32_t>(n), Memory<uint32_t>(n)}, out_keys(n), out_values(n), sorted_keys(n), sorted_values(n),
          flags(n), count(1), scratch(size_t(n) * 16 + (64 << 20)), keys_to(keys_to), values_to(values_to) {}

    // Whether the input was nearly sorted; then it is in order at `keys_to` and `values_to`.
    bool run() {
        size_t bytes = scratch.count;
        const uint32_t *k = keys, *v = values;
        int left = n;
        taken = 0;
        for (rounds = 0;; ++rounds) {
            if (rounds == ROUNDS || taken > n / 4) return false;
            stays<<<(left + 255) / 256, 256>>>(k, left, flags.at);
            const int to = rounds % 2;
            auto from = thrust::make_zip_iterator(k, v);
            auto kept = thrust::make_zip_iterator(left_keys[to].at, left_values[to].at);
            CHECK(cub::DevicePartition::Flagged(scratch.at, bytes, from, flags.at, kept, count.at, left));
            int kept_count;
            CHECK(cudaMemcpy(&kept_count, count.at, sizeof(int), cudaMemcpyDeviceToHost));
            // The rejected lie at the end, in reverse.
            const int out = left - kept_count;
            if (out == 0) break;
            CHECK(cudaMemcpyAsync(out_keys.at + taken, left_keys[to].at + kept_count, size_t(out) * 4, cudaMemcpyDeviceToDevice));
            CHECK(cudaMemcpyAsync(out_values.at + taken, left_values[to].at + kept_count, size_t(out) * 4, cudaMemcpyDeviceToDevice));
            taken += out;
            left = kept_count;
            k = left_keys[to].at;
            v = left_values[to].at;
        }
        if (taken > 0) {
            CHECK(cub::DeviceRadixSort::SortPairs(scratch.at, bytes, out_keys.at, sorted_keys.at, out_values.at, sorted_values.at, taken));
        }
        CHECK(cub::DeviceMerge::MergePairs(scratch.at, bytes, k, v, left, sorted_keys.at, sorted_values.at, taken, keys_to, values_to));
        return true;
    }
};

uint64_t scrambled(uint64_t i) {
    uint64_t x = i * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// One of `one_in` keys is put up to `most` places away.
std::vector<uint32_t> moved(size_t n, uint64_t one_in, int64_t most) {
    std::vector<std::pair<int64_t, uint32_t>> places(n);
    for (size_t i = 0; i < n; ++i) {
        const int64_t far = int64_t(scrambled(2 * i) % (2 * uint64_t(most) + 1)) - most, by = scrambled(2 * i + 1) % one_in ? 0 : far;
        places[i] = {2 * (int64_t(i) + by) + (by > 0), uint32_t(i)};
    }
    std::sort(places.begin(), places.end());
    std::vector<uint32_t> keys(n);
    std::transform(places.begin(), places.end(), keys.begin(), [](const auto& place) { return place.second; });
    return keys;
}

std::vector<uint32_t> swapped(size_t n, size_t count, uint64_t most) {
    std::vector<uint32_t> keys(n);
    std::iota(keys.begin(), keys.end(), 0);
    for (size_t k = 0; k < count; ++k) {
        const size_t i = scrambled(k) % n, by = scrambled(k + n) % most + 1;
        std::swap(keys[i], keys[(i + by) % n]);
    }
    return keys;
}

template <class Run>
double median(Run run) {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int k = 0; k < WARM_UP + RUNS; ++k) {
        CHECK(cudaEventRecord(start));
        run();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, end));
        if (k >= WARM_UP) times.push_back(ms);
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    std::sort(times.begin(), times.end());
    return times[RUNS / 2];
}

void measure(const char* what, const std::vector<uint32_t>& input) {
    const int n = int(input.size());
    std::vector<uint32_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0);
    Memory<uint32_t> keys(input), values(numbers), keys_to(n), values_to(n), expected_keys(n), expected_values(n);
    Sorter sorter(n, keys.at, values.at, keys_to.at, values_to.at);
    const double plain = median([&] {
        size_t bytes = sorter.scratch.count;
        CHECK(cub::DeviceRadixSort::SortPairs(sorter.scratch.at, bytes, keys.at, expected_keys.at, values.at, expected_values.at, n));
    });
    bool sorted = false;
    const double ms = median([&] { sorted = sorter.run(); });
    // The keys are all different, so that there is one right order.
    if (sorted && (keys_to.host() != expected_keys.host() || values_to.host() != expected_values.host())) {
        std::fprintf(stderr, "extract_merge: %s, %d: wrong\n", what, n);
        std::exit(1);
    }
    std::printf("{\"bench\":\"extract_merge\",\"what\":\"%s\",\"n\":%d,\"cub_ms\":%.6f,\"extract_merge_ms\":%.6f,\"sorted\":%s,"
                "\"taken\":%d,\"rounds\":%d}\n", what, n, plain, ms, sorted ? "true" : "false", sorter.taken, sorter.rounds);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<size_t> sizes;
    for (int k = 1; k < argc; ++k) sizes.push_back(std::strtoull(argv[k], nullptr, 10));
    if (sizes.empty()) sizes = {size_t(1) << 20, size_t(1) << 22, size_t(1) << 24};
    for (const size_t n : sizes) {
        std::vector<uint32_t> sorted(n);
        std::iota(sorted.begin(), sorted.end(), 0);
        measure("sorted", sorted);
        measure("1 % moved up to 1000", moved(n, 100, 1000));
        measure("1 % swapped, up to 1000", swapped(n, n / 100, 1000));
        measure("0.1 % moved up to 1000", moved(n, 1000, 1000));
        measure("one far away", swapped(n, 1, n));
        measure("10 % moved up to 1000", moved(n, 10, 1000));
    }
}
