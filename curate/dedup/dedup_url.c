/* Addresses that are the same page: normal_url. */
#include <stdlib.h>

#include "base/ascii.h"
#include "curate/dedup/dedup_normal.h"

static char lower(char c) { return (char)(ascii_is_upper(c) ? c | 32 : c); }

/* Of a scheme's name. */
static bool is_scheme(char c) { return ascii_is_alnum(c) || c == '+' || c == '-' || c == '.'; }

/* What RFC 3986 (2.3) calls unreserved: percent-encoded or not, it is the same. */
static bool is_unreserved(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static size_t find(struct span s, size_t from, const char *any)
{
    while (from < s.n && !(s.p[from] && strchr(any, s.p[from])))
        from++;
    return from;
}

static struct span part(struct span s, size_t from, size_t to) { return (struct span){s.p + from, to - from}; }

/* Percent-encoding: unreserved characters as themselves, of others the digits in upper case. */
static int put_encoded(struct buf *out, struct span s)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        int high = s.p[i] == '%' && i + 2 < s.n ? ascii_hex(s.p[i + 1]) : -1, low = high >= 0 ? ascii_hex(s.p[i + 2]) : -1;
        char c = (char)(16 * high + low), code[3] = {'%', digits[high & 15], digits[low & 15]};

        if (low < 0) {
            TRY(buf_putc(out, s.p[i]));
            continue;
        }
        TRY(is_unreserved(c) ? buf_putc(out, c) : buf_put(out, code, 3));
        i += 2;
    }
    return 0;
}

/* host, in lower case, without a full stop at its end, and the port if it is not the scheme's own. */
static int put_host(struct buf *out, struct span host, const char *port)
{
    size_t colon = host.n;

    while (colon > 0 && ascii_is_digit(host.p[colon - 1]))
        colon--;
    if (colon > 0 && host.p[colon - 1] == ':') {
        struct span own = part(host, colon, host.n);

        host.n = colon - 1;
        port = !own.n || span_is(own, port) ? NULL : own.p;
        colon = own.n;
    } else {
        port = NULL;
    }
    host.n -= host.n && host.p[host.n - 1] == '.';
    for (size_t i = 0; i < host.n; i++)
        TRY(buf_putc(out, lower(host.p[i])));
    if (!port)
        return 0;
    TRY(buf_putc(out, ':'));
    return buf_put(out, port, colon);
}

/* The path, without segments "." and ".." (RFC 3986, 5.2.4); an empty one is "/". */
static int put_path(struct buf *out, struct span path)
{
    size_t root = out->n, to = root, end;

    TRY(put_encoded(out, path));
    for (size_t at = root; at < out->n; at = end) { /* at a slash; the path is shortened in place */
        struct span all = buf_span(out), segment;

        end = find(all, at + 1, "/");
        segment = part(all, at + 1, end);
        if (span_is(segment, "..")) {
            while (to > root && out->p[--to] != '/')
                ;
        } else if (!span_is(segment, ".")) {
            memmove(out->p + to, out->p + at, end - at);
            to += end - at;
            continue;
        }
        if (end == out->n) /* a folder */
            out->p[to++] = '/';
    }
    out->n = to;
    return to > root ? 0 : buf_putc(out, '/');
}

/* Is it a parameter that says where a reader came from? */
static bool is_tracking(struct span parameter)
{
    static const char *const names[] = {
        "_ga", "_gl", "_hsenc", "_hsmi", "dclid", "fbclid", "gbraid", "gclid", "gclsrc", "igsh", "igshid", "li_fat_id",
        "mc_cid", "mc_eid", "mkt_tok", "msclkid", "oly_anon_id", "oly_enc_id", "srsltid", "ttclid", "twclid", "vero_id",
        "wbraid", "wickedid", "yclid", "ysclid",
    };
    struct span name = part(parameter, 0, find(parameter, 0, "="));

    if (span_starts_nocase(name, "utm_"))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (span_is_nocase(name, names[i]))
            return true;
    return false;
}

static int by_bytes(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);

    return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* The query's parameters, sorted, without empty ones and those of tracking. */
static int put_query(struct buf *out, struct span query)
{
    struct buf clean = {0};
    struct span *v = NULL;
    size_t n = 0, cap = 0, end;
    int rc = put_encoded(&clean, query);

    for (size_t at = 0; at < clean.n && rc == 0; at = end + 1) {
        struct span parameter;

        end = find(buf_span(&clean), at, "&");
        parameter = part(buf_span(&clean), at, end);
        if (!parameter.n || is_tracking(parameter))
            continue;
        rc = mem_grow(&v, &cap, n + 1, sizeof *v);
        if (rc == 0)
            v[n++] = parameter;
    }
    if (n)
        qsort(v, n, sizeof *v, by_bytes);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = buf_putc(out, i ? '&' : '?');
        if (rc == 0)
            rc = buf_put_span(out, v[i]);
    }
    free(v);
    buf_free(&clean);
    return rc;
}

int normal_url(struct span url, struct buf *out)
{
    static const char *const schemes[][2] = {{"http", "80"}, {"https", "443"}, {"ftp", "21"}};
    const char *port = "";
    size_t scheme = 0, host, path, query, fragment, user;

    while (url.n && (unsigned char)*url.p <= ' ')
        url = part(url, 1, url.n);
    while (url.n && (unsigned char)url.p[url.n - 1] <= ' ')
        url.n--;
    while (scheme < url.n && is_scheme(url.p[scheme]))
        scheme++;
    if (!scheme || !ascii_is_letter(*url.p) || url.n - scheme < 3 || memcmp(url.p + scheme, "://", 3) != 0)
        return buf_put_span(out, url);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (span_is_nocase(part(url, 0, scheme), schemes[i][0]))
            port = schemes[i][1];
    if (strcmp(port, "443") == 0) /* the page is the same by http */
        scheme--;
    for (size_t i = 0; i < scheme; i++)
        TRY(buf_putc(out, lower(url.p[i])));
    TRY(buf_puts(out, "://"));
    host = find(url, 0, ":") + 3;
    path = find(url, host, "/?#");
    fragment = find(url, path, "#");
    query = find(part(url, 0, fragment), path, "?");
    for (user = path; user > host && url.p[user - 1] != '@'; user--)
        ;
    TRY(buf_put_span(out, part(url, host, user)));
    TRY(put_host(out, part(url, user, path), port));
    TRY(put_path(out, part(url, path, query)));
    return query < fragment ? put_query(out, part(url, query + 1, fragment)) : 0;
}
