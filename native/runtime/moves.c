/* A copy is bound by how many lines one core may ask for at once, so two cores copy twice as fast; the C library's
 * functions know the machine's best way to move the bytes of a part. */
#include "moves.h"

#include "steps.h"

#include <string.h>

#define STEP 32768 /* bytes; what a thread takes at least: a microsecond or more */

typedef struct {
    char *target;
    const char *source; /* NULL: a fill */
    int64_t bytes;
    int value;
} move;

static void run_steps(void *const *slots, int64_t begin, int64_t end) {
    const move *whole = slots[0];
    int64_t first = begin * STEP, behind = end * STEP < whole->bytes ? end * STEP : whole->bytes;
    if (whole->source)
        memcpy(whole->target + first, whole->source + first, (size_t)(behind - first));
    else
        memset(whole->target + first, whole->value, (size_t)(behind - first));
}

static void run(move whole, int64_t parts) {
    void *slots[] = {&whole};
    int64_t steps = (whole.bytes + STEP - 1) / STEP;
    if (parts > steps) parts = steps;
    if (parts < 2)
        run_steps(slots, 0, steps);
    else
        shlo_steps_run(run_steps, slots, 0, 0, steps, parts, 1);
}

void shlo_copy(void *target, const void *source, int64_t bytes, int64_t parts) {
    uintptr_t to = (uintptr_t)target, from = (uintptr_t)source;
    if (to == from || bytes <= 0) return; /* the same where memory was donated */
    if ((to < from ? from - to : to - from) < (uintptr_t)bytes)
        memmove(target, source, (size_t)bytes);
    else
        run((move){target, source, bytes, 0}, parts);
}

void shlo_fill(void *target, int64_t bytes, int value, int64_t parts) {
    if (bytes > 0) run((move){target, NULL, bytes, value}, parts);
}
