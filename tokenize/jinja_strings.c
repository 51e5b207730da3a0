/* Filters and methods of texts. */
#include "tokenize/jinja_parts.h"

static int change_of(struct jinja_run *r, const struct jinja_value *v, enum jinja_case how, struct jinja_value *out)
{
    struct span s;

    TRY(jinja_string(r, v, &s));
    return jinja_change_case(r, s, how, out);
}
static int upper(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    (void)x;
    return change_of(r, v, JINJA_UPPER, out);
}
static int lower(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    (void)x;
    return change_of(r, v, JINJA_LOWER, out);
}
static int title(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    (void)x;
    return change_of(r, v, JINJA_TITLE, out);
}
static int capitalize(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    (void)x;
    return change_of(r, v, JINJA_CAPITALIZE, out);
}

static int stripped(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, bool left, bool right,
                    struct jinja_value *out)
{
    const struct jinja_value *set = jinja_arg(x, 0, "chars");
    struct span s;

    TRY(jinja_string(r, v, &s));
    *out = jinja_text(jinja_strip(s, jinja_is_text(set) ? set->s : (struct span){NULL, 0}, left, right));
    return 0;
}
static int strip(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return stripped(r, v, x, true, true, out);
}
static int lstrip(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return stripped(r, v, x, true, false, out);
}
static int rstrip(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return stripped(r, v, x, false, true, out);
}

static int replace(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *old = jinja_arg(x, 0, "old"), *new = jinja_arg(x, 1, "new"), *most = jinja_arg(x, 2, "count");
    int64_t left = jinja_number_or(most, -1);
    struct buf b = {.max = JINJA_TEXT};
    struct span s;
    size_t at = 0;

    TRY(jinja_string(r, v, &s));
    if (!jinja_is_text(old) || !jinja_is_text(new) || !old->s.n)
        return jinja_error(r, x->line, "replace wants two texts, the first not empty");
    while (at < s.n) {
        const char *there = left-- ? memmem(s.p + at, s.n - at, old->s.p, old->s.n) : NULL;
        size_t n = there ? (size_t)(there - s.p) - at : s.n - at;

        buf_put(&b, s.p + at, n);
        if (there && buf_put_span(&b, new->s) < 0)
            b.failed = b.failed ? b.failed : ERR_LIMIT;
        at += n + (there ? old->s.n : 0);
        if (!there)
            break;
    }
    return jinja_take(r, &b, out);
}

/* str.split: at white space, or at a text; at most so many times. */
static int split(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *by = jinja_arg(x, 0, "sep");
    int64_t most = jinja_number_or(jinja_arg(x, 1, "maxsplit"), -1), n = 0;
    const bool words = !jinja_is_text(by);
    struct span none = {NULL, 0}, s = words ? jinja_strip(v->s, none, true, false) : v->s;

    if (!words && !by->s.n)
        return jinja_error(r, x->line, "split at an empty text");
    for (int pass = 0; pass < 2; pass++) { /* how many there are, then what */
        struct span rest = s;

        n = 0;
        while (words ? rest.n > 0 : true) {
            const char *at = NULL;
            size_t sign = 0;

            if (n != most && !words) {
                at = rest.n ? memmem(rest.p, rest.n, by->s.p, by->s.n) : NULL;
                sign = by->s.n;
            } else if (n != most) {
                for (size_t i = 0; i < rest.n && !at; i++)
                    at = strchr(" \t\n\r\v\f", rest.p[i]) && rest.p[i] ? rest.p + i : NULL;
            }
            if (pass)
                out->list->v[n] = jinja_text(at ? (struct span){rest.p, (size_t)(at - rest.p)} : rest);
            n++;
            if (!at)
                break;
            rest = (struct span){at + sign, (size_t)(rest.p + rest.n - at) - sign};
            rest = words ? jinja_strip(rest, none, true, false) : rest;
            TRY(jinja_step(r, x->line));
        }
        if (!pass)
            TRY(jinja_list_new(r, n, out));
    }
    return 0;
}

static int edge(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, bool end, struct jinja_value *out)
{
    const struct jinja_value *by = jinja_arg(x, 0, NULL);
    int64_t n = by && by->kind == JINJA_LIST ? by->list->n : 1;
    bool yes = false;

    for (int64_t i = 0; i < n && !yes; i++) {
        const struct jinja_value *one = by && by->kind == JINJA_LIST ? &by->list->v[i] : by;

        if (!jinja_is_text(one))
            return jinja_error(r, x->line, "%s wants a text", end ? "endswith" : "startswith");
        yes = one->s.n <= v->s.n && (!one->s.n || memcmp(v->s.p + (end ? v->s.n - one->s.n : 0), one->s.p, one->s.n) == 0);
    }
    *out = jinja_bool(yes);
    return 0;
}
static int startswith(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return edge(r, v, x, false, out);
}
static int endswith(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return edge(r, v, x, true, out);
}

static int find(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *what = jinja_arg(x, 0, NULL);
    const char *at;

    if (!jinja_is_text(what) || x->n != 1)
        return jinja_error(r, x->line, "find wants a text");
    at = !what->s.n ? v->s.p : v->s.n ? memmem(v->s.p, v->s.n, what->s.p, what->s.n) : NULL;
    *out = jinja_int(at || !what->s.n ? jinja_characters((struct span){v->s.p, at ? (size_t)(at - v->s.p) : 0}) : -1);
    return 0;
}

static int index_of(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    TRY(find(r, v, x, out));
    return out->i < 0 ? jinja_error(r, x->line, "index: the text is not in there") : 0;
}

/* indent(width=4, first=False, blank=False) */
static int indent(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *width = jinja_arg(x, 0, "width"), *first = jinja_arg(x, 1, "first"),
                             *blank = jinja_arg(x, 2, "blank");
    int64_t n = jinja_number_or(width, 4);
    struct buf b = {.max = JINJA_TEXT};
    const char *from;
    struct span s;

    TRY(jinja_string(r, v, &s));
    from = s.n ? s.p : "";
    if (n < 0 || n > 1000)
        return jinja_error(r, x->line, "an indent of %lld", (long long)n);
    for (size_t at = 0, end; at <= s.n; at = end + 1) {
        const char *line = at < s.n ? memchr(from + at, '\n', s.n - at) : NULL;
        bool fills = at ? line != from + at && at < s.n : first && jinja_true(first);

        end = line ? (size_t)(line - from) : s.n;
        if (at && blank && jinja_true(blank) && at < s.n)
            fills = true;
        for (int64_t i = 0; fills && i < n; i++)
            jinja_is_text(width) ? buf_put_span(&b, width->s) : buf_putc(&b, ' ');
        buf_put(&b, from + at, end - at);
        if (line)
            buf_putc(&b, '\n');
    }
    return jinja_take(r, &b, out);
}

const struct jinja_named jinja_text_filters[] = {{"capitalize", capitalize}, {"indent", indent}, {"lower", lower},
                                                 {"replace", replace}, {"title", title}, {"trim", strip}, {"upper", upper},
                                                 {NULL, NULL}};
const struct jinja_named jinja_text_methods[] = {
    {"capitalize", capitalize}, {"endswith", endswith}, {"find", find}, {"index", index_of}, {"lower", lower},
    {"lstrip", lstrip},
    {"replace", replace}, {"rstrip", rstrip}, {"split", split}, {"startswith", startswith}, {"strip", strip},
    {"title", title}, {"upper", upper}, {NULL, NULL}};
