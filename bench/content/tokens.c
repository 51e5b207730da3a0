#include "bench/content/trainer.h"

#include <stdlib.h>

#include "curate/html/html_url.h"
#include "curate/html/main_content_parts.h"

void desk_read(struct desk *d, const struct sample *s, const struct content_lexicon *l)
{
    struct html_page meta = {.truncated = false};
    struct err e;

    if (html_tree_parse(&d->tree, &d->names, s->html, 2000000, 0, &e) < 0)
        exit(3);
    if (mem_room(&d->skip, &d->cap_skip, d->tree.n_nodes, 1) < 0)
        exit(3);
    memset(d->skip, 0, d->tree.n_nodes);
    html_url_base(&d->tree, (struct span){"", 0}, &d->base);
    html_meta_read(&d->meta, &d->tree, buf_span(&d->base), &meta);
    d->title = meta.title;
    content_skip_silent(&d->tree, d->skip);
    if (content_page_read(&d->page, &d->tree, &d->words, l, d->skip, meta.title, meta.canonical) < 0)
        exit(3);
}

struct noting {
    struct desk *d;
    struct sample *s;
    struct page_tokens *to;
    struct seen *raw;
    uint32_t n, cap;
};

static void note(void *arg, uint32_t hash, uint32_t where)
{
    struct noting *n = arg;

    if (n->n == n->cap) {
        n->cap = n->cap ? n->cap * 2 : 4096;
        n->raw = realloc(n->raw, n->cap * sizeof *n->raw);
    }
    n->raw[n->n++] = (struct seen){hash, (float)where, 0};
}

static int by_hash(const void *a, const void *b)
{
    uint32_t x = ((const struct seen *)a)->hash, y = ((const struct seen *)b)->hash;

    return (x > y) - (x < y);
}

/* Sums of what tokens stand for, once a token. */
static void sum_tokens(struct noting *n)
{
    const struct content_page *p = &n->d->page;
    const struct html_tree *t = &n->d->tree;
    const struct sample *s = n->s;
    double *yes = calloc(t->n_nodes + 1, sizeof *yes), *all = calloc(t->n_nodes + 1, sizeof *all);

    /* By node, of the blocks that begin before it. */
    for (uint32_t i = 0, b = 0; i < t->n_nodes; i++) {
        bool begins = b < p->n_blocks && p->block[b].first == i, counts = begins && s->w[b] > 0;
        yes[i + 1] = yes[i] + (counts ? s->w[b] * s->y[b] : 0);
        all[i + 1] = all[i] + (counts ? s->w[b] : 0);
        b += begins;
    }
    for (uint32_t i = 0; i < n->n; i++) {
        uint32_t where = (uint32_t)n->raw[i].yes;
        bool block = where >= t->n_nodes;
        uint32_t from = block ? p->block[where - t->n_nodes].first : where, to = block ? from + 1 : t->node[where].end;
        n->raw[i].yes = (float)(yes[to] - yes[from]);
        n->raw[i].all = (float)(all[to] - all[from]);
    }
    qsort(n->raw, n->n, sizeof *n->raw, by_hash);
    struct page_tokens *to = n->to;
    for (uint32_t i = 0; i < n->n; i++) {
        if (!to->n || to->v[to->n - 1].hash != n->raw[i].hash) {
            if (to->n == to->cap) {
                to->cap = to->cap ? to->cap * 2 : 256;
                to->v = realloc(to->v, to->cap * sizeof *to->v);
            }
            to->v[to->n++] = (struct seen){n->raw[i].hash, 0, 0};
        }
        to->v[to->n - 1].yes += n->raw[i].yes;
        to->v[to->n - 1].all += n->raw[i].all;
    }
    free(yes);
    free(all);
    n->n = 0;
}

void label_all(struct content_trainer *t)
{
    struct noting n = {.d = &t->desk};
    struct content_scratch scratch = {0};
    uint8_t *rules = NULL;

    t->tokens = calloc(t->n, sizeof *t->tokens);
    t->domain_weight = calloc(t->n, sizeof *t->domain_weight);
    t->desk.page.seen = note;
    t->desk.page.arg = &n;
    for (uint32_t i = 0; i < t->n; i++) {
        struct sample *s = &t->sample[i];
        n.s = s;
        n.to = &t->tokens[i];
        desk_read(&t->desk, s, &t->lexicon);
        rules = realloc(rules, t->desk.tree.n_nodes);
        if (content_mark(&t->desk.words, &t->desk.tree, true, t->desk.title, &scratch, rules) < 0)
            exit(3);
        sample_label(s, &t->desk.page, &t->desk.tree, t->desk.skip, rules);
        sum_tokens(&n);
        s->first_row = t->rows;
        t->rows += s->n_blocks;
        int mates = 0;
        for (uint32_t j = 0; j < t->n; j++)
            mates += t->sample[j].domain == s->domain;
        t->domain_weight[i] = 1.0f / (float)mates;
    }
    t->desk.page.seen = NULL;
    content_scratch_free(&scratch);
    free(rules);
    free(n.raw);
    t->y = calloc(t->rows, sizeof *t->y);
    t->w = calloc(t->rows, sizeof *t->w);
    t->used = calloc(t->rows, sizeof *t->used);
    for (uint32_t i = 0; i < t->n; i++) {
        memcpy(t->y + t->sample[i].first_row, t->sample[i].y, t->sample[i].n_blocks * sizeof *t->y);
        memcpy(t->w + t->sample[i].first_row, t->sample[i].w, t->sample[i].n_blocks * sizeof *t->w);
    }
    t->x = calloc(CONTENT_FEATURES, t->rows);
    t->pages = calloc(CONTENT_PAGE_FEATURES, t->n);
}
