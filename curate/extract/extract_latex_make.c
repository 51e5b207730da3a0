/* An e-print's files to a document: the main file, charset, what it inputs. */
#include <stdlib.h>

#include "base/file.h"
#include "curate/extract/extract_latex.h"

struct latex_maker {
    const struct extract_conf *conf;
    struct latex_conf latex;
    struct extract_counts *counts;
    struct charset *charset;
    struct latex_worker *worker;
    struct arena arena;     /* a document's files as UTF-8 */
    const struct latex_item *item;
    const struct latex_member *member; /* of this document */
    int n, main;
    struct span label;      /* of its charset */
    size_t left;            /* bytes that may yet be read */
    struct buf unpacked, tmp;
};

void latex_maker_close(void *maker)
{
    struct latex_maker *m = maker;

    charset_free(m->charset);
    latex_worker_free(m->worker);
    arena_free(&m->arena);
    buf_free(&m->unpacked);
    buf_free(&m->tmp);
    free(m);
}

int latex_maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    struct latex_maker *m = *maker = calloc(1, sizeof *m);

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    m->conf = c;
    m->counts = n;
    TRY(charset_new(&m->charset, e));
    m->latex = c->latex;
    m->latex.format = c->html.format;
    m->latex.max_bytes = (size_t)c->max_page;
    return latex_worker_new(&m->worker, &m->latex, e);
}

/* Line ends of every kind become "\n", control characters spaces. */
static struct span plain_lines(struct latex_maker *m, struct span s)
{
    char *p, *to;
    size_t i = 0;

    while (i < s.n && ((unsigned char)s.p[i] >= 32 || s.p[i] == '\n' || s.p[i] == '\t') && s.p[i] != 127)
        i++;
    if (i == s.n)
        return arena_dup(&m->arena, s);
    p = to = arena_alloc(&m->arena, s.n + 1);
    if (!p)
        return (struct span){NULL, 0};
    for (i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\r' && i + 1 < s.n && s.p[i + 1] == '\n')
            continue;
        *to++ = c == '\r' ? '\n' : (c < 32 && c != '\n' && c != '\t') || c == 127 ? ' ' : (char)c;
    }
    return (struct span){p, (size_t)(to - p)};
}

/* A file's bytes as what latex_extract reads; it lies in the arena. */
static int decode(struct latex_maker *m, struct span bytes, struct span *utf8, struct err *e)
{
    const char *name;

    if (bytes.n > m->left)
        return err_set(e, ERR_LIMIT, "the document's files have more than %zu bytes", m->latex.max_bytes);
    m->left -= bytes.n;
    TRY(charset_decode(m->charset, bytes, m->label, false, utf8, &name, e));
    *utf8 = plain_lines(m, *utf8);
    return utf8->p ? 0 : err_set(e, ERR_NOMEM, "out of memory for a document");
}

/* \usepackage[latin1]{inputenc} */
static struct span input_encoding(struct span s)
{
    static const char package[] = "]{inputenc}";
    static const char *const names[][2] = {{"ansinew", "windows-1252"}, {"applemac", "macintosh"}, {"utf8x", "utf-8"},
                                           {"cp1252", "windows-1252"},  {"latin9", "iso-8859-15"}, {"latin10", "iso-8859-16"},
                                           {"koi8-r", "koi8-r"},        {"cp1251", "windows-1251"}};
    const char *p = s.n ? memmem(s.p, s.n, package, sizeof package - 1) : NULL, *from = p;
    struct span label;

    if (!p)
        return (struct span){"", 0};
    while (from > s.p && from[-1] != '[' && from[-1] != '\n')
        from--;
    label = (struct span){from, (size_t)(p - from)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (span_is(label, names[i][0]))
            return span_of(names[i][1]);
    return label;
}

/* ---- files of a document ---- */

static struct span folder_of(struct span path)
{
    while (path.n && path.p[path.n - 1] != '/')
        path.n--;
    return path;
}

static const struct latex_member *member_named(const struct latex_maker *m, struct span folder, struct span name,
                                               const char *ending)
{
    size_t n = folder.n + name.n + strlen(ending);

    for (int i = 0; i < m->n; i++) {
        struct span s = m->member[i].name;
        if (s.n > 2 && memcmp(s.p, "./", 2) == 0)
            s.p += 2, s.n -= 2;
        if (s.n == n && memcmp(s.p, folder.p, folder.n) == 0 && memcmp(s.p + folder.n, name.p, name.n) == 0 &&
            memcmp(s.p + folder.n + name.n, ending, strlen(ending)) == 0)
            return &m->member[i];
    }
    return NULL;
}

/* Only what lies beside the main file or below is read, through no link that leads out of there. */
static int find_on_disk(struct latex_maker *m, struct span name, const char *ending, struct span *bytes, struct err *e)
{
    struct span folder = folder_of(m->item->member[0].name);
    struct err ignored;
    struct file_in *f;
    int rc;

    if (memchr(name.p, '\0', name.n))
        return 0;
    buf_clear(&m->tmp);
    if (buf_put_span(&m->tmp, folder) < 0 || buf_putc(&m->tmp, '\0') < 0 || buf_put_span(&m->tmp, name) < 0 ||
        buf_puts(&m->tmp, ending) < 0 || buf_putc(&m->tmp, '\0') < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a file's name");
    rc = file_open_beneath(&f, m->tmp.p, m->tmp.p + folder.n + 1, &ignored);
    if (rc == 0) {
        buf_clear(&m->unpacked);
        rc = file_read_rest(f, m->left, &m->unpacked, &ignored);
        file_close(f);
    }
    if (rc == ERR_LIMIT || rc == ERR_NOMEM) {
        *e = ignored;
        return rc;
    }
    if (rc < 0)
        return 0;
    *bytes = buf_span(&m->unpacked);
    return 1;
}

static int find(void *arg, struct span name, struct span *utf8, struct err *e)
{
    static const char *const endings[] = {"", ".tex", ".ltx"};
    struct latex_maker *m = arg;
    const struct latex_member *found = NULL;
    struct span bytes = {NULL, 0};
    int rc = 0;

    while (name.n && (name.p[0] == '"' || name.p[0] == ' '))
        name.p++, name.n--;
    while (name.n && (name.p[name.n - 1] == '"' || name.p[name.n - 1] == ' '))
        name.n--;
    while (name.n > 2 && memcmp(name.p, "./", 2) == 0)
        name.p += 2, name.n -= 2;
    if (!name.n || name.n > 500)
        return 0;
    for (int i = 0; i < 3 && !found && rc == 0; i++) {
        if (m->item->disk) {
            rc = find_on_disk(m, name, endings[i], &bytes, e);
            continue;
        }
        found = member_named(m, folder_of(m->member[m->main].name), name, endings[i]);
        if (!found)
            found = member_named(m, (struct span){"", 0}, name, endings[i]);
    }
    if (rc < 0)
        return rc;
    if (found)
        bytes = found->bytes;
    else if (rc == 0)
        return 0;
    if (!bytes.n || memchr(bytes.p, '\0', bytes.n))
        return 0;
    TRY(decode(m, bytes, utf8, e));
    return 1;
}

/* ---- the main file ---- */

static bool has(struct span s, const char *what)
{
    const char *p = s.p, *end = s.p + s.n;

    while (p && p < end && (p = memmem(p, (size_t)(end - p), what, strlen(what)))) {
        const char *line = p;
        while (line > s.p && line[-1] != '\n' && line[-1] != '\r' && line[-1] != '%')
            line--;
        if (line == s.p || line[-1] != '%')
            return true;
        p = memchr(p, '\n', (size_t)(end - p)); /* the rest of the line is a comment */
    }
    return false;
}

/* How much a member looks like the main file. */
static int64_t main_score(const struct latex_member *m)
{
    static const char *const usual[] = {"ms.tex", "main.tex", "paper.tex", "article.tex", "arxiv.tex", "manuscript.tex"};
    struct span base = m->name, folder = folder_of(m->name);
    int64_t score = 0;

    base.p += folder.n;
    base.n -= folder.n;
    if (base.n < 4 || (memcmp(base.p + base.n - 4, ".tex", 4) != 0 && memchr(base.p, '.', base.n)))
        return memmem(m->bytes.p, m->bytes.n, "\\begin{document}", 16) ? 1 : 0;
    if (has(m->bytes, "\\begin{document}"))
        score += 8;
    if (has(m->bytes, "\\documentclass") || has(m->bytes, "\\documentstyle"))
        score += 8;
    if (has(m->bytes, "{subfiles}") || has(m->bytes, "{standalone}"))
        score -= 8;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        score += span_is(base, usual[i]) ? 2 : 0;
    score += folder.n == 0;
    return score * ((int64_t)1 << 40) + (int64_t)m->bytes.n + 1;
}

static int choose_main(const struct latex_member *member, int n)
{
    int64_t best = 0;
    int is = -1;

    for (int i = 0; i < n; i++) {
        int64_t score = main_score(&member[i]);
        if (score > best) {
            best = score;
            is = i;
        }
    }
    return is;
}

/* ---- documents ---- */

static int set_document(struct latex_maker *m, struct doc *d, const struct latex_doc *x, struct err *e)
{
    struct extract_item shown = m->item->item;
    struct buf id = {0};
    int rc = 0;

    if (m->item->archived) {
        struct span main = m->member[m->main].name;
        rc = buf_printf(&id, "%.*s/%.*s", (int)shown.id.n, shown.id.p, (int)main.n, main.p);
        shown.id = buf_span(&id);
    }
    rc = rc < 0 ? err_set(e, rc, "out of memory for a document")
                : extract_set_fields(d, &shown,
                                     &(struct extract_fields){.title = x->title, .date = x->date, .lang = x->lang,
                                                              .author = x->author, .text = x->text},
                                     e);
    buf_free(&id);
    return rc;
}

int latex_make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e)
{
    static const char ignore[] = "%auto-ignore";
    struct latex_maker *m = maker;
    struct latex_doc x = {.text = {NULL, 0}};
    struct span utf8;

    arena_reset(&m->arena);
    m->item = (const struct latex_item *)item;
    m->member = m->item->member;
    m->n = m->item->n;
    m->left = m->latex.max_bytes * LATEX_EPRINT_MAX;
    m->main = m->n == 1 ? 0 : choose_main(m->member, m->n);
    if (m->main < 0)
        return err_set(e, ERR_FORMAT, "no TeX file in the archive");
    struct span bytes = m->member[m->main].bytes;
    if (bytes.n >= sizeof ignore - 1 && memcmp(bytes.p, ignore, sizeof ignore - 1) == 0) {
        TRY(set_document(m, d, &x, e));
        return verdict_drop(v, &extract_rules[EXTRACT_WITHDRAWN], 0, 1); /* arXiv's mark of an empty e-print */
    }
    m->label = input_encoding(bytes);
    TRY(decode(m, bytes, &utf8, e));
    extract_count(&m->counts->latex_bytes, utf8.n);
    TRY(latex_extract(m->worker, utf8, &(struct latex_files){find, m}, &x, e));
    return set_document(m, d, &x, e);
}
