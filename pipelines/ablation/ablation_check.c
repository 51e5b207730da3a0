/* What an ablation's file says, held against what it is for: models by the options of train, variants by plans. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/opt_map.h"
#include "pipelines/ablation/ablation_read.h"
#include "pipelines/plan.h"
#include "tokenize/tokenizer.h"
#include "train/config.h"

/* Options of train that are this program's to set. */
static const char *const own_options[] = {"data-path", "train-data-path", "valid-data-path", "test-data-path", "split",
                                          "mock-data",
                                          "seed", "save", "load", "train-iters", "train-samples", "log-file", "eval-iters",
                                          "exit-interval", "exit-duration-in-mins", "keep-last", NULL};

/* ---- models ---- */

/* The options of train, as they will be given, for models of this vocabulary. */
static int check_model(struct ablation *a, const struct node *model, int64_t vocab, struct err *e)
{
    const struct opt none[] = {OPT_END};
    struct train_config c;
    struct opt *opts;
    struct err why;
    int rc;

    train_config_init(&c);
    opts = train_config_options(&c, none);
    rc = opts ? opt_set_map(opts, "model", model, a->file, &a->arena, e) : ablation_no_memory(e);
    c.model.vocab = c.model.vocab ? c.model.vocab : vocab;
    c.mock_data = true;
    a->step_tokens = (c.global_batch ? c.global_batch : c.micro_batch) * (c.model.seq ? c.model.seq : 1);
    a->steps = (a->tokens + a->step_tokens - 1) / a->step_tokens;
    c.train_iters = a->steps;
    if (rc == 0 && c.model.vocab < vocab)
        rc = ablation_wrong(a, model->line, e, "vocab-size %" PRId64 " is less than the %" PRId64 " of a tokenizer",
                            c.model.vocab, vocab);
    if (rc == 0 && train_config_check(&c, &why) < 0)
        rc = ablation_wrong(a, model->line, e, "%s", why.msg);
    if (rc == 0) { /* a preset may have said it */
        a->step_tokens = c.global_batch * c.model.seq;
        a->steps = (a->tokens + a->step_tokens - 1) / a->step_tokens;
    }
    free(opts);
    train_config_free(&c);
    return rc;
}

int ablation_read_model(struct ablation *a, const struct node *model, int line, struct err *e)
{
    if (!model || model->type != NODE_MAP)
        return ablation_wrong(a, model ? model->line : line, e, "model is a map of options of quern train");
    for (const struct node *n = model->child; n; n = n->next)
        if (ablation_is_among(n->key, own_options))
            return ablation_wrong(a, n->line, e, "%.*s is what quern ablate sets itself", (int)n->key.n, n->key.p);
    a->model = model;
    for (int i = 0; i < a->n_variants; i++) {
        struct tokenizer *t;
        int rc = tokenizer_open(&t, a->variant[i].tokenizer, NULL, e);

        if (rc < 0)
            return err_wrap(e, "'%s' line %d", a->file, a->variant[i].line);
        rc = tokenizer_eod(t) < 0 ? ablation_wrong(a, a->variant[i].line, e, "'%s' has no token that ends a document",
                                          a->variant[i].tokenizer)
                                  : check_model(a, model, tokenizer_vocab_size(t), e);
        tokenizer_close(t);
        TRY(rc);
    }
    return 0;
}

/* ---- what is checked by the plan of each variant ---- */

/* A variant by itself as a plan. */
static struct node *plan_of(struct ablation *a, const struct ablation_variant *v, struct err *e)
{
    struct node *root = ablation_node(a, NODE_MAP, v->line, NULL), *end = ablation_node(a, NODE_MAP, v->line, NULL);
    struct node *stages = ablation_node(a, NODE_LIST, v->stages->line, "stages");
    struct node *settings = ablation_node(a, NODE_MAP, v->line, "tokenize");
    int rc = root && stages && end && settings ? 0 : ablation_no_memory(e);

    if (rc == 0 && v->source)
        rc = ablation_add(a, stages, v->source, NULL, e);
    for (const struct node *s = v->stages->child; s && rc == 0; s = s->next)
        rc = ablation_add(a, stages, s, NULL, e);
    if (rc == 0)
        rc = ablation_add_word(a, settings, "tokenizer", v->tokenizer, v->line, e);
    if (rc == 0)
        rc = ablation_add_word(a, settings, "append-eod", "true", v->line, e);
    if (rc == 0)
        rc = ablation_add_word(a, settings, "output-prefix", v->weights ? "tokens/" : "tokens", v->line, e);
    if (rc == 0)
        rc = ablation_add(a, end, settings, NULL, e);
    if (rc == 0)
        rc = ablation_add(a, stages, end, NULL, e);
    if (rc == 0)
        rc = ablation_add(a, root, v->input, "input", e);
    if (rc == 0)
        rc = ablation_add(a, root, stages, NULL, e);
    return rc == 0 ? root : NULL;
}

/* The inputs that a variant reads, and that each has a share if any has. */
static int note_inputs(struct ablation *a, struct ablation_variant *v, const struct plan *p, struct err *e)
{
    v->file = arena_calloc(&a->arena, (size_t)p->n_inputs + 1, sizeof *v->file);
    v->share = arena_calloc(&a->arena, (size_t)p->n_inputs + 1, sizeof *v->share);
    if (!v->file || !v->share)
        return ablation_no_memory(e);
    for (; v->n_files < p->n_inputs; v->n_files++) {
        const char *name = p->input[v->n_files];
        const struct node *w = v->weights ? v->weights->child : NULL;
        struct span copy = arena_dup(&a->arena, span_of(name));

        if (!copy.p)
            return ablation_no_memory(e);
        v->file[v->n_files] = (char *)(uintptr_t)copy.p;
        while (w && fnmatch(w->key.p, name, 0) != 0)
            w = w->next;
        v->share[v->n_files] = w;
        if (v->weights && !w)
            return ablation_wrong(a, v->weights->line, e, "weights has no share for input '%s'", name);
    }
    return 0;
}

static int check_weights(const struct ablation *a, const struct node *w, struct err *e)
{
    double sum = 0;

    if (w && w->type != NODE_MAP)
        return ablation_wrong(a, w->line, e, "weights is a map of patterns of inputs to shares");
    for (const struct node *n = w ? w->child : NULL; n; n = n->next) {
        if ((n->type != NODE_INT && n->type != NODE_NUM) || !(n->num >= 0 && n->num <= 1e9))
            return ablation_wrong(a, n->line, e, "a share is a number from 0");
        sum += n->num;
    }
    return w && !(sum > 0) ? ablation_wrong(a, w->line, e, "no input has a share") : 0;
}

static int describe_stat(struct buf *b, const char *name)
{
    struct stat st = {0};

    (void)stat(name, &st);
    return buf_printf(b, "%s %" PRId64 " %" PRId64 ".%09ld\n", name, (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
                      st.st_mtim.tv_nsec);
}

/* The keys of a variant: of its tokens, by all that the plan says, and of its runs. */
static int make_keys(const struct ablation *a, struct ablation_variant *v, struct span plan, struct err *e)
{
    struct buf b = {0};

    snprintf(v->data, sizeof v->data, "%016" PRIx64, hash_xxh3_64(plan));
    buf_printf(&b, "%s\n%" PRId64 "\n", v->data, a->tokens);
    describe_stat(&b, v->tokenizer);
    if (v->weights)
        node_put_json(&b, v->weights, "");
    node_put_json(&b, a->model, "");
    for (int i = 0; i < a->n_evals; i++) {
        buf_printf(&b, "\n%s\n", a->eval[i].name);
        for (int k = 0; k < a->eval[i].n_from; k++)
            describe_stat(&b, a->eval[i].from[k]);
    }
    snprintf(v->key, sizeof v->key, "%016" PRIx64, hash_xxh3_64(buf_span(&b)));
    int rc = b.failed ? ablation_no_memory(e) : 0;
    buf_free(&b);
    return rc;
}

/* Opens the stages of a settled plan, which checks their settings. */
static int try_stages(struct plan *p, struct err *e)
{
    struct stage *stage;

    TRY(plan_open_stages(p, NULL, &stage, e));
    plan_close_stages(p, stage);
    return 0;
}

int ablation_check_variant(struct ablation *a, struct ablation_variant *v, struct err *e)
{
    const struct node *root = plan_of(a, v, e);
    struct buf text = {0};
    struct plan p;
    int rc;

    if (!root)
        return e->code;
    TRY(check_weights(a, v->weights, e));
    TRY(plan_load_tree(&p, a->file, root, e));
    rc = plan_settle(&p, e);
    if (rc < 0 && !strstr(e->msg, " line "))
        err_wrap(e, "'%s' line %d", a->file, v->line);
    if (rc == 0)
        rc = try_stages(&p, e);
    if (rc == 0)
        rc = plan_describe(&p, &text, e);
    if (rc == 0)
        rc = note_inputs(a, v, &p, e);
    if (rc == 0)
        rc = make_keys(a, v, buf_span(&text), e);
    buf_free(&text);
    plan_free(&p);
    return rc;
}
