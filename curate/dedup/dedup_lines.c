#include "curate/dedup/dedup_lines.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/spill.h"
#include "curate/dedup/dedup_note.h"
#include "curate/dedup/dedup_text.h"
#include "curate/dedup/dedup_units.h"

enum { COUNTS = 1 << 16, KEYS = 256 /* that are read at a time */ };

/* What the names in the options mean, and the presets made of them. */
static const struct {
    enum dedup_unit unit;
    int span;
} units[] = {{DEDUP_LINE, 1}, {DEDUP_PARAGRAPH, 1}, {DEDUP_SENTENCE, 1}, {DEDUP_SENTENCE, 3}};
enum { LINE = 1, PARAGRAPH, SENTENCE, SENTENCES3, FIRST = 1, NONE, RAW = 1, CCNET, SIMPLE };

static const struct preset {
    int unit, keep, match;
    int64_t min_length, min_words, min_sentences;
    bool drop_empty; /* a document that had no text goes too */
} presets[] = {
    {LINE, FIRST, SIMPLE, 30, 0, 0, false},
    {LINE, NONE, CCNET, 0, 0, 0, true},
    {LINE, FIRST, RAW, 0, 0, 0, false},
    {SENTENCES3, FIRST, SIMPLE, 1, 50, 3, true},
};

struct lines {
    enum dedup_unit unit;
    enum dedup_form form;
    int span;
    uint32_t over;
    enum dedup_rule rule;
    bool drop_empty;
    int64_t min_length;
    const char *dir;
    struct dedup_left least;
    struct dedup_units *units;
    struct spill counts; /* units of each document, 32 bits */
    struct spill_reader judged;
    struct dedup_struck struck;
};

static int lines_thread_open(void *stage, void **thread, struct err *e)
{
    return dedup_noter_open(thread, sizeof(struct dedup_noter), ((const struct lines *)stage)->dir, e);
}

static int put_key(void *to, const struct hash128 *key, struct span form, struct err *e)
{
    (void)form;
    return dedup_note_put(to, key, sizeof *key, e);
}

/* The note: a key for each unit. */
static int lines_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    const struct lines *l = stage;
    struct dedup_noter *t = thread;
    struct dedup_keys keys = {l->unit, l->form, l->span, l->min_length, false, put_key, &t->note};

    if (l->drop_empty && !d->text.n)
        return verdict_drop(v, &dedup_text_rules[NOTHING_LEFT], 0, NAN);
    dedup_note_begin(&t->note, d);
    TRY(dedup_text_keys(&t->text, d->text, &keys, e));
    return dedup_note_end(&t->note, d->arena, note, e);
}

static int add_units(struct lines *l, const struct hash128 *key, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        TRY(key[i].hi ? dedup_units_add(l->units, key[i], e) : dedup_units_add_unmarked(l->units, e));
    return 0;
}

/* The units of a note. */
static int add_note(struct lines *l, struct dedup_note_reader *r, uint32_t *n, struct err *e)
{
    struct hash128 key[KEYS];
    size_t got;

    do {
        TRY(dedup_note_next(r, key, sizeof key, &got, e));
        TRY(add_units(l, key, got / sizeof *key, e));
        *n += (uint32_t)(got / sizeof *key);
    } while (got == sizeof key);
    return 0;
}

static int lines_commit_long(void *stage, struct span note, const struct spill_part *rest, struct verdict *v,
                             struct span *reply, struct arena *a, struct err *e)
{
    struct lines *l = stage;
    struct dedup_note_reader r;
    uint32_t n = 0;
    int rc = dedup_note_open(&r, note, rest, e);

    (void)v;
    (void)reply;
    (void)a;
    dedup_units_next_doc(l->units);
    if (rc == 0)
        rc = add_note(l, &r, &n, e);
    dedup_note_reader_close(&r);
    return rc < 0 ? rc : spill_put(&l->counts, &n, sizeof n, e);
}

static int lines_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    return lines_commit_long(stage, note, NULL, v, reply, a, e);
}

static int lines_resolve(void *stage, int jobs, struct err *e)
{
    struct lines *l = stage;

    TRY(dedup_units_resolve(l->units, l->rule, l->over, jobs, e));
    TRY(spill_flush(&l->counts, e));
    return spill_reader_open(&l->judged, &l->counts, 0, l->counts.size, COUNTS, e);
}

/* The reply: the unit's marks, where there is one. */
static int lines_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                       struct err *e)
{
    struct lines *l = stage;
    uint32_t count;
    uint8_t *mark;

    (void)n;
    (void)v;
    TRY(spill_next(&l->judged, &count, sizeof count, e));
    mark = arena_alloc(a, count + 1u);
    if (!mark)
        return err_set(e, ERR_NOMEM, "out of memory for %u units of a text", count);
    dedup_units_next(l->units, count, mark);
    if (memchr(mark, 1, count))
        *reply = (struct span){(const char *)mark, count};
    return 0;
}

static int lines_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v,
                       struct err *e)
{
    struct lines *l = stage;
    struct dedup_noter *t = thread;
    struct dedup_strike strike = {l->unit, l->span, reply};
    char *text = doc_text_bytes(d);
    uint64_t struck;
    size_t n;

    if (!text)
        return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", d->text.n);
    TRY(dedup_text_strike(&t->text, d->text, &strike, text, &n, &struck, e));
    return dedup_text_replace(&t->text, d, (struct span){text, n}, struck, &l->least, &l->struck, v, e);
}

static int lines_stats(void *stage, struct buf *json)
{
    const struct lines *l = stage;

    TRY(json_put_count(json, "units", dedup_units_count(l->units)));
    return dedup_struck_stats(&l->struck, "units_struck", json);
}

static void lines_close(void *stage)
{
    struct lines *l = stage;

    if (!l)
        return;
    dedup_units_close(l->units);
    spill_reader_close(&l->judged);
    spill_close(&l->counts);
    free(l);
}

static const struct stage_ops lines_ops = {
    .name = "dedup lines",
    .thread_open = lines_thread_open,
    .thread_close = dedup_noter_close,
    .work = lines_work,
    .commit = lines_commit,
    .commit_long = lines_commit_long,
    .resolve = lines_resolve,
    .judge = lines_judge,
    .apply = lines_apply,
    .stats = lines_stats,
    .close = lines_close,
};

void dedup_lines_conf_init(struct dedup_lines_conf *c)
{
    *c = (struct dedup_lines_conf){.over = 1, .min_length = -1, .min_words = -1, .min_sentences = -1, .memory = 1 << 30};
}

int dedup_lines_stage_open(struct stage *st, const struct dedup_lines_conf *c, struct err *e)
{
    const struct preset *p = &presets[c->preset];
    struct lines *l = calloc(1, sizeof *l);
    int unit = c->unit ? c->unit : p->unit, rc;

    if (!l)
        return err_set(e, ERR_NOMEM, "out of memory");
    l->counts.fd = -1;
    l->unit = units[unit - 1].unit;
    l->span = units[unit - 1].span;
    l->over = (uint32_t)c->over;
    l->rule = (c->keep ? c->keep : p->keep) == FIRST ? DEDUP_FIRST : l->over > 1 ? DEDUP_NONE : DEDUP_DOCS_ONE;
    l->dir = c->dir;
    l->form = (enum dedup_form)((c->match ? c->match : p->match) - 1);
    l->drop_empty = p->drop_empty;
    l->min_length = c->min_length >= 0 ? c->min_length : p->min_length;
    l->least.words = c->min_words >= 0 ? c->min_words : p->min_words;
    l->least.sentences = c->min_sentences >= 0 ? c->min_sentences : p->min_sentences;
    rc = dedup_units_open(&l->units, c->dir, c->memory, e);
    if (rc == 0)
        rc = spill_open(&l->counts, c->dir, COUNTS, e);
    if (rc < 0) {
        lines_close(l);
        return rc;
    }
    *st = (struct stage){&lines_ops, l};
    return 0;
}
