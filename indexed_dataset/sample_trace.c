#include "indexed_dataset/sample_trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "indexed_dataset/checkpoint_history.h"
#include "indexed_dataset/sft_dataset.h"

/* What some steps were trained on, open. */
struct traced_data {
    int64_t number; /* of the history's data; -1: none is open */
    struct arena texts;
    struct gpt_dataset *gpt; /* one of the two */
    struct sft_dataset *sft;
    struct ledger **ledger; /* (parts) each NULL or open */
    uint8_t **wanted;       /* (parts) a bit a document; NULL: nobody asks */
    int parts;
};

struct sample_trace {
    struct sample_trace_conf conf;
    struct history history;
    struct traced_data data;
};

/* ---- the log ---- */

/* A step of the log: what was done before and is done again counts no more. */
static int add_logged(struct history *h, const struct node *line, struct span data, struct err *e)
{
    struct history_entry one = {
        .step = node_int(line, "step", 0), .steps = 1, .sample = node_int(line, "first_sample", -1),
        .batch = node_int(line, "batch", 0), .skipped = node_bool(line, "skipped", false),
    };
    int64_t back_to = node_int(line, "rolled_back_to", -1);

    if (one.step < 1 || one.sample < 0 || one.batch < 1) /* the losses after the last step, or an older log */
        return 0;
    history_cut(h, back_to >= 0 ? back_to + 1 : one.step);
    return back_to >= 0 ? 0 : history_add(h, &one, data, e);
}

static int read_log(struct history *h, const char *path, struct span data, struct err *e)
{
    struct buf text = {0};
    struct arena a = {0};
    uint64_t line = 0;
    int rc = file_read_all(path, CHECKPOINT_METADATA, &text, e);

    for (size_t at = 0, end; rc == 0 && at < text.n; at = end + 1) {
        const char *stop = memchr(text.p + at, '\n', text.n - at);
        struct node *root;

        line++;
        end = stop ? (size_t)(stop - text.p) : text.n;
        if (!stop) /* a line that a kill cut short: its step is not in a later checkpoint */
            break;
        arena_reset(&a);
        rc = node_parse_json(&a, (struct span){text.p + at, end - at}, &root, e);
        rc = rc < 0 ? err_wrap(e, "'%s', line %" PRIu64, path, line) : add_logged(h, root, data, e);
    }
    arena_free(&a);
    buf_free(&text);
    return rc;
}

/* Appends the steps that the log has after the checkpoint's; where both speak of the last of the checkpoint they must agree. */
static int add_log(struct history *h, const char *path, struct err *e)
{
    struct history logged = {0};
    int64_t sample, end = history_end(h, &sample);
    const struct history_entry *x;
    int rc;

    if (!h->n)
        return err_set(e, ERR_UNSUPPORTED, "the checkpoint has no step, so it does not say what the log's are of");
    rc = read_log(&logged, path, h->data[h->n_data - 1], e);
    x = rc == 0 ? history_find(&logged, end) : NULL;
    if (x && x->sample + (end - x->step + 1) * x->batch != sample)
        rc = err_set(e, ERR_FORMAT, "'%s' is not the log of the checkpoint: their steps %" PRId64 " differ", path, end);
    for (size_t i = 0; i < logged.n && rc == 0; i++) {
        struct history_entry one = logged.entry[i];
        int64_t skip = end + 1 > one.step ? end + 1 - one.step : 0;

        if (skip >= one.steps)
            continue;
        one.step += skip;
        one.steps -= skip;
        one.sample += skip * one.batch;
        if (history_end(h, &sample) + 1 != one.step || one.sample < sample)
            rc = err_set(e, ERR_FORMAT, "'%s' is not the log of the checkpoint: it lacks step %" PRId64, path, end + 1);
        if (rc == 0)
            rc = history_add(h, &one, h->data[h->n_data - 1], e);
    }
    history_free(&logged);
    return rc;
}

/* ---- the data ---- */

static void close_data(struct traced_data *d)
{
    gpt_dataset_close(d->gpt);
    sft_dataset_close(d->sft);
    for (int i = 0; i < d->parts; i++) {
        ledger_close(d->ledger[i]);
        if (d->wanted)
            free(d->wanted[i]);
    }
    free(d->ledger);
    free(d->wanted);
    arena_free(&d->texts);
    *d = (struct traced_data){.number = -1};
}

/* The strings of a list. */
static int take_words(struct arena *a, const struct node *list, struct gpt_paths *words, struct err *e)
{
    const char **v = arena_calloc(a, list ? (size_t)list->count + 1 : 1, sizeof *v);

    if (!v)
        return err_set(e, ERR_NOMEM, "out of memory");
    words->word = v;
    for (const struct node *c = list && list->type == NODE_LIST ? list->child : NULL; c; c = c->next)
        if (c->type == NODE_STR)
            v[words->n++] = c->str.p;
    return 0;
}

/* The ledgers of the datasets that paths name; each that a root is known of must have it. */
static int open_ledgers(struct traced_data *d, const struct gpt_paths *paths, const struct gpt_paths *roots, bool weights,
                        struct err *e)
{
    char hex[2 * SHA256_SUM + 1];

    d->ledger = calloc((size_t)paths->n, sizeof(struct ledger *));
    if (!d->ledger)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int word; (word = weights ? gpt_paths_word(paths, d->parts) : d->parts) < paths->n; d->parts++) {
        const char *root = word < roots->n ? roots->word[word] : "";
        struct ledger *l;

        TRY(ledger_open(&l, paths->word[word], e));
        d->ledger[d->parts] = l;
        if (l)
            sha256_hex(ledger_root(l), hex);
        if (root[0] && root[1] && !(l && strcmp(root, hex) == 0)) {
            d->parts++;
            return err_set(e, ERR_FORMAT, "'%s' is not the dataset that was trained on: its ledger %s%s, not %s",
                           paths->word[word], l ? "has the root " : "is missing", l ? hex : "", root);
        }
    }
    return 0;
}

/* Opens the samples that a description is of. */
static int open_described(struct traced_data *d, const struct node *n, const struct sample_trace_conf *c, struct err *e)
{
    const struct node *parts = node_get(n, "train-data-path"), *paths = parts ? parts : node_get(n, "data-path");
    const char *sft = node_str(n, "sft");
    struct sft_conf packing = {SFT_BFD, false};
    struct gpt_dataset *gpt[GPT_SPLITS] = {NULL};
    struct sft_dataset *whole[GPT_SPLITS] = {NULL};
    struct gpt_paths words = {0}, roots = {0};
    struct gpt_conf conf = {
        .split = parts ? NULL : node_str(n, "split"), .seq_length = node_int(n, "seq-length", 0),
        .seed = (uint32_t)node_int(n, "seed", 0), .jobs = c->jobs, .cache = c->cache,
    };

    if (node_bool(n, "mock-data", false))
        return err_set(e, ERR_UNSUPPORTED, "'%s': the steps were trained on made-up tokens", c->checkpoint);
    TRY(take_words(&d->texts, paths, &words, e));
    TRY(take_words(&d->texts, node_get(n, "ledgers"), &roots, e));
    conf.samples[GPT_TRAIN] = node_int(n, "samples", 0);
    if (words.n == 0 || (!parts && !conf.split) || conf.samples[GPT_TRAIN] < 1)
        return err_set(e, ERR_FORMAT, "'%s': its history does not say of which data it is", c->checkpoint);
    *(parts ? &conf.split_paths[GPT_TRAIN] : &conf.paths) = words;
    TRY(open_ledgers(d, &words, &roots, !sft, e));
    if (sft)
        packing.packing = strcmp(sft, "wrapped") == 0 ? SFT_WRAPPED : strcmp(sft, "none") == 0 ? SFT_NONE : SFT_BFD;
    TRY(sft ? sft_dataset_open(whole, &conf, &packing, e) : gpt_dataset_open(gpt, &conf, e));
    d->gpt = gpt[GPT_TRAIN];
    d->sft = whole[GPT_TRAIN];
    return d->gpt || d->sft ? 0 : err_set(e, ERR_FORMAT, "'%s': its data have no sample for training", c->checkpoint);
}

/* Opens the history's data of that number, unless they are; pages: which documents are wanted, or NULL. */
static int use_data(struct sample_trace *t, int64_t number, struct page_list *pages, struct err *e)
{
    struct traced_data *d = &t->data;
    struct node *n;
    uint64_t found;

    if (d->number == number)
        return 0;
    close_data(d);
    TRY(node_parse_json(&d->texts, t->history.data[number], &n, e));
    TRY(open_described(d, n, &t->conf, e));
    if (pages) {
        d->wanted = calloc((size_t)d->parts, sizeof *d->wanted);
        if (!d->wanted)
            return err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int i = 0; pages && i < d->parts; i++) {
        if (!d->ledger[i])
            return err_set(e, ERR_ARG, "a dataset that '%s' was trained on has no ledger, so its pages have no names",
                           t->conf.checkpoint);
        TRY(page_list_bits(pages, d->ledger[i], &d->wanted[i], &found, e));
    }
    d->number = number;
    return 0;
}

/* ---- steps ---- */

struct tracing {
    const struct traced_data *data;
    struct traced_piece piece;
    traced_fn *fn;
    void *arg;
};

static int trace_piece(void *arg, const struct sample_piece *p, struct err *e)
{
    struct tracing *r = arg;
    const struct traced_data *d = r->data;
    struct ledger *l = d->ledger[p->part];
    struct ledger_document doc;

    if (l && p->document >= ledger_n_documents(l))
        return err_set(e, ERR_FORMAT, "'%s.ledger' has no document %" PRIu64, idx_prefix(p->x), p->document);
    if (d->wanted && !(d->wanted[p->part][p->document / 8] >> p->document % 8 & 1))
        return 0;
    if (l)
        TRY(ledger_document(l, p->document, &doc, e));
    r->piece.piece = p;
    r->piece.origin = l ? &doc : NULL;
    return r->fn(r->arg, &r->piece, e);
}

/* Row `row` of a step of an entry, whose data are open. */
static int trace_row(struct sample_trace *t, const struct history_entry *x, int64_t step, int64_t row, struct tracing *r,
                     struct err *e)
{
    const struct traced_data *d = &t->data;
    int64_t sample = x->sample + (step - x->step) * x->batch + row;

    r->data = d;
    r->piece = (struct traced_piece){.step = step, .row = row, .sample = sample, .skipped = x->skipped};
    return d->sft ? sft_dataset_pieces(d->sft, sample, trace_piece, r, e)
                  : gpt_dataset_pieces(d->gpt, sample % gpt_dataset_samples(d->gpt), trace_piece, r, e);
}

int sample_trace_step(struct sample_trace *t, int64_t step, int64_t row, traced_fn *fn, void *arg, struct err *e)
{
    const struct history_entry *x = history_find(&t->history, step);
    struct tracing r = {.fn = fn, .arg = arg};
    int64_t sample, last = history_end(&t->history, &sample);

    if (!x)
        return err_set(e, ERR_ARG, "'%s' says nothing of a step %" PRId64 "; it has %" PRId64 " to %" PRId64, t->conf.checkpoint,
                       step, t->history.n ? t->history.entry[0].step : 0, last);
    if (row >= x->batch)
        return err_set(e, ERR_ARG, "step %" PRId64 " took %" PRId64 " samples; they are counted from 0", step, x->batch);
    TRY(use_data(t, x->data, NULL, e));
    for (int64_t i = row < 0 ? 0 : row; i < (row < 0 ? x->batch : row + 1); i++)
        TRY(trace_row(t, x, step, i, &r, e));
    return 0;
}

int sample_trace_find(struct sample_trace *t, struct page_list *pages, traced_fn *fn, void *arg, struct err *e)
{
    struct tracing r = {.fn = fn, .arg = arg};

    for (size_t k = 0; k < t->history.n; k++) {
        const struct history_entry *x = &t->history.entry[k];

        TRY(use_data(t, x->data, pages, e));
        for (int64_t step = x->step; step < x->step + x->steps; step++)
            for (int64_t row = 0; row < x->batch; row++)
                TRY(trace_row(t, x, step, row, &r, e));
    }
    return 0;
}

/* ---- opening ---- */

int sample_trace_open(struct sample_trace **out, const struct sample_trace_conf *c, struct err *e)
{
    struct sample_trace *t = calloc(1, sizeof *t);
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory");
    *t = (struct sample_trace){.conf = *c, .data = {.number = -1}};
    rc = checkpoint_history(&t->history, c->checkpoint, c->of, NULL, e);
    if (rc == 0 && c->log)
        rc = add_log(&t->history, c->log, e);
    if (rc < 0)
        sample_trace_close(t);
    else
        *out = t;
    return rc;
}

void sample_trace_close(struct sample_trace *t)
{
    if (!t)
        return;
    close_data(&t->data);
    history_free(&t->history);
    free(t);
}

const struct history *sample_trace_history(const struct sample_trace *t)
{
    return &t->history;
}

int traced_piece_put(struct buf *b, const struct traced_piece *p)
{
    const struct sample_piece *of = p->piece;

    buf_printf(b, "{\"step\":%" PRId64 ",\"row\":%" PRId64 ",\"sample\":%" PRId64, p->step, p->row, p->sample);
    if (p->skipped)
        buf_puts(b, ",\"skipped\":true");
    buf_printf(b, ",\"at\":[%" PRId64 ",%" PRId64 "],\"dataset\":", of->at, of->at + of->n);
    json_put_name(b, idx_prefix(of->x));
    buf_printf(b, ",\"document\":%" PRIu64 ",\"tokens\":[%" PRId64 ",%" PRId64 "]", of->document, of->from, of->from + of->n);
    if (p->origin) {
        buf_puts(b, ",\"id\":");
        json_put_string(b, p->origin->id);
        buf_puts(b, ",\"url\":");
        json_put_string(b, p->origin->url);
        buf_puts(b, ",\"source\":");
        buf_put_span(b, p->origin->source);
    }
    return buf_puts(b, "}\n");
}
