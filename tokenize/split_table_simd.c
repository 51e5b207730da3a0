/* Cutting by a table: bytes to symbols, 64 at a time; symbols to states, in several rows side by side, because a state waits
 * for the one before it; states to ends, 64 at a time. */
#include <string.h>

#include "base/block.h"
#include "base/utf8.h"
#include "tokenize/split_table.h"

enum {
    WINDOW = 4096,
    ROWS = 4,        /* side by side */
    ROW_LEAST = 128, /* shorter ones are not worth it */
    WARM = 32,       /* characters before a row from which its state is guessed */
    AROUND = 72
};

/* ---- symbols ---- */

/* The symbols of the characters that begin in p[from..to); those of a character go beyond `to`.  Returns the end of the last. */
static size_t symbols_one_by_one(const struct split_table *t, const uint8_t *p, size_t from, size_t to, const uint8_t *end,
                                 uint8_t *symbol)
{
    while (from < to) {
        uint32_t cp;
        size_t n;
        if (p[from] < 0x80) {
            symbol[from] = t->ascii[p[from]];
            from++;
            continue;
        }
        n = (size_t)utf8_next((const char *)p + from, (const char *)end, &cp);
        memset(symbol + from, t->more, 4);
        symbol[from] = (uint8_t)split_table_symbol(t, cp);
        from += n;
    }
    return from;
}

#if defined(__AVX512VBMI__)

static inline bits is_byte(__m512i v, int c)
{
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)c));
}

/* lo <= byte < lo + n */
static inline bits in(__m512i v, int lo, int n)
{
    return block_in((struct block){v}, (char)lo, (char)n);
}

/* The symbols of the characters of n bytes at `left`: those with the same bytes but the last together. */
static inline __m512i put_length(const struct split_table *t, __m512i symbol, const uint8_t *p, bits left, unsigned n,
                                 const __m512i byte[4])
{
    while (left) {
        const uint8_t *c = p + __builtin_ctzll(left);
        bits same = left;
        uint32_t block = n == 2   ? c[0] & 0x1F
                         : n == 3 ? (c[0] & 0xFu) << 6 | (c[1] & 0x3F)
                                  : (c[0] & 7u) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3F);
        for (unsigned k = 0; k + 1 < n; k++)
            same = _mm512_mask_cmpeq_epi8_mask(same, byte[k], _mm512_set1_epi8((char)c[k]));
        symbol = _mm512_mask_permutexvar_epi8(symbol, same, byte[n - 1], _mm512_loadu_si512(t->blocks[t->index[block]]));
        left &= ~same;
    }
    return symbol;
}

/* The symbols of the 64 bytes at p, of which the first `covered` belong to a character before, if all are well-formed; else 0.
 * Returns how many bytes of the next 64 belong to the last character, plus 1. */
static unsigned symbols_high(const struct split_table *t, const uint8_t *p, unsigned covered, __m512i ascii, uint8_t *out)
{
    const __m512i v[4] = {_mm512_loadu_si512(p), _mm512_loadu_si512(p + 1), _mm512_loadu_si512(p + 2), _mm512_loadu_si512(p + 3)};
    bits high = _mm512_movepi8_mask(v[0]), more1 = in(v[1], 0x80, 0x40), more2 = in(v[2], 0x80, 0x40);
    bits before = ((bits)1 << covered) - 1, two = in(v[0], 0xC2, 30) & more1, three = in(v[0], 0xE0, 16) & more1 & more2, four;
    bits rest, starts, left;
    __m512i symbol = ascii;

    /* Not the shortest form, or a surrogate */
    three &= ~(is_byte(v[0], 0xE0) & ~in(v[1], 0xA0, 0x20)) & ~(is_byte(v[0], 0xED) & in(v[1], 0xA0, 0x20));
    four = in(v[0], 0xF0, 5) & more1 & more2;
    if (four) {
        four &= in(v[3], 0x80, 0x40);
        four &= ~(is_byte(v[0], 0xF0) & in(v[1], 0x80, 0x10)) & ~(is_byte(v[0], 0xF4) & ~in(v[1], 0x80, 0x10));
    }
    starts = two | three | four;
    rest = before | starts << 1 | (three | four) << 2 | four << 3;
    if (high & ~(rest | starts))
        return 0;
    symbol = put_length(t, symbol, p, two, 2, v);
    for (left = three; left;) {
        /* Where all characters with a first byte are alike, all of them at once. */
        const uint8_t *c = p + __builtin_ctzll(left);
        bits same = left & is_byte(v[0], *c);
        if (t->lead[*c] != 0xFF)
            symbol = _mm512_mask_set1_epi8(symbol, same, (char)t->lead[*c]);
        else
            symbol = put_length(t, symbol, p, same, 3, v);
        left &= ~same;
    }
    symbol = put_length(t, symbol, p, four, 4, v);
    _mm512_storeu_si512(out, _mm512_mask_set1_epi8(symbol, rest, (char)t->more));
    if (!(starts >> 61))
        return 1;
    return 1 + (unsigned)(two >> 63) + (unsigned)(three >> 62 & 1) + 2 * (unsigned)(three >> 63) +
           (unsigned)(four >> 61 & 1) + 2 * (unsigned)(four >> 62 & 1) + 3 * (unsigned)(four >> 63);
}

/* The symbols of p[0..n), a character's begin; the text goes on to `end`. */
static void find_symbols(const struct split_table *t, const uint8_t *p, size_t n, const uint8_t *end, uint8_t *symbol)
{
    const __m512i low = _mm512_loadu_si512(t->ascii), high = _mm512_loadu_si512(t->ascii + 64);
    size_t at = 0, covered = 0;

    for (; at < n && (size_t)(end - p) - at >= AROUND; at += 64) {
        __m512i v = _mm512_loadu_si512(p + at), s = _mm512_permutex2var_epi8(low, v, high);
        unsigned next;
        if (!_mm512_movepi8_mask(v)) {
            _mm512_storeu_si512(symbol + at, s);
        } else if ((next = symbols_high(t, p + at, (unsigned)covered, s, symbol + at)) > 0) {
            covered = next - 1;
            continue;
        } else {
            covered = symbols_one_by_one(t, p, at + covered, at + 64, end, symbol) - at - 64;
            continue;
        }
        covered = 0;
    }
    if (at < n) {
        if (covered)
            memset(symbol + at, t->more, covered);
        symbols_one_by_one(t, p, at + covered, n, end, symbol);
    }
}

#else

static void find_symbols(const struct split_table *t, const uint8_t *p, size_t n, const uint8_t *end, uint8_t *symbol)
{
    symbols_one_by_one(t, p, 0, n, end, symbol);
}

#endif

/* ---- states ---- */

/* The states behind each of n symbols, from `state` on. */
static void find_states(const struct split_table *restrict t, const uint8_t *restrict symbol, size_t n, uint8_t state,
                        uint8_t *restrict out)
{
    const uint8_t(*next)[STATES_MOST] = t->next;
    size_t row = n / ROWS;
    uint8_t s[ROWS] = {state, t->guess, t->guess, t->guess}, entry[ROWS];
    size_t i = 0;

    if (row < ROW_LEAST) {
        for (; i < n; i++)
            out[i] = state = next[symbol[i]][state];
        return;
    }
    for (i = 0; i < WARM; i++)
        for (int k = 1; k < ROWS; k++)
            s[k] = next[symbol[(size_t)k * row - WARM + i]][s[k]];
    memcpy(entry, s, sizeof s);
    {
        uint8_t a = s[0], b = s[1], c = s[2], d = s[3];
        for (i = 0; i < row; i++) {
            out[i] = a = next[symbol[i]][a];
            out[row + i] = b = next[symbol[row + i]][b];
            out[2 * row + i] = c = next[symbol[2 * row + i]][c];
            out[3 * row + i] = d = next[symbol[3 * row + i]][d];
        }
    }
    for (i = ROWS * row; i < n; i++)
        out[i] = next[symbol[i]][out[i - 1]];
    /* Where a guess was wrong, again up to where it makes no difference. */
    for (size_t k = 1; k < ROWS; k++) {
        uint8_t is = out[k * row - 1];
        if (t->same[is] == t->same[entry[k]])
            continue;
        for (i = k * row; i < n; i++) {
            is = next[symbol[i]][is];
            if (is == out[i])
                break;
            out[i] = is;
        }
    }
}

/* ---- ends ---- */

/* A part of the text, from `at` to `end` (the text goes on to n), with what was found of each byte. */
struct window {
    const uint8_t *text;
    size_t n, at, end;
    uint8_t symbol[WINDOW + 64 + AROUND], states[WINDOW + 64 + AROUND];
};

/* Where the character before the one at i begins. */
static inline uint32_t before(const struct split_table *t, const uint8_t *symbol, size_t i, size_t at, uint32_t back)
{
    while (i > 0)
        if (symbol[--i] != t->more)
            return (uint32_t)(at + i);
    return back;
}

/* Adds a place to the bits of the block at `base`, or, if it is before that, to out. */
static inline uint32_t *put_place(uint32_t *out, bits *here, uint32_t place, size_t base)
{
    if (place >= base)
        *here |= (bits)1 << (place - base);
    else
        *out++ = place;
    return out;
}

/* Whether a piece begins at the mark, which was set by the character at i of the window: what comes up to the next mark tells. */
static bool mark_holds(const struct split_table *t, const struct window *w, size_t i)
{
    uint8_t state = w->states[i];

    for (size_t at = w->at + i + 1; t->waits[state];) {
        if (at < w->end) {
            state = w->states[at++ - w->at];
        } else if (at < w->n) {
            uint32_t cp;
            at += (size_t)utf8_next((const char *)w->text + at, (const char *)w->text + w->n, &cp);
            state = t->next[split_table_symbol(t, cp)][state];
        } else {
            return t->at_end[state] & EVENT_MARK;
        }
        if (t->event[state] & (EVENT_MARK | EVENT_SET))
            return t->event[state] & EVENT_MARK;
    }
    return false;
}

/* The beginnings that the states of n bytes from i0 of the window on tell; back: where the character before the window begins. */
static inline uint32_t *put_block(const struct split_table *t, const struct window *w, size_t i0, unsigned n, uint32_t back0,
                                  uint32_t *out)
{
    const uint8_t *states = w->states;
    struct block b = block_load(states + i0);
    bits mine = n < 64 ? ((bits)1 << n) - 1 : ~(bits)0;
    bits here = block_in(b, (char)t->first_here, (char)(t->first_other - t->first_here)) & mine;
    bits other = t->first_other < t->states ? block_in(b, (char)t->first_other, (char)(t->states - t->first_other)) & mine : 0;
    size_t base = w->at + i0;

    for (; other; other &= other - 1) {
        size_t i = i0 + (size_t)__builtin_ctzll(other);
        uint8_t event = t->event[states[i]];
        if (event & EVENT_BACK || (event & EVENT_SET && mark_holds(t, w, i)))
            out = put_place(out, &here, before(t, w->symbol, i, w->at, back0), base);
        if (event & EVENT_HERE)
            here |= (bits)1 << (i - i0);
    }
    if (base == 0)
        here &= ~(bits)1; /* the text's own beginning */
    return put_positions(out, here, (uint32_t)base);
}

/* How far a window from `at` on may go: to where a character begins, or to the end. */
static size_t window_end(const uint8_t *text, size_t n, size_t at, size_t size)
{
    size_t end = at + size;

    if (size >= n - at)
        return n;
    for (size_t k = 0; k < 4 && (text[end - k] & 0xC0) == 0x80; k++)
        if ((text[end - k - 1] & 0xC0) == 0xC0)
            return end - k - 1;
    return end;
}

void ISA_FN(split_table_run)(const struct split_table *t, const uint8_t *text, size_t n, struct split_scan_state *s,
                             struct split_run *r)
{
    struct window w;
    uint32_t *begin = r->ends + r->n, *out = begin, *most = r->ends + r->max;
    size_t room = r->max - r->n, size, length, stop, i = 0;

    if (!s->begun)
        *s = (struct split_scan_state){.begun = true, .state = t->begin, .per_end = 64};
    size = room * s->per_end / 16;
    size = size < 256 ? 256 : size > WINDOW ? WINDOW : size;
    w.text = text;
    w.n = n;
    w.at = r->at;
    w.end = window_end(text, n, r->at, size);
    stop = length = w.end - w.at;
#ifdef __clang_analyzer__ /* it does not see that find_states sets as many as there are symbols */
    memset(w.states, 0, sizeof w.states);
#endif
    find_symbols(t, text + w.at, length, text + n, w.symbol);
    find_states(t, w.symbol, length, s->state, w.states);
    for (; i < length && stop == length; i += 64) {
        unsigned count = length - i < 64 ? (unsigned)(length - i) : 64;
        if (count == 64 && most - out < 2 * 64 + 8 && i + 64 < length) { /* the next block may have no room */
            stop = i + 64;
            while (w.symbol[stop] == t->more)
                stop--;
            count = (unsigned)(stop - i);
        }
        out = put_block(t, &w, i, count, s->back, out);
    }
    s->state = w.states[stop - 1];
    s->back = before(t, w.symbol, stop, w.at, s->back);
    s->per_end = (uint32_t)(16 * stop / ((size_t)(out - begin) + 1));
    r->at = w.at + stop;
    if (r->at == n) {
        if (t->at_end[s->state] & EVENT_BACK)
            *out++ = s->back;
        *out++ = (uint32_t)n;
    }
    r->n = (size_t)(out - r->ends);
}
