# Short names for the scripts, for those who have `just`: nothing needs it. `just` lists them.

_list:
    @just --list --unsorted

# Run the program: chairs that fall, in a window
run *ARGS:
    cargo run --release -- {{ARGS}}

# Format, rules, tests of the scripts and lints: before you push
check:
    bash .ci/run check

# Test one crate, such as: just test radsweep-sap --test properties
test CRATE *ARGS:
    cargo test -p {{CRATE}} {{ARGS}}

# Test everything that needs no GPU
test-all:
    cargo test --workspace

# Run all that CI runs for a change, or some lanes of it (`just ci list`)
ci *LANES:
    bash .ci/run {{LANES}}

# Run what CI runs at night
nightly:
    bash .ci/run nightly

# Run a command with the kernels on the CPU, such as: just emulate cargo test -p gpusort --features cuda --test cuda_sort
emulate +COMMAND:
    scripts/emulate {{COMMAND}}

# Pack, run or check the tests that need a GPU
gpu-suite *ARGS:
    scripts/gpu-suite {{ARGS}}

# Rebuild the kernel images after a change in kernels/
images *ARGS:
    scripts/kernel-images {{ARGS}}

# Run every example
examples:
    scripts/examples

# Build and run the C and C++ examples against the installed library
capi:
    scripts/capi-test --debug

# Compare the public API with docs/api; `just api --write` takes it over
api *ARGS:
    scripts/api-check {{ARGS}}

# Use the packages as a stranger does
package:
    scripts/package-test --allow-dirty

# Check licences and advisories of the dependencies
deny:
    scripts/deny

# Fuzz a target (npy, capi, events, cliffs) with libFuzzer
fuzz TARGET SECONDS="600":
    fuzz/run {{TARGET}} {{SECONDS}}

# Run the tests of the C ABI, and through them the CPU engine, under Miri
miri:
    scripts/miri

# Run the CPU engine, the CPU sorts and the C ABI under ThreadSanitizer
tsan:
    scripts/tsan

# Make the README's pictures again
pictures *ARGS:
    scripts/pictures {{ARGS}}
