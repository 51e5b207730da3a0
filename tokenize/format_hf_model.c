/* Models of a tokenizer.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenize/format_hf.h"

static const struct hf_place model = {"model"};

/* The tokens as they are written. */
static int read_plain_vocab(struct tokenizer *t, const struct node *map, struct err *e)
{
    if (!map || map->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "model.vocab is no object");
    for (const struct node *x = map->child; x; x = x->next) {
        if (x->type != NODE_INT || x->integer < 0 || x->integer > VOCAB_MAX_ID)
            return err_set(e, ERR_FORMAT, "token '%.100s' has no valid id", x->key.p);
        TRY(vocab_add(&t->vocab, (uint32_t)x->integer, x->key, e));
    }
    return 0;
}

/* The id of the token named at a key; -1 if nothing is named. */
static int read_unknown(const struct tokenizer *t, const struct node *m, int64_t *id, struct err *e)
{
    const struct node *x = node_get(m, "unk_token");

    *id = -1;
    if (hf_is_null(x))
        return 0;
    if (x->type != NODE_STR || (*id = vocab_find(&t->vocab, x->str)) < 0)
        return err_set(e, ERR_FORMAT, "model.unk_token is not in model.vocab");
    return 0;
}

/* ---- BPE ---- */

/* The two tokens of a merge, "a b" or ["a", "b"]. */
static bool parts_of(const struct node *x, struct span *left, struct span *right)
{
    const char *gap;

    if (x->type == NODE_LIST && x->count == 2 && x->child->type == NODE_STR && x->child->next->type == NODE_STR) {
        *left = x->child->str;
        *right = x->child->next->str;
        return left->n && right->n;
    }
    gap = x->type == NODE_STR ? memchr(x->str.p, ' ', x->str.n) : NULL;
    if (!gap)
        return false;
    *left = (struct span){x->str.p, (size_t)(gap - x->str.p)};
    *right = (struct span){gap + 1, x->str.n - left->n - 1};
    return left->n && right->n && !memchr(right->p, ' ', right->n);
}

/* Merges whose second token loses this many bytes in what it becomes; of a pair given twice the later one counts.
 * mapped: tokens are written as characters for bytes. */
static int read_merges(struct tokenizer *t, const struct node *list, bool mapped, size_t prefix, struct err *e)
{
    struct buf order = {0}, parts = {0}, scratch = {0};
    struct merge_batch batch = {.down = true};
    const struct node **all;
    int rc = 0;

    if (!list || list->type != NODE_LIST)
        return err_set(e, ERR_FORMAT, "model.merges is no list");
    for (const struct node *x = list->child; x && rc == 0; x = x->next)
        rc = buf_put(&order, &x, sizeof x);
    all = (const struct node **)(void *)order.p;
    for (size_t i = order.n / sizeof *all; i-- > 0 && rc == 0;) {
        struct span left, right;
        size_t cut;
        if (!parts_of(all[i], &left, &right)) {
            rc = err_set(e, ERR_FORMAT, "model.merges[%zu] is not two tokens", i);
            break;
        }
        if (mapped) {
            buf_clear(&parts);
            rc = format_unmap_bytes(left, &parts);
            cut = parts.n;
            rc = rc < 0 ? rc : format_unmap_bytes(right, &parts);
            left = (struct span){parts.p, cut};
            right = (struct span){parts.p + cut, parts.n - cut};
        }
        if (rc >= 0 && mapped && !prefix && parts.n <= MERGE_ROOM) {
            batch.line[batch.n].left = (uint8_t)left.n;
            batch.line[batch.n].n = (uint8_t)parts.n;
            memcpy(batch.line[batch.n].bytes, parts.p, parts.n);
            rc = merge_batch_next(t, &batch, (uint32_t)i, &scratch, e);
        } else if (rc >= 0 && (rc = merge_batch_add(t, &batch, &scratch, e)) == 0) {
            rc = format_add_merge(t, left, right, prefix, (uint32_t)i, &scratch, e);
        }
    }
    if (rc == 0)
        rc = merge_batch_add(t, &batch, &scratch, e);
    buf_free(&order);
    buf_free(&parts);
    buf_free(&scratch);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for merges") : rc;
}

static int copy_affix(const struct node *m, const char *key, const char **to, struct err *e)
{
    const char *s = node_str(m, key);

    if (s && *s && !(*to = strdup(s)))
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    return 0;
}

static int read_chars(struct tokenizer *t, const struct node *m, struct err *e)
{
    struct rules *r = t->rules;
    struct chars *c = &r->chars;

    r->model = MODEL_CHARS;
    TRY(read_plain_vocab(t, node_get(m, "vocab"), e));
    TRY(read_unknown(t, m, &c->unknown, e));
    TRY(copy_affix(m, "continuing_subword_prefix", &c->prefix, e));
    TRY(copy_affix(m, "end_of_word_suffix", &c->suffix, e));
    c->fuse_unknown = node_bool(m, "fuse_unk", false);
    c->byte_fallback = node_bool(m, "byte_fallback", false);
    if (c->byte_fallback && (c->prefix || c->suffix))
        return err_set(e, ERR_UNSUPPORTED, "model.byte_fallback together with affixes is unknown here");
    chars_set_bytes(c->byte_id, &t->vocab);
    TRY(bpe_begin(&t->bpe, e));
    TRY(read_merges(t, node_get(m, "merges"), false, c->prefix ? strlen(c->prefix) : 0, e));
    if (!c->prefix && !c->suffix && !t->whole_first) {
        bool all = c->byte_fallback && chars_has_all_bytes(c->byte_id);
        /* A character that leaves nothing behind lets its neighbours join. */
        bool at_marks = vocab_find(&t->vocab, span_of(SPACE_MARK)) >= 0 && (all || c->unknown >= 0);
        r->joins = all && !bpe_uses(&t->bpe, c->byte_id, 256);
        word_marks_find(&r->marks, &t->vocab, at_marks, r->joins);
    }
    return chars_finish(c, &t->vocab, e);
}

static int read_bpe(struct tokenizer *t, const struct node *m, bool bytes, struct err *e)
{
    const char *affix;
    int rc = ERR_FORMAT;

    TRY(hf_only_keys(m, "type|dropout|unk_token|continuing_subword_prefix|end_of_word_suffix|fuse_unk|byte_fallback|"
                        "ignore_merges|vocab|merges", &model, e));
    if (node_num(m, "dropout", 0) != 0)
        return err_set(e, ERR_UNSUPPORTED, "model.dropout is unknown here");
    t->whole_first = node_bool(m, "ignore_merges", false);
    bytes &= !node_bool(m, "byte_fallback", false) && !((affix = node_str(m, "continuing_subword_prefix")) && *affix) &&
             !((affix = node_str(m, "end_of_word_suffix")) && *affix);
    if (bytes) {
        TRY(format_read_vocab(t, node_get(m, "vocab"), e));
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
        if (rc == 0)
            return read_merges(t, node_get(m, "merges"), true, 0, e);
        if (rc != ERR_FORMAT)
            return rc;
        bpe_free(&t->bpe); /* some byte has no token: characters that stand for bytes may be unknown */
        vocab_free(&t->vocab);
    }
    return read_chars(t, m, e);
}

/* ---- Unigram ---- */

/* Ten to this power, as the decimal fraction is read. */
static double power_of_ten(int64_t n)
{
    char text[24];

    snprintf(text, sizeof text, "1e%d", (int)n);
    return strtod(text, NULL);
}

/* A number as Hugging Face's library reads it: Rust's serde_json takes the digits that fit into 64 bits as an integer, rounds
 * it, and multiplies or divides by a power of ten, which rounds again.  So every sixth score is one unit in the last place off
 * the nearest double, and ways that would be equal are not. */
static double read_score(const char *p)
{
    uint64_t digits = 0, exponent = 0;
    bool negative = *p == '-', point = false, full = false, down = false;
    int64_t shift = 0;
    double x;

    for (p += negative; (*p >= '0' && *p <= '9') || *p == '.'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        full |= digits > (UINT64_MAX - (uint64_t)(*p - '0')) / 10;
        if (!full)
            digits = digits * 10 + (uint64_t)(*p - '0');
        shift += full ? !point : -(int64_t)point;
    }
    if (*p == 'e' || *p == 'E') {
        down = *++p == '-';
        for (p += *p == '-' || *p == '+'; *p >= '0' && *p <= '9' && exponent < 100000; p++)
            exponent = exponent * 10 + (uint64_t)(*p - '0');
    }
    shift += down ? -(int64_t)exponent : (int64_t)exponent;
    for (x = (double)digits; shift < -308 && x != 0; shift += 308)
        x /= 1e308;
    if (x != 0)
        x = shift < 0 ? x / power_of_ten(-shift) : x * power_of_ten(shift);
    return negative ? -x : x;
}

static int read_unigram(struct tokenizer *t, const struct node *m, struct err *e)
{
    struct unigram *u = &t->rules->unigram;
    const struct node *list = node_get(m, "vocab"), *unknown = node_get(m, "unk_id");
    double least = INFINITY, value;
    uint32_t id = 0, n;

    TRY(hf_only_keys(m, "type|unk_id|vocab|byte_fallback", &model, e));
    if (!list || list->type != NODE_LIST || !list->count || list->count > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "model.vocab is no list of tokens and scores");
    n = (uint32_t)list->count;
    t->rules->model = MODEL_UNIGRAM;
    for (const struct node *x = list->child; x; x = x->next, id++) {
        const struct node *score = x->type == NODE_LIST && x->count == 2 ? x->child->next : NULL;
        if (!score || x->child->type != NODE_STR || (score->type != NODE_NUM && score->type != NODE_INT))
            return err_set(e, ERR_FORMAT, "model.vocab[%u] is not a token and a score", id);
        TRY(vocab_add(&t->vocab, id, x->child->str, e));
        value = read_score(score->str.p);
        if (!isfinite(value))
            return err_set(e, ERR_FORMAT, "model.vocab[%u] has no finite score", id);
        TRY(unigram_add(u, id, x->child->str, value, n, e));
        least = value < least ? value : least;
    }
    u->unknown = hf_is_null(unknown) ? -1 : unknown->type == NODE_INT ? unknown->integer : INT64_MAX;
    if (u->unknown < -1 || u->unknown >= (int64_t)n)
        return err_set(e, ERR_FORMAT, "model.unk_id is not in model.vocab");
    u->unknown_score = least - 10;
    u->fuse_unknown = true;
    u->byte_fallback = node_bool(m, "byte_fallback", false);
    chars_set_bytes(u->byte_id, &t->vocab);
    unigram_finish(u, &t->vocab);
    return 0;
}

/* ---- WordPiece, WordLevel ---- */

static int read_words(struct tokenizer *t, const struct node *m, bool whole, struct err *e)
{
    struct wordlist *w = &t->rules->words;
    const char *prefix = node_str(m, "continuing_subword_prefix");

    TRY(hf_only_keys(m, whole ? "type|vocab|unk_token" : "type|vocab|unk_token|continuing_subword_prefix|"
                                                         "max_input_chars_per_word", &model, e));
    t->rules->model = MODEL_WORDS;
    TRY(read_plain_vocab(t, node_get(m, "vocab"), e));
    w->whole = whole;
    w->max_chars = node_int(m, "max_input_chars_per_word", 100);
    w->prefix = strdup(prefix ? prefix : "##");
    if (!w->prefix)
        return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    /* A token that is nowhere is missed only when a word is unknown. */
    if (read_unknown(t, m, &w->unknown, e) < 0)
        w->unknown = -1;
    return wordlist_finish(w, &t->vocab, e);
}

int hf_read_model(struct tokenizer *t, const struct node *m, bool bytes, struct err *e)
{
    const char *type = node_str(m, "type");

    if (hf_is_null(m) || m->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "there is no model");
    if (!type || strcmp(type, "BPE") == 0)
        return read_bpe(t, m, bytes, e);
    if (strcmp(type, "Unigram") == 0)
        return read_unigram(t, m, e);
    if (strcmp(type, "WordPiece") == 0 || strcmp(type, "WordLevel") == 0)
        return read_words(t, m, strcmp(type, "WordLevel") == 0, e);
    return err_set(e, ERR_UNSUPPORTED, "model.type '%.60s' is unknown here", type);
}
