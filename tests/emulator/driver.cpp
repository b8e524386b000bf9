// The functions of the CUDA driver that the project calls, on the CPU. Each stream runs its work in
// order on a thread of its own, so the host waits only if it asks to. The shim returns NOT_FOUND
// (500) for functions that are missing here.

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "run.h"

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum Code_ {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701, COOPERATIVE_LAUNCH_TOO_LARGE = 720, NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901, CAPTURE_MERGE = 902, CAPTURE_UNMATCHED = 903, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905,
    CAPTURED_EVENT = 907
};

const std::map<int, const char*> NAMES = {
    {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {4, "CUDA_ERROR_DEINITIALIZED"}, {34, "CUDA_ERROR_STUB_LIBRARY"}, {100, "CUDA_ERROR_NO_DEVICE"},
    {101, "CUDA_ERROR_INVALID_DEVICE"}, {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {218, "CUDA_ERROR_INVALID_PTX"}, {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {300, "CUDA_ERROR_INVALID_SOURCE"}, {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"},
    {600, "CUDA_ERROR_NOT_READY"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT"}, {716, "CUDA_ERROR_MISALIGNED_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"}, {801, "CUDA_ERROR_NOT_SUPPORTED"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}, {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"}, {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"}, {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"}, {907, "CUDA_ERROR_CAPTURED_EVENT"}, {999, "CUDA_ERROR_UNKNOWN"}};

// The device's properties. They are those of a data centre's GPU if that finds mistakes, and small
// if that saves time.
constexpr int MULTIPROCESSORS = 4, THREADS_PER_MULTIPROCESSOR = 2048, BLOCKS_PER_MULTIPROCESSOR = 16;
constexpr int SHARED = 48 << 10, SHARED_OPTIN = 227 << 10, SHARED_PER_MULTIPROCESSOR = 228 << 10;
constexpr size_t MEMORY = size_t(4) << 30;
// The first version of which a captured launch may begin early. Entry points for clusters are
// missing all the same.
constexpr int VERSION = 12030, MAJOR = 9, MINOR = 0;

using Guard = std::unique_lock<std::mutex>;
// Guards everything below. It is not locked while work runs. Nothing here is destroyed at the end
// of the process, when streams may still run.
std::mutex& lock = *new std::mutex;
// Notified when a stream becomes idle or an event happens.
std::condition_variable& changed = *new std::condition_variable;

// ---- Memory ----

constexpr size_t BEFORE = 4096, AFTER = 4096, MOST_POISONED = size_t(32) << 20;
constexpr unsigned char GUARD = 0xfb, FRESH = 0xcd, FREED = 0xdd;

struct Allocation {
    char* base;
    size_t bytes;
    bool reported = false;  // an overrun was reported
    char* data() const { return base + BEFORE; }
};
std::map<uintptr_t, Allocation>& allocations = *new std::map<uintptr_t, Allocation>;
size_t used = 0;

void poison(char* data, size_t bytes, unsigned char value) {
    const size_t part = std::min(bytes, MOST_POISONED);
    memset(data, value, part);
    memset(data + bytes - part, value, part);
}

int allocate(size_t bytes, uintptr_t* result) {
    if (bytes == 0) return INVALID_VALUE;
    {
        Guard guard(lock);
        if (bytes > MEMORY - used) return OUT_OF_MEMORY;
        used += bytes;
    }
    char* const base = static_cast<char*>(memalign(4096, BEFORE + bytes + AFTER));
    if (base) {
        memset(base, GUARD, BEFORE);
        memset(base + BEFORE + bytes, GUARD, AFTER);
        poison(base + BEFORE, bytes, FRESH);
    }
    Guard guard(lock);
    if (!base) {
        used -= bytes;
        return OUT_OF_MEMORY;
    }
    *result = reinterpret_cast<uintptr_t>(base + BEFORE);
    allocations[*result] = {base, bytes};
    return SUCCESS;
}

// Reports writes before or behind an allocation.
bool overrun(Allocation& allocation) {
    if (allocation.reported) return false;
    const auto broken = [](const char* from, size_t bytes) {
        // All bytes equal the first one in most cases, and `memcmp` finds that fast.
        if (from[0] == char(GUARD) && memcmp(from, from + 1, bytes - 1) == 0) return size_t(0);
        for (size_t i = 0; i < bytes; i++) {
            if (from[i] != char(GUARD)) return i + 1;
        }
        return size_t(0);
    };
    const char* const end = allocation.data() + allocation.bytes;
    const size_t before = broken(allocation.base, BEFORE), after = broken(end, AFTER);
    if (!before && !after) return false;
    allocation.reported = true;
    if (before) {
        fprintf(stderr, "emulator: %zu bytes before a buffer of %zu bytes at %p were written to\n", BEFORE - before + 1, allocation.bytes,
                static_cast<void*>(allocation.data()));
    }
    if (after) {
        fprintf(stderr, "emulator: byte %zu behind a buffer of %zu bytes at %p was written to\n", after - 1, allocation.bytes,
                static_cast<void*>(allocation.data()));
    }
    return true;
}

int release(uintptr_t pointer) {
    Guard guard(lock);
    const auto found = allocations.find(pointer);
    if (found == allocations.end()) {
        fprintf(stderr, "emulator: freed %#lx, which is no buffer's address\n", (unsigned long)pointer);
        return INVALID_VALUE;
    }
    Allocation allocation = found->second;
    allocations.erase(found);
    used -= allocation.bytes;
    const bool bad = overrun(allocation);
    guard.unlock();
    poison(allocation.data(), allocation.bytes, FREED);
    free(allocation.base);
    return bad ? ILLEGAL_ADDRESS : SUCCESS;
}

// The caller has locked the mutex.
int check_guards() {
    bool bad = false;
    for (auto& [address, allocation] : allocations) bad |= overrun(allocation);
    return bad ? ILLEGAL_ADDRESS : SUCCESS;
}

bool on_device(uintptr_t pointer, size_t bytes) {
    Guard guard(lock);
    auto found = allocations.upper_bound(pointer);
    if (found != allocations.begin()) {
        --found;
        const uintptr_t offset = pointer - found->first;
        if (offset <= found->second.bytes && bytes <= found->second.bytes - offset) return true;
    }
    fprintf(stderr, "emulator: a copy or fill of %zu bytes at %#lx is not within a buffer\n", bytes, (unsigned long)pointer);
    return false;
}

// ---- Streams ----

struct Work {
    std::function<int()> run;
    bool always = false;  // runs even after an error, which ends other work
    bool locked = false;  // runs with the mutex locked: it is never seen done with its stream busy
};

struct Stream;
using Clock = std::map<Stream*, uint64_t>;

struct Capture {
    uint64_t id;
    Stream* origin;
    std::set<Stream*> streams;
    std::vector<Work> work;
    bool broken = false;
};

struct Stream {
    std::deque<Work> queue;
    bool running = false, destroyed = false;
    int error = 0;
    std::shared_ptr<Capture> capture;
    uint64_t captured = 0;  // calls in this capture
    Clock seen;             // calls of each stream that come before what this one does next
};
std::set<Stream*>& streams = *new std::set<Stream*>;
Stream& default_stream = *new Stream;

Stream* stream_of(void* handle) {
    // 0, 1 and 2 are the streams that always exist.
    return reinterpret_cast<uintptr_t>(handle) <= 2 ? &default_stream : static_cast<Stream*>(handle);
}

void drain(void* argument) {
    Stream* const stream = static_cast<Stream*>(argument);
    Guard guard(lock);
    while (!stream->queue.empty()) {
        const Work work = std::move(stream->queue.front());
        stream->queue.pop_front();
        if (stream->error != 0 && !work.always) continue;
        if (!work.locked) guard.unlock();
        const int error = work.run();
        if (!work.locked) guard.lock();
        if (stream->error == 0) stream->error = error;
    }
    stream->running = false;
    changed.notify_all();
    if (stream->destroyed) delete stream;
}

void break_capture(Stream* stream) {
    if (stream->capture) stream->capture->broken = true;
}

int wait_for(Stream* stream, Guard& guard) {
    changed.wait(guard, [&] { return !stream->running; });
    const int error = std::exchange(stream->error, 0);
    const int guards = check_guards();
    return error ? error : guards;
}

// RADSWEEP_EMULATE_SYNC=1: every call waits for its work, so that an error shows where it is made.
const bool SYNC = getenv("RADSWEEP_EMULATE_SYNC") && strcmp(getenv("RADSWEEP_EMULATE_SYNC"), "1") == 0;

int submit(Stream* stream, Work work) {
    Guard guard(lock);
    if (stream->capture) {
        if (stream->capture->broken) return CAPTURE_INVALIDATED;
        stream->capture->work.push_back(std::move(work));
        stream->seen[stream] = ++stream->captured;
        return SUCCESS;
    }
    stream->queue.push_back(std::move(work));
    if (!stream->running) {
        stream->running = true;
        in_background(drain, stream);
    }
    return SYNC ? wait_for(stream, guard) : SUCCESS;
}

// ---- Events ----

// The state of one call of cuEventRecord.
struct Record {
    bool done = false;
    timespec time{};
    std::shared_ptr<Capture> capture;  // where it was captured
    Clock seen;
};
struct Event {
    std::shared_ptr<Record> record;
};

// ---- Modules ----

struct Function {
    const Code* code;
    const EmuKernel* kernel;
    int max_dynamic_shared = SHARED;
};
struct Module {
    const Code* code;
    std::map<std::string, Function> functions;
};

std::map<std::string, Code>& codes = *new std::map<std::string, Code>;

// The caller has locked the mutex.
const Code* load_code(const std::string& path, std::string& log) {
    const auto found = codes.find(path);
    if (found != codes.end()) return &found->second;
    // Kernels call functions of this library. It was opened for its caller only, so its symbols are
    // made global.
    Dl_info own;
    dladdr(reinterpret_cast<void*>(&load_code), &own);
    dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        log = dlerror();
        return nullptr;
    }
    Code code;
    code.path = path;
    const auto kernels = reinterpret_cast<const EmuKernel* (*)()>(dlsym(library, "emu_kernels"));
    if (!kernels) {
        log = path + ": not made by the emulator's nvcc";
        return nullptr;
    }
    code.kernels = kernels();
    link_map* map = nullptr;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    dlinfo(library, RTLD_DI_TLS_MODID, &code.tls_module);
    std::pair<link_map*, size_t> size{map, 0};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* argument) {
            auto& size = *static_cast<std::pair<link_map*, size_t>*>(argument);
            if (info->dlpi_addr != size.first->l_addr) return 0;
            for (int i = 0; i < info->dlpi_phnum; i++) {
                if (info->dlpi_phdr[i].p_type == PT_TLS) size.second = info->dlpi_phdr[i].p_memsz;
            }
            return 1;
        },
        &size);
    code.tls_size = size.second;
    return &(codes[path] = code);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::string file(const std::string& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
}

const char MARK[] = "// emulated image: ";

std::string path_in(const std::string& text) {
    const size_t mark = text.find(MARK);
    if (mark == std::string::npos) return "";
    const size_t from = mark + strlen(MARK);
    return text.substr(from, text.find('\n', from) - from);
}

std::string own_folder() {
    Dl_info own;
    dladdr(reinterpret_cast<void*>(&load_code), &own);
    return std::string(own.dli_fname).substr(0, std::string(own.dli_fname).rfind('/') + 1);
}

// Returns the name of the translation of a text, from the files NAME.known, or nothing.
std::string known(const std::string& text) {
    for (const auto& entry : std::filesystem::directory_iterator(own_folder())) {
        const bool is_candidate = entry.path().extension() == ".known" && entry.file_size() == text.size();
        if (is_candidate && file(entry.path()) == text) return entry.path().stem();
    }
    return "";
}

// Returns how many lines a text begins with that hand-written PTX begins with too.
size_t lines_in_common(const std::string& text) {
    const auto given = lines_of(text);
    size_t furthest = 0;
    for (const char* name : {"gpu_kernels", "example_kernels"}) {
        const auto wanted = lines_of(file(own_folder() + name + ".known"));
        const size_t both = std::min(wanted.size(), given.size());
        const auto apart = std::mismatch(given.begin(), given.begin() + both, wanted.begin());
        furthest = std::max<size_t>(furthest, apart.first - given.begin());
    }
    return furthest;
}

// Returns the shared object that a PTX text names.
int find_image(const std::string& text, std::string& path, std::string& log) {
    double version = 0;
    const size_t at = text.find(".version ");
    if (at == std::string::npos || sscanf(text.c_str() + at, ".version %lf", &version) != 1) {
        log = "no .version";
        return INVALID_PTX;
    }
    if (version > 9) {
        log = "unsupported .version";
        return UNSUPPORTED_PTX_VERSION;
    }
    int target = 0;
    const size_t target_at = text.find(".target sm_");
    if (target_at == std::string::npos || sscanf(text.c_str() + target_at, ".target sm_%d", &target) != 1 || target > MAJOR * 10 + MINOR) {
        log = "unsupported .target";
        return INVALID_PTX;
    }
    path = path_in(text);
    if (!path.empty()) return SUCCESS;

    // The text is real PTX. For some there is a translation beside this library.
    const std::string name = known(text);
    if (!name.empty()) {
        path = path_in(file(own_folder() + name + ".ptx"));
        return SUCCESS;
    }
    const size_t line = lines_in_common(text);
    const auto given = lines_of(text);
    log = "line " + std::to_string(line + 1) + ": " + (line < given.size() ? given[line] : "end") + ": the emulator knows no PTX but that of the kernel images, of the tests of the device layer and of the examples";
    return INVALID_PTX;
}

// ---- Graphs ----

struct Graph {
    std::vector<Work> work;
};

// ---- Faults, for tests of errors ----

// RADSWEEP_EMULATE_FAULT="cuLaunchKernel 3 719": the third call of the function, counted from when
// this was set, returns 719. "any" counts all calls, "3+" fails all from the third on, like a lost
// device, and "3-6" the third to the sixth.
int fault(const char* name) {
    const char* const wanted = getenv("RADSWEEP_EMULATE_FAULT");
    Guard guard(lock);
    static std::string last;
    static long count;
    if (last != (wanted ? wanted : "")) {
        last = wanted ? wanted : "";
        count = 0;
    }
    if (last.empty()) return SUCCESS;
    std::istringstream parts(last);
    std::string call, nth;
    int code = 0;
    parts >> call >> nth >> code;
    if (call != "any" && call != name) return SUCCESS;
    count++;
    const long first = std::stol(nth);
    const size_t dash = nth.find('-');
    const long last_one = dash != std::string::npos ? std::stol(nth.substr(dash + 1)) : nth.back() == '+' ? count : first;
    return count >= first && count <= last_one ? code : SUCCESS;
}
#define FAULT(name) \
    if (const int code = fault(#name)) return code

}  // namespace

// ---- Errors, the device, its context ----

API cuGetErrorName(int code, const char** text) {
    if (!text) return INVALID_VALUE;
    const auto found = NAMES.find(code);
    *text = found == NAMES.end() ? nullptr : found->second;
    return *text ? SUCCESS : INVALID_VALUE;
}
API cuGetErrorString(int code, const char** text) { return cuGetErrorName(code, text); }

API cuInit(unsigned flags) { FAULT(cuInit); return flags == 0 ? SUCCESS : INVALID_VALUE; }
API cuDriverGetVersion(int* version) {
    *version = VERSION;
    return SUCCESS;
}
// All devices are alike and share one memory.
constexpr int MAX_DEVICES = 8;
static int devices() {
    const char* const wanted = getenv("RADSWEEP_EMULATE_DEVICES");
    return wanted ? std::clamp(atoi(wanted), 1, MAX_DEVICES) : 1;
}
API cuDeviceGetCount(int* count) {
    FAULT(cuDeviceGetCount);
    *count = devices();
    return SUCCESS;
}
API cuDeviceGet(int* device, int ordinal) {
    FAULT(cuDeviceGet);
    *device = ordinal;
    return 0 <= ordinal && ordinal < devices() ? SUCCESS : INVALID_DEVICE;
}
API cuDeviceGetName(char* name, int length, int) {
    snprintf(name, size_t(length), "Emulated CUDA device");
    return SUCCESS;
}
API cuDeviceGetUuid(char* uuid, int device) {
    FAULT(cuDeviceGetUuid);
    memset(uuid, 0, 16);
    uuid[15] = char(device);
    return SUCCESS;
}
API cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = MEMORY;
    return SUCCESS;
}
API cuDeviceGetAttribute(int* value, int attribute, int) {
    static const std::map<int, int> VALUES = {
        {1, 1024},                         // threads of a block
        {2, 1024}, {3, 1024}, {4, 64},     // of it by axis
        {5, 0x7fffffff}, {6, 65535}, {7, 65535},  // blocks of a grid by axis
        {8, SHARED}, {9, 64 << 10}, {10, 32}, {11, 0x7fffffff}, {12, 65536},
        {13, 2'000'000},                   // clock rate, kHz
        {16, MULTIPROCESSORS}, {17, 0}, {18, 0}, {19, 0}, {20, 0}, {31, 1}, {36, 2'000'000}, {37, 128},
        {38, 50 << 20},                    // level-two cache
        {39, THREADS_PER_MULTIPROCESSOR}, {40, 1}, {41, 1}, {75, MAJOR}, {76, MINOR}, {78, 0}, {81, SHARED_PER_MULTIPROCESSOR}, {82, 65536},
        {83, 0}, {95, 1},                  // cooperative launches
        {97, SHARED_OPTIN}, {106, BLOCKS_PER_MULTIPROCESSOR}, {115, 1}};  // memory pools
    const auto found = VALUES.find(attribute);
    if (found == VALUES.end()) return INVALID_VALUE;
    *value = found->second;
    return SUCCESS;
}

static char contexts[MAX_DEVICES];
static thread_local void* current = contexts;
API cuDevicePrimaryCtxRetain(void** result, int device) {
    FAULT(cuDevicePrimaryCtxRetain);
    *result = &contexts[device];
    return SUCCESS;
}
API cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
API cuCtxSetCurrent(void* wanted) {
    if (wanted && (wanted < contexts || wanted >= contexts + MAX_DEVICES)) return 201;
    if (wanted) current = wanted;
    return SUCCESS;
}
API cuCtxGetCurrent(void** result) {
    *result = current;
    return SUCCESS;
}
API cuCtxSynchronize() {
    Guard guard(lock);
    bool capturing = false;
    for (Stream* const stream : streams) {
        capturing |= stream->capture != nullptr;
        break_capture(stream);
    }
    if (capturing) return CAPTURE_UNSUPPORTED;
    for (;;) {
        Stream* busy = default_stream.running ? &default_stream : nullptr;
        for (Stream* const stream : streams) {
            if (stream->running) busy = stream;
        }
        if (!busy) break;
        changed.wait(guard);
    }
    int error = std::exchange(default_stream.error, 0);
    for (Stream* const stream : streams) {
        const int of_stream = std::exchange(stream->error, 0);
        if (error == 0) error = of_stream;
    }
    const int guards = check_guards();
    return error ? error : guards;
}

// ---- Modules ----

API cuModuleLoadDataEx(Module** result, const void* image, unsigned count, int* options, void** values) {
    FAULT(cuModuleLoadDataEx);
    const std::string text = static_cast<const char*>(image);
    std::string path, log;
    int error = find_image(text, path, log);
    if (error == SUCCESS) {
        Guard guard(lock);
        if (const Code* const code = load_code(path, log)) {
            Module* const module = new Module{code, {}};
            for (const EmuKernel* kernel = code->kernels; kernel; kernel = kernel->next) module->functions[kernel->name] = {code, kernel};
            *result = module;
            return SUCCESS;
        }
        error = INVALID_IMAGE;
    }
    constexpr int ERROR_LOG = 5, ERROR_LOG_BYTES = 6;
    char* buffer = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == ERROR_LOG) buffer = static_cast<char*>(values[i]);
        if (options[i] == ERROR_LOG_BYTES) bytes = reinterpret_cast<uintptr_t>(values[i]) & 0xffffffff;
    }
    if (buffer && bytes) snprintf(buffer, bytes, "%s", log.c_str());
    return error;
}
API cuModuleLoadData(Module** result, const void* image) { return cuModuleLoadDataEx(result, image, 0, nullptr, nullptr); }
API cuModuleUnload(Module* module) {
    delete module;  // its code stays loaded for the next
    return SUCCESS;
}
API cuModuleGetFunction(Function** result, Module* module, const char* name) {
    FAULT(cuModuleGetFunction);
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) return NOT_FOUND;
    *result = &found->second;
    return SUCCESS;
}

API cuFuncGetAttribute(int* value, int attribute, Function* function) {
    switch (attribute) {
    case 0: *value = int(function->kernel->max_threads); break;
    case 1: *value = 0; break;   // static shared memory: not known here
    case 2: *value = 0; break;   // constant memory
    case 3: *value = 0; break;   // local memory
    case 4: *value = 32; break;  // registers
    case 5: *value = 75; break;  // PTX version
    case 6: *value = MAJOR * 10 + MINOR; break;
    case 7: *value = 0; break;
    case 8: *value = function->max_dynamic_shared; break;
    case 9: *value = -1; break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}
API cuFuncSetAttribute(Function* function, int attribute, int value) {
    FAULT(cuFuncSetAttribute);
    if (attribute == 9) return SUCCESS;  // share of the cache
    if (attribute != 8 || value < 0 || value > SHARED_OPTIN) return INVALID_VALUE;
    function->max_dynamic_shared = value;
    return SUCCESS;
}
API cuFuncGetParamInfo(Function* function, size_t index, size_t* offset, size_t* size) {
    if (index >= function->kernel->params) return INVALID_VALUE;
    *offset = function->kernel->offsets[index];
    if (size) *size = function->kernel->sizes[index];
    return SUCCESS;
}
API cuFuncGetName(const char** name, Function* function) {
    *name = function->kernel->name;
    return SUCCESS;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* function, int block, size_t shared) {
    if (block <= 0 || unsigned(block) > function->kernel->max_threads) return INVALID_VALUE;
    const int warps = (block + 31) / 32 * 32;
    int most = std::min(THREADS_PER_MULTIPROCESSOR / warps, BLOCKS_PER_MULTIPROCESSOR);
    if (shared) most = std::min(most, int(SHARED_PER_MULTIPROCESSOR / shared));
    *blocks = std::max(most, 1);
    return SUCCESS;
}

// ---- Memory ----

API cuMemGetInfo_v2(size_t* free, size_t* total) {
    Guard guard(lock);
    *free = MEMORY - used;
    *total = MEMORY;
    return SUCCESS;
}
API cuMemAlloc_v2(uintptr_t* pointer, size_t bytes) { FAULT(cuMemAlloc_v2); return allocate(bytes, pointer); }
API cuMemFree_v2(uintptr_t pointer) { return pointer ? release(pointer) : SUCCESS; }
API cuMemAllocFromPoolAsync(uintptr_t* pointer, size_t bytes, void*, void* handle) {
    FAULT(cuMemAllocFromPoolAsync);
    Stream* const stream = stream_of(handle);
    {
        Guard guard(lock);
        if (stream->capture) {
            break_capture(stream);
            return NOT_SUPPORTED;
        }
    }
    return allocate(bytes, pointer);
}
API cuMemAllocAsync(uintptr_t* pointer, size_t bytes, void* stream) { return cuMemAllocFromPoolAsync(pointer, bytes, nullptr, stream); }
API cuMemFreeAsync(uintptr_t pointer, void* handle) {
    Stream* const stream = stream_of(handle);
    {
        Guard guard(lock);
        if (stream->capture) {
            break_capture(stream);
            return NOT_SUPPORTED;
        }
        if (!allocations.count(pointer)) return INVALID_VALUE;
    }
    return submit(stream, {[pointer] { return release(pointer); }, true});
}
static char pool;
API cuMemPoolCreate(void** result, const void*) {
    FAULT(cuMemPoolCreate);
    *result = &pool;
    return SUCCESS;
}
API cuMemPoolDestroy(void*) { return SUCCESS; }
API cuMemPoolTrimTo(void*, size_t) { return SUCCESS; }
API cuDeviceCanAccessPeer(int* can, int, int) {
    *can = 1;
    return SUCCESS;
}
API cuMemPoolSetAccess(void*, const void*, size_t) {
    FAULT(cuMemPoolSetAccess);
    return SUCCESS;
}
API cuMemPoolSetAttribute(void*, int, void*) { return SUCCESS; }
API cuMemPoolGetAttribute(void*, int attribute, uint64_t* value) {
    // Reserved and used bytes, now and at most: no freed memory is kept.
    if (attribute < 4 || attribute > 8) return INVALID_VALUE;
    Guard guard(lock);
    *value = attribute == 4 ? ~0ull : used;
    return SUCCESS;
}
API cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
    FAULT(cuMemHostAlloc);
    *pointer = memalign(4096, bytes);
    if (*pointer) poison(static_cast<char*>(*pointer), bytes, FRESH);
    return *pointer ? SUCCESS : OUT_OF_MEMORY;
}
API cuMemFreeHost(void* pointer) {
    cuCtxSynchronize();  // the device may still use the memory
    free(pointer);
    return SUCCESS;
}

static int copy(void* to, const void* from, size_t bytes, void* stream) {
    return submit(stream_of(stream), {[=] {
        memmove(to, from, bytes);
        return SUCCESS;
    }});
}
API cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void* stream) {
    FAULT(cuMemcpyHtoDAsync_v2);
    return on_device(to, bytes) ? copy(reinterpret_cast<void*>(to), from, bytes, stream) : INVALID_VALUE;
}
API cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void* stream) {
    FAULT(cuMemcpyDtoHAsync_v2);
    return on_device(from, bytes) ? copy(to, reinterpret_cast<void*>(from), bytes, stream) : INVALID_VALUE;
}
API cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void* stream) {
    FAULT(cuMemcpyDtoDAsync_v2);
    if (!on_device(to, bytes) || !on_device(from, bytes)) return INVALID_VALUE;
    return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes, stream);
}
API cuMemcpyPeerAsync(
    uintptr_t to, void*, uintptr_t from, void*, size_t bytes, void* stream) {
    FAULT(cuMemcpyPeerAsync);
    if (!on_device(to, bytes) || !on_device(from, bytes)) return INVALID_VALUE;
    return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes, stream);
}
API cuMemsetD8Async(uintptr_t to, unsigned char byte, size_t count, void* stream) {
    FAULT(cuMemsetD8Async);
    if (!on_device(to, count)) return INVALID_VALUE;
    return submit(stream_of(stream), {[=] {
        memset(reinterpret_cast<void*>(to), byte, count);
        return SUCCESS;
    }});
}
API cuMemsetD32Async(uintptr_t to, unsigned word, size_t count, void* stream) {
    FAULT(cuMemsetD32Async);
    if (to % 4 != 0 || !on_device(to, count * 4)) return INVALID_VALUE;
    return submit(stream_of(stream), {[=] {
        std::fill_n(reinterpret_cast<unsigned*>(to), count, word);
        return SUCCESS;
    }});
}

// ---- Streams ----

API cuStreamCreate(void** result, unsigned) {
    FAULT(cuStreamCreate);
    Stream* const stream = new Stream;
    Guard guard(lock);
    streams.insert(stream);
    *result = stream;
    return SUCCESS;
}
API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    FAULT(cuCtxGetStreamPriorityRange);
    *least = 0;
    *greatest = -5;
    return SUCCESS;
}
// The device has room for the work of all streams, so none need be before another.
API cuStreamCreateWithPriority(void** result, unsigned flags, int) {
    FAULT(cuStreamCreateWithPriority);
    return cuStreamCreate(result, flags);
}
API cuStreamDestroy_v2(void* handle) {
    Stream* const stream = static_cast<Stream*>(handle);
    Guard guard(lock);
    streams.erase(stream);
    if (stream->capture) stream->capture->streams.erase(stream);
    stream->destroyed = true;  // its queued work still runs
    if (!stream->running) delete stream;
    return SUCCESS;
}
API cuStreamSynchronize(void* handle) {
    FAULT(cuStreamSynchronize);
    Stream* const stream = stream_of(handle);
    Guard guard(lock);
    if (stream->capture) {
        break_capture(stream);
        return CAPTURE_UNSUPPORTED;
    }
    return wait_for(stream, guard);
}
API cuStreamQuery(void* handle) {
    FAULT(cuStreamQuery);
    Stream* const stream = stream_of(handle);
    Guard guard(lock);
    if (stream->capture) {
        break_capture(stream);
        return CAPTURE_UNSUPPORTED;
    }
    return stream->running ? NOT_READY : wait_for(stream, guard);
}
API cuLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
    FAULT(cuLaunchHostFunc);
    return submit(stream_of(handle), {[=] {
        function(data);
        return SUCCESS;
    }});
}
API cuStreamWaitEvent(void* handle, Event* event, unsigned) {
    FAULT(cuStreamWaitEvent);
    Stream* const stream = stream_of(handle);
    Guard guard(lock);
    const std::shared_ptr<Record> record = event->record;
    if (!record) return SUCCESS;
    if (const auto capture = record->capture) {
        if (capture->streams.empty()) return INVALID_VALUE;  // it has ended
        if (capture->broken) return CAPTURE_INVALIDATED;
        if (stream->capture && stream->capture != capture) {
            break_capture(stream);
            capture->broken = true;
            return CAPTURE_MERGE;
        }
        if (!stream->capture) {
            stream->capture = capture;
            stream->seen.clear();
            stream->captured = 0;
            capture->streams.insert(stream);
        }
        for (const auto& [other, calls] : record->seen) stream->seen[other] = std::max(stream->seen[other], calls);
        stream->seen[stream] = ++stream->captured;
        return SUCCESS;
    }
    if (stream->capture) {
        break_capture(stream);
        return CAPTURE_ISOLATION;
    }
    guard.unlock();
    return submit(stream, {[record] {
        Guard guard(lock);
        changed.wait(guard, [&] { return record->done; });
        return SUCCESS;
    }});
}

// ---- Captures and graphs ----

API cuStreamBeginCapture_v2(void* handle, int) {
    static uint64_t captures = 0;
    Stream* const stream = stream_of(handle);
    Guard guard(lock);
    if (stream == &default_stream || stream->capture) return CAPTURE_UNSUPPORTED;
    stream->capture = std::make_shared<Capture>();
    stream->capture->id = ++captures;
    stream->capture->origin = stream;
    stream->capture->streams.insert(stream);
    stream->seen.clear();
    stream->captured = 0;
    return SUCCESS;
}
API cuStreamEndCapture(void* handle, Graph** graph) {
    Stream* const stream = stream_of(handle);
    *graph = nullptr;
    Guard guard(lock);
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return INVALID_VALUE;
    if (capture->origin != stream) {
        capture->broken = true;
        return CAPTURE_UNMATCHED;
    }
    int error = capture->broken ? CAPTURE_INVALIDATED : SUCCESS;
    for (Stream* const joined : capture->streams) {
        if (joined != stream && error == SUCCESS && stream->seen[joined] < joined->captured) error = CAPTURE_UNJOINED;
        joined->capture = nullptr;
    }
    capture->streams.clear();
    if (error == SUCCESS) *graph = new Graph{std::move(capture->work)};
    return error;
}
API cuStreamGetCaptureInfo(void* handle, int* status, uint64_t* id) {
    Stream* const stream = stream_of(handle);
    Guard guard(lock);
    *status = !stream->capture ? 0 : stream->capture->broken ? 2 : 1;
    if (id && stream->capture) *id = stream->capture->id;
    return SUCCESS;
}
API cuStreamIsCapturing(void* handle, int* status) { return cuStreamGetCaptureInfo(handle, status, nullptr); }

API cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, uint64_t) {
    *exec = new Graph(*graph);
    return SUCCESS;
}
API cuGraphUpload(Graph*, void*) { return SUCCESS; }
API cuGraphLaunch(Graph* exec, void* handle) {
    Stream* const stream = stream_of(handle);
    for (const Work& work : exec->work) {
        if (const int error = submit(stream, work)) return error;
    }
    return SUCCESS;
}
API cuGraphExecDestroy(Graph* exec) {
    delete exec;  // queued launches have copies of all that they need
    return SUCCESS;
}
API cuGraphDestroy(Graph* graph) {
    delete graph;
    return SUCCESS;
}

// ---- Events ----

API cuEventCreate(Event** event, unsigned) {
    FAULT(cuEventCreate);
    *event = new Event;
    return SUCCESS;
}
API cuEventDestroy_v2(Event* event) {
    delete event;
    return SUCCESS;
}
API cuEventRecord(Event* event, void* handle) {
    FAULT(cuEventRecord);
    Stream* const stream = stream_of(handle);
    const auto record = std::make_shared<Record>();
    {
        Guard guard(lock);
        event->record = record;
        if (stream->capture) {
            if (stream->capture->broken) return CAPTURE_INVALIDATED;
            record->capture = stream->capture;
            record->seen = stream->seen;
            return SUCCESS;
        }
    }
    return submit(stream, {[record] {
                               clock_gettime(CLOCK_MONOTONIC, &record->time);
                               record->done = true;
                               changed.notify_all();
                               return SUCCESS;
                           },
                           true, true});
}
API cuEventQuery(Event* event) {
    FAULT(cuEventQuery);
    Guard guard(lock);
    if (!event->record) return SUCCESS;
    if (event->record->capture) return CAPTURED_EVENT;
    return event->record->done ? SUCCESS : NOT_READY;
}
API cuEventSynchronize(Event* event) {
    FAULT(cuEventSynchronize);
    Guard guard(lock);
    const std::shared_ptr<Record> record = event->record;
    if (!record) return SUCCESS;
    if (record->capture) return CAPTURED_EVENT;
    changed.wait(guard, [&] { return record->done; });
    return SUCCESS;
}
API cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
    FAULT(cuEventElapsedTime);
    Guard guard(lock);
    if (!start->record || !end->record || start->record->capture || end->record->capture) return INVALID_HANDLE;
    if (!start->record->done || !end->record->done) return NOT_READY;
    const timespec a = start->record->time, b = end->record->time;
    *milliseconds = float(double(b.tv_sec - a.tv_sec) * 1e3 + double(b.tv_nsec - a.tv_nsec) * 1e-6);
    return SUCCESS;
}

// ---- Launches ----

static int launch(Function* function, dim3 grid, dim3 block, unsigned shared, void* stream, void** params, bool cooperative) {
    const uint64_t threads = uint64_t(block.x) * block.y * block.z, blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (threads == 0 || blocks == 0 || threads > 1024 || block.z > 64 || grid.y > 65535 || grid.z > 65535) return INVALID_VALUE;
    if (threads > function->kernel->max_threads) return LAUNCH_OUT_OF_RESOURCES;
    if (shared > unsigned(function->max_dynamic_shared)) return INVALID_VALUE;
    if (cooperative) {
        int most = 0;
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&most, function, int(threads), shared);
        if (blocks > uint64_t(most) * MULTIPROCESSORS) return COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    // The arguments' values are copied now.
    struct Kept {
        Launch launch;
        std::vector<std::vector<__uint128_t>> values;
    };
    const auto kept = std::make_shared<Kept>();
    kept->launch = {function->code, function->kernel, grid, block, shared, cooperative, {}};
    for (unsigned i = 0; i < function->kernel->params; i++) {
        const size_t size = function->kernel->sizes[i];
        kept->values.emplace_back(size / 16 + 1);
        memcpy(kept->values.back().data(), params[i], size);
        kept->launch.params.push_back(kept->values.back().data());
    }
    return submit(stream_of(stream), {[kept] { return run_launch(kept->launch); }});
}
API cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** params, void** extra) {
    FAULT(cuLaunchKernel);
    if (extra) return NOT_SUPPORTED;
    return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, false);
}
// Attributes let a launch begin before the work ahead of it has ended, and its kernel waits. Here
// it waits in any case.
struct LaunchConfig {
    unsigned gx, gy, gz, bx, by, bz, shared;
    void* stream;
    void* attributes;
    unsigned count;
};
API cuLaunchKernelEx(const LaunchConfig* c, Function* function, void** params, void** extra) {
    FAULT(cuLaunchKernel);
    if (extra) return NOT_SUPPORTED;
    return launch(function, {c->gx, c->gy, c->gz}, {c->bx, c->by, c->bz}, c->shared, c->stream, params, false);
}
API cuLaunchCooperativeKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void* stream, void** params) {
    FAULT(cuLaunchCooperativeKernel);
    return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, true);
}
