#include "tokenize/specials.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

/* A special token; one that is there already under this id becomes special. */
static int add(struct tokenizer *t, struct span text, int64_t id, const char *path, struct err *e)
{
    struct added_token x = {.text = text, .special = true};
    struct span there;

    if (id < 0 || id > VOCAB_MAX_ID || !text.n)
        return err_set(e, ERR_FORMAT, "'%s': special token '%.60s' has no valid id", path, text.p);
    x.id = (uint32_t)id;
    there = vocab_get(&t->vocab, x.id);
    if (there.p && !span_eq(there, text))
        return err_set(e, ERR_FORMAT, "'%s': special token '%.60s' would have the id %u of another token", path, text.p, x.id);
    return added_get(&t->added, x.id) ? 0 : format_add_token(t, &x, e);
}

/* The number that all of s is, or -1. */
static int64_t number(struct span s)
{
    int64_t v = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || v > VOCAB_MAX_ID)
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return s.n ? v : -1;
}

static int read_tokens(struct tokenizer *t, const struct node *root, const char *path, struct err *e)
{
    const struct node *decoder = node_get(root, "added_tokens_decoder");

    if (root->type != NODE_MAP || (decoder && decoder->type != NODE_MAP))
        return err_set(e, ERR_FORMAT, "'%s' is no object of tokens and ids", path);
    for (const struct node *x = decoder ? decoder->child : root->child; x; x = x->next) {
        const struct node *content = node_get(x, "content");
        if (decoder && (!content || content->type != NODE_STR))
            return err_set(e, ERR_FORMAT, "'%s': token %.20s has no content", path, x->key.p);
        if (decoder && node_bool(x, "special", true))
            TRY(add(t, content->str, number(x->key), path, e));
        if (!decoder)
            TRY(add(t, x->key, x->type == NODE_INT ? x->integer : -1, path, e));
    }
    return 0;
}

int specials_parse(struct tokenizer *t, const char *name, struct span json, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_parse_json(&a, json, &root, e);

    rc = rc < 0 ? err_wrap(e, "'%s'", name) : read_tokens(t, root, name, e);
    arena_free(&a);
    return rc;
}

int specials_read(struct tokenizer *t, const char *path, struct err *e)
{
    enum { FILE_MAX = 1 << 28 };
    struct buf json = {0};
    int rc;

    if (t->rules || strncmp(t->format, "tokenizer.json", 14) == 0)
        return err_set(e, ERR_ARG, "'%s': a %s has special tokens of its own", path, t->format);
    rc = file_read_all(path, FILE_MAX, &json, e);
    if (rc == 0)
        rc = specials_parse(t, path, buf_span(&json), e);
    buf_free(&json);
    return rc;
}

/* ---- the end of a document ---- */

static void take_eod(struct tokenizer *t, int64_t id, const char *from)
{
    if (id >= 0 && t->eod < 0 && vocab_get(&t->vocab, (uint32_t)id).p) {
        t->eod = id;
        t->eod_from = from;
    }
}

/* Parses FOLDER/NAME into a: 1; 0: it is not there. */
static int load_beside(const char *folder, const char *name, struct arena *a, struct node **root, struct err *e)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);

    if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0)
        return 0;
    TRY(node_load_json(a, path, root, e));
    return 1;
}

/* eos_token is a text, or an object with its content. */
static int from_config(struct tokenizer *t, const char *folder, struct arena *a, struct err *e)
{
    struct node *root;
    const struct node *eos;
    int rc = load_beside(folder, "tokenizer_config.json", a, &root, e);

    if (rc <= 0)
        return rc;
    eos = node_get(root, "eos_token");
    if (eos && eos->type == NODE_MAP)
        eos = node_get(eos, "content");
    if (eos && eos->type == NODE_STR)
        take_eod(t, vocab_find(&t->vocab, eos->str), "eos_token of tokenizer_config.json");
    return 0;
}

/* eos_token_id is an id, or a list of them, of which the first special one is taken. */
static int from_generation(struct tokenizer *t, const char *folder, struct arena *a, struct err *e)
{
    struct node *root;
    const struct node *eos;
    int rc = load_beside(folder, "generation_config.json", a, &root, e);

    if (rc <= 0)
        return rc;
    eos = node_get(root, "eos_token_id");
    for (const struct node *x = eos && eos->type == NODE_LIST ? eos->child : eos; x; x = x == eos ? NULL : x->next) {
        const struct added_token *s = x->type == NODE_INT && x->integer >= 0 && x->integer <= VOCAB_MAX_ID
                                          ? added_get(&t->added, (uint32_t)x->integer) : NULL;
        if (s && s->special)
            take_eod(t, x->integer, "eos_token_id of generation_config.json");
    }
    return 0;
}

/* Its bars are U+FF5C, its blanks U+2581. */
#define DEEPSEEK_END "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"

static void from_names(struct tokenizer *t)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", DEEPSEEK_END, "<eos>", "</s>", "<EOT>", "[EOS]",
                                        "<|eos|>", "<EOS_TOKEN>", "<|im_end|>"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct added_token *s = added_special(&t->added, span_of(names[i]));
        if (s)
            take_eod(t, s->id, "a special token of the file");
    }
}

int specials_find_eod(struct tokenizer *t, const char *folder, const char *asked, struct err *e)
{
    struct arena a = {0};
    int64_t id = asked ? number(span_of(asked)) : -1;
    int rc;

    t->eod = -1;
    t->eod_from = "none";
    if (asked) {
        take_eod(t, id >= 0 ? id : vocab_find(&t->vocab, span_of(asked)), "as asked for");
        return t->eod >= 0 ? 0 : err_set(e, ERR_ARG, "the tokenizer has no token '%s'", asked);
    }
    rc = folder ? from_config(t, folder, &a, e) : 0;
    if (rc == 0 && folder)
        rc = from_generation(t, folder, &a, e);
    if (rc == 0)
        from_names(t);
    arena_free(&a);
    return rc;
}
