/* What a page says of its use: a licence, and what robots may do with it. */
#include <string.h>

#include "base/ascii.h"
#include "curate/html/html_meta_parts.h"
#include "curate/text/robots.h"

/* Takes text off the front of s, if s begins with it. */
static bool skip(struct span *s, const char *text)
{
    size_t n = strlen(text);

    if (s->n < n || memcmp(s->p, text, n) != 0)
        return false;
    *s = (struct span){s->p + n, s->n - n};
    return true;
}

/* Whether a URL is that of a licence of Creative Commons. */
static bool is_creative_commons(struct span url)
{
    if (!skip(&url, "http:"))
        skip(&url, "https:");
    if (!skip(&url, "//"))
        return false;
    skip(&url, "www.");
    return skip(&url, "creativecommons.org/") && (span_starts(url, "licenses/") || span_starts(url, "publicdomain/"));
}

int meta_read_license(struct meta_reader *r, uint32_t i)
{
    bool said = meta_has_word(html_attr_raw(r->t, i, ATTR_rel, NULL), "license") ||
                meta_has_word(html_attr_raw(r->t, i, ATTR_itemprop, NULL), "license");

    if (!said && !is_creative_commons(html_attr_raw(r->t, i, ATTR_href, NULL)))
        return 0;
    TRY(meta_attr(r, i, ATTR_href));
    return meta_offer(r, META_LICENSE, said ? 1 : 4, buf_span(&r->m->tmp));
}

int meta_read_robots(struct meta_reader *r, uint32_t i, struct span name)
{
    if (span_is_nocase(name, "robots")) {
        TRY(meta_attr(r, i, ATTR_content));
        return robots_add(&r->m->robots, buf_span(&r->m->tmp));
    }
    if (!span_is_nocase(name, "tdm-reservation") && !span_is_nocase(name, "tdm-policy"))
        return 0;
    TRY(meta_attr(r, i, ATTR_content));
    return meta_offer(r, span_is_nocase(name, "tdm-policy") ? META_TDM_POLICY : META_TDM, 1, buf_span(&r->m->tmp));
}
