/* Splitters, 64 bytes at a time: a bit for each byte says whether a piece begins there, from
 * class masks by shifts and additions.  All bytes of a character have its class, so a run of
 * letters is a run of bits whatever their lengths; what asks for single characters (the last of
 * white space, a lone symbol) asks at their first bytes.
 *
 * A block of 64 is decided with the masks of the next one at hand; behind the end of the text
 * spaces seem to go on for ever.  What the bits cannot decide (bytes that are no UTF-8, runs that are
 * rare and long) ends the run at the last sure beginning; the caller cuts on from there by
 * the exact functions. */
#include <stdbool.h>
#include <string.h>

#include "base/block.h"
#include "tokenize/split_run.h"
#include "tokenize/ucd.h"

/* ---- classes ---- */

/* Of the patterns with cases (o200k), letter means letters and marks. */
struct masks {
    const uint8_t *p; /* the bytes, and AROUND more */
    bits letter, upper, lower, other, mark, number, space, blank, newline, sp, quote, slash;
    bits high, start, long2, long3, long4; /* outside ASCII; first bytes: all, and by the characters' lengths */
    bits bad;
};

/* A character that goes on in the next block. */
struct straddle {
    unsigned left; /* bytes */
    uint8_t class;
};

enum { AROUND = 8 };

/* The masks that classes outside ASCII add to. */
static inline void add_classes(struct masks *m, struct block b, bool cased)
{
    m->number |= block_any(b, UCD_NUMBER) & m->high;
    m->space |= block_any(b, UCD_SPACE) & m->high;
    m->letter |= block_any(b, cased ? UCD_LETTER | UCD_MARK : UCD_LETTER) & m->high;
    if (cased) {
        m->upper |= block_any(b, UCD_UPPER) & m->high;
        m->lower |= block_any(b, UCD_LOWER) & m->high;
        m->other = block_any(b, UCD_CASELESS | UCD_MARK) & m->high;
        m->mark = block_any(b, UCD_MARK) & m->high;
    }
}

#if defined(__AVX512VBMI__)
/* The classes of the code points from 64 * block on. */
static inline const uint8_t *class_block(uint32_t block)
{
    return &ucd_blocks[ucd_index[block >> 1]][(block & 1) << 6];
}

/* The class of each of the 64 code points whose characters of n bytes differ in their last byte only, where p
 * is one of them. */
static inline const uint8_t *classes_of(const uint8_t *p, unsigned n)
{
    uint32_t block = n == 2   ? p[0] & 0x1F
                     : n == 3 ? (p[0] & 0xFu) << 6 | (p[1] & 0x3F)
                              : (p[0] & 7u) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3F);
    return class_block(block);
}

/* Classes of the characters of a length that begin at `left`: those with the same bytes but the last together. */
static inline __m512i add_length(__m512i class, const uint8_t *p, bits left, unsigned n, const __m512i byte[4])
{
    while (left) {
        const uint8_t *c = p + __builtin_ctzll(left);
        bits same = left;
        for (unsigned k = 0; k + 1 < n; k++)
            same = _mm512_mask_cmpeq_epi8_mask(same, byte[k], _mm512_set1_epi8((char)c[k]));
        class = _mm512_mask_permutexvar_epi8(class, same, byte[n - 1], _mm512_loadu_si512(classes_of(c, n)));
        left &= ~same;
    }
    return class;
}

static inline bits is_byte(__m512i v, int c)
{
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)c));
}

/* The bytes k of 0..63 come from where byte k - n was. */
static inline __m512i moved_up(__m512i v, bits to, int n)
{
    __m512i from = _mm512_set_epi8(63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43,
                                   42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22,
                                   21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_maskz_permutexvar_epi8(to, _mm512_sub_epi8(from, _mm512_set1_epi8((char)n)), v);
}

/* Adds what is outside ASCII. */
static __attribute__((noinline)) void classify_high(struct masks *m, struct straddle *t, bool cased)
{
    const __m512i v[4] = {_mm512_loadu_si512(m->p), _mm512_loadu_si512(m->p + 1), _mm512_loadu_si512(m->p + 2),
                          _mm512_loadu_si512(m->p + 3)};
    bits covered = ((bits)1 << t->left) - 1, one, two, three, starts, alike, kana, bad;
    bits more1 = block_in((struct block){v[1]}, (char)0x80, 0x40), more2 = block_in((struct block){v[2]}, (char)0x80, 0x40);
    struct block b = {v[0]};
    __m512i class = _mm512_maskz_set1_epi8(covered, (char)t->class);

    m->long2 = block_in(b, (char)0xC2, 30) & more1;
    m->long3 = block_in(b, (char)0xE0, 16) & more1 & more2;
    /* Not the shortest form, or a surrogate */
    m->long3 &= ~(is_byte(v[0], 0xE0) & ~block_in((struct block){v[1]}, (char)0xA0, 0x20)) &
                ~(is_byte(v[0], 0xED) & block_in((struct block){v[1]}, (char)0xA0, 0x20));
    m->long4 = block_in(b, (char)0xF0, 5) & more1 & more2;
    if (m->long4) {
        m->long4 &= block_in((struct block){v[3]}, (char)0x80, 0x40);
        m->long4 &= ~(is_byte(v[0], 0xF0) & block_in((struct block){v[1]}, (char)0x80, 0x10)) &
                    ~(is_byte(v[0], 0xF4) & ~block_in((struct block){v[1]}, (char)0x80, 0x10));
    }
    starts = m->long2 | m->long3 | m->long4;
    one = starts << 1;
    two = (m->long3 | m->long4) << 2;
    three = m->long4 << 3;
    m->start &= ~(covered | one | two | three);
    bad = m->high & ~(covered | starts | one | two | three);
    m->bad = bad ? m->high & -(bad & -bad) : 0;

    /* U+4000..4DBF, U+4E00..9FFF, U+B000..CFFF: ideographs and Hangul */
    alike = m->long3 & (block_in(b, (char)0xE4, 6) | block_in(b, (char)0xEB, 2));
    alike &= ~(is_byte(v[0], 0xE4) & is_byte(v[1], 0xB7));
    class = _mm512_mask_mov_epi8(class, alike, _mm512_set1_epi8(UCD_CASELESS));
    /* U+3000..30FF: Japanese and what stands between ideographs has most of these four. */
    kana = m->long3 & is_byte(v[0], 0xE3) & block_in((struct block){v[1]}, (char)0x80, 4);
    if (kana)
        for (int k = 0; k < 4; k++)
            class = _mm512_mask_permutexvar_epi8(class, kana & is_byte(v[1], 0x80 + k), v[2],
                                                 _mm512_loadu_si512(class_block(0x3000 / 64 + (uint32_t)k)));
    class = add_length(class, m->p, m->long2, 2, v);
    class = add_length(class, m->p, m->long3 & ~(alike | kana), 3, v);
    class = add_length(class, m->p, m->long4, 4, v);
    class = _mm512_or_si512(class, moved_up(class, one, 1)); /* what was covered by the block before stays */
    class = _mm512_or_si512(class, moved_up(class, two, 1));
    class = _mm512_or_si512(class, moved_up(class, three, 1));
    add_classes(m, (struct block){class}, cased);
    t->left = 0;
    if (m->high >> 63 && starts) {
        unsigned i = 63 - (unsigned)__builtin_clzll(starts);
        unsigned end = i + 2 + (unsigned)(m->long3 >> i & 1) + 2 * (unsigned)(m->long4 >> i & 1);
        uint8_t all[64];
        _mm512_storeu_si512(all, class);
        t->left = end > 64 ? end - 64 : 0;
        t->class = all[i];
    }
}
#else
/* The class of the well-formed character at p and its length; 0: there is none. */
static inline unsigned decode(const uint8_t *p, uint8_t *class)
{
    uint32_t w, cp;

    memcpy(&w, p, 4);
    if (p[0] < 0xE0) {
        *class = ucd_blocks[ucd_index[(w & 0x1F) >> 1]][(w & 1) << 6 | (w >> 8 & 0x3F)];
        return p[0] >= 0xC2 && (w & 0xC000) == 0x8000 ? 2 : 0;
    }
    if (p[0] < 0xF0) {
        cp = (w & 0xF) << 12 | (w >> 2 & 0xFC0) | (w >> 16 & 0x3F);
        *class = (uint8_t)ucd_class(cp);
        return (w & 0xC0C000) == 0x808000 && cp >= 0x800 && (cp & 0xF800) != 0xD800 ? 3 : 0;
    }
    cp = (w & 7) << 18 | (w << 4 & 0x3F000) | (w >> 10 & 0xFC0) | (w >> 24 & 0x3F);
    if (p[0] > 0xF4 || (w & 0xC0C0C000) != 0x80808000 || cp < 0x10000 || cp > 0x10FFFF)
        return 0;
    *class = (uint8_t)ucd_class(cp);
    return 4;
}

/* Adds what is outside ASCII. */
static __attribute__((noinline)) void classify_high(struct masks *m, struct straddle *t, bool cased)
{
    uint8_t class[64 + AROUND];
    bits covered = ((bits)1 << t->left) - 1, left = m->high & ~covered;

    memset(class, t->class, 4);
    t->left = 0;
    m->start &= ~covered;
    while (left) {
        unsigned i = (unsigned)__builtin_ctzll(left), n = decode(m->p + i, &t->class);
        bits whole;
        if (n == 0) {
            m->bad = left;
            break;
        }
        memset(class + i, t->class, 4);
        whole = (((bits)1 << n) - 1) << i;
        left &= ~whole;
        m->start &= ~whole | (bits)1 << i;
        m->long2 |= (bits)(n == 2) << i;
        m->long3 |= (bits)(n == 3) << i;
        m->long4 |= (bits)(n == 4) << i;
        t->left = i + n > 64 ? i + n - 64 : 0;
    }
    add_classes(m, block_load(class), cased);
}
#endif

static inline struct masks classify(const uint8_t *p, struct straddle *t, bool cased)
{
    struct block b = block_load(p);
    struct masks m = {.p = p, .start = ~(bits)0};

    m.upper = block_in(b, 'A', 26);
    m.lower = block_in(b, 'a', 26);
    m.letter = m.upper | m.lower;
    m.number = block_in(b, '0', 10);
    m.sp = block_eq(b, ' ');
    m.space = m.sp | block_in(b, '\t', 5);
    m.newline = block_eq(b, '\n') | block_eq(b, '\r');
    m.quote = block_eq(b, '\'');
    m.slash = cased ? block_eq(b, '/') : 0;
    m.high = block_high(b);
    if (m.high)
        classify_high(&m, t, cased);
    m.blank = m.space & ~m.newline;
    return m;
}

/* What stood before a block; zero where a piece begins at its first byte.  Bit 0 speaks of
 * the byte before, but for the two triples. */
struct carry {
    bits letter, lower, other, number, symbol, space, sp, blank, newline;
    bits lone;         /* a symbol that no symbol and no space precedes */
    bits absorbing;    /* a symbol, or a newline that symbols took */
    bits taken;        /* a newline that symbols took */
    bits numbers;      /* the three bytes before: numbers? (bit 2: the nearest) */
    bits thirds;       /* the three bytes before: did digits begin a piece there? */
    bits add, drop;    /* beginnings to add to this block and to drop from it */
    size_t suffix_end; /* where the last contraction behind a word ended */
};

/* A block and the one behind it. */
struct view {
    size_t at; /* its place in the text */
    struct masks m, next;
};

static inline bits after(bits x, bits carry)
{
    return x << 1 | carry;
}
static inline bits before(bits x, bits next)
{
    return x >> 1 | next << 63;
}

/* Which characters, by their first bytes, one of x follows. */
static inline bits followed(const struct masks *m, bits x, bits next)
{
    bits f = before(x, next);

    if (m->high)
        f = (f & ~(m->long2 | m->long3 | m->long4)) | (m->long2 & (x >> 2 | next << 62)) |
            (m->long3 & (x >> 3 | next << 61)) | (m->long4 & (x >> 4 | next << 60));
    return f;
}

/* The length of the contraction that begins with the apostrophe at byte i of the block,
 * or 0.  fold: 0x20 for upper case too, and U+017F, which folds to s. */
static inline unsigned contraction(const struct view *v, unsigned i, unsigned fold)
{
    unsigned a = v->m.p[i + 1] | fold, b = v->m.p[i + 2] | fold;

    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (fold && v->m.p[i + 1] == 0xC5 && v->m.p[i + 2] == 0xBF)
        return 3;
    return (a == 'l' && b == 'l') || (a == 'v' && b == 'e') || (a == 'r' && b == 'e') ? 3 : 0;
}

/* Sets a bit of this block or of the next one. */
static inline void set_bit(unsigned i, bits *here, bits *next)
{
    if (i < 64)
        *here |= (bits)1 << i;
    else
        *next |= (bits)1 << (i - 64);
}

/* A contraction of n bytes at byte i: no piece begins inside (from byte i + inside on),
 * one begins behind. */
static inline void cut_contraction(unsigned i, unsigned inside, unsigned n, bits *starts, struct carry *c)
{
    bits here = 0;

    for (unsigned j = i + inside; j < i + n; j++)
        set_bit(j, &here, &c->drop);
    *starts &= ~here;
    set_bit(i + n, starts, &c->add);
}

/* Applies what the block before left over, then the contractions that begin a piece. */
static inline bits cut_contractions(const struct view *v, struct carry *c, bits s, unsigned fold)
{
    s = (s | c->add) & ~c->drop;
    c->add = c->drop = 0;
    for (bits q = s & v->m.quote & before(v->m.letter, v->next.letter); q; q &= q - 1) {
        unsigned i = (unsigned)__builtin_ctzll(q), n = contraction(v, i, fold);
        if (n)
            cut_contraction(i, 1, n, &s, c);
    }
    return s;
}

/* The same for contractions that end a word (o200k): one at most for each. */
static inline bits cut_suffixes(const struct view *v, struct carry *c, bits s, bits behind_letter)
{
    s = (s | c->add) & ~c->drop;
    c->add = c->drop = 0;
    for (bits q = v->m.quote & behind_letter & before(v->m.letter, v->next.letter); q; q &= q - 1) {
        unsigned i = (unsigned)__builtin_ctzll(q), n;
        if (v->at + i == c->suffix_end || (n = contraction(v, i, 0x20)) == 0)
            continue;
        cut_contraction(i, 0, n, &s, c);
        c->suffix_end = v->at + i + n;
    }
    return s;
}

static inline bits starts_gpt2(const struct view *v, struct carry *c)
{
    const struct masks m = v->m;
    bits symbol = ~(m.letter | m.number | m.space);
    bits words = (m.letter & ~after(m.letter, c->letter)) | (m.number & ~after(m.number, c->number)) |
                 (symbol & ~after(symbol, c->symbol));
    /* A space goes with what follows; of a run of white space, all but the last is a piece. */
    bits s = (words & ~after(m.sp, c->sp)) |
             (m.space & m.start & ~(after(m.space, c->space) & followed(&v->m, m.space, v->next.space)));

    c->letter = m.letter >> 63;
    c->number = m.number >> 63;
    c->symbol = symbol >> 63;
    c->sp = m.sp >> 63;
    c->space = m.space >> 63;
    return cut_contractions(v, c, s, 0);
}

/* Runs of digits, which begin at the bits of starts, in groups of three. */
static inline bits in_threes(bits number, bits starts, struct carry *c)
{
    bits n1 = number << 1 | c->numbers >> 2, n2 = number << 2 | c->numbers >> 1, n3 = number << 3 | c->numbers;
    bits full = number & n1 & n2 & n3, all = starts;

    for (bits t = (starts << 3 | c->thirds) & full; t; t = t << 3 & full)
        all |= t;
    c->numbers = number >> 61;
    c->thirds = all >> 61;
    return all;
}

/* Numbers outside ASCII: those by themselves are pieces; *stop: those in a row with others. */
static inline bits high_numbers(const struct view *v, const struct carry *c, bits *stop)
{
    bits high = v->m.number & v->m.high & v->m.start;
    bits in_row = high & (after(v->m.number, c->number) | followed(&v->m, v->m.number, v->next.number));

    *stop |= in_row;
    return high & ~in_row;
}

/* Words, numbers and symbols of cl100k and o200k: a word takes the blank or the lone symbol
 * before it, symbols take the space before them. */
static inline bits starts_words(const struct view *v, struct carry *c, bits symbol, bits *stop, bool each_digit)
{
    const struct masks *m = &v->m;
    bits lone = symbol & ~after(symbol, c->symbol) & ~after(m->sp, c->sp), whole = lone, words, numbers;

    if (m->high) /* all its bytes */
        for (int i = 0; i < 3; i++)
            whole |= after(whole, c->lone) & ~m->start;
    words = m->letter & ~after(m->letter | m->blank | whole, c->letter | c->blank | c->lone);
    if (each_digit) {
        numbers = m->number & m->start;
    } else {
        bits ascii = m->number & ~m->high;
        numbers = in_threes(ascii, ascii & ~after(m->number, c->number), c);
        if (m->number & m->high)
            numbers |= high_numbers(v, c, stop);
    }
    c->letter = m->letter >> 63;
    c->number = m->number >> 63;
    c->symbol = symbol >> 63;
    c->sp = m->sp >> 63;
    c->blank = m->blank >> 63;
    c->lone = whole >> 63;
    return words | numbers | lone;
}

/* Which of the blanks in edge, each behind a newline, begin a piece: those whose run no
 * other newline follows.  *stop: where that cannot be seen from here. */
static inline bits starts_behind_newlines(const struct view *v, bits edge, bits *stop)
{
    bits s = 0, behind, one;

    if (!__builtin_add_overflow(v->m.blank, edge, &behind) &&
        !(behind & ~v->m.blank & (v->m.newline | v->m.bad)))
        return edge;
    for (; edge; edge &= edge - 1) {
        bits newline = v->m.newline, unknown = v->m.bad;
        one = edge & -edge;
        if (__builtin_add_overflow(v->m.blank, one, &behind)) { /* the run goes on in the next block */
            behind = ~v->next.blank & (v->next.blank + 1);
            newline = v->next.newline;
            unknown = v->next.bad | (behind == 0 ? ~(bits)0 : 0);
            behind = behind ? behind : 1;
        } else {
            behind &= ~v->m.blank;
        }
        if (behind & unknown)
            *stop |= one;
        else if (!(behind & newline))
            s |= one;
    }
    return s;
}

/* White space of cl100k and o200k.  *behind_taken: the bytes right behind newlines that
 * symbols took. */
static inline bits starts_space(const struct view *v, struct carry *c, bits symbol, bits *behind_taken, bits *stop)
{
    const struct masks m = v->m;
    /* Adding a bit to the first of a run of newlines clears the run: so it is found. */
    bits first = m.newline & after(symbol, c->absorbing), taken = m.newline & ~(m.newline + first);
    bits run = m.space & ~taken;
    bits s = (run & ~after(run, c->space)) | (m.blank & m.start & ~followed(&v->m, m.space, v->next.space));
    bits edge = m.blank & after(m.newline, c->newline);

    if (edge)
        s |= starts_behind_newlines(v, edge, stop);
    *behind_taken = after(taken, c->taken);
    c->taken = taken >> 63;
    c->absorbing = (symbol | taken) >> 63;
    c->space = run >> 63;
    c->newline = m.newline >> 63;
    return s;
}

static inline bits starts_cl100k(const struct view *v, struct carry *c, bits *stop, bool each_digit)
{
    bits symbol = ~(v->m.letter | v->m.number | v->m.space), behind_taken;
    bits s = starts_words(v, c, symbol, stop, each_digit);

    s |= starts_space(v, c, symbol, &behind_taken, stop);
    return cut_contractions(v, c, s, 0x20);
}

static inline bits starts_o200k(const struct view *v, struct carry *c, bits *stop, bool each_digit, bool suffix)
{
    bits symbol = ~(v->m.letter | v->m.number | v->m.space), behind_taken;
    bits behind_letter = after(v->m.letter, c->letter);
    bits s = v->m.upper & after(v->m.lower, c->lower);

    /* Capitals behind letters without case, and marks behind symbols: what begins there hangs on
     * what stands further off. */
    *stop |= (v->m.upper & after(v->m.other, c->other)) | (v->m.mark & after(symbol, c->symbol));
    c->lower = v->m.lower >> 63;
    c->other = v->m.other >> 63;
    s |= starts_words(v, c, symbol, stop, each_digit);
    s |= starts_space(v, c, symbol, &behind_taken, stop);
    *stop |= v->m.slash & behind_taken; /* symbols take these slashes too: too rare for bits */
    return suffix ? cut_suffixes(v, c, s, behind_letter) : s;
}

/* ---- the run ---- */

enum pattern { GPT2, CL100K, QWEN2, O200K, TEKKEN };

/* The masks of the 64 bytes at `at`. */
static inline struct masks classify_at(const uint8_t *text, size_t n, size_t at, uint8_t tail[64 + AROUND],
                                       struct straddle *t, bool cased)
{
    if (at + 64 + AROUND <= n)
        return classify(text + at, t, cased);
    memset(tail, ' ', 64 + AROUND);
    if (at < n)
        memcpy(tail, text + at, n - at);
    return classify(tail, t, cased);
}

/* A beginning is sure when the four bytes behind it are known.  Returns how many bits of the
 * block are sure (64: all), and where the trouble is. */
static inline unsigned trusted(const struct view *v, bits stop, size_t *trouble)
{
    unsigned limit = 64, h;

    if (!(stop | v->m.bad | (v->next.bad & 15)))
        return 64;
    if (v->next.bad & 15) {
        h = (unsigned)__builtin_ctzll(v->next.bad);
        limit = 60 + h;
        *trouble = v->at + 64 + h;
    }
    if (v->m.bad) {
        h = (unsigned)__builtin_ctzll(v->m.bad);
        limit = h < 4 ? 0 : h - 4;
        *trouble = v->at + h;
    }
    if (stop && (h = (unsigned)__builtin_ctzll(stop)) < limit) {
        limit = h;
        *trouble = v->at + h;
    }
    return limit;
}

static inline void run(const uint8_t *text, size_t n, struct split_run *r, enum pattern pattern)
{
    bool cased = pattern == O200K || pattern == TEKKEN;
    uint8_t tails[2][64 + AROUND];
    struct straddle t = {0};
    struct carry c = {.suffix_end = SIZE_MAX};
    struct view v = {.at = r->at, .next = classify_at(text, n, r->at, tails[1], &t, cased)};
    uint32_t *out = r->ends + r->n, *end = r->ends + r->max - SPLIT_RUN_ROOM;
    bits known = ~(bits)1; /* the run's own beginning is no end */

    r->stop = 0;
    for (int i = 0; out <= end; v.at += 64, i ^= 1) {
        bits s, stop = 0;
        unsigned sure, left = n - v.at < 64 ? (unsigned)(n - v.at) : 64;

        v.m = v.next;
        v.next = classify_at(text, n, v.at + 64, tails[i], &t, cased);
        s = pattern == GPT2 ? starts_gpt2(&v, &c)
            : cased         ? starts_o200k(&v, &c, &stop, pattern == TEKKEN, pattern == O200K)
                            : starts_cl100k(&v, &c, &stop, pattern == QWEN2);
        s &= known;
        known = ~(bits)0;
        sure = trusted(&v, stop, &r->stop);
        if (sure < left) {
            out = put_positions(out, s & (((bits)1 << sure) - 1), (uint32_t)v.at);
            r->stop++;
            break;
        }
        if (left < 64 || v.at + 64 == n) { /* the end of the text is one of a piece */
            out = put_positions(out, left < 64 ? s & (((bits)1 << left) - 1) : s, (uint32_t)v.at);
            *out++ = (uint32_t)n;
            break;
        }
        out = put_positions(out, s, (uint32_t)v.at);
    }
    r->n = (size_t)(out - r->ends);
    if (r->n)
        r->at = out[-1];
}

void ISA_FN(split_run_gpt2)(const uint8_t *text, size_t n, struct split_run *r)
{
    run(text, n, r, GPT2);
}

void ISA_FN(split_run_cl100k)(const uint8_t *text, size_t n, struct split_run *r)
{
    run(text, n, r, CL100K);
}

void ISA_FN(split_run_qwen2)(const uint8_t *text, size_t n, struct split_run *r)
{
    run(text, n, r, QWEN2);
}

void ISA_FN(split_run_o200k)(const uint8_t *text, size_t n, struct split_run *r)
{
    run(text, n, r, O200K);
}

void ISA_FN(split_run_tekken)(const uint8_t *text, size_t n, struct split_run *r)
{
    run(text, n, r, TEKKEN);
}
