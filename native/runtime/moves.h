/* Copies and fills of memory, large ones by several threads. */
#ifndef STABLEHLO_RUNTIME_MOVES_H
#define STABLEHLO_RUNTIME_MOVES_H

#include <stdint.h>

/* memmove and memset, in at most `parts` parts at once, parts <= SHLO_MOST_PARTS. Ranges that overlap are moved in one. */
void shlo_copy(void *target, const void *source, int64_t bytes, int64_t parts);
void shlo_fill(void *target, int64_t bytes, int value, int64_t parts);

#endif
