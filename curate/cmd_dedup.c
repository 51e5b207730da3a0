/* quern dedup exact|fuzzy */
#include <string.h>

#include "curate/dedup_exact.h"
#include "curate/dedup_fuzzy.h"
#include "curate/driver.h"

static struct tool tool = {
    .name = "dedup",
    .usage = "exact|fuzzy [options] [FILE...]",
    .about = "drop documents that are in the collection already",
    .details =
        "Reads documents, a JSON line each, and writes those that stay, in order; of\n"
        "duplicates the first stays.\n\n"
        "exact: the text is the same, byte for byte (XXH3-128).\n\n"
        "fuzzy: the sets of shingles (some consecutive words) have at least the Jaccard\n"
        "similarity --threshold.  MinHash signatures find candidates; every candidate pair\n"
        "is then compared by its shingles, and a document is dropped only if it is itself\n"
        "close to the document that stays for it.  With --no-verify whatever shares a band\n"
        "is a duplicate, and so is what is linked by others, as in the systems that the\n"
        "presets are named after.\n\n"
        "Presets: quern, 5 words, bands and rows by the threshold; datatrove, 5 words of\n"
        "simplified text, 14 bands of 8 rows; nemo, 24 characters, 20 bands of 13 rows.",
    .example = "printf '{\"id\":\"a\",\"text\":\"x\"}\\n{\"id\":\"b\",\"text\":\"x\"}\\n' | "
               "quern dedup exact --rejects -",
};

struct settings {
    struct driver_conf driver;
    struct dedup_fuzzy_conf fuzzy;
    bool no_mode; /* neither exact nor fuzzy was said: help and man page only */
};

static int run_exact(struct settings *s, int argc, char **argv)
{
    const struct opt opts[] = {
        OPT_HEAD("Documents"),
        DRIVER_OPTS(s->driver),
        TOOL_JOBS(tool),
        TOOL_OPTS(tool),
        OPT_END,
    };
    struct stage stage;
    struct err e;
    int code, n = tool_begin(&tool, opts, argc, argv, &code);

    if (n < 0)
        return code;
    if (dedup_exact_stage_open(&stage, &e) < 0)
        return tool_fail(&tool, &e);
    s->driver.stages = &stage;
    s->driver.n_stages = 1;
    code = driver_main(&tool, &s->driver, n, argv);
    stage.ops->close(stage.state);
    return code;
}

static int run_fuzzy(struct settings *s, int argc, char **argv)
{
    const struct opt opts[] = {
        OPT_HEAD("Near-duplicates"),
        DEDUP_FUZZY_OPTS(s->fuzzy),
        OPT_HEAD("Documents"),
        DRIVER_OPTS(s->driver),
        TOOL_JOBS(tool),
        TOOL_OPTS(tool),
        OPT_END,
    };
    struct stage stage;
    struct err e;
    int code, n = tool_begin(&tool, opts, argc, argv, &code);

    if (n < 0)
        return code;
    if (s->no_mode)
        return tool_usage(&tool, "say which kind first: 'exact' or 'fuzzy'");
    if (dedup_fuzzy_stage_open(&stage, &s->fuzzy, &e) < 0)
        return tool_fail(&tool, &e);
    s->driver.stages = &stage;
    s->driver.n_stages = 1;
    code = driver_main(&tool, &s->driver, n, argv);
    stage.ops->close(stage.state);
    return code;
}

int main(int argc, char **argv)
{
    struct settings s = {0};
    bool exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    bool fuzzy = argc > 1 && strcmp(argv[1], "fuzzy") == 0;

    dedup_fuzzy_conf_init(&s.fuzzy);
    if (exact || fuzzy) {
        argv[1] = argv[0];
        return exact ? run_exact(&s, argc - 1, argv + 1) : run_fuzzy(&s, argc - 1, argv + 1);
    }
    s.no_mode = true;
    return run_fuzzy(&s, argc, argv);
}
