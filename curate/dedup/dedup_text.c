#include "curate/dedup/dedup_text.h"

#include <math.h>
#include <stdlib.h>
#include <unicode/uchar.h>

#include "base/json.h"
#include "curate/stream/stage.h"

enum { MAX_TEXT = 1 << 28 };

int dedup_text_open(struct dedup_text *t, struct err *e)
{
    *t = (struct dedup_text){0};
    return shingler_new(&t->simple, minhash_preset_find("datatrove"), 0, e);
}

int dedup_text_thread(void **thread, size_t size, struct err *e)
{
    void *t = calloc(1, size);
    int rc = t ? dedup_text_open(t, e) : err_set(e, ERR_NOMEM, "out of memory for a thread");

    *thread = rc < 0 ? NULL : t;
    if (rc < 0 && t) {
        dedup_text_close(t);
        free(t);
    }
    return rc;
}

void dedup_text_close(struct dedup_text *t)
{
    words_free(&t->words);
    shingler_free(t->simple);
    free(t->piece);
    free(t->ends);
    free(t->form_end);
    buf_free(&t->form);
}

int dedup_striker_open(void *stage, void **thread, struct err *e)
{
    (void)stage;
    return dedup_text_thread(thread, sizeof(struct dedup_striker), e);
}

void dedup_striker_close(void *stage, void *thread)
{
    struct dedup_striker *s = thread;

    (void)stage;
    dedup_text_close(&s->text);
    buf_free(&s->out);
    free(s->drop);
    free(s);
}

int dedup_striker_cut(struct dedup_striker *s, struct span text, enum dedup_unit unit, struct err *e)
{
    TRY(dedup_text_cut(&s->text, text, unit, e));
    if (mem_room(&s->drop, &s->cap, s->text.n + 1, 1) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu pieces of a text", s->text.n);
    memset(s->drop, 0, s->text.n);
    return 0;
}

/* ---- cutting ---- */

static int add(struct dedup_text *t, size_t gap, size_t from, size_t to)
{
    TRY(mem_grow(&t->piece, &t->cap, t->n + 1, sizeof *t->piece));
    t->piece[t->n++] = (struct text_unit){(uint32_t)gap, (uint32_t)from, (uint32_t)to};
    return 0;
}

static int cut_lines(struct dedup_text *t, struct span text)
{
    size_t from = 0, gap = 0;

    for (;;) {
        const char *p = from < text.n ? memchr(text.p + from, '\n', text.n - from) : NULL;
        size_t to = p ? (size_t)(p - text.p) : text.n;
        TRY(add(t, gap, from, to));
        if (!p)
            return 0;
        gap = to;
        from = to + 1;
    }
}

/* Runs of lines that are not blank, without the last one's newline. */
static int cut_paragraphs(struct dedup_text *t, struct span text)
{
    size_t at = 0, gap = 0, from = SIZE_MAX, to = 0;

    while (at < text.n) {
        const char *p = memchr(text.p + at, '\n', text.n - at);
        size_t end = p ? (size_t)(p - text.p) : text.n;
        struct span line = {text.p + at, end - at};
        if (chars_strip(line).n) {
            from = from == SIZE_MAX ? at : from;
            to = end;
        } else if (from != SIZE_MAX) {
            TRY(add(t, gap, from, to));
            gap = to;
            from = SIZE_MAX;
        }
        at = end + 1;
    }
    return from != SIZE_MAX ? add(t, gap, from, to) : 0;
}

static int cut_sentences(struct dedup_text *t, struct span text, struct err *e)
{
    size_t n, from = 0;

    TRY(words_split(&t->words, text, e));
    TRY(mem_grow(&t->ends, &t->ends_cap, t->words.n + 2, sizeof *t->ends));
    n = words_sentences(&t->words, text, t->ends);
    for (size_t i = 0; i < n; i++) {
        TRY(add(t, from, from, t->ends[i]));
        from = t->ends[i];
    }
    return 0;
}

int dedup_text_cut(struct dedup_text *t, struct span text, enum dedup_unit unit, struct err *e)
{
    int rc;

    if (text.n >= MAX_TEXT)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to take apart", text.n);
    t->n = 0;
    rc = !text.n ? 0
         : unit == DEDUP_LINE ? cut_lines(t, text)
         : unit == DEDUP_PARAGRAPH ? cut_paragraphs(t, text)
                                   : cut_sentences(t, text, e);
    t->tail = unit == DEDUP_SENTENCE ? text.n : t->n ? t->piece[t->n - 1].to : 0;
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for the parts of a text") : rc;
}

/* ---- normal forms ---- */

/* Appends the form of a stripped text. */
static int ccnet_form(struct span text, struct buf *out)
{
    TRY(buf_reserve(out, 2 * text.n + 4)); /* lower case: at most 3 bytes for 2 */
    for (size_t i = 0; i < text.n;) {
        unsigned char c = (unsigned char)text.p[i];
        uint32_t low;
        int n;
        if (c < 0x7f) {
            if (c >= 32)
                out->p[out->n++] = (char)(c - 'A' + 0u < 26 ? c | 32 : c - '0' + 0u < 10 ? '0' : c);
            i++;
            continue;
        }
        low = chars_decode(text.p + i, &n);
        if (low == 0x3a3)
            low = chars_lower_sigma(text, text.p + i);
        else if (low != 0x130)
            low = (uint32_t)u_tolower((UChar32)low);
        if (low == 0x130) {
            memcpy(out->p + out->n, "i\xcc\x87", 3);
            out->n += 3;
        } else if (u_charType((UChar32)low) == U_DECIMAL_DIGIT_NUMBER) {
            out->p[out->n++] = '0';
        } else if ((low < 0x7f || low >= 0xa0) && !minhash_is_ccnet_mark(low)) {
            out->n += (size_t)utf8_put(out->p + out->n, low);
        }
        i += (size_t)n;
    }
    return 0;
}

/* Appends the normal form of one piece to t->form. */
static int put_form(struct dedup_text *t, struct span s, enum dedup_form form, struct err *e)
{
    struct span simple;

    if (form == DEDUP_RAW)
        return buf_put_span(&t->form, s);
    if (form == DEDUP_CCNET)
        return ccnet_form(chars_strip(s), &t->form);
    TRY(shingler_simplify(t->simple, s, &simple, e));
    return buf_put_span(&t->form, simple);
}

/* All forms, a space behind each. */
static int put_forms(struct dedup_text *t, struct span text, enum dedup_form form, struct err *e)
{
    TRY(mem_grow(&t->form_end, &t->form_cap, t->n, sizeof *t->form_end));
    buf_clear(&t->form);
    for (size_t i = 0; i < t->n; i++) {
        struct span s = {text.p + t->piece[i].from, t->piece[i].to - t->piece[i].from};
        TRY(put_form(t, s, form, e));
        t->form_end[i] = t->form.n;
        TRY(buf_putc(&t->form, ' '));
    }
    return 0;
}

/* Replaces keys that came before, as key k, by {k, 1}. */
static int settle_repeats(struct hash128 *key, size_t n)
{
    size_t cap = 16, at;
    uint32_t *slot; /* number of the key, and one */

    while (cap < 2 * n)
        cap *= 2;
    slot = calloc(cap, sizeof *slot);
    if (!slot)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!key[i].hi)
            continue;
        for (at = key[i].lo & (cap - 1); slot[at]; at = (at + 1) & (cap - 1))
            if (key[slot[at] - 1].lo == key[i].lo && key[slot[at] - 1].hi == key[i].hi)
                break;
        if (slot[at])
            key[i] = (struct hash128){slot[at] - 1, 1};
        else
            slot[at] = (uint32_t)i + 1;
    }
    free(slot);
    return 0;
}

int64_t dedup_text_keys(struct dedup_text *t, struct span text, enum dedup_form form, int span, int64_t min,
                        struct hash128 *key, struct err *e)
{
    size_t n = t->n, units;
    int rc = put_forms(t, text, form, e);

    if (rc < 0)
        return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for the parts of a text") : rc;
    while (span > 1 && n && !chars_strip((struct span){text.p + t->piece[n - 1].from,
                                                       t->piece[n - 1].to - t->piece[n - 1].from}).n)
        n--;
    units = n >= (size_t)span ? n - (size_t)span + 1 : 0;
    for (size_t i = 0; i < units; i++) {
        size_t from = i ? t->form_end[i - 1] + 1 : 0;
        struct span s = {t->form.p + from, t->form_end[i + (size_t)span - 1] - from};
        struct span count = form == DEDUP_RAW ? s : chars_strip(s);
        bool counts = count.n >= (size_t)min && (min <= 1 || (int64_t)chars_count(count) >= min);
        key[i] = counts ? hash_xxh3_128(s) : (struct hash128){0, 0};
        if (counts && key[i].hi < 2)
            key[i].hi += 2; /* those two mean something else */
    }
    if (!t->apart && settle_repeats(key, units) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the parts of a text");
    return (int64_t)units;
}

/* ---- what is left ---- */

int dedup_text_join(const struct dedup_text *t, struct span text, enum dedup_unit unit, const uint8_t *drop,
                    struct buf *out, size_t *kept)
{
    buf_clear(out);
    *kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct text_unit *p = &t->piece[i];
        size_t from = *kept || i == 0 ? p->gap : p->from;
        if (drop[i])
            continue;
        TRY(buf_put(out, text.p + from, p->to - from));
        ++*kept;
    }
    if (unit != DEDUP_SENTENCE)
        return buf_put(out, text.p + t->tail, text.n - t->tail);
    if (out->n) {
        struct span s = chars_lstrip(buf_span(out));
        memmove(out->p, s.p, s.n);
        out->n = s.n;
    }
    return 0;
}

const struct stage_rule dedup_text_rules[] = {
    [NOTHING_LEFT] = {"nothing-left", NULL, "Nothing is left once repeated text is removed.", NULL, false},
    [WORDS_LEFT] = {"words-left", "words left", "Too little is left once repeated text is removed.", "below", false},
    [SENTENCES_LEFT] = {"sentences-left", "sentences left", "Too little is left once repeated text is removed.", "below",
                        false},
    {0},
};

int dedup_text_left(struct dedup_text *t, struct span text, const struct dedup_left *least, struct verdict *v,
                    struct err *e)
{
    int64_t sentences;

    if (!chars_strip(text).n)
        return verdict_drop(v, &dedup_text_rules[NOTHING_LEFT], 0, NAN);
    if (least->words <= 0 && least->sentences <= 0)
        return 0;
    TRY(words_split(&t->words, text, e));
    if ((int64_t)t->words.n < least->words)
        return verdict_drop(v, &dedup_text_rules[WORDS_LEFT], (double)t->words.n, (double)least->words);
    sentences = (int64_t)words_count_sentences(&t->words, text);
    if (sentences < least->sentences)
        return verdict_drop(v, &dedup_text_rules[SENTENCES_LEFT], (double)sentences, (double)least->sentences);
    return 0;
}

int dedup_text_replace(struct dedup_text *t, struct doc *d, struct span text, uint64_t pieces,
                       const struct dedup_left *least, struct dedup_struck *all, struct verdict *v, struct err *e)
{
    TRY(dedup_text_left(t, text, least, v, e));
    if (v->drop)
        return 0;
    __atomic_fetch_add(&all->docs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&all->pieces, pieces, __ATOMIC_RELAXED);
    __atomic_fetch_add(&all->bytes, d->text.n - text.n, __ATOMIC_RELAXED);
    if (doc_set_string(d, "text", text) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", text.n);
    return 0;
}

int dedup_struck_stats(const struct dedup_struck *all, const char *pieces, struct buf *json)
{
    TRY(json_put_count(json, "docs_shortened", all->docs));
    TRY(json_put_count(json, pieces, all->pieces));
    return json_put_count(json, "bytes_struck", all->bytes);
}
