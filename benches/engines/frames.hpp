// The frames of one case, and the measurement of an engine on them. The file is written by the
// example `engine_frames`: words of 32 bits with the number of boxes and of updates, the boxes, and
// then for each update the number of boxes that changed, their indices, their boxes, the number of
// all pairs and the number of those with a changed box, in 64 bits each.
//
// An engine has `update(boxes, changed)`, whose time counts, and `pairs()`, the number of pairs
// that the update left, or with `OF_CHANGED` of those with a box that changed. Each is compared.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Box {
    float min[3], max[3];

    // Boxes that touch overlap.
    bool overlaps(const Box& other) const
    {
        return min[0] <= other.max[0] && other.min[0] <= max[0] && min[1] <= other.max[1] && other.min[1] <= max[1] &&
               min[2] <= other.max[2] && other.min[2] <= max[2];
    }
};

struct Pair {
    uint32_t a, b;
};

namespace frames {

constexpr uint32_t WARM_UP = 2;
constexpr double SECONDS = 1;  // at most, but for three updates

[[noreturn]] inline void fail(const char* why)
{
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
}

template <typename T>
void read(std::FILE* file, T* into, size_t count)
{
    if (std::fread(into, sizeof(T), count, file) != count) {
        fail("the file of frames is too short");
    }
}

// Measures an engine on a file and prints one JSON object. The first update adds all boxes.
template <typename Engine>
int run(const char* name, int count, char** words)
{
    std::FILE* file = count == 2 ? std::fopen(words[1], "rb") : nullptr;
    if (!file) {
        fail("usage: ENGINE FILE");
    }
    uint32_t n, rounds;
    read(file, &n, 1);
    read(file, &rounds, 1);
    std::vector<Box> boxes(n), moved(n);
    std::vector<uint32_t> changed(n);
    read(file, boxes.data(), n);
    Engine engine(boxes);
    std::vector<double> times;
    double spent = 0;
    uint64_t pairs[2] = {};
    for (uint32_t round = 0; round < rounds && (times.size() < 3 || spent < SECONDS); ++round) {
        uint32_t moving;
        read(file, &moving, 1);
        changed.resize(moving);
        read(file, changed.data(), moving);
        read(file, moved.data(), moving);
        read(file, pairs, 2);
        for (uint32_t i = 0; i < moving; ++i) {
            boxes[changed[i]] = moved[i];
        }
        auto begun = std::chrono::steady_clock::now();
        engine.update(boxes, changed);
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        if (engine.pairs() != pairs[Engine::OF_CHANGED]) {
            std::fprintf(stderr, "%s: %llu pairs instead of %llu in update %u\n", name, (unsigned long long)engine.pairs(),
                         (unsigned long long)pairs[Engine::OF_CHANGED], round);
            return 1;
        }
        if (round >= WARM_UP) {
            times.push_back(took.count());
            spent += took.count();
        }
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"engine\":\"%s\",\"n\":%u,\"us\":%.3f,\"updates\":%zu,\"pairs\":%llu}\n", name, n, times[times.size() / 2] * 1e6,
                times.size(), (unsigned long long)pairs[0]);
    return 0;
}

}  // namespace frames
