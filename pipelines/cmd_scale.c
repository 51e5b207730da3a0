/* quern scale fit: what small models say of large ones. */
#include <string.h>

#include "base/tool.h"
#include "base/file.h"
#include "pipelines/fit/fit_scale_put.h"

static int tell(const struct scale_report_conf *c, const struct scale_report_text *t, struct err *e)
{
    if (c->stats)
        TRY(file_write_all(c->stats, buf_span(&t->json), e));
    return file_write_all(NULL, buf_span(&t->table), e);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "scale",
        .usage = "fit [options] POINTS...",
        .operands = OPT_NAMES_INPUT,
        .action = true,
        .about = "the loss of a large model, and the best size for a budget, by small ones",
        .details =
            "fit: POINTS are JSON lines with parameters of a model, the tokens it was trained on, and its loss: "
            "{\"params\": 1.2e8, \"tokens\": 2.4e9, \"loss\": 3.31}. L = E + A / N^alpha + B / D^beta is fitted to them as "
            "Hoffmann et al. do (arXiv:2203.15556, approach 3): Huber's loss of log L, L-BFGS from a grid of starts; to "
            "points that all have the same tokens L = E + A / N^alpha. Intervals are a bootstrap's over points; how far the law "
            "reaches is seen by the largest models, predicted from the others.\n\n"
            "docs/scaling.md says more.",
        .example = "for n in 1e6 3e6 1e7; do for d in 2e7 6e7 2e8; do\n"
                   "  awk -v n=$n -v d=$d 'BEGIN { printf \"{\\\"params\\\": %s, \\\"tokens\\\": %s, \\\"loss\\\": %s}\\n\", "
                   "n, d, 1.8 + 480 / n^.35 + 2100 / d^.37 }'\n"
                   "done; done >sizes.jsonl\n"
                   "quern scale fit --flops 1e18 --params 1e8 --tokens 2e9 sizes.jsonl",
    };
    struct scale_report_conf c = SCALE_REPORT_CONF;
    struct scale_report_text text = {0};
    const struct opt opts[] = {SCALE_REPORT_OPTS(c), TOOL_OPTS(t), TOOL_JOBS(t), OPT_END};
    struct err e;
    int code, n = tool_begin(&t, opts, argc, argv, &code), rc;

    if (n < 0)
        return code;
    if (n == 0 || strcmp(argv[1], "fit") != 0)
        code = tool_usage(&t, "what to do? fit");
    else if (n == 1)
        code = tool_usage(&t, "which points?");
    else {
        c.threads = tool_jobs(&t);
        rc = scale_report(&c, (const char *const *)argv + 2, n - 1, &text, &e);
        if (rc == 0)
            rc = tell(&c, &text, &e);
        code = rc < 0 ? tool_fail(&t, &e) : tool_end(&t, EXIT_FINE);
    }
    opt_lists_free(opts);
    buf_free(&text.table);
    buf_free(&text.json);
    return code;
}
