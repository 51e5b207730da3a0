#include "curate/text/words.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "curate/text/words_rules.h"

/* An exception found across tokens: w[first .. first + count). */
struct word_match {
    uint32_t first, count;
    const struct special *special;
    bool kept;
};

void words_free(struct words *ws)
{
    free(ws->w);
    free(ws->trigger);
    free(ws->match);
    free(ws->cp);
    free(ws->at);
    free(ws->suffix);
    free(ws->spare);
    memset(ws, 0, sizeof *ws);
}

/* Room in w for what a chunk of so many bytes can become (and a little). */
static inline int reserve(struct words *ws, size_t bytes)
{
    return mem_grow(&ws->w, &ws->cap, ws->n + bytes + 2, sizeof *ws->w);
}

static inline void put(struct words *ws, uint32_t off, uint32_t len)
{
    struct word x = {off, len};
    ws->w[ws->n++] = x;
}

static void put_special(struct words *ws, uint32_t off, const struct special *s)
{
    for (const char *p = s->parts; *p; p++) {
        put(ws, off, words_part_len(*p));
        off += words_part_len(*p);
    }
}

/* ---- one chunk without white space, by all the rules ---- */

/* The exception that code points [a..b) of the chunk are; text is the whole text. */
static const struct special *special_at(const struct words *ws, const char *text, size_t a, size_t b)
{
    struct span s = {text + ws->at[a], ws->at[b] - ws->at[a]};

    if (s.n > SPECIAL_MAX || (ws->end - s.p >= 8 && !words_maybe_special(s.p, s.n)))
        return NULL;
    return words_special(s);
}

static int put_affix(struct words *ws, size_t a, size_t b, bool suffix)
{
    struct word x = {ws->at[a], ws->at[b] - ws->at[a]};

    if (!suffix) {
        put(ws, x.off, x.len);
        return 0;
    }
    TRY(mem_grow(&ws->suffix, &ws->cap_suffix, ws->n_suffix + 1, sizeof *ws->suffix));
    ws->suffix[ws->n_suffix++] = x;
    return 0;
}

/* Cuts affixes off [*a..*b) until an exception is left or nothing more comes off. */
static int split_affixes(struct words *ws, const char *text, size_t *pa, size_t *pb)
{
    size_t a = *pa, b = *pb, last = 0;

    while (a < b && b - a != last) {
        size_t pre, suf;

        if (special_at(ws, text, a, b))
            break;
        last = b - a;
        pre = words_prefix(ws->cp, a, b);
        if (pre && a + pre < b && special_at(ws, text, a + pre, b)) {
            TRY(put_affix(ws, a, a + pre, false));
            a += pre;
            break;
        }
        suf = a + pre < b ? words_suffix(ws->cp, a + pre, b) : 0;
        if (suf && b - suf > a && special_at(ws, text, a, b - suf)) {
            TRY(put_affix(ws, b - suf, b, true));
            b -= suf;
            break;
        }
        if (pre)
            TRY(put_affix(ws, a, a + pre, false));
        if (suf)
            TRY(put_affix(ws, b - suf, b, true));
        a += pre;
        b -= suf;
    }
    *pa = a;
    *pb = b;
    return 0;
}

static void split_infixes(struct words *ws, size_t a, size_t b, const uint16_t *class)
{
    size_t start = a;

    for (size_t i = a; i < b;) {
        size_t n = class[ws->cp[i]] & CHAR_INERT ? 0 : words_infix(ws->cp, a, b, i);

        if (n && i > a) { /* one in front counts as part of the word */
            if (i > start)
                put(ws, ws->at[start], ws->at[i] - ws->at[start]);
            put(ws, ws->at[i], ws->at[i + n] - ws->at[i]);
            start = i + n;
        }
        i += n ? n : 1;
    }
    if (start < b)
        put(ws, ws->at[start], ws->at[b] - ws->at[start]);
}

/* Remembers the tokens from `from` on at which an exception across tokens can begin or
 * have its second token: those that do not begin with an ASCII letter or digit. */
static int note_triggers(struct words *ws, const char *text, size_t from)
{
    TRY(mem_grow(&ws->trigger, &ws->cap_trigger, ws->n_trigger + (ws->n - from), sizeof *ws->trigger));
    for (size_t i = from; i < ws->n; i++) {
        unsigned char c = (unsigned char)text[ws->w[i].off];
        if (!((c | 32u) - 'a' < 26 || c - '0' + 0u < 10))
            ws->trigger[ws->n_trigger++] = (uint32_t)i;
    }
    return 0;
}

static int split_chunk(struct words *ws, const char *text, uint32_t from, uint32_t to,
                       const uint16_t *class)
{
    const struct special *s;
    size_t n = 0, a = 0, b, first = ws->n;
    uint16_t common = CHAR_INERT;

    TRY(reserve(ws, to - from));
    if (to - from + 1 > ws->cap_chunk) {
        size_t cap = ws->cap_chunk;
        TRY(mem_grow(&ws->cp, &cap, to - from + 1, sizeof *ws->cp));
        TRY(mem_grow(&ws->at, &ws->cap_chunk, to - from + 1, sizeof *ws->at));
    }
    for (uint32_t p = from; p < to;) {
        int len;
        ws->at[n] = p;
        ws->cp[n] = chars_decode(text + p, &len);
        common &= class[ws->cp[n++]];
        p += (uint32_t)len;
    }
    ws->at[n] = to;
    b = n;
    if (!common) {
        ws->n_suffix = 0;
        TRY(split_affixes(ws, text, &a, &b));
    }
    if (a < b) {
        s = special_at(ws, text, a, b);
        if (s)
            put_special(ws, ws->at[a], s);
        else if (common || words_url(ws->cp, a, b))
            put(ws, ws->at[a], ws->at[b] - ws->at[a]);
        else
            split_infixes(ws, a, b, class);
    }
    if (!common)
        while (ws->n_suffix) {
            struct word x = ws->suffix[--ws->n_suffix];
            put(ws, x.off, x.len);
        }
    return note_triggers(ws, text, first);
}

/* ---- exceptions across tokens ---- */

/* How spaCy sees two neighbours: together, one space between, or a token of white
 * space between. */
enum gap { GAP_NONE, GAP_SPACE, GAP_TOKEN };
static inline enum gap gap_before(const struct words *ws, const char *text, size_t i)
{
    uint32_t end = ws->w[i - 1].off + ws->w[i - 1].len, off = ws->w[i].off;

    return end == off ? GAP_NONE : off - end == 1 && text[end] == ' ' ? GAP_SPACE : GAP_TOKEN;
}

/* Does the cut of s stand at token i?  Single spaces between the tokens count as
 * standing there (spaCy matches tokens, not text). */
static uint32_t stands_at(const struct words *ws, const char *text, size_t i, const struct special *s)
{
    const char *t = s->text;
    uint32_t n = 0;

    for (const char *p = s->cut; *p; p++, n++) {
        unsigned len = words_part_len(*p);
        if (i + n >= ws->n || ws->w[i + n].len != len || memcmp(text + ws->w[i + n].off, t, len) != 0)
            return 0;
        if (n && gap_before(ws, text, i + n) == GAP_TOKEN)
            return 0;
        t += len;
    }
    return n;
}

static int find_matches_at(struct words *ws, const char *text, size_t i)
{
    const char *first = text + ws->w[i].off;
    const struct special *const *p;

    if (i + 1 == ws->n || ws->w[i].len > SPECIAL_MAX ||
        (ws->end - first >= 8 && !words_maybe_first(first, ws->w[i].len)))
        return 0;
    for (p = words_patterns((unsigned char)*first); *p; p++) {
        if (words_part_len((*p)->cut[0]) != ws->w[i].len ||
            (*p)->text[ws->w[i].len] != text[ws->w[i + 1].off]) /* most differ here */
            continue;
        struct word_match m = {.first = (uint32_t)i, .special = *p};
        m.count = stands_at(ws, text, i, *p);
        if (!m.count)
            continue;
        TRY(mem_grow(&ws->match, &ws->cap_match, ws->n_match + 1, sizeof m));
        ws->match[ws->n_match++] = m;
    }
    return 0;
}

static int by_length(const void *x, const void *y)
{
    const struct word_match *a = x, *b = y;

    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static int by_place(const void *x, const void *y)
{
    const struct word_match *a = x, *b = y;

    return a->first < b->first ? -1 : a->first > b->first;
}

/* Longest first, then leftmost; what is passed over also blocks its tokens, and a match
 * with a space inside blocks though it changes nothing. */
static int choose_matches(struct words *ws, const char *text)
{
    size_t bytes = ws->n / 8 + 1;
    unsigned char *seen = calloc(bytes, 1);

    if (!seen)
        return ERR_NOMEM;
    qsort(ws->match, ws->n_match, sizeof *ws->match, by_length);
    for (size_t k = 0; k < ws->n_match; k++) {
        struct word_match *m = &ws->match[k];
        size_t a = m->first, b = a + m->count;

        m->kept = !(seen[a / 8] >> a % 8 & 1) && !(seen[(b - 1) / 8] >> (b - 1) % 8 & 1);
        for (size_t i = a; i < b; i++) {
            seen[i / 8] |= (unsigned char)(1 << i % 8);
            if (i > a && gap_before(ws, text, i) != GAP_NONE)
                m->kept = false;
        }
    }
    free(seen);
    qsort(ws->match, ws->n_match, sizeof *ws->match, by_place);
    return 0;
}

static int join_exceptions(struct words *ws, const char *text)
{
    size_t n = ws->n, done = 0, grown = 0;
    struct word *old = ws->w;

    ws->n_match = 0;
    for (size_t k = 0; k < ws->n_trigger; k++) {
        size_t i = ws->trigger[k];
        unsigned char c = i ? (unsigned char)text[ws->w[i - 1].off] : 0;

        if (i && ((c | 32u) - 'a' < 26 || c - '0' + 0u < 10))
            TRY(find_matches_at(ws, text, i - 1));
        TRY(find_matches_at(ws, text, i));
    }
    if (!ws->n_match)
        return 0;
    TRY(choose_matches(ws, text));
    for (size_t k = 0; k < ws->n_match; k++)
        grown += strlen(ws->match[k].special->parts);
    TRY(mem_grow(&ws->spare, &ws->cap_spare, n + grown + 2, sizeof *ws->spare));
    ws->w = ws->spare;
    ws->n = 0;
    for (size_t k = 0; k < ws->n_match; k++) {
        const struct word_match *m = &ws->match[k];
        if (!m->kept)
            continue;
        memcpy(ws->w + ws->n, old + done, (m->first - done) * sizeof *old);
        ws->n += m->first - done;
        put_special(ws, old[m->first].off, m->special);
        done = m->first + m->count;
    }
    memcpy(ws->w + ws->n, old + done, (n - done) * sizeof *old);
    ws->n += n - done;
    ws->spare = old;
    n = ws->cap;
    ws->cap = ws->cap_spare;
    ws->cap_spare = n;
    return 0;
}

/* ---- the whole text ---- */

/* Length of the run of ASCII letters at p. */
static inline size_t letters(const char *p, const char *end)
{
    size_t n = 0;
#ifdef __SSE2__
    while (end - p - (ptrdiff_t)n >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + n));
        __m128i y = _mm_sub_epi8(_mm_or_si128(x, _mm_set1_epi8(32)), _mm_set1_epi8('a'));
        unsigned m = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(y, _mm_set1_epi8(25)), y));
        if (m != 0xFFFF)
            return n + (size_t)__builtin_ctz(~m);
        n += 16;
    }
#endif
    while (p + n < end && ((unsigned char)p[n] | 32u) - 'a' < 26)
        n++;
    return n;
}

static inline bool is_low(char c) { return (unsigned char)c - 'a' + 0u < 26; }

/* A chunk that is a word of letters alone, or one with a mark behind it, as most are.
 * False: it is something else (or may be an exception). */
static inline bool split_plain(struct words *ws, const char *text, const char *p, size_t n,
                               const char *end)
{
    uint32_t off = (uint32_t)(p - text);
    char c, d;

    if (end - p < 32 || (size_t)(end - p) < n + 2) /* looks at what is behind the word */
        return false;
    c = p[n];
    if (c == ' ' || c == '\n') {
        if (n <= SPECIAL_MAX && words_maybe_special(p, n))
            return false;
        put(ws, off, (uint32_t)n);
        return true;
    }
    d = p[n + 1];
    if (d != ' ' && d != '\n')
        return false;
    if (c != ',' && c != '?' && c != '!' && !(c == '.' && is_low(p[n - 1])))
        return false;
    if (n <= SPECIAL_MAX && (words_maybe_special(p, n) || words_maybe_special(p, n + 1)))
        return false;
    put(ws, off, (uint32_t)n);
    if (c == '.')
        ws->trigger[ws->n_trigger++] = (uint32_t)ws->n;
    put(ws, off + (uint32_t)n, 1);
    return true;
}

int words_split(struct words *ws, struct span text, struct err *e)
{
    const char *p = text.p, *end = text.n ? text.p + text.n : text.p;
    const uint16_t *class = chars_classes();
    int n = 1;

    ws->n = ws->n_trigger = 0;
    ws->end = end;
    if (text.n >= 1u << 30)
        return err_set(e, ERR_LIMIT, "text of %zu bytes: the word splitter takes less than 2^30", text.n);
    if (!class || !words_rules_init())
        return err_set(e, ERR_NOMEM, "no memory for the tables of words");
    while (p < end) {
        const char *q;
        size_t k;

        if (*p == ' ' || *p == '\n') {
            p++;
            continue;
        }
        if (reserve(ws, 32) < 0 ||
            mem_grow(&ws->trigger, &ws->cap_trigger, ws->n_trigger + 1, sizeof *ws->trigger) < 0)
            goto nomem;
        k = letters(p, end);
        if (!k && (unsigned char)*p - '0' + 0u < 10) { /* a number by itself */
            for (q = p + 1; q < end && (unsigned char)*q - '0' + 0u < 10;)
                q++;
            if (q < end && (*q == ' ' || *q == '\n')) {
                put(ws, (uint32_t)(p - text.p), (uint32_t)(q - p));
                p = q;
                continue;
            }
        }
        if (k && split_plain(ws, text.p, p, k, end)) {
            p = text.p + ws->w[ws->n - 1].off + ws->w[ws->n - 1].len;
            continue;
        }
        for (q = p + k; q < end && !chars_space_at(q, end, &n); q += n)
            if ((unsigned char)*q >= 0x80)
                n = (unsigned char)*q < 0xE0 ? 2 : (unsigned char)*q < 0xF0 ? 3 : 4;
        if (q == p) {
            p += n;
            continue;
        }
        if (split_chunk(ws, text.p, (uint32_t)(p - text.p), (uint32_t)(q - text.p), class) < 0)
            goto nomem;
        p = q;
    }
    if (join_exceptions(ws, text.p) < 0)
        goto nomem;
    return 0;
nomem:
    return err_set(e, ERR_NOMEM, "no memory for the words of a text");
}

/* ---- sentences ---- */

size_t words_sentences(const struct words *ws, struct span text, uint32_t *ends)
{
    const uint16_t *class = chars_classes();
    size_t count = 0;
    uint32_t end = 0;
    bool seen = false;

    for (size_t i = 0; i < ws->n; i++) {
        struct span s = {text.p + ws->w[i].off, ws->w[i].len};
        bool punct = true, stop, cut;
        int n;

        stop = class[chars_decode(s.p, &n)] & CHAR_SENTENCE_END && (size_t)n == s.n;
        /* a token of white space begins a sentence like any other */
        cut = seen && gap_before(ws, text.p, i) == GAP_TOKEN;
        if (!cut && seen && !stop) {
            for (size_t k = 0; k < s.n && punct; k += (size_t)n)
                punct = class[chars_decode(s.p + k, &n)] & CHAR_PUNCT;
            cut = !punct;
        }
        if (cut && ends)
            ends[count] = end;
        count += cut;
        seen = (seen && !cut) || stop;
        end = ws->w[i].off + ws->w[i].len;
    }
    if (text.n - end == 1 && text.p[end] == ' ' && ws->n)
        text.n = end; /* the last word's own space */
    if (seen && text.n > end) {
        if (ends)
            ends[count] = end;
        count++;
    }
    if (ends)
        ends[count] = (uint32_t)text.n;
    return count + 1;
}

size_t words_count_sentences(const struct words *ws, struct span text)
{
    return words_sentences(ws, text, NULL);
}
