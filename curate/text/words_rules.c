#include "curate/text/words_rules.h"

#include <pthread.h>
#include <stdlib.h>

#include <unicode/uchar.h>

#include "base/ascii.h"
#include "base/hash.h"

static const struct special specials[] = {
#define WORDS_DATA_SPECIALS
#include "curate/text/words_data.inc"
#undef WORDS_DATA_SPECIALS
};
static const char *const units[] = {
#define WORDS_DATA_UNITS
#include "curate/text/words_data.inc"
#undef WORDS_DATA_UNITS
};

enum {
    N_SPECIALS = sizeof specials / sizeof *specials,
    N_UNITS = sizeof units / sizeof *units,
    SLOTS = 4096, /* of the table of exceptions; power of two, at most a third full */
    UNIT_MAX = 5  /* code points */
};

uint64_t words_bloom[512], words_first_bloom[512];
static uint16_t slot[SLOTS]; /* 1 + index, 0: free */
static const struct special *pattern[N_SPECIALS + 257];
static uint16_t pattern_first[256];
static struct {
    uint32_t cp[UNIT_MAX];
    size_t n;
} unit[N_UNITS];
static const uint16_t *class;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add_to_bloom(uint64_t *bloom, struct span s)
{
    char head[8] = {0};
    uint32_t b;

    memcpy(head, s.p, s.n < 8 ? s.n : 8);
    b = words_bloom_slot(head, s.n);
    bloom[b >> 6] |= 1ULL << (b & 63);
}

static void build(void)
{
    size_t k = 0;

    for (size_t i = 0; i < N_SPECIALS; i++) {
        struct span s = span_of(specials[i].text);
        uint32_t h = (uint32_t)hash_xxh3_64(s);

        add_to_bloom(words_bloom, s);
        if (specials[i].cut) {
            s.n = words_part_len(specials[i].cut[0]);
            add_to_bloom(words_first_bloom, s);
        }
        while (slot[h % SLOTS])
            h++;
        slot[h % SLOTS] = (uint16_t)(i + 1);
    }
    for (int c = 0; c < 256; c++) {
        pattern_first[c] = (uint16_t)k;
        for (size_t i = 0; i < N_SPECIALS; i++)
            if ((unsigned char)specials[i].text[0] == c && specials[i].cut)
                pattern[k++] = &specials[i];
        pattern[k++] = NULL;
    }
    for (size_t i = 0; i < N_UNITS; i++)
        for (const char *p = units[i]; *p;) {
            int n;
            unit[i].cp[unit[i].n++] = chars_decode(p, &n);
            p += n;
        }
    class = chars_classes();
}

bool words_rules_init(void)
{
    pthread_once(&once, build);
    return class != NULL;
}

const struct special *words_special(struct span s)
{
    uint32_t h;

    if (s.n > SPECIAL_MAX)
        return NULL;
    h = (uint32_t)hash_xxh3_64(s);
    for (; slot[h % SLOTS]; h++)
        if (span_is(s, specials[slot[h % SLOTS] - 1].text))
            return &specials[slot[h % SLOTS] - 1];
    return NULL;
}

const struct special *const *words_patterns(unsigned char c)
{
    return pattern + pattern_first[c];
}

size_t words_prefix(const uint32_t *cp, size_t a, size_t b)
{
    uint32_t c = cp[a];
    size_t n;

    if (class[c] & CHAR_PREFIX)
        return 1;
    if (c == '+')
        return a + 1 == b || !ascii_is_digit(cp[a + 1]);
    if (c == '.') {
        for (n = 1; a + n < b && cp[a + n] == '.';)
            n++;
        return n > 1 ? n : 0;
    }
    if ((c == 'C' || c == 'A') && b - a >= 2 && cp[a + 1] == '$')
        return 2;
    return c == 'U' && b - a >= 3 && cp[a + 1] == 'S' && cp[a + 2] == '$' ? 3 : 0;
}

/* The unit that stands at the end behind a digit. */
static size_t unit_suffix(const uint32_t *cp, size_t a, size_t b)
{
    size_t k = 0;

    while (k <= UNIT_MAX && k < b - a && !ascii_is_digit(cp[b - k - 1]))
        k++;
    if (k < 1 || k > UNIT_MAX || k == b - a)
        return 0;
    for (size_t i = 0; i < N_UNITS; i++)
        if (unit[i].n == k && !memcmp(cp + b - k, unit[i].cp, k * sizeof *cp))
            return k;
    return 0;
}

/* What a suffix pattern finds is what begins first: of all that match, the longest. */
size_t words_suffix(const uint32_t *cp, size_t a, size_t b)
{
    uint32_t c = cp[b - 1], prev = b - a > 1 ? cp[b - 2] : 0;
    size_t n = 1;

    if (c == '.') {
        while (b - a > n && cp[b - n - 1] == '.')
            n++;
        if (n > 1)
            return n;
        if (b - a > 1 && class[prev] & CHAR_DOT_AFTER)
            return 1;
        if (b - a > 2 && class[prev] & class[cp[b - 3]] & CHAR_UPPER)
            return 1;
        return b - a > 2 && cp[b - 3] == 0xB0 && prev < 128 && prev && strchr("FfCcKk", (int)prev) != NULL;
    }
    if (c == 0x2026)
        return prev == 0x2026 ? 2 : 1;
    if ((c == 's' || c == 'S') && (prev == '\'' || prev == 0x2019))
        return 2;
    if (c == '+')
        return b - a > 1 && ascii_is_digit(prev);
    if (c == '$') {
        if (b - a > 3 && prev == 'S' && cp[b - 3] == 'U' && ascii_is_digit(cp[b - 4]))
            return 3;
        if (b - a > 2 && (prev == 'C' || prev == 'A') && ascii_is_digit(cp[b - 3]))
            return 2;
    }
    if (class[c] & CHAR_CURRENCY && b - a > 1 && ascii_is_digit(prev))
        return 1;
    if (class[c] & CHAR_SUFFIX)
        return 1;
    return unit_suffix(cp, a, b);
}

size_t words_infix(const uint32_t *cp, size_t a, size_t b, size_t i)
{
    uint32_t c = cp[i], prev = i > a ? cp[i - 1] : 0, next = i + 1 < b ? cp[i + 1] : 0;
    uint16_t before = prev ? class[prev] : 0, after = next ? class[next] : 0;
    bool word_before = before & CHAR_ALPHA || ascii_is_digit(prev);
    size_t n = 1;

    if (c == 0x2026 || class[c] & CHAR_ICON)
        return 1;
    switch (c) {
    case '.':
        while (i + n < b && cp[i + n] == '.')
            n++;
        if (n > 1)
            return n;
        return before & (CHAR_LOWER | CHAR_QUOTE) && after & (CHAR_UPPER | CHAR_QUOTE);
    case ',':
        return before & CHAR_ALPHA && after & CHAR_ALPHA;
    case '-':
        if (ascii_is_digit(prev) && (ascii_is_digit(next) || next == '-'))
            return 1;
        while (n < 3 && i + n < b && cp[i + n] == '-')
            n++;
        return word_before && i + n < b && class[cp[i + n]] & CHAR_ALPHA ? n : 0;
    case '+':
    case '*':
    case '^':
        return ascii_is_digit(prev) && (ascii_is_digit(next) || next == '-');
    case 0x2014:
        if (word_before && next == 0x2014)
            return i + 2 < b && class[cp[i + 2]] & CHAR_ALPHA ? 2 : 0;
        return word_before && after & CHAR_ALPHA;
    case 0x2013:
    case '~':
    case ':':
    case '<':
    case '>':
    case '=':
    case '/':
        return word_before && after & CHAR_ALPHA;
    default:
        return 0;
    }
}

/* ---- URLs ---- */

/* [1-9]\d?|1\d\d|2[01]\d|22[0-3] and its like: digits [a..b) as Python's \d, but the
 * ranges are of ASCII.  kind 0: first octet, 1: middle, 2: last. */
static bool octet(const uint32_t *cp, size_t a, size_t b, int kind)
{
    size_t n = b - a;
    uint32_t c = n ? cp[a] : 0;

    if (n < 1 || n > 3)
        return false;
    for (size_t i = a; i < b; i++)
        if (u_charType((UChar32)cp[i]) != U_DECIMAL_DIGIT_NUMBER)
            return false;
    if (n < 3)
        return kind == 1 || (c >= '1' && c <= '9');
    if (c == '1')
        return true;
    if (c != '2')
        return false;
    if (kind == 0)
        return cp[a + 1] == '0' || cp[a + 1] == '1' || (cp[a + 1] == '2' && cp[a + 2] - '0' <= 3);
    return cp[a + 1] - '0' <= 4 || (cp[a + 1] == '5' && cp[a + 2] - '0' <= (kind == 1 ? 5u : 4u));
}

static bool digits_are(const uint32_t *cp, size_t a, size_t b, const char *text)
{
    for (; a < b && *text; a++, text++)
        if (cp[a] != (unsigned char)*text)
            return false;
    return a == b && !*text;
}

/* An address of four octets that is neither private nor local. */
static bool is_ip(const uint32_t *cp, size_t a, size_t b)
{
    size_t dot[5] = {0};
    int n = 0;

    dot[n++] = a - 1;
    for (size_t i = a; i < b; i++)
        if (cp[i] == '.') {
            if (n == 4)
                return false;
            dot[n++] = i;
        }
    if (n != 4)
        return false;
    dot[4] = b;
    for (int i = 0; i < 4; i++)
        if (!octet(cp, dot[i] + 1, dot[i + 1], i == 0 ? 0 : i == 3 ? 2 : 1))
            return false;
    if (digits_are(cp, a, dot[1], "10") || digits_are(cp, a, dot[1], "127") ||
        digits_are(cp, a, dot[2], "169.254") || digits_are(cp, a, dot[2], "192.168"))
        return false;
    if (digits_are(cp, a, dot[1], "172") && dot[2] - dot[1] == 3) {
        uint32_t x = cp[dot[1] + 1], y = cp[dot[1] + 2];
        if ((x == '1' && y >= '6' && y <= '9') || x == '2' || (x == '3' && (y == '0' || y == '1')))
            return false;
    }
    return true;
}

static bool host_char(uint32_t c)
{
    return ascii_is_digit(c) || (c | 32) - 'a' < 26 || (c >= 0xA1 && c <= 0xFFFF);
}

/* Labels of 1 to 64 characters and a top level of 2 to 63 small letters. */
static bool is_host(const uint32_t *cp, size_t a, size_t b)
{
    int labels = 0;

    for (;;) {
        size_t i = a;
        while (i < b && cp[i] != '.')
            i++;
        if (i == b)
            break;
        if (i == a || i - a > 64 || !host_char(cp[a]) || !host_char(cp[i - 1]))
            return false;
        for (size_t j = a; j < i; j++)
            if (!host_char(cp[j]) && cp[j] != '-' && cp[j] != '_')
                return false;
        labels++;
        a = i + 1;
    }
    if (!labels || b - a < 2 || b - a > 63)
        return false;
    for (; a < b; a++)
        if (!(class[cp[a]] & CHAR_LOWER))
            return false;
    return true;
}

/* Host or address, port, path: all that may follow scheme and user. */
static bool url_rest(const uint32_t *cp, size_t a, size_t b)
{
    size_t end = a, n;

    while (end < b && (host_char(cp[end]) || cp[end] == '.' || cp[end] == '-' || cp[end] == '_' ||
                       cp[end] > 0xFFFF))
        end++;
    if (end == a || !(is_host(cp, a, end) || is_ip(cp, a, end)))
        return false;
    if (end < b && cp[end] == ':') {
        for (n = 1; end + n < b && u_charType((UChar32)cp[end + n]) == U_DECIMAL_DIGIT_NUMBER;)
            n++;
        if (n < 3 || n > 6)
            return false;
        end += n;
    }
    return end == b || cp[end] == '/' || cp[end] == '?' || cp[end] == '#';
}

static bool scheme_char(uint32_t c)
{
    return c == '+' || c == '-' || c == '.' || c == '_' || u_isalpha((UChar32)c) ||
           u_getIntPropertyValue((UChar32)c, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool words_url(const uint32_t *cp, size_t a, size_t b)
{
    size_t s = a;
    bool dot = false;

    for (size_t i = a; i < b && !dot; i++)
        dot = cp[i] == '.';
    if (!dot)
        return false;
    if (url_rest(cp, a, b))
        return true;
    while (s < b && cp[s] != ':' && scheme_char(cp[s]))
        s++;
    if (s - a >= 2 && b - s > 3 && cp[s] == ':' && cp[s + 1] == '/' && cp[s + 2] == '/' &&
        url_rest(cp, s + 3, b))
        return true;
    for (size_t i = a + 1; i < b; i++) /* a user's name may hold anything */
        if (cp[i] == '@' && url_rest(cp, i + 1, b))
            return true;
    return false;
}
