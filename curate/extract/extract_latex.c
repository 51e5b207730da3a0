/* LaTeX: a file on disk with what it inputs beside it, a gzip file of one, the tar archive of an
 * e-print, and archives of many e-prints (a gzip file each). */
#include <inttypes.h>
#include <stdlib.h>

#include "curate/extract/extract_latex.h"
#include "curate/archive/tar.h"

/* ---- telling ---- */

static bool looks_like_tex(struct span s)
{
    static const char *const signs[] = {"\\documentclass", "\\documentstyle", "\\begin{document}", "\\input amstex",
                                        "\\input harvmac", "\\magnification", "\\section{", "\\input epsf"};

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
    static const char *const archives[] = {".tar", ".tgz", NULL};

    if (extract_named(in->path, endings) || extract_named(in->path, archives) || tar_begins(in->start))
        return EXTRACT_SURE;
    return looks_like_tex(in->start) ? EXTRACT_LOOKS : EXTRACT_NO;
}

/* ---- reading ---- */

struct latex_reader {
    bool whole, done; /* one file, not an archive */
    struct tar *tar;
    struct buf bytes, names; /* of the files so far, each one's name with a NUL behind it */
    size_t *end;             /* of each in bytes */
    int n;
};

static ssize_t read_stream(void *arg, void *p, size_t n, struct err *e)
{
    return warc_read(arg, p, n, e);
}

static void close_reader(struct extract_input *in, void *reader)
{
    struct latex_reader *r = reader;

    (void)in;
    if (!r)
        return;
    tar_close(r->tar);
    buf_free(&r->bytes);
    buf_free(&r->names);
    free(r->end);
    free(r);
}

static int open_reader(struct extract_input *in, void **reader, struct err *e)
{
    struct latex_reader *r = calloc(1, sizeof *r);
    int rc;

    *reader = r;
    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    r->whole = !tar_begins(in->start);
    if (r->whole)
        return 0;
    rc = tar_open(&r->tar, in->path, read_stream, in->stream, e);
    r->bytes.max = (size_t)in->conf->max_page * LATEX_EPRINT_MAX;
    r->end = calloc(LATEX_MEMBERS_MAX, sizeof *r->end);
    if (rc == 0 && !r->end)
        rc = err_set(e, ERR_NOMEM, "out of memory for an archive");
    if (rc < 0)
        close_reader(in, r);
    return rc;
}

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

static int next_whole(struct extract_input *in, struct latex_reader *r, struct extract_item **item, struct err *e)
{
    struct latex_item *it;
    struct span all;
    int rc;

    if (r->done)
        return 0;
    r->done = true;
    rc = warc_read_whole(in->stream, (size_t)in->conf->max_page, &all, e);
    if (rc == ERR_LIMIT)
        return e->code = ERR_FORMAT;
    if (rc < 0)
        return rc;
    if (extract_named(in->path, (const char *const[]){".tar", ".tgz", NULL}) && all.n)
        return err_set(e, ERR_FORMAT, "'%s' is no tar archive", in->path);
    TRY(single(span_of(in->path), all, 0, &it, e));
    it->disk = strcmp(in->path, "-") != 0;
    *item = &it->item;
    return 1;
}

/* An e-print in an archive of them. */
static int packed_member(struct extract_input *in, const struct tar_member *m, struct span bytes,
                         struct extract_item **item, struct err *e)
{
    struct latex_item *it;
    struct buf id = {0};
    int rc = buf_printf(&id, "%s/%.*s", in->path, (int)m->name.n, m->name.p);

    rc = rc < 0 ? err_set(e, rc, "out of memory for a document") : single(buf_span(&id), bytes, m->offset, &it, e);
    buf_free(&id);
    if (rc < 0)
        return rc;
    it->packed = true;
    *item = &it->item;
    return 1;
}

/* What was found in the archive itself: the files of one e-print. */
static int all_members(struct extract_input *in, struct latex_reader *r, struct extract_item **item, struct err *e)
{
    struct span path = span_of(in->path);
    struct latex_item *it;
    size_t from = 0;
    const char *name;
    char *at;

    r->done = true;
    if (r->n == 0)
        return 0;
    it = new_item((size_t)r->n, path.n + r->names.n + r->bytes.n, e);
    if (!it)
        return ERR_NOMEM;
    at = (char *)(it->member + r->n);
    it->archived = true;
    it->item = (struct extract_item){.size = r->bytes.n, .id = extract_pack(&at, path)};
    name = extract_pack(&at, buf_span(&r->names)).p;
    for (int i = 0; i < r->n; i++) {
        it->member[i].name = span_of(name);
        name += it->member[i].name.n + 1;
        it->member[i].bytes = extract_pack(&at, (struct span){r->bytes.p + from, r->end[i] - from});
        from = r->end[i];
    }
    *item = &it->item;
    return 1;
}

/* Keeps the member that was just read, which begins at from, or takes it away again. */
static int keep(struct latex_reader *r, const struct tar_member *m, size_t from, struct err *e)
{
    const char *bytes = r->bytes.p + from;
    size_t n = r->bytes.n - from;

    if (r->n == LATEX_MEMBERS_MAX || n == 0 || memchr(bytes, '\0', n < 4096 ? n : 4096)) {
        r->bytes.n = from;
        return 0;
    }
    if (buf_put_span(&r->names, m->name) < 0 || buf_putc(&r->names, '\0') < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    r->end[r->n++] = r->bytes.n;
    return 0;
}

static int next_item(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct latex_reader *r = reader;
    struct tar_member m;
    int rc;

    if (r->whole)
        return next_whole(in, r, item, e);
    if (r->done)
        return 0;
    while ((rc = tar_next(r->tar, &m, e)) > 0) {
        size_t from = r->bytes.n;
        struct span gz = {".gz", 3};
        bool packed = m.name.n > 3 && memcmp(m.name.p + m.name.n - 3, gz.p, 3) == 0;
        if (!m.file || m.size == 0 || (!packed && !latex_may_be_input(m.name)))
            continue;
        if (m.size > (uint64_t)in->conf->max_page)
            return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": '%.*s' is larger than %" PRId64 " bytes", in->path,
                           m.offset, (int)m.name.n, m.name.p, in->conf->max_page);
        rc = tar_read(r->tar, &r->bytes, e);
        if (rc < 0) {
            r->bytes.n = from;
            return rc == ERR_LIMIT ? (e->code = ERR_FORMAT) : rc;
        }
        if (packed) {
            rc = packed_member(in, &m, (struct span){r->bytes.p + from, r->bytes.n - from}, item, e);
            r->bytes.n = from;
            return rc;
        }
        TRY(keep(r, &m, from, e));
    }
    return rc < 0 ? rc : all_members(in, r, item, e);
}

const struct extract_format extract_latex = {
    .stat = "latex_files",
    .probe = probe,
    .open = open_reader,
    .next = next_item,
    .close = close_reader,
    .maker_open = latex_maker_open,
    .maker_close = latex_maker_close,
    .make = latex_make,
};
