// The pairs of boxes by ArborX::DistributedTree, measured as `radsweep-mpi bench` measures ours:
// the same part of each file for a rank, the same lines of output.
//
// `arborx-pairs asked FRAME.npy...` brings each pair to the rank that asked for it, that of the box
// with the smaller id. `arborx-pairs found FRAME.npy...` leaves it on the rank that found it, which
// holds the other box. Both drop the box itself and the second direction before anything is sent.

#include <ArborX_DistributedTree.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using Memory = Kokkos::HostSpace;
using Box = ArborX::Box<3>;
using Value = ArborX::PairValueIndex<Box, uint32_t>;
static_assert(sizeof(Box) == 6 * sizeof(float));

struct Part {
    uint32_t first = 0;
    std::vector<Box> boxes;
};

struct Values {
    const Part* part;
};

struct Queries {
    const Part* part;
};

template <>
struct ArborX::AccessTraits<Values> {
    using memory_space = Memory;
    static size_t size(const Values& values) { return values.part->boxes.size(); }
    static Value get(const Values& values, size_t i) { return {values.part->boxes[i], values.part->first + uint32_t(i)}; }
};

template <>
struct ArborX::AccessTraits<Queries> {
    using memory_space = Memory;
    static size_t size(const Queries& queries) { return queries.part->boxes.size(); }
    static auto get(const Queries& queries, size_t i)
    {
        return ArborX::attach(ArborX::intersects(queries.part->boxes[i]), queries.part->first + uint32_t(i));
    }
};

// Passes on the ids that are larger than that of the query.
struct Larger {
    template <typename Query, typename Output>
    void operator()(const Query& query, const Value& value, const Output& output) const
    {
        if (value.index > ArborX::getData(query)) {
            output(value.index);
        }
    }
};

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

// Keeps the pairs whose second id is the larger one.
struct Keep {
    Pairs* pairs;

    template <typename Query>
    void operator()(const Query& query, const Value& value) const
    {
        if (value.index > ArborX::getData(query)) {
            pairs->emplace_back(ArborX::getData(query), value.index);
        }
    }
};

[[noreturn]] void fail(const char* path, const char* why)
{
    std::fprintf(stderr, "arborx-pairs: %s: %s\n", path, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

Part read(const char* path, int rank, int ranks)
{
    std::FILE* file = std::fopen(path, "rb");
    unsigned char start[10];
    if (!file || std::fread(start, 1, 10, file) != 10 || std::memcmp(start, "\x93NUMPY\x01", 7) != 0) {
        fail(path, "no .npy file of version 1");
    }
    std::string header(start[8] + 256 * start[9], '\0');
    if (std::fread(header.data(), 1, header.size(), file) != header.size()) {
        fail(path, "the header is cut off");
    }
    size_t shape = header.find("'shape': (");
    unsigned long long n = 0;
    if (shape == std::string::npos || std::sscanf(&header[shape], "'shape': (%llu, 6)", &n) != 1 ||
        header.find("'<f4'") == std::string::npos || header.find("'fortran_order': False") == std::string::npos || n > INT32_MAX) {
        fail(path, "not float32 of shape (n, 6)");
    }
    auto border = [&](int rank) { return n * rank / ranks; };
    Part part;
    part.first = border(rank);
    part.boxes.resize(border(rank + 1) - part.first);
    std::fseek(file, part.first * sizeof(Box), SEEK_CUR);
    if (std::fread(part.boxes.data(), sizeof(Box), part.boxes.size(), file) != part.boxes.size()) {
        fail(path, "the file is cut off");
    }
    std::fclose(file);
    return part;
}

// As in `radsweep-mpi bench`.
uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

void measure(bool asked, const char* path, int rank, int ranks)
{
    MPI_Comm world = MPI_COMM_WORLD;
    Kokkos::DefaultHostExecutionSpace space;
    Part part = read(path, rank, ranks);
    Kokkos::View<uint32_t*, Memory> ids("ids", 0);
    Kokkos::View<int*, Memory> offsets("offsets", 0);
    Pairs pairs;

    MPI_Barrier(world);
    double begun = MPI_Wtime();
    ArborX::DistributedTree tree(world, space, Values{&part});
    double built = MPI_Wtime();
    if (asked) {
        tree.query(space, Queries{&part}, Larger{}, ids, offsets);
    } else {
        tree.query(space, Queries{&part}, Keep{&pairs});
    }
    double done = MPI_Wtime();

    for (size_t q = 0; asked && q < part.boxes.size(); ++q) {
        for (int i = offsets(q); i < offsets(q + 1); ++i) {
            pairs.emplace_back(part.first + q, ids(i));
        }
    }
    uint64_t sums[2] = {pairs.size(), 0};
    for (auto [a, b] : pairs) {
        sums[1] += mix(mix(a) + b);
    }
    double times[3] = {done - begun, built - begun, done - built};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, world);
    MPI_Allreduce(MPI_IN_PLACE, times, 3, MPI_DOUBLE, MPI_MAX, world);
    if (rank == 0) {
        std::printf("{\"pairs\":%llu,\"hash\":\"%016llx\",\"ms\":{\"whole\":%.3f,\"build\":%.3f,\"query\":%.3f}}\n",
                    (unsigned long long)sums[0], (unsigned long long)sums[1], 1e3 * times[0], 1e3 * times[1], 1e3 * times[2]);
    }
}

int main(int count, char** words)
{
    MPI_Init(&count, &words);
    Kokkos::initialize(count, words);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::string way = count > 1 ? words[1] : "";
    if (count < 3 || (way != "asked" && way != "found")) {
        fail("usage", "arborx-pairs asked|found FRAME.npy...");
    }
    for (int i = 2; i < count; ++i) {
        measure(way == "asked", words[i], rank, ranks);
    }
    Kokkos::finalize();
    MPI_Finalize();
}
