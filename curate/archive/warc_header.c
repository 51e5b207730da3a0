#include "curate/archive/warc_header.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/ascii.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || warc_is_eol(c);
}

struct span warc_trim(struct span s)
{
    while (s.n && is_blank(s.p[0]))
        s.p++, s.n--;
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool warc_begins(const char *p, size_t n)
{
    size_t i = 5;

    if (n < 9 || memcmp(p, "WARC/", 5) != 0)
        return false;
    while (i < n && i < 16 && ((p[i] >= '0' && p[i] <= '9') || p[i] == '.'))
        i++;
    if (i < 8)
        return false;
    while (i < n && i < 20 && (p[i] == ' ' || p[i] == '\r'))
        i++;
    return i < n && p[i] == '\n';
}

/* The fields of an ARC record's line, from the right since the URL may have spaces. */
struct arc_line {
    struct span uri, date, mime, length;
    int version;
};

static bool digits(struct span s)
{
    size_t i = s.n && s.p[0] == '-';

    if (i == s.n)
        return false;
    for (; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

static bool is_address(struct span s)
{
    bool mark = false;

    for (size_t i = 0; i < s.n; i++) {
        mark |= s.p[i] == '.' || s.p[i] == ':';
        if (!strchr("0123456789abcdefABCDEF.:", s.p[i]))
            return false;
    }
    return mark;
}

static struct span cut_last(struct span *line)
{
    size_t n = line->n;
    struct span s;

    while (n && line->p[n - 1] != ' ')
        n--;
    s = (struct span){line->p + n, line->n - n};
    line->n = n ? n - 1 : 0;
    return s;
}

/* Version 1: URL IP date type length.  Version 2 has result code, checksum, location,
 * offset and file name before the length. */
static bool arc_parse(struct span line, struct arc_line *a)
{
    struct span rest;
    size_t colon = 0;

    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    while (colon < line.n && line.p[colon] != ':' && line.p[colon] != ' ')
        colon++;
    if (colon == 0 || colon >= line.n || line.p[colon] != ':')
        return false;
    a->length = cut_last(&line);
    if (!digits(a->length))
        return false;
    rest = line;
    for (int version = 1; version <= 2; version++) {
        for (int skip = version == 2 ? 5 : 0; skip; skip--)
            cut_last(&rest);
        a->version = version;
        a->uri = rest;
        a->mime = cut_last(&a->uri);
        a->date = cut_last(&a->uri);
        if (is_address(cut_last(&a->uri)) && a->uri.n)
            return true;
    }
    return false;
}

bool warc_arc_begins(const char *p, size_t n)
{
    const char *nl = memchr(p, '\n', n < WARC_HEADER_MAX ? n : WARC_HEADER_MAX);
    struct arc_line a;

    return nl && arc_parse((struct span){p, (size_t)(nl - p)}, &a);
}

static int64_t parse_length(struct span s)
{
    char text[24];
    long long v;
    char *end;

    if (!digits(s) || s.n >= sizeof text)
        return -1;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    errno = 0;
    v = strtoll(text, &end, 10);
    return errno || *end || v < 0 ? -1 : v;
}

static void take_field(struct warc_record *r, struct span name, struct span value)
{
    struct {
        const char *name;
        struct span *to;
    } field[] = {
        {"WARC-Type", &r->type},       {"WARC-Record-ID", &r->id},
        {"WARC-Target-URI", &r->uri},  {"WARC-Date", &r->date},
        {"Content-Type", &r->mime},    {"WARC-Payload-Digest", &r->payload_digest},
        {"WARC-Block-Digest", &r->block_digest}, {"WARC-Identified-Payload-Type", &r->identified},
    };

    if (name.n == 14 && strncasecmp(name.p, "Content-Length", 14) == 0) {
        if (r->length < 0)
            r->length = parse_length(value);
        return;
    }
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (!field[i].to->p && name.n == strlen(field[i].name) &&
            strncasecmp(name.p, field[i].name, name.n) == 0)
            *field[i].to = value;
}

/* Where the line at p ends (its newline, or end). */
static char *line_end(char *p, char *end)
{
    char *nl = memchr(p, '\n', (size_t)(end - p));

    return nl ? nl : end;
}

struct span warc_info(struct span block, const char *name)
{
    while (block.n) {
        const char *newline = memchr(block.p, '\n', block.n), *colon;
        struct span line = {block.p, newline ? (size_t)(newline - block.p) + 1 : block.n};

        colon = memchr(line.p, ':', line.n);
        if (colon && span_is_nocase((struct span){line.p, (size_t)(colon - line.p)}, name))
            return warc_trim((struct span){colon + 1, (size_t)(line.p + line.n - colon - 1)});
        block.p += line.n;
        block.n -= line.n;
    }
    return (struct span){0};
}

void warc_parse_header(struct buf *header, struct warc_record *r, bool *lf_only)
{
    char *p = header->p, *end = p + header->n, *q = line_end(p, end);

    r->version = warc_trim((struct span){p, (size_t)(q - p)});
    *lf_only = q > p && q[-1] != '\r';
    for (p = q + 1; p < end; p = q + 1) {
        char *colon;
        q = line_end(p, end);
        while (q + 1 < end && (q[1] == ' ' || q[1] == '\t')) {
            *q = ' ';
            if (q > p && q[-1] == '\r')
                q[-1] = ' ';
            q = line_end(q, end);
        }
        colon = memchr(p, ':', (size_t)(q - p));
        if (colon)
            take_field(r, warc_trim((struct span){p, (size_t)(colon - p)}),
                       warc_trim((struct span){colon + 1, (size_t)(q - colon - 1)}));
    }
    if (r->uri.n > 2 && r->uri.p[0] == '<' && r->uri.p[r->uri.n - 1] == '>')
        r->uri = (struct span){r->uri.p + 1, r->uri.n - 2};
}

void warc_parse_arc_header(const struct buf *header, struct warc_record *r)
{
    struct arc_line a;

    if (!arc_parse(warc_trim(buf_span(header)), &a))
        return;
    r->arc = true;
    r->version = span_of(a.version == 1 ? "ARC/1" : "ARC/2");
    r->uri = a.uri;
    r->date = a.date;
    r->mime = a.mime;
    r->type = span_of(a.uri.n > 9 && strncmp(a.uri.p, "filedesc:", 9) == 0 ? "filedesc" : "arc");
    r->length = parse_length(a.length);
}
