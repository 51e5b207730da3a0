/* quern extract: archives, HTML files and LaTeX to documents. */
#include <stdlib.h>

#include "base/file.h"
#include "curate/stream/driver.h"
#include "curate/extract/extract.h"

static int run(const struct tool *t, const struct extract_conf *x, struct driver_conf *c, int n, char **argv)
{
    static struct source source;
    struct err e;
    int code;

    if (extract_open(&source, x, argv + 1, n, &e) < 0)
        return tool_fail(t, &e);
    c->source = &source;
    code = driver_main(t, c, n, argv);
    extract_close(&source);
    return code;
}

static int put_line(void *arg, struct buf *out, struct err *e)
{
    TRY(file_write(arg, out->p, out->n, e));
    buf_clear(out);
    return 0;
}

/* --list: what is in the archives, record by record. */
static int list(const struct tool *t, const struct extract_conf *x, const char *output, int n, char **argv)
{
    struct buf line = {0};
    struct file_out *out;
    struct err e;
    int rc, n_bad = 0;

    rc = file_create(&out, output ? output : "-", 0, &e);
    if (rc < 0)
        return tool_fail(t, &e);
    for (int i = 0; i < (n ? n : 1) && rc >= 0; i++) {
        rc = extract_list(n ? argv[i + 1] : "-", x, &line, put_line, out, &e);
        n_bad += rc > 0;
    }
    buf_free(&line);
    if (rc < 0)
        file_abort(out);
    else
        rc = file_commit(out, &e);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, n_bad ? EXIT_SOME_BAD : EXIT_FINE);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "extract",
        .usage = "[options] [PATH...]",
        .operands = OPT_NAMES_TREE,
        .about = "turn web archives, HTML, LaTeX, wikis' exports and XML into documents",
        .details =
            "Reads WARC, WET and ARC files, HTML files, LaTeX and MediaWiki's XML exports (such as\n"
            "Wikipedia's dumps), all plain or packed by gzip, zstd, bzip2, xz or lz4 and told\n"
            "by their contents, and folders of them.  Writes a JSON line for each page: id, url, title, date,\n"
            "lang, text, and author, canonical and crawled where they are known.\n"
            "\n"
            "Of an archive the successful responses of HTML and plain text become documents; other\n"
            "records are passed over and counted in --stats.  A damaged record is reported with\n"
            "file, offset and reason, and reading goes on behind it.  Pages without text are dropped\n"
            "and stand in --rejects.\n"
            "\n"
            "LaTeX is a .tex file (what it inputs is looked for beside it), a compressed one, a tar\n"
            "archive of an e-print, or an archive of compressed e-prints, such as arXiv gives out.  Other\n"
            "members of a tar archive are read as files are.\n"
            "\n"
            "Of a wiki's export the articles become documents; redirects and pages of other\n"
            "namespaces are dropped, and stand in --rejects.\n"
            "\n"
            "XML is told by its root: JATS articles (PubMed Central), TEI, DocBook, RSS and Atom, patents\n"
            "of the USPTO, law (Akoma Ntoso, USLM, Formex), and Posts.xml of Stack Exchange, whose\n"
            "questions become documents with their answers, sorted on disk in $TMPDIR.  EPUB, DOCX and ODT are\n"
            "zip archives of XML.",
        .example = "printf '<title>A page</title><p>Some text.' >page.html\nquern extract page.html",
    };
    struct extract_conf x;
    struct driver_conf c = {0};
    bool listing = false;
    const struct opt opts[] = {
        EXTRACT_OPTS(x),
        OPT_FLAG(0, "list", &listing, "extract nothing; write a JSON line for each record of the archives"),
        OPT_HEAD("Output"),
        DRIVER_OUT_OPTS(c),
        TOOL_OPTS(t),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        OPT_END,
    };
    int code, n;

    extract_conf_init(&x);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0)
        return code;
    if (listing)
        return list(&t, &x, c.output, n, argv);
    return run(&t, &x, &c, n, argv);
}
