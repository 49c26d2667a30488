/* A pool of threads for the parts of one job at a time. C ABI, no dependencies but pthreads. */
#ifndef STABLEHLO_RUNTIME_POOL_H
#define STABLEHLO_RUNTIME_POOL_H

#include <stdint.h>

#define SHLO_MOST_PARTS 256

typedef void (*shlo_part)(const void *job, int64_t part);

/* Run the parts 0 .. parts-1 of a job, parts <= SHLO_MOST_PARTS, and return when all are done. The caller works too.
 * Threads are started when first needed and shared by the whole process. 0: nothing was run, as there is but one part,
 * or another job is running, maybe around this call. What a part computes must not depend on who runs it, or when. */
int shlo_pool_run(shlo_part run, const void *job, int64_t parts);

/* How many threads would take a part at once. */
int64_t shlo_pool_awake(void);

/* How many threads the pool has started, and how many of them sleep. */
int64_t shlo_pool_workers(void);
int64_t shlo_pool_sleepers(void);

#endif
