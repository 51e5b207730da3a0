/* quern mix: samples, blends, shuffles, splits and shards. */
#include <inttypes.h>

#include "base/log.h"
#include "base/tool.h"
#include "curate/mix/mix.h"

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "mix",
        .usage = "[options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "sample, blend, shuffle, split and shard collections of documents",
        .details =
            "Reads documents as JSON lines and writes their lines, unchanged, in an order that chance gives. The same "
            "seed and sources give the same bytes, whatever the threads and the memory.\n\n"
            "FILEs are one source. Several sources with weights (--source, --plan) are blended: each has its share of "
            "the --budget, and a source that is smaller than its share is repeated, whole epochs first. Without a "
            "budget there is as much as can be had without repeating. The result is never above the budget, and below "
            "it by less than a document a source.\n\n"
            "--split divides by id before that: the first split is blended, the others have each of their documents "
            "once. A shard or split appears under its name when it is whole.",
        .example = "seq 5 | sed 's/.*/{\"id\":\"&\",\"text\":\"t&\"}/' | quern mix --seed 1",
    };
    struct mix_conf c;
    struct mix_result r;
    const struct opt opts[] = {
        MIX_OPTS(c),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        TOOL_OPTS(t),
        OPT_END,
    };
    struct err e;
    int code, n;

    mix_conf_init(&c);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0)
        return code;
    c.inputs = argv + 1;
    c.n_inputs = n;
    c.jobs = tool_jobs(&t);
    c.files = tool_files();
    code = mix_run(&c, &r, &e) < 0 ? tool_fail(&t, &e) : -1;
    opt_lists_free(opts);
    if (code >= 0)
        return code;
    progress_end();
    log_msg(LOG_INFO, "%" PRIu64 " in, %" PRIu64 " out, %" PRIu64 " bad; %.1f MB in %.1f s, %.1f MB by way of the disk",
            r.docs_in, r.docs_out, r.bad, (double)r.bytes_in / 1e6, r.seconds, (double)r.spilled / 1e6);
    return tool_end(&t, r.bad ? EXIT_SOME_BAD : EXIT_FINE);
}
