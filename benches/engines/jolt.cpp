// Jolt's BroadPhaseQuadTree, on one thread. It finds the pairs of the bodies that are active, which
// are those whose boxes changed: it keeps no list of the others.

#include <Jolt/Jolt.h>

#include <Jolt/Core/Factory.h>
#include <Jolt/Physics/Body/BodyCreationSettings.h>
#include <Jolt/Physics/Body/BodyManager.h>
#include <Jolt/Physics/Body/BodyPair.h>
#include <Jolt/Physics/Collision/BroadPhase/BroadPhaseQuadTree.h>
#include <Jolt/Physics/Collision/CollideShape.h>
#include <Jolt/Physics/Collision/PhysicsMaterial.h>
#include <Jolt/Physics/Collision/Shape/Shape.h>
#include <Jolt/RegisterTypes.h>

#include "frames.hpp"

using namespace JPH;

namespace {

// A shape that is nothing but its box, in the axes of the world.
class Bounds final : public Shape {
public:
    AABox box;

    Bounds() : Shape(EShapeType::User1, EShapeSubType::User1) {}
    AABox GetLocalBounds() const override { return box; }
    AABox GetWorldSpaceBounds(Mat44Arg, Vec3Arg) const override { return box; }
    uint GetSubShapeIDBitsRecursive() const override { return 0; }
    float GetInnerRadius() const override { return 0; }
    MassProperties GetMassProperties() const override
    {
        MassProperties unit;
        unit.mMass = 1;
        unit.mInertia = Mat44::sIdentity();
        return unit;
    }
    const PhysicsMaterial* GetMaterial(const SubShapeID&) const override { return PhysicsMaterial::sDefault; }
    Vec3 GetSurfaceNormal(const SubShapeID&, Vec3Arg) const override { return Vec3::sZero(); }
    void GetSubmergedVolume(Mat44Arg, Vec3Arg, const Plane&, float& total, float& part, Vec3& center) const override
    {
        total = part = 0;
        center = Vec3::sZero();
    }
    bool CastRay(const RayCast&, const SubShapeIDCreator&, RayCastResult&) const override { return false; }
    void CastRay(const RayCast&, const RayCastSettings&, const SubShapeIDCreator&, CastRayCollector&, const ShapeFilter&) const override {}
    void CollidePoint(Vec3Arg, const SubShapeIDCreator&, CollidePointCollector&, const ShapeFilter&) const override {}
    void CollideSoftBodyVertices(Mat44Arg, Vec3Arg, const CollideSoftBodyVertexIterator&, uint, int) const override {}
    void GetTrianglesStart(GetTrianglesContext&, const AABox&, Vec3Arg, QuatArg, Vec3Arg) const override {}
    int GetTrianglesNext(GetTrianglesContext&, int, Float3*, const PhysicsMaterial**) const override { return 0; }
    Stats GetStats() const override { return {sizeof(*this), 0}; }
    float GetVolume() const override { return 0; }
};

struct OneLayer final : BroadPhaseLayerInterface {
    uint GetNumBroadPhaseLayers() const override { return 1; }
    BroadPhaseLayer GetBroadPhaseLayer(ObjectLayer) const override { return BroadPhaseLayer(0); }
};

struct Found final : BodyPairCollector {
    std::vector<Pair> pairs;

    void AddHit(const BodyPair& pair) override { pairs.push_back({pair.mBodyA.GetIndex(), pair.mBodyB.GetIndex()}); }
};

struct Jolt {
    static constexpr bool OF_CHANGED = true;

    OneLayer layers;
    BodyManager manager;
    BroadPhaseQuadTree broad_phase;
    std::vector<Bounds*> shapes;
    std::vector<Body*> bodies;
    std::vector<BodyID> ids, active;
    Found found;

    explicit Jolt(const std::vector<Box>& boxes)
    {
        manager.Init(uint(boxes.size()), 0, layers);
        broad_phase.Init(&manager, layers);
        for (const Box& box : boxes) {
            shapes.push_back(new Bounds);
            shapes.back()->box = of(box);
            BodyCreationSettings settings(shapes.back(), RVec3::sZero(), Quat::sIdentity(), EMotionType::Dynamic, 0);
            bodies.push_back(manager.AllocateBody(settings));
            manager.AddBody(bodies.back());
            ids.push_back(bodies.back()->GetID());
        }
        std::vector<BodyID> added = ids;
        auto state = broad_phase.AddBodiesPrepare(added.data(), int(added.size()));
        broad_phase.AddBodiesFinalize(added.data(), int(added.size()), state);
        broad_phase.Optimize();
    }

    static AABox of(const Box& box) { return {Vec3(box.min[0], box.min[1], box.min[2]), Vec3(box.max[0], box.max[1], box.max[2])}; }

    void update(const std::vector<Box>& boxes, const std::vector<uint32_t>& changed)
    {
        // Where all move, they stay active.
        if (active.size() != changed.size() || changed.size() < boxes.size()) {
            manager.DeactivateBodies(active.data(), int(active.size()));
            active.clear();
            for (uint32_t i : changed) {
                active.push_back(ids[i]);
            }
            manager.ActivateBodies(active.data(), int(active.size()));
        }
        found.pairs.clear();
        if (changed.empty()) {
            return;
        }
        for (uint32_t i : changed) {
            shapes[i]->box = of(boxes[i]);
            bodies[i]->SetPositionAndRotationInternal(RVec3::sZero(), Quat::sIdentity());
        }
        broad_phase.NotifyBodiesAABBChanged(active.data(), int(active.size()), false);
        broad_phase.FrameSync();
        broad_phase.LockModifications();
        auto state = broad_phase.UpdatePrepare();
        broad_phase.UpdateFinalize(state);
        broad_phase.UnlockModifications();
        broad_phase.FindCollidingPairs(active.data(), int(active.size()), 0, ObjectVsBroadPhaseLayerFilter(), ObjectLayerPairFilter(), found);
    }

    uint64_t pairs() const { return found.pairs.size(); }
};

}  // namespace

int main(int count, char** words)
{
    RegisterDefaultAllocator();
    Factory::sInstance = new Factory;
    RegisterTypes();
    return frames::run<Jolt>("jolt", count, words);
}
