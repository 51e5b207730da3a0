#include "curate/text/uax29.h"

#include <stdlib.h>

#include <unicode/uchar.h>

/* Classes as bits: sets of them are the rules. */
enum {
    LETTER = 1 << 0, /* ALetter */
    HEBREW = 1 << 1,
    NUMERIC = 1 << 2,
    KATAKANA = 1 << 3,
    JOINER = 1 << 4, /* ExtendNumLet */
    MID_LETTER = 1 << 5,
    MID_NUM = 1 << 6,
    MID_BOTH = 1 << 7, /* MidNumLet */
    QUOTE = 1 << 8,    /* Single_Quote */
    DOUBLE_QUOTE = 1 << 9,
    IGNORED = 1 << 10, /* Extend, Format */
    ZWJ = 1 << 11,
    SPACE = 1 << 12,   /* WSegSpace */
    NEWLINE = 1 << 13, /* Newline, CR, LF */
    OTHER = 0,
    AHLETTER = LETTER | HEBREW,
    WORDY = AHLETTER | NUMERIC | KATAKANA | JOINER
};

static unsigned class_beyond(uint32_t c)
{
    switch (u_getIntPropertyValue((UChar32)c, UCHAR_WORD_BREAK)) {
    case U_WB_ALETTER: return LETTER;
    case U_WB_HEBREW_LETTER: return HEBREW;
    case U_WB_NUMERIC: return NUMERIC;
    case U_WB_KATAKANA: return KATAKANA;
    case U_WB_EXTENDNUMLET: return JOINER;
    case U_WB_MIDLETTER: return MID_LETTER;
    case U_WB_MIDNUM: return MID_NUM;
    case U_WB_MIDNUMLET: return MID_BOTH;
    case U_WB_SINGLE_QUOTE: return QUOTE;
    case U_WB_DOUBLE_QUOTE: return DOUBLE_QUOTE;
    case U_WB_EXTEND: case U_WB_FORMAT: return IGNORED;
    case U_WB_ZWJ: return ZWJ;
    case U_WB_WSEGSPACE: return SPACE;
    case U_WB_CR: case U_WB_LF: case U_WB_NEWLINE: return NEWLINE;
    default: return OTHER; /* Regional_Indicator too: no word begins with one */
    }
}

static const uint16_t ascii[128] = {
    ['\n'] = NEWLINE, ['\v'] = NEWLINE, ['\f'] = NEWLINE, ['\r'] = NEWLINE, [' '] = SPACE, ['"'] = DOUBLE_QUOTE,
    ['\''] = QUOTE, [','] = MID_NUM, ['.'] = MID_BOTH, [':'] = MID_LETTER, [';'] = MID_NUM, ['_'] = JOINER,
    ['0' ... '9'] = NUMERIC, ['A' ... 'Z'] = LETTER, ['a' ... 'z'] = LETTER,
};

static inline unsigned class_ascii(unsigned char c) { return ascii[c & 127]; }

static inline unsigned class_at(const char *p, int *n)
{
    if ((unsigned char)*p < 0x80) {
        *n = 1;
        return class_ascii((unsigned char)*p);
    }
    return class_beyond(chars_decode(p, n));
}

bool uax29_alnum(uint32_t c)
{
    if (c < 0x80)
        return class_ascii((unsigned char)c) & (LETTER | NUMERIC);
    return chars_classes()[c] & CHAR_LETTER || u_getIntPropertyValue((UChar32)c, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

/* The class of the next character at or behind p that is not ignored; 0 at the end. */
static unsigned class_behind(const char *p, const char *end)
{
    int n;

    for (unsigned c; p < end; p += n)
        if (!((c = class_at(p, &n)) & (IGNORED | ZWJ)))
            return c;
    return 0;
}

/* Is there no boundary between `prev` and `c` at p (WB5 to WB13b)?  before: what stands in
 * front of prev in this word. */
static bool joins(unsigned before, unsigned prev, unsigned c, const char *next, const char *end)
{
    const unsigned mid_letter = MID_LETTER | MID_BOTH | QUOTE, mid_num = MID_NUM | MID_BOTH | QUOTE;

    if (c & (AHLETTER | NUMERIC)) {
        if (prev & (AHLETTER | NUMERIC | JOINER))
            return true;
        return (c & AHLETTER && prev & mid_letter && before & AHLETTER) ||
               (c & HEBREW && prev & DOUBLE_QUOTE && before & HEBREW) ||
               (c & NUMERIC && prev & mid_num && before & NUMERIC);
    }
    if (c & KATAKANA)
        return prev & (KATAKANA | JOINER);
    if (c & JOINER)
        return prev & WORDY;
    if (prev & HEBREW && c & QUOTE)
        return true;
    return (prev & AHLETTER && c & mid_letter && class_behind(next, end) & AHLETTER) ||
           (prev & HEBREW && c & DOUBLE_QUOTE && class_behind(next, end) & HEBREW) ||
           (prev & NUMERIC && c & mid_num && class_behind(next, end) & NUMERIC);
}

/* The end of the piece at p. */
static const char *piece_end(const char *p, const char *end)
{
    int n;
    unsigned raw = class_at(p, &n), prev = raw, before = 0;

    p += n;
    if (raw & NEWLINE)
        return p; /* CR LF is two of them here: neither is a word */
    while (p < end) {
        unsigned c = class_at(p, &n);

        if (c & (IGNORED | ZWJ)) {
            raw = c;
        } else if (joins(before, prev, c, p + n, end) || (raw & c & SPACE) ||
                   (raw & ZWJ && !(c & NEWLINE) &&
                    u_hasBinaryProperty((UChar32)chars_decode(p, &n), UCHAR_EXTENDED_PICTOGRAPHIC))) {
            before = prev;
            prev = raw = c;
        } else {
            break;
        }
        p += n;
    }
    return p;
}

/* Ends a run of ASCII letters, digits and _ at q for sure?  What may go on is a character
 * beyond ASCII, or a mark with one or with a letter or digit behind it. */
static bool surely_ends(const char *q, const char *end)
{
    if (q == end)
        return true;
    if ((unsigned char)*q >= 0x80)
        return false;
    return !(class_ascii((unsigned char)*q) & (MID_LETTER | MID_NUM | MID_BOTH | QUOTE | DOUBLE_QUOTE)) || q + 1 == end ||
           !((unsigned char)q[1] >= 0x80 || uax29_alnum((unsigned char)q[1]));
}

static const char *plain_end(const char *p, const char *end)
{
    while (p < end && class_ascii((unsigned char)*p) & (LETTER | NUMERIC | JOINER) && (unsigned char)*p < 0x80)
        p++;
    return p;
}

int uax29_split(struct words *ws, struct span text, struct err *e)
{
    const char *p = text.p, *end = text.n ? p + text.n : p;

    ws->n = 0;
    if (text.n >= 1u << 30)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to filter", text.n);
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        const char *q = p;
        int n;

        if (c < 0x80 && uax29_alnum(c))
            q = plain_end(p, end);
        if (q == p || !surely_ends(q, end))
            q = piece_end(p, end);
        if (uax29_alnum(chars_decode(p, &n)))
            TRY(words_put(ws, (size_t)(p - text.p), (size_t)(q - text.p)));
        p = q;
    }
    return 0;
}
