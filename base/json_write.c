#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/isa.h"
#include "base/json_shim.h"
#include "base/utf8.h"

ISA_DECLARE(size_t, json_copy_to_special, (char *dst, const char *src, size_t n));

static size_t escape(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char letter = 0;

    switch (c) {
    case '"': letter = '"'; break;
    case '\\': letter = '\\'; break;
    case '\n': letter = 'n'; break;
    case '\t': letter = 't'; break;
    case '\r': letter = 'r'; break;
    case '\b': letter = 'b'; break;
    case '\f': letter = 'f'; break;
    default: break;
    }
    out[0] = '\\';
    out[1] = letter;
    if (letter)
        return 2;
    out[1] = 'u';
    out[2] = out[3] = '0';
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}

int json_put_string(struct buf *b, struct span s)
{
    size_t (*copy)(char *, const char *, size_t) = ISA_PICK(json_copy_to_special);
    const char *p = s.n ? s.p : "", *end = p + s.n;
    size_t k;

    TRY(buf_reserve(b, s.n + 2 + s.n / 16));
    b->p[b->n++] = '"';
    for (;;) {
        TRY(buf_reserve(b, (size_t)(end - p) + 7)); /* an escape and the last quote */
        k = copy(b->p + b->n, p, (size_t)(end - p));
        b->n += k;
        p += k;
        if (p == end)
            break;
        b->n += escape(b->p + b->n, (unsigned char)*p++);
    }
    b->p[b->n++] = '"';
    b->p[b->n] = '\0';
    return 0;
}

int json_put_name(struct buf *b, const char *name)
{
    struct buf repaired = {0};
    int rc = utf8_repair(span_of(name), &repaired);

    if (rc == 0)
        rc = json_put_string(b, buf_span(&repaired));
    else
        b->failed = rc; /* as if b itself had had no memory */
    buf_free(&repaired);
    return rc;
}

int json_put_int(struct buf *b, int64_t v)
{
    char s[24];
    size_t n = (size_t)snprintf(s, sizeof s, "%" PRId64, v);
    return buf_put(b, s, n);
}

int json_put_num(struct buf *b, double v)
{
    char s[32];
    size_t n;

    if (!isfinite(v))
        return buf_puts(b, "null");
    n = json_format_double(s, v);
    return buf_put(b, s, n);
}

int json_put_key(struct buf *b, const char *key)
{
    if (b->n && b->p[b->n - 1] != '{')
        TRY(buf_putc(b, ','));
    TRY(json_put_string(b, span_of(key)));
    return buf_putc(b, ':');
}

int json_put_count(struct buf *b, const char *key, uint64_t n)
{
    TRY(json_put_key(b, key));
    return json_put_int(b, (int64_t)n);
}

int json_put_real(struct buf *b, const char *key, double v)
{
    TRY(json_put_key(b, key));
    return json_put_num(b, v);
}
