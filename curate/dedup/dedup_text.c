#include "curate/dedup/dedup_text.h"

#include <math.h>
#include <stdlib.h>
#include <unicode/uchar.h>

#include "base/json.h"
#include "curate/stream/stage.h"

/* Bytes: of forms that are joined, what is there when old ones go; of a unit whose form is made in pieces, and of these. */
enum { MAX_TEXT = 1 << 28, FORMS_MOST = 1 << 16, LONG_UNIT = 4 << 20, PIECE = 1 << 20 };

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
    free(t->ends);
    buf_free(&t->ccnet);
    buf_free(&t->form);
}

/* ---- cutting ---- */

static bool is_blank(struct span s)
{
    return !chars_strip(s).n;
}

static struct span part_of(struct span text, size_t from, size_t to)
{
    return (struct span){text.p + from, to - from};
}

/* Where the line ends that begins at t->at, before the end of the text; false: there is no newline behind it. */
static bool line_end(const struct dedup_text *t, size_t *to)
{
    const char *p = t->at < t->text.n ? memchr(t->text.p + t->at, '\n', t->text.n - t->at) : NULL;

    *to = p ? (size_t)(p - t->text.p) : t->text.n;
    return p;
}

static bool next_line(struct dedup_text *t, struct text_unit *u)
{
    size_t to;

    if (t->ended)
        return false;
    t->ended = !line_end(t, &to);
    *u = (struct text_unit){(uint32_t)t->gap, (uint32_t)t->at, (uint32_t)to};
    t->gap = to;
    t->at = to + 1;
    return true;
}

/* Runs of lines that are not blank, without the last one's newline. */
static bool next_paragraph(struct dedup_text *t, struct text_unit *u)
{
    size_t from = SIZE_MAX, to = 0, end;
    bool blank = true;

    while (t->at < t->text.n && (!blank || from == SIZE_MAX)) {
        line_end(t, &end);
        blank = is_blank(part_of(t->text, t->at, end));
        if (!blank) {
            from = from == SIZE_MAX ? t->at : from;
            to = end;
        }
        t->at = end + 1;
    }
    if (from == SIZE_MAX)
        return false;
    *u = (struct text_unit){(uint32_t)t->gap, (uint32_t)from, (uint32_t)to};
    t->gap = to;
    return true;
}

static bool next_sentence(struct dedup_text *t, struct text_unit *u)
{
    if (t->end == t->n_ends)
        return false;
    *u = (struct text_unit){(uint32_t)t->gap, (uint32_t)t->gap, t->ends[t->end]};
    t->gap = t->ends[t->end++];
    return true;
}

static int find_sentences(struct dedup_text *t, struct err *e)
{
    TRY(words_split(&t->words, t->text, e));
    TRY(mem_grow(&t->ends, &t->ends_cap, t->words.n + 2, sizeof *t->ends));
    t->n_ends = words_sentences(&t->words, t->text, t->ends);
    return 0;
}

int dedup_text_begin(struct dedup_text *t, struct span text, enum dedup_unit unit, struct err *e)
{
    int rc = 0;

    if (text.n >= MAX_TEXT)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to take apart", text.n);
    t->text = text;
    t->at = t->gap = t->n_ends = t->end = 0;
    t->ended = !text.n;
    if (unit == DEDUP_SENTENCE && text.n)
        rc = find_sentences(t, e);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for the parts of a text") : rc;
}

bool dedup_text_next(struct dedup_text *t, enum dedup_unit unit, struct text_unit *u)
{
    return unit == DEDUP_LINE ? next_line(t, u) : unit == DEDUP_PARAGRAPH ? next_paragraph(t, u) : next_sentence(t, u);
}

/* ---- normal forms ---- */

/* Appends the form of [from, to) of a stripped text, whole characters. */
static int ccnet_form(struct span text, size_t from, size_t to, struct buf *out)
{
    TRY(buf_reserve(out, 2 * (to - from) + 4)); /* lower case: at most 3 bytes for 2 */
    for (size_t i = from; i < to;) {
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

/* The normal form of a unit: itself, or valid until the next one. */
static int form_of(struct dedup_text *t, struct span s, enum dedup_form form, struct span *out, struct err *e)
{
    *out = s;
    if (form == DEDUP_RAW)
        return 0;
    if (form == DEDUP_SIMPLE)
        return shingler_simplify(t->simple, s, out, e);
    buf_clear(&t->ccnet);
    s = chars_strip(s);
    TRY(ccnet_form(s, 0, s.n, &t->ccnet));
    *out = buf_span(&t->ccnet);
    return 0;
}

/* The key of what is long enough: hi is not 0, which says that it is not. */
static struct hash128 key_of(struct hash128 hash)
{
    hash.hi += hash.hi == 0;
    return hash;
}

static struct hash128 short_key(struct span form, const struct dedup_keys *k)
{
    struct span count = k->form == DEDUP_RAW ? form : chars_strip(form);
    bool counts = count.n >= (size_t)k->min && (k->min <= 1 || (int64_t)chars_count(count) >= k->min);

    return counts ? key_of(hash_xxh3_128(form)) : (struct hash128){0, 0};
}

/* The form of a long unit, as it is made in pieces: its hash, and its characters without white space at the ends. */
struct long_form {
    XXH3_state_t hash;
    size_t chars, space; /* space: that may be at the end */
};

static void add_piece(struct long_form *f, struct span piece)
{
    struct span s = f->chars ? piece : chars_lstrip(piece);
    size_t n = chars_rstrip(s).n;

    XXH3_128bits_update(&f->hash, piece.p, piece.n);
    if (n) {
        f->chars += f->space + chars_count((struct span){s.p, n});
        f->space = 0;
    }
    f->space += chars_count((struct span){s.p + n, s.n - n});
}

static int add_simple(struct dedup_text *t, struct span s, struct long_form *f, struct err *e)
{
    bool any = false;

    for (size_t at = 0, next; at < s.n; at += next) {
        struct span left = {s.p + at, s.n - at}, simple;

        left.n = shingler_cut(t->simple, left, PIECE, &next);
        TRY(shingler_simplify(t->simple, left, &simple, e));
        if (simple.n && any)
            add_piece(f, span_of(" "));
        add_piece(f, simple);
        any |= simple.n > 0;
    }
    return 0;
}

static int add_ccnet(struct dedup_text *t, struct span s, struct long_form *f)
{
    s = chars_strip(s);
    for (size_t at = 0, to; at < s.n; at = to) {
        for (to = at + PIECE < s.n ? at + PIECE : s.n; to < s.n && ((unsigned char)s.p[to] & 0xc0) == 0x80; to++)
            ;
        buf_clear(&t->ccnet);
        TRY(ccnet_form(s, at, to, &t->ccnet));
        add_piece(f, buf_span(&t->ccnet));
    }
    return 0;
}

static int long_key(struct dedup_text *t, struct span s, const struct dedup_keys *k, struct hash128 *key, struct err *e)
{
    struct long_form f = {.chars = 0};
    XXH128_hash_t h;

    XXH3_128bits_reset(&f.hash);
    TRY(k->form == DEDUP_SIMPLE ? add_simple(t, s, &f, e) : add_ccnet(t, s, &f));
    h = XXH3_128bits_digest(&f.hash);
    *key = f.chars >= (uint64_t)k->min ? key_of((struct hash128){h.low64, h.high64}) : (struct hash128){0, 0};
    return 0;
}

/* Of one unit. */
static int unit_key(struct dedup_text *t, struct span s, const struct dedup_keys *k, struct err *e)
{
    struct span form = {0};
    struct hash128 key;

    if (s.n >= LONG_UNIT && k->form != DEDUP_RAW && !k->forms) {
        TRY(long_key(t, s, k, &key, e));
    } else {
        TRY(form_of(t, s, k->form, &form, e));
        key = short_key(form, k);
    }
    return k->take(k->to, &key, form, e);
}

/* Of k->span units, of which this is number i and the last: t->form has the forms of those before it, which begin at start[] of
 * their number. */
static int span_key(struct dedup_text *t, struct span s, size_t i, size_t *start, const struct dedup_keys *k, struct err *e)
{
    size_t span = (size_t)k->span, first = (i + 1) % span;
    struct span form;
    struct hash128 key;

    if (i >= span && t->form.n > FORMS_MOST) {
        size_t gone = start[first];

        memmove(t->form.p, t->form.p + gone, t->form.n -= gone);
        for (size_t at = 0; at < span; at++)
            start[at] -= gone;
    }
    start[i % span] = t->form.n;
    TRY(form_of(t, s, k->form, &form, e));
    TRY(buf_put_span(&t->form, form));
    if (i + 1 >= span) {
        form = part_of(buf_span(&t->form), start[first], t->form.n);
        key = short_key(form, k);
        TRY(k->take(k->to, &key, form, e));
    }
    return buf_putc(&t->form, ' ');
}

int dedup_text_keys(struct dedup_text *t, struct span text, const struct dedup_keys *k, struct err *e)
{
    size_t start[DEDUP_SPAN_MOST] = {0};
    struct text_unit u;
    int rc = 0;

    TRY(dedup_text_begin(t, text, k->unit, e));
    while (k->span > 1 && t->n_ends &&
           is_blank(part_of(text, t->n_ends > 1 ? t->ends[t->n_ends - 2] : 0, t->ends[t->n_ends - 1])))
        t->n_ends--;
    buf_clear(&t->form);
    for (size_t i = 0; rc == 0 && dedup_text_next(t, k->unit, &u); i++) {
        struct span s = part_of(text, u.from, u.to);

        rc = k->span > 1 ? span_key(t, s, i, start, k, e) : unit_key(t, s, k, e);
    }
    if (text.n >= LONG_UNIT) {
        shingler_give_back(t->simple);
        buf_free(&t->ccnet);
    }
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for the parts of a text") : rc;
}

/* ---- what is left ---- */

int dedup_text_strike(struct dedup_text *t, struct span text, const struct dedup_strike *s, char *to, size_t *n,
                      uint64_t *struck, struct err *e)
{
    size_t goes = 0; /* units before that one */
    struct text_unit u;
    bool any = false;

    *n = 0;
    *struck = 0;
    TRY(dedup_text_begin(t, text, s->unit, e));
    for (size_t i = 0; dedup_text_next(t, s->unit, &u); i++) {
        size_t from = any || i == 0 ? u.gap : u.from;

        if (i < s->mark.n && s->mark.p[i])
            goes = i + (size_t)s->span;
        if (i < goes) {
            ++*struck;
            continue;
        }
        memmove(to + *n, text.p + from, u.to - from);
        *n += u.to - from;
        any = true;
    }
    if (s->unit != DEDUP_SENTENCE) {
        memmove(to + *n, text.p + t->gap, text.n - t->gap);
        *n += text.n - t->gap;
    } else if (*n) {
        struct span left = chars_lstrip((struct span){to, *n});

        memmove(to, left.p, left.n);
        *n = left.n;
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
    if ((text.p == d->text.p ? doc_shorten_text(d, text.n) : doc_set_string(d, "text", text)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a text of %zu bytes", text.n);
    return 0;
}

int dedup_struck_stats(const struct dedup_struck *all, const char *pieces, struct buf *json)
{
    TRY(json_put_count(json, "docs_shortened", all->docs));
    TRY(json_put_count(json, pieces, all->pieces));
    return json_put_count(json, "bytes_struck", all->bytes);
}
