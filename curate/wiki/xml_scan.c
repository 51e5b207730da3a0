#include "curate/wiki/xml_scan.h"

#include <inttypes.h>

#include "base/ascii.h"
#include "base/utf8.h"

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '_' ||
           c == '-' || c == '.' || (unsigned char)c >= 0x80;
}

static int fault(const char *start, const char *at, const char *why, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s at its byte %zu", why, (size_t)(at - start));
}

void xml_scan_init(struct xml_scan *x, struct span xml)
{
    *x = (struct xml_scan){.start = xml.p, .p = xml.p, .end = xml.p + xml.n};
}

/* Passes what ends with mark; its beginning, skip bytes, is at x->p. */
static int pass(struct xml_scan *x, size_t skip, const char *mark, const char *why, struct span *inner, struct err *e)
{
    const char *from = x->p + skip, *to = memmem(from, (size_t)(x->end - from), mark, strlen(mark));

    if (!to)
        return fault(x->start, x->p, why, e);
    *inner = (struct span){from, (size_t)(to - from)};
    x->p = to + strlen(mark);
    return 0;
}

/* The end of a tag: '>' outside of quotes; checks that attributes are name="value". */
static const char *tag_end(const char *p, const char *end)
{
    for (;;) {
        const char *name, *quote;

        while (p < end && ascii_is_space(*p))
            p++;
        if (p == end)
            return NULL;
        if (*p == '>' || (*p == '/' && p + 1 < end && p[1] == '>'))
            return p;
        for (name = p; p < end && is_name(*p); p++)
            ;
        if (p == name)
            return NULL;
        while (p < end && ascii_is_space(*p))
            p++;
        if (p == end || *p++ != '=')
            return NULL;
        while (p < end && ascii_is_space(*p))
            p++;
        if (p == end || (*p != '"' && *p != '\''))
            return NULL;
        quote = memchr(p + 1, *p, (size_t)(end - p - 1));
        if (!quote)
            return NULL;
        p = quote + 1;
    }
}

static int take_tag(struct xml_scan *x, struct err *e)
{
    const char *p = x->p + 1, *name, *to;
    bool closing = p < x->end && *p == '/';

    p += closing;
    for (name = p; p < x->end && is_name(*p); p++)
        ;
    x->name = (struct span){name, (size_t)(p - name)};
    to = x->name.n ? tag_end(p, x->end) : NULL;
    if (!to)
        return fault(x->start, x->p, "damaged tag", e);
    x->attrs = (struct span){p, (size_t)(to - p)};
    x->kind = closing ? XML_CLOSE : *to == '/' ? XML_EMPTY : XML_OPEN;
    x->p = to + 1 + (*to == '/');
    return 0;
}

static bool at(const struct xml_scan *x, const char *what)
{
    size_t n = strlen(what);

    return (size_t)(x->end - x->p) >= n && memcmp(x->p, what, n) == 0;
}

int xml_scan_next(struct xml_scan *x, struct err *e)
{
    struct span inner;

    while (x->p < x->end) {
        if (*x->p != '<') {
            const char *to = memchr(x->p, '<', (size_t)(x->end - x->p));
            x->text = (struct span){x->p, (size_t)((to ? to : x->end) - x->p)};
            x->p += x->text.n;
            x->literal = false;
            x->kind = XML_TEXT;
            return 0;
        }
        if (at(x, "<!--")) {
            TRY(pass(x, 4, "-->", "a comment without an end", &inner, e));
        } else if (at(x, "<![CDATA[")) {
            TRY(pass(x, 9, "]]>", "CDATA without an end", &x->text, e));
            x->literal = true;
            x->kind = XML_TEXT;
            return 0;
        } else if (at(x, "<?")) {
            TRY(pass(x, 2, "?>", "an instruction without an end", &inner, e));
        } else {
            return take_tag(x, e);
        }
    }
    x->kind = XML_END;
    return 0;
}

struct span xml_scan_attr(const struct xml_scan *x, const char *name)
{
    const char *p = x->attrs.p, *end = p + x->attrs.n;
    size_t n = strlen(name);

    while (p < end) {
        const char *from, *value, *quote;

        while (p < end && ascii_is_space(*p))
            p++;
        for (from = p; p < end && is_name(*p); p++)
            ;
        bool it = (size_t)(p - from) == n && memcmp(from, name, n) == 0;
        while (p < end && *p != '"' && *p != '\'')
            p++;
        if (p == end)
            break;
        value = p + 1;
        quote = memchr(value, *p, (size_t)(end - value));
        if (!quote)
            break;
        if (it)
            return (struct span){value, (size_t)(quote - value)};
        p = quote + 1;
    }
    return (struct span){NULL, 0};
}

/* ---- characters ---- */

static bool is_char(uint32_t c)
{
    return c == 9 || c == 10 || c == 13 || (c >= 0x20 && c <= 0xD7FF) || (c >= 0xE000 && c <= 0xFFFD) ||
           (c >= 0x10000 && c <= 0x10FFFF);
}

/* The reference at p ('&'): its length, or 0. */
static size_t reference(const char *p, const char *end, uint32_t *cp)
{
    static const struct { const char *name; char c; } known[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    const char *q = p + 2;
    uint32_t c = 0;
    int base = 10;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].name);
        if ((size_t)(end - p) >= n && memcmp(p, known[i].name, n) == 0) {
            *cp = (unsigned char)known[i].c;
            return n;
        }
    }
    if (end - p < 4 || p[1] != '#')
        return 0;
    if (*q == 'x') {
        base = 16;
        q++;
    }
    for (; q < end && c <= 0x10FFFF; q++) {
        int d = *q >= '0' && *q <= '9' ? *q - '0' : *q >= 'a' && *q <= 'f' ? *q - 'a' + 10
              : *q >= 'A' && *q <= 'F' ? *q - 'A' + 10 : 99;
        if (d >= base)
            break;
        c = c * (uint32_t)base + (uint32_t)d;
    }
    *cp = c;
    return q < end && *q == ';' && is_char(c) ? (size_t)(q + 1 - p) : 0;
}

/* Whether s has a control character; such bytes are no part of longer characters. */
static bool has_control(struct span s)
{
    unsigned bad = 0;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bad |= c < 0x20 && c != '\n' && c != '\t' && c != '\r';
    }
    return bad;
}

/* The first bad character of s, which is known to have one. */
static int bad_character(struct span s, const char *start, struct err *e)
{
    const char *p = s.p, *end = s.p + s.n;
    uint32_t c;

    while (p < end) {
        int n = utf8_next(p, end, &c);
        if (c == 0xFFFD && !(n == 3 && memcmp(p, "\xEF\xBF\xBD", 3) == 0))
            return fault(start, p, "bytes that are not UTF-8", e);
        if (!is_char(c))
            break;
        p += n;
    }
    return fault(start, p, "a character that XML forbids", e);
}

ssize_t xml_decode(struct span raw, bool literal, char *out, const char *start, struct err *e)
{
    const char *p = raw.p, *end = raw.p + raw.n;
    char *to = out;

    if (!raw.n)
        return 0;
    if (has_control(raw) || !utf8_valid(raw))
        return bad_character(raw, start, e);
    bool returns = memchr(p, '\r', raw.n);
    while (p < end) {
        const char *amp = literal ? NULL : memchr(p, '&', (size_t)(end - p));
        size_t n = (size_t)((amp ? amp : end) - p);
        uint32_t c;

        if (!returns) {
            memcpy(to, p, n);
            to += n;
        } else {
            for (size_t i = 0; i < n; i++)
                if (p[i] != '\r')
                    *to++ = p[i];
                else if (p + i + 1 == end || p[i + 1] != '\n')
                    *to++ = '\n';
        }
        p += n;
        if (!amp)
            break;
        n = reference(p, end, &c);
        if (n == 0)
            return fault(start, p, "an entity that XML does not know", e);
        to += utf8_put(to, c);
        p += n;
    }
    return to - out;
}
