/* The executor of a Program: a loop over its commands. C ABI, no dependencies; native/runtime/executor.c does the work.
 *
 * Code is a sequence of int64 words. A command is its number, its operands, then the commands inside it:
 *
 *   LAUNCH  kernel slot begin end                         kernels[kernel](slots + slot, begin, end)
 *   SPLIT   kernel slot stride begin end parts asleep chunk   the same, in parts that run side by side (steps.h); part p
 *                                                         has its pointers at slot + p * stride. asleep: in how many
 *                                                         parts where threads would have to be woken for them
 *   COPY    source target bytes source_offset target_offset parts asleep   in parts too (moves.h)
 *   FILL    target bytes value parts asleep
 *   WHILE   predicate C B   C words of condition, B words of body; predicate is one byte, 0 ends the loop
 *   CASE    index N w1..wN  N branches of w1..wN words; index is an int32, out of range means the last branch
 *   VIEW    source offset I N  I indices, each: slot width limit stride, then N slots. The slots point from now on to
 *                           source + offset + the sum of clamp(0, index, limit) * stride; width: the bytes of the
 *                           index, negative when it is signed
 *   HOST    number slot     host(number, slots + slot); anything but 0 ends the run with SHLO_HOST_FAILED
 *
 * A slot is a place in a table of pointers. Every launch has its pointers side by side, so that a kernel gets its run of
 * slots as it stands. What a slot points to is given once, by two words: SHLO_ARGUMENT, SHLO_RESULT or SHLO_CONSTANT
 * with its number, SHLO_TEMPORARY with its offset in the arena, or SHLO_SEEN when a VIEW sets it.
 */
#ifndef STABLEHLO_RUNTIME_EXECUTOR_H
#define STABLEHLO_RUNTIME_EXECUTOR_H

#include <stdint.h>

enum { SHLO_LAUNCH, SHLO_COPY, SHLO_FILL, SHLO_WHILE, SHLO_CASE, SHLO_HOST, SHLO_SPLIT, SHLO_VIEW };
enum { SHLO_ARGUMENT, SHLO_RESULT, SHLO_CONSTANT, SHLO_TEMPORARY, SHLO_SEEN };
enum { SHLO_OK, SHLO_NO_MEMORY, SHLO_HOST_FAILED, SHLO_INTERRUPTED };

typedef void (*shlo_kernel)(void *const *buffers, int64_t begin, int64_t end);
typedef int32_t (*shlo_host)(int64_t number, void *const *buffers);
typedef struct shlo_executor shlo_executor;

/* How a long loop asks, every tenth of a second, whether somebody wants it to stop: between enter and leave, check gives
 * anything but 0, and clear forgets that it did. Python's own functions fit: PyGILState_Ensure, PyErr_CheckSignals,
 * PyErr_Clear, PyGILState_Release. */
typedef struct {
    int (*enter)(void);
    int (*check)(void);
    void (*clear)(void);
    void (*leave)(int);
} shlo_interrupt;

/* Raised whenever the code or a signature changes; the Python side refuses another one. */
int64_t shlo_runtime_version(void);

/* Copies code, origins, kernels and constants (the pointers, not what they point to). interrupt may be NULL: then loops
 * run to their end. NULL when there is no memory. */
shlo_executor *shlo_executor_create(const int64_t *code, int64_t words, const int64_t *origins, int64_t slots,
                                    const shlo_kernel *kernels, int64_t kernel_count, void *const *constants,
                                    int64_t constant_count, int64_t arena_bytes, shlo_host host,
                                    const shlo_interrupt *interrupt);

/* Safe from several threads at once: each call has an arena of its own, from a pool. */
int32_t shlo_executor_run(shlo_executor *executor, void *const *arguments, void *const *results);

/* How many arenas there are, busy ones too. */
int64_t shlo_executor_arenas(shlo_executor *executor);

/* No call may be running. */
void shlo_executor_destroy(shlo_executor *executor);

#endif
