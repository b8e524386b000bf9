// Box3D's dynamic tree, used as its broad phase does: boxes are loosened; those that leave their
// loosened ones are enlarged, the tree is rebuilt in part, and they look for new pairs, which are
// kept in a set while the loosened boxes overlap. Of those the exact test finds the overlaps.

#include "box3d/collision.h"
#include "box3d/constants.h"
#include "box3d/math_functions.h"
extern "C" {
#include "table.h"
}
#include "frames.hpp"

struct Box3d {
    static constexpr bool OF_CHANGED = false;

    b3DynamicTree tree;
    b3HashSet known = b3CreateSet(64);
    std::vector<Box> loose;
    std::vector<int> proxies;
    std::vector<bool> is_enlarged;
    std::vector<uint32_t> enlarged;
    std::vector<Pair> kept, found;

    explicit Box3d(const std::vector<Box>& boxes)
        : tree(b3DynamicTree_Create(int(boxes.size()))), loose(boxes.size()), is_enlarged(boxes.size(), true)
    {
        for (uint32_t i = 0; i < boxes.size(); ++i) {
            loosen(boxes[i], i);
            proxies.push_back(b3DynamicTree_CreateProxy(&tree, of(loose[i]), 1, i));
            enlarged.push_back(i);
        }
        b3DynamicTree_Rebuild(&tree, true);
        pair(boxes);
    }

    static b3AABB of(const Box& box) { return {{box.min[0], box.min[1], box.min[2]}, {box.max[0], box.max[1], box.max[2]}}; }

    // The margin of a shape: an eighth of its extent, at most 5 cm.
    void loosen(const Box& box, uint32_t i)
    {
        float extent = 0;
        for (int k = 0; k < 3; ++k) {
            extent = std::max(extent, (box.max[k] - box.min[k]) / 2);
        }
        float margin = std::min(B3_MAX_AABB_MARGIN, B3_AABB_MARGIN_FRACTION * extent);
        for (int k = 0; k < 3; ++k) {
            loose[i].min[k] = box.min[k] - margin;
            loose[i].max[k] = box.max[k] + margin;
        }
    }

    void update(const std::vector<Box>& boxes, const std::vector<uint32_t>& changed)
    {
        for (uint32_t i : changed) {
            if (!b3AABB_Contains(of(loose[i]), of(boxes[i]))) {
                loosen(boxes[i], i);
                b3DynamicTree_EnlargeProxy(&tree, proxies[i], of(loose[i]));
                is_enlarged[i] = true;
                enlarged.push_back(i);
            }
        }
        if (!changed.empty()) {
            b3DynamicTree_Rebuild(&tree, false);
            pair(boxes);
        }
    }

    struct Query {
        Box3d* self;
        uint32_t index;
    };

    static bool meet(int, uint64_t data, void* context)
    {
        auto [self, index] = *static_cast<Query*>(context);
        uint32_t other = uint32_t(data);
        bool is_mine = other != index && !(self->is_enlarged[other] && other < index);
        // The box in the tree can be larger than the loosened one, whose enlargement it includes.
        if (is_mine && self->loose[index].overlaps(self->loose[other]) &&
            !b3AddKey(&self->known, b3ShapePairKey(int(index), int(other), 0))) {
            self->kept.push_back({index, other});
        }
        return true;
    }

    void pair(const std::vector<Box>& boxes)
    {
        for (uint32_t i : enlarged) {
            Query query{this, i};
            b3DynamicTree_Query(&tree, of(loose[i]), 1, false, meet, &query);
        }
        found.clear();
        size_t left = 0;
        for (Pair one : kept) {
            if (!loose[one.a].overlaps(loose[one.b])) {
                b3RemoveKey(&known, b3ShapePairKey(int(one.a), int(one.b), 0));
                continue;
            }
            kept[left++] = one;
            if (boxes[one.a].overlaps(boxes[one.b])) {
                found.push_back(one);
            }
        }
        kept.resize(left);
        for (uint32_t i : enlarged) {
            is_enlarged[i] = false;
        }
        enlarged.clear();
    }

    uint64_t pairs() const { return found.size(); }
};

int main(int count, char** words)
{
    return frames::run<Box3d>("box3d", count, words);
}
