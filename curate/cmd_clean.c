/* quern clean: normalises the text of documents. */
#include "curate/clean/clean.h"
#include "curate/stream/driver.h"

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "clean",
        .usage = "[options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "repair and normalise the text of documents",
        .details =
            "Reads documents as JSON lines and writes them with a clean text: mojibake, HTML entities "
            "and terminal escapes repaired, valid UTF-8 in one normalisation form, nothing invisible but "
            "where it means something, white space and newlines in order. A document that is clean "
            "stays as it is, byte for byte; cleaning twice gives what cleaning once gives.",
        .example = "printf '{\"id\":\"a\",\"text\":\"two  spaces \\\\r\\\\nand\\\\u00a0more\"}\\n' | quern clean",
    };
    struct clean_conf f;
    struct stage stage;
    struct driver_conf c = {0};
    const struct opt opts[] = {
        CLEAN_OPTS(f),
        DRIVER_OPTS(c),
        TOOL_OPTS(t),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        OPT_END,
    };
    struct err e;
    int code, n;

    clean_conf_init(&f);
    n = tool_begin(&t, opts, argc, argv, &code);
    return n < 0 ? code : driver_one(&t, &c, &stage, clean_stage_open(&stage, &f, &e), &e, n, argv);
}
