#include "curate/filter/forget.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "indexed_dataset/page_list.h"

const struct stage_rule forget_rules[] = {
    {"forgotten", NULL, "Its id or URL is among those to be forgotten.", NULL, false},
    {0},
};

void forget_conf_init(struct forget_conf *c)
{
    *c = (struct forget_conf){{0}, {0}};
}

static int forget_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct span id = doc_string(d, "id");

    (void)thread;
    (void)note;
    (void)e;
    if (!id.p)
        id = doc_raw(d, "id"); /* a number */
    return page_list_find(stage, id, doc_string(d, "url")) ? verdict_drop(v, forget_rules, NAN, NAN) : 0;
}

static void forget_close(void *stage)
{
    page_list_free(stage);
    free(stage);
}

/* Whoever has pages to forget wants to know of a name that is written otherwise in the documents. */
static int forget_finish(void *stage, struct file_group *files, struct err *e)
{
    const struct page_list *l = stage;
    struct span name, first = {0};
    size_t at = 0, missing = 0;

    (void)files;
    (void)e;
    for (; page_list_missing(l, &at, &name); missing++)
        first = missing ? first : name;
    if (missing)
        log_msg(LOG_INFO, "%zu of %zu names are no document's; the first: '%.*s'", missing, at,
                (int)(first.n < 400 ? first.n : 400), first.p);
    return 0;
}

static const struct stage_ops forget_ops = {.name = "forget", .work = forget_work, .finish = forget_finish,
                                           .close = forget_close};

int forget_stage_open(struct stage *s, const struct forget_conf *conf, struct err *e)
{
    struct page_list *l = calloc(1, sizeof *l);
    int rc = l ? 0 : err_set(e, ERR_NOMEM, "out of memory for a list of pages");

    if (rc == 0 && !conf->ids.n && !conf->urls.n)
        rc = err_set(e, ERR_ARG, "forget: which pages? --ids FILE or --urls FILE");
    if (rc == 0)
        rc = page_list_read(l, PAGE_IDS, &conf->ids, e);
    if (rc == 0)
        rc = page_list_read(l, PAGE_URLS, &conf->urls, e);
    if (rc < 0 && l)
        forget_close(l);
    *s = (struct stage){&forget_ops, l};
    return rc;
}
