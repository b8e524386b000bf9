// PhysX's automatic box pruning: ABP on one thread, or PABP, its parallel form, on two. Both report
// the pairs that started and ended. Only their number is kept.

#include "BpBroadPhase.h"
#include "BpBroadPhaseUpdate.h"
#include "BpFiltering.h"
#include "PxcScratchAllocator.h"
#include "extensions/PxDefaultCpuDispatcher.h"
#include "foundation/PxFoundation.h"
#include "foundation/PxPhysicsVersion.h"
#include "frames.hpp"
#include "task/PxTask.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>

using namespace physx;

namespace {

struct Allocator : PxAllocatorCallback {
    void* allocate(size_t size, const char*, const char*, int) override { return std::aligned_alloc(16, (size + 15) & ~size_t(15)); }
    void deallocate(void* memory) override { std::free(memory); }
};

struct Errors : PxErrorCallback {
    void reportError(PxErrorCode::Enum, const char* message, const char*, int) override { frames::fail(message); }
};

Allocator allocator;
Errors errors;
PxFoundation* foundation = PxCreateFoundation(PX_PHYSICS_VERSION, allocator, errors);

// Runs when all tasks of an update are done.
struct Done : PxLightCpuTask {
    std::mutex mutex;
    std::condition_variable condition;
    bool is_done = false;

    const char* getName() const override { return "done"; }
    void run() override {}
    void release() override
    {
        PxLightCpuTask::release();
        std::lock_guard lock(mutex);
        is_done = true;
        condition.notify_one();
    }
    void wait()
    {
        std::unique_lock lock(mutex);
        condition.wait(lock, [&] { return is_done; });
        is_done = false;
    }
};

template <bool PARALLEL>
struct PhysX {
    static constexpr bool OF_CHANGED = false;

    Bp::BroadPhase* broad_phase = Bp::BroadPhase::create(PARALLEL ? PxBroadPhaseType::ePABP : PxBroadPhaseType::eABP, 0, 0, 0, 0, 0);
    Bp::BpFilter filter{false, false};
    PxcScratchAllocator scratch;
    std::vector<PxBounds3> bounds;
    std::vector<Bp::FilterGroup::Enum> groups;
    std::vector<float> distances;
    PxDefaultCpuDispatcher* dispatcher = PARALLEL ? PxDefaultCpuDispatcherCreate(2) : nullptr;
    PxTaskManager* tasks = PARALLEL ? PxTaskManager::createTaskManager(errors, dispatcher) : nullptr;
    Done done;
    uint64_t count = 0;

    explicit PhysX(const std::vector<Box>& boxes)
        : bounds(boxes.size() + 1), distances(boxes.size(), 0)  // four bytes past the end are read
    {
        for (uint32_t i = 0; i < boxes.size(); ++i) {
            groups.push_back(Bp::getFilterGroup_Dynamics(i, false));
        }
        std::vector<uint32_t> all(boxes.size());
        std::iota(all.begin(), all.end(), 0);
        run(boxes, all, {});
    }

    void update(const std::vector<Box>& boxes, const std::vector<uint32_t>& changed) { run(boxes, {}, changed); }

    void run(const std::vector<Box>& boxes, const std::vector<uint32_t>& created, const std::vector<uint32_t>& updated)
    {
        for (const std::vector<uint32_t>* list : {&created, &updated}) {
            for (uint32_t i : *list) {
                std::memcpy(static_cast<void*>(&bounds[i]), &boxes[i], sizeof(Box));
            }
        }
        Bp::BroadPhaseUpdateData data(created.data(), PxU32(created.size()), updated.data(), PxU32(updated.size()), nullptr, 0,
                                      bounds.data(), groups.data(), distances.data(), PxU32(boxes.size()), filter, true, false);
        broad_phase->preBroadPhase(data);
        if (PARALLEL) {
            done.setContinuation(*tasks, nullptr);
            broad_phase->update(&scratch, data, &done);
            done.removeReference();
            done.wait();
        } else {
            broad_phase->update(&scratch, data, nullptr);
        }
        broad_phase->fetchBroadPhaseResults();
        PxU32 started, ended;
        broad_phase->getCreatedPairs(started);
        broad_phase->getDeletedPairs(ended);
        count += started;
        count -= ended;
        broad_phase->freeBuffers();
    }

    uint64_t pairs() const { return count; }
};

}  // namespace

int main(int count, char** words)
{
#ifdef PARALLEL_ABP
    return frames::run<PhysX<true>>("physx-pabp", count, words);
#else
    return frames::run<PhysX<false>>("physx-abp", count, words);
#endif
}
