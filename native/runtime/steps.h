/* The steps of a launch, shared by the parts of a job that run side by side. */
#ifndef STABLEHLO_RUNTIME_STEPS_H
#define STABLEHLO_RUNTIME_STEPS_H

#include "executor.h"

/* Run kernel(slots + part * stride, b, e) over pieces b..e that make up begin..end, in `parts` parts at once. Pieces begin
 * and end at multiples of `chunk` steps from the beginning. parts <= SHLO_MOST_PARTS; begin..end has less than 2^32 chunks. */
void shlo_steps_run(shlo_kernel kernel, void *const *slots, int64_t stride, int64_t begin, int64_t end, int64_t parts,
                    int64_t chunk);

#endif
