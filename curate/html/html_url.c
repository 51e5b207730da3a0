#include "curate/html/html_url.h"

#include <string.h>
#include <strings.h>

#include "base/ascii.h"

enum { BASE_MAX = 2048 }; /* a longer base is none */

/* The length of "scheme:" at the start of s; 0 if there is none. */
static size_t scheme(struct span s)
{
    if (!s.n || !ascii_is_letter(s.p[0]))
        return 0;
    for (size_t i = 1; i < s.n; i++) {
        char c = s.p[i];
        if (c == ':')
            return i + 1;
        if (!ascii_is_letter(c) && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.')
            return 0;
    }
    return 0;
}

/* The length of s before the first byte of stop. */
static size_t until(struct span s, const char *stop)
{
    size_t i = 0;

    while (i < s.n && !(s.p[i] && strchr(stop, s.p[i])))
        i++;
    return i;
}

/* The length of "scheme://host"; 0 if s does not begin so. */
static size_t origin(struct span s)
{
    size_t n = scheme(s);

    if (!n || s.n < n + 2 || s.p[n] != '/' || s.p[n + 1] != '/')
        return 0;
    return n + 2 + until((struct span){s.p + n + 2, s.n - n - 2}, "/?#");
}

/* Appends the segments of path behind the first root bytes of out; "." and ".." are
 * followed. */
static int put_path(struct buf *out, size_t root, struct span path)
{
    size_t i = 0;

    while (i < path.n) {
        i += path.p[i] == '/';
        struct span segment = {path.p + i, until((struct span){path.p + i, path.n - i}, "/")};
        bool last = i + segment.n == path.n;
        i += segment.n;
        if (span_is(segment, "..")) {
            while (out->n > root && out->p[--out->n] != '/')
                ;
        } else if (!span_is(segment, ".")) {
            TRY(buf_putc(out, '/'));
            TRY(buf_put_span(out, segment));
            continue;
        }
        if (last)
            TRY(buf_putc(out, '/'));
    }
    return 0;
}

static bool is_page(struct span s)
{
    static const char *const others[] = {"javascript:", "data:", "vbscript:", "blob:", "about:"};

    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (s.n >= strlen(others[i]) && strncasecmp(s.p, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

int html_url_resolve(struct span base, struct span ref, struct buf *out)
{
    size_t host = base.n <= BASE_MAX ? origin(base) : 0, path;

    buf_clear(out);
    while (ref.n && (unsigned char)ref.p[0] <= ' ')
        ref.p++, ref.n--;
    while (ref.n && (unsigned char)ref.p[ref.n - 1] <= ' ')
        ref.n--;
    if (!ref.n || !is_page(ref))
        return 0;
    if (scheme(ref) || !host)
        return buf_put_span(out, ref);
    if (ref.n > 1 && ref.p[0] == '/' && ref.p[1] == '/') {
        TRY(buf_put(out, base.p, scheme(base)));
        return buf_put_span(out, ref);
    }
    if (ref.p[0] == '?' || ref.p[0] == '#') {
        TRY(buf_put(out, base.p, until(base, ref.p[0] == '?' ? "?#" : "#")));
        return buf_put_span(out, ref);
    }
    TRY(buf_put(out, base.p, host));
    path = until(ref, "?#");
    if (ref.p[0] != '/') {
        size_t folder = until(base, "?#");
        while (folder > host && base.p[folder - 1] != '/')
            folder--;
        if (folder > host + 1)
            TRY(put_path(out, host, (struct span){base.p + host, folder - host - 1}));
    }
    TRY(put_path(out, host, (struct span){ref.p, path}));
    return buf_put(out, ref.p + path, ref.n - path);
}

int html_url_base(const struct html_tree *t, struct span url, struct buf *out)
{
    struct buf href = {0};
    int rc = 0;

    buf_clear(out);
    for (uint32_t i = 1; i < t->n_nodes && t->node[i].tag != HTML_body; i++)
        if (t->node[i].tag == HTML_base && (rc = html_attr_get(t, i, ATTR_href, &href)) != 0)
            break;
    if (rc > 0)
        rc = html_url_resolve(url, buf_span(&href), out);
    buf_free(&href);
    return rc < 0 || out->n ? rc : buf_put_span(out, url);
}
