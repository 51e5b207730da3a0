#include "curate/xml/xml_reader.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "curate/text/html_entity.h"

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
}

void xml_reader_begin(struct xml_reader *r, struct span xml)
{
    void *entity = r->entity;
    size_t cap = r->cap_entities;

    if (!xml.n)
        xml.p = "";
    *r = (struct xml_reader){.start = xml.p, .p = xml.p, .end = xml.p + xml.n};
    r->entity = entity;
    r->cap_entities = cap;
}

void xml_reader_free(struct xml_reader *r)
{
    free(r->entity);
    *r = (struct xml_reader){0};
}

size_t xml_offset(const struct xml_reader *r)
{
    return (size_t)((r->depth ? r->outer[0].p : r->p) - r->start);
}

static bool at(const struct xml_reader *r, const char *what)
{
    size_t n = strlen(what);

    return (size_t)(r->end - r->p) >= n && memcmp(r->p, what, n) == 0;
}

/* Passes skip bytes and then all up to and with mark; what lies between.  Without a mark: the rest. */
static struct span pass(struct xml_reader *r, size_t skip, const char *mark)
{
    const char *from = r->p + skip, *to;

    if (from > r->end)
        from = r->end;
    to = memmem(from, (size_t)(r->end - from), mark, strlen(mark));
    r->faults += !to;
    r->p = to ? to + strlen(mark) : r->end;
    if (!to)
        to = r->end;
    return (struct span){from, (size_t)(to - from)};
}

/* ---- entities ---- */

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && ascii_is_space(*p))
        p++;
    return p;
}

/* Where the entity of this name is, or would be; *is: whether it is there. */
static size_t entity_at(const struct xml_reader *r, struct span name, bool *is)
{
    size_t lo = 0, hi = r->n_entities;

    *is = false;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        struct span s = r->entity[mid].name;
        int d = s.n != name.n ? (s.n < name.n ? -1 : 1) : memcmp(s.p, name.p, s.n);
        if (d == 0) {
            *is = true;
            return mid;
        }
        if (d < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Notes <!ENTITY name "value">, the first of a name; parameter entities and external ones are nothing. */
static void declare(struct xml_reader *r, struct span decl)
{
    const char *p = skip_space(decl.p, decl.p + decl.n), *end = decl.p + decl.n, *name = p, *close;
    size_t place;
    bool is;

    while (p < end && is_name(*p))
        p++;
    struct span s = {name, (size_t)(p - name)};
    p = skip_space(p, end);
    if (!s.n || p == end || (*p != '"' && *p != '\'') || r->n_entities == XML_ENTITIES_MAX)
        return;
    close = memchr(p + 1, *p, (size_t)(end - p - 1));
    place = entity_at(r, s, &is);
    if (!close || is)
        return;
    if (mem_grow(&r->entity, &r->cap_entities, r->n_entities + 1, sizeof *r->entity) < 0) {
        r->nomem = true;
        return;
    }
    memmove(r->entity + place + 1, r->entity + place, (r->n_entities++ - place) * sizeof *r->entity);
    r->entity[place].name = s;
    r->entity[place].value = (struct span){p + 1, (size_t)(close - p - 1)};
}

/* Passes <!DOCTYPE ...>, with the declarations between its brackets. */
static void pass_doctype(struct xml_reader *r)
{
    bool subset = false;

    r->p += 9;
    while (r->p < r->end) {
        char c = *r->p;
        if (at(r, "<!--")) {
            pass(r, 4, "-->");
        } else if (at(r, "<?")) {
            pass(r, 2, "?>");
        } else if (at(r, "<!ENTITY")) {
            const char *from = r->p += 8;
            while (r->p < r->end && *r->p != '>') {
                const char *close = *r->p == '"' || *r->p == '\'' ? memchr(r->p + 1, *r->p, (size_t)(r->end - r->p - 1)) : NULL;
                r->p = close ? close + 1 : r->p + 1;
            }
            declare(r, (struct span){from, (size_t)(r->p - from)});
        } else if (c == '"' || c == '\'') {
            const char *close = memchr(r->p + 1, c, (size_t)(r->end - r->p - 1));
            r->p = close ? close + 1 : r->p + 1;
        } else {
            r->p++;
            if (c == '[' || c == ']')
                subset = c == '[';
            else if (c == '>' && !subset)
                return;
        }
    }
    r->faults++;
}

/* The length of the entity reference at p ('&') that the document declares, and which it is; 0: none. */
static size_t declared(const struct xml_reader *r, const char *p, size_t *which)
{
    const char *q = p + 1;
    bool is;

    while (q < r->end && is_name(*q))
        q++;
    if (q == r->end || *q != ';')
        return 0;
    *which = entity_at(r, (struct span){p + 1, (size_t)(q - p - 1)}, &is);
    return is ? (size_t)(q + 1 - p) : 0;
}

/* Goes on with an entity's value, then behind the reference of n bytes at r->p. */
static void enter(struct xml_reader *r, size_t which, size_t n)
{
    struct span value = r->entity[which].value;

    r->p += n;
    r->expanded += value.n;
    if (r->expanded > XML_EXPANSION_MAX)
        r->too_much = true;
    if (r->depth == XML_ENTITY_DEPTH || r->too_much) {
        r->faults++;
        return;
    }
    r->outer[r->depth].p = r->p;
    r->outer[r->depth].end = r->end;
    r->outer[r->depth++].text_end = r->text_end;
    r->p = value.p;
    r->end = value.p + value.n;
    r->text_end = NULL;
}

/* ---- events ---- */

/* The end of a tag whose name ends at p: '>' outside of quotes; without one, the next '<' or the end. */
static const char *tag_end(const char *p, const char *end)
{
    while (p < end && *p != '>' && *p != '<') {
        if (*p == '=') {
            p = skip_space(p + 1, end);
            if (p < end && (*p == '"' || *p == '\'')) {
                const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
                if (!close)
                    return end;
                p = close + 1;
            }
        } else {
            p++;
        }
    }
    return p;
}

static enum xml_event take_tag(struct xml_reader *r)
{
    bool closing = r->p[1] == '/';
    const char *p = r->p + 1 + closing, *name = p, *to;

    r->prefix = (struct span){p, 0};
    for (; p < r->end && is_name(*p); p++)
        if (*p == ':' && name == r->prefix.p) {
            r->prefix.n = (size_t)(p - name);
            name = p + 1;
        }
    r->name = (struct span){name, (size_t)(p - name)};
    to = p < r->end && *p == '>' ? p : tag_end(p, r->end);
    r->empty = !closing && to > p && to[-1] == '/';
    r->attrs = (struct span){p, (size_t)(to - p)};
    if (to < r->end && *to == '>')
        r->p = to + 1;
    else {
        r->p = to;
        r->faults++;
    }
    return closing ? XML_EV_CLOSE : XML_EV_START;
}

static bool begins_markup(const char *p, const char *end)
{
    if (p + 1 >= end)
        return false;
    return is_name_start(p[1]) || p[1] == '!' || p[1] == '?' || (p[1] == '/' && p + 2 < end && is_name_start(p[2]));
}

/* Where the text at r->p ends: at markup, or at the end. */
static const char *find_text_end(struct xml_reader *r)
{
    const char *p = r->p;

    for (;; p++) {
        const char *lt = memchr(p, '<', (size_t)(r->end - p));
        p = lt ? lt : r->end;
        if (p == r->end || (p > r->p && begins_markup(p, r->end)))
            return p;
        r->faults++;
    }
}

/* Text up to the next tag, or declared entity. */
static enum xml_event take_text(struct xml_reader *r)
{
    const char *p;

    if (!r->text_end || r->text_end <= r->p)
        r->text_end = find_text_end(r);
    p = r->text_end;
    if (r->n_entities) {
        const char *amp = r->p;
        size_t which;
        while ((amp = memchr(amp, '&', (size_t)(p - amp)))) {
            if (declared(r, amp, &which)) {
                p = amp;
                break;
            }
            amp++;
        }
    }
    r->text = (struct span){r->p, (size_t)(p - r->p)};
    r->literal = false;
    r->p = p;
    return XML_EV_TEXT;
}

enum xml_event xml_next(struct xml_reader *r)
{
    for (;;) {
        size_t which, n;

        if (r->p == r->end) {
            if (!r->depth)
                return XML_EV_END;
            r->p = r->outer[--r->depth].p;
            r->end = r->outer[r->depth].end;
            r->text_end = r->outer[r->depth].text_end;
        } else if (*r->p == '&' && r->n_entities && (n = declared(r, r->p, &which))) {
            enter(r, which, n);
        } else if (*r->p != '<' || !begins_markup(r->p, r->end)) {
            return take_text(r);
        } else if (r->p[1] != '!' && r->p[1] != '?') {
            return take_tag(r);
        } else if (at(r, "<!--")) {
            pass(r, 4, "-->");
        } else if (at(r, "<![CDATA[")) {
            r->text = pass(r, 9, "]]>");
            r->literal = true;
            return XML_EV_TEXT;
        } else if (at(r, "<?")) {
            pass(r, 2, "?>");
        } else if (at(r, "<!DOCTYPE")) {
            pass_doctype(r);
        } else {
            pass(r, 2, ">");
        }
    }
}

/* ---- attributes ---- */

struct span xml_attr(const struct xml_reader *r, const char *name)
{
    const char *p = r->attrs.p, *end = p + r->attrs.n;
    size_t n = strlen(name);

    while (p < end) {
        const char *from, *value, *close;

        while (p < end && !is_name_start(*p))
            p++;
        for (from = p; p < end && is_name(*p); p++)
            if (*p == ':')
                from = p + 1;
        bool it = (size_t)(p - from) == n && memcmp(from, name, n) == 0;
        p = skip_space(p, end);
        if (p == end || *p != '=')
            continue;
        p = skip_space(p + 1, end);
        if (p == end || (*p != '"' && *p != '\''))
            continue;
        value = p + 1;
        close = memchr(value, *p, (size_t)(end - value));
        if (!close)
            break;
        if (it)
            return (struct span){value, (size_t)(close - value)};
        p = close + 1;
    }
    return (struct span){NULL, 0};
}

int xml_attr_text(const struct xml_reader *r, const char *name, struct buf *out)
{
    struct span v = xml_attr(r, name);

    if (!v.p)
        return 0;
    TRY(xml_put_text(v, false, out));
    return 1;
}

bool xml_attr_is(const struct xml_reader *r, const char *name, const char *value)
{
    return span_is(xml_attr(r, name), value);
}

/* ---- characters ---- */

static bool is_char(uint32_t c)
{
    return c == 9 || c == 10 || c == 13 || (c >= 0x20 && c <= 0x7F) || (c >= 0xA0 && c <= 0xD7FF) ||
           (c >= 0xE000 && c <= 0xFFFD) || (c >= 0x10000 && c <= 0x10FFFF);
}

/* The numeric reference at p ("&#"): its length, or 0; *cp is 0 for a character that XML forbids. */
static size_t numeric(const char *p, const char *end, uint32_t *cp)
{
    const char *q = p + 2;
    uint32_t c = 0, base = 10;

    if (q < end && (*q == 'x' || *q == 'X')) {
        base = 16;
        q++;
    }
    const char *digits = q;
    for (; q < end; q++) {
        uint32_t d = (uint32_t)ascii_hex(*q);

        if (d >= base)
            break;
        if (c <= 0x10FFFF)
            c = c * base + d;
    }
    if (q == digits || q == end || *q != ';')
        return 0;
    *cp = is_char(c) ? c : 0;
    return (size_t)(q + 1 - p);
}

/* The length of "&name;" at p, or 0. */
static size_t named(const char *p, const char *end)
{
    const char *q = p + 1;

    while (q < end && is_name(*q))
        q++;
    return q > p + 1 && q < end && *q == ';' ? (size_t)(q + 1 - p) : 0;
}

static int put_char(char c, bool html, struct buf *out)
{
    if (html && c == '<')
        return buf_puts(out, "&lt;");
    return html && c == '&' ? buf_puts(out, "&amp;") : buf_putc(out, c);
}

/* The length of the reference at p to one of XML's own entities, which most are, or 0. */
static size_t predefined(const char *p, const char *end, char *c)
{
    static const struct {
        char name[7], n, c;
    } own[] = {{"&lt;", 4, '<'}, {"&gt;", 4, '>'}, {"&amp;", 5, '&'}, {"&quot;", 6, '"'}, {"&apos;", 6, '\''}};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (end - p >= own[i].n && memcmp(p, own[i].name, (size_t)own[i].n) == 0) {
            *c = own[i].c;
            return (size_t)own[i].n;
        }
    return 0;
}

/* Appends the reference at p ('&'); its length, or less than 0.  *lost: whether it is none, or of nothing that is kept. */
static ssize_t put_reference(const char *p, const char *end, bool html, struct buf *out, bool *lost)
{
    char c[8];
    int n_out = 0;
    uint32_t cp = 0;
    size_t n = predefined(p, end, c);

    if (n) {
        n_out = 1;
    } else if (p + 1 < end && p[1] == '#') {
        n = numeric(p, end, &cp);
        if (cp)
            n_out = utf8_put(c, cp);
        else if (n && html_entity(p, end, true, c, &n_out) == n && !strchr("\xC5\xC6\xCB\xE2", c[0]))
            n_out = 0; /* of what XML forbids only windows-1252's quotes and dashes are kept, as HTML has them */
    } else {
        n = named(p, end);
        if (n && html_entity(p, end, true, c, &n_out) != n)
            n_out = 0;
    }
    *lost = n_out == 0;
    if (!n) { /* a bare & */
        TRY(put_char('&', html, out));
        return 1;
    }
    for (int i = 0; i < n_out; i++)
        TRY(put_char(c[i], html, out));
    return (ssize_t)n;
}

/* Whether a byte is not put as it stands: that of a reference, of a tag, a control but for line feed and tab. */
static inline unsigned is_special(char b)
{
    unsigned char c = (unsigned char)b;

    return (unsigned)((c < 0x20) & (c != '\n') & (c != '\t')) | (unsigned)((c == '&') | (c == '<'));
}

/* The first such byte at or behind p. */
static const char *find_special(const char *p, const char *end)
{
    enum { AT_ONCE = 32 };

    for (; end - p >= AT_ONCE; p += AT_ONCE) {
        unsigned char any = 0; /* no branch: the compiler compares all at once */
        for (int i = 0; i < AT_ONCE; i++)
            any |= (unsigned char)is_special(p[i]);
        if (any)
            break;
    }
    while (p < end && !is_special(*p))
        p++;
    return p;
}

static int put(struct span raw, bool literal, bool html, struct buf *out)
{
    const char *p = raw.p, *end = raw.p + raw.n;
    int lost = 0;

    while (p < end) {
        const char *q = find_special(p, end);
        bool bad = false;
        TRY(buf_put(out, p, (size_t)(q - p)));
        if (q == end)
            break;
        p = q + 1;
        if (*q == '&' && !literal) {
            ssize_t n = put_reference(q, end, html, out, &bad);
            if (n < 0)
                return (int)n;
            p = q + n;
        } else if (*q == '&' || *q == '<') {
            TRY(put_char(*q, html, out));
        } else if (*q != '\r') {
            bad = true;
        } else if (p == end || *p != '\n') {
            TRY(buf_putc(out, '\n'));
        }
        lost += bad && lost < INT_MAX;
    }
    return lost;
}

int xml_put_text(struct span raw, bool literal, struct buf *out)
{
    return put(raw, literal, false, out);
}

int xml_put_html(struct span raw, bool literal, struct buf *out)
{
    return put(raw, literal, true, out);
}
