#include "curate/html/html_markdown.h"

#include <string.h>

#include "base/ascii.h"

enum { TEX_MAX = 1000, DOLLARS_MAX = 300 }; /* bytes in which TeX must end */

/* A byte of a word: letters and digits of ASCII, and all beyond it. */
static bool is_word_byte(char c) { return ascii_is_alnum(c) || c < 0; }

/* ---- TeX in the text ---- */

/* Behind the closer within TEX_MAX bytes of p, or NULL.  No byte is looked at twice. */
static const char *find_end(const char *p, const char *end, const char *closer, const char **clear)
{
    const char *from = *clear > p ? *clear : p, *stop = end - p < TEX_MAX ? end : p + TEX_MAX;
    const char *q = from < stop ? memmem(from, (size_t)(stop - from), closer, 2) : NULL;

    if (!q && from < stop)
        *clear = stop - 1;
    return q ? q + 2 : NULL;
}

/* Where the TeX that begins at p ends; NULL if there is none. */
static const char *tex_end(const char *p, const char *end, struct markdown_tex *t)
{
    bool tex = false;

    if (end - p < 3)
        return NULL;
    if (p[0] == '\\')
        return p[1] == '('   ? find_end(p + 2, end, "\\)", &t->clear[0])
               : p[1] == '[' ? find_end(p + 2, end, "\\]", &t->clear[1])
                             : NULL;
    if (p[0] != '$')
        return NULL;
    if (p[1] == '$')
        return find_end(p + 2, end, "$$", &t->clear[2]);
    if (ascii_is_space(p[1]))
        return NULL;
    for (const char *q = p + 1; q < end && q - p < DOLLARS_MAX; q++) {
        if (*q == '$')
            return tex && !ascii_is_space(q[-1]) && (q + 1 == end || !ascii_is_digit(q[1])) ? q + 1 : NULL;
        tex |= *q == '\\' || *q == '^' || *q == '_' || *q == '{' || *q == '=';
    }
    return NULL;
}

/* ---- words ---- */

static bool all_of(struct span s, char c)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != c)
            return false;
    return s.n > 0;
}

/* Which byte of a line's first word to escape, so that no block begins; s.n for none. */
static size_t block_mark(struct span s)
{
    size_t digits = 0;

    switch (s.p[0]) {
    case '>': case '[':
        return 0;
    case '+': case '*':
        return s.n == 1 ? 0 : s.n;
    case '-': case '=':
        return all_of(s, s.p[0]) ? 0 : s.n;
    case '#':
        return s.n <= 6 && all_of(s, '#') ? 0 : s.n;
    case '~':
        return s.n >= 3 && s.p[1] == '~' && s.p[2] == '~' ? 0 : s.n;
    default:
        while (digits < s.n && digits < 10 && ascii_is_digit(s.p[digits]))
            digits++;
        return digits && digits < 10 && digits + 1 == s.n && (s.p[digits] == '.' || s.p[digits] == ')') ? digits : s.n;
    }
}

static bool is_entity(const char *p, const char *end)
{
    const char *q = p + 1;

    q += q < end && *q == '#';
    while (q < end && is_word_byte(*q) && q - p < 40)
        q++;
    return q < end && *q == ';' && q > p + 1;
}

/* True if the byte at p would be read as a mark.  before, after: its neighbours, 0 for
 * none. */
static bool is_mark(const char *p, const char *end, char before, char after, const struct markdown_place *at)
{
    switch (*p) {
    case '\\': return !after || (after > ' ' && !is_word_byte(after));
    case '`': return true;
    case '*': return before || after;
    case '_': return (before || after) && !(before && after && is_word_byte(before) && is_word_byte(after));
    case '~': return before == '~' || after == '~';
    case '<': return after && (is_word_byte(after) || after == '/' || after == '!' || after == '?');
    case '&': return is_entity(p, end);
    case '$': return !ascii_is_digit(after);
    case '[': return at->link;
    case ']': return at->link || after == '(';
    case '(': return before == ']';
    case '|': return at->row;
    default: return false;
    }
}

int markdown_put(struct span word, const char *end, const struct markdown_place *at, struct markdown_tex *tex,
                 struct buf *out)
{
    static const char marks[] = "\\`*_~<&$[](|";
    size_t block = at->line_start && !at->code ? block_mark(word) : word.n;
    const char *from = word.p, *stop = word.p + word.n;

    for (const char *p = word.p; p < stop; p++) {
        bool first = (size_t)(p - word.p) == block;
        if (!first && !(*p > 0 && strchr(marks, *p)))
            continue;
        if (at->code ? *p != '|' || !at->row : tex->end && p < tex->end)
            continue;
        if (!at->code && (*p == '\\' || *p == '$') && (tex->end = tex_end(p, end, tex)))
            continue;
        char last = out->n && !at->line_start && !ascii_is_space(out->p[out->n - 1]) ? out->p[out->n - 1] : '\0';
        char before = p > word.p ? p[-1] : last;
        if (!first && !at->code && !is_mark(p, stop, before, p + 1 < stop ? p[1] : '\0', at))
            continue;
        TRY(buf_put(out, from, (size_t)(p - from)));
        TRY(buf_putc(out, '\\'));
        from = p;
    }
    return buf_put(out, from, (size_t)(stop - from));
}

int markdown_put_url(struct span url, struct buf *out)
{
    for (size_t i = 0; i < url.n; i++) {
        unsigned char c = (unsigned char)url.p[i];
        if (c == '\n' || c == '\r' || c == '\t')
            continue;
        TRY(c <= ' ' || strchr("()<>\\|`", c) ? buf_printf(out, "%%%02X", c) : buf_putc(out, (char)c));
    }
    return 0;
}

int markdown_put_alt(struct span alt, struct buf *out)
{
    for (size_t i = 0; i < alt.n; i++) {
        char c = alt.p[i];
        if (c == '\\' || c == '[' || c == ']' || c == '|')
            TRY(buf_putc(out, '\\'));
        TRY(buf_putc(out, ascii_is_space(c) ? ' ' : c));
    }
    return 0;
}

/* ---- code ---- */

int markdown_close_code(struct buf *out, size_t from, bool block)
{
    size_t n = block ? 3 : 1, need = n, run = 0, extra, pad;

    for (size_t i = from + n; i < out->n; i++) {
        run = out->p[i] == '`' ? run + 1 : 0;
        if (run >= need)
            need = run + 1;
    }
    extra = need - n;
    pad = !block && (out->p[from + 1] == '`' || out->p[out->n - 1] == '`');
    if (extra + pad) {
        TRY(buf_reserve(out, extra + pad));
        memmove(out->p + from + extra + pad, out->p + from, out->n - from);
        memset(out->p + from, '`', need);
        if (pad)
            out->p[from + need] = ' ';
        out->n += extra + pad;
    }
    TRY(pad ? buf_putc(out, ' ') : 0);
    while (need--)
        TRY(buf_putc(out, '`'));
    return 0;
}

/* The language that a class attribute names. */
static struct span class_language(struct span v)
{
    static const char *const starts[] = {"language-", "lang-", "highlight-source-", "highlight-text-", "highlight-",
                                         "sourceCode ", "brush: ", "brush:"};
    static const char *const none[] = {"default", "none", "text", "plaintext", "plain", "source", "notranslate"};

    for (unsigned k = 0; k < sizeof starts / sizeof *starts && v.n; k++) {
        size_t n = strlen(starts[k]), len = 0;
        const char *p = memmem(v.p, v.n, starts[k], n), *end = v.p + v.n;
        if (!p || (p > v.p && p[-1] != ' '))
            continue;
        for (p += n; p + len < end && (is_word_byte(p[len]) || (p[len] && strchr("+#-_.", p[len]))); len++)
            ;
        struct span found = {p, len};
        bool known = len > 0 && len < 30;
        for (unsigned i = 0; i < sizeof none / sizeof *none; i++)
            known &= !span_is(found, none[i]);
        if (known)
            return found;
    }
    return (struct span){NULL, 0};
}

struct span markdown_language(const struct html_tree *t, uint32_t pre)
{
    struct span found = class_language(html_attr_raw(t, pre, ATTR_class, NULL));
    uint32_t at = pre;

    for (uint32_t i = pre + 1; !found.n && i < t->node[pre].end && i < pre + 4; i++)
        if (t->node[i].tag == HTML_code)
            found = class_language(html_attr_raw(t, i, ATTR_class, NULL));
    /* A highlighter's boxes around it. */
    for (int up = 0; !found.n && up < 3 && at; up++) {
        at = t->node[at].parent;
        if (t->node[at].tag == HTML_div || t->node[at].tag == HTML_figure)
            found = class_language(html_attr_raw(t, at, ATTR_class, NULL));
    }
    return found;
}
