/* Runs the code of a Program (executor.h has the encoding) with arenas that are allocated once and recycled. */
#include "executor.h"

#include "blocks.h"
#include "moves.h"
#include "pool.h"
#include "steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MILLISECOND 1000000 /* in nanoseconds */

/* What one call needs: its temporaries, and a pointer for each slot. */
typedef struct arena {
    struct arena *next;
    int64_t read_at, ask_at; /* when the clock was read, and when to ask next whether to stop */
    int64_t stride, countdown; /* iterations from one reading of the clock to the next, and how many are left */
    char *memory;
    void *slots[];
} arena;

/* A slot that each call points to an argument or a result. */
typedef struct {
    int64_t slot, kind, number;
} external;

struct shlo_executor {
    int64_t words, slots, externals_count, arena_bytes, arenas;
    int64_t *code, *origins;
    external *externals;
    shlo_kernel *kernels;
    void **constants;
    shlo_host host;
    shlo_interrupt interrupt; /* all NULL: nobody can */
    arena *idle;
};

/* Guards idle and arenas of every executor: one lock, so that fork can hold it and leave the child a sound list. */
static pthread_mutex_t arenas_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_arenas(void) { pthread_mutex_lock(&arenas_lock); }
static void unlock_arenas(void) { pthread_mutex_unlock(&arenas_lock); }
static void prepare_forks(void) { pthread_atfork(lock_arenas, unlock_arenas, unlock_arenas); }

int64_t shlo_runtime_version(void) { return 8; }

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 * MILLISECOND + time.tv_nsec;
}

/* Asked after every iteration; the clock costs as much as a small one, so it is read less often while they are quick. */
static int interrupted(const shlo_executor *executor, arena *arena) {
    if (--arena->countdown > 0 || !executor->interrupt.check) return 0;
    int64_t time = now();
    arena->stride = time - arena->read_at > MILLISECOND ? 1 : arena->stride < 1024 ? 2 * arena->stride : 1024;
    arena->countdown = arena->stride;
    arena->read_at = time;
    if (time < arena->ask_at) return 0;
    arena->ask_at = time + 100 * MILLISECOND;
    int state = executor->interrupt.enter();
    int stop = executor->interrupt.check();
    if (stop) executor->interrupt.clear();
    executor->interrupt.leave(state);
    return stop;
}

/* The integer of an index, within 0..limit. width: its bytes, negative when it is signed. */
static int64_t index_at(const void *place, int64_t width, int64_t limit) {
    int8_t i1;
    int16_t i2;
    int32_t i4;
    int64_t value;
    switch (width) {
    case -1: memcpy(&i1, place, 1), value = i1; break;
    case -2: memcpy(&i2, place, 2), value = i2; break;
    case -4: memcpy(&i4, place, 4), value = i4; break;
    case 1: memcpy(&i1, place, 1), value = (uint8_t)i1; break;
    case 2: memcpy(&i2, place, 2), value = (uint16_t)i2; break;
    case 4: memcpy(&i4, place, 4), value = (uint32_t)i4; break;
    default:
        memcpy(&value, place, 8);
        if (width > 0 && value < 0) return limit; /* 2^63 or more */
    }
    return value < 0 ? 0 : value < limit ? value : limit;
}

/* code: in how many parts, and in how many where threads would have to be woken for the first. */
static int64_t parts_of(const int64_t *code) { return shlo_pool_awake() + 1 >= code[0] ? code[0] : code[1]; }

static int32_t run(const shlo_executor *executor, arena *arena, const int64_t *code, const int64_t *end) {
    void **slots = arena->slots;
    while (code < end) {
        switch (code[0]) {
        case SHLO_LAUNCH:
            executor->kernels[code[1]](slots + code[2], code[3], code[4]);
            code += 5;
            break;
        case SHLO_SPLIT:
            shlo_steps_run(executor->kernels[code[1]], slots + code[2], code[3], code[4], code[5], parts_of(code + 6),
                           code[8]);
            code += 9;
            break;
        case SHLO_COPY:
            shlo_copy((char *)slots[code[2]] + code[5], (const char *)slots[code[1]] + code[4], code[3],
                      parts_of(code + 6));
            code += 8;
            break;
        case SHLO_FILL:
            shlo_fill(slots[code[1]], code[2], (int)code[3], parts_of(code + 4));
            code += 6;
            break;
        case SHLO_VIEW: {
            char *at = (char *)slots[code[1]] + code[2];
            const int64_t *index = code + 5, *own = index + 4 * code[3];
            code = own + code[4];
            for (; index < own; index += 4) at += index_at(slots[index[0]], index[1], index[2]) * index[3];
            for (; own < code; ++own) slots[*own] = at;
            break;
        }
        case SHLO_WHILE: {
            const volatile uint8_t *predicate = slots[code[1]];
            const int64_t *condition = code + 4, *body = condition + code[2], *after = body + code[3];
            for (;;) {
                int32_t status = run(executor, arena, condition, body);
                if (status != SHLO_OK) return status;
                if (!*predicate) break;
                status = run(executor, arena, body, after);
                if (status != SHLO_OK) return status;
                if (interrupted(executor, arena)) return SHLO_INTERRUPTED;
            }
            code = after;
            break;
        }
        case SHLO_CASE: {
            int64_t count = code[2];
            const int64_t *sizes = code + 3, *branch = sizes + count;
            int32_t index;
            memcpy(&index, slots[code[1]], sizeof index);
            if (index < 0 || index >= count) index = (int32_t)(count - 1);
            for (int64_t i = 0; i < index; ++i) branch += sizes[i];
            int32_t status = run(executor, arena, branch, branch + sizes[index]);
            if (status != SHLO_OK) return status;
            for (int64_t i = index; i < count; ++i) branch += sizes[i];
            code = branch;
            break;
        }
        default: /* SHLO_HOST */
            if (executor->host(code[1], slots + code[2])) return SHLO_HOST_FAILED;
            code += 3;
        }
    }
    return SHLO_OK;
}

static arena *new_arena(const shlo_executor *executor) {
    arena *made = malloc(sizeof *made + (size_t)executor->slots * sizeof(void *));
    if (!made) return NULL;
    void *memory = shlo_block_take((size_t)executor->arena_bytes);
    if (!memory) {
        free(made);
        return NULL;
    }
    made->memory = memory;
    made->read_at = made->ask_at = 0;
    made->stride = made->countdown = 1;
    for (int64_t i = 0; i < executor->slots; ++i) {
        int64_t value = executor->origins[2 * i + 1];
        switch (executor->origins[2 * i]) {
        case SHLO_CONSTANT: made->slots[i] = executor->constants[value]; break;
        case SHLO_TEMPORARY: made->slots[i] = made->memory + value; break;
        default: made->slots[i] = NULL; /* set at each call, or by a view */
        }
    }
    return made;
}

static arena *take_arena(shlo_executor *executor) {
    lock_arenas();
    arena *taken = executor->idle;
    if (taken) executor->idle = taken->next;
    unlock_arenas();
    if (taken) return taken;
    taken = new_arena(executor);
    if (taken) {
        lock_arenas();
        ++executor->arenas;
        unlock_arenas();
    }
    return taken;
}

static void return_arena(shlo_executor *executor, arena *arena) {
    lock_arenas();
    arena->next = executor->idle;
    executor->idle = arena;
    unlock_arenas();
}

int32_t shlo_executor_run(shlo_executor *executor, void *const *arguments, void *const *results) {
    arena *arena = take_arena(executor);
    if (!arena) return SHLO_NO_MEMORY;
    for (int64_t i = 0; i < executor->externals_count; ++i) {
        external outer = executor->externals[i];
        arena->slots[outer.slot] = (outer.kind == SHLO_ARGUMENT ? arguments : results)[outer.number];
    }
    int32_t status = run(executor, arena, executor->code, executor->code + executor->words);
    return_arena(executor, arena);
    return status;
}

int64_t shlo_executor_arenas(shlo_executor *executor) {
    lock_arenas();
    int64_t count = executor->arenas;
    unlock_arenas();
    return count;
}

static void *copied(const void *from, size_t bytes) {
    void *made = malloc(bytes ? bytes : 1);
    if (made && bytes) memcpy(made, from, bytes);
    return made;
}

shlo_executor *shlo_executor_create(const int64_t *code, int64_t words, const int64_t *origins, int64_t slots,
                                    const shlo_kernel *kernels, int64_t kernel_count, void *const *constants,
                                    int64_t constant_count, int64_t arena_bytes, shlo_host host,
                                    const shlo_interrupt *interrupt) {
    shlo_executor *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_forks);
    made->words = words;
    made->slots = slots;
    made->arena_bytes = arena_bytes;
    made->host = host;
    if (interrupt) made->interrupt = *interrupt;
    made->code = copied(code, (size_t)words * sizeof *code);
    made->origins = copied(origins, (size_t)slots * 2 * sizeof *origins);
    made->kernels = copied(kernels, (size_t)kernel_count * sizeof *kernels);
    made->constants = copied(constants, (size_t)constant_count * sizeof *constants);
    made->externals = malloc((size_t)(slots + 1) * sizeof *made->externals);
    if (!made->code || !made->origins || !made->kernels || !made->constants || !made->externals) {
        shlo_executor_destroy(made);
        return NULL;
    }
    for (int64_t i = 0; i < slots; ++i) {
        if (origins[2 * i] != SHLO_ARGUMENT && origins[2 * i] != SHLO_RESULT) continue;
        made->externals[made->externals_count++] = (external){i, origins[2 * i], origins[2 * i + 1]};
    }
    return made;
}

void shlo_executor_destroy(shlo_executor *executor) {
    if (!executor) return;
    while (executor->idle) {
        arena *next = executor->idle->next;
        shlo_block_return(executor->idle->memory, (size_t)executor->arena_bytes);
        free(executor->idle);
        executor->idle = next;
    }
    free(executor->code);
    free(executor->origins);
    free(executor->externals);
    free(executor->kernels);
    free(executor->constants);
    free(executor);
}
