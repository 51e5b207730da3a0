#include "curate/text/url_host.h"

#if HAVE_PSL
#include <libpsl.h>
#endif

#include "base/ascii.h"
#include "curate/text/chars.h"

/* Without scheme and slashes.  What is in front of "//" must be a scheme, or nothing. */
static struct span without_scheme(struct span url)
{
    const char *p = url.n ? memmem(url.p, url.n, "//", 2) : NULL;
    size_t n = p ? (size_t)(p - url.p) : 0;

    if (!p || (n > 0 && (n < 2 || p[-1] != ':')))
        return url;
    for (size_t i = 0; i + 1 < n; i++)
        if (!ascii_is_alnum(url.p[i]) && !strchr("+-.", url.p[i]))
            return url;
    return (struct span){p + 2, url.n - n - 2};
}

struct span url_authority(struct span url)
{
    struct span s = without_scheme(url);
    size_t n = 0;

    while (n < s.n && s.p[n] != '/' && s.p[n] != '?' && s.p[n] != '#')
        n++;
    s.n = n;
    return s;
}

/* Length of a full stop of any kind at p: . and U+3002, U+FF0E, U+FF61. */
static size_t stop_at(const char *p, const char *end)
{
    if (*p == '.')
        return 1;
    if (end - p >= 3 && (!memcmp(p, "\xE3\x80\x82", 3) || !memcmp(p, "\xEF\xBC\x8E", 3) || !memcmp(p, "\xEF\xBD\xA1", 3)))
        return 3;
    return 0;
}

/* The host's bytes, full stops plain, none at the end; 0 if there is none of use. */
static size_t copy_host(struct span url, char *out)
{
    struct span s = url_authority(url);
    const char *at = s.n ? memrchr(s.p, '@', s.n) : NULL;
    size_t n = 0;

    if (at)
        s = (struct span){at + 1, s.n - (size_t)(at + 1 - s.p)};
    if (s.n && s.p[0] == '[' && memchr(s.p, ']', s.n)) /* an IP address */
        return 0;
    at = s.n ? memchr(s.p, ':', s.n) : NULL;
    s = chars_strip((struct span){s.p, at ? (size_t)(at - s.p) : s.n});
    if (s.n > URL_HOST_MAX)
        return 0;
    for (size_t i = 0; i < s.n;) {
        size_t stop = stop_at(s.p + i, s.p + s.n);
        out[n++] = stop ? '.' : s.p[i];
        i += stop ? stop : 1;
    }
    while (n && out[n - 1] == '.')
        n--;
    out[n] = '\0';
    return n;
}

#if HAVE_PSL
static bool is_suffix(const char *name)
{
    return psl_is_public_suffix2(psl_builtin(), name, PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE);
}
#else
static bool is_suffix(const char *name)
{
    (void)name;
    return false;
}
#endif

void url_host(struct span url, struct url_host *h)
{
    char small[URL_HOST_MAX + 1];
    size_t n = copy_host(url, h->text), label = 0;

    h->name = h->registered = (struct span){h->text, 0};
    for (size_t i = 0; i <= n; i++)
        small[i] = (char)(h->text[i] >= 'A' && h->text[i] <= 'Z' ? h->text[i] | 32 : h->text[i]);
    /* the longest suffix that is public; label is where the label before it begins */
    for (size_t i = 0; i < n; i++) {
        if (h->text[i] != '.')
            continue;
        if (is_suffix(small + i + 1)) {
            if (i == label || is_suffix(small + label))
                return;
            h->registered = (struct span){h->text + label, n - label};
            h->name = label == 1 ? h->registered : (struct span){h->text, n}; /* an empty label in front goes */
            return;
        }
        label = i + 1;
    }
}
