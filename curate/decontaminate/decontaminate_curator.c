/* The method curator: TaskDecontamination of NeMo Curator 0.9.
 *
 * A question of min_words words or more gives its grams of n words (13), or, if it is
 * shorter, one gram of all its words.  First all documents are searched and the matches
 * of each gram counted; a gram with more than max_matches is then left alone, and the
 * others are cut out with `cut` characters on either side and what is left of the
 * sentence there.  Curator finds the place of a match in the text without its
 * punctuation and cuts there in the text that has it; so does this. */
#include <math.h>
#include <stdlib.h>
#include <unicode/ucasemap.h>

#include "base/hash.h"
#include "base/json.h"
#include "curate/text/chars.h"
#include "curate/decontaminate/decontaminate_method.h"

enum { FIRST_LOOK = 4096, MAX_WORDS = 100 };

struct curator_gram {
    uint64_t hash;
    uint64_t matches; /* in all documents */
    bool used;
};

struct curator {
    struct decontaminate_conf conf;
    char *separator;
    int words;
    struct curator_gram *gram;
    size_t mask, used, skipped;
    uint64_t prefix[1 << 16]; /* a bit for the first `shortest` words of each gram */
    bool length[MAX_WORDS + 1]; /* words in a gram: which numbers there are */
    int shortest;
    uint8_t *found;           /* a bit a document: has a match */
    uint64_t n, cap;
    uint64_t cut_documents;
};

/* The words of a piece of text; those not yet looked for may be missing. */
struct curator_words {
    UCaseMap *lower;
    struct buf low, joined; /* joined: the words with one space behind each */
    uint32_t *start;        /* of each word in joined, and where the next would be */
    uint32_t *at;           /* code point of the text without punctuation where it begins */
    size_t n, n_at, cap, cap_at;
    struct buf pieces, grams;
};

/* ---- words ---- */

static int lower_text(struct curator_words *w, struct span text)
{
    UErrorCode status = U_ZERO_ERROR;
    size_t need = text.n + 64;

    for (int round = 0; round < 2; round++) {
        int32_t n;
        buf_clear(&w->low);
        TRY(buf_reserve(&w->low, need));
        status = U_ZERO_ERROR;
        n = ucasemap_utf8ToLower(w->lower, w->low.p, (int32_t)need, text.p, (int32_t)text.n, &status);
        if (U_SUCCESS(status)) {
            w->low.n = (size_t)n;
            return 0;
        }
        if (status != U_BUFFER_OVERFLOW_ERROR)
            return ERR_NOMEM;
        need = (size_t)n + 64;
    }
    return ERR_NOMEM;
}

static bool is_punctuation(unsigned char c)
{
    return c > ' ' && c < 0x7f && !((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9');
}

/* One word: what stands up to the next, without the white space around it. */
static int put_word(struct curator_words *w, struct span word)
{
    TRY(mem_grow(&w->start, &w->cap, w->n + 2, sizeof *w->start));
    TRY(buf_put_span(&w->joined, chars_strip(word)));
    TRY(buf_putc(&w->joined, ' '));
    w->start[++w->n] = (uint32_t)w->joined.n;
    return 0;
}

/* Words begin behind a space (and at the front) and reach to the next; an empty first one
 * is taken away, but not its place. */
static int split_words(struct curator_words *w, struct span text)
{
    struct span word;
    size_t n = 0;
    uint32_t cp = 0;
    bool apart = true;

    TRY(lower_text(w, text));
    w->n = w->n_at = 0;
    buf_clear(&w->joined);
    TRY(mem_grow(&w->start, &w->cap, 1, sizeof *w->start));
    w->start[0] = 0;
    for (size_t i = 0; i < w->low.n; i++) /* in place: punctuation goes */
        if (!is_punctuation((unsigned char)w->low.p[i]))
            w->low.p[n++] = w->low.p[i];
    if (n == 0)
        return 0;
    word = (struct span){w->low.p, 0};
    for (size_t i = 0; i < n; i++) {
        bool space = w->low.p[i] == ' ';
        if (!space && apart) {
            word.n = (size_t)(w->low.p + i - word.p);
            if (i)
                TRY(put_word(w, word));
            TRY(mem_grow(&w->at, &w->cap_at, w->n_at + 1, sizeof *w->at));
            w->at[w->n_at++] = cp;
            word.p = w->low.p + i;
        }
        apart = space;
        cp += ((unsigned char)w->low.p[i] & 0xc0) != 0x80;
    }
    word.n = (size_t)(w->low.p + n - word.p);
    TRY(put_word(w, word));
    if (w->start[1] == 1) { /* the first is empty */
        w->n--;
        memmove(w->joined.p, w->joined.p + 1, --w->joined.n);
        for (size_t i = 0; i <= w->n; i++)
            w->start[i] = w->start[i + 1] - 1;
    }
    return 0;
}

static struct span words_at(const struct curator_words *w, size_t i, int n)
{
    return (struct span){w->joined.p + w->start[i], w->start[i + (size_t)n] - w->start[i] - 1};
}

/* ---- grams ---- */

static struct curator_gram *slot_of(const struct curator *c, uint64_t hash)
{
    size_t at = hash & c->mask;

    while (c->gram[at].used && c->gram[at].hash != hash)
        at = (at + 1) & c->mask;
    return &c->gram[at];
}

static int put_gram(struct curator *c, struct span text)
{
    struct curator_gram *g;

    if (c->used > c->mask / 2) {
        struct curator old = {.gram = c->gram, .mask = c->mask};
        c->gram = calloc(2 * (old.mask + 1), sizeof *c->gram);
        if (!c->gram) {
            c->gram = old.gram;
            return ERR_NOMEM;
        }
        c->mask = 2 * old.mask + 1;
        for (size_t i = 0; i <= old.mask; i++)
            if (old.gram[i].used)
                *slot_of(c, old.gram[i].hash) = old.gram[i];
        free(old.gram);
    }
    g = slot_of(c, hash_xxh3_64(text));
    c->used += !g->used;
    *g = (struct curator_gram){hash_xxh3_64(text), 0, true};
    return 0;
}

static uint64_t *prefix_word(struct curator *c, uint64_t hash)
{
    return &c->prefix[hash >> 48];
}

/* How many words a gram has: those that are left when it is split again. */
static int put_length(struct curator *c, struct curator_words *w, struct span gram)
{
    TRY(split_words(w, gram));
    if (w->n == 0)
        return 0;
    c->length[w->n] = true;
    if (!c->shortest || (int)w->n < c->shortest)
        c->shortest = (int)w->n;
    return 0;
}

/* The first words of a gram, as many as the shortest has. */
static void put_prefix(struct curator *c, struct span gram)
{
    uint64_t hash;

    for (size_t i = 0, n = 0; i < gram.n; i++)
        if (gram.p[i] == ' ' && ++n == (size_t)c->shortest)
            gram.n = i;
    hash = hash_xxh3_64(gram);
    *prefix_word(c, hash) |= UINT64_C(1) << (hash & 63);
}

static int put_question(struct curator *c, struct curator_words *w, struct span text, struct buf *all)
{
    int n;

    TRY(split_words(w, text));
    if (w->n < (size_t)c->conf.min_words || w->n == 0) {
        c->skipped++;
        return 0;
    }
    n = w->n < (size_t)c->words ? (int)w->n : c->words;
    for (size_t i = 0; i + (size_t)n <= w->n; i++) {
        TRY(put_gram(c, words_at(w, i, n)));
        TRY(buf_put_span(all, words_at(w, i, n)));
        TRY(buf_putc(all, '\0'));
    }
    return 0;
}

static int put_questions(struct curator *c, struct curator_words *w, const struct eval_set *evals)
{
    struct buf all = {0}; /* the grams */
    int rc = 0;

    for (size_t i = 0; i < evals->n && rc == 0; i++)
        rc = put_question(c, w, (struct span){evals->v[i].text.p, evals->v[i].question}, &all);
    for (size_t i = 0; i < all.n && rc == 0; i += strlen(all.p + i) + 1)
        rc = put_length(c, w, span_of(all.p + i));
    for (size_t i = 0; i < all.n && rc == 0; i += strlen(all.p + i) + 1)
        put_prefix(c, span_of(all.p + i));
    buf_free(&all);
    return rc;
}

/* ---- search ---- */

/* A match: the gram, the code point where it begins and its length in code points. */
struct match {
    struct curator_gram *gram;
    size_t at, length;
};

/* rare: the gram was met in the search (cutting meets others too, which stay), and not too
 * often. */
static bool counts(const struct curator *c, const struct curator_gram *g, bool rare)
{
    return g->used && (!rare || (g->matches && g->matches <= (uint64_t)c->conf.max_matches));
}

static bool check(struct curator *c, const struct curator_words *w, size_t i, int n, bool rare, struct match *m)
{
    struct span text = words_at(w, i, n);
    struct curator_gram *g = slot_of(c, hash_xxh3_64(text));

    if (!counts(c, g, rare))
        return false;
    *m = (struct match){g, w->at[i], chars_count(text)};
    return true;
}

/* A gram at word i: of `words` words first, then the others from the shortest on. */
static bool check_all(struct curator *c, const struct curator_words *w, size_t i, bool rare, struct match *m)
{
    uint64_t hash = hash_xxh3_64(words_at(w, i, c->shortest));

    if (!(*prefix_word(c, hash) >> (hash & 63) & 1))
        return false;
    if (check(c, w, i, c->words, rare, m))
        return true;
    for (int n = c->shortest; n <= c->words; n++)
        if (c->length[n] && check(c, w, i, n, rare, m))
            return true;
    return false;
}

/* Shorter grams among the last words. */
static bool check_end(struct curator *c, const struct curator_words *w, bool rare, struct match *m)
{
    size_t words = (size_t)c->words, from = w->n - words;

    for (size_t n = (size_t)c->shortest; n < words; n++)
        for (size_t i = 0; c->length[n] && i + n <= words; i++)
            if (check(c, w, from + i, (int)n, rare, m))
                return true;
    return false;
}

/* The first match in text: 1, 0 or an error.  Looks at its beginning first, cut at a
 * space, so that finding many matches costs no more than reading the text. */
static int first_match(struct curator *c, struct curator_words *w, struct span text, bool rare, struct match *m)
{
    size_t words = (size_t)c->words, look = FIRST_LOOK, done = 0;

    for (bool whole = false; !whole; look *= 4) {
        struct span part = text;
        if (look < text.n)
            for (part.n = look; part.n && text.p[part.n] != ' ';)
                part.n--;
        whole = part.n == text.n || part.n == 0;
        if (part.n == 0)
            part = text;
        TRY(split_words(w, part));
        for (; done + words <= w->n; done++)
            if (check_all(c, w, done, rare, m))
                return 1;
    }
    return w->n > words && check_end(c, w, rare, m);
}

/* The byte of code point n, or the end. */
static size_t byte_of(struct span text, size_t n)
{
    size_t i = 0;

    for (; i < text.n && n; n--)
        do
            i++;
        while (i < text.n && ((unsigned char)text.p[i] & 0xc0) == 0x80);
    return i;
}

static int thread_open(void *stage, void **thread, struct err *e)
{
    UErrorCode status = U_ZERO_ERROR;
    struct curator_words *w = calloc(1, sizeof *w);

    (void)stage;
    *thread = w;
    if (!w)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    w->lower = ucasemap_open("", 0, &status);
    return U_SUCCESS(status) ? 0 : err_set(e, ERR_NOMEM, "no case map: %s", u_errorName(status));
}

static void thread_close(void *stage, void *thread)
{
    struct curator_words *w = thread;

    (void)stage;
    if (w->lower)
        ucasemap_close(w->lower);
    buf_free(&w->low);
    buf_free(&w->joined);
    buf_free(&w->pieces);
    buf_free(&w->grams);
    free(w->start);
    free(w->at);
    free(w);
}

/* ---- the stage ---- */

/* The note: the numbers of the grams that match. */
static int work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct curator *c = stage;
    struct curator_words *w = thread;
    struct span text = d->text;
    struct match m;
    int rc = 1;

    (void)v;
    if (text.n > INT32_MAX / 4)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to compare", text.n);
    buf_clear(&w->grams);
    while (c->shortest && text.n && (rc = first_match(c, w, text, false, &m)) > 0) {
        uint64_t number = (uint64_t)(m.gram - c->gram);
        size_t cut = byte_of(text, m.at + m.length + 1);
        rc = buf_put(&w->grams, &number, sizeof number);
        if (rc < 0)
            break;
        text.p += cut;
        text.n -= cut;
    }
    if (rc >= 0 && w->grams.n) {
        *note = arena_dup(d->arena, buf_span(&w->grams));
        rc = note->p ? 0 : ERR_NOMEM;
    }
    return rc < 0 ? err_set(e, rc, "out of memory for the matches of a document") : 0;
}

static int commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct curator *c = stage;

    (void)v, (void)reply, (void)a;
    if (c->n / 8 >= c->cap) {
        uint64_t cap = c->cap * 2 + 4096;
        uint8_t *found = realloc(c->found, cap);
        if (!found)
            return err_set(e, ERR_NOMEM, "out of memory for %llu documents", (unsigned long long)c->n);
        memset(found + c->cap, 0, cap - c->cap);
        c->found = found;
        c->cap = cap;
    }
    for (size_t i = 0; i + sizeof(uint64_t) <= note.n; i += sizeof(uint64_t)) {
        uint64_t number;
        memcpy(&number, note.p + i, sizeof number);
        if (number > c->mask)
            return err_set(e, ERR_FORMAT, "a note of other evaluation sets");
        c->gram[number].matches++;
    }
    if (note.n)
        c->found[c->n / 8] |= (uint8_t)(1 << (c->n % 8));
    c->n++;
    return 0;
}

static int resolve(void *stage, int jobs, struct err *e)
{
    (void)stage, (void)jobs, (void)e;
    return 0;
}

/* The reply says no more than that there is something to cut. */
static int judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    const struct curator *c = stage;

    (void)v, (void)a, (void)e;
    if (c->found[n / 8] >> (n % 8) & 1)
        *reply = span_of("cut");
    return 0;
}

static bool ends_sentence(char c)
{
    return c == '.' || c == '!' || c == '?';
}

/* The text before and behind a match, without `cut` characters and the rest of the
 * sentence there. */
static void cut_match(const struct curator *c, struct span text, const struct match *m, struct span *first,
                      struct span *second)
{
    size_t cut = (size_t)c->conf.cut, p;

    *first = *second = (struct span){text.p, 0};
    if (m->at > cut) {
        for (p = byte_of(text, m->at - cut); p > 0 && (p == text.n || !ends_sentence(text.p[p]));)
            p--;
        if (p > 0)
            first->n = p + 1;
    }
    for (p = byte_of(text, m->at + m->length + cut); p < text.n && !ends_sentence(text.p[p]); p++)
        ;
    if (p + 1 < text.n)
        *second = (struct span){text.p + p + 1, text.n - p - 1};
}

static int put_piece(const struct curator *c, struct curator_words *w, struct span piece, size_t *pieces)
{
    if ((*pieces)++)
        TRY(buf_puts(&w->pieces, c->separator));
    return buf_put_span(&w->pieces, piece);
}

/* The pieces of text without what matches, joined in w->pieces. */
static int cut_text(struct curator *c, struct curator_words *w, struct span text, size_t *pieces)
{
    size_t least = (size_t)c->conf.min_piece;

    buf_clear(&w->pieces);
    *pieces = 0;
    for (;;) {
        struct match m;
        struct span first, second;
        int rc = first_match(c, w, text, true, &m);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return put_piece(c, w, text, pieces);
        cut_match(c, text, &m, &first, &second);
        if (chars_count(first) > least)
            TRY(put_piece(c, w, first, pieces));
        if (chars_count(second) <= least)
            return 0;
        text = second;
    }
}

static int apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    struct curator *c = stage;
    struct curator_words *w = thread;
    size_t pieces;

    (void)reply;
    if (cut_text(c, w, d->text, &pieces) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the pieces of a document");
    if (pieces == 0)
        return verdict_drop(v, &decontaminate_rules[DECON_PIECES], 0, 1);
    if (pieces > (size_t)c->conf.max_splits)
        return verdict_drop(v, &decontaminate_rules[DECON_SPLITS], (double)pieces, (double)c->conf.max_splits);
    if (span_eq(buf_span(&w->pieces), d->text))
        return 0;
    __atomic_fetch_add(&c->cut_documents, 1, __ATOMIC_RELAXED);
    if (c->conf.action == DECON_DROP)
        return verdict_drop(v, &decontaminate_rules[DECON_NGRAM], (double)pieces, NAN);
    return doc_set_string(d, "text", buf_span(&w->pieces)) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a text") : 0;
}

static int stats(void *stage, struct buf *json)
{
    const struct curator *c = stage;
    uint64_t matched = 0, common = 0;

    for (size_t i = 0; i <= c->mask; i++) {
        matched += c->gram[i].matches != 0;
        common += c->gram[i].matches > (uint64_t)c->conf.max_matches;
    }
    TRY(json_put_key(json, "method"));
    TRY(json_put_string(json, span_of("curator")));
    TRY(json_put_count(json, "grams", c->used));
    TRY(json_put_count(json, "too_short", c->skipped));
    TRY(json_put_count(json, "grams_matched", matched));
    TRY(json_put_count(json, "grams_too_common", common));
    return json_put_count(json, "contaminated", c->cut_documents);
}

static void close_stage(void *stage)
{
    struct curator *c = stage;

    free(c->gram);
    free(c->found);
    free(c->separator);
    free(c);
}

static const struct stage_ops curator_ops = {
    .name = "decontaminate",
    .thread_open = thread_open,
    .thread_close = thread_close,
    .work = work,
    .commit = commit,
    .resolve = resolve,
    .judge = judge,
    .apply = apply,
    .stats = stats,
    .close = close_stage,
};

int decontaminate_curator_open(struct stage *s, const struct decontaminate_conf *conf, struct eval_set *evals,
                               struct err *e)
{
    struct curator *c = calloc(1, sizeof *c);
    void *w = NULL;
    int rc = c ? thread_open(c, &w, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0) {
        c->conf = *conf;
        c->separator = strdup(conf->separator ? conf->separator : "");
        c->words = conf->words ? (int)conf->words : 13;
        c->mask = 1023;
        c->gram = calloc(c->mask + 1, sizeof *c->gram);
        if (!c->separator || !c->gram || put_questions(c, w, evals) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory for the n-grams of the questions");
    }
    if (w)
        thread_close(c, w);
    if (rc < 0) {
        if (c)
            close_stage(c);
        return rc;
    }
    *s = (struct stage){&curator_ops, c};
    return 0;
}
