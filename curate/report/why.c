#include "curate/report/why.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "curate/stream/doc.h"
#include "curate/report/reject.h"
#include "curate/report/rules.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the ids");
}

/* 1: it is new. */
static int add_id(struct why *w, struct span id, size_t *number, struct err *e)
{
    int rc = name_table_add(&w->ids, id, number);

    if (rc < 0)
        return no_memory(e);
    if (rc == 0)
        return 0;
    if (mem_grow(&w->of, &w->cap, *number + 1, sizeof *w->of) < 0)
        return no_memory(e);
    w->of[*number] = arena_calloc(&w->bytes, 1, sizeof **w->of);
    return w->of[*number] ? 1 : no_memory(e);
}

int why_ask(struct why *w, struct span id, struct err *e)
{
    size_t number;

    TRY(add_id(w, id, &number, e));
    w->asked = w->ids.n;
    return 0;
}

/* ---- reading ---- */

struct search {
    struct why *w;
    const struct why_conf *c;
    struct reject_reader reader;
    size_t done;     /* of the ids before this one all lines were read */
    size_t most_ids; /* that survivors may make of them */
};

/* *hit is NULL if there are enough. */
static int add_hit(struct why *w, struct why_id *id, struct why_hit from, struct why_hit **hit, struct err *e)
{
    *hit = NULL;
    if (id->hits++ >= WHY_HITS)
        return 0;
    *hit = arena_alloc(&w->bytes, sizeof **hit);
    if (!*hit)
        return no_memory(e);
    **hit = from;
    if (id->last)
        id->last->next = *hit;
    else
        id->first = *hit;
    id->last = *hit;
    return 0;
}

static int keep_string(struct why *w, struct span *s)
{
    if (s->p)
        *s = arena_dup(&w->bytes, *s);
    return s->p ? 0 : ERR_NOMEM;
}

static int add_survivor(struct search *s, struct why_id *id, struct why_hit *h, struct err *e)
{
    size_t number;

    if (!h->survivor.p)
        return 0;
    if (keep_string(s->w, &h->survivor) < 0)
        return no_memory(e);
    if (!s->c->follow || rule_words(h->stage, h->rule).question)
        return 0;
    id->cut |= s->w->ids.n >= s->most_ids;
    return id->cut ? 0 : add_id(s->w, h->survivor, &number, e);
}

static int see_reject(void *to, const struct item *it, struct err *e)
{
    struct search *s = to;
    struct why_hit *h;
    struct reject r;
    size_t number;

    if (!line_may_be(it->line, &s->w->ids))
        return 0;
    TRY(reject_parse(&s->reader, it->line, &r, e));
    if (!name_table_find(&s->w->ids, r.id, &number) || number < s->done)
        return 0;
    TRY(add_hit(s->w, s->w->of[number],
                (struct why_hit){.stage = r.stage, .rule = r.rule, .survivor = r.survivor, .value = r.value,
                                 .threshold = r.threshold, .file = it->file, .offset = it->offset}, &h, e));
    if (!h)
        return 0;
    if (keep_string(s->w, &h->stage) < 0 || keep_string(s->w, &h->rule) < 0)
        return no_memory(e);
    return add_survivor(s, s->w->of[number], h, e);
}

static int see_doc(void *to, const struct item *it, struct err *e)
{
    struct search *s = to;
    struct why_hit *h;
    struct doc d;
    size_t number;

    if (!line_may_be(it->line, &s->w->ids))
        return 0;
    arena_reset(&s->reader.arena);
    doc_init(&d, &s->reader.arena);
    d.file = it->file;
    d.offset = it->offset;
    TRY(doc_parse(&d, s->reader.json, it->line, e));
    if (!name_table_find(&s->w->ids, d.id, &number))
        return 0;
    return add_hit(s->w, s->w->of[number], (struct why_hit){.kept = true, .file = it->file, .offset = it->offset}, &h, e);
}

/* Can the accounts be read again? */
static bool again(const struct why_conf *c)
{
    for (int i = 0; i < c->n_rejects; i++) {
        struct stat st;
        if (strcmp(c->rejects[i], "-") == 0 || stat(c->rejects[i], &st) < 0 || !S_ISREG(st.st_mode))
            return false;
    }
    return true;
}

/* A survivor that became known in the middle of the accounts may stand before: from the
 * beginning again, for these alone. */
static int read_rejects(struct search *s, struct err *e)
{
    struct why *w = s->w;

    for (int round = 0; s->done < w->ids.n && round < WHY_CHAIN; round++) {
        size_t known = w->ids.n;

        for (size_t i = s->done; i < known; i++)
            *w->of[i] = (struct why_id){.cut = round == WHY_CHAIN - 1};
        TRY(lines_read(s->c->rejects, s->c->n_rejects, see_reject, s, round ? NULL : &w->bad, e));
        s->done = known;
        if (!again(s->c))
            break;
    }
    for (size_t i = s->done; i < w->ids.n; i++)
        w->of[i]->cut = true;
    return 0;
}

int why_search(struct why *w, const struct why_conf *c, struct err *e)
{
    struct search s = {.w = w, .c = c, .most_ids = w->asked * (WHY_CHAIN + 1) + 1024};
    int rc = reject_reader_open(&s.reader, e);

    if (rc == 0)
        rc = read_rejects(&s, e);
    if (rc == 0)
        rc = lines_read(c->docs, c->n_docs, see_doc, &s, &w->bad, e);
    reject_reader_close(&s.reader);
    return rc;
}

bool why_survivor(const struct why *w, const struct why_hit *h, size_t *id)
{
    return h->survivor.p && !rule_words(h->stage, h->rule).question && name_table_find(&w->ids, h->survivor, id);
}

void why_free(struct why *w)
{
    name_table_free(&w->ids);
    free(w->of);
    arena_free(&w->bytes);
    *w = (struct why){0};
}
