/* quern report: a page about what was kept and dropped. */
#include "base/file.h"
#include "base/http.h"
#include "base/tool.h"
#include "curate/stream/file_list.h"
#include "curate/report/curves.h"
#include "curate/report/report.h"

struct args {
    struct opt_list stats, rejects, input, docs, other, curves;
    const char *output;
};

static int write_page(const struct report *r, const struct report_conf *conf, const char *output, struct err *e)
{
    struct buf b = {0};
    int rc = report_put(r, conf, &b);

    if (rc < 0)
        err_set(e, rc, "out of memory for the page");
    else
        rc = file_write_all(output, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* 1 if lines were bad. */
static int make(const struct args *a, struct report_conf *conf, struct err *e)
{
    const struct opt_list *const from[] = {&a->stats, &a->rejects, &a->input, &a->docs, &a->other};
    enum { LISTS = sizeof from / sizeof *from };
    struct file_list files[LISTS] = {{0}};
    struct report r = {0};
    int rc = 0, bad;

    for (int i = 0; i < LISTS && rc == 0; i++)
        rc = file_list_add(&files[i], from[i], e);
    conf->stats = files[0].v;
    conf->n_stats = files[0].n;
    conf->rejects = files[1].v;
    conf->n_rejects = files[1].n;
    conf->input = files[2].v;
    conf->n_input = files[2].n;
    conf->docs = files[3].v;
    conf->n_docs = files[3].n;
    conf->other = files[4].v;
    conf->n_other = files[4].n;
    if (rc == 0)
        rc = report_read(&r, conf, e);
    if (rc == 0)
        rc = write_page(&r, conf, a->output, e);
    bad = r.bad_lines > 0;
    report_free(&r);
    for (int i = 0; i < LISTS; i++)
        file_list_free(&files[i]);
    return rc < 0 ? rc : bad;
}

/* The page of training's curves.  1 if lines were bad. */
static int make_curves(const struct args *a, const char *title, struct err *e)
{
    struct file_list files = {0};
    struct buf b = {0};
    uint64_t bad = 0;
    int rc = file_list_add(&files, &a->curves, e);

    if (rc == 0)
        rc = curves_put(&b, files.v, files.n, title, &bad, e);
    if (rc == 0)
        rc = file_write_all(a->output, buf_span(&b), e);
    buf_free(&b);
    file_list_free(&files);
    return rc < 0 ? rc : bad > 0;
}

static int run(const struct tool *t, const struct args *a, struct report_conf *conf)
{
    struct err e;
    int rc;

    if (!a->stats.n && !a->rejects.n && !a->curves.n)
        return tool_usage(t, "about what? --stats or --rejects, or --curves");
    if (a->curves.n && a->stats.n + a->rejects.n + a->input.n + a->docs.n + a->other.n)
        return tool_usage(t, "--curves make a page of their own");
    conf->jobs = tool_jobs(t);
    if (!conf->title)
        conf->title = a->curves.n ? "How training went" : REPORT_TITLE;
    rc = a->curves.n ? make_curves(a, conf->title, &e) : make(a, conf, &e);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, rc ? EXIT_SOME_BAD : EXIT_FINE);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "report",
        .usage = "--stats FILE... --rejects FILE... [--input FILE...] [--docs FILE...] | --curves FILE... -o report.html",
        .about = "a page about what was kept and dropped, or how training went",
        .details =
            "Makes one HTML page, without scripts and without anything from elsewhere, from what stages write with "
            "--stats and --rejects: documents and text through the stages, drops by rule, the dropped values against "
            "their thresholds, examples. --input are the documents that went in, --docs those that were kept: with "
            "them lengths, languages and hosts before and after, and the beginning of the examples' texts, "
            "and the distribution of every signal that filter --annotate has set. --other-stats puts another run beside this "
            "one. Give --stats in the order of the stages. A FILE may be a pattern in quotes. With --curves the page has the "
            "curves of training instead: loss, gradient, rates, where the time went; up to six runs beside each other.",
        .example = "echo '{\"id\":\"a\",\"text\":\"Too short.\"}' >docs.jsonl\n"
                   "quern filter --preset gopher-quality --rejects rejects.jsonl --stats stats.json docs.jsonl\n"
                   "quern report --stats stats.json --rejects rejects.jsonl --input docs.jsonl -o report.html",
    };
    struct report_conf conf = {.examples = REPORT_EXAMPLES};
    struct args a = {0};
    const struct opt opts[] = {
        OPT_IN_LIST('s', "stats", &a.stats, "FILE", "statistics of a stage or a plan; give it for each"),
        OPT_IN_LIST('r', "rejects", &a.rejects, "FILE", "account of dropped documents; give it for each"),
        OPT_IN_LIST('i', "input", &a.input, "FILE", "documents that went in; give it for each"),
        OPT_IN_LIST('d', "docs", &a.docs, "FILE", "documents that were kept; give it for each"),
        OPT_IN_LIST(0, "other-stats", &a.other, "FILE", "statistics of another run, to stand beside this one; give it for each"),
        OPT_IN_LIST(0, "curves", &a.curves, "FILE", "log of quern train --log-file; give it for each run"),
        OPT_INT(0, "examples", &conf.examples, 0, 1000, "examples for each rule"),
        OPT_STR(0, "title", &conf.title, "TEXT", "heading of the page"),
        OPT_OUT('o', "output", &a.output, "FILE", "write the page here"),
        TOOL_OPTS(t),
        TOOL_JOBS(t),
        OPT_END,
    };
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n > 0)
        code = tool_usage(&t, "'%.*s' is no option: name files with --stats, --rejects, --input or --docs",
                          http_name_length(argv[1]), argv[1]);
    else if (n == 0)
        code = run(&t, &a, &conf);
    opt_lists_free(opts);
    return code;
}
