#include "curate/html/html_json.h"

#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

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

const char *html_json_string(const char *p, const char *end, bool lines, struct buf *out, int *rc)
{
    for (p++; p < end && *p != '"' && *rc == 0; p++) {
        char c = *p;
        if (c == '\\' && p + 1 < end) {
            uint32_t cp = 0;
            c = *++p;
            if (c == 'u' && json_hex(p, end, &cp)) {
                uint32_t low;
                char u[4];
                size_t n;
                p += 4;
                if (cp >> 10 == 0xD800 >> 10 && end - p > 2 && p[1] == '\\' && p[2] == 'u' &&
                    json_hex(p + 2, end, &low) && low >> 10 == 0xDC00 >> 10) {
                    cp = 0x10000 + ((cp & 0x3FF) << 10) + (low & 0x3FF);
                    p += 6;
                }
                n = (size_t)utf8_put(u, cp >> 11 == 0xD800 >> 11 ? 0xFFFD : cp);
                *rc = buf_put(out, u, n);
                continue;
            }
            c = c == 'n' && lines ? '\n' : c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f' ? ' ' : c;
        }
        *rc = buf_putc(out, c);
    }
    return p;
}

const char *html_json_behind_blanks(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n:", *p))
        p++;
    return p;
}

const char *html_json_behind_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p + 1 : end;
}
