/* What an ablation found, for a terminal and for programs. */
#include "pipelines/ablation/ablation_put.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "curate/report/text_table.h"
#include "pipelines/nodes.h"

/* ---- accounts ---- */

static bool goes_through(const struct ablation_variant *v, const char *branch)
{
    for (int i = 0; i < v->n_branches; i++)
        if (strcmp(v->branch[i], branch ? branch : "") == 0)
            return true;
    return false;
}

/* The stages of the statistics that a variant goes through, but for what sends documents to branches. */
static int read_account(struct ablation_finding *f, int variant, const struct node *stages, struct err *e)
{
    struct ablation_account *x = &f->account[variant];

    x->stage = arena_calloc(&f->arena, (size_t)stages->count + 1, sizeof *x->stage);
    if (!x->stage)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (const struct node *s = stages->child; s; s = s->next)
        if (goes_through(&f->a->variant[variant], node_str(s, "branch")) &&
            !span_is(span_of(node_str(s, "stage")), node_router.name))
            x->stage[x->n++] = s;
    if (x->n) {
        x->docs_in = (uint64_t)node_int(x->stage[0], "docs_in", 0);
        x->bytes_in = (uint64_t)node_int(x->stage[0], "bytes_in", 0);
        x->docs_out = (uint64_t)node_int(x->stage[x->n - 1], "docs_out", 0);
        x->bytes_out = (uint64_t)node_int(x->stage[x->n - 1], "bytes_out", 0);
    }
    return 0;
}

static int read_accounts(struct ablation_finding *f, int group, struct err *e)
{
    char folder[4096], path[4200];
    struct node *root;

    ablation_group_path(f->a, group, folder);
    snprintf(path, sizeof path, "%s/stats.json", folder);
    if (!f->r->data[f->a->group[group].first].done)
        return 0;
    TRY(node_load_json(&f->arena, path, &root, e));
    for (int v = 0; v < f->a->n_variants; v++)
        if (f->a->variant[v].group == group && node_get(root, "stages"))
            TRY(read_account(f, v, node_get(root, "stages"), e));
    return 0;
}

int ablation_find(struct ablation_finding *f, const struct ablation *a, const struct ablation_result *r, bool halving,
                  struct err *e)
{
    struct rank_scores x = ablation_scores(r, a, a->ranked);

    *f = (struct ablation_finding){.a = a, .r = r, .halving = halving};
    x.halving = halving;
    for (int g = 0; g < a->n_groups; g++)
        TRY(read_accounts(f, g, e));
    return rank_variants(&f->ranking, &x, r->upto, a->false_decisions, e);
}

void ablation_finding_free(struct ablation_finding *f)
{
    ranking_free(&f->ranking);
    arena_free(&f->arena);
}

/* ---- a table ---- */

double ablation_epochs(const struct ablation_finding *f, int v)
{
    uint64_t tokens = f->r->data[v].tokens;

    return tokens ? (double)(f->a->steps * f->a->step_tokens) / (double)tokens : NAN;
}

double ablation_seconds(const struct ablation_finding *f, int v)
{
    double sum = 0;

    for (int s = 0; s < f->a->seeds; s++)
        sum += f->r->seconds[v * f->a->seeds + s];
    return sum;
}

const char *ablation_verdict(const struct ranked_pair *p)
{
    return p->decided == 0 ? "not decided" : p->decided > 0 ? "worse" : "better";
}

static int add_row(struct text_table *t, const struct ablation_finding *f, int place)
{
    int v = f->ranking.order[place];
    const struct rank_interval *s = &f->ranking.score[v];
    const struct ranked_pair *p = place ? &f->ranking.pair[place - 1] : NULL;

    TRY(text_table_add(t, span_of(f->a->variant[v].name)));
    TRY(text_table_add_int(t, (uint64_t)s->n));
    TRY(text_table_add_as(t, "%.4f", s->mean));
    TRY(text_table_add_as(t, "%.4f", s->half));
    TRY(text_table_add_as(t, "%+.4f", !p ? NAN : ablation_is_loss(f->r->metric[f->a->ranked]) ? p->gain.mean : -p->gain.mean));
    TRY(text_table_add_as(t, "%.4f", p ? p->gain.half : NAN));
    TRY(text_table_add(t, span_of(p ? ablation_verdict(p) : "first")));
    TRY(text_table_add_int(t, f->account[v].docs_out));
    TRY(text_table_add_int(t, f->r->data[v].tokens));
    TRY(text_table_add_as(t, "%.2f", ablation_epochs(f, v)));
    return text_table_add_as(t, "%.1f", ablation_seconds(f, v));
}

/* The other evaluations, a column each: mean and half of the interval. */
static int put_others(const struct ablation_finding *f, struct buf *b)
{
    const struct ablation *a = f->a;
    int last = a->n_evals < 15 ? a->n_evals : 15;
    struct text_table t = {.columns = last + 1 - (a->ranked < last)};
    int rc;

    if (t.columns < 2)
        return 0;
    rc = text_table_add(&t, span_of("variant"));
    for (int i = 0; i < last && rc == 0; i++)
        rc = i == a->ranked ? 0 : text_table_add(&t, span_of(a->eval[i].name));
    for (int k = 0; k < a->n_variants && rc == 0; k++) {
        int v = f->ranking.order[k];

        rc = text_table_add(&t, span_of(a->variant[v].name));
        for (int i = 0; i < last && rc == 0; i++) {
            struct rank_scores x = ablation_scores(f->r, a, i);
            struct rank_interval s = interval_of(x.score + v * x.stride, x.seeds, a->false_decisions);
            char cell[64];

            snprintf(cell, sizeof cell, isfinite(s.half) ? "%.4f +- %.4f" : isfinite(s.mean) ? "%.4f" : "-", s.mean, s.half);
            rc = i == a->ranked ? 0 : text_table_add(&t, span_of(cell));
        }
    }
    if (rc == 0)
        rc = buf_puts(b, "\n");
    if (rc == 0)
        rc = text_table_put(&t, 0, b);
    text_table_free(&t);
    return rc;
}

/* How sure the ranking is: what is decided, and which pairs are not. */
static int put_sureness(const struct ablation_finding *f, struct buf *b)
{
    const struct ranking *r = &f->ranking;
    int decided = 0;

    for (int i = 0; i < r->n_pairs; i++)
        decided += r->pair[i].decided != 0;
    TRY(buf_printf(b, "\n%d of %d pairs are decided; that any of them is decided wrongly has a probability of at most %g\n",
                   decided, r->n_pairs, r->alpha));
    for (int i = 0; i < r->n_pairs; i++)
        if (!r->pair[i].decided)
            TRY(buf_printf(b, "not decided: %s, %s\n", f->a->variant[r->pair[i].a].name, f->a->variant[r->pair[i].b].name));
    for (int v = 0; f->halving && v < r->variants; v++)
        if (f->r->upto[v] < f->r->seeds)
            TRY(buf_printf(b, "stopped after %d seeds: %s\n", f->r->upto[v], f->a->variant[v].name));
    if (f->r->seeds < f->a->seeds)
        TRY(buf_printf(b, "the budget had room for %d of %" PRId64 " seeds\n", f->r->seeds, f->a->seeds));
    if (f->r->finished)
        return 0;
    return buf_puts(b, f->r->spent ? "the budget is spent: some runs were not done\n" : "some runs are not done yet\n");
}

int ablation_put_table(const struct ablation_finding *f, struct buf *b)
{
    static const char *const heads[] = {"variant", "seeds", "mean", "+-", "to first", "+-", "", "documents", "tokens",
                                        "epochs", "cpu s"};
    struct text_table t = {.columns = sizeof heads / sizeof *heads};
    int rc = 0;

    TRY(buf_printf(b, "%s (%s), %" PRId64 " tokens a run\n", f->a->eval[f->a->ranked].name, f->r->metric[f->a->ranked],
                   f->a->steps * f->a->step_tokens));
    for (int i = 0; i < t.columns && rc == 0; i++)
        rc = text_table_add(&t, span_of(heads[i]));
    for (int i = 0; i < f->a->n_variants && rc == 0; i++)
        rc = add_row(&t, f, i);
    if (rc == 0)
        rc = text_table_put(&t, 0, b);
    text_table_free(&t);
    TRY(rc);
    TRY(put_others(f, b));
    return put_sureness(f, b);
}

/* ---- JSON ---- */

static int put_interval(struct buf *b, struct rank_interval s)
{
    TRY(json_put_real(b, "mean", s.mean));
    TRY(json_put_real(b, "low", s.mean - s.half));
    return json_put_real(b, "high", s.mean + s.half);
}

/* {"books":{"mean":..,"low":..,"high":..,"scores":[..]}} of a variant. */
static int put_scores(const struct ablation_finding *f, int v, struct buf *b)
{
    TRY(json_put_key(b, "evaluations"));
    TRY(buf_putc(b, '{'));
    for (int i = 0; i < f->a->n_evals; i++) {
        struct rank_scores x = ablation_scores(f->r, f->a, i);
        struct rank_interval s = interval_of(x.score + v * x.stride, x.seeds, f->a->false_decisions);

        TRY(json_put_key(b, f->a->eval[i].name));
        TRY(buf_putc(b, '{'));
        TRY(json_put_key(b, "metric"));
        TRY(json_put_name(b, f->r->metric[i]));
        TRY(put_interval(b, s));
        TRY(json_put_key(b, "scores"));
        TRY(buf_putc(b, '['));
        for (int k = 0; k < x.seeds; k++) {
            TRY(k ? buf_putc(b, ',') : 0);
            TRY(json_put_num(b, x.score[v * x.stride + k]));
        }
        TRY(buf_puts(b, "]}"));
    }
    return buf_putc(b, '}');
}

/* "weights":{"a.jsonl":0.5,..}, for quern ablate fit; nothing of a variant that has none. */
static int put_weights(const struct node *weights, struct buf *b)
{
    if (!weights)
        return 0;
    TRY(json_put_key(b, "weights"));
    TRY(buf_putc(b, '{'));
    for (const struct node *n = weights->child; n; n = n->next) {
        TRY(json_put_real(b, n->key.p, n->num));
    }
    return buf_putc(b, '}');
}

static int put_variant(const struct ablation_finding *f, int place, struct buf *b)
{
    int v = f->ranking.order[place];
    const struct ablation_account *x = &f->account[v];

    TRY(buf_puts(b, place ? ",\n{" : "\n{"));
    TRY(json_put_key(b, "variant"));
    TRY(json_put_name(b, f->a->variant[v].name));
    TRY(json_put_count(b, "place", (uint64_t)place + 1));
    TRY(json_put_count(b, "seeds", (uint64_t)f->ranking.score[v].n));
    TRY(put_weights(f->a->variant[v].weights, b));
    TRY(put_scores(f, v, b));
    TRY(json_put_count(b, "docs_in", x->docs_in));
    TRY(json_put_count(b, "docs_out", x->docs_out));
    TRY(json_put_count(b, "bytes_in", x->bytes_in));
    TRY(json_put_count(b, "bytes_out", x->bytes_out));
    TRY(json_put_count(b, "tokens", f->r->data[v].tokens));
    TRY(json_put_real(b, "epochs", ablation_epochs(f, v)));
    TRY(json_put_real(b, "cpu_seconds", ablation_seconds(f, v)));
    TRY(json_put_key(b, "stages"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < x->n; i++) {
        TRY(i ? buf_puts(b, ",\n ") : 0);
        TRY(node_put_json(b, x->stage[i], " "));
    }
    return buf_puts(b, "]}");
}

static int put_pair(const struct ablation_finding *f, const struct ranked_pair *p, struct buf *b)
{
    TRY(buf_puts(b, "{"));
    TRY(json_put_key(b, "a"));
    TRY(json_put_name(b, f->a->variant[p->a].name));
    TRY(json_put_key(b, "b"));
    TRY(json_put_name(b, f->a->variant[p->b].name));
    TRY(json_put_count(b, "seeds", (uint64_t)p->gain.n));
    TRY(json_put_key(b, "gain"));
    TRY(buf_putc(b, '{'));
    TRY(put_interval(b, p->gain));
    TRY(buf_putc(b, '}'));
    TRY(json_put_key(b, "better"));
    TRY(p->decided ? json_put_name(b, f->a->variant[p->decided > 0 ? p->a : p->b].name) : buf_puts(b, "null"));
    return buf_putc(b, '}');
}

int ablation_put_json(const struct ablation_finding *f, struct buf *b)
{
    TRY(buf_putc(b, '{'));
    TRY(json_put_key(b, "ranked_by"));
    TRY(json_put_name(b, f->a->eval[f->a->ranked].name));
    TRY(json_put_count(b, "tokens_a_run", (uint64_t)(f->a->steps * f->a->step_tokens)));
    TRY(json_put_count(b, "seeds", (uint64_t)f->r->seeds));
    TRY(json_put_real(b, "false_decisions", f->ranking.alpha));
    TRY(json_put_count(b, "comparisons", (uint64_t)f->ranking.comparisons));
    TRY(json_put_key(b, "finished"));
    TRY(buf_puts(b, f->r->finished ? "true" : "false"));
    TRY(json_put_real(b, "curate_cpu_seconds", ablation_curated(f->r, f->a)));
    TRY(json_put_real(b, "cpu_seconds", ablation_spent(f->r, f->a)));
    TRY(json_put_key(b, "variants"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < f->a->n_variants; i++)
        TRY(put_variant(f, i, b));
    TRY(buf_puts(b, "]"));
    TRY(json_put_key(b, "pairs"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < f->ranking.n_pairs; i++) {
        TRY(buf_puts(b, i ? ",\n" : "\n"));
        TRY(put_pair(f, &f->ranking.pair[i], b));
    }
    return buf_puts(b, "]}\n");
}
