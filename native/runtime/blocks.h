/* Blocks of memory that are recycled: for arenas and large results, whose page faults cost more than most kernels. */
#ifndef STABLEHLO_RUNTIME_BLOCKS_H
#define STABLEHLO_RUNTIME_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* Memory of at least `bytes` bytes at a multiple of 64, with any content; NULL when there is none. */
void *shlo_block_take(size_t bytes);

/* Give back a block that was taken with the same `bytes`. It waits for the next to take its size, or is freed. */
void shlo_block_return(void *block, size_t bytes);

/* Bytes of the blocks that wait. */
int64_t shlo_blocks_idle(void);

/* Let at most `bytes` wait from now on, freeing what is above; the limit before. At first 1/8 of the machine's memory,
 * and no more than 1 GiB. */
int64_t shlo_blocks_limit(int64_t bytes);

#endif
