/* What a page says of its use: robots' directives, a reservation of text and data mining, a licence; as quern extract writes
 * them into documents.  Sources: docs/extract.md. */
#include <string.h>

#include "base/ascii.h"
#include "curate/filter/filter_preset.h"
#include "curate/text/robots.h"

enum { LICENSE_MAX = 512 };

/* ---- licences ---- */

/* The rest of s behind the first occurrence of mark; p NULL: there is none. */
static struct span behind(struct span s, const char *mark)
{
    const char *p = memmem(s.p, s.n, mark, strlen(mark));

    p = p ? p + strlen(mark) : NULL;
    return (struct span){p, p ? (size_t)(s.p + s.n - p) : 0};
}

/* Takes the path's next part off. */
static struct span part(struct span *path)
{
    const char *slash = path->n ? memchr(path->p, '/', path->n) : NULL;
    struct span s = {path->p, slash ? (size_t)(slash - path->p) : path->n};

    path->p += s.n + (slash != NULL);
    path->n -= s.n + (slash != NULL);
    return s;
}

/* "cc-by-4.0" of the path of a licence of Creative Commons, into out; 0: it is none. */
static size_t creative_commons(struct span path, char *out, size_t room)
{
    struct span kind = part(&path), name = part(&path), version = part(&path);
    bool public = span_is(kind, "publicdomain"), zero = public && span_is(name, "zero"), mark = public && span_is(name, "mark");
    int n;

    if (!name.n || (!public && !span_is(kind, "licenses")))
        return 0;
    n = snprintf(out, room, "%s%.*s%s%.*s", zero ? "cc0" : mark ? "pdm" : "cc-", zero || mark ? 0 : (int)name.n, name.p,
                 version.n ? "-" : "", (int)version.n, version.p);
    return n > 0 && (size_t)n < room ? (size_t)n : 0;
}

size_t filter_license(char *p, size_t n)
{
    struct span s = {p, n}, rest;
    char name[LICENSE_MAX];
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        p[i] = ascii_is_upper((unsigned char)p[i]) ? (char)(p[i] | 0x20) : p[i];
    rest = behind(s, "creativecommons.org/");
    if (rest.n && (k = creative_commons(rest, name, sizeof name)) && k <= n) {
        memcpy(p, name, k);
        return k;
    }
    rest = behind(s, "://");
    rest = rest.p ? rest : s;
    while (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;
    memmove(p, rest.p, rest.n);
    for (size_t i = 0; i < rest.n; i++)
        if (p[i] == ' ' || p[i] == '_')
            p[i] = '-';
    return rest.n;
}

/* A licence's name without its version: "cc-by" of "cc-by-4.0". */
static struct span without_version(struct span s)
{
    size_t n = s.n;

    while (n && (ascii_is_digit((unsigned char)s.p[n - 1]) || s.p[n - 1] == '.'))
        n--;
    return (struct span){s.p, n && n < s.n && s.p[n - 1] == '-' ? n - 1 : s.n};
}

/* 1 if a licence is stated (or none is, by `missing`) that is not on the list. */
static double license(struct filter_text *t, int missing)
{
    struct span said = filter_source(t, "license"), name;
    char text[LICENSE_MAX];

    if (missing || !said.n)
        return missing && !said.n;
    if (said.n > sizeof text)
        return 1;
    memcpy(text, said.p, said.n);
    name = (struct span){text, filter_license(text, said.n)};
    return !word_set_has(&t->lists->licenses, name) && !word_set_has(&t->lists->licenses, without_version(name));
}

/* ---- robots ---- */

static const char *const directives[] = {"noindex", "noai", "noimageai", "noarchive"};
enum { NOINDEX, NOAI, NOIMAGEAI, NOARCHIVE };

static double robots(struct filter_text *t, int which)
{
    struct span list = filter_source(t, "robots");

    return robots_has(list, directives[which]) || (which == NOINDEX && robots_has(list, "none"));
}

static double reserved(struct filter_text *t, int arg)
{
    (void)arg;
    return span_is(filter_source(t, "tdm_reservation"), "1");
}

static const struct rule rules[] = {
    {RULE("noindex", robots, NOINDEX, RULE_ABOVE, 0, "1 if robots are told noindex or none")},
    {RULE("noai", robots, NOAI, RULE_ABOVE, 0, "1 if robots are told noai")},
    {RULE("noimageai", robots, NOIMAGEAI, RULE_ABOVE, 0, "1 if robots are told noimageai"), .off = true},
    {RULE("noarchive", robots, NOARCHIVE, RULE_ABOVE, 0, "1 if robots are told noarchive"), .off = true},
    {RULE("tdm_reservation", reserved, 0, RULE_ABOVE, 0, "1 if text and data mining is reserved")},
    {RULE("license_unlisted", license, 0, RULE_ABOVE, 0, "1 if a licence is stated that is not on the list"),
     .needs = NEEDS_LICENSES},
    {RULE("license_missing", license, 1, RULE_ABOVE, 0, "1 if no licence is stated"), .needs = NEEDS_LICENSES},
    {0},
};

const struct preset filter_rights = {
    .name = "rights",
    .source = "robots' directives; W3C TDMRep; licences",
    .rules = rules,
};
