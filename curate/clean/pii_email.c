/* E-mail addresses, and datatrove's two expressions. */
#include "curate/clean/pii_scan.h"

#include <arpa/inet.h>

#include "curate/text/chars.h"

bool pii_word_before(struct span s, size_t i)
{
    struct span before = {s.p, i};
    int n;

    return i && chars_is_word(chars_last(before, &n));
}

bool pii_word_at(struct span s, size_t i)
{
    int n;

    return i < s.n && chars_is_word(chars_decode(s.p + i, &n));
}

size_t pii_next_digit(struct span s, size_t i)
{
    for (; i + 16 <= s.n; i += 16) {
        unsigned any = 0;
        for (size_t k = 0; k < 16; k++)
            any |= (unsigned char)(s.p[i + k] - '0') < 10;
        if (any)
            break;
    }
    while (i < s.n && !ascii_is_digit(s.p[i]))
        i++;
    return i;
}

/* ---- the part behind the @ ---- */

static bool is_alnum_or_dash(char c) { return ascii_is_alnum(c) || c == '-'; }

/* Labels with dots between them, as many as there are; *last is where the last begins.
 * Returns their end, or 0 if there are not two. */
static size_t domain_end(struct span s, size_t i, size_t *last)
{
    size_t labels = 0;

    for (;;) {
        size_t from = i, end;
        if (!ascii_is_alnum(pii_at(s, i)))
            return 0;
        while (is_alnum_or_dash(pii_at(s, i)))
            i++;
        for (end = i; s.p[end - 1] == '-';)
            end--;
        labels++;
        *last = from;
        if (end != i || pii_at(s, i) != '.' || !ascii_is_alnum(pii_at(s, i + 1)))
            return labels > 1 ? end : 0;
        i++;
    }
}

/* ---- our own rule ---- */

/* Letters of names that are not ASCII: Latin, Greek, Cyrillic. */
static bool is_name_letter(uint32_t c)
{
    return (c >= 0xC0 && c <= 0x24F && c != 0xD7 && c != 0xF7) || (c >= 0x370 && c <= 0x52F);
}

static bool is_local(char c) { return ascii_is_alnum(c) || (c && strchr("._%+-'~", c)); }

/* Where the part before the @ at `at` begins; at if there is none. */
static size_t local_start(struct span s, size_t from, size_t at)
{
    size_t i = at, start = at;
    int n;

    while (i > from && at - i <= 64) {
        struct span before = {s.p, i};
        uint32_t c = chars_last(before, &n);
        if (c < 0x80 ? !is_local((char)c) : !is_name_letter(c))
            break;
        i -= (size_t)n;
        if (c >= 0x80 || ascii_is_alnum((char)c) || c == '_')
            start = i;
    }
    return at > from && at - start <= 64 && s.p[at - 1] != '.' ? start : at;
}

/* True if s is a top-level domain: letters, or xn-- and more; no file's extension. */
static bool is_top_level(struct span s)
{
    static const char *const files[] = {"png", "jpg", "jpeg", "gif", "webp", "svg", "css", "js"};

    if (s.n < 2 || s.n > 63)
        return false;
    if (s.n > 4 && strncasecmp(s.p, "xn--", 4) == 0)
        return true;
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_letter(s.p[i]))
            return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (s.n == strlen(files[i]) && strncasecmp(s.p, files[i], s.n) == 0)
            return false;
    return true;
}

/* The end of the domain at i whose last label is a top-level domain, or 0. */
static size_t named_domain_end(struct span s, size_t i)
{
    size_t last, end = domain_end(s, i, &last);

    while (end && !is_top_level((struct span){s.p + last, end - last})) {
        end = last - 1; /* the dot */
        for (last = end; last > i && s.p[last - 1] != '.';)
            last--;
        if (last == i)
            return 0;
    }
    return end;
}

bool pii_next_email(unsigned kinds, struct span s, size_t from, struct pii_match *m)
{
    (void)kinds;
    for (size_t i = from; i < s.n; i++) {
        const char *at = memchr(s.p + i, '@', s.n - i);
        if (!at)
            return false;
        i = (size_t)(at - s.p);
        m->start = local_start(s, from, i);
        m->end = m->start < i ? named_domain_end(s, i + 1) : 0;
        m->kind = PII_EMAIL;
        if (m->end)
            return true;
    }
    return false;
}

/* ---- datatrove's: [atext]+(.[atext]+)*@(domain|[literal]) behind \b ---- */

static bool is_atext(char c) { return ascii_is_alnum(c) || (c && strchr("!#$%&'*+/=?^_`{|}~-", c)); }

static size_t atom_start(struct span s, size_t from, size_t at)
{
    size_t i = at;

    while (i > from && (is_atext(s.p[i - 1]) ||
                        (s.p[i - 1] == '.' && i < at && s.p[i] != '.' && i - 1 > from && is_atext(s.p[i - 2]))))
        i--;
    for (; i < at; i++)
        if (is_atext(s.p[i]) && pii_word_before(s, i) != (ascii_is_alnum(s.p[i]) || s.p[i] == '_'))
            return i;
    return at;
}

/* A number up to 255 as datatrove's expressions have it: one to three digits, the whole run. */
static int octet_digits(struct span s, size_t i)
{
    int n = pii_digits(s, i, 4);

    if (n == 3 && (s.p[i] > '2' || (s.p[i] == '2' && (s.p[i + 1] > '5' || (s.p[i + 1] == '5' && s.p[i + 2] > '5')))))
        return 0;
    return n < 4 ? n : 0;
}

/* [1.2.3.4] or [1.2.3.name:]: the end, or 0. */
static size_t literal_end(struct span s, size_t i)
{
    int n;

    if (pii_at(s, i++) != '[')
        return 0;
    for (int k = 0; k < 3; k++) {
        n = octet_digits(s, i);
        if (!n || pii_at(s, i + (size_t)n) != '.')
            return 0;
        i += (size_t)n + 1;
    }
    n = octet_digits(s, i);
    if (n && pii_at(s, i + (size_t)n) == ']')
        return i + (size_t)n + 1;
    while (is_alnum_or_dash(pii_at(s, i)))
        i++;
    return s.p[i - 1] != '.' && s.p[i - 1] != '-' && pii_at(s, i) == ':' && pii_at(s, i + 1) == ']' ? i + 2 : 0;
}

bool pii_next_email_datatrove(unsigned kinds, struct span s, size_t from, struct pii_match *m)
{
    size_t last;

    (void)kinds;
    for (size_t i = from; i < s.n; i++) {
        const char *at = memchr(s.p + i, '@', s.n - i);
        if (!at)
            return false;
        i = (size_t)(at - s.p);
        m->start = atom_start(s, from, i);
        m->end = m->start < i ? domain_end(s, i + 1, &last) : 0;
        if (m->start < i && !m->end)
            m->end = literal_end(s, i + 1);
        m->kind = PII_EMAIL;
        if (m->end)
            return true;
    }
    return false;
}

/* The digits of a last octet: as many as the expression takes, which need not be all. */
static int last_octet_digits(struct span s, size_t i)
{
    int n = pii_digits(s, i, 3);

    if (n < 3)
        return n;
    return octet_digits((struct span){s.p, i + 3}, i) ? 3 : 2;
}

/* The first octet ends a run of digits, of which up to three count. */
static bool ip_datatrove_at(struct span s, size_t i, size_t dot, struct pii_match *m)
{
    size_t q = dot;
    int n;

    m->start = dot - i > 3 ? dot - 3 : i;
    if (!octet_digits((struct span){s.p, dot}, m->start))
        m->start++;
    for (int k = 0; k < 2; k++) {
        n = octet_digits(s, q + 1);
        if (!n || pii_at(s, q + 1 + (size_t)n) != '.')
            return false;
        q += (size_t)n + 1;
    }
    n = last_octet_digits(s, q + 1);
    m->end = q + 1 + (size_t)n;
    return n != 0;
}

bool pii_next_ip_datatrove(unsigned kinds, struct span s, size_t from, struct pii_match *m)
{
    (void)kinds;
    m->kind = PII_IP;
    for (size_t i = from; i < s.n;) {
        size_t dot;
        struct in_addr a;
        char text[16];

        i = pii_next_digit(s, i);
        for (dot = i; dot < s.n && ascii_is_digit(s.p[dot]);)
            dot++;
        if (dot == i || pii_at(s, dot) != '.' || !ip_datatrove_at(s, i, dot, m)) {
            i = dot;
            continue;
        }
        i = m->end;
        memcpy(text, s.p + m->start, m->end - m->start);
        text[m->end - m->start] = '\0';
        /* inet_pton refuses leading zeros, as Python does */
        if (inet_pton(AF_INET, text, &a) == 1 && pii_ipv4_global((const unsigned char *)&a))
            return true;
    }
    return false;
}
