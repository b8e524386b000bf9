// The kernel of examples/ptx/device_resident.ptx in CUDA C++. The emulated driver cannot run PTX
// and runs this in place of that text.

#include <stdint.h>

extern "C" __global__ void step(float* places, float* velocities, float* boxes, uint32_t n, float radius, float side) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (uint32_t axis = 0; axis < 3; axis++) {
        float place = places[3 * i + axis], velocity = velocities[3 * i + axis];
        place += velocity;
        if (place < 0.0f || place > side) {
            velocity = -velocity;
            place += velocity;
        }
        places[3 * i + axis] = place;
        velocities[3 * i + axis] = velocity;
        boxes[6 * i + axis] = place - radius;
        boxes[6 * i + 3 + axis] = place + radius;
    }
}
