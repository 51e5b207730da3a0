/* LaTeX: a file on disk with what it inputs beside it, or what extract_tar.c finds in archives: an e-print's
 * files, or one file by itself. */
#include <inttypes.h>
#include <stdlib.h>

#include "curate/extract/extract_latex.h"

enum { COMMANDS = 3 }; /* that TeX without a sign has at least near its start */

/* ---- telling ---- */

static bool looks_like_tex(struct span s)
{
    static const char *const signs[] = {"\\documentclass", "\\documentstyle", "\\begin{document}", "\\input amstex",
                                        "\\input harvmac", "%auto-ignore", "\\magnification", "\\section{", "\\input epsf"};

    size_t blank = 0;

    while (blank < s.n && strchr(" \t\r\n", s.p[blank]))
        blank++;
    if (blank == s.n || (s.p[blank] != '\\' && s.p[blank] != '%') || memchr(s.p, '\0', s.n))
        return false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *p = s.n ? memmem(s.p, s.n, signs[i], strlen(signs[i])) : NULL;
        if (p && (p == s.p || strchr(" \t\n\r", p[-1])))
            return true;
    }
    return false;
}

static enum extract_match probe(const struct extract_input *in)
{
    static const char *const endings[] = {".tex", ".ltx", ".latex", NULL};

    if (extract_named(in->path, endings))
        return EXTRACT_SURE;
    return looks_like_tex(in->start) ? EXTRACT_LOOKS : EXTRACT_NO;
}

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

bool latex_is_source(struct span s)
{
    int commands = 0;

    for (size_t i = 0; i + 2 < s.n && commands < COMMANDS; i++)
        commands += s.p[i] == '\\' && is_small(s.p[i + 1]) && is_small(s.p[i + 2]);
    return commands == COMMANDS && !extract_is_other(s);
}

/* ---- reading ---- */

bool latex_may_be_input(struct span name)
{
    static const char *const others[] = {".eps", ".epsi", ".ps",  ".pdf", ".png", ".jpg", ".jpeg", ".gif",  ".svg",
                                         ".fig", ".mp4",  ".avi", ".PDF", ".EPS", ".PNG", ".JPG",  ".bib",  ".bst",
                                         ".bbl", ".cls",  ".zip", ".csv", ".dat", ".log", ".aux",  ".html", ".py",
                                         ".xml", ".json"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t n = strlen(others[i]);
        if (name.n > n && memcmp(name.p + name.n - n, others[i], n) == 0)
            return false;
    }
    return true;
}

static struct latex_item *new_item(size_t n_members, size_t n_bytes, struct err *e)
{
    struct latex_item *it = calloc(1, sizeof *it + n_members * sizeof(struct latex_member) + n_bytes);

    if (!it) {
        err_set(e, ERR_NOMEM, "out of memory for a document");
        return NULL;
    }
    it->member = (struct latex_member *)(it + 1);
    it->n = (int)n_members;
    return it;
}

static int single(struct span id, struct span bytes, uint64_t offset, struct latex_item **item, struct err *e)
{
    struct latex_item *it = new_item(1, id.n + bytes.n, e);
    char *at;

    if (!it)
        return ERR_NOMEM;
    at = (char *)(it->member + 1);
    it->item = (struct extract_item){.offset = offset, .size = bytes.n, .id = extract_pack(&at, id)};
    it->member[0] = (struct latex_member){it->item.id, extract_pack(&at, bytes)};
    *item = it;
    return 1;
}

struct latex_eprint {
    struct buf bytes, names; /* of the files so far, each one's name with a NUL behind it */
    size_t *end;             /* of each in bytes */
    int n;
    bool tex, done;
    size_t told;             /* of names */
};

int latex_eprint_new(struct latex_eprint **out, const struct extract_conf *c, struct err *e)
{
    struct latex_eprint *p = *out = calloc(1, sizeof *p);

    if (p)
        p->end = calloc(LATEX_MEMBERS_MAX, sizeof *p->end);
    if (!p || !p->end)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    p->bytes.max = (size_t)c->max_page * LATEX_EPRINT_MAX;
    return 0;
}

void latex_eprint_free(struct latex_eprint *p)
{
    if (!p)
        return;
    buf_free(&p->bytes);
    buf_free(&p->names);
    free(p->end);
    free(p);
}

bool latex_eprint_has_tex(const struct latex_eprint *p)
{
    return p->tex;
}

int latex_eprint_add(struct latex_eprint *p, struct span name, struct span bytes, bool tex, struct err *e)
{
    int rc;

    if (bytes.n == 0 || extract_is_other(bytes))
        return 0;
    if (p->n == LATEX_MEMBERS_MAX)
        return err_set(e, ERR_LIMIT, "'%.*s': the archive has more than %d files of text", (int)name.n, name.p, p->n);
    rc = buf_put_span(&p->bytes, bytes);
    if (rc == ERR_LIMIT)
        return err_set(e, rc, "'%.*s': the archive's files of text have more than %zu bytes", (int)name.n, name.p,
                       p->bytes.max);
    if (rc < 0 || buf_put_span(&p->names, name) < 0 || buf_putc(&p->names, '\0') < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    p->end[p->n++] = p->bytes.n;
    p->tex |= tex;
    return 0;
}

int latex_eprint_item(struct latex_eprint *p, const struct extract_input *in, struct extract_item **item, struct err *e)
{
    struct span path = span_of(in->path);
    struct latex_item *it;
    size_t from = 0;
    const char *name;
    char *at;

    if (p->done)
        return 0;
    p->done = true;
    it = new_item((size_t)p->n, path.n + p->names.n + p->bytes.n, e);
    if (!it)
        return ERR_NOMEM;
    at = (char *)(it->member + p->n);
    it->archived = in->depth == 0; /* one of many is named by its own archive */
    it->item = (struct extract_item){.format = &extract_latex, .size = p->bytes.n, .id = extract_pack(&at, path)};
    name = extract_pack(&at, buf_span(&p->names)).p;
    for (int i = 0; i < p->n; i++) {
        it->member[i].name = span_of(name);
        name += it->member[i].name.n + 1;
        it->member[i].bytes = extract_pack(&at, (struct span){p->bytes.p + from, p->end[i] - from});
        from = p->end[i];
    }
    *item = &it->item;
    return 1;
}

int latex_eprint_refuse(struct latex_eprint *p, const char *archive, struct err *e)
{
    const char *name;

    if (p->told == p->names.n)
        return 0;
    name = p->names.p + p->told;
    p->told += strlen(name) + 1;
    return err_set(e, ERR_FORMAT, "'%s/%s' is neither a WARC or ARC file nor HTML, LaTeX, a wiki's export or XML of a known kind",
                   archive, name);
}

static int next_file(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct latex_item *it;
    struct span all;
    int rc = extract_whole_next(in, reader, (size_t)in->conf->max_page, &all, e);

    if (rc != 1)
        return rc;
    TRY(single(span_of(in->path), all, 0, &it, e));
    it->disk = in->depth == 0 && strcmp(in->path, "-") != 0;
    *item = &it->item;
    return 1;
}

const struct extract_format extract_latex = {
    .stat = "latex_files",
    .probe = probe,
    .open = extract_whole_open,
    .next = next_file,
    .close = extract_whole_close,
    .maker_open = latex_maker_open,
    .maker_close = latex_maker_close,
    .make = latex_make,
};
