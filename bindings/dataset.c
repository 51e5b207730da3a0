/* Indexed datasets and training samples. */
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/call.h"
#include "indexed_dataset/gpt_dataset.h"
#include "indexed_dataset/idx_read.h"

struct quern_dataset {
    struct idx *x;
};

int quern_dataset_open(quern_dataset **out, const char *prefix, quern_error *e)
{
    quern_dataset *d;
    struct err why;
    int rc;

    if (!out || !prefix)
        return call_refused(e, "no place for the dataset, or no prefix");
    *out = NULL;
    d = calloc(1, sizeof *d);
    rc = d ? idx_open(&d->x, prefix, &why) : err_set(&why, ERR_NOMEM, "out of memory");
    if (rc < 0) {
        free(d);
        return call_failed(e, &why);
    }
    *out = d;
    return 0;
}

void quern_dataset_close(quern_dataset *d)
{
    if (!d)
        return;
    idx_close(d->x);
    free(d);
}

size_t quern_dataset_sequences(const quern_dataset *d)
{
    return d ? idx_n_sequences(d->x) : 0;
}

size_t quern_dataset_documents(const quern_dataset *d)
{
    return d ? idx_n_documents(d->x) : 0;
}

int quern_dataset_dtype(const quern_dataset *d)
{
    return d ? (int)idx_dtype(d->x) : 0;
}

/* Whether [first, first + n) lies within `of`. */
static bool within(size_t first, size_t n, size_t of)
{
    return first <= of && n <= of - first;
}

int quern_dataset_lengths(const quern_dataset *d, size_t first, size_t n, int32_t *lengths, quern_error *e)
{
    const void *p;
    struct err why;

    if (!d || (!lengths && n) || !within(first, n, quern_dataset_sequences(d)))
        return call_refused(e, "lengths: no dataset, nowhere to put them, or no such sequences");
    for (size_t i = 0; i < n; i++)
        if (idx_sequence(d->x, first + i, &p, &lengths[i], &why) < 0)
            return call_failed(e, &why);
    return 0;
}

int quern_dataset_boundaries(const quern_dataset *d, size_t first, size_t n, int64_t *sequences, quern_error *e)
{
    uint64_t begin, end = 0;
    struct err why;
    size_t documents = quern_dataset_documents(d);

    if (!d || (!sequences && n) || !within(first, n, documents + 1))
        return call_refused(e, "boundaries: no dataset, nowhere to put them, or no such documents");
    for (size_t i = 0; i < n; i++) {
        size_t k = first + i; /* the entry behind the last document is where that ends */
        if (documents && idx_document(d->x, k < documents ? k : documents - 1, &begin, &end, &why) < 0)
            return call_failed(e, &why);
        sequences[i] = (int64_t)(k < documents ? begin : end);
    }
    return 0;
}

/* Writes what there is room for of the tokens of sequence i from `from` on, and adds their number to *n. */
static int read_sequence(const struct idx *x, uint64_t i, size_t from, int32_t *tokens, size_t room, size_t *n, struct err *e)
{
    const void *p = NULL;
    int32_t length = 0;
    size_t have, fit = room > *n ? room - *n : 0;

    TRY(idx_sequence(x, i, &p, &length, e));
    if (from > (size_t)length)
        return err_set(e, ERR_ARG, "sequence %zu has %d tokens, none from %zu on", (size_t)i, length, from);
    have = (size_t)length - from;
    if (have < fit)
        fit = have;
    if (fit)
        TRY(idx_tokens_i32(x, i, (int64_t)from, (int64_t)fit, tokens + *n, e));
    *n += have;
    return 0;
}

int64_t quern_dataset_read(const quern_dataset *d, size_t i, size_t from, int32_t *tokens, size_t room, quern_error *e)
{
    struct err why;
    size_t n = 0;

    if (!d || (!tokens && room))
        return call_refused(e, "read: no dataset, or nowhere to put the tokens");
    return read_sequence(d->x, i, from, tokens, room, &n, &why) < 0 ? call_failed(e, &why) : (int64_t)n;
}

int64_t quern_dataset_read_document(const quern_dataset *d, size_t k, int32_t *tokens, size_t room, quern_error *e)
{
    uint64_t first = 0, end = 0;
    struct err why;
    size_t n = 0;
    int rc;

    if (!d || (!tokens && room))
        return call_refused(e, "read: no dataset, or nowhere to put the tokens");
    rc = idx_document(d->x, k, &first, &end, &why);
    for (; rc == 0 && first < end; first++)
        rc = read_sequence(d->x, first, 0, tokens, room, &n, &why);
    return rc < 0 ? call_failed(e, &why) : (int64_t)n;
}

/* ---- samples ---- */

struct quern_samples {
    struct gpt_dataset *d;
};

static int check_settings(const quern_samples_settings *s, quern_error *e)
{
    if (!s->paths || s->n_paths == 0 || s->n_paths > INT_MAX)
        return call_refused(e, "samples: no paths, or too many");
    for (size_t i = 0; i < s->n_paths; i++)
        if (!s->paths[i])
            return call_refused(e, "samples: one of the paths is NULL");
    if (s->part < QUERN_TRAIN || s->part > QUERN_TEST)
        return call_refused(e, "samples: the part is none of training, validation and test");
    return s->samples < 0 ? call_refused(e, "samples: fewer than none are asked for") : 0;
}

static int open_samples(struct gpt_dataset **out, const quern_samples_settings *s, struct err *e)
{
    struct gpt_dataset *all[GPT_SPLITS];
    struct gpt_paths paths = {s->paths, (int)s->n_paths};
    struct gpt_conf c = {.split = s->split, .seq_length = s->sequence_length, .seed = s->seed, .cache = s->cache};

    if (s->split)
        c.paths = paths;
    else
        c.split_paths[s->part] = paths;
    c.samples[s->part] = s->samples ? s->samples : -1;
    TRY(gpt_dataset_open(all, &c, e));
    *out = all[s->part];
    return *out ? 0 : err_set(e, ERR_ARG, "the split '%s' leaves nothing for this part", s->split ? s->split : "");
}

int quern_samples_open(quern_samples **out, const quern_samples_settings *settings, quern_error *e)
{
    quern_samples_settings s;
    quern_samples *samples;
    locale_t c, before;
    struct err why;
    int rc;

    if (!out || !settings)
        return call_refused(e, "no place for the samples, or no settings");
    *out = NULL;
    TRY(call_settings(&s, sizeof s, settings, e));
    TRY(check_settings(&s, e));
    samples = calloc(1, sizeof *samples);
    c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); /* weights have a point, whatever the host's language */
    if (samples && c) {
        before = uselocale(c);
        rc = open_samples(&samples->d, &s, &why);
        uselocale(before);
    } else {
        rc = err_set(&why, ERR_NOMEM, "out of memory");
    }
    if (c)
        freelocale(c);
    if (rc < 0) {
        free(samples);
        return call_failed(e, &why);
    }
    *out = samples;
    return 0;
}

void quern_samples_close(quern_samples *s)
{
    if (!s)
        return;
    gpt_dataset_close(s->d);
    free(s);
}

int64_t quern_samples_count(const quern_samples *s)
{
    return s ? gpt_dataset_samples(s->d) : 0;
}

int quern_samples_read(const quern_samples *s, int64_t i, int32_t *tokens, quern_error *e)
{
    struct err why;

    if (!s || !tokens)
        return call_refused(e, "read: no samples, or nowhere to put the tokens");
    return gpt_dataset_get(s->d, i, tokens, &why) < 0 ? call_failed(e, &why) : 0;
}
