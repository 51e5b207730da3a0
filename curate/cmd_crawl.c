/* quern crawl: records of crawls, chosen by their indexes. */
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/tool.h"
#include "curate/crawl/crawl_select.h"
#include "curate/crawl/record_fetch.h"

struct args {
    struct opt_list index;
    const char *where, *prefix, *output, *stats;
    int kind;
    int64_t max_rate;
    double max_requests;
};

static int put(void *out, struct span lines, struct err *e)
{
    return file_write(out, lines.p, lines.n, e);
}

static void tell_bad(void *out, const struct err *why)
{
    (void)out;
    log_skipped(NULL, 0, why->msg);
}

static void show(void *out, const struct crawl_counts *n, const char *index)
{
    struct progress p = {
        .input = index,
        .done = (double)n->index.bytes,
        .count = {{"entries", (double)n->entries}, {"selected", (double)n->records}, {"bad", (double)n->bad}},
    };

    (void)out;
    if (progress_due())
        progress_show(&p);
}

static int write_stats(const char *path, const struct crawl_counts *n, struct err *e)
{
    struct buf b = {0};
    int rc;

    buf_puts(&b, "{\"stage\":\"crawl\"");
    json_put_count(&b, "indexes", n->index.files);
    json_put_count(&b, "entries", n->entries);
    json_put_count(&b, "bad", n->bad);
    json_put_count(&b, "records", n->records);
    json_put_count(&b, "record_bytes", n->record_bytes);
    json_put_count(&b, "index_members", n->members);
    json_put_count(&b, "index_groups", n->index.groups - n->index.passed_groups);
    json_put_count(&b, "skipped_groups", n->index.passed_groups);
    json_put_count(&b, "skipped_bytes", n->index.passed_bytes);
    json_put_count(&b, "index_bytes", n->index.bytes);
    json_put_count(&b, "index_requests", n->index.requests);
    rc = buf_puts(&b, "}\n") < 0 ? err_set(e, ERR_NOMEM, "out of memory for the statistics")
                                  : file_write_all(path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

static int choose(const struct tool *t, const struct args *a, const struct where *w, struct crawl_counts *n, struct err *e)
{
    struct range_in_pace pace;
    struct crawl_index_conf c = {.prefix = a->prefix, .kind = a->kind, .pace = &pace, .where = w};
    struct crawl_sink sink = {put, tell_bad, show, NULL};
    struct file_out *out = NULL;
    struct crawl_index *x;
    int rc;

    range_in_pace_start(&pace, (double)a->max_rate, a->max_requests);
    TRY(crawl_index_open(&x, &c, a->index.v, a->index.n, e));
    rc = file_create(&out, a->output ? a->output : "-", 0, e);
    sink.arg = out;
    if (rc == 0)
        rc = crawl_select(x, &c, tool_jobs(t), &sink, n, e);
    progress_end();
    if (rc == 0 && a->stats)
        rc = write_stats(a->stats, n, e);
    crawl_index_close(x);
    if (rc < 0) {
        file_abort(out);
        return rc;
    }
    return file_commit(out, e);
}

static int run(const struct tool *t, const struct args *a, int argc, char **argv)
{
    struct crawl_counts n = {.bad = 0};
    struct where *w = NULL;
    struct err e;
    int rc;

    if (argc < 1 || strcmp(argv[1], "select") != 0)
        return argc < 1 ? tool_usage(t, "what to do? select") : tool_usage(t, "'%s' is nothing that it does: select", argv[1]);
    if (argc > 1)
        return tool_usage(t, "'%s' is too much: indexes are named by --index", argv[2]);
    if (!a->index.n)
        return tool_usage(t, "which index? --index");
    if (a->where && where_read(&w, a->where, crawl_fields, &e) < 0) {
        e.code = e.code == ERR_FORMAT ? ERR_ARG : e.code;
        err_wrap(&e, "--where");
        return tool_fail(t, &e);
    }
    rc = choose(t, a, w, &n, &e);
    where_free(w);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, n.bad ? EXIT_SOME_BAD : EXIT_FINE);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "crawl",
        .usage = "select --index INDEX [--where CONDITION] [-o LIST]",
        .action = true,
        .about = "choose records of crawls by their indexes",
        .details =
            "Reads an index of a crawl and writes a list of the records that meet a condition, a JSON line\n"
            "each: url, file, offset, length, digest, date, status, mime, lang and so on.  quern extract reads\n"
            "such a list, and of the archives only the bytes that it names.\n"
            "\n"
            "INDEX is a file, a pattern in quotes, an address, a folder, or the name of one of Common Crawl's\n"
            "crawls, as CC-MAIN-2024-10.  It is CDXJ, ZipNum (cluster.idx), of which only the parts are read\n"
            "that can hold what is asked for, or the columnar index in Parquet, of which only the columns are\n"
            "read that are fields, of the row groups that can hold what is asked for by their statistics.\n"
            "\n"
            "CONDITION is made of tests FIELD OP VALUE, joined by not, and, or, and parentheses; OP is =, !=,\n"
            "<, <=, >, >=, in (...), or ~ for a regular expression.  Fields: url host domain tld key date status\n"
            "mime mime_type lang langs charset length offset file digest truncated redirect dump.",
        .example = "printf '%s' 'de,example)/ 20240225120000 {\"url\":\"https://example.de/\",\"status\":\"200\",' \\\n"
                   "    '\"languages\":\"deu\",\"length\":\"1203\",\"offset\":\"512\",\"filename\":\"a.warc.gz\"}' >index.cdxj\n"
                   "quern crawl select --index index.cdxj --where 'lang = deu and domain = example.de' -o list.jsonl",
    };
    struct args a = {.where = NULL};
    const struct opt opts[] = {
        OPT_HEAD("Index"),
        OPT_IN_LIST('i', "index", &a.index, "INDEX", "file, pattern, address, folder, or name of a crawl; give it for each"),
        OPT_ENUM(0, "kind", &a.kind, "auto|cdx|columns",
                 "of a crawl by its name the ZipNum index or the columns; auto: ZipNum where the condition bounds hosts or URLs"),
        OPT_STR(0, "crawl-prefix", &a.prefix, "PREFIX", "folder or address where the indexes of a crawl by its name are; "
                "without it " CRAWL_DATA),
        RANGE_IN_OPTS(a),
        OPT_HEAD("Selection"),
        OPT_STR('w', "where", &a.where, "CONDITION", "what records have to meet; without it all are taken"),
        OPT_HEAD("Output"),
        OPT_FILE('o', "output", &a.output, "LIST", "write the list here, as .gz or .zst by the name", OPT_NAMES_DOCUMENTS),
        OPT_OUT(0, "stats", &a.stats, "FILE", "write counts as JSON"),
        TOOL_JOBS(t),
        TOOL_OPTS(t),
        TOOL_PROGRESS(t),
        OPT_END,
    };
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n >= 0)
        code = run(&t, &a, n, argv);
    opt_lists_free(opts);
    return code;
}
