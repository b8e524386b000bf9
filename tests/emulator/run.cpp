// Runs blocks as sets of fibers. Each CUDA thread is a fiber with a stack of its own, and all
// threads of a block share one thread of the host. A fiber runs until it waits for its warp or its
// block. Then another fiber that does not wait continues, chosen at random.

#include "run.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace {

constexpr int ILLEGAL_ADDRESS = 700, TIMEOUT = 702, LAUNCH_FAILED = 719;
constexpr unsigned WARP = 32, MOST_THREADS = 1024, MOST_SHARED = 228 << 10;
constexpr size_t STACK = 128 << 10, CANARIES = 8;
constexpr uint64_t CANARY = 0x5afe57ac5afe57acull;
constexpr unsigned char POISON = 0xcd;

const char* const COLLECTIVES[EMU_COLLECTIVES] = {
    "__syncwarp", "__ballot_sync", "__any_sync", "__all_sync", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
    "__shfl_xor_sync", "__match_any_sync", "__match_all_sync", "match_digit", "__reduce_add_sync", "__reduce_min_sync",
    "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};
const char* const BARRIERS[] = {"__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count"};

uint64_t setting(const char* name, uint64_t otherwise) {
    const char* const text = getenv(name);
    return text && *text ? strtoull(text, nullptr, 0) : otherwise;
}
const uint64_t SEED = setting("RADSWEEP_EMULATE_SEED", 1);
const unsigned THREADS = unsigned(setting("RADSWEEP_EMULATE_THREADS", 2));
const uint64_t LIMIT = setting("RADSWEEP_EMULATE_LIMIT", 300);

struct Warp;

struct Fiber : EmuThread {
    void* stack_pointer;
    Warp* warp;
    unsigned lane;
    const char* waits_for;  // null while it runs
    void* waits_at;         // where the kernel called
};

// A group of lanes that wait for each other.
struct Group {
    uint32_t mask, arrived;
    int kind;
};

struct Warp {
    uint32_t alive, runnable;
    unsigned index, groups;
    Fiber* first;
    uint64_t value[WARP], result[WARP];
    uint8_t source[WARP];
    Group group[WARP];
};

// The state that the blocks of a launch share.
struct Running {
    const Launch& launch;
    std::atomic<uint64_t> next{0};
    uint64_t blocks;
    std::atomic<int> error{0};
    std::atomic<int> workers{0};
    uint32_t arrived = 0;  // at the barriers of the grid
    bool alone;  // the launch has one block, so no other block could use the processor

    explicit Running(const Launch& launch)
        : launch(launch), blocks(uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z), alone(blocks == 1) {}
};

// A block and the state for running it, which is reused for the next block.
struct Block : EmuBlock {
    Running* running = nullptr;
    Fiber fibers[MOST_THREADS];
    Warp warps[MOST_THREADS / WARP];
    uint32_t runnable_warps;
    unsigned threads, alive, waiting;
    int barrier, any, all, count, barrier_result;
    uint64_t random;
    unsigned yields = 0;
    bool reporting = false;  // it writes about an error and must not be interrupted
    uint32_t peers[256] = {};  // for match_digits, all 0 between calls
    void* scheduler;  // its stack pointer while a fiber runs
    char* stacks;
    char* shared_memory;
    pthread_t thread;

    Block();
    void run(uint64_t number);
    void fail(int code, const std::string& what);
    std::string name(const Fiber& fiber) const;
    uint32_t next_random() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return uint32_t(random >> 32);
    }
    // Returns the index of one of the set bits.
    unsigned pick(uint32_t bits) { return SEED == 0 ? __builtin_ctz(bits) : pick_any(bits); }
    unsigned pick_any(uint32_t bits) {
        const unsigned turn = next_random() % 32;
        return (__builtin_ctz(bits >> turn | bits << (32 - turn) % 32) + turn) % 32;
    }
};

// Saves the callee-saved registers, changes to the other stack, and continues where that one left
// off.
extern "C" void emu_switch(void** save, void* load);
asm(R"(
    .text
    .globl emu_switch
    .hidden emu_switch
    .type emu_switch, @function
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .size emu_switch, . - emu_switch
)");

Fiber& self() { return *static_cast<Fiber*>(emu_self); }
Block& block_of(Fiber& fiber) { return *static_cast<Block*>(fiber.block); }

// Returns to Block::run and abandons the fibers.
[[noreturn]] void leave(Block& block) {
    void* nowhere;
    emu_self = nullptr;
    emu_switch(&nowhere, block.scheduler);
    __builtin_unreachable();
}

// Continues a fiber that does not wait. Returns when `from` is chosen.
inline void run_another(Fiber& from, Block& block) {
    Warp* warp = from.warp;
    if (!warp->runnable) {
        block.runnable_warps &= ~(1u << warp->index);
        if (!block.runnable_warps) leave(block);
        warp = &block.warps[block.pick(block.runnable_warps)];
    } else if (SEED != 0 && block.random % 32 == 0) {
        warp = &block.warps[block.pick(block.runnable_warps)];
    }
    Fiber& to = warp->first[block.pick(warp->runnable)];
    if (&to == &from) return;
    emu_self = &to;
    emu_switch(&from.stack_pointer, to.stack_pointer);
}

void make_runnable(Block& block, Warp& warp, uint32_t lanes) {
    warp.runnable |= lanes;
    block.runnable_warps |= 1u << warp.index;
}

template <class Combine>
void reduce(Warp& warp, uint32_t lanes, Combine combine) {
    uint64_t sum = warp.value[__builtin_ctz(lanes)];
    for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) sum = combine(sum, warp.value[__builtin_ctz(rest)]);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) warp.result[__builtin_ctz(rest)] = sum;
}

// Returns the lanes whose values are equal.
template <class Same>
void match(Warp& warp, uint32_t lanes, Same all_or_nothing) {
    for (uint32_t rest = lanes; rest;) {
        const uint64_t value = warp.value[__builtin_ctz(rest)];
        uint32_t equal = 0;
        for (uint32_t r = rest; r; r &= r - 1) {
            const unsigned lane = __builtin_ctz(r);
            equal |= uint32_t(warp.value[lane] == value) << lane;
        }
        const uint32_t answer = all_or_nothing && equal != lanes ? 0 : equal;
        for (uint32_t r = equal; r; r &= r - 1) warp.result[__builtin_ctz(r)] = answer;
        rest &= ~equal;
        if (all_or_nothing && equal != lanes) {
            for (uint32_t r = lanes; r; r &= r - 1) warp.result[__builtin_ctz(r)] = 0;
            return;
        }
    }
}

void match_digits(Block& block, Warp& warp, uint32_t lanes) {
    uint32_t* const peers = block.peers;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        peers[warp.value[lane] & 255] |= 1u << lane;
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        warp.result[lane] = peers[warp.value[lane] & 255];
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) peers[warp.value[__builtin_ctz(rest)] & 255] = 0;
}

// Computes the result of each lane, after all have arrived, and lets them continue.
void complete(Block& block, Warp& warp, Group& group) {
    const uint32_t lanes = group.arrived;
    switch (group.kind) {
    case EMU_SYNCWARP: break;
    case EMU_BALLOT:
    case EMU_ANY:
    case EMU_ALL: {
        uint32_t bits = 0;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            const unsigned lane = __builtin_ctz(rest);
            bits |= uint32_t(warp.value[lane]) << lane;
        }
        const uint32_t result = group.kind == EMU_BALLOT ? bits : group.kind == EMU_ANY ? bits != 0 : bits == lanes;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) warp.result[__builtin_ctz(rest)] = result;
        break;
    }
    case EMU_SHFL:
    case EMU_SHFL_UP:
    case EMU_SHFL_DOWN:
    case EMU_SHFL_XOR:
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            const unsigned lane = __builtin_ctz(rest), source = warp.source[lane] % WARP;
            // The value of a lane that does not take part is undefined.
            warp.result[lane] = lanes >> source & 1 ? warp.value[source] : 0xcdcdcdcdcdcdcdcdull;
        }
        break;
    case EMU_MATCH_ANY: match(warp, lanes, false); break;
    case EMU_MATCH_ALL: match(warp, lanes, true); break;
    case EMU_MATCH_DIGIT: match_digits(block, warp, lanes); break;
    case EMU_REDUCE_ADD: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return a + b; }); break;
    case EMU_REDUCE_MIN: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return a < b ? a : b; }); break;
    case EMU_REDUCE_MAX: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return a > b ? a : b; }); break;
    case EMU_REDUCE_MIN_SIGNED: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return int64_t(a) < int64_t(b) ? a : b; }); break;
    case EMU_REDUCE_MAX_SIGNED: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return int64_t(a) > int64_t(b) ? a : b; }); break;
    case EMU_REDUCE_AND: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return a & b; }); break;
    case EMU_REDUCE_OR: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return a | b; }); break;
    case EMU_REDUCE_XOR: reduce(warp, lanes, [](uint64_t a, uint64_t b) { return a ^ b; }); break;
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) warp.first[__builtin_ctz(rest)].waits_for = nullptr;
    group = warp.group[--warp.groups];
    make_runnable(block, warp, lanes);
}

void complete_barrier(Block& block) {
    switch (block.barrier) {
    case EMU_SYNC: block.barrier_result = 0; break;
    case EMU_SYNC_OR: block.barrier_result = block.any; break;
    case EMU_SYNC_AND: block.barrier_result = block.all; break;
    case EMU_SYNC_COUNT: block.barrier_result = block.count; break;
    }
    block.waiting = 0;
    for (unsigned w = 0; w < (block.threads + WARP - 1) / WARP; w++) {
        Warp& warp = block.warps[w];
        if (!warp.alive) continue;
        for (uint32_t rest = warp.alive; rest; rest &= rest - 1) warp.first[__builtin_ctz(rest)].waits_for = nullptr;
        make_runnable(block, warp, warp.alive);
    }
}

// A fiber's first and only function.
[[noreturn]] void fiber_main() {
    Fiber& fiber = self();
    Block& block = block_of(fiber);
    const Launch& launch = block.running->launch;
    launch.kernel->call(launch.kernel->function, const_cast<void**>(launch.params.data()));

    const uint64_t* const canary = reinterpret_cast<uint64_t*>(block.stacks + STACK * (&fiber - block.fibers));
    for (size_t i = 0; i < CANARIES; i++) {
        if (canary[i] != CANARY) block.fail(LAUNCH_FAILED, block.name(fiber) + " used more than the 128 KiB of its stack");
    }
    Warp& warp = *fiber.warp;
    warp.alive &= ~(1u << fiber.lane);
    warp.runnable &= warp.alive;
    block.alive--;
    // Others may have waited only for this thread.
    for (unsigned g = 0; g < warp.groups; g++) {
        Group& group = warp.group[g];
        if (group.arrived == (group.mask & warp.alive)) {
            complete(block, warp, group);
            g--;
        }
    }
    if (block.waiting && block.waiting == block.alive) complete_barrier(block);
    run_another(fiber, block);
    __builtin_unreachable();
}

Block::Block() {
    const size_t stack_bytes = STACK * MOST_THREADS;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    stacks = static_cast<char*>(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, flags, -1, 0));
    shared_memory = static_cast<char*>(mmap(nullptr, MOST_SHARED + 8192, PROT_READ | PROT_WRITE, flags, -1, 0));
    if (stacks == MAP_FAILED || shared_memory == MAP_FAILED) {
        fprintf(stderr, "emulator: no memory for stacks\n");
        abort();
    }
}

struct TlsIndex {
    unsigned long module, offset;
};
extern "C" void* __tls_get_addr(TlsIndex*);

void Block::run(uint64_t number) {
    const Launch& launch = running->launch;
    grid = launch.grid;
    dim = launch.block;
    index = {unsigned(number % grid.x), unsigned(number / grid.x % grid.y), unsigned(number / grid.x / grid.y)};
    threads = alive = dim.x * dim.y * dim.z;
    waiting = 0;
    thread = pthread_self();
    random = (SEED * 0x9e3779b97f4a7c15ull) ^ ((number + 1) * 0xd1342543de82ef95ull);
    if (random == 0) random = 1;

    // Shared memory begins with garbage.
    shared = shared_memory + 4096;
    shared_size = launch.shared;
    arrived = launch.cooperative ? &running->arrived : nullptr;
    memset(shared - 256, POISON, shared_size + 512);
    if (launch.code->tls_size != 0) {
        TlsIndex variables{launch.code->tls_module, 0};
        memset(__tls_get_addr(&variables), POISON, launch.code->tls_size);
    }

    const unsigned warp_count = (threads + WARP - 1) / WARP;
    runnable_warps = warp_count == 32 ? ~0u : (1u << warp_count) - 1;
    for (unsigned w = 0; w < warp_count; w++) {
        Warp& warp = warps[w];
        const unsigned lanes = threads - w * WARP < WARP ? threads - w * WARP : WARP;
        warp.alive = warp.runnable = lanes == WARP ? ~0u : (1u << lanes) - 1;
        warp.index = w;
        warp.groups = 0;
        warp.first = fibers + w * WARP;
    }
    for (unsigned i = 0; i < threads; i++) {
        Fiber& fiber = fibers[i];
        fiber.index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
        fiber.spins = i * 7;
        fiber.block = this;
        fiber.warp = warps + i / WARP;
        fiber.lane = i % WARP;
        fiber.waits_for = nullptr;
        fiber.waits_at = nullptr;
        char* const bottom = stacks + STACK * i;
        for (size_t c = 0; c < CANARIES; c++) reinterpret_cast<uint64_t*>(bottom)[c] = CANARY;
        // The stacks' tops have different offsets in a page, so that they do not compete for the
        // same cache lines. A function begins with its return address below a multiple of 16.
        uint64_t* top = reinterpret_cast<uint64_t*>(bottom + STACK - 64 - i * 576 % 4096 / 64 * 64);
        *--top = 0;
        *--top = reinterpret_cast<uint64_t>(&fiber_main);
        fiber.stack_pointer = top - 6;
    }

    Fiber& first = warps[pick(runnable_warps)].first[0];
    emu_self = &first;
    emu_switch(&scheduler, first.stack_pointer);
    emu_self = nullptr;

    if (running->error.load() != 0) return;
    if (alive != 0) {
        fail(LAUNCH_FAILED, "deadlock, no thread of the block can go on");
        return;
    }
    for (unsigned i = 0; i < 256; i++) {
        if (shared[-1 - int(i)] != char(POISON) || shared[shared_size + i] != char(POISON)) {
            fail(ILLEGAL_ADDRESS, "a thread wrote outside of the block's dynamic shared memory");
            return;
        }
    }
}

// Returns the source line of an address of the image's code, if the tools can tell.
std::string source_line(void* address) {
    Dl_info info;
    if (!address || !dladdr(address, &info)) return "";
    char command[600];
    snprintf(command, sizeof command, "addr2line -s -i -e '%s' %#lx 2>/dev/null", info.dli_fname,
             (unsigned long)((char*)address - (char*)info.dli_fbase) - 1);
    std::string text;
    if (FILE* const pipe = popen(command, "r")) {
        char line[400];
        while (fgets(line, sizeof line, pipe)) {
            std::string name(line, strcspn(line, " \n"));
            // The first lines are of the header that replaces CUDA's.
            if (name.find("cuda_host.h") != std::string::npos || name.find("??") != std::string::npos) continue;
            text += (text.empty() ? " at " : " from ") + name;
        }
        pclose(pipe);
    }
    return text;
}

std::string Block::name(const Fiber& fiber) const {
    char text[80];
    snprintf(text, sizeof text, "thread (%u, %u, %u)", fiber.index.x, fiber.index.y, fiber.index.z);
    return text;
}

void Block::fail(int code, const std::string& what) {
    int none = 0;
    // Only the first error is reported.
    if (!running->error.compare_exchange_strong(none, code)) return;
    reporting = true;
    fprintf(stderr, "emulator: %s, block (%u, %u, %u): %s\n", running->launch.kernel->name, index.x, index.y, index.z, what.c_str());
    std::map<std::pair<void*, const char*>, std::pair<unsigned, unsigned>> places;
    for (unsigned i = 0; i < threads; i++) {
        if (!fibers[i].waits_for) continue;
        auto& place = places.try_emplace({fibers[i].waits_at, fibers[i].waits_for}, 0, i).first->second;
        place.first++;
    }
    for (auto& [place, count] : places) {
        fprintf(stderr, "emulator:   %u threads, the first %s, wait in %s%s\n", count.first, name(fibers[count.second]).c_str(), place.second,
                source_line(place.first).c_str());
    }
    reporting = false;
}

// ---- Blocks on threads of the host ----

std::mutex blocks_lock;
std::vector<Block*> idle_blocks;

Block* take_block(Running& running) {
    Block* block = nullptr;
    {
        std::lock_guard<std::mutex> guard(blocks_lock);
        if (!idle_blocks.empty()) {
            block = idle_blocks.back();
            idle_blocks.pop_back();
        }
    }
    if (!block) block = new Block;
    block->running = &running;
    return block;
}

// The running blocks, for the watch.
std::map<Block*, time_t> busy_blocks;

time_t seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

void give_back(Block* block) {
    std::lock_guard<std::mutex> guard(blocks_lock);
    idle_blocks.push_back(block);
}

const int STOP = SIGRTMIN + 7;

// Ends blocks that run for too long, such as those that wait forever in a loop of reads.
void watch() {
    for (;;) {
        sleep(1);
        std::lock_guard<std::mutex> guard(blocks_lock);
        for (auto& [block, since] : busy_blocks) {
            if (block->running->error.load() != 0 ? seconds() - since > 2 : seconds() - since > time_t(LIMIT)) {
                pthread_kill(block->thread, STOP);
            }
        }
    }
}

struct sigaction before_segv, before_bus, before_fpe;

void on_signal(int signal, siginfo_t* info, void* context) {
    Fiber* const fiber = static_cast<Fiber*>(emu_self);
    if (!fiber) {
        if (signal == STOP) return;
        // The signal is not a kernel's, so the previous handler gets it.
        const struct sigaction& before = signal == SIGSEGV ? before_segv : signal == SIGBUS ? before_bus : before_fpe;
        if (before.sa_flags & SA_SIGINFO) {
            before.sa_sigaction(signal, info, context);
        } else {
            sigaction(signal, &before, nullptr);
        }
        return;
    }
    // The signal interrupted the kernel's code or a few lines of the scheduler, which hold no locks
    // while `emu_self` is set. So the rest of the block can be abandoned.
    Block& block = block_of(*fiber);
    if (signal == STOP && block.reporting) return;
    char what[200];
    if (signal == STOP) {
        snprintf(what, sizeof what, "it ran for more than %lu seconds (RADSWEEP_EMULATE_LIMIT)", (unsigned long)LIMIT);
        block.fail(TIMEOUT, what);
    } else {
        snprintf(what, sizeof what, "%s: %s at address %p", block.name(*fiber).c_str(),
                 signal == SIGFPE ? "division by zero" : "illegal memory access", signal == SIGFPE ? nullptr : info->si_addr);
        const greg_t at = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
        block.fail(signal == SIGFPE ? LAUNCH_FAILED : ILLEGAL_ADDRESS, what + source_line(reinterpret_cast<void*>(at + 1)));
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    leave(block);
}

void prepare_process() {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
    sigaction(SIGFPE, &action, &before_fpe);
    sigaction(STOP, &action, nullptr);
    std::thread(watch).detach();
}

void run_blocks(Running& running, bool only_one) {
    Block* const block = take_block(running);
    for (;;) {
        const uint64_t number = running.next.fetch_add(1);
        if (number >= running.blocks || running.error.load() != 0) break;
        {
            std::lock_guard<std::mutex> guard(blocks_lock);
            block->thread = pthread_self();
            busy_blocks[block] = seconds();
        }
        block->run(number);
        {
            std::lock_guard<std::mutex> guard(blocks_lock);
            busy_blocks.erase(block);
        }
        if (only_one) break;
    }
    give_back(block);
}

// ---- A pool of threads that grows as needed ----

struct Pool {
    std::mutex lock;
    std::condition_variable more;
    std::deque<std::pair<void (*)(void*), void*>> tasks;
    size_t idle = 0;

    void work() {
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            idle++;
            while (tasks.empty()) more.wait(guard);
            idle--;
            const auto [task, argument] = tasks.front();
            tasks.pop_front();
            guard.unlock();
            task(argument);
            guard.lock();
        }
    }
};
Pool& pool = *new Pool;  // never destroyed: its threads run until the process ends

}  // namespace

__thread EmuThread* emu_self = nullptr;

void in_background(void (*task)(void*), void* argument) {
    std::lock_guard<std::mutex> guard(pool.lock);
    pool.tasks.emplace_back(task, argument);
    if (pool.tasks.size() > pool.idle) std::thread([] { pool.work(); }).detach();
    pool.more.notify_one();
}

int run_launch(const Launch& launch) {
    static const bool prepared = (prepare_process(), true);
    (void)prepared;
    struct Shared : Running {
        using Running::Running;
        std::mutex lock;
        std::condition_variable ended;
        unsigned helpers = 0;
    };
    Shared running(launch);
    // All blocks of a cooperative launch run at once, so each has a thread of its own.
    const uint64_t threads = launch.cooperative ? running.blocks : THREADS < running.blocks ? THREADS : running.blocks;
    running.helpers = unsigned(threads - 1);
    for (uint64_t i = 1; i < threads; i++) {
        in_background(
            [](void* argument) {
                Shared& running = *static_cast<Shared*>(argument);
                run_blocks(running, running.launch.cooperative);
                std::lock_guard<std::mutex> guard(running.lock);
                if (--running.helpers == 0) running.ended.notify_one();
            },
            &running);
    }
    run_blocks(running, launch.cooperative);
    std::unique_lock<std::mutex> guard(running.lock);
    running.ended.wait(guard, [&] { return running.helpers == 0; });
    return running.error.load();
}

// ---- Functions that kernels call ----

uint64_t emu_collective(int kind, unsigned mask, uint64_t value, unsigned source) {
    Fiber& fiber = self();
    Warp& warp = *fiber.warp;
    Block& block = block_of(fiber);
    const unsigned lane = fiber.lane;
    const uint32_t bit = 1u << lane;
    fiber.waits_at = __builtin_return_address(0);
    auto wrong = [&](const std::string& what) {
        block.fail(LAUNCH_FAILED, block.name(fiber) + " " + what + source_line(fiber.waits_at));
        leave(block);
    };
    if (!(mask & bit)) wrong(std::string("calls ") + COLLECTIVES[kind] + " with a mask without its own lane");
    unsigned g = 0;
    while (g < warp.groups && warp.group[g].mask != mask) {
        // Lanes that wait with another mask may still arrive, unless they wait for this lane.
        if ((warp.group[g].arrived & mask) && (warp.group[g].mask & bit)) {
            char what[200];
            snprintf(what, sizeof what, "calls %s with mask %08x while lanes of it wait in %s with mask %08x", COLLECTIVES[kind], mask,
                     COLLECTIVES[warp.group[g].kind], warp.group[g].mask);
            wrong(what);
        }
        g++;
    }
    Group& group = warp.group[g];
    if (g == warp.groups) {
        warp.groups++;
        group = {mask, 0, kind};
    } else if (group.kind != kind) {
        wrong(std::string("calls ") + COLLECTIVES[kind] + " while other lanes of its warp wait in " + COLLECTIVES[group.kind]);
    }
    group.arrived |= bit;
    warp.value[lane] = value;
    warp.source[lane] = uint8_t(source);
    if (group.arrived == (mask & warp.alive)) {
        complete(block, warp, group);
        return warp.result[lane];
    }
    warp.runnable &= ~bit;
    fiber.waits_for = COLLECTIVES[kind];
    run_another(fiber, block);
    return warp.result[lane];
}

int emu_barrier(int kind, int predicate) {
    Fiber& fiber = self();
    Block& block = block_of(fiber);
    fiber.waits_at = __builtin_return_address(0);
    if (block.waiting++ == 0) {
        block.barrier = kind;
        block.any = 0, block.all = 1, block.count = 0;
    } else if (block.barrier != kind) {
        block.fail(LAUNCH_FAILED, block.name(fiber) + " calls " + BARRIERS[kind] + " while others of its block wait in " + BARRIERS[block.barrier] +
                                      source_line(fiber.waits_at));
        leave(block);
    }
    block.any |= predicate != 0;
    block.all &= predicate != 0;
    block.count += predicate != 0;
    if (block.waiting == block.alive) {
        complete_barrier(block);
        // Any thread may be the first to continue.
        run_another(fiber, block);
        return block.barrier_result;
    }
    fiber.warp->runnable &= ~(1u << fiber.lane);
    fiber.waits_for = BARRIERS[kind];
    run_another(fiber, block);
    return block.barrier_result;
}

void emu_yield() {
    Fiber& fiber = self();
    Block& block = block_of(fiber);
    if (block.running->error.load(std::memory_order_relaxed) != 0) leave(block);
    if (++block.yields % 64 == 0 && !block.running->alone) sched_yield();
    // The choice is random even if the order is fixed otherwise, so that every thread gets its
    // turn.
    Warp& warp = block.warps[block.pick_any(block.runnable_warps)];
    Fiber& to = warp.first[block.pick_any(warp.runnable)];
    if (&to == &fiber) return;
    emu_self = &to;
    emu_switch(&fiber.stack_pointer, to.stack_pointer);
}

void emu_fail(const char* what) {
    Fiber& fiber = self();
    Block& block = block_of(fiber);
    block.fail(LAUNCH_FAILED, block.name(fiber) + ": " + what + source_line(__builtin_return_address(0)));
    leave(block);
}
