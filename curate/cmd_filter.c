/* quern filter: drops documents of low quality by rules. */
#include "curate/stream/driver.h"
#include "curate/filter/filter.h"

static int run(const struct tool *t, struct driver_conf *c, const struct filter_conf *f, int n, char **argv)
{
    static struct stage stage;
    struct err e;

    if (!f->presets)
        return tool_usage(t, "which --preset? --list-rules shows them");
    return driver_one(t, c, &stage, filter_stage_open(&stage, f, &e), &e, n, argv);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "filter",
        .usage = "--preset NAME[,NAME...] [options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "drop documents of low quality by rules",
        .details =
            "Reads documents as JSON lines and keeps those that pass every rule of the presets, "
            "which run in the order given. c4 also removes lines from the text.\n\n"
            "A configuration file is YAML: a map of presets, each a map of rules with a new "
            "threshold, `off`, or {threshold: X, action: drop|annotate|strip}. --list-rules shows "
            "all rules and their thresholds.",
        .example = "echo '{\"id\":\"a\",\"text\":\"Too short.\"}' | quern filter --preset gopher-quality --annotate",
    };
    struct filter_conf f;
    struct driver_conf c = {0};
    bool list = false;
    const struct opt opts[] = {
        FILTER_OPTS(f),
        OPT_FLAG(0, "list-rules", &list, "print the rules and stop"),
        DRIVER_OPTS(c),
        TOOL_OPTS(t),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        OPT_END,
    };
    int code, n;

    filter_conf_init(&f);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n >= 0 && list) {
        filter_list_rules(stdout);
        code = tool_end(&t, EXIT_FINE);
    } else if (n >= 0) {
        code = run(&t, &c, &f, n, argv);
    }
    opt_lists_free(opts);
    return code;
}
