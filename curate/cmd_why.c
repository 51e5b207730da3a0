/* quern why: says why documents were dropped. */
#include <stdlib.h>

#include "base/file.h"
#include "base/tool.h"
#include "base/utf8.h"
#include "curate/stream/file_list.h"
#include "curate/report/why.h"

struct args {
    struct opt_list rejects, docs;
    bool json, follow;
};

/* The lines of standard input. */
static int ask_lines(struct why *w, struct err *e)
{
    struct buf b = {0};
    int rc = file_read_all("-", (size_t)1 << 30, &b, e);
    struct span all = utf8_without_mark(buf_span(&b));
    const char *p = all.p, *end = all.p + all.n;

    while (rc == 0 && p < end) {
        const char *q = memchr(p, '\n', (size_t)(end - p));
        struct span line = {p, (size_t)((q ? q : end) - p)};

        p = q ? q + 1 : end;
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        if (line.n)
            rc = why_ask(w, line, e);
    }
    buf_free(&b);
    return rc;
}

/* 1 if an id was not found. */
static int print(const struct why *w, bool json, struct err *e)
{
    struct buf b = {0};
    int missing = 0;

    for (size_t i = 0; i < w->asked; i++) {
        buf_clear(&b);
        if ((json ? why_put_json : why_put_text)(w, i, &b) < 0) {
            buf_free(&b);
            return err_set(e, ERR_NOMEM, "out of memory for an answer");
        }
        fwrite(b.p, 1, b.n, stdout);
        missing |= !w->of[i]->first;
    }
    buf_free(&b);
    return missing;
}

static int search(struct why *w, const struct args *a, int n, char **id, struct err *e)
{
    struct file_list rejects = {0}, docs = {0};
    int rc = file_list_add(&rejects, &a->rejects, e);

    if (rc == 0)
        rc = file_list_add(&docs, &a->docs, e);
    for (int i = 0; i < n && rc == 0; i++)
        rc = strcmp(id[i], "-") == 0 ? ask_lines(w, e) : why_ask(w, span_of(id[i]), e);
    if (rc == 0)
        rc = why_search(w, &(struct why_conf){rejects.v, docs.v, rejects.n, docs.n, a->follow}, e);
    if (rc == 0)
        rc = print(w, a->json, e);
    file_list_free(&rejects);
    file_list_free(&docs);
    return rc < 0 ? rc : rc || w->bad;
}

static int run(const struct tool *t, const struct args *a, int n, char **id)
{
    struct why w = {0};
    struct err e;
    int rc;

    if (n == 0)
        return tool_usage(t, "which document? give its id");
    if (!a->rejects.n && !a->docs.n)
        return tool_usage(t, "where to look? --rejects or --docs");
    rc = search(&w, a, n, id, &e);
    why_free(&w);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, rc ? EXIT_SOME_BAD : EXIT_FINE);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "why",
        .usage = "ID... --rejects FILE [--rejects FILE...] [--docs FILE...]",
        .about = "say why documents were dropped",
        .details =
            "Looks for documents by their ids in the accounts that stages write with --rejects, and says for each "
            "line the stage, the rule, the value against the threshold and what is measured; for a duplicate the "
            "document that stays in place of it, and what became of that. A document in --docs was kept: its "
            "place is told. ID - reads ids from standard input, one a line. A FILE may be a pattern in quotes.\n\n"
            "Exit status: 0 all were found; 1 some were not, or lines were bad; 2 the command line makes no sense; "
            "3 it could not be done.",
        .example = "echo '{\"id\":\"a\",\"text\":\"Too short.\"}' |\n"
                   "    quern filter --preset gopher-quality --rejects rejects.jsonl\n"
                   "quern why a --rejects rejects.jsonl",
    };
    struct args a = {.follow = true};
    const struct opt opts[] = {
        OPT_IN_LIST('r', "rejects", &a.rejects, "FILE", "account of dropped documents; give it for each"),
        OPT_IN_LIST('d', "docs", &a.docs, "FILE", "documents that were kept; give it for each"),
        OPT_FLAG(0, "follow", &a.follow, "look for survivors too; may read the accounts more than once"),
        OPT_FLAG(0, "json", &a.json, "print a line of JSON for each id"),
        TOOL_OPTS(t),
        OPT_END,
    };
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n >= 0)
        code = run(&t, &a, n, argv + 1);
    opt_lists_free(opts);
    return code;
}
