/* tokenizer.json of Hugging Face's tokenizers.
 *
 * Everything in the file that bears on ids is either done or refused, with its place in the file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json_shim.h"
#include "base/node.h"
#include "tokenize/format_hf.h"
#include "tokenize/format_rows.h"
#include "tokenize/split_pcre.h"

/* A token as the list has it, and its place there. */
struct listed {
    struct added_token a;
    uint32_t at;
};

/* What was read of the list. */
struct added_list {
    struct buf tokens; /* struct listed */
    struct trie ids;   /* by content */
    int64_t next;      /* the id of the next token that is new */
};

/* The token of the model's vocabulary that is written so, where tokens are characters for bytes; -1: there is none. */
static int written_id(const struct tokenizer *t, const struct node *vocab, struct span text, int64_t *id, struct err *e)
{
    struct buf bytes = {0};
    const struct node *there;
    int raw = format_unmap_bytes(text, &bytes);
    bool own;

    *id = raw < 0 ? -1 : vocab_find(&t->vocab, buf_span(&bytes));
    buf_free(&bytes);
    if (raw < 0)
        return err_set(e, ERR_NOMEM, "out of memory for added tokens");
    if (*id >= 0 && vocab && vocab->type == NODE_ROWS) { /* what is no text's bytes is not the model's own */
        own = !vocab_is_added(&t->vocab, (uint32_t)*id);
        *id = own == !raw ? *id : -1;
    } else if (*id >= 0) { /* of the same bytes, maybe written otherwise */
        *id = (there = node_get(vocab, text.p)) ? there->integer : -1;
    }
    return 0;
}

/* The id of an added token: that of the same text before; else the model's, if the model has just this text; else the next
 * one.  The library goes by that too, and not by the id in the file, which may leave holes. */
static int added_id(const struct tokenizer *t, const struct node *vocab, struct span text, struct added_list *l, int64_t *id,
                    struct err *e)
{
    *id = trie_find(&l->ids, text.p, text.n);
    if (*id == TRIE_NONE && t->rules->model == MODEL_BYTES)
        TRY(written_id(t, vocab, text, id, e));
    else if (*id == TRIE_NONE)
        *id = vocab_find_own(&t->vocab, text);
    if (*id < 0)
        *id = l->next++;
    return 0;
}

/* Whether the model's vocabulary has this text: its id may then be another token's, of the same bytes. */
static bool is_written(const struct tokenizer *t, const struct node *vocab, struct span text)
{
    int64_t id;
    struct err e;

    if (t->rules->model == MODEL_BYTES)
        return written_id(t, vocab, text, &id, &e) == 0 && id >= 0;
    return vocab && vocab->type == NODE_ROWS ? hf_is_map(vocab) && vocab_find_own(&t->vocab, text) >= 0
                                             : node_get(vocab, text.p) != NULL;
}

static int read_token(struct tokenizer *t, const struct node *x, const struct node *vocab, const struct hf_place *at,
                      struct added_list *list, struct err *e)
{
    const struct node *content = node_get(x, "content");
    struct listed l = {.a = {.special = node_bool(x, "special", false),
                             .lstrip = node_bool(x, "lstrip", false),
                             .rstrip = node_bool(x, "rstrip", false),
                             .single_word = node_bool(x, "single_word", false)},
                       .at = (uint32_t)(list->tokens.n / sizeof l)};
    int64_t id = node_int(x, "id", -1);
    struct span old;

    if (!content || content->type != NODE_STR || id < 0 || id > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "%s has no content or no valid id", at->text);
    TRY(hf_only_keys(x, "id|content|single_word|lstrip|rstrip|normalized|special", at, e));
    if (!content->str.n)
        return 0;
    l.a.text = content->str;
    l.a.normalized = node_bool(x, "normalized", !l.a.special);
    TRY(added_id(t, vocab, l.a.text, list, &id, e));
    l.a.id = (uint32_t)id;
    old = vocab_get(&t->vocab, l.a.id);
    if (old.p && !span_eq(old, l.a.text) && !is_written(t, vocab, l.a.text))
        return err_set(e, ERR_FORMAT, "%s, '%.60s', would have the id %u of another token", at->text, content->str.p,
                       l.a.id);
    if (!old.p) {
        TRY(vocab_add(&t->vocab, l.a.id, l.a.text, e));
        vocab_mark_added(&t->vocab, l.a.id);
    }
    TRY(trie_add(&list->ids, l.a.text, (int32_t)l.a.id, e));
    return buf_put(&list->tokens, &l, sizeof l) < 0 ? err_set(e, ERR_NOMEM, "out of memory for added tokens") : 0;
}

static int by_id(const void *x, const void *y)
{
    const struct listed *a = x, *b = y;

    return a->a.id != b->a.id ? (a->a.id < b->a.id ? -1 : 1) : a->at < b->at ? -1 : 1;
}

static int by_turn(const void *x, const void *y)
{
    const struct listed *a = x, *b = y;

    return a->a.special != b->a.special ? (a->a.special ? -1 : 1) : a->at < b->at ? -1 : 1;
}

/* n copies of one token, in the order of the list: what is left of them, as the library has it.  The last says what white
 * space it takes and where it may stand; if one is special, the first such one says where it is found, else each
 * of them. */
static size_t unite(struct listed *v, size_t n)
{
    struct added_token last = v[n - 1].a;
    size_t special = 0, kept = 0;

    while (special < n && !v[special].a.special)
        special++;
    for (size_t i = 0; i < n; i++) {
        if (special < n && i != special)
            continue;
        v[kept] = v[i];
        v[kept].a.lstrip = last.lstrip;
        v[kept].a.rstrip = last.rstrip;
        v[kept++].a.single_word = last.single_word;
    }
    return kept;
}

/* A token as it is found: normalized ones as they look in normalised text. */
static int put_token(struct tokenizer *t, struct added_token a, struct err *e)
{
    struct step_scratch w = {0};
    struct buf out = {0};
    bool lost;
    int rc = a.normalized ? steps_normalize(&t->rules->normal, &w, a.text, &out, &lost, e) : 0;

    if (rc == 0 && a.normalized && !out.n)
        rc = err_set(e, ERR_UNSUPPORTED, "the added token '%.*s', of which normalisation leaves nothing, is unknown here",
                     a.text.n > 60 ? 60 : (int)a.text.n, a.text.p);
    if (a.normalized)
        a.text = buf_span(&out);
    if (rc == 0)
        rc = added_add(&t->added, &a, e);
    buf_free(&out);
    step_scratch_free(&w);
    return rc;
}

static int read_added(struct tokenizer *t, const struct node *list, const struct node *vocab, struct err *e)
{
    struct hf_place root = hf_place("the file");
    struct added_list all = {.next = vocab ? (int64_t)vocab->count : 0};
    struct listed *v;
    size_t i = 0, n, kept = 0, same;
    int rc = 0;

    for (const struct node *x = list ? list->child : NULL; x && rc == 0; x = x->next, i++) {
        struct hf_place at = hf_item(&root, "added_tokens", i);
        rc = read_token(t, x, vocab, &at, &all, e);
    }
    v = (struct listed *)(void *)all.tokens.p;
    n = all.tokens.n / sizeof *v;
    if (n)
        qsort(v, n, sizeof *v, by_id);
    for (i = 0; i < n; i += same) {
        for (same = 1; i + same < n && v[i + same].a.id == v[i].a.id;)
            same++;
        memmove(v + kept, v + i, same * sizeof *v);
        kept += unite(v + kept, same);
    }
    if (kept)
        qsort(v, kept, sizeof *v, by_turn);
    for (i = 0; i < kept && rc == 0; i++)
        rc = put_token(t, v[i].a, e);
    buf_free(&all.tokens);
    trie_free(&all.ids);
    return rc;
}

static bool has_step(const struct steps *s, enum step_kind kind)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == kind)
            return true;
    return false;
}

/* Bytes cut as they are, after NFC at most; once they are mapped they stay so. */
static bool is_plain(const struct rules *r)
{
    size_t mapped = 0;

    for (size_t i = 0; i < r->normal.n; i++)
        if (r->normal.v[i].kind != STEP_NFC)
            return false;
    for (size_t i = 0; i < r->cut.n; i++)
        if (r->cut.v[i].kind == STEP_BYTE_LEVEL)
            mapped += 1 + r->cut.v[i].prefix_space;
    return r->model == MODEL_BYTES && mapped == 1;
}

/* One pattern of those: no steps are needed. */
static bool is_simple(const struct rules *r)
{
    const struct step *x = r->cut.v;

    if (r->cut.n > 2 || r->cut.v[r->cut.n - 1].kind != STEP_BYTE_LEVEL ||
        (x[0].split.kind == SPLIT_PCRE && split_pcre_may_be_empty(x[0].split.pcre)))
        return false;
    return r->cut.n == 1 || (!x[1].regex && x[0].kind == STEP_SPLIT && x[0].behavior == BEHAVIOR_ISOLATED && !x[0].invert &&
                             x[0].is_regex);
}

/* A step that isolates what it finds, as one of a table's. */
static bool table_step(const struct step *x, struct split_step *s)
{
    bool rows = x->behavior == BEHAVIOR_CONTIGUOUS;

    *s = (struct split_step){.kind = x->kind == STEP_DIGITS        ? SPLIT_STEP_NUMBERS
                                     : x->kind == STEP_PUNCTUATION ? SPLIT_STEP_PUNCTUATION
                                                                   : SPLIT_STEP_EXPRESSION,
                             .rows = rows};
    if (s->kind != SPLIT_STEP_EXPRESSION)
        return rows || x->behavior == BEHAVIOR_ISOLATED;
    s->expression = x->is_regex ? split_pattern(&x->split) : NULL;
    s->oniguruma = x->split.oniguruma; /* known patterns are Rust's */
    return x->is_regex && x->behavior == BEHAVIOR_ISOLATED && (x->kind == STEP_SPLIT || x->kind == STEP_BYTE_LEVEL);
}

/* The steps as one table: 1; 0: they are more than that. */
static int make_table(struct tokenizer *t, const struct rules *r, struct err *e)
{
    enum { MOST = 16 };
    struct split_step steps[MOST];
    size_t n = 0, chars = 0;

    for (size_t i = 0; i < r->cut.n; i++) {
        const struct step *x = &r->cut.v[i];
        bool passes = x->kind == STEP_BYTE_LEVEL && !x->regex; /* cuts nothing */
        if (!passes && (n == MOST || !table_step(x, &steps[n++])))
            return 0;
        if (x->kind == STEP_BYTE_LEVEL) /* what follows sees bytes */
            chars = n;
    }
    return chars ? split_to_table(&t->split, steps, chars, n, e) : 0;
}

/* A Split at what the normalizer has left nothing of finds nothing, as Gemma's at spaces. */
static void drop_idle_split(struct rules *r)
{
    const struct step *last = r->normal.n ? &r->normal.v[r->normal.n - 1] : NULL, *first = r->cut.v;

    if (!last || !r->cut.n || last->kind != STEP_REPLACE || last->is_regex || last->text.n != 1 ||
        memchr(last->content.p, *last->text.p, last->content.n))
        return;
    if (first->kind != STEP_SPLIT || first->is_regex || first->invert || !span_eq(first->text, last->text))
        return;
    steps_drop_first(&r->cut);
}

static int simplify(struct tokenizer *t, const char *pattern, struct err *e)
{
    struct rules *r = t->rules;
    bool plain = is_plain(r), simple = plain && is_simple(r);
    int rc;

    if (pattern && !simple)
        return err_set(e, ERR_ARG, "this tokenizer has no one pattern to replace by '%s'", pattern);
    if (!plain)
        return 0;
    if (!simple && (rc = make_table(t, r, e)) <= 0)
        return rc;
    t->nfc = r->normal.n > 0;
    if (pattern) {
        TRY(split_find(&t->split, pattern, e));
    } else if (simple && r->cut.n == 1 && !r->cut.v[0].regex) {
        TRY(split_find(&t->split, "none", e));
    } else if (simple) {
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
    if (!r->decode.n && !hf_is_null(node_get(root, "decoder")) && !steps_add(&r->decode, STEP_FUSE))
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer"); /* a sequence of none joins, as Fuse does */
    t->added_mapped = r->decode.n > 0;
    bytes = has_step(&r->cut, STEP_BYTE_LEVEL) && !has_step(&r->normal, STEP_BYTE_LEVEL) &&
            (r->decode.n == 0 || (r->decode.n == 1 && r->decode.v[0].kind == STEP_BYTE_LEVEL));
    TRY(hf_read_model(t, node_get(root, "model"), bytes, e));
    if (r->normal.n)
        TRY(normal_ready(e));
    TRY(read_added(t, node_get(root, "added_tokens"), node_get(node_get(root, "model"), "vocab"), e));
    drop_idle_split(r);
    return simplify(t, pattern, e);
}

/* s: large lists are rows.  NULL: everything is a tree. */
static int read_file(struct tokenizer *t, struct json_scanner *s, struct span json, const char *pattern, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = s ? node_parse_json_rows(&a, s, json, "model", &root, e) : node_parse_json(&a, json, &root, e);

    if (rc == 0 && format_is_tekken(root)) {
        rc = format_read_tekken(t, root, pattern, e);
        arena_free(&a);
        return rc;
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
    return rc;
}

int format_read_huggingface(struct tokenizer *t, const char *name, struct span json, const char *pattern,
                            struct err *e)
{
    struct json_scanner *s = json_scanner_new();
    int rc = s ? read_file(t, s, json, pattern, e) : err_set(e, ERR_NOMEM, "out of memory for a tokenizer");

    json_scanner_free(s);
    if (rc < 0 && rc != ERR_NOMEM && !t->lacks_token) { /* unusual in the rows, or wrong, which the tree tells */
        tokenizer_clear(t);
        rc = read_file(t, NULL, json, pattern, e);
    }
    return rc < 0 ? err_wrap(e, "'%s'", name) : 0;
}
