/* Parts of a job are claimed from one word, by the caller and by workers that spin shortly and then sleep (pool.h).
 *
 * Claiming makes the number of workers a matter of speed only: a worker that wakes late finds nothing left to do, and
 * one that could not be started is not missed.
 */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LINE 64
#define SPINS 4000 /* pauses before a thread sleeps: about 50 us, more than what lies between two kernels */

static struct {
    /* number of the job << 32 | its parts << 16 | the next part. The number makes the word of each job its own, so a
     * thread that claims by compare-and-swap has read run and job of that very job. */
    _Alignas(LINE) _Atomic uint64_t word;
    _Atomic(shlo_part) run;
    _Atomic(const void *) job;
    _Atomic uint64_t float_mode;
    _Alignas(LINE) _Atomic int64_t done;
    _Atomic int waiting; /* the caller sleeps until all parts are done */
    _Alignas(LINE) atomic_flag busy;
    _Atomic int64_t workers, sleepers;
    pthread_mutex_t lock; /* for sleeping only */
    pthread_cond_t wake, finished;
} pool = {.busy = ATOMIC_FLAG_INIT,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .finished = PTHREAD_COND_INITIALIZER};

static void pause_shortly(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Rounding and the treatment of denormals are the caller's in every part: the bits do not depend on the thread. */
static uint64_t float_mode(void) {
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu; /* without the flags that operations raise */
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
#else
    return 0;
#endif
}

static void set_float_mode(uint64_t mode) {
    if (mode == float_mode()) return;
#if defined(__x86_64__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
#endif
}

static int64_t parts_of(uint64_t word) { return (int64_t)(word >> 16 & 0xffff); }
static int64_t next_of(uint64_t word) { return (int64_t)(word & 0xffff); }

static int claimable(void) {
    uint64_t word = atomic_load(&pool.word);
    return next_of(word) < parts_of(word);
}

static void finish(int64_t parts) {
    if (atomic_fetch_add(&pool.done, 1) + 1 < parts || !atomic_load(&pool.waiting)) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.finished);
    pthread_mutex_unlock(&pool.lock);
}

/* Claim a part and run it; 0 when there is none. */
static int run_one(void) {
    uint64_t word = atomic_load_explicit(&pool.word, memory_order_acquire);
    while (next_of(word) < parts_of(word)) {
        shlo_part run = atomic_load_explicit(&pool.run, memory_order_relaxed);
        const void *job = atomic_load_explicit(&pool.job, memory_order_relaxed);
        uint64_t mode = atomic_load_explicit(&pool.float_mode, memory_order_relaxed);
        if (!atomic_compare_exchange_weak(&pool.word, &word, word + 1)) continue;
        set_float_mode(mode);
        run(job, next_of(word));
        finish(parts_of(word));
        return 1;
    }
    return 0;
}

static void sleep_until_claimable(void) {
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleepers, 1); /* before the look at the word: shlo_pool_run does both the other way round */
    while (!claimable()) pthread_cond_wait(&pool.wake, &pool.lock);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.lock);
}

static void *work(void *unused) {
    for (int spins = 0;;) {
        if (run_one()) {
            spins = 0;
        } else if (++spins < SPINS) {
            pause_shortly();
        } else {
            sleep_until_claimable();
            spins = 0;
        }
    }
    return unused;
}

/* A child of fork has the pool's memory but none of its threads. */
static void restart_in_child(void) {
    atomic_store(&pool.word, 0);
    atomic_store(&pool.workers, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.waiting, 0);
    atomic_flag_clear(&pool.busy);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.finished, NULL);
}

static void prepare_forks(void) { pthread_atfork(NULL, NULL, restart_in_child); }

static void start_workers(int64_t wanted) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_forks);
    sigset_t all, before; /* signals are for the threads of the program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (atomic_load(&pool.workers) < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL)) break;
        pthread_detach(thread);
        atomic_fetch_add(&pool.workers, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wake_workers(int64_t wanted) {
    int64_t asleep = atomic_load(&pool.sleepers), missing = wanted - (atomic_load(&pool.workers) - asleep);
    if (missing <= 0 || !asleep) return;
    pthread_mutex_lock(&pool.lock); /* whoever counts as asleep is now waiting, or looks at the word once more */
    pthread_mutex_unlock(&pool.lock);
    for (int64_t i = 0; i < missing && i < asleep; ++i) pthread_cond_signal(&pool.wake);
}

static void wait_until_done(int64_t parts) {
    for (int spins = 0; spins < SPINS; ++spins) {
        if (atomic_load_explicit(&pool.done, memory_order_acquire) == parts) return;
        pause_shortly();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.waiting, 1);
    while (atomic_load(&pool.done) != parts) pthread_cond_wait(&pool.finished, &pool.lock);
    atomic_store(&pool.waiting, 0);
    pthread_mutex_unlock(&pool.lock);
}

int shlo_pool_run(shlo_part run, const void *job, int64_t parts) {
    if (parts < 2 || atomic_flag_test_and_set_explicit(&pool.busy, memory_order_acquire)) return 0;
    if (atomic_load_explicit(&pool.workers, memory_order_relaxed) < parts - 1) start_workers(parts - 1);
    atomic_store_explicit(&pool.run, run, memory_order_relaxed);
    atomic_store_explicit(&pool.job, job, memory_order_relaxed);
    atomic_store_explicit(&pool.float_mode, float_mode(), memory_order_relaxed);
    atomic_store_explicit(&pool.done, 0, memory_order_relaxed);
    uint64_t number = (atomic_load_explicit(&pool.word, memory_order_relaxed) >> 32) + 1;
    atomic_store(&pool.word, number << 32 | (uint64_t)parts << 16 | 1); /* part 0 is the caller's */
    wake_workers(parts - 1);
    run(job, 0);
    finish(parts);
    while (run_one()) continue;
    wait_until_done(parts);
    atomic_flag_clear_explicit(&pool.busy, memory_order_release);
    return 1;
}

int64_t shlo_pool_awake(void) {
    return atomic_load_explicit(&pool.workers, memory_order_relaxed) -
           atomic_load_explicit(&pool.sleepers, memory_order_relaxed);
}

int64_t shlo_pool_workers(void) { return atomic_load(&pool.workers); }
int64_t shlo_pool_sleepers(void) { return atomic_load(&pool.sleepers); }
