/* Which layers have experts. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/model_config.h"

enum { DEEPEST = 32, MOST = 100000 };

/* ---- as a model has them: every so many, or runs, "3x0,58x1" ---- */

/* The next run; false: there is none, or it makes no sense. */
static bool next_run(const char **at, int64_t *n, bool *moe)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    *n = strtoll(*at, &end, 10);
    if (*n < 1 || *n > MOST || end[0] != 'x' || (end[1] != '0' && end[1] != '1') || (end[2] && !(end[2] == ',' && end[3])))
        return false;
    *moe = end[1] == '1';
    *at = end + (end[2] ? 3 : 2);
    return true;
}

/* Of every so many layers the first is one; 0 before the flags' defaults are in their places. */
static int64_t freq(const struct model_config *m)
{
    return m->moe_freq ? m->moe_freq : 1;
}

bool model_layer_moe(const struct model_config *m, int64_t layer)
{
    const char *at = m->moe_list;
    bool moe = false;
    int64_t n;

    if (!m->experts || !*at)
        return m->experts && layer % freq(m) == 0;
    for (; next_run(&at, &n, &moe) && layer >= n; layer -= n)
        ;
    return moe;
}

int64_t model_moe_layers(const struct model_config *m)
{
    const char *at = m->moe_list;
    int64_t n, all = 0;
    bool moe;

    if (!m->experts || !*at)
        return m->experts ? (m->layers + freq(m) - 1) / freq(m) : 0;
    while (next_run(&at, &n, &moe))
        all += moe ? n : 0;
    return all;
}

int moe_layers_check(const struct model_config *m, struct err *e)
{
    const char *at = m->moe_list;
    int64_t n, all = 0;
    bool moe;

    while (*at && next_run(&at, &n, &moe))
        all += n;
    if (*m->moe_list && (*at || all != m->layers))
        return err_set(e, ERR_ARG, "--moe-layer-freq: '%s' are not the %" PRId64 " layers", m->moe_list, m->layers);
    if (m->experts && model_moe_layers(m) == 0)
        return err_set(e, ERR_ARG, "--moe-layer-freq: no layer has experts");
    return 0;
}

/* ---- Megatron's expressions of lists: "([0]*3+[1]*58)", "[1,0]*12", "0,1,1" ---- */

struct reader {
    const char *at;
    char *v; /* a layer each, '0' or '1' */
    int64_t n, most;
    int depth;
};

static bool skip(struct reader *r, char c)
{
    r->at += strspn(r->at, " ");
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* 0s and 1s with commas between. */
static bool read_items(struct reader *r)
{
    do {
        r->at += strspn(r->at, " ");
        if ((*r->at != '0' && *r->at != '1') || isdigit((unsigned char)r->at[1]) || r->n == r->most)
            return false;
        r->v[r->n++] = *r->at++;
    } while (skip(r, ','));
    return true;
}

/* What was read from `first` on so many times. */
static bool repeat(struct reader *r, int64_t first)
{
    int64_t times, n = r->n - first;
    char *end;

    r->at += strspn(r->at, " ");
    if (!isdigit((unsigned char)*r->at))
        return false;
    times = strtoll(r->at, &end, 10);
    r->at = end;
    if (times > r->most || first + times * n > r->most)
        return false;
    for (int64_t i = 1; i < times; i++)
        memcpy(r->v + first + i * n, r->v + first, (size_t)n);
    r->n = first + times * n;
    return true;
}

static bool read_sum(struct reader *r)
{
    do {
        int64_t first = r->n;
        bool fine;

        if (skip(r, '(')) {
            fine = r->depth++ < DEEPEST && read_sum(r) && skip(r, ')');
            r->depth--;
        } else {
            fine = skip(r, '[') && read_items(r) && skip(r, ']');
        }
        while (fine && skip(r, '*'))
            fine = repeat(r, first);
        if (!fine)
            return false;
    } while (skip(r, '+'));
    return true;
}

/* How far apart layers with experts are, the first one being one; 0: not evenly. */
static int64_t even(const char *v, int64_t n)
{
    const char *second = v[0] == '1' ? memchr(v + 1, '1', (size_t)n - 1) : NULL;
    int64_t each = second ? second - v : n;

    for (int64_t i = 0; i < n; i++)
        if ((v[i] == '1') != (i % each == 0))
            return 0;
    return each;
}

static bool write_runs(const char *v, int64_t n, char *out, size_t size)
{
    size_t used = 0;

    for (int64_t i = 0, end; i < n && used < size; i = end) {
        for (end = i; end < n && v[end] == v[i]; end++)
            ;
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64 "x%c", i ? "," : "", end - i, v[i]);
    }
    return used < size;
}

int moe_layers_parse(const char *text, struct model_config *m, struct err *e)
{
    struct reader r = {.at = text, .most = m->layers};
    bool fine, fits = true;

    m->moe_list[0] = 0;
    m->moe_freq = 0;
    if (text[strspn(text, "0123456789")] == 0) {
        m->moe_freq = strtoll(text, NULL, 10);
        return *text && m->moe_freq <= MOST ? 0 : err_set(e, ERR_ARG, "--moe-layer-freq: '%s' is no number up to %d", text, MOST);
    }
    r.v = malloc((size_t)r.most + 1);
    if (!r.v)
        return err_set(e, ERR_NOMEM, "out of memory");
    fine = (isdigit((unsigned char)*text) ? read_items(&r) : read_sum(&r)) && !*(r.at + strspn(r.at, " ")) && r.n == r.most;
    if (fine)
        m->moe_freq = even(r.v, r.n);
    if (fine && !m->moe_freq)
        fits = write_runs(r.v, r.n, m->moe_list, sizeof m->moe_list);
    free(r.v);
    if (!fine)
        return err_set(e, ERR_ARG, "--moe-layer-freq: '%s' is neither a number nor a list of the %" PRId64 " layers, as"
                       " '[0]*3+[1]*58' is", text, m->layers);
    return fits ? 0 : err_set(e, ERR_ARG, "--moe-layer-freq: '%s' has too many changes", text);
}
