/* What belongs together: one pass with a stack, as MediaWiki's preprocessor, but that links and
 * templates do not spoil each other when one of them has no end. */
#include <stdlib.h>
#include <strings.h>

#include "curate/wiki/wikitext_parts.h"

/* Braces or brackets that wait for their end. */
struct wt_open {
    uint32_t at;    /* the first of the run */
    uint32_t count; /* of those left */
    uint32_t slot;  /* of the node of the outermost pair that it can be part of */
    uint32_t below; /* of a link: the braces around; of braces: links that were open */
    bool variant;
};

static const struct { const char *name; enum wt_tag tag; } raw_tags[] = {
    {"nowiki", WT_NOWIKI}, {"pre", WT_PRE}, {"syntaxhighlight", WT_CODE}, {"source", WT_CODE}, {"math", WT_MATH},
    {"chem", WT_CHEM}, {"ce", WT_CHEM}, {"ref", WT_DROP}, {"references", WT_DROP}, {"gallery", WT_DROP},
    {"timeline", WT_DROP}, {"score", WT_DROP}, {"graph", WT_DROP}, {"hiero", WT_DROP}, {"imagemap", WT_DROP},
    {"inputbox", WT_DROP}, {"templatedata", WT_DROP}, {"templatestyles", WT_DROP}, {"mapframe", WT_DROP},
    {"maplink", WT_DROP}, {"categorytree", WT_DROP}, {"charinsert", WT_DROP}, {"section", WT_DROP},
    {"indicator", WT_DROP}, {"includeonly", WT_DROP}, {"phonos", WT_DROP}, {"rss", WT_DROP}, {"quiz", WT_DROP},
    {"ruby-annotation", WT_DROP}, {"dynamicpagelist", WT_DROP}, {"languages", WT_DROP}, {"script", WT_DROP},
    {"style", WT_DROP}};
enum { N_RAW = sizeof raw_tags / sizeof *raw_tags, NAME_MAX_LEN = 20 };

struct finder {
    struct wt_nodes *out;
    const char *t;
    uint32_t n;
    bool variants, no_tag_end;
    bool no_close[N_RAW];
    /* Two stacks in out->open: braces grow from the bottom, links from the top. */
    uint32_t n_braces, n_links;
};

static int add_nodes(struct wt_nodes *out, uint32_t count)
{
    if (out->cap - out->n < count) {
        uint32_t cap = out->cap * 2 > out->n + count ? out->cap * 2 : out->n + count + 64;
        struct wt_node *v = realloc(out->v, cap * sizeof *v);
        if (!v)
            return ERR_NOMEM;
        out->v = v;
        out->cap = cap;
    }
    memset(out->v + out->n, 0, count * sizeof *out->v);
    out->n += count;
    return 0;
}

static void set_node(struct finder *f, uint32_t slot, enum wt_kind kind, uint32_t start, uint32_t end, uint32_t mark)
{
    f->out->v[slot] = (struct wt_node){.start = start, .end = end, .body = start + mark, .body_end = end - mark,
                                       .next = f->out->n, .kind = (uint8_t)kind};
}

static struct wt_open *link_at(struct finder *f, uint32_t i)
{
    return &f->out->open[f->out->cap_open - 1 - i];
}

static int push(struct finder *f, bool link, struct wt_open o)
{
    struct wt_nodes *out = f->out;

    if (f->n_braces + f->n_links == out->cap_open) {
        uint32_t cap = out->cap_open ? out->cap_open * 2 : 64;
        struct wt_open *p = realloc(out->open, cap * sizeof *p);
        if (!p)
            return ERR_NOMEM;
        memmove(p + cap - f->n_links, p + out->cap_open - f->n_links, f->n_links * sizeof *p);
        out->open = p;
        out->cap_open = cap;
    }
    if (link)
        *link_at(f, f->n_links++) = o;
    else
        out->open[f->n_braces++] = o;
    return 0;
}

/* ---- tags and comments ---- */

static size_t name_length(const char *p, const char *end)
{
    const char *q = p;

    while (q < end && q - p <= NAME_MAX_LEN &&
           ((*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z') || *q == '-' || (*q >= '0' && *q <= '9')))
        q++;
    return (size_t)(q - p);
}

static int raw_tag(const char *p, size_t n)
{
    for (int i = 0; i < N_RAW; i++)
        if (strlen(raw_tags[i].name) == n && strncasecmp(raw_tags[i].name, p, n) == 0)
            return i;
    return -1;
}

bool wt_is_raw_tag(struct span name)
{
    return raw_tag(name.p, name.n) >= 0;
}

/* The "</name" of a tag at or behind p, or NULL. */
static const char *closing(const char *p, const char *end, const char *name, size_t n)
{
    while ((p = memmem(p, (size_t)(end - p), "</", 2))) {
        p += 2;
        if ((size_t)(end - p) > n && strncasecmp(p, name, n) == 0 && strchr(" \t\n>", p[n]))
            return p - 2;
    }
    return NULL;
}

/* At '<': a comment or tag whose content is no wikitext.  Moves *at behind it; 0, or ERR_NOMEM. */
static int take_angle(struct finder *f, uint32_t *at)
{
    const char *p = f->t + *at, *end = f->t + f->n, *to, *close;
    struct wt_node node = {.start = *at, .kind = WT_TAG};
    size_t n;
    int tag;

    (*at)++;
    if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
        to = memmem(p + 4, (size_t)(end - p - 4), "-->", 3);
        node.kind = WT_COMMENT;
        node.end = to ? (uint32_t)(to + 3 - f->t) : f->n;
    } else {
        n = name_length(p + 1, end);
        tag = n ? raw_tag(p + 1, n) : -1;
        if (tag < 0 || f->no_tag_end)
            return 0;
        to = memchr(p, '>', (size_t)(end - p));
        f->no_tag_end = !to;
        if (!to)
            return 0;
        node.tag = (uint8_t)raw_tags[tag].tag;
        node.body = node.body_end = (uint32_t)(to + 1 - f->t);
        node.end = node.body;
        if (to[-1] != '/') {
            close = f->no_close[tag] ? NULL : closing(to + 1, end, p + 1, n);
            to = close ? memchr(close, '>', (size_t)(end - close)) : NULL;
            if (!to) {
                f->no_close[tag] = true;
                return 0;
            }
            node.body_end = (uint32_t)(close - f->t);
            node.end = (uint32_t)(to + 1 - f->t);
        }
    }
    TRY(add_nodes(f->out, 1));
    node.next = f->out->n;
    f->out->v[f->out->n - 1] = node;
    *at = node.end;
    return 0;
}

/* ---- braces and brackets ---- */

static uint32_t run(const struct finder *f, uint32_t at)
{
    uint32_t n = 1;

    while (at + n < f->n && f->t[at + n] == f->t[at])
        n++;
    return n;
}

static int open_braces(struct finder *f, uint32_t *at)
{
    uint32_t n = run(f, *at);
    struct wt_open o = {.at = *at, .count = n, .slot = f->out->n, .below = f->n_links};

    *at += n;
    o.variant = n == 1 && f->variants && o.at > 0 && f->t[o.at - 1] == '-';
    if (n < 2 && !o.variant)
        return 0;
    TRY(add_nodes(f->out, o.variant ? 1 : n / 2));
    return push(f, false, o);
}

static void close_braces(struct finder *f, uint32_t *at)
{
    uint32_t n = run(f, *at), p = *at;

    *at += n;
    while (n && f->n_braces) {
        struct wt_open *o = &f->out->open[f->n_braces - 1];
        uint32_t k = o->count < n ? o->count : n;

        if (o->variant) {
            if (n == 1 && p + 1 < f->n && f->t[p + 1] == '-') {
                set_node(f, o->slot, WT_VARIANT, o->at - 1, p + 2, 2);
                *at = p + 2;
                f->n_links = o->below;
                f->n_braces--;
                return;
            }
            if (n < 2)
                return;
            f->n_braces--; /* it was none */
            continue;
        }
        if (k < 2)
            return;
        k = k > 3 ? 3 : k;
        o->count -= k;
        /* The innermost pairs take the last slots. */
        set_node(f, o->slot + o->count / 2, k == 3 ? WT_ARGUMENT : WT_TEMPLATE, o->at + o->count, p + k, k);
        f->n_links = o->below;
        p += k;
        n -= k;
        if (o->count < 2)
            f->n_braces--;
    }
}

static int open_brackets(struct finder *f, uint32_t *at)
{
    uint32_t n = run(f, *at);
    struct wt_open o = {.at = *at + n - 2, .slot = f->out->n, .below = f->n_braces};

    *at += n;
    if (n < 2)
        return 0;
    TRY(add_nodes(f->out, 1));
    return push(f, true, o);
}

static void close_brackets(struct finder *f, uint32_t *at)
{
    uint32_t n = run(f, *at), p = *at;

    *at += n;
    for (; n >= 2 && f->n_links; n -= 2, p += 2) {
        struct wt_open *o = link_at(f, f->n_links - 1);
        if (o->below != f->n_braces)
            return; /* of a link around braces that are still open */
        set_node(f, o->slot, WT_LINK, o->at, p + 2, 2);
        f->n_links--;
    }
}

/* Links opened before braces that never end can be closed behind them only if the braces are
 * forgotten: a line that begins a heading ends all that is open. */
static void forget(struct finder *f)
{
    f->n_braces = f->n_links = 0;
}

static const bool mark[256] = {['<'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true, ['\n'] = true};

int wt_nodes_find(struct wt_nodes *out, struct span text, bool variants)
{
    struct finder f = {.out = out, .t = text.p, .n = (uint32_t)text.n, .variants = variants};
    uint32_t at = 0;
    int rc = 0;

    out->n = 0;
    for (;;) {
        while (at < f.n && !mark[(unsigned char)f.t[at]])
            at++;
        if (at == f.n || rc < 0)
            return rc;
        switch (f.t[at]) {
        case '<': rc = take_angle(&f, &at); break;
        case '{': rc = open_braces(&f, &at); break;
        case '}': close_braces(&f, &at); break;
        case '[': rc = open_brackets(&f, &at); break;
        case ']': close_brackets(&f, &at); break;
        default: /* a line's end */
            at++;
            if (f.n - at >= 2 && f.t[at] == '=' && f.t[at + 1] == '=')
                forget(&f);
        }
    }
}

void wt_nodes_free(struct wt_nodes *n)
{
    free(n->v);
    free(n->open);
    *n = (struct wt_nodes){.n = 0};
}
