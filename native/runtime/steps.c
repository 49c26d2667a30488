/* Each part has a share of the steps, one run of them, and takes half of what is left of it at a time, front first, so
 * that it walks on through memory. A part that has none left takes the back half of what another one has: so all end at
 * nearly the same time, though their threads are woken late, slowed by other processes, or unlike each other. */
#include "steps.h"

#include "pool.h"

#include <stdatomic.h>

#define LINE 64

typedef struct {
    _Alignas(LINE) _Atomic uint64_t left; /* its first chunk << 32 | the one behind its last */
} share;

typedef struct {
    shlo_kernel kernel;
    void *const *slots;
    int64_t stride, begin, end, parts, chunk;
    share *shares;
} launch;

/* Take half of a share, rounded up; 0 when nothing is left of it. */
static int take(share *from, int front, int64_t *first, int64_t *behind) {
    uint64_t left = atomic_load_explicit(&from->left, memory_order_relaxed);
    for (;;) {
        uint64_t low = left >> 32, high = left & 0xffffffff, half = (high - low + 1) / 2;
        if (low >= high) return 0;
        uint64_t rest = front ? (low + half) << 32 | high : low << 32 | (high - half);
        if (!atomic_compare_exchange_weak_explicit(&from->left, &left, rest, memory_order_relaxed, memory_order_relaxed))
            continue;
        *first = (int64_t)(front ? low : high - half);
        *behind = (int64_t)(front ? low + half : high);
        return 1;
    }
}

static void run_part(const void *job, int64_t part) {
    const launch *whole = job;
    void *const *slots = whole->slots + part * whole->stride;
    for (int64_t i = 0; i < whole->parts; ++i) { /* its own share first */
        int64_t first, behind;
        while (take(whole->shares + (part + i) % whole->parts, i == 0, &first, &behind)) {
            int64_t end = whole->begin + behind * whole->chunk;
            whole->kernel(slots, whole->begin + first * whole->chunk, end < whole->end ? end : whole->end);
        }
    }
}

void shlo_steps_run(shlo_kernel kernel, void *const *slots, int64_t stride, int64_t begin, int64_t end, int64_t parts,
                    int64_t chunk) {
    share shares[SHLO_MOST_PARTS];
    int64_t chunks = (end - begin + chunk - 1) / chunk;
    for (int64_t part = 0; part < parts; ++part) {
        uint64_t low = (uint64_t)(chunks * part / parts), high = (uint64_t)(chunks * (part + 1) / parts);
        atomic_init(&shares[part].left, low << 32 | high);
    }
    launch whole = {kernel, slots, stride, begin, end, parts, chunk, shares};
    if (!shlo_pool_run(run_part, &whole, parts)) kernel(slots, begin, end);
}
