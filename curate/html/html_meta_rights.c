/* What a page says of its use: a licence, and what robots may do with it. */
#include <string.h>

#include "base/ascii.h"
#include "curate/html/html_meta_parts.h"
#include "curate/text/robots.h"

/* Whether a URL is that of a licence of Creative Commons. */
static bool is_creative_commons(struct span url)
{
    static const char host[] = "creativecommons.org/";
    const char *p = url.n ? memmem(url.p, url.n, host, sizeof host - 1) : NULL;
    struct span path;

    if (!p)
        return false;
    p += sizeof host - 1;
    path = (struct span){p, (size_t)(url.p + url.n - p)};
    return span_starts(path, "licenses/") || span_starts(path, "publicdomain/");
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
