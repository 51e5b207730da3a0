/* JSON-LD is searched, not parsed: it is often broken, and little of it is wanted.  All searches
 * go forward, and what is looked at of one value is bounded, so the time is linear. */
#include "curate/html/html_meta_parts.h"

#include <string.h>

#include "base/ascii.h"
#include "curate/html/html_json.h"
#include "curate/text/html_entity.h"

enum {
    VALUE_MAX = 4096,  /* bytes of a value */
    VALUES_MAX = 1000, /* of a page */
    REFERENCES = 4,    /* of a page, and places tried of one */
    DEPTH_MAX = 64
};

/* Adds a name behind those that are there. */
static int add_name(const char *p, const char *end, size_t max, struct buf *out)
{
    size_t had = out->n;
    int rc = 0;

    if (had)
        TRY(buf_puts(out, ", "));
    html_json_string(p, end, false, out, &rc);
    if (rc == 0 && had && (out->n > max || out->n == had + 2))
        out->n = had;
    return rc;
}

/* The values under key ("\"name\"") in the object or array at p, into out, and strings in the array; *id: the last "@id"
 * in it. */
static int take_values(const char *p, const char *end, const char *name, size_t max, struct buf *out, struct span *id)
{
    const struct span wanted = {name, strlen(name)};
    int depth = 0, named = *p == '[' ? 2 : 1, rc = 0;

    while (p < end && rc == 0) {
        if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            p++;
            if (--depth <= 0)
                break;
        } else if (*p == '"') {
            const char *text = p, *value;
            p = html_json_behind_string(p, end);
            value = html_json_behind_blanks(p, end);
            if (value == p || !memchr(p, ':', (size_t)(value - p))) { /* not a key */
                if (named == 2 && depth == 1)
                    rc = add_name(text, end, max, out);
                continue;
            }
            if (depth == named && value < end && *value == '"') {
                struct span key = {text, (size_t)(p - text)};
                p = html_json_behind_string(value, end);
                if (span_eq(key, wanted))
                    rc = add_name(value, end, max, out);
                else if (span_is(key, "\"@id\""))
                    *id = (struct span){value, (size_t)(p - value)};
            }
        } else {
            p++;
        }
    }
    return rc;
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
            q = html_json_behind_string(q, stop);
            key.n = (size_t)(q - key.p);
            q = html_json_behind_blanks(q, stop);
            if (span_is(key, "\"name\"") && q < stop && *q == '"') {
                html_json_string(q, stop, false, out, &rc);
                if (rc < 0 || (out->n && out->n <= max))
                    return rc;
                buf_clear(out);
            }
        }
    }
    return 0;
}

/* What metadata is under which key: a string, or of an object what stands under `of`. */
static const struct json_key {
    const char *key;
    enum meta_field field;
    int rank;
    const char *of;
} keys[] = {
    {"\"headline\"", META_TITLE, 2, "\"name\""}, {"\"datePublished\"", META_DATE, 1, "\"@value\""},
    {"\"dateCreated\"", META_DATE, 5, "\"@value\""}, {"\"dateModified\"", META_DATE, META_RANK_CHANGED, "\"@value\""},
    {"\"author\"", META_AUTHOR, 1, "\"name\""}, {"\"creator\"", META_AUTHOR, 4, "\"name\""},
    {"\"license\"", META_LICENSE, 2, "\"url\""}};

/* The value at p, if it is one and the field has nothing better. */
static int take(struct meta_reader *r, const struct json_key *k, struct span all, const char *p, int worse)
{
    const char *end = all.p + all.n;
    struct buf *tmp = &r->m->tmp;
    struct span id = {NULL, 0};
    int rc = 0, rank = k->rank + worse;

    if (p == end || (r->rank[k->field] && r->rank[k->field] <= rank) || r->values++ >= VALUES_MAX)
        return 0;
    buf_clear(tmp);
    if (*p == '{' || *p == '[')
        rc = take_values(p, end - p > VALUE_MAX ? p + VALUE_MAX : end, k->of, META_AUTHOR_MAX, tmp, &id);
    else if (*p == '"')
        html_json_string(p, end - p > VALUE_MAX ? p + VALUE_MAX : end, false, tmp, &rc);
    if (rc == 0 && !tmp->n && id.n > 2 && k->field == META_LICENSE)
        rc = buf_put(tmp, id.p + 1, id.n - 2);
    else if (rc == 0 && !tmp->n && id.n > 2 && r->references++ < REFERENCES)
        rc = find_reference(all, id, META_AUTHOR_MAX, tmp);
    if (rc == 0 && tmp->n && memchr(tmp->p, '&', tmp->n)) {
        struct buf plain = {0};
        rc = html_decode(buf_span(tmp), false, &plain);
        buf_free(tmp);
        *tmp = plain;
    }
    return rc < 0 || !tmp->n ? rc : meta_offer(r, k->field, rank, buf_span(tmp));
}

/* Whether what stands under a key is of other things than the page: answers, comments, pages that are listed. */
static bool is_aside(struct span key)
{
    static const char *const aside[] = {"\"acceptedAnswer\"", "\"suggestedAnswer\"", "\"comment\"", "\"comments\"",
                                        "\"review\"", "\"reviews\"", "\"publisher\"", "\"image\"", "\"isPartOf\"",
                                        "\"itemListElement\"", "\"mentions\"", "\"hasPart\"", "\"video\"", "\"citation\"",
                                        "\"blogPost\"", "\"isBasedOn\"", "\"subjectOf\""};

    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (span_is(key, aside[i]))
            return true;
    return false;
}

int meta_read_json(struct meta_reader *r, struct span s, bool linked_data)
{
    const char *p = s.p, *end = s.p + s.n;
    bool aside[DEPTH_MAX] = {false}, next = false;
    int depth = 0;

    while (p < end) {
        if (*p == '{' || *p == '[') {
            depth++;
            if (depth < DEPTH_MAX)
                aside[depth] = aside[depth - 1] || next;
            next = false;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth -= depth > 0;
            p++;
        } else if (*p == '"') {
            struct span key = {p, 0};
            const char *behind = html_json_behind_string(p, end);
            key.n = (size_t)(behind - p);
            p = html_json_behind_blanks(behind, end);
            if (p == behind || !memchr(behind, ':', (size_t)(p - behind)) || depth >= DEPTH_MAX || aside[depth])
                continue;
            next = is_aside(key);
            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
                if (span_is(key, keys[k].key))
                    TRY(take(r, &keys[k], s, p, linked_data ? 0 : 2));
            if (p < end && *p == '"') { /* a value that is no key */
                p = html_json_behind_string(p, end);
                next = false;
            }
        } else {
            next &= ascii_is_space((unsigned char)*p);
            p++;
        }
    }
    return 0;
}
