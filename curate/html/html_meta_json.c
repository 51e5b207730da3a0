/* JSON-LD is searched, not parsed: it is often broken, and little of it is wanted.  All searches
 * go forward, and what is looked at of one value is bounded, so the time is linear. */
#include "curate/html/html_meta_parts.h"

#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

enum { VALUE_MAX = 4096, REFERENCES = 4 };

/* The four hexadecimal digits behind the 'u' at p. */
static bool json_hex(const char *p, const char *end, uint32_t *v)
{
    *v = 0;
    if (end - p < 5)
        return false;
    for (int k = 1; k <= 4; k++) {
        if (!ascii_is_hex(p[k]))
            return false;
        *v = *v << 4 | (uint32_t)ascii_hex(p[k]);
    }
    return true;
}

/* The string that begins at p ('"'), unescaped, into out.  Returns what lies behind. */
static const char *json_string(const char *p, const char *end, struct buf *out, int *rc)
{
    for (p++; p < end && *p != '"' && *rc == 0; p++) {
        char c = *p;
        if (c == '\\' && p + 1 < end) {
            uint32_t cp = 0;
            c = *++p;
            if (c == 'u' && json_hex(p, end, &cp)) {
                uint32_t low;
                char u[4];
                p += 4;
                if (cp >> 10 == 0xD800 >> 10 && end - p > 2 && p[1] == '\\' && p[2] == 'u' &&
                    json_hex(p + 2, end, &low) && low >> 10 == 0xDC00 >> 10) {
                    cp = 0x10000 + ((cp & 0x3FF) << 10) + (low & 0x3FF);
                    p += 6;
                }
                *rc = buf_put(out, u, (size_t)utf8_put(u, cp >> 11 == 0xD800 >> 11 ? 0xFFFD : cp));
                continue;
            }
            c = c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f' ? ' ' : c;
        }
        *rc = buf_putc(out, c);
    }
    return p;
}

static const char *behind_blanks(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n:", *p))
        p++;
    return p;
}

/* What lies behind the string at p. */
static const char *behind_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p + 1 : end;
}

/* Adds a name behind those that are there. */
static int add_name(const char *p, const char *end, size_t max, struct buf *out)
{
    size_t had = out->n;
    int rc = 0;

    if (had)
        TRY(buf_puts(out, ", "));
    json_string(p, end, out, &rc);
    if (rc == 0 && had && (out->n > max || out->n == had + 2))
        out->n = had;
    return rc;
}

/* The names in the object or array at p, into out; *id: the last "@id" in it.  Returns what lies
 * behind it, or end. */
static const char *take_names(const char *p, const char *end, size_t max, struct buf *out, struct span *id, int *rc)
{
    int depth = 0, named = *p == '[' ? 2 : 1;

    while (p < end && *rc == 0) {
        if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            p++;
            if (--depth <= 0)
                return p;
        } else if (*p == '"') {
            const char *text = p, *value;
            p = behind_string(p, end);
            value = behind_blanks(p, end);
            if (value == p || !memchr(p, ':', (size_t)(value - p))) { /* not a key */
                if (named == 2 && depth == 1)
                    *rc = add_name(text, end, max, out);
                continue;
            }
            if (depth == named && value < end && *value == '"') {
                struct span key = {text, (size_t)(p - text)};
                p = behind_string(value, end);
                if (span_is(key, "\"name\""))
                    *rc = add_name(value, end, max, out);
                else if (span_is(key, "\"@id\""))
                    *id = (struct span){value, (size_t)(p - value)};
            }
        } else {
            p++;
        }
    }
    return end;
}

/* The name that stands behind "@id": id in one of the objects of s. */
static int find_reference(struct span s, struct span id, size_t max, struct buf *out)
{
    const char *p = s.p, *end = s.p + s.n;

    for (int k = 0; k < REFERENCES && (p = memmem(p, (size_t)(end - p), id.p, id.n)); k++) {
        const char *stop;
        int rc = 0;

        p += id.n;
        if (p == id.p + id.n) /* the reference itself */
            continue;
        stop = end - p > VALUE_MAX ? p + VALUE_MAX : end;
        for (const char *q = p; q < stop && *q != '}' && *q != '{';) {
            if (*q != '"') {
                q++;
                continue;
            }
            struct span key = {q, 0};
            q = behind_string(q, stop);
            key.n = (size_t)(q - key.p);
            q = behind_blanks(q, stop);
            if (span_is(key, "\"name\"") && q < stop && *q == '"') {
                json_string(q, stop, out, &rc);
                if (rc < 0 || (out->n && out->n <= max))
                    return rc;
                buf_clear(out);
            }
        }
    }
    return 0;
}

int html_json_find(struct span s, const char *key, size_t max, struct buf *out)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t n = strlen(key);
    struct span id = {NULL, 0};
    int rc = 0;

    buf_clear(out);
    while (rc == 0 && !out->n && (p = memmem(p, (size_t)(end - p), key, n))) {
        p = behind_blanks(p + n, end);
        if (p < end && (*p == '{' || *p == '['))
            p = take_names(p, end - p > VALUE_MAX ? p + VALUE_MAX : end, max, out, &id, &rc);
        else if (p < end && *p == '"')
            p = json_string(p, end, out, &rc);
    }
    if (rc == 0 && !out->n && id.n > 2)
        rc = find_reference(s, id, max, out);
    return rc < 0 ? rc : out->n > 0;
}
