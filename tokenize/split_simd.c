/* Splitters for ASCII, 64 bytes at a time: a bit for each byte says whether a piece
 * begins there, from class masks by shifts and additions.
 *
 * A block of 64 is decided with the masks of the next one at hand.  What the bits cannot
 * decide (a byte outside ASCII, the end of the text, runs that are rare and long) ends the run at
 * the last sure beginning; the caller cuts on from there by the exact functions. */
#include <stdbool.h>
#include <string.h>

#include "base/block.h"
#include "tokenize/split_run.h"

/* ---- classes ---- */

struct masks {
    bits letter, upper, number, space, blank, newline, sp, quote, slash, high;
};

static inline struct masks classify(const uint8_t *p, bool cased)
{
    struct block b = block_load(p);
    struct masks m;

    m.upper = block_in(b, 'A', 26);
    m.letter = m.upper | block_in(b, 'a', 26);
    m.number = block_in(b, '0', 10);
    m.sp = block_eq(b, ' ');
    m.space = m.sp | block_in(b, '\t', 5);
    m.newline = block_eq(b, '\n') | block_eq(b, '\r');
    m.blank = m.space & ~m.newline;
    m.quote = block_eq(b, '\'');
    m.slash = cased ? block_eq(b, '/') : 0;
    m.high = block_high(b);
    return m;
}

/* What stood before a block; zero where a piece begins at its first byte.  Bit 0 speaks of
 * the byte before, but for the two triples. */
struct carry {
    bits letter, lower, number, symbol, space, sp, blank, newline;
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
    const uint8_t *p; /* the block's bytes */
    size_t at, left;  /* its place in the text, and the bytes from there to the end */
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

/* The length of the contraction that begins with the apostrophe at byte i of the block,
 * or 0.  Near the end of the text, where nothing is trusted, it does not look. */
static inline unsigned contraction(const struct view *v, unsigned i, unsigned fold)
{
    unsigned a, b;

    if (i + 2 >= v->left)
        return 0;
    a = v->p[i + 1] | fold;
    b = v->p[i + 2] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
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
             (m.space & ~(after(m.space, c->space) & before(m.space, v->next.space)));

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

/* Words, numbers and symbols of cl100k and o200k: a word takes the blank or the lone symbol
 * before it, symbols take the space before them. */
static inline bits starts_words(const struct masks *m, struct carry *c, bits symbol, bool each_digit)
{
    bits lone = symbol & ~after(symbol, c->symbol) & ~after(m->sp, c->sp);
    bits words = m->letter & ~after(m->letter | m->blank | lone, c->letter | c->blank | c->lone);
    bits numbers = each_digit ? m->number : in_threes(m->number, m->number & ~after(m->number, c->number), c);

    c->letter = m->letter >> 63;
    c->number = m->number >> 63;
    c->symbol = symbol >> 63;
    c->sp = m->sp >> 63;
    c->blank = m->blank >> 63;
    c->lone = lone >> 63;
    return words | numbers | lone;
}

/* Which of the blanks in edge, each behind a newline, begin a piece: those whose run no
 * other newline follows.  *stop: where that cannot be seen from here. */
static inline bits starts_behind_newlines(const struct view *v, bits edge, bits *stop)
{
    bits s = 0, behind, one;

    if (!__builtin_add_overflow(v->m.blank, edge, &behind) &&
        !(behind & ~v->m.blank & (v->m.newline | v->m.high)))
        return edge;
    for (; edge; edge &= edge - 1) {
        bits newline = v->m.newline, high = v->m.high;
        one = edge & -edge;
        if (__builtin_add_overflow(v->m.blank, one, &behind)) { /* the run goes on in the next block */
            behind = ~v->next.blank & (v->next.blank + 1);
            newline = v->next.newline;
            high = v->next.high | (behind == 0 ? ~(bits)0 : 0);
            behind = behind ? behind : 1;
        } else {
            behind &= ~v->m.blank;
        }
        if (behind & high)
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
    bits s = (run & ~after(run, c->space)) | (m.blank & ~before(m.space, v->next.space));
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
    bits s = starts_words(&v->m, c, symbol, each_digit);

    s |= starts_space(v, c, symbol, &behind_taken, stop);
    return cut_contractions(v, c, s, 0x20);
}

static inline bits starts_o200k(const struct view *v, struct carry *c, bits *stop, bool each_digit, bool suffix)
{
    bits symbol = ~(v->m.letter | v->m.number | v->m.space), behind_taken;
    bits lower = v->m.letter & ~v->m.upper, behind_letter = after(v->m.letter, c->letter);
    bits s = starts_words(&v->m, c, symbol, each_digit) | (v->m.upper & after(lower, c->lower));

    c->lower = lower >> 63;
    s |= starts_space(v, c, symbol, &behind_taken, stop);
    *stop |= v->m.slash & behind_taken; /* symbols take these slashes too: too rare for bits */
    return suffix ? cut_suffixes(v, c, s, behind_letter) : s;
}

/* ---- the run ---- */

enum pattern { GPT2, CL100K, QWEN2, O200K, TEKKEN };

/* The masks of the 64 bytes at `at`; bytes beyond the text look like non-ASCII. */
static inline struct masks classify_at(const uint8_t *text, size_t n, size_t at, bool cased)
{
    uint8_t tail[64];

    if (at + 64 <= n)
        return classify(text + at, cased);
    memset(tail, 0x80, sizeof tail);
    if (at < n)
        memcpy(tail, text + at, n - at);
    return classify(tail, cased);
}

/* A beginning is sure when the two bytes behind it are known to be ASCII.  Returns how many bits
 * of the block are sure (64: all), and where the trouble is. */
static inline unsigned trusted(const struct view *v, bits stop, size_t *trouble)
{
    unsigned limit = 64, h;

    if (!(stop | v->m.high | (v->next.high & 3)))
        return 64;
    if (v->next.high & 3) {
        h = (unsigned)__builtin_ctzll(v->next.high);
        limit = 62 + h;
        *trouble = v->at + 64 + h;
    }
    if (v->m.high) {
        h = (unsigned)__builtin_ctzll(v->m.high);
        limit = h < 2 ? 0 : h - 2;
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
    struct carry c = {.suffix_end = SIZE_MAX};
    struct view v = {.at = r->at, .next = classify_at(text, n, r->at, cased)};
    uint32_t *out = r->ends + r->n, *end = r->ends + r->max - SPLIT_RUN_ROOM;
    bits known = ~(bits)1; /* the run's own beginning is no end */

    r->stop = 0;
    for (; out <= end; v.at += 64) {
        bits s, stop = 0;
        unsigned sure;

        v.p = text + v.at;
        v.left = n - v.at;
        v.m = v.next;
        v.next = classify_at(text, n, v.at + 64, cased);
        s = pattern == GPT2 ? starts_gpt2(&v, &c)
            : cased         ? starts_o200k(&v, &c, &stop, pattern == TEKKEN, pattern == O200K)
                            : starts_cl100k(&v, &c, &stop, pattern == QWEN2);
        s &= known;
        known = ~(bits)0;
        sure = trusted(&v, stop, &r->stop);
        if (sure < 64) {
            out = put_positions(out, s & (((bits)1 << sure) - 1), (uint32_t)v.at);
            r->stop++;
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
