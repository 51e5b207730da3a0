#include "curate/mix/mix_repeat.h"

#include <stdlib.h>

bool mix_number(struct span raw, double *value)
{
    char number[32], *end;

    if (!raw.n || raw.n >= sizeof number || !strchr("0123456789-", *raw.p))
        return false;
    memcpy(number, raw.p, raw.n);
    number[raw.n] = '\0';
    *value = strtod(number, &end);
    return end == number + raw.n && *value >= 0 && *value < 1e15;
}

/* "100:8", of which the n bytes at p are all. */
static bool parse_step(struct mix_repeat *r, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n);
    double times;

    if (!colon || r->n == MIX_STEPS || !mix_number((struct span){p, (size_t)(colon - p)}, &r->from[r->n]) ||
        !mix_number((struct span){colon + 1, (size_t)(p + n - colon - 1)}, &times) || times > MIX_TIMES ||
        times != (double)(uint64_t)times || (r->n && r->from[r->n] <= r->from[r->n - 1]))
        return false;
    r->times[r->n++] = (uint64_t)times;
    return true;
}

int mix_repeat_parse(struct mix_repeat *r, const char *field, const char *list, struct err *e)
{
    *r = (struct mix_repeat){.field = field};
    if (list && !field)
        return err_set(e, ERR_ARG, "--repeat is for the numbers of a field: --repeat-by names none");
    if (!list)
        list = "1:1,2:2,3:3,5:5,100:8,1000:1";
    if (field && !*field)
        return err_set(e, ERR_ARG, "--repeat-by: a field without a name");
    for (const char *p = list; p;) {
        size_t n = strcspn(p, ",");
        if (!parse_step(r, p, n))
            return err_set(e, ERR_ARG, "--repeat '%s': write FROM:TIMES,..., at most %d, FROM rising, TIMES whole and up to %d",
                           list, MIX_STEPS, MIX_TIMES);
        p = p[n] ? p + n + 1 : NULL;
    }
    return 0;
}

int mix_repeat_times(const struct mix_repeat *r, struct doc *d, uint64_t *times, bool *known, struct err *e)
{
    struct span raw = r->field ? doc_raw(d, r->field) : (struct span){0};
    double value;

    *times = 1;
    *known = raw.p != NULL;
    if (!raw.p)
        return 0;
    if (!mix_number(raw, &value))
        return err_set(e, ERR_FORMAT, "\"%s\" is no number to repeat by", r->field);
    for (int i = 0; i < r->n && value >= r->from[i]; i++)
        *times = r->times[i];
    return 0;
}
