/* tokenizer.json of Hugging Face's tokenizers.
 *
 * Everything in the file that bears on ids is either done or refused, with its place in the file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/node.h"
#include "tokenize/format_hf.h"

/* The id of an added token: the model's, if the model has just this text; else that of one added before; else the next
 * one.  The library goes by that too, and not by the id in the file, which may leave holes. */
static int64_t added_id(const struct tokenizer *t, const struct node *vocab, struct span text)
{
    struct buf bytes = {0};
    const struct node *there = NULL;
    int64_t plain = vocab_find(&t->vocab, text), next = t->rules->model_tokens;

    if (t->rules->model == MODEL_BYTES) {
        if (format_unmap_bytes(text, &bytes) < 0 || vocab_find(&t->vocab, buf_span(&bytes)) >= 0)
            there = node_get(vocab, text.p);
        buf_free(&bytes);
        if (there || (plain >= 0 && !vocab_is_added(&t->vocab, (uint32_t)plain)))
            plain = there ? there->integer : -1;
    }
    if (plain >= 0)
        return plain;
    return t->rules->last_added >= next ? t->rules->last_added + 1 : next;
}

/* What a normalized token looks like in normalised text. */
static int normalize_token(const struct tokenizer *t, struct span *text, struct buf *out, struct err *e)
{
    struct step_scratch w = {0};
    bool lost;
    int rc = steps_normalize(&t->rules->normal, &w, *text, out, &lost, e);

    step_scratch_free(&w);
    if (rc == 0 && out->n)
        *text = buf_span(out);
    return rc;
}

static int read_token(struct tokenizer *t, const struct node *x, const struct node *vocab, const struct hf_place *at,
                      struct err *e)
{
    const struct node *content = node_get(x, "content");
    struct added_token a = {.special = node_bool(x, "special", false),
                            .lstrip = node_bool(x, "lstrip", false),
                            .rstrip = node_bool(x, "rstrip", false),
                            .single_word = node_bool(x, "single_word", false)};
    int64_t id = node_int(x, "id", -1);
    struct buf normal = {0};
    struct span old;
    int rc;

    if (!content || content->type != NODE_STR || !content->str.n || id < 0 || id > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "%s has no content or no valid id", at->text);
    TRY(hf_only_keys(x, "id|content|single_word|lstrip|rstrip|normalized|special", at, e));
    a.text = content->str;
    a.normalized = node_bool(x, "normalized", !a.special);
    a.id = (uint32_t)added_id(t, vocab, a.text);
    t->rules->last_added = a.id > t->rules->last_added ? a.id : t->rules->last_added;
    old = vocab_get(&t->vocab, a.id);
    if (old.p && !span_eq(old, a.text) && !node_get(vocab, content->str.p))
        return err_set(e, ERR_FORMAT, "%s, '%.60s', would have the id %u of another token", at->text, content->str.p,
                       a.id);
    if (!old.p) {
        TRY(vocab_add(&t->vocab, a.id, a.text, e));
        vocab_mark_added(&t->vocab, a.id);
    }
    rc = a.normalized ? normalize_token(t, &a.text, &normal, e) : 0;
    if (rc == 0)
        rc = added_add(&t->added, &a, e);
    buf_free(&normal);
    return rc;
}

static int read_added(struct tokenizer *t, const struct node *list, const struct node *vocab, struct err *e)
{
    struct hf_place root = hf_place("the file");
    size_t i = 0;

    t->rules->model_tokens = vocab ? vocab->count : 0;
    t->rules->last_added = -1;
    for (const struct node *x = list ? list->child : NULL; x; x = x->next, i++) {
        struct hf_place at = hf_item(&root, "added_tokens", i);
        TRY(read_token(t, x, vocab, &at, e));
    }
    return 0;
}

static bool has_step(const struct steps *s, enum step_kind kind)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == kind)
            return true;
    return false;
}

/* Bytes, one pattern, NFC at most: no steps are needed. */
static bool is_simple(const struct rules *r)
{
    const struct step *x = r->cut.v;
    size_t n = r->cut.n;

    for (size_t i = 0; i < r->normal.n; i++)
        if (r->normal.v[i].kind != STEP_NFC)
            return false;
    if (r->model != MODEL_BYTES || n < 1 || n > 2 || x[n - 1].kind != STEP_BYTE_LEVEL || x[n - 1].prefix_space)
        return false;
    return n == 1 || (!x[1].regex && x[0].kind == STEP_SPLIT && x[0].behavior == BEHAVIOR_ISOLATED && !x[0].invert &&
                      x[0].is_regex);
}

static int simplify(struct tokenizer *t, const char *pattern, struct err *e)
{
    struct rules *r = t->rules;

    if (!is_simple(r))
        return pattern ? err_set(e, ERR_ARG, "this tokenizer has no one pattern to replace by '%s'", pattern) : 0;
    t->nfc = r->normal.n > 0;
    if (pattern) {
        TRY(split_find(&t->split, pattern, e));
    } else if (r->cut.n == 1 && !r->cut.v[0].regex) {
        TRY(split_find(&t->split, "none", e));
    } else {
        t->split = r->cut.v[0].split;
        memset(&r->cut.v[0].split, 0, sizeof t->split);
    }
    rules_free(r);
    t->rules = NULL;
    return 0;
}

static int read_root(struct tokenizer *t, const struct node *root, const char *pattern, struct err *e)
{
    struct hf_place at = hf_place("normalizer"), top = hf_place("the file");
    struct rules *r = t->rules;
    bool bytes;

    if (root->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "it is no JSON object");
    TRY(hf_only_keys(root, "version|truncation|padding|added_tokens|normalizer|pre_tokenizer|post_processor|decoder|"
                           "model", &top, e));
    if (!hf_is_null(node_get(root, "truncation")) || !hf_is_null(node_get(root, "padding")))
        return err_set(e, ERR_UNSUPPORTED, "truncation and padding are unknown here");
    TRY(hf_read_normalizer(&r->normal, node_get(root, "normalizer"), &at, e));
    at = hf_place("pre_tokenizer");
    TRY(hf_read_pre_tokenizer(&r->cut, node_get(root, "pre_tokenizer"), &at, e));
    at = hf_place("decoder");
    TRY(hf_read_decoder(&r->decode, node_get(root, "decoder"), &at, e));
    bytes = has_step(&r->cut, STEP_BYTE_LEVEL) && !has_step(&r->normal, STEP_BYTE_LEVEL) &&
            (r->decode.n == 0 || (r->decode.n == 1 && r->decode.v[0].kind == STEP_BYTE_LEVEL));
    TRY(hf_read_model(t, node_get(root, "model"), bytes, e));
    if (r->normal.n)
        TRY(normal_ready(e));
    TRY(read_added(t, node_get(root, "added_tokens"), node_get(node_get(root, "model"), "vocab"), e));
    return simplify(t, pattern, e);
}

int format_read_huggingface(struct tokenizer *t, const char *name, struct span json, const char *pattern,
                            struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_parse_json(&a, json, &root, e);

    if (rc == 0 && format_is_tekken(root)) {
        rc = format_read_tekken(t, root, pattern, e);
        arena_free(&a);
        return rc < 0 ? err_wrap(e, "'%s'", name) : 0;
    }
    t->format = "tokenizer.json (Hugging Face)";
    t->rules = calloc(1, sizeof *t->rules);
    if (rc == 0 && !t->rules)
        rc = err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    if (rc == 0)
        rc = read_root(t, root, pattern, e);
    if (rc == 0 && t->rules)
        t->rules->hash = hash_xxh3_64(json);
    arena_free(&a);
    return rc < 0 ? err_wrap(e, "'%s'", name) : 0;
}
