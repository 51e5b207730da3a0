#include "curate/text/robots.h"

#include <string.h>

#include "base/ascii.h"

/* The next directive of a list, without blanks at its ends.  False at the end. */
static bool next_directive(struct span *list, struct span *one)
{
    while (list->n) {
        const char *comma = memchr(list->p, ',', list->n);
        *one = (struct span){list->p, comma ? (size_t)(comma - list->p) : list->n};
        list->p += one->n + (comma != NULL);
        list->n -= one->n + (comma != NULL);
        while (one->n && ascii_is_html_space((unsigned char)*one->p))
            one->p++, one->n--;
        while (one->n && ascii_is_html_space((unsigned char)one->p[one->n - 1]))
            one->n--;
        if (one->n)
            return true;
    }
    return false;
}

static bool has(struct span list, struct span directive)
{
    struct span one;

    while (next_directive(&list, &one))
        if (one.n == directive.n && strncasecmp(one.p, directive.p, one.n) == 0)
            return true;
    return false;
}

bool robots_has(struct span list, const char *directive)
{
    return has(list, span_of(directive));
}

int robots_add(struct buf *list, struct span directives)
{
    struct span one;

    while (next_directive(&directives, &one)) {
        char text[64];
        size_t n = 0;

        for (size_t i = 0; i < one.n && n < sizeof text; i++)
            if (!ascii_is_html_space((unsigned char)one.p[i]))
                text[n++] = ascii_is_upper((unsigned char)one.p[i]) ? (char)(one.p[i] | 0x20) : one.p[i];
        if (n == sizeof text || list->n + n + 2 > ROBOTS_MAX || has(buf_span(list), (struct span){text, n}))
            continue;
        if (list->n)
            TRY(buf_puts(list, ", "));
        TRY(buf_put(list, text, n));
    }
    return 0;
}

int robots_add_header(struct buf *list, struct span value)
{
    static const char *const with_value[] = {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"};
    const char *colon = value.n ? memchr(value.p, ':', value.n) : NULL;
    struct span name = {value.p, colon ? (size_t)(colon - value.p) : 0};

    if (name.n && !memchr(name.p, ',', name.n)) {
        while (name.n && ascii_is_html_space((unsigned char)name.p[name.n - 1]))
            name.n--;
        for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++)
            if (span_is_nocase(name, with_value[i]))
                return robots_add(list, value);
        return 0; /* for one robot */
    }
    return robots_add(list, value);
}
