#include "indexed_dataset/history.h"

#include <inttypes.h>
#include <stdlib.h>

enum { FIELDS = 6 }; /* of an entry in JSON */

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the history of steps");
}

void history_free(struct history *h)
{
    free(h->entry);
    free(h->data);
    arena_free(&h->texts);
    *h = (struct history){0};
}

/* The number of this description among the data, which it is put to if it is new. */
static int find_data(struct history *h, struct span data, int64_t *number, struct err *e)
{
    for (size_t i = h->n_data; i-- > 0;)
        if (span_eq(h->data[i], data)) {
            *number = (int64_t)i;
            return 0;
        }
    if (mem_grow(&h->data, &h->data_cap, h->n_data + 1, sizeof *h->data) < 0)
        return no_memory(e);
    h->data[h->n_data] = arena_dup(&h->texts, data);
    if (!h->data[h->n_data].p)
        return no_memory(e);
    *number = (int64_t)h->n_data++;
    return 0;
}

/* Whether b goes on as a does, so that both can be one entry. */
static bool continues(const struct history_entry *a, const struct history_entry *b)
{
    return a->batch == b->batch && a->data == b->data && a->skipped == b->skipped && a->step + a->steps == b->step &&
           a->sample + a->steps * a->batch == b->sample;
}

int history_add(struct history *h, const struct history_entry *one, struct span data, struct err *e)
{
    struct history_entry next = *one;

    TRY(find_data(h, data, &next.data, e));
    if (h->n && continues(&h->entry[h->n - 1], &next)) {
        h->entry[h->n - 1].steps += next.steps;
        return 0;
    }
    if (mem_grow(&h->entry, &h->cap, h->n + 1, sizeof *h->entry) < 0)
        return no_memory(e);
    h->entry[h->n++] = next;
    return 0;
}

void history_cut(struct history *h, int64_t step)
{
    while (h->n && h->entry[h->n - 1].step >= step)
        h->n--;
    if (h->n && h->entry[h->n - 1].step + h->entry[h->n - 1].steps > step)
        h->entry[h->n - 1].steps = step - h->entry[h->n - 1].step;
}

const struct history_entry *history_find(const struct history *h, int64_t step)
{
    for (size_t i = 0; i < h->n; i++)
        if (step >= h->entry[i].step && step - h->entry[i].step < h->entry[i].steps)
            return &h->entry[i];
    return NULL;
}

int64_t history_end(const struct history *h, int64_t *sample)
{
    const struct history_entry *last = h->n ? &h->entry[h->n - 1] : NULL;

    *sample = last ? last->sample + last->steps * last->batch : 0;
    return last ? last->step + last->steps - 1 : 0;
}

bool history_begins(const struct history *h, const struct history *of)
{
    if (of->n > h->n)
        return false;
    for (size_t i = 0; i < of->n; i++) {
        const struct history_entry *a = &h->entry[i], *b = &of->entry[i];

        if (a->step != b->step || a->sample != b->sample || a->batch != b->batch || a->skipped != b->skipped ||
            (i + 1 < of->n ? a->steps != b->steps : a->steps < b->steps) || !span_eq(h->data[a->data], of->data[b->data]))
            return false;
    }
    return true;
}

int history_put(const struct history *h, struct buf *b)
{
    TRY(buf_puts(b, "{\"data\":["));
    for (size_t i = 0; i < h->n_data; i++) {
        TRY(i ? buf_putc(b, ',') : 0);
        TRY(buf_put_span(b, h->data[i]));
    }
    TRY(buf_puts(b, "],\"steps\":["));
    for (size_t i = 0; i < h->n; i++) {
        const struct history_entry *x = &h->entry[i];

        TRY(buf_printf(b, "%s[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d]", i ? "," : "", x->step, x->steps,
                       x->sample, x->batch, x->data, x->skipped));
    }
    return buf_puts(b, "]}");
}

/* ---- reading ---- */

static int parse_data(struct history *h, const struct node *list, struct err *e)
{
    struct buf text = {0};
    int64_t number = 0;
    int rc = 0;

    for (const struct node *c = list->child; c && rc == 0; c = c->next) {
        buf_clear(&text);
        if (c->type != NODE_MAP)
            rc = err_set(e, ERR_FORMAT, "data that is no object");
        else
            rc = node_put_json(&text, c, "") < 0 ? no_memory(e) : find_data(h, buf_span(&text), &number, e);
        if (rc == 0 && (size_t)number + 1 != h->n_data)
            rc = err_set(e, ERR_FORMAT, "the same data twice");
    }
    buf_free(&text);
    return rc;
}

/* An entry, which must go on after those that are there, and whose last step and sample are numbers of 62 bits. */
static int parse_entry(struct history *h, const struct node *list, struct err *e)
{
    const int64_t most = INT64_C(1) << 62;
    int64_t v[FIELDS] = {0}, sample, end = history_end(h, &sample), last;
    struct history_entry x;
    int n = 0;

    for (const struct node *c = list->type == NODE_LIST ? list->child : NULL; c && n < FIELDS; c = c->next, n++)
        if (c->type != NODE_INT || (v[n] = c->integer) < 0)
            return err_set(e, ERR_FORMAT, "a step that is no number");
    x = (struct history_entry){v[0], v[1], v[2], v[3], v[4], v[5] == 1};
    if (n != FIELDS || list->count != FIELDS || x.step < 1 || x.steps < 1 || x.batch < 1 || v[5] > 1 || x.step > most - x.steps ||
        x.data >= (int64_t)h->n_data || (h->n && (x.step != end + 1 || x.sample < sample)) ||
        __builtin_mul_overflow(x.steps, x.batch, &last) || x.sample > most || last > most - x.sample)
        return err_set(e, ERR_FORMAT, "steps that do not follow those before them, at step %" PRId64, end + 1);
    if (mem_grow(&h->entry, &h->cap, h->n + 1, sizeof *h->entry) < 0)
        return no_memory(e);
    h->entry[h->n++] = x;
    return 0;
}

int history_parse(struct history *h, const struct node *n, const char *what, struct err *e)
{
    const struct node *data = node_get(n, "data"), *steps = node_get(n, "steps");
    int rc = 0;

    if (!data || data->type != NODE_LIST || !steps || steps->type != NODE_LIST)
        return err_set(e, ERR_FORMAT, "%s: no history of steps", what);
    rc = parse_data(h, data, e);
    for (const struct node *c = steps->child; c && rc == 0; c = c->next)
        rc = parse_entry(h, c, e);
    return rc < 0 ? err_wrap(e, "%s: its history", what) : 0;
}

int history_read(struct history *h, struct span text, const char *what, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_parse_json(&a, text, &root, e);

    rc = rc < 0 ? err_wrap(e, "%s: its history", what) : history_parse(h, root, what, e);
    arena_free(&a);
    return rc;
}
