#include "curate/dedup/dedup_keep.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "curate/dedup/dedup_key.h"

/* Numbers in an order that unsigned integers have, all above 0. */
static uint64_t order(double x)
{
    uint64_t bits;

    x += 0.0; /* no minus zero */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* ---- dates ---- */

/* n digits at *p as a number in [least, most], which are passed over; -1: there is none. */
static int take_number(const char **p, const char *end, int n, int least, int most)
{
    int x = 0;

    if (end - *p < n)
        return -1;
    for (int i = 0; i < n; i++) {
        if ((*p)[i] < '0' || (*p)[i] > '9')
            return -1;
        x = 10 * x + (*p)[i] - '0';
    }
    *p += n;
    return x < least || x > most ? -1 : x;
}

static bool take_char(const char **p, const char *end, const char *of)
{
    bool there = *p < end && strchr(of, **p) && **p;

    *p += there;
    return there;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar, by years that begin in March. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = year - (month < 3), m = (month + 9) % 12;

    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* The zone at p: seconds that the clock is ahead of UTC. */
static bool take_zone(const char **p, const char *end, int *ahead)
{
    int sign, hours, minutes = 0;

    *ahead = 0;
    if (*p == end || take_char(p, end, "Zz"))
        return true;
    sign = **p == '-' ? -1 : 1;
    if (!take_char(p, end, "+-") || (hours = take_number(p, end, 2, 0, 23)) < 0)
        return false;
    take_char(p, end, ":");
    if (*p < end && (minutes = take_number(p, end, 2, 0, 59)) < 0)
        return false;
    *ahead = sign * 60 * (60 * hours + minutes);
    return true;
}

/* The time at p, and its zone. */
static bool take_time(const char **p, const char *end, double *seconds)
{
    int hours = take_number(p, end, 2, 0, 24), minutes, ahead;
    double rest = 0;

    if (hours < 0 || !take_char(p, end, ":") || (minutes = take_number(p, end, 2, 0, 59)) < 0)
        return false;
    if (take_char(p, end, ":")) {
        rest = take_number(p, end, 2, 0, 60);
        if (rest < 0)
            return false;
        if (take_char(p, end, ".,"))
            for (double unit = .1; *p < end && **p >= '0' && **p <= '9'; unit /= 10)
                rest += unit * (*(*p)++ - '0');
    }
    if (!take_zone(p, end, &ahead))
        return false;
    *seconds = 3600 * hours + 60 * minutes + rest - ahead;
    return true;
}

/* Seconds from 1970 to a date of ISO 8601: a year, perhaps a month, a day, a time behind T or a space, a zone (none: UTC). */
static bool date_of(struct span s, double *seconds)
{
    const char *p = s.p, *end = p + s.n;
    int year = take_number(&p, end, 4, 0, 9999), month = 1, day = 1;
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    *seconds = 0;
    if (year < 0)
        return false;
    if (take_char(&p, end, "-") && (month = take_number(&p, end, 2, 1, 12)) < 0)
        return false;
    if (s.n > 7 && (!take_char(&p, end, "-") || (day = take_number(&p, end, 2, 1, days[month - 1])) < 0))
        return false;
    if (s.n > 10 && (!take_char(&p, end, "Tt ") || !take_time(&p, end, seconds)))
        return false;
    *seconds += 86400.0 * (double)days_of(year, month, day);
    return p == end;
}

/* ---- ranks ---- */

/* By the number, or the date, that d has there; without one 0, the last. */
static int rank_by(struct doc *d, const char *key, uint64_t *rank, struct err *e)
{
    const struct node *at;
    double seconds;
    int rc = dedup_key_node(d, key, &at, e);

    if (rc <= 0)
        return rc;
    if (at->type == NODE_INT || at->type == NODE_NUM)
        *rank = order(at->num);
    else if (at->type == NODE_STR && date_of(at->str, &seconds))
        *rank = order(seconds);
    return 0;
}

int dedup_keep_rank(int keep, const char *by, struct doc *d, uint64_t *rank, struct err *e)
{
    *rank = 0;
    if (keep == KEEP_LONGEST)
        *rank = d->text.n;
    return keep == KEEP_BEST ? rank_by(d, by, rank, e) : 0;
}

void dedup_seen_count(struct dedup_seen *s, bool has)
{
    __atomic_fetch_add(has ? &s->with : &s->without, 1, __ATOMIC_RELAXED);
}

void dedup_seen_tell(const struct dedup_seen *s, const char *option, const char *field)
{
    if (s->without && !s->with)
        log_msg(LOG_WARN, "of %" PRIu64 " documents none has '%s' (%s)", s->without, field, option);
}

int dedup_keep_check(int keep, const char *by, struct err *e)
{
    if (keep == KEEP_BEST && !by)
        return err_set(e, ERR_ARG, "to keep the best: by which field?");
    if (by && keep != KEEP_BEST)
        return err_set(e, ERR_ARG, "a field to go by is for keeping the best");
    return by ? dedup_key_check(by, e) : 0;
}

int dedup_size_check(const char *field, struct err *e)
{
    if (!*field)
        return err_set(e, ERR_ARG, "--cluster-size: a field without a name");
    if (strcmp(field, "text") == 0 || strcmp(field, "id") == 0 || strcmp(field, "url") == 0)
        return err_set(e, ERR_ARG, "--cluster-size '%s' would overwrite the %s of each document", field, field);
    return 0;
}

int dedup_size_reply(uint64_t size, struct span *reply, struct arena *a, struct err *e)
{
    *reply = arena_dup(a, (struct span){(const char *)&size, sizeof size});
    return reply->p ? 0 : err_set(e, ERR_NOMEM, "out of memory for the size of a cluster");
}

int dedup_size_apply(struct doc *d, const char *field, struct span reply, struct err *e)
{
    uint64_t size;

    memcpy(&size, reply.p, sizeof size);
    return doc_set_num(d, field, (double)size) < 0 ? err_set(e, ERR_NOMEM, "out of memory for the size of a cluster") : 0;
}
