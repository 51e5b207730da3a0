#include "base/laps.h"

#include <time.h>

#include "base/json.h"

uint64_t laps_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void laps_more(struct laps *laps, int phase, uint64_t ns)
{
    if (laps)
        __atomic_fetch_add(&laps->ns[phase], ns, __ATOMIC_RELAXED);
}

uint64_t laps_add(struct laps *laps, int phase, uint64_t since)
{
    uint64_t now = laps ? laps_now() : 0;

    laps_more(laps, phase, now - since);
    return now;
}

int laps_json(const struct laps *laps, struct buf *json)
{
    TRY(buf_putc(json, '{'));
    for (int i = 0; i < laps->n; i++) {
        TRY(json_put_key(json, laps->name[i]));
        TRY(json_put_num(json, (double)(laps->ns[i] / 1000) / 1e6));
    }
    return buf_putc(json, '}');
}
