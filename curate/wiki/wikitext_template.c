/* Templates.  What a template writes is looked up by name:
 *   {1}         the first argument; {a|b|1}: the first of these that is there and not empty
 *   {1|Yes}     Yes if there is none
 *   {-1}        the last argument without a name
 *   {+, }       all of those, with ", " between them
 *   {*<li>~</li>}  each of those between the two parts
 *   <...>       a tag; @name: a function of wikitext_function.c; all else is text
 * Those that are not in the table write nothing. */
#include <stdlib.h>

#include "curate/wiki/wikitext_parts.h"

static const struct pattern { const char *name, *text; } patterns[] = {
#include "curate/wiki/wikitext_patterns.inc"
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns, ARGS_MAX = 1000 };

static int compare(const void *key, const void *item)
{
    const struct span *k = key;
    struct span name = span_of(((const struct pattern *)item)->name);
    int d = memcmp(k->p, name.p, k->n < name.n ? k->n : name.n);

    return d ? d : (k->n > name.n) - (k->n < name.n);
}

const char *wt_pattern(struct span name)
{
    const struct pattern *p = bsearch(&name, patterns, N_PATTERNS, sizeof *patterns, compare);

    if (p)
        return p->text;
    if (name.n > 5 && memcmp(name.p, "lang-", 5) == 0)
        return "{1}";
    return NULL;
}

/* ---- arguments ---- */

static bool is_wiki_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static struct wt_range trim(const struct wt *w, struct wt_range r, bool *lines)
{
    *lines = false;
    for (; r.at < r.end && is_wiki_space(w->t[r.at]); r.at++)
        *lines |= w->t[r.at] == '\n';
    while (r.end > r.at && is_wiki_space(w->t[r.end - 1]))
        r.end--;
    return r;
}

static struct wt_arg *add_arg(struct wt *w)
{
    if (w->n_args == w->cap_args) {
        int cap = w->cap_args ? w->cap_args * 2 : 64;
        struct wt_arg *p = realloc(w->arg, (size_t)cap * sizeof *p);
        if (!p) {
            w->rc = ERR_NOMEM;
            return NULL;
        }
        w->arg = p;
        w->cap_args = cap;
    }
    return &w->arg[w->n_args++];
}

/* Those from the first-th on; there may be none at all, and no array. */
static const struct wt_arg *args_from(const struct wt *w, int first)
{
    return w->arg ? w->arg + first : NULL;
}

/* Takes apart what stands behind the name, r.at at the first '|'; false: memory is out. */
static bool find_args(struct wt *w, struct wt_range r)
{
    for (int n = 0; r.at < r.end && n < ARGS_MAX; n++) {
        struct wt_arg *a = add_arg(w);
        struct wt_range from, look;
        uint32_t at, end;

        if (!a)
            return false;
        *a = (struct wt_arg){.name = {NULL, 0}};
        r.at++; /* the '|' */
        from = look = r;
        end = wt_find(w, &r, "|");
        look.end = end;
        at = wt_find(w, &look, "=");
        if (at < end) {
            bool lines;
            struct wt_range name = trim(w, (struct wt_range){from.at, at, 0}, &lines);
            a->name = wt_span(w, name.at, name.end);
            from = (struct wt_range){at + 1, end, look.node};
        }
        from.end = end;
        a->value = trim(w, from, &a->lines);
    }
    return true;
}

const struct wt_arg *wt_argument(const struct wt_arg *arg, int n, struct span name)
{
    const struct wt_arg *found = NULL;
    int number = 0, wanted = 0;

    if (name.n && name.n < 4)
        for (size_t i = 0; i < name.n; i++)
            wanted = name.p[i] >= '0' && name.p[i] <= '9' && wanted >= 0 ? wanted * 10 + name.p[i] - '0' : -1;
    if (span_is(name, "-1"))
        wanted = -2;
    for (int i = 0; i < n; i++) {
        bool it = arg[i].name.p ? span_eq(arg[i].name, name) : ++number == wanted || wanted == -2;
        if (it && arg[i].value.at < arg[i].value.end)
            found = &arg[i];
    }
    return found;
}

/* ---- patterns ---- */

/* Tags and text of a pattern without braces. */
static void write_plain(struct wt *w, struct wt_frame *f, const char *p, size_t n)
{
    const char *end = p + n;

    while (p < end) {
        const char *q = p + 1;
        if (*p == '<') {
            while (q < end && q[-1] != '>')
                q++;
            wt_put_n(w, p, (size_t)(q - p));
        } else {
            while (q < end && *q != '<' && *q != '(' && *q != ')')
                q++;
            if (*p == '(')
                wt_paren_open(w);
            wt_text(w, f, p, (size_t)(q - p));
            if (*p == ')')
                wt_paren_close(w, f);
        }
        p = q;
    }
}

/* {+between} and {*before~behind}, of arguments at .. at + n - 1. */
static void write_all(struct wt *w, struct wt_frame *f, struct span spec, int at, int n)
{
    const char *p = spec.p + 1, *end = spec.p + spec.n, *tilde = memchr(p, '~', (size_t)(end - p));
    bool each = spec.p[0] == '*' && tilde, first = true;

    for (int i = 0; i < n; i++) {
        struct wt_arg a = w->arg[at + i]; /* the array may move */
        if (a.name.p || a.value.at >= a.value.end)
            continue;
        if (each)
            write_plain(w, f, p, (size_t)(tilde - p));
        else if (!first)
            write_plain(w, f, p, (size_t)(end - p));
        first = false;
        wt_part(w, f, a.value, a.lines);
        if (each)
            write_plain(w, f, tilde + 1, (size_t)(end - tilde - 1));
    }
}

/* {a|b|c}; true if something was written. */
static bool write_one(struct wt *w, struct wt_frame *f, struct span spec, bool lines, const struct wt_arg *arg, int n)
{
    const char *p = spec.p, *end = spec.p + spec.n;

    while (p < end) {
        const char *bar = memchr(p, '|', (size_t)(end - p));
        struct span name = {p, (size_t)((bar ? bar : end) - p)};
        const struct wt_arg *a = wt_argument(arg, n, name);
        if (a) {
            size_t before = w->out->n;
            wt_part(w, f, a->value, lines || a->lines);
            return w->out->n > before;
        }
        if (!bar && (unsigned char)*p >= 'A' && name.p != spec.p && !(*p >= 'a' && *p <= 'z')) {
            wt_text(w, f, p, name.n); /* what is said without one */
            return true;
        }
        p += name.n + 1;
    }
    return false;
}

static void write_pattern(struct wt *w, struct wt_frame *f, const char *p, int first, int n)
{
    bool block = *p == '<', lines = false;
    size_t before = w->out->n;

    while (*p && w->rc == 0) {
        const char *q = strchr(p, '{'), *end = q ? strchr(q, '}') : NULL;

        if (!end || end == q + 1) { /* a brace by itself is one */
            write_plain(w, f, p, strlen(p));
            break;
        }
        write_plain(w, f, p, (size_t)(q - p));
        lines = q > p && q[-1] == '>';
        if (lines)
            f->para = false;
        struct span spec = {q + 1, (size_t)(end - q - 1)};
        if (spec.p[0] == '+' || spec.p[0] == '*')
            write_all(w, f, spec, first, n);
        else if (!write_one(w, f, spec, lines, args_from(w, first), n))
            wt_dropped(w, f);
        p = end + 1;
    }
    if (block)
        f->para = true;
    if (w->out->n == before)
        wt_dropped(w, f);
}

/* ---- templates ---- */

/* Words of MediaWiki that look like templates: {{formatnum:1000}}, {{PAGENAME}}.  True if it was
 * one of them. */
static bool write_word(struct wt *w, struct wt_frame *f, struct wt_range name, struct wt_range whole)
{
    static const char *const kept[] = {"formatnum", "lc", "uc", "lcfirst", "ucfirst", "subst", "safesubst", "nse"};
    const char *p = w->t + name.at;
    struct wt_range look = name;
    uint32_t colon = wt_find(w, &look, ":");
    struct span word;

    if (name.end - name.at >= 8 && (memcmp(p, "PAGENAME", 8) == 0 || memcmp(p + name.end - name.at - 8, "PAGENAME", 8) == 0)) {
        wt_literal(w, f, w->title.p, w->title.n);
        return true;
    }
    if (span_is(wt_span(w, name.at, name.end), "SITENAME")) {
        wt_literal(w, f, w->site->name.p, w->site->name.n);
        return true;
    }
    if (*p == '#') {
        wt_dropped(w, f);
        return true;
    }
    if (colon >= name.end)
        return false;
    word = wt_span(w, name.at, colon);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (span_is(word, kept[i])) {
            struct wt_range value = {colon + 1, whole.end, look.node}, bar = value;
            bool lines;
            value.end = wt_find(w, &bar, "|");
            if (i >= 5) { /* a template with a word before it: as it shows depends on when it was saved */
                wt_dropped(w, f);
                return true;
            }
            wt_part(w, f, trim(w, value, &lines), false);
            return true;
        }
    return false;
}

/* The name of a template; its length in key, or 0. */
static size_t read_name(struct wt *w, struct wt_range name, char key[WIKI_KEY_MAX])
{
    struct span s = wt_span(w, name.at, name.end);
    const char *comment = s.n ? memmem(s.p, s.n, "<!--", 4) : NULL, *colon;

    if (comment && comment > s.p)
        s.n = (size_t)(comment - s.p);
    colon = s.n ? memchr(s.p, ':', s.n) : NULL;
    if (colon && wiki_site_namespace(w->site, (struct span){s.p, (size_t)(colon - s.p)}) == WIKI_TEMPLATE) {
        s.n -= (size_t)(colon + 1 - s.p);
        s.p = colon + 1;
    }
    return wiki_key(s, key);
}

void wt_template(struct wt *w, struct wt_frame *f, const struct wt_node *node)
{
    struct wt_range body = {node->body, node->body_end, (uint32_t)(node - w->nodes.v) + 1}, look = body, name;
    char key[WIKI_KEY_MAX + 1];
    const char *pattern;
    bool lines;
    size_t n;
    int first = w->n_args;

    if (w->depth >= WT_DEPTH) {
        wt_dropped(w, f);
        return;
    }
    name = body;
    name.end = wt_find(w, &look, "|");
    name = trim(w, name, &lines);
    if (name.at < name.end && write_word(w, f, name, body))
        return;
    n = read_name(w, name, key);
    pattern = n ? wt_pattern((struct span){key, n}) : NULL;
    if (!pattern) {
        wt_dropped(w, f);
        return;
    }
    if (!find_args(w, look))
        return;
    key[n] = '\0';
    if (*pattern == '@')
        wt_function(w, f, pattern + 1, key, args_from(w, first), w->n_args - first);
    else
        write_pattern(w, f, pattern, first, w->n_args - first);
    w->n_args = first;
}
