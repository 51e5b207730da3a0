/* Personal data that is digits: addresses, telephone, card and account numbers. */
#include "curate/clean/pii_scan.h"

#include <arpa/inet.h>

#include "curate/text/chars.h"

/* Not the end of a longer number, nor within a word.  What is before `from` was replaced by a tag, which is none. */
static bool starts_apart(struct span s, size_t from, size_t i)
{
    if (i > from + 1 && strchr("-./", s.p[i - 1]) && ascii_is_digit(s.p[i - 2]))
        return false;
    return i == from || !pii_word_before(s, i);
}

/* Not the end of a longer number, nor within a word. */
static bool ends_apart(struct span s, size_t i)
{
    return !pii_word_at(s, i) && !(pii_at(s, i) && strchr("-./", pii_at(s, i)) && ascii_is_digit(pii_at(s, i + 1)));
}

/* ---- IP addresses ---- */

bool pii_ipv4_global(const unsigned char a[4])
{
    static const struct {
        unsigned char net[4];
        int bits;
    } closed[] = {{{0}, 8}, {{10}, 8}, {{100, 64}, 10}, {{127}, 8}, {{169, 254}, 16}, {{172, 16}, 12},
                  {{192, 0, 0}, 24}, {{192, 0, 2}, 24}, {{192, 168}, 16}, {{198, 18}, 15}, {{198, 51, 100}, 24},
                  {{203, 0, 113}, 24}, {{240}, 4}};
    uint32_t ip = (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];

    if (ip == 0xC0000009 || ip == 0xC000000A) /* 192.0.0.9 and .10: anycast */
        return true;
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        const unsigned char *n = closed[i].net;
        uint32_t net = (uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3];
        if ((ip ^ net) >> (32 - closed[i].bits) == 0)
            return false;
    }
    return true;
}

/* The word before i, in small letters: what stands between are a space, a full stop, a
 * colon, an opening parenthesis, an equals sign, three of them at most. */
static bool behind_word(struct span s, size_t i, const char *const *words, size_t n_words)
{
    char word[24];
    size_t end, n = 0;

    for (int k = 0; k < 3 && i && strchr(" .:(=", s.p[i - 1]); k++)
        i--;
    for (end = i; i && (ascii_is_letter(s.p[i - 1]) || (unsigned char)s.p[i - 1] >= 0x80) && end - i < sizeof word - 1;)
        i--;
    for (; i < end; i++)
        word[n++] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] | 0x20 : s.p[i]);
    word[n] = '\0';
    for (size_t k = 0; k < n_words; k++)
        if (strcmp(word, words[k]) == 0)
            return true;
    return false;
}

static bool ipv4_at(struct span s, size_t from, size_t i, struct pii_match *m)
{
    static const char *const versions[] = {"version", "ver", "release", "v"};
    unsigned char a[4];
    size_t q = i;

    if (!starts_apart(s, from, i) || (i > from && s.p[i - 1] == '.'))
        return false;
    for (int k = 0; k < 4; k++) {
        int n = pii_digits(s, q, 4), v = 0;
        if (n < 1 || n > 3 || (n > 1 && s.p[q] == '0'))
            return false;
        for (int d = 0; d < n; d++)
            v = v * 10 + s.p[q + (size_t)d] - '0';
        if (v > 255)
            return false;
        a[k] = (unsigned char)v;
        q += (size_t)n;
        if (k < 3 && pii_at(s, q++) != '.')
            return false;
    }
    *m = (struct pii_match){i, q, PII_IP};
    return !pii_word_at(s, q) && !(pii_at(s, q) == '.' && ascii_is_digit(pii_at(s, q + 1))) && pii_ipv4_global(a) &&
           !behind_word(s, i, versions, sizeof versions / sizeof *versions);
}

/* Addresses for everybody begin with 2 or 3, a digit. */
static bool ipv6_at(struct span s, size_t from, size_t i, struct pii_match *m)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char a[16];
    size_t n = 0;

    if (pii_at(s, i + 4) != ':' || s.p[i] < '2' || s.p[i] > '3' || !starts_apart(s, from, i) ||
        (i > from && s.p[i - 1] == ':'))
        return false;
    while (n < 40 && (ascii_is_hex(pii_at(s, i + n)) || pii_at(s, i + n) == ':'))
        n++;
    if (n > 1 && s.p[i + n - 1] == ':' && s.p[i + n - 2] != ':')
        n--;
    if (n >= 40 || pii_word_at(s, i + n))
        return false;
    memcpy(text, s.p + i, n);
    text[n] = '\0';
    *m = (struct pii_match){i, i + n, PII_IPV6};
    if (inet_pton(AF_INET6, text, a) != 1)
        return false;
    /* 2001:db8::/32 and 3fff::/20 are for documentation */
    return memcmp(a, "\x20\x01\x0D\xB8", 4) != 0 && !(a[0] == 0x3F && a[1] == 0xFF && a[2] < 0x10);
}

/* ---- telephone ---- */

/* The length of what may stand between two groups of digits; 0: nothing of the kind.  A
 * parenthesis opens behind the first group only. */
static size_t phone_gap(struct span s, size_t i, bool first, bool *open)
{
    size_t n = 0;
    int marks = 0, spaces = 0;

    for (; n < 3 && pii_at(s, i + n) && strchr(" -./()", s.p[i + n]); n++) {
        char c = s.p[i + n];
        if ((c == '(' && (!first || *open)) || (c == ')' && !*open))
            return 0;
        *open = c == '(' || (*open && c != ')');
        spaces += c == ' ';
        marks += strchr("-./", c) != NULL;
    }
    return marks < 2 && (size_t)spaces < (n == 1 ? 2 : n) && ascii_is_digit(pii_at(s, i + n)) ? n : 0;
}

static bool is_north_american(const char *d) { return d[0] >= '2' && d[3] >= '2'; }

/* Groups of digits from i on: the end of the longest number of min to 15 digits (for
 * country code 1, if there is one: 11), or 0. */
static size_t phone_end(struct span s, size_t i, int min, bool country)
{
    char d[15];
    int n = 0;
    bool open = i && s.p[i - 1] == '(';
    size_t end = 0;

    for (;;) {
        int group = pii_digits(s, i, 16);
        size_t gap;

        if (!group || n + group > 15)
            return end;
        memcpy(d + n, s.p + i, (size_t)group);
        n += group;
        i += (size_t)group;
        if (n >= min && !open && ends_apart(s, i) &&
            (!country || d[0] != '1' || (n == 11 && is_north_american(d + 1))))
            end = i;
        gap = phone_gap(s, i, n == group, &open);
        if (!gap)
            return end;
        i += gap;
    }
}

/* +CC and 8 to 15 digits in all. */
static bool phone_plus(struct span s, size_t from, size_t i, struct pii_match *m)
{
    m->start = i;
    if (m->start > from + 1 && s.p[m->start - 1] == '(')
        m->start--;
    if (m->start == from || s.p[--m->start] != '+' || !starts_apart(s, from, m->start) || s.p[i] == '0')
        return false;
    m->end = phone_end(s, i, 8, true);
    return m->end != 0;
}

/* 212-555-0123, 212.555.0123, (212) 555-0123, with or without 1 before it. */
static bool phone_north_american(struct span s, size_t from, size_t i, struct pii_match *m)
{
    size_t area = i, q;
    bool paren;
    char sep;

    if (s.p[i] == '1' && pii_at(s, i + 1) && strchr(" -.", s.p[i + 1]))
        area = i + 2 + (pii_at(s, i + 2) == '(');
    paren = area > from && s.p[area - 1] == '(';
    if (pii_digits(s, area, 4) != 3)
        return false;
    q = area + 3;
    if (paren) {
        if (pii_at(s, q++) != ')')
            return false;
        q += pii_at(s, q) == ' ' || pii_at(s, q) == '-';
    } else if (pii_at(s, q) != '-' && pii_at(s, q) != '.') {
        return false;
    } else {
        q++;
    }
    if (pii_digits(s, q, 4) != 3 || pii_digits(s, q + 4, 5) != 4)
        return false;
    sep = s.p[q + 3];
    if (sep != '-' && sep != '.' && !(paren && sep == ' '))
        return false;
    m->start = area == i && paren ? i - 1 : i;
    m->end = q + 8;
    return s.p[area] >= '2' && s.p[q] >= '2' && starts_apart(s, from, m->start) && ends_apart(s, m->end);
}

/* Six to fifteen digits behind a word that says so, and apart from it: joined they are one word, the end of a
 * domain perhaps. */
static bool phone_after_word(struct span s, size_t from, size_t i, struct pii_match *m)
{
    static const char *const words[] = {
        "tel", "telephone", "telefon", "telefono", ("tel\xC3\xA9" "fono"), "telefone", "t\xC3\xA9l",
        "t\xC3\xA9l\xC3\xA9phone", "phone", "ph", "fax", "fon", "mobile", "mobil", "m\xC3\xB3vil", "gsm",
        "whatsapp", "\xD1\x82\xD0\xB5\xD0\xBB", "\xD1\x82\xD0\xB5\xD0\xBB\xD0\xB5\xD1\x84\xD0\xBE\xD0\xBD"};

    m->start = i > from && s.p[i - 1] == '(' ? i - 1 : i;
    m->end = phone_end(s, i, 6, false);
    return m->end && starts_apart(s, from, m->start) && behind_word(s, m->start, words, sizeof words / sizeof *words);
}

static bool phone_at(struct span s, size_t from, size_t i, struct pii_match *m)
{
    m->kind = PII_PHONE;
    return phone_plus(s, from, i, m) || phone_north_american(s, from, i, m) || phone_after_word(s, from, i, m);
}

/* ---- payment cards ---- */

/* Issuers' first digits (as a number of `len` digits, first to last) and lengths. */
static const struct {
    uint16_t first, last;
    uint8_t len, lengths[4];
} issuers[] = {
    {4, 4, 1, {13, 16, 19}},        /* Visa */
    {51, 55, 2, {16}},              /* Mastercard */
    {2221, 2720, 4, {16}},
    {34, 34, 2, {15}},              /* American Express */
    {37, 37, 2, {15}},
    {300, 305, 3, {14, 16, 19}},    /* Diners Club */
    {36, 36, 2, {14, 16, 19}},
    {38, 39, 2, {14, 16, 19}},
    {6011, 6011, 4, {16, 19}},      /* Discover */
    {644, 649, 3, {16, 19}},
    {65, 65, 2, {16, 19}},
    {3528, 3589, 4, {16, 19}},      /* JCB */
    {62, 62, 2, {16, 17, 18, 19}},  /* UnionPay */
    {2200, 2204, 4, {16, 19}},      /* Mir */
    {5018, 5018, 4, {12, 13, 16, 19}}, /* Maestro */
    {5020, 5020, 4, {12, 13, 16, 19}},
    {5038, 5038, 4, {12, 13, 16, 19}},
    {5893, 5893, 4, {12, 13, 16, 19}},
    {6304, 6304, 4, {12, 13, 16, 19}},
    {6759, 6763, 4, {12, 13, 16, 19}},
};

static bool is_card(const char *d, int n)
{
    int sum = 0, number[5] = {0};
    bool known = false;

    for (int i = 0; i < 4; i++)
        number[i + 1] = number[i] * 10 + d[i] - '0';
    for (size_t i = 0; i < sizeof issuers / sizeof *issuers; i++)
        if (number[issuers[i].len] >= issuers[i].first && number[issuers[i].len] <= issuers[i].last)
            known = known || memchr(issuers[i].lengths, n, sizeof issuers[i].lengths);
    for (int i = 0; i < n; i++) {
        int v = d[n - 1 - i] - '0';
        v = i & 1 ? v * 2 - (v > 4 ? 9 : 0) : v;
        sum += v;
    }
    return known && sum % 10 == 0;
}

static bool card_at(struct span s, size_t from, size_t i, struct pii_match *m)
{
    static const uint8_t groupings[][5] = {{4, 4, 4, 4, 3}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}};
    char d[20];
    int run = pii_digits(s, i, 20);

    *m = (struct pii_match){i, i + (size_t)run, PII_CARD};
    if (!starts_apart(s, from, i))
        return false;
    if (run >= 12 && run <= 19)
        return ends_apart(s, m->end) && is_card(s.p + i, run);
    if (run != 4 || (pii_at(s, i + 4) != ' ' && pii_at(s, i + 4) != '-'))
        return false;
    for (size_t g = 0; g < sizeof groupings / sizeof *groupings; g++) {
        size_t q = i;
        int n = 0, k;
        for (k = 0; k < 5 && groupings[g][k]; k++) {
            int len = groupings[g][k];
            if (k && pii_at(s, q++) != s.p[i + 4])
                break;
            if (pii_digits(s, q, len + 1) != len)
                break;
            memcpy(d + n, s.p + q, (size_t)len);
            n += len;
            q += (size_t)len;
        }
        m->end = q;
        if ((k == 5 || !groupings[g][k]) && ends_apart(s, q) && is_card(d, n))
            return true;
    }
    return false;
}

/* ---- bank accounts ---- */

/* Countries of the IBAN registry, and how long theirs are. */
static const char ibans[] =
    "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27"
    "GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22"
    "MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28"
    "TL23TN24TR26UA29VA22VG24XK20YE30";

static int iban_length(const char *country)
{
    for (const char *p = ibans; *p; p += 4)
        if (p[0] == country[0] && p[1] == country[1])
            return (p[2] - '0') * 10 + p[3] - '0';
    return 0;
}

static bool iban_at(struct span s, size_t from, size_t i, struct pii_match *m)
{
    char d[36];
    size_t q;
    int n = 0, length;
    unsigned mod = 0;

    if (i < from + 2 || !ascii_is_digit(pii_at(s, i + 1)) || !starts_apart(s, from, i - 2))
        return false;
    length = iban_length(s.p + i - 2);
    for (q = i - 2; n < length; q++) {
        char c = pii_at(s, q);
        if (c == ' ' && n && n % 4 == 0 && s.p[q - 1] != ' ')
            continue;
        if (!ascii_is_digit(c) && !(c >= 'A' && c <= 'Z'))
            return false;
        d[n++] = c;
    }
    if (!length || pii_word_at(s, q))
        return false;
    for (int k = 0; k < n; k++) { /* the first four characters go to the end */
        char c = d[(k + 4) % n];
        mod = ascii_is_digit(c) ? (mod * 10 + (unsigned)(c - '0')) % 97 : (mod * 100 + (unsigned)(c - 'A') + 10) % 97;
    }
    *m = (struct pii_match){i - 2, q, PII_IBAN};
    return mod == 1;
}

/* ---- all of them ---- */

/* True if the digits at i, with what may stand between digits of a number, are too few for
 * anything: most numbers are years and counts. */
static bool is_short(struct span s, size_t i)
{
    int digits = 0, dots = 0;

    for (int gap = 0; gap < 4; i++) {
        char c = pii_at(s, i);
        if (ascii_is_digit(c)) {
            digits++;
            gap = 0;
        } else {
            dots += c == '.';
            gap++;
        }
        if (digits >= 6 || dots >= 3 || c == ':')
            return false;
        if (!c || (gap && !strchr(" -./()", c) && !ascii_is_hex(c)))
            break;
    }
    return true;
}

bool pii_next_number(unsigned kinds, struct span s, size_t from, struct pii_match *m)
{
    size_t i = from;

    while ((i = pii_next_digit(s, i)) < s.n) {
        if (kinds & 1u << PII_IBAN && i && s.p[i - 1] >= 'A' && s.p[i - 1] <= 'Z' && iban_at(s, from, i, m))
            return true;
        if (!is_short(s, i) && ((kinds & 1u << PII_CARD && card_at(s, from, i, m)) ||
                                (kinds & 1u << PII_IPV6 && ipv6_at(s, from, i, m)) ||
                                (kinds & 1u << PII_IP && ipv4_at(s, from, i, m)) ||
                                (kinds & 1u << PII_PHONE && phone_at(s, from, i, m))))
            return true;
        while (i < s.n && ascii_is_digit(s.p[i]))
            i++;
    }
    return false;
}
