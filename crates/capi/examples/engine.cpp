/*
 * A tiny engine in C++: a class that owns the broad phase, a world of bodies with contacts that
 * start and end, and a gun that fires rays.
 *
 *     c++ -std=c++17 engine.cpp $(pkg-config --cflags --libs radsweep) && ./a.out
 */
#include <radsweep.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using Vec3 = std::array<float, 3>;

class BroadPhaseError : public std::runtime_error {
public:
    BroadPhaseError(RadsweepStatus status) : std::runtime_error(radsweep_last_error()), status(status) {}
    RadsweepStatus status;
};

/* Owns a handle; failures are exceptions. */
class BroadPhase {
public:
    explicit BroadPhase(const RadsweepConfig *config = nullptr) { check(radsweep_create(config, &handle_)); }
    ~BroadPhase() { radsweep_destroy(handle_); }
    BroadPhase(const BroadPhase &) = delete;
    BroadPhase &operator=(const BroadPhase &) = delete;

    /* A list that the library lends until the next call. */
    template <typename T> struct List {
        const T *first = nullptr;
        size_t count = 0;
        const T *begin() const { return first; }
        const T *end() const { return first + count; }
    };

    void update(const std::vector<RadsweepAabb> &boxes, const std::vector<RadsweepFilter> &filters) {
        RadsweepFrame frame;
        check(radsweep_frame_default(&frame, sizeof frame));
        frame.boxes = boxes.data();
        frame.filters = filters.data();
        frame.count = boxes.size();
        check(radsweep_update_frame(handle_, &frame));
    }
    List<RadsweepPair> pairs(uint32_t which) const {
        List<RadsweepPair> list;
        check(radsweep_pairs(handle_, which, &list.first, &list.count));
        return list;
    }
    List<RadsweepRayHit> ray(const Vec3 &origin, const Vec3 &direction, float length) {
        List<RadsweepRayHit> list;
        check(radsweep_query_ray(handle_, origin.data(), direction.data(), length, &list.first, &list.count));
        return list;
    }

private:
    static void check(RadsweepStatus status) {
        if (status != RADSWEEP_STATUS_OK) throw BroadPhaseError(status);
    }
    RadsweepBroadPhase *handle_ = nullptr;
};

/* Bodies that orbit a post, and walls that never move. */
class World {
public:
    void add_body(float radius, float height, float speed) { bodies_.push_back({radius, height, speed}); }
    void add_wall(const RadsweepAabb &wall) { walls_.push_back(wall); }

    void step(float time) {
        boxes_.clear();
        filters_.clear();
        for (const auto &body : bodies_) {
            const float angle = body.speed * time;
            const Vec3 at{body.radius * std::cos(angle), body.height, body.radius * std::sin(angle)};
            boxes_.push_back({{at[0] - 0.5f, at[1] - 0.5f, at[2] - 0.5f}, {at[0] + 0.5f, at[1] + 0.5f, at[2] + 0.5f}});
            filters_.push_back({~0u, ~0u, 0, 0});
        }
        for (const auto &wall : walls_) {
            boxes_.push_back(wall);
            filters_.push_back({~0u, ~0u, 0, RADSWEEP_FILTER_STATIC});
        }
        broad_phase_.update(boxes_, filters_);
        for (const auto &pair : broad_phase_.pairs(RADSWEEP_PAIRS_STARTED)) contacts_.insert({pair.a, pair.b});
        for (const auto &pair : broad_phase_.pairs(RADSWEEP_PAIRS_ENDED)) contacts_.erase({pair.a, pair.b});
    }

    /* Returns whether the contacts maintained by events are the pairs. */
    bool consistent() const {
        std::set<std::pair<uint32_t, uint32_t>> now;
        for (const auto &pair : broad_phase_.pairs(RADSWEEP_PAIRS_ALL)) now.insert({pair.a, pair.b});
        return now == contacts_;
    }
    size_t contacts() const { return contacts_.size(); }
    BroadPhase &broad_phase() { return broad_phase_; }
    void break_body(size_t index) { bodies_.at(index).height = std::numeric_limits<float>::quiet_NaN(); }

private:
    struct Body {
        float radius, height, speed;
    };
    std::vector<Body> bodies_;
    std::vector<RadsweepAabb> walls_, boxes_;
    std::vector<RadsweepFilter> filters_;
    std::set<std::pair<uint32_t, uint32_t>> contacts_;
    BroadPhase broad_phase_;
};

int main() try {
    World world;
    for (int i = 0; i < 400; i++) {
        world.add_body(3.0f + 0.05f * static_cast<float>(i), static_cast<float>(i % 7), 0.2f + 0.003f * static_cast<float>(i));
    }
    world.add_wall({{-30, -1.5f, -30}, {30, -0.5f, 30}});
    world.add_wall({{5, 0, -30}, {5.2f, 3, 30}});
    /* Overlaps the wall before: both are static, so they do not pair. */
    world.add_wall({{-30, 0, 5}, {30, 3, 5.2f}});

    std::printf("radsweep %s, 400 bodies and 3 walls\n", radsweep_version());
    size_t most = 0;
    for (int frame = 0; frame < 300; frame++) {
        world.step(static_cast<float>(frame) / 30.0f);
        most = std::max(most, world.contacts());
        if (!world.consistent()) {
            std::fprintf(stderr, "frame %d: the contacts maintained by events are not the pairs\n", frame);
            return 1;
        }
        if (frame % 60 == 0) {
            const auto hits = world.broad_phase().ray({-40, 2, 1}, {1, 0, 0}, 80);
            std::printf("frame %3d: %4zu contacts; a shot passes %zu boxes", frame, world.contacts(), hits.count);
            std::printf(hits.count ? ", the first is %u\n" : "\n", hits.count ? hits.first->index : 0);
        }
    }
    world.break_body(123);
    try {
        world.step(10);
        return 1;
    } catch (const BroadPhaseError &error) {
        std::printf("a broken body: %s\n", error.what());
        return error.status == RADSWEEP_STATUS_INVALID_AABB && world.consistent() && most > 400 ? 0 : 1;
    }
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
