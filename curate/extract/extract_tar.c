/* Tar archives.  A member is decompressed, told by its name and first bytes as a file is, and read by its format's
 * own reader: archives of pages, pages, dumps of wikis, archives again.  What is LaTeX or text makes one document
 * together, an e-print, if there is LaTeX in it; else, and of everything else, each member is a bad record that says
 * what it is.  In an e-print what is not read are its figures: they are counted. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/file_kind.h"
#include "curate/archive/tar.h"
#include "curate/extract/extract_latex.h"

enum {
    DEEPEST = 3,          /* archives within archives */
    UNREAD_MOST = 1 << 20 /* bytes of what is said of members, held until it is known whether this is an e-print */
};

struct tar_reader {
    struct tar *tar;
    /* the member that is open */
    struct extract_input member;
    struct file_in *in;
    const struct extract_format *format; /* NULL: none is */
    void *reader;
    struct buf path;
    /* what waits for the end */
    struct latex_eprint *eprint;
    struct buf unread; /* messages with a NUL behind each, */
    size_t told;       /* of which so many bytes were given */
    bool ended, tell;  /* tell: they are given as they are */
};

static enum extract_match probe(const struct extract_input *in)
{
    static const char *const endings[] = {".tar", ".tgz", ".txz", ".tbz2", NULL};

    return tar_begins(in->start) || extract_named(in->path, endings) ? EXTRACT_SURE : EXTRACT_NO;
}

static ssize_t read_stream(void *stream, void *p, size_t n, struct err *e)
{
    return warc_read(stream, p, n, e);
}

static ssize_t read_member(void *tar, void *p, size_t n, struct err *e)
{
    return tar_read(tar, p, n, e);
}

static void close_member(struct tar_reader *r)
{
    if (r->format)
        r->format->close(&r->member, r->reader);
    warc_close(r->member.stream);
    file_close(r->in);
    r->member.stream = NULL;
    r->format = NULL;
    r->reader = NULL;
    r->in = NULL;
}

static void close_tar(struct extract_input *in, void *reader)
{
    struct tar_reader *r = reader;

    (void)in;
    if (!r)
        return;
    close_member(r);
    tar_close(r->tar);
    latex_eprint_free(r->eprint);
    buf_free(&r->path);
    buf_free(&r->unread);
    free(r);
}

static int open_tar(struct extract_input *in, void **reader, struct err *e)
{
    struct tar_reader *r = *reader = calloc(1, sizeof *r);
    int rc;

    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    rc = latex_eprint_new(&r->eprint, in->conf, e);
    if (rc == 0)
        rc = tar_open(&r->tar, in->path, read_stream, in->stream, e);
    if (rc < 0)
        close_tar(in, r);
    return rc;
}

/* ---- members that are not read ---- */

/* Notes what e says of a member. */
static int put_unread(struct tar_reader *r, struct err *e)
{
    struct err why = *e;

    if (buf_put(&r->unread, why.msg, strlen(why.msg) + 1) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    r->tell |= r->unread.n >= UNREAD_MOST && !latex_eprint_has_tex(r->eprint);
    return 0;
}

/* The next of them, as a bad record; 0: none is left. */
static int next_unread(struct tar_reader *r, struct err *e)
{
    const char *what;

    if (r->told == r->unread.n) {
        r->tell = false;
        buf_clear(&r->unread);
        r->told = 0;
        return 0;
    }
    what = r->unread.p + r->told;
    r->told += strlen(what) + 1;
    return err_set(e, ERR_FORMAT, "%s", what);
}

static uint64_t count_unread(const struct tar_reader *r)
{
    uint64_t n = 0;

    for (size_t i = r->told; i < r->unread.n; i++)
        n += r->unread.p[i] == '\0';
    return n;
}

/* ---- members ---- */

/* "/a/b" is "a/b", as tar has it; a name with ".." in it has no place below a folder. */
static int member_path(const struct extract_input *in, struct tar_reader *r, struct span name, uint64_t at, struct err *e)
{
    while (name.n && name.p[0] == '/')
        name.p++, name.n--;
    for (size_t i = 0; i + 1 < name.n; i++)
        if (name.p[i] == '.' && name.p[i + 1] == '.' && (i == 0 || name.p[i - 1] == '/') &&
            (i + 2 == name.n || name.p[i + 2] == '/'))
            return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": the name '%.*s' leads out of the archive", in->path, at,
                           (int)(name.n < 200 ? name.n : 200), name.p);
    buf_clear(&r->path);
    return buf_printf(&r->path, "%s/%.*s", in->path, (int)name.n, name.p) < 0
               ? err_set(e, ERR_NOMEM, "out of memory for an archive") : 0;
}

/* Adds the open member to the e-print. */
static int add_part(struct tar_reader *r, bool tex, struct err *e)
{
    const struct extract_input *in = &r->member;
    struct span name = span_of(in->path + in->outer), all;
    int rc = warc_read_whole(in->stream, (size_t)in->conf->max_page, &all, e);

    if (rc == 0)
        rc = latex_eprint_add(r->eprint, name, all, tex, e);
    return rc == ERR_LIMIT ? (e->code = ERR_FORMAT) : rc;
}

/* TeX without a sign is told by its commands, in a file without an ending or compressed by itself. */
static bool is_source(const struct extract_input *in, bool packed)
{
    const char *slash = strrchr(in->path, '/');

    return (packed || !strchr(slash ? slash : in->path, '.')) && latex_is_source(in->start);
}

/* What is to be done with the open member: 0: it is done with, or its reader is open.  ERR_FORMAT: a bad record. */
static int take_member(struct tar_reader *r, struct err *e)
{
    struct extract_input *in = &r->member;
    const struct extract_format *format;
    bool packed = file_codec(r->in) != FILE_PLAIN;
    struct span all, name = span_of(in->path);

    TRY(extract_recognise(in, &format, e));
    if (in->start.n == 0) /* empty, or damaged */
        return warc_read_whole(in->stream, (size_t)in->conf->max_page, &all, e);
    if (!packed && name.n > 3 && strcmp(in->path + name.n - 3, ".gz") == 0)
        return err_set(e, ERR_FORMAT, "'%s' is no gzip file", in->path);
    if (!format && is_source(in, packed))
        format = &extract_latex;
    if (format == &extract_latex && !packed)
        return add_part(r, true, e);
    if (!format && !packed && latex_may_be_input(name) && !extract_is_other(in->start))
        return add_part(r, false, e);
    if (!format || (format == &extract_tar && in->depth == DEEPEST)) {
        extract_refuse(in, e);
        return put_unread(r, e);
    }
    TRY(format->open(in, &r->reader, e));
    extract_count_file(in->counts, format);
    r->format = format;
    return 0;
}

static int begin_member(const struct extract_input *in, struct tar_reader *r, const struct tar_member *m, struct err *e)
{
    int rc;

    if (!m->file || m->size == 0)
        return 0;
    TRY(member_path(in, r, m->name, m->offset, e));
    r->member = *in;
    r->member.stream = NULL;
    r->member.path = r->path.p;
    r->member.outer = strlen(in->path) + 1;
    r->member.named = true;
    r->member.depth = in->depth + 1;
    rc = file_open_stream(&r->in, r->path.p, m->size, read_member, r->tar, e);
    if (rc == 0)
        rc = warc_open(&r->member.stream, r->in, (size_t)in->conf->max_page + EXTRACT_HEAD_ROOM, e);
    if (rc == 0)
        rc = take_member(r, e);
    if (!r->format)
        close_member(r);
    return rc;
}

/* ---- items ---- */

/* After the last member: the e-print, or what is to be said of members that are none. */
static int finish(struct extract_input *in, struct tar_reader *r, struct extract_item **item, struct err *e)
{
    int rc;

    if (latex_eprint_has_tex(r->eprint)) {
        extract_count(&in->counts->unread, count_unread(r));
        r->told = r->unread.n;
        rc = latex_eprint_item(r->eprint, in, item, e);
        if (rc == 1)
            extract_count_file(in->counts, &extract_latex);
        return rc;
    }
    rc = next_unread(r, e);
    return rc ? rc : latex_eprint_refuse(r->eprint, in->path, e);
}

static int next_item(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct tar_reader *r = reader;
    struct tar_member m;

    if (in->start.n && !tar_begins(in->start)) {
        bool said = r->ended;
        r->ended = true;
        return said ? 0 : err_set(e, ERR_FORMAT, "'%s' is no tar archive", in->path);
    }
    for (;;) {
        int rc;

        if (r->format) {
            rc = r->format->next(&r->member, r->reader, item, e);
            if (rc == 1)
                return extract_item_within(*item, r->format, r->path.p, e);
            if (rc < 0)
                return rc;
            close_member(r);
        }
        if (r->tell && (rc = next_unread(r, e)) < 0)
            return rc;
        if (r->ended)
            return finish(in, r, item, e);
        rc = tar_next(r->tar, &m, e);
        r->ended = rc == 0;
        if (rc > 0)
            rc = begin_member(in, r, &m, e);
        if (rc < 0)
            return rc;
    }
}

const struct extract_format extract_tar = {
    .stat = "tar_files",
    .probe = probe,
    .open = open_tar,
    .next = next_item,
    .close = close_tar,
};
