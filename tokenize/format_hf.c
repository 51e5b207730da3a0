/* tokenizer.json of Hugging Face's tokenizers: byte-level BPE.
 *
 * Everything in the file that bears on ids is either done or refused by name. */
#include <stdio.h>

#include "base/node.h"
#include "tokenize/model.h"

static bool is_null(const struct node *n)
{
    return !n || n->type == NODE_NULL;
}

static const char *type_of(const struct node *n)
{
    const char *s = node_str(n, "type");
    return s ? s : "";
}

/* Fails on a key of map that is none of the words in names ("a|b|c"). */
static int only_keys(const struct node *map, const char *names, const char *where, struct err *e)
{
    for (const struct node *x = map->child; x; x = x->next) {
        const char *w = names;
        bool found = false;
        while (*w && !found) {
            size_t n = strcspn(w, "|");
            found = x->key.n == n && memcmp(x->key.p, w, n) == 0;
            w += n + (w[n] == '|');
        }
        if (!found)
            return err_set(e, ERR_UNSUPPORTED, "%s has '%.*s', which is unknown here", where,
                           x->key.n > 60 ? 60 : (int)x->key.n, x->key.p);
    }
    return 0;
}

static int read_normalizer(struct tokenizer *t, const struct node *n, struct err *e)
{
    if (is_null(n))
        return 0;
    if (strcmp(type_of(n), "NFC") == 0) {
        t->nfc = true;
        return 0;
    }
    if (strcmp(type_of(n), "Sequence") == 0) {
        const struct node *list = node_get(n, "normalizers");
        for (const struct node *x = list ? list->child : NULL; x; x = x->next)
            TRY(read_normalizer(t, x, e));
        return 0;
    }
    return err_set(e, ERR_UNSUPPORTED, "normalizer '%s' is unknown here", type_of(n));
}

/* ByteLevel: *regex says whether it cuts by GPT-2's pattern. */
static int read_byte_level(const struct node *n, bool *regex, struct err *e)
{
    TRY(only_keys(n, "type|add_prefix_space|trim_offsets|use_regex", "pre_tokenizer ByteLevel", e));
    if (node_bool(n, "add_prefix_space", true))
        return err_set(e, ERR_UNSUPPORTED, "pre_tokenizer ByteLevel with add_prefix_space is unknown here");
    *regex = node_bool(n, "use_regex", true);
    return 0;
}

static const char *read_split(const struct node *n, struct err *e)
{
    const char *behavior = node_str(n, "behavior"), *regex = node_str(node_get(n, "pattern"), "Regex");

    if (only_keys(n, "type|pattern|behavior|invert", "pre_tokenizer Split", e) < 0)
        return NULL;
    if (!regex)
        err_set(e, ERR_UNSUPPORTED, "pre_tokenizer Split without a Regex is unknown here");
    else if (!behavior || strcmp(behavior, "Isolated") != 0 || node_bool(n, "invert", false))
        err_set(e, ERR_UNSUPPORTED, "pre_tokenizer Split with behavior '%s'%s is unknown here",
                behavior ? behavior : "", node_bool(n, "invert", false) ? ", inverted," : "");
    else
        return regex;
    return NULL;
}

/* ByteLevel alone, or one Split and then ByteLevel without its own pattern. */
static int read_pre_tokenizer(struct tokenizer *t, const struct node *n, const char *pattern, struct err *e)
{
    const struct node *list = n, *x;
    const char *found = NULL;
    bool byte_level = false, regex = false;

    if (is_null(n))
        return err_set(e, ERR_UNSUPPORTED, "no pre_tokenizer: only ByteLevel is known here");
    if (strcmp(type_of(n), "Sequence") == 0)
        list = node_get(n, "pretokenizers");
    for (x = list == n ? n : list ? list->child : NULL; x; x = list == n ? NULL : x->next) {
        if (byte_level || (found && strcmp(type_of(x), "Split") == 0))
            return err_set(e, ERR_UNSUPPORTED, "a pre_tokenizer Sequence with '%s' there is unknown here",
                           type_of(x));
        if (strcmp(type_of(x), "ByteLevel") == 0) {
            TRY(read_byte_level(x, &regex, e));
            byte_level = true;
        } else if (strcmp(type_of(x), "Split") == 0) {
            if (!(found = read_split(x, e)))
                return e ? e->code : ERR_UNSUPPORTED;
        } else {
            return err_set(e, ERR_UNSUPPORTED, "pre_tokenizer '%s' is unknown here", type_of(x));
        }
    }
    if (!byte_level || (found && regex))
        return err_set(e, ERR_UNSUPPORTED, "only pre_tokenizer ByteLevel, alone or behind one Split, is known here");
    return split_find(&t->split, pattern ? pattern : found ? found : regex ? "gpt2" : "none", e);
}

/* The two tokens of a merge, "a b" or ["a", "b"], mapped to bytes in parts; *cut is
 * where the second begins. */
static int read_merge(const struct node *x, struct buf *parts, size_t *cut)
{
    struct span left, right;

    buf_clear(parts);
    if (x->type == NODE_LIST && x->count == 2 && x->child->type == NODE_STR && x->child->next->type == NODE_STR) {
        left = x->child->str;
        right = x->child->next->str;
    } else {
        const char *gap = x->type == NODE_STR ? memchr(x->str.p, ' ', x->str.n) : NULL;
        if (!gap)
            return ERR_FORMAT;
        left = (struct span){x->str.p, (size_t)(gap - x->str.p)};
        right = (struct span){gap + 1, x->str.n - left.n - 1};
        if (memchr(right.p, ' ', right.n))
            return ERR_FORMAT;
    }
    if (!left.n || !right.n)
        return ERR_FORMAT;
    TRY(format_unmap_bytes(left, parts));
    *cut = parts->n;
    return format_unmap_bytes(right, parts);
}

static int read_merges(struct tokenizer *t, const struct node *list, struct buf *scratch, struct err *e)
{
    struct buf parts = {0};
    uint32_t rank = 0;
    int rc = 0;

    if (!list || list->type != NODE_LIST)
        return err_set(e, ERR_FORMAT, "model.merges is no list");
    for (const struct node *x = list->child; x && rc == 0; x = x->next, rank++) {
        size_t cut = 0;
        rc = read_merge(x, &parts, &cut);
        if (rc < 0)
            err_set(e, rc, rc == ERR_FORMAT ? "merge %u is not two tokens" : "out of memory for merge %u", rank);
        else
            rc = format_add_merge(t, (struct span){parts.p, cut}, (struct span){parts.p + cut, parts.n - cut}, rank,
                                  scratch, e);
    }
    buf_free(&parts);
    return rc;
}

static int read_model(struct tokenizer *t, const struct node *m, struct err *e)
{
    struct buf scratch = {0};
    const char *type = node_str(m, "type"), *affix;
    int rc;

    if (is_null(m))
        return err_set(e, ERR_FORMAT, "there is no model");
    if (strcmp(type ? type : "BPE", "BPE") != 0)
        return err_set(e, ERR_UNSUPPORTED, "model '%s' is unknown here: only BPE", type);
    TRY(only_keys(m, "type|dropout|unk_token|continuing_subword_prefix|end_of_word_suffix|fuse_unk|byte_fallback|"
                     "ignore_merges|vocab|merges", "the model", e));
    if (node_num(m, "dropout", 0) != 0)
        return err_set(e, ERR_UNSUPPORTED, "a model with dropout is unknown here");
    if (node_bool(m, "byte_fallback", false))
        return err_set(e, ERR_UNSUPPORTED, "a model with byte_fallback is unknown here");
    if ((affix = node_str(m, "continuing_subword_prefix")) && *affix)
        return err_set(e, ERR_UNSUPPORTED, "a model with continuing_subword_prefix is unknown here");
    if ((affix = node_str(m, "end_of_word_suffix")) && *affix)
        return err_set(e, ERR_UNSUPPORTED, "a model with end_of_word_suffix is unknown here");
    t->whole_first = node_bool(m, "ignore_merges", false);
    rc = format_read_vocab(t, node_get(m, "vocab"), e);
    if (rc == 0)
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
    if (rc == 0)
        rc = read_merges(t, node_get(m, "merges"), &scratch, e);
    buf_free(&scratch);
    return rc;
}

/* The id of an added token: the model's, if the model has just this text. */
static int64_t added_id(const struct tokenizer *t, const struct node *vocab, struct span text, int64_t id)
{
    struct buf bytes = {0};
    const struct node *there = NULL;

    if (format_unmap_bytes(text, &bytes) < 0 || vocab_find(&t->vocab, buf_span(&bytes)) >= 0)
        there = node_get(vocab, text.p);
    buf_free(&bytes);
    return there ? there->integer : id;
}

static int read_added(struct tokenizer *t, const struct node *list, const struct node *vocab, struct err *e)
{
    for (const struct node *x = list ? list->child : NULL; x; x = x->next) {
        const struct node *content = node_get(x, "content");
        struct added_token a = {.special = node_bool(x, "special", false),
                                .lstrip = node_bool(x, "lstrip", false),
                                .rstrip = node_bool(x, "rstrip", false)};
        int64_t id = node_int(x, "id", -1);
        struct span old;

        if (!content || content->type != NODE_STR || !content->str.n || id < 0 || id > VOCAB_MAX_ID)
            return err_set(e, ERR_FORMAT, "an added token has no content or no valid id");
        TRY(only_keys(x, "id|content|single_word|lstrip|rstrip|normalized|special", "an added token", e));
        if (node_bool(x, "single_word", false))
            return err_set(e, ERR_UNSUPPORTED, "added token '%.60s' with single_word is unknown here",
                           content->str.p);
        a.text = content->str;
        a.normalized = node_bool(x, "normalized", !a.special);
        a.id = (uint32_t)added_id(t, vocab, a.text, id);
        old = vocab_get(&t->vocab, a.id);
        if (old.p && a.id == id && !span_eq(old, a.text) && !node_get(vocab, content->str.p))
            return err_set(e, ERR_FORMAT, "added token '%.60s' has the id %u of another token", content->str.p, a.id);
        TRY(format_add_token(t, &a, e));
    }
    return 0;
}

static int read_root(struct tokenizer *t, const struct node *root, const char *pattern, struct err *e)
{
    const struct node *decoder = node_get(root, "decoder");

    if (root->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "it is no JSON object");
    TRY(only_keys(root, "version|truncation|padding|added_tokens|normalizer|pre_tokenizer|post_processor|decoder|"
                        "model", "the file", e));
    if (!is_null(node_get(root, "truncation")) || !is_null(node_get(root, "padding")))
        return err_set(e, ERR_UNSUPPORTED, "truncation and padding are unknown here");
    if (!is_null(decoder) && strcmp(type_of(decoder), "ByteLevel") != 0)
        return err_set(e, ERR_UNSUPPORTED, "decoder '%s' is unknown here", type_of(decoder));
    TRY(read_normalizer(t, node_get(root, "normalizer"), e));
    TRY(read_pre_tokenizer(t, node_get(root, "pre_tokenizer"), pattern, e));
    TRY(read_model(t, node_get(root, "model"), e));
    return read_added(t, node_get(root, "added_tokens"), node_get(node_get(root, "model"), "vocab"), e);
}

int format_read_huggingface(struct tokenizer *t, const char *name, struct span json, const char *pattern,
                            struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_parse_json(&a, json, &root, e);

    t->format = "tokenizer.json (Hugging Face)";
    if (rc == 0)
        rc = read_root(t, root, pattern, e);
    arena_free(&a);
    return rc < 0 ? err_wrap(e, "'%s'", name) : 0;
}
