// Bullet's btDbvtBroadphase. Its boxes are loosened by 5 cm, so its list has pairs that do not
// overlap, and some that it removes later. Of those the exact test finds the overlaps.

#include "BulletCollision/BroadphaseCollision/btDbvtBroadphase.h"
#include "frames.hpp"

struct Bullet {
    static constexpr bool OF_CHANGED = false;

    btDbvtBroadphase broad_phase;
    std::vector<btBroadphaseProxy*> proxies;
    std::vector<Pair> found;

    static btVector3 vector(const float* v) { return {v[0], v[1], v[2]}; }

    explicit Bullet(const std::vector<Box>& boxes)
    {
        for (size_t i = 0; i < boxes.size(); ++i) {
            void* index = reinterpret_cast<void*>(i);
            proxies.push_back(broad_phase.createProxy(vector(boxes[i].min), vector(boxes[i].max), 0, index, 1, 1, nullptr));
        }
        filter(boxes);
    }

    void update(const std::vector<Box>& boxes, const std::vector<uint32_t>& changed)
    {
        for (uint32_t i : changed) {
            broad_phase.setAabb(proxies[i], vector(boxes[i].min), vector(boxes[i].max), nullptr);
        }
        broad_phase.calculateOverlappingPairs(nullptr);
        if (!changed.empty()) {
            filter(boxes);
        }
    }

    void filter(const std::vector<Box>& boxes)
    {
        found.clear();
        const btBroadphasePairArray& all = broad_phase.getOverlappingPairCache()->getOverlappingPairArray();
        for (int i = 0; i < all.size(); ++i) {
            auto index = [](const btBroadphaseProxy* proxy) { return uint32_t(reinterpret_cast<size_t>(proxy->m_clientObject)); };
            uint32_t a = index(all[i].m_pProxy0), b = index(all[i].m_pProxy1);
            if (boxes[a].overlaps(boxes[b])) {
                found.push_back({a, b});
            }
        }
    }

    uint64_t pairs() const { return found.size(); }
};

int main(int count, char** words)
{
    return frames::run<Bullet>("bullet", count, words);
}
