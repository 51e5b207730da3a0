/* quern forget: takes pages out of a corpus. */
#include "curate/filter/forget.h"
#include "curate/stream/driver.h"

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "forget",
        .usage = "[options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "take pages out of documents, by id or URL",
        .details =
            "Drops the documents whose id or URL is a line of a file, byte for byte. It goes before the stages that compare "
            "documents: a page that was dropped as the duplicate of a forgotten one is there again then. quern curate "
            "--forget-urls does that in a plan, quern dataset forget in a dataset of tokens.",
        .example = "echo http://h/1 >gone.txt\n"
                   "printf '{\"id\":\"a\",\"url\":\"http://h/%d\",\"text\":\"x\"}\\n' 1 2 | quern forget --urls gone.txt",
    };
    struct forget_conf f;
    struct stage stage;
    struct driver_conf c = {0};
    const struct opt opts[] = {
        FORGET_OPTS(f),
        DRIVER_OPTS(c),
        TOOL_OPTS(t),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        OPT_END,
    };
    struct err e;
    int code, n;

    forget_conf_init(&f);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n >= 0)
        code = driver_one(&t, &c, &stage, forget_stage_open(&stage, &f, &e), &e, n, argv);
    opt_lists_free(opts);
    return code;
}
