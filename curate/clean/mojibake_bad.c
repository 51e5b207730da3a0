/* Which characters, next to which others, are mojibake. */
#include "curate/clean/mojibake.h"

#include <pthread.h>

#include "base/ascii.h"
#include "curate/text/chars.h"

const struct mojibake_charset mojibake_charsets[MOJIBAKE_CHARSETS] = {
#define REPAIR_CHARSETS
#include "curate/clean/repair_data.inc"
#undef REPAIR_CHARSETS
};
static const struct {
    uint16_t first, last;
    uint32_t roles;
} roles[] = {
#define REPAIR_ROLES
#include "curate/clean/repair_data.inc"
#undef REPAIR_ROLES
};

uint8_t mojibake_page[256];
struct mojibake_char mojibake_chars[MOJIBAKE_PAGES][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct mojibake_char *char_at(uint32_t cp)
{
    static uint8_t used; /* the tables fit: the data is fixed, and a test looks */

    if (!mojibake_page[cp >> 8] && used + 1 < MOJIBAKE_PAGES)
        mojibake_page[cp >> 8] = ++used;
    return &mojibake_chars[mojibake_page[cp >> 8]][cp & 0xFF];
}

static void build(void)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        for (uint32_t c = roles[i].first; c <= roles[i].last; c++)
            char_at(c)->roles = roles[i].roles;
    for (int s = 0; s < MOJIBAKE_CHARSETS; s++) {
        const struct mojibake_charset *t = &mojibake_charsets[s];
        for (uint32_t b = 0; b < 256; b++) {
            struct mojibake_char *c = char_at(b == 0x1A && t->sloppy ? 0xFFFD : b < 0x80 ? b : t->high[b - 0x80]);
            c->charsets |= (uint16_t)(1u << s);
            c->byte[s] = (uint8_t)b;
        }
    }
}

void mojibake_init(void) { pthread_once(&once, build); }

/* ---- neighbours ---- */

enum {
    C1 = ROLE_C1,
    BAD = ROLE_BAD,
    UPPER = ROLE_UPPER_ACCENTED,
    LOWER = ROLE_LOWER_ACCENTED,
    BOX = ROLE_BOX,
    START = ROLE_START_PUNCT,
    END = ROLE_END_PUNCT,
    CUR = ROLE_CURRENCY,
    NUM = ROLE_NUMERIC,
    LAW = ROLE_LAW,
    PLAIN = ROLE_UPPER_COMMON | ROLE_LOWER_COMMON,
    ACCENTED = UPPER | LOWER
};

static bool is_latin(uint32_t c) { return ascii_is_lower(c | 0x20) && c < 0x80; }
static bool is_unicode_space(uint32_t c)
{
    char utf8[4];
    const char *end = utf8 + utf8_put(utf8, c);
    int n;

    return chars_space_at(utf8, end, &n);
}

static bool is_in(uint32_t c, const uint16_t *set)
{
    while (*set && *set != c)
        set++;
    return *set != 0;
}
#define IN(c, ...) is_in((c), (const uint16_t[]){__VA_ARGS__, 0})

/* Two neighbours, by their roles alone. */
static bool bad_roles(uint32_t a, uint32_t b)
{
    const uint32_t any = ACCENTED | BOX | START | END | CUR | NUM | LAW;

    return ((a & (any | BAD)) && (b & BAD)) || ((a & BAD) && (b & any)) ||
           ((a & (LOWER | ROLE_LOWER_COMMON | BOX | END | CUR | NUM)) && (b & UPPER)) ||
           ((a & (BOX | END | CUR | NUM)) && (b & LOWER)) || ((a & (LOWER | BOX | END)) && (b & CUR)) ||
           ((a & (UPPER | BOX)) && (b & (NUM | LAW))) || ((a & (CUR | NUM | BOX)) && (b & START)) ||
           ((a & BOX) && (b & (ROLE_KAOMOJI | END))) ||
           ((a & (ACCENTED | CUR | NUM | START | END | LAW)) && (b & BOX));
}

/* Three neighbours of which the first two have roles; rc is 0 where the text ends. */
static bool bad_with_third(uint32_t ra, uint32_t rb, uint32_t rc, uint32_t c, bool more)
{
    return ((ra & (ACCENTED | BOX | CUR | END)) && (rb & START) && (rc & NUM)) ||
           ((ra & (ACCENTED | CUR | NUM | BOX | LAW)) && (rb & END) && (rc & START)) ||
           ((ra & ACCENTED) && (rb & (START | END)) && more && chars_is_word(c));
}

/* What may stand behind Ø and Ù in Arabic read as windows-1252. */
static bool is_arabic_tail(uint32_t c, uint32_t r)
{
    return (r & (ROLE_COMMON | CUR | BAD | NUM | START)) || IN(c, 0x178, 0x160, 0xAE, 0xB0, 0xB5, 0xBB);
}

/* What may stand between two Cyrillic or two Greek letters. */
static bool is_middle(uint32_t c, uint32_t r, bool cyrillic)
{
    return (r & (C1 | BAD | START | END | CUR)) || c == 0xB0 || (cyrillic && c == 0xB5);
}

/* Sequences of certain characters that begin at t[0]; n > 1 characters are left. */
static bool bad_letters(const uint32_t *t, size_t n)
{
    uint32_t a = t[0], b = t[1], rb = mojibake_roles(b);

    switch (a) {
    case 0x152: case 0x153: /* OE, oe */
        return !is_latin(b);
    case 0xD7: /* multiplication sign */
        return b == 0xB2 || b == 0xB3;
    case 0xD8: case 0xD9:
        return n > 3 && is_arabic_tail(b, rb) && (t[2] == 0xD8 || t[2] == 0xD9) &&
               is_arabic_tail(t[3], mojibake_roles(t[3]));
    case 0xE0: /* Indian scripts in windows-1252 */
        return IN(b, 0xB2, 0xB5, 0xB9, 0xBC, 0xBD, 0xBE);
    case 0x221A: /* MacRoman: square root and almost equal */
        return IN(b, 0xB1, 0x2202, 0x2020, 0x2260, 0xAE, 0x2122, 0xB4, 0x2264, 0x2265, 0xA5, 0xB5, 0xF8);
    case 0x2248:
        return b == 0xB0 || b == 0xA2;
    case 0x201A:
        return n > 2 && ((b == 0xC4 && IN(t[2], 0xEC, 0xEE, 0xEF, 0xF2, 0xF4, 0xFA, 0xF9, 0xFB, 0x2020, 0xB0,
                                          0xA2, 0x3C0)) ||
                         ((b == 0xE2 || b == 0xF3) && IN(t[2], 0xE0, 0xE4, 0xB0, 0xEA)));
    case 0x432: /* windows-1251: general punctuation */
        return b == 0x402;
    case 0x412: case 0x413: case 0x420: case 0x421:
        if (n > 2 && is_middle(b, rb, true) && IN(t[2], 0x412, 0x413, 0x420, 0x421))
            return true;
        return a == 0x413 && n > 6 && b == 0x45E && t[2] == 0x412 && t[3] == 0x402 && t[4] == 0x412 &&
               t[5] != '\n' && (is_latin(t[6]) || t[6] == ' ');
    case 0x392: case 0x393: case 0x39E: case 0x39F:
        return n > 2 && is_middle(b, rb, false) && IN(t[2], 0x392, 0x393, 0x39E, 0x39F);
    case 0x3B2: /* windows-1253: general punctuation */
        return n > 2 && b == 0x20AC && IN(t[2], 0x2122, 0xA0, 0x386, 0xAD, 0xAE, 0xB0);
    case 0x101: /* windows-1257 */
        return b == 0x20AC;
    default:
        return false;
    }
}

/* The capital A with circumflex or tilde at t[i]; a character follows. */
static bool bad_a(const uint32_t *t, size_t i)
{
    uint32_t before = i ? t[i - 1] : 0;

    if (t[i + 1] != ' ')
        return t[i] == 0xC3 && t[i + 1] == 0xA1;
    return i == 0 || ascii_is_lower(before) || (i > 1 && is_unicode_space(before) && ascii_is_lower(t[i - 2])) ||
           (t[i] == 0xC2 && (IN(before, '.', ',', '?', '!') || (mojibake_roles(before) & END)));
}

/* True if one of the sequences begins at (for A with circumflex or tilde: is at) t[i]. */
static bool bad_at(const uint32_t *t, size_t n, size_t i)
{
    uint32_t a = t[i], b, c, ra = mojibake_roles(a), rb, rc;
    bool more = i + 2 < n;

    if (ra & C1)
        return true;
    if (i + 1 >= n)
        return false;
    b = t[i + 1];
    rb = mojibake_roles(b);
    c = more ? t[i + 2] : 0;
    rc = more ? mojibake_roles(c) : 0;
    if (a < 0x80)
        return (is_latin(a) && (rb & PLAIN) && (rc & BAD)) || (is_unicode_space(a) && (rb & UPPER) && (rc & CUR)) ||
               (ascii_is_lower(a) && (rb & UPPER) && (rc & (START | CUR)));
    if (bad_roles(ra, rb) || bad_with_third(ra, rb, rc, c, more))
        return true;
    if ((ra & UPPER) && b == 0xB0)
        return true;
    if (is_unicode_space(a) && (rb & UPPER) && (rc & CUR))
        return true;
    if (IN(a, 0xC2, 0xC3, 0xCE, 0xD0) &&
        ((rb & (START | END)) || IN(b, 0x20AC, 0x153, 0x160, 0x161, 0xA2, 0xA3, 0x178, 0x17E, 0xA0, 0xAD, 0xAE,
                                    0xA9, 0xB0, 0xB7, 0xBB, 0x2013, 0x2014, 0xB4)))
        return true;
    return bad_letters(t + i, n - i) || ((a == 0xC2 || a == 0xC3) && bad_a(t, i));
}

bool mojibake_is_bad(const uint32_t *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (t[i] < 0x80 && (i + 1 == n || t[i + 1] < 0x80))
            continue;
        if (bad_at(t, n, i))
            return true;
    }
    return false;
}
