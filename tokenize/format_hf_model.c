/* Models of a tokenizer.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokenize/format_hf.h"
#include "tokenize/format_rows.h"

static const struct hf_place model = {"model"};

/* The tokens as they are written. */
static int read_plain_vocab(struct tokenizer *t, const struct node *map, struct err *e)
{
    struct row_reader rows;
    struct row x;
    int rc;

    if (!hf_is_map(map))
        return err_set(e, ERR_FORMAT, "model.vocab is no object");
    TRY(row_reader_begin(&rows, map, e));
    rc = vocab_reserve(&t->vocab, (uint32_t)(rows.n < VOCAB_MAX_ID ? rows.n : VOCAB_MAX_ID), e);
    for (size_t i = 0; i < rows.n && rc == 0; i++) {
        if ((rc = row_reader_get(&rows, i, &x, e)) < 0)
            break;
        if (x.integer < 0 || x.integer > VOCAB_MAX_ID)
            rc = err_set(e, ERR_FORMAT, "token '%.100s' has no valid id", x.text.p);
        else
            rc = vocab_put(&t->vocab, (uint32_t)x.integer, x.text, e);
    }
    row_reader_free(&rows);
    TRY(rc);
    TRY(vocab_index(&t->vocab, e));
    return t->vocab.twins ? err_set(e, ERR_FORMAT, "a token occurs twice") : 0; /* in rows */
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
static bool parts_of(const struct row *x, struct span *left, struct span *right)
{
    const char *gap;

    *left = x->text;
    *right = x->second;
    if (x->kind == HF_ROW_STRINGS)
        return left->n && right->n;
    gap = x->kind == HF_ROW_STRING ? memchr(x->text.p, ' ', x->text.n) : NULL;
    if (!gap)
        return false;
    left->n = (size_t)(gap - left->p);
    *right = (struct span){gap + 1, x->text.n - left->n - 1};
    return left->n && right->n && !memchr(right->p, ' ', right->n);
}

/* The two tokens of a merge as the vocabulary has them; mapped: they are in `bytes` then. */
static int read_merge(struct row_reader *rows, size_t i, bool mapped, struct buf *bytes, struct span *left, struct span *right,
                      struct err *e)
{
    struct row x;
    size_t cut;

    TRY(row_reader_get(rows, i, &x, e));
    if (!parts_of(&x, left, right))
        return err_set(e, ERR_FORMAT, "model.merges[%zu] is not two tokens", i);
    if (!mapped)
        return 0;
    buf_clear(bytes);
    if (format_unmap_bytes(*left, bytes) < 0 || (cut = bytes->n, format_unmap_bytes(*right, bytes) < 0))
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    *left = (struct span){bytes->p, cut};
    *right = (struct span){bytes->p + cut, bytes->n - cut};
    return 0;
}

/* A merge that joins a token for a byte is no such. */
static bool is_byte_token(struct span s)
{
    return s.n == 6 && memcmp(s.p, "<0x", 3) == 0;
}

/* Merges that are looked for when they are needed (ranks_later.h): 1; 0: they are not such. */
static int read_later(struct tokenizer *t, struct row_reader *rows, bool mapped, struct buf *bytes, struct err *e)
{
    struct merge_notes notes = {0};
    struct span left, right;
    int rc = !rows->items; /* a tree is for what is unusual or wrong */

    for (size_t i = 0; i < rows->n && rc > 0; i++) {
        if ((rc = read_merge(rows, i, mapped, bytes, &left, &right, e)) == 0)
            rc = !mapped && (is_byte_token(left) || is_byte_token(right)) ? 0 : merge_notes_put(&notes, t, left, right, e);
    }
    if (rc > 0)
        rc = merge_notes_end(&notes, t, e);
    merge_notes_free(&notes);
    return rc;
}

/* Merges whose second token loses this many bytes in what it becomes; of a pair given twice the later one counts.
 * mapped: tokens are written as characters for bytes. */
static int read_merges(struct tokenizer *t, const struct node *list, bool mapped, size_t prefix, struct err *e)
{
    struct buf bytes = {0}, scratch = {0};
    struct merge_batch batch = {.down = true};
    struct span left, right;
    struct row_reader rows;
    int rc;

    if (!hf_is_list(list))
        return err_set(e, ERR_FORMAT, "model.merges is no list");
    TRY(row_reader_begin(&rows, list, e));
    rc = prefix ? 0 : read_later(t, &rows, mapped, &bytes, e);
    for (size_t i = rows.n; i-- > 0 && rc == 0;) {
        if ((rc = read_merge(&rows, i, mapped, &bytes, &left, &right, e)) < 0)
            break;
        rc = prefix ? format_add_merge(t, left, right, prefix, (uint32_t)i, &scratch, e)
                    : merge_batch_put(t, &batch, left, right, (uint32_t)i, &scratch, e);
    }
    if (rc == 0)
        rc = merge_batch_add(t, &batch, &scratch, e);
    row_reader_free(&rows);
    buf_free(&bytes);
    buf_free(&scratch);
    return rc < 0 ? rc : 0;
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
    const struct node *merges = node_get(m, "merges");

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
    TRY(bpe_begin(&t->bpe, merges ? (uint32_t)merges->count : 0, e));
    TRY(read_merges(t, merges, false, c->prefix ? strlen(c->prefix) : 0, e));
    if (!c->prefix && !c->suffix && !t->whole_first) {
        bool all = c->byte_fallback && chars_has_all_bytes(c->byte_id, &t->vocab);
        /* A character that leaves nothing behind lets its neighbours join. */
        bool at_marks = vocab_find(&t->vocab, span_of(SPACE_MARK)) >= 0 && (all || c->unknown >= 0);
        r->joins = all && (t->later || !bpe_uses(&t->bpe, c->byte_id, 256));
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
    static const double small[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[24];

    if (n < (int64_t)(sizeof small / sizeof *small))
        return small[n];
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
        full |= digits >= UINT64_MAX / 10 && digits > (UINT64_MAX - (uint64_t)(*p - '0')) / 10;
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

/* Pieces and scores, by their places in the list; *least: the lowest score. */
static int read_pieces(struct tokenizer *t, struct row_reader *rows, double *least, struct err *e)
{
    uint32_t n = (uint32_t)rows->n;
    struct row x;

    TRY(vocab_reserve(&t->vocab, n, e));
    for (uint32_t id = 0; id < n; id++) {
        double value;
        TRY(row_reader_get(rows, id, &x, e));
        if (x.kind != HF_ROW_NUMBER)
            return err_set(e, ERR_FORMAT, "model.vocab[%u] is not a token and a score", id);
        TRY(vocab_put(&t->vocab, id, x.text, e));
        value = read_score(x.second.p);
        if (!isfinite(value))
            return err_set(e, ERR_FORMAT, "model.vocab[%u] has no finite score", id);
        TRY(unigram_add(&t->rules->unigram, id, x.text, value, n, e));
        *least = value < *least ? value : *least;
    }
    TRY(vocab_index(&t->vocab, e));
    vocab_find_last(&t->vocab); /* of twins the later ones count */
    return 0;
}

static int read_unigram(struct tokenizer *t, const struct node *m, struct err *e)
{
    struct unigram *u = &t->rules->unigram;
    const struct node *list = node_get(m, "vocab"), *unknown = node_get(m, "unk_id");
    double least = INFINITY;
    struct row_reader rows;
    bool later;
    int64_t n;
    int rc;

    TRY(hf_only_keys(m, "type|unk_id|vocab|byte_fallback", &model, e));
    if (!hf_is_list(list) || !list->count || list->count > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "model.vocab is no list of tokens and scores");
    n = list->count;
    t->rules->model = MODEL_UNIGRAM;
    TRY(row_reader_begin(&rows, list, e));
    rc = read_pieces(t, &rows, &least, e);
    row_reader_free(&rows);
    TRY(rc);
    u->unknown = hf_is_null(unknown) ? -1 : unknown->type == NODE_INT ? unknown->integer : INT64_MAX;
    if (u->unknown < -1 || u->unknown >= n)
        return err_set(e, ERR_FORMAT, "model.unk_id is not in model.vocab");
    u->unknown_score = least - 10;
    u->fuse_unknown = true;
    u->byte_fallback = node_bool(m, "byte_fallback", false);
    chars_set_bytes(u->byte_id, &t->vocab);
    later = !t->vocab.twins && u->longest <= UNIGRAM_SHORT && t->vocab.bytes.n < TRIE_NODES_MAX;
    if (!later)
        TRY(unigram_add_pieces(u, &t->vocab, e));
    unigram_finish(u, &t->vocab, later ? vocab_find(&t->vocab, span_of(SPACE_MARK)) : trie_find(&u->trie, SPACE_MARK, 3));
    return later ? ranks_later_begin(t, 0, NULL, NULL, e) : 0;
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
