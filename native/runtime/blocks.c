/* Idle blocks stand in one short list, the latest returned last; those that waited longest go first (blocks.h). */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise */
#endif
#include "blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define CACHE_LINE 64
#define HUGE_PAGE ((size_t)2 << 20)
#define MOST_IDLE 64
#define MOST_BYTES ((int64_t)1 << 30)

typedef struct {
    void *memory;
    size_t bytes;
} block;

static block idle[MOST_IDLE];
static int idle_count;
static int64_t idle_bytes, limit = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_blocks(void) { pthread_mutex_lock(&lock); }
static void unlock_blocks(void) { pthread_mutex_unlock(&lock); }

static void prepare(void) {
    pthread_atfork(lock_blocks, unlock_blocks, unlock_blocks);
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 8;
    limit = memory > 0 && memory < MOST_BYTES ? memory : MOST_BYTES;
}

static void enter(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    lock_blocks();
}

/* Eight sizes for each power of two, so that blocks of nearly one size serve each other; what is never touched is free. */
static size_t capacity(size_t bytes) {
    size_t step = CACHE_LINE;
    while (bytes > 16 * step) step *= 2;
    return (bytes + step - 1) / step * step;
}

static void *fresh(size_t bytes) {
    void *memory;
    size_t alignment = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : CACHE_LINE;
    if (posix_memalign(&memory, alignment, bytes)) return NULL;
#if defined(__linux__)
    if (alignment == HUGE_PAGE) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

/* Take an idle block out of the list; the lock is held. */
static void *removed(int place) {
    void *memory = idle[place].memory;
    idle_bytes -= (int64_t)idle[place].bytes;
    memmove(idle + place, idle + place + 1, (size_t)(--idle_count - place) * sizeof *idle);
    return memory;
}

/* Free blocks until at most `count` of `bytes` bytes in all are left. */
static void shrink(int count, int64_t bytes) {
    for (;;) {
        enter();
        void *oldest = idle_count && (idle_count > count || idle_bytes > bytes) ? removed(0) : NULL;
        unlock_blocks();
        if (!oldest) return;
        free(oldest); /* outside the lock: unmapping takes long */
    }
}

void *shlo_block_take(size_t bytes) {
    size_t wanted = capacity(bytes ? bytes : 1);
    void *found = NULL;
    enter();
    for (int i = idle_count - 1; i >= 0 && !found; --i)
        if (idle[i].bytes == wanted) found = removed(i);
    unlock_blocks();
    if (found) return found;
    found = fresh(wanted);
    if (found) return found;
    shrink(0, 0);
    return fresh(wanted);
}

void shlo_block_return(void *memory, size_t bytes) {
    size_t held = capacity(bytes ? bytes : 1);
    enter();
    int64_t most = limit;
    unlock_blocks();
    if ((int64_t)held > most) {
        free(memory);
        return;
    }
    shrink(MOST_IDLE - 1, most - (int64_t)held);
    enter();
    int kept = idle_count < MOST_IDLE && idle_bytes + (int64_t)held <= limit;
    if (kept) {
        idle[idle_count++] = (block){memory, held};
        idle_bytes += (int64_t)held;
    }
    unlock_blocks();
    if (!kept) free(memory); /* another thread was quicker */
}

int64_t shlo_blocks_idle(void) {
    enter();
    int64_t bytes = idle_bytes;
    unlock_blocks();
    return bytes;
}

int64_t shlo_blocks_limit(int64_t bytes) {
    enter();
    int64_t before = limit;
    limit = bytes;
    unlock_blocks();
    shrink(MOST_IDLE, bytes);
    return before;
}
